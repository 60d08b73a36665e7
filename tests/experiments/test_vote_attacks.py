"""Rankings under attack: what populations, attacks and comparisons are, and a small table from end to end."""

import json

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from fairduel.cli.app import app
from fairduel.errors import BadInputError
from fairduel.experiments import vote_attacks
from fairduel.experiments.vote_attacks import ATTACKS, OURS, POPULATIONS, Batch, Population, compare
from fairduel.experiments.votes_conclusions import vote_attacks_conclusions
from fairduel.votes.rivals import plain


def frame(taus):
    """One cell with these values of τ per model."""
    rows = [
        {
            "population": "tastes",
            "attack": "promote",
            "seed": seed,
            "share": 0.1,
            "model": model,
            "tau": tau,
            "gained": 2,
        }
        for model, values in taus.items()
        for seed, tau in enumerate(values)
    ]
    return pl.DataFrame(rows)


@pytest.fixture
def two_models(monkeypatch):
    monkeypatch.setattr(vote_attacks, "MODELS", {OURS: plain, "plain": plain, "other": plain})


def test_populations_are_as_declared():
    votes, scores = Population(taste=0.0, popularity=0.7).votes(3)
    assert len(votes.items) == len(scores) == 20
    assert np.corrcoef(plain(votes), scores)[0, 1] > 0.95
    assert votes.is_tie.mean() == pytest.approx(0.1, abs=0.02)
    assert np.bincount(votes.first).max() > 3 * np.bincount(votes.first).min()
    uneven, _ = POPULATIONS["uneven"].votes(3)
    cast = np.bincount(uneven.cast_by, minlength=150)
    assert cast.min() >= 1
    assert cast.max() > 5 * np.median(cast)


@pytest.mark.parametrize("attack", ATTACKS)
def test_attackers_cast_their_share_of_all_votes(attack, monkeypatch):
    sizes = []
    monkeypatch.setattr(vote_attacks, "MODELS", {OURS: lambda votes: sizes.append(len(votes)) or np.arange(20.0)})
    monkeypatch.setattr(vote_attacks, "SHARES", (0.02, 0.1))
    rows = Batch("identical", attack, 0).run()
    honest = len(POPULATIONS["identical"].votes(0)[0])
    np.testing.assert_allclose([1.0 - honest / size for size in sizes], [0.02, 0.1], atol=0.001)
    assert rows["gained"].is_null().all() == (attack in ("inverters", "random votes"))


def test_places_count_in_the_direction_of_the_attack(monkeypatch):
    truth = POPULATIONS["identical"].votes(0)[1]
    monkeypatch.setattr(vote_attacks, "MODELS", {OURS: lambda _: -truth})  # the order reversed
    monkeypatch.setattr(vote_attacks, "SHARES", (0.01,))
    assert Batch("identical", "demote", 0).run()["gained"].to_list() == [19]
    assert Batch("identical", "promote", 0).run()["gained"].to_list() == [11]  # from rank 16 to rank 5
    assert Batch("identical", "promote", 0).run()["tau"].to_list() == [-1.0]


@pytest.mark.usefixtures("two_models")
def test_the_lead_is_over_the_best_rival_seed_by_seed():
    [cell] = compare(frame({OURS: [0.9, 0.8], "plain": [0.85, 0.79], "other": [0.91, 0.85]}))
    assert (cell.best, cell.lead.value) == ("other", pytest.approx(-0.03))
    assert cell.lead.error == pytest.approx(0.02)
    told = " ".join(vote_attacks_conclusions([cell]))
    assert "In 0 of 1 cells" in told
    assert "furthest behind in tastes / promote 10%, by 0.030 ± 0.020 (other); 1 cells are more than 0.01" in told


@pytest.mark.usefixtures("two_models")
def test_winning_everywhere_is_said_without_a_loss():
    cells = compare(frame({OURS: [0.9, 0.8], "plain": [0.85, 0.79], "other": [0.8, 0.7]}))
    told = vote_attacks_conclusions(cells)
    assert "In 1 of 1 cells" in told[0]
    assert not any("behind" in sentence for sentence in told)


def test_the_command_writes_the_table_and_resumes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(vote_attacks, "POPULATIONS", {"identical": POPULATIONS["identical"]})
    monkeypatch.setattr(vote_attacks, "ATTACKS", {"promote": ATTACKS["promote"]})
    monkeypatch.setattr(vote_attacks, "SHARES", (0.1,))
    call = ["reproduce", "votes", "--runs", "2", "--jobs", "1", "--json"]
    done = CliRunner().invoke(app, call, catch_exceptions=False)
    found = json.loads(done.stdout)
    assert [(row["attack"], row["share"]) for row in found["rows"]] == [("none", 0.0), ("promote", 0.1)]
    promoted = found["rows"][1]
    assert promoted["lead"]["value"] > 0.05
    assert promoted["gained"]["plain"]["value"] > promoted["gained"][OURS]["value"] + 2
    out = tmp_path / "results" / "votes"
    assert len(pl.read_csv(out / "runs.csv")) == 2 * 2 * len(vote_attacks.MODELS)
    assert "Kendall τ" in (out / "report.html").read_text(encoding="utf-8")
    assert (out / "table-kendall.csv").exists()
    monkeypatch.setattr(Batch, "run", None)  # nothing is left to run
    again = CliRunner().invoke(app, call, catch_exceptions=False)
    assert json.loads(again.stdout)["rows"] == found["rows"]
    damaged = next((out / "runs").iterdir())
    damaged.write_bytes(b"PAR1")
    with pytest.raises(BadInputError, match="damaged"):
        CliRunner().invoke(app, call, catch_exceptions=False)
