"""fairduel review, as a user types it."""

import json

import numpy as np
import polars as pl
import pytest

from helpers.boards import board


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("review")
    scores = np.linspace(0.6, -0.6, 12)
    votes = board(np.random.default_rng(3), scores, voters=50, each=20, side=0.4, model="davidson", tie=0.0)
    votes.to_frame().write_csv(folder / "votes.csv")
    return folder


def test_review_answers_first_and_writes_everything(folder, here):
    done = here("review", "votes.csv", "--figures", cwd=folder)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "It is too early to say which of 12 items is the best."
    assert any(line.startswith("Joint ranges separate ") for line in lines)
    assert any(line.startswith("Position: biased.") for line in lines)
    out = folder / "results" / "review" / "votes"
    record = json.loads((out / "review.json").read_text(encoding="utf-8"))
    assert record["summary"] == lines[: len(record["summary"])]
    assert record["position"]["low"] > 0.5
    assert record["settings"]["voters"] == 50
    needs = pl.read_csv(out / "votes-needed.csv")
    assert needs["item"].to_list() == [need["item"] for need in record["votes_needed"]]
    assert (len(needs), needs["votes"].dtype) == (11, pl.Int64)
    assert pl.read_csv(out / "next-duels.csv")["votes"].sum() == 100
    assert len(pl.read_csv(out / "ties.csv")) == 12
    for name in ("report.html", "votes-needed.png", "position.svg"):
        assert (out / name).stat().st_size > 1000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.csv"], "missing.csv"),
        (["votes.csv", "--seed", "-1"], "--seed"),
        (["votes.csv", "--ties", "third"], "--ties"),
        (["votes.csv", "--winner", "nobody"], "nobody"),
    ],
)
def test_wrong_arguments_are_refused_and_write_nothing(folder, here, arguments, message):
    done = here("review", *arguments, "--out", "refused", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert not (folder / "refused").exists()


def test_a_file_of_winners_and_losers_in_a_narrow_terminal(folder, here):
    table = pl.read_csv(folder / "votes.csv").filter(pl.col("winner") != "tie")
    first_won = pl.col("winner") == "first"
    table.with_columns(
        pl.when(first_won).then("first").otherwise("second").alias("first"),
        pl.when(first_won).then("second").otherwise("first").alias("second"),
        pl.lit("first").alias("winner"),
    ).write_csv(folder / "won.csv")
    done = here("review", "won.csv", cwd=folder, terminal=True)
    assert done.returncode == 0, done.stderr
    assert "Position bias cannot be tested: the first item always wins" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "Only the first 10 of 11 are shown" in done.stdout
    assert "Ties: there are none." in done.stdout
