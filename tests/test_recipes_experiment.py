"""The recipe in CONTRIBUTING.md for a new experiment, followed to the letter."""

import json
import re
import textwrap
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fairduel.cli.command_list import app_for
from fairduel.experiments import EXPERIMENTS, ablations

CONTRIBUTING = (Path(__file__).parent.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPE = CONTRIBUTING.split("## Add an experiment\n")[1].split("\n## ")[0]
FUNCTIONS = textwrap.dedent(re.search(r"```py\n(.*?)```", RECIPE, re.DOTALL)[1])


@pytest.fixture
def name(monkeypatch):
    """Paste the functions into experiments/ablations.py, and their line into the table of experiments."""
    [line] = re.findall(r"Add `(.*?,)` to `EXPERIMENTS` in `experiments/__init__.py`", RECIPE)
    names = vars(ablations).copy()
    exec(FUNCTIONS, names)
    [(name, declare)] = eval(f"{{{line}}}", names).items()
    monkeypatch.setitem(EXPERIMENTS, name, declare)
    monkeypatch.setattr("fairduel.cli.research.reproduce._NAMES", [name])
    return name


def test_the_recipe_touches_two_files():
    assert len(re.findall(r"^\d\.", RECIPE, re.MULTILINE)) == 2
    assert len(FUNCTIONS.strip().splitlines()) <= 24


def test_the_new_experiment_runs_and_states_its_own_conclusion(name, tmp_path):
    done = CliRunner().invoke(
        app_for(), ["reproduce", name, "--runs", "3", "--jobs", "1", "--json", "--figures", "--out", str(tmp_path)]
    )
    [found] = json.loads(done.stdout)["experiments"]
    regret = {(row["panel"], row["is_reference"]): row["regret"]["value"] for row in found["rows"]}
    for panel, sentence in zip(("greedy", "adversarial"), found["conclusions"], strict=False):
        ratio = regret[panel, False] / regret[panel, True]
        assert sentence.startswith(f"{panel.capitalize()}: without weights, regret is {ratio:.2f} [")
    assert found["conclusions"][0] in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert (tmp_path / "weights.svg").exists()
