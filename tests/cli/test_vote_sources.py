"""Filters, features per vote and standard input, as a user meets them."""

import io
import json
import sys

import numpy as np
import pytest
import typer
from scipy import special

from fairduel.cli.command_list import app_for

SKILL, WORDS = np.array([1.0, 0.0, -1.0]), np.array([100, 300, 900])


@pytest.fixture
def arena(tmp_path):
    """A file in which the worst of three models writes the longest answers, which win."""
    rng, lines = np.random.default_rng(0), []
    for number in range(900):
        a, b = rng.choice(3, 2, replace=False)
        long_a, long_b = rng.poisson(rng.gamma(4.0, WORDS[[a, b]] / 4.0)) + 1
        chance = special.expit(SKILL[a] - SKILL[b] + 4 * (long_a - long_b) / (long_a + long_b))
        lines.append(
            {
                "model_a": "abc"[a],
                "model_b": "abc"[b],
                "winner": "model_a" if rng.random() < chance else "model_b",
                "judge_hash": f"u{rng.integers(40)}",
                "anony": bool(number % 10),
                "conv_metadata": {"sum_assistant_a_tokens": int(long_a), "sum_assistant_b_tokens": int(long_b)},
            }
        )
    path = tmp_path / "arena.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


LENGTH = "conv_metadata.sum_assistant_a_tokens:conv_metadata.sum_assistant_b_tokens"


def test_standard_input_has_a_folder_of_its_own(here, arena, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(arena.read_bytes())))
    done = here("rank", "-", cwd=tmp_path)
    assert done.stdout.startswith("c has won against 2 other items")
    assert "90 of 900 rows have anony = false" in done.stdout
    assert "<title>Ranking of stdin" in (tmp_path / "results/rank/stdin/report.html").read_text()


def test_a_filter_and_a_feature_are_shown_and_written(here, arena, tmp_path):
    done = here("rank", arena, "--vote-feature", LENGTH, "--where", "anony=TRUE", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith("a has won against 2 other items")
    assert "Scores hold for equal features per vote." in done.stdout
    assert "90 of 900 rows were left out: only those with anony = TRUE stay." in done.stdout
    record = json.loads((tmp_path / "results/rank/arena/ranking.json").read_text())
    [effect] = record["vote_features"]
    assert effect["coefficient"] > 5 * effect["error"]
    settings = record["settings"]
    assert (settings["rows"], settings["rows_left_out"], settings["votes"]) == (900, 90, 810)
    assert settings["where"] == {"anony": ["TRUE"]}
    page = (tmp_path / "results/rank/arena/report.html").read_text()
    assert "<h2>Features per vote</h2>" in page
    assert f"{effect['coefficient']:+.3f}" in page


def test_every_vote_command_has_the_filter(here, arena, tmp_path):
    commands = typer.main.get_command(app_for()).commands
    arguments = {
        name: [each.metavar for each in command.params if each.param_type_name == "argument"]
        for name, command in commands.items()
    }
    with_votes = [name for name, metavars in arguments.items() if "FILE" in metavars]
    assert {"rank", "audit", "stress"} <= set(with_votes)
    assert [n for n in with_votes if "--where" not in {o for p in commands[n].params for o in p.opts}] == []
    done = here("audit", arena, "--top", "1", "--where", "anony=true", cwd=tmp_path)
    assert "90 of 900 rows were left out" in done.stdout


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--where", "anony"], "--where anony must have the form COLUMN=VALUE."),
        (["--where", "=true"], "--where =true must have the form COLUMN=VALUE."),
        (["--where", "judge_hash=nobody"], "no row of arena.jsonl has judge_hash = nobody: its most frequent values"),
        (["--where", "anon=true"], "arena.jsonl has no column 'anon'"),
        (["--vote-feature", "tokens"], "arena.jsonl has no column 'tokens'"),
    ],
)
def test_wrong_options_are_one_sentence_and_change_nothing(here, arena, tmp_path, options, sentence):
    done = here("rank", arena, *options, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"fairduel: {sentence}")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "results").exists()
