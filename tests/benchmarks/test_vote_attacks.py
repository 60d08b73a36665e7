"""Rankings under attack: what populations, attacks and comparisons are, and a small table from end to end."""

import csv

import numpy as np
import polars as pl
import pytest
from benchmarks.rivals import plain
from benchmarks.vote_attacks import __main__ as command
from benchmarks.vote_attacks import attacks
from benchmarks.vote_attacks.attacks import ATTACKS, OURS, POPULATIONS, Population, compare, measured
from benchmarks.vote_attacks.tables import conclusions

from fairduel.errors import BadInputError


def found(taus):
    """One cell with these values of τ per model."""
    rows = [
        {"seed": seed, "share": 0.1, "model": model, "tau": tau, "gained": 2}
        for model, values in taus.items()
        for seed, tau in enumerate(values)
    ]
    return {("tastes", "promote"): pl.DataFrame(rows)}


@pytest.fixture
def two_models(monkeypatch):
    monkeypatch.setattr(attacks, "MODELS", {OURS: plain, "plain": plain, "other": plain})


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
    monkeypatch.setattr(attacks, "MODELS", {OURS: lambda votes: sizes.append(len(votes)) or np.arange(20.0)})
    rows = measured("identical", attack, (0.02, 0.1), 0)
    honest = len(POPULATIONS["identical"].votes(0)[0])
    np.testing.assert_allclose([1.0 - honest / size for size in sizes], [0.02, 0.1], atol=0.001)
    assert {row["gained"] is None for row in rows} == {attack in ("inverters", "random-votes")}


def test_places_count_in_the_direction_of_the_attack(monkeypatch):
    truth = POPULATIONS["identical"].votes(0)[1]
    monkeypatch.setattr(attacks, "MODELS", {OURS: lambda _: -truth})  # the order reversed
    [demoted], [promoted] = (measured("identical", attack, (0.01,), 0) for attack in ("demote", "promote"))
    assert (demoted["gained"], promoted["gained"]) == (19, 11)  # promoted from rank 16 to rank 5
    assert promoted["tau"] == -1.0


@pytest.mark.usefixtures("two_models")
def test_the_lead_is_over_the_best_rival_seed_by_seed():
    [cell] = compare(found({OURS: [0.9, 0.8], "plain": [0.85, 0.79], "other": [0.91, 0.85]}))
    assert (cell.best, cell.lead.value) == ("other", pytest.approx(-0.03))
    assert cell.lead.error == pytest.approx(0.02)
    told = " ".join(conclusions([cell]))
    assert "In 0 of 1 cells" in told
    assert "furthest behind in tastes / promote 10%, by 0.030 ± 0.020 (other); 1 cells are more than 0.01" in told


@pytest.mark.usefixtures("two_models")
def test_winning_everywhere_is_said_without_a_loss():
    cells = compare(found({OURS: [0.9, 0.8], "plain": [0.85, 0.79], "other": [0.8, 0.7]}))
    told = conclusions(cells)
    assert "In 1 of 1 cells" in told[0]
    assert not any("behind" in sentence for sentence in told)


def test_the_command_prints_and_writes_every_table_and_resumes(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(attacks, "POPULATIONS", {"identical": POPULATIONS["identical"]})
    monkeypatch.setattr(attacks, "ATTACKS", {"promote": ATTACKS["promote"]})
    arguments = ["--quick", "--out", str(tmp_path)]
    command.main(arguments)
    printed = capsys.readouterr().out
    assert "cells our mean τ is at least that of the best of 7 rivals" in printed
    assert "furthest ahead in identical / promote 10%" in printed
    tables = {path.stem: list(csv.DictReader(path.read_text("utf-8").splitlines())) for path in tmp_path.glob("*.csv")}
    assert [(row["attack"], row["share"]) for row in tables["vote-attacks"]] == [("none", "0%"), ("promote", "10%")]
    promoted = tables["vote-attacks"][1]
    assert float(promoted["worst lead"]) > 0.05
    assert float(promoted["places, plain"]) > float(promoted["places, ours"].replace("−", "-")) + 2
    assert [row["attack"] for row in tables["vote-attacks-tau"]] == ["none", "promote"]
    assert [row["attack"] for row in tables["vote-attacks-places"]] == ["promote"]

    def fail(*_):
        raise AssertionError("nothing is left to run")

    monkeypatch.setattr(attacks, "measured", fail)
    command.main(arguments)
    assert capsys.readouterr().out == printed
    damaged = next((tmp_path / "kept").iterdir())
    damaged.write_bytes(b"PAR1")
    with pytest.raises(BadInputError, match="damaged"):
        command.main(arguments)
