"""A study with liars: the agent asks, people vote, and the results name the best item."""

import random
import secrets

import numpy as np
import pytest
from scipy import special

from fairduel.service.analysis.analyse import activity, analyse, balance
from fairduel.service.analysis.inputs import Subject
from fairduel.service.api import replies
from fairduel.service.commands import simulated_voters
from fairduel.service.service import Service


@pytest.mark.parametrize("seed", [0, 1])
def test_a_fifth_of_liars_does_not_change_who_is_first(tmp_path, monkeypatch, seed):
    monkeypatch.setattr(simulated_voters, "_PAUSE", 3600.0)
    monkeypatch.setattr(
        secrets, "token_bytes", random.Random(seed).randbytes
    )  # who gets which gold duel depends on ids
    service = Service(tmp_path)
    simulated = simulated_voters.Demo(service, seed)
    try:
        for _ in range(450):
            simulated.vote()
        about, position = service.ledger.run(
            lambda ledger: (Subject.of(ledger.state.studies[simulated.study]), ledger.state.position)
        )
        with service.ledger.store.engine.connect() as connection:
            found = analyse(connection, about, position)
        rows = service.ledger.run(lambda ledger: replies.voters(ledger, simulated.study, found))
    finally:
        simulated.close()
        service.close()
    assert found.results["ranking"][0]["item"] == "Rowan"
    flagged = [row for row in rows if row["flagged"]]
    assert len(flagged) >= 2
    assert all(row["name"].startswith("liar") and "with a known answer right" in row["why"] for row in flagged)
    assert all(row["flagged"] for row in rows if row["gold_of"] >= 6 and row["gold_right"] == 0)
    doubted = [row["name"] for row in rows if not row["learned"]]
    assert len(doubted) >= 2
    assert all(name.startswith("liar") for name in doubted)


def test_the_balance_alarm_is_rarely_false_despite_repeated_looks():
    """By Ville's inequality at most one in 1,000 fair sequences ever raises it; of 2,000, ten or more are unlikely."""

    rng = np.random.default_rng(0)
    left = np.cumsum(rng.random((2000, 300)) < 0.5, axis=1)
    right = np.arange(1, 301) - left
    log_e = special.betaln(left + 1, right + 1) + (left + right) * np.log(2.0)
    assert ((log_e > np.log(1000)).any(axis=1)).sum() < 10
    place = np.unravel_index(np.argmax(log_e), log_e.shape)
    assert balance(int(left[place]), int(right[place]))["p"] == pytest.approx(np.exp(-log_e[place]))
    assert balance(75, 25)["alarm"]
    assert not balance(55, 45)["alarm"]
    assert balance(0, 0)["p"] is None


def test_the_activity_adds_up():

    for span in (0.5, 100.0, 5e4, 1e6, 1e9):
        times = np.sort(np.random.default_rng(1).uniform(1.7e9, 1.7e9 + span, 500))
        bars = activity(times)
        assert sum(bar["votes"] for bar in bars) == 500
        assert len(bars) <= 50
        assert bars[0]["from"] <= times[0]
