"""The recipe in CONTRIBUTING.md for a new verdict, followed to the letter."""

import inspect
import json
import re
import textwrap
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fairduel.cli.command_list import app_for
from fairduel.experiments import claims
from fairduel.experiments.claims import beyond
from fairduel.simulation import Store
from helpers.planted import Planted, statuses

RECIPE = (Path(__file__).parent.parent / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## Add a verdict\n")[1]
RECIPE = RECIPE.split("\n## ")[0]
FUNCTION = textwrap.dedent(re.search(r"```py\n(.*?)```", RECIPE, re.DOTALL)[1])


@pytest.fixture
def new_claim(monkeypatch):
    """Paste the function into claims/beyond.py, and its line into the list there; the other claims take too long."""
    [line] = re.findall(r"Add `(.*?),` to the list", RECIPE)
    names = vars(beyond).copy()
    exec(FUNCTION, names)
    listed = re.sub(r"return \[.*\]", f"return [{line}]", inspect.getsource(beyond.beyond_claims), flags=re.DOTALL)
    exec(listed, names)
    for name in ("figure_claims", "proof_claims", "theorem_claims", "lower_bound_claims", "our_claims"):
        monkeypatch.setattr(claims, name, list)
    monkeypatch.setattr(claims, "beyond_claims", names["beyond_claims"])
    [claim] = claims.all_claims()
    return claim


def test_the_recipe_has_at_most_ten_lines():
    lines = [line for line in RECIPE.splitlines() if line.strip() and "```" not in line]
    assert 5 < len(lines) <= 10


def test_the_new_verdict_follows_from_planted_evidence(new_claim):
    attacked, _ = new_claim.cells
    assert statuses(new_claim, Planted(lambda cell: 500.0 if cell == attacked else 100.0)) == ["holds"]
    assert statuses(new_claim, Planted(lambda cell: 100.0 if cell == attacked else 500.0)) == ["does not hold"]


def test_the_new_verdict_is_measured_and_reported(new_claim, tmp_path):
    store, done = Store(tmp_path, traces=False), []
    assert claims.count_runs(store, range(4)) == 8
    [verdict] = claims.verify(store, range(4), progress=done.append)
    assert sum(done) == 8
    attacked, clean = (store.records(cell, range(4))["regret"].to_numpy() for cell in new_claim.cells)
    assert verdict.numbers["value"] == pytest.approx((attacked - clean).mean())
    assert verdict.claim == "the greedy attack costs RCDB regret"
    result = CliRunner().invoke(app_for(), ["verify", "--runs", "4", "--json", "--out", str(tmp_path)])
    assert [verdict["claim"] for verdict in json.loads(result.stdout)["verdicts"]] == [verdict.claim]
