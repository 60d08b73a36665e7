"""The recipes in CONTRIBUTING.md for agents, beliefs, attacks, tactics and worlds, followed to the letter in a copy."""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import fairduel

PACKAGE = Path(fairduel.__file__).parent
CONTRIBUTING = (Path(__file__).parent.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
RULES = """
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fairduel.agents.parts.contextual import ContextualAgent
from fairduel.agents.parts.round import Memory, Now, Plan
from fairduel.agents.rcdb import RCDB
from fairduel.core.compiling import inlined
from fairduel.core.selection import View, random_pair, symmetric_pair
from fairduel.duel import Vector
"""
IMPORTS = {
    "agents/uniform.py": RULES,
    "agents/restless.py": RULES,
    "agents/counted.py": """
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairduel.agents.parts.belief import Belief
from fairduel.agents.sceptic import Sceptic
from fairduel.core.information import checked_array
from fairduel.core.selection import View
from fairduel.duel import Duel, Matrix, Vector
""",
    "worlds/ladder.py": """
import numpy as np

from fairduel.core.links import LOGISTIC
from fairduel.worlds.world import FixedWorld
""",
}
CHECK = """
import numpy as np
from fairduel import Outcome
from fairduel.simulation import Cell, play
from fairduel.testing import check_agent
from fairduel.simulation.compiled_run import play_compiled

for name in ("uniform", "restless"):
    cell = Cell(name, "against-the-first", 20, 60, world="ladder", world_settings={"ties": "davidson(1)"})
    assert cell.is_compiled
    traces = []
    for driver in (play, play_compiled):
        agent, world, adversary, streams = cell.start(seed=1)
        traces.append(driver(agent, world, adversary, horizon=60, labels=streams.labels))
    for column in ("first", "second", "flipped", "tied", "weight"):
        np.testing.assert_array_equal(getattr(traces[0], column), getattr(traces[1], column))
    assert traces[1].flipped.sum() == 20 and traces[1].tied.sum() > 5 and len(set(traces[1].first)) == 5
    if name == "restless":
        agent = cell.start(seed=1)[0]
        for _ in range(10):
            duel = agent.ask([[0.0], [0.5], [1.0]])
            agent.tell(duel, Outcome.FIRST if duel.first > duel.second else Outcome.SECOND)
        assert agent._remembered.votes > 0
        assert type(agent).from_state(agent.state())._remembered == agent._remembered

from fairduel.agents.counted import Counting  # its one file is enough
settings = {"items": 5, "horizon": 400, "flip_budget": 0, "patience": 3, "warmup": 4}
check_agent(lambda: Counting(**settings), actions=np.eye(5))
agent, rng = Counting(**settings), np.random.default_rng(0)
for _ in range(400):
    duel = agent.ask()
    agent.tell(duel, Outcome.FIRST if rng.random() < 1 / (1 + np.exp(duel.second - duel.first)) else Outcome.SECOND)
assert agent.recommend() == 4 and not hasattr(agent, "estimate")
assert "own estimate" in agent.explain_recommendation()
print("played")
"""
CHECK_TACTIC = """
import numpy as np
from fairduel.cli.votes.stress_command import AttackOption, stress_command
from fairduel.service.api.jobs import RedTeam
from fairduel.votes.attacking.liars import ITEMS, arena
from fairduel.votes.attacking.injection import Campaign, Campaigner, inject
from fairduel.votes.attacking.liars import Liar
from fairduel.votes.ranking.bradley_terry import fit_scores, wins

assert "spoil" in list(AttackOption) and "vote against the leader of the target" in stress_command.__doc__
assert "spoil" in RedTeam.model_json_schema()["properties"]["attack"]["enum"]
RedTeam(attack="spoil", item="Oak")
assert Liar("spoil", item=2, leader=0).chance(1, 0, 0.4) == 1.0
votes, liars = arena(liars={"spoil": 3}, voters=40, seed=0)
assert list(liars.values()) == ["spoil"] * 3
oak, leader = votes.items.index("Oak"), int(fit_scores(wins(votes)).scores.argmax())
campaigner = Campaigner(votes, oak, leader)
assert "spoil" in campaigner.tactics
for cast in (inject(votes, "spoil", "Oak", size=300), campaigner.cast(Campaign("spoil", 10, 30, 30))):
    lies = cast.votes.select(cast.fake)
    met = (lies.first == leader) | (lies.second == leader)
    assert met.sum() > 20 and (lies.result[met] == (lies.second[met] == leader)).all()
print("offered")
"""


def recipe(title):
    return CONTRIBUTING.split(f"## {title}\n")[1].split("\n## ")[0]


def steps(title):
    """The file that a recipe names with the code for it, and the line, table and file to register it in."""
    text = recipe(title)
    code = textwrap.dedent(re.search(r"```py\n(.*?)```", text, re.DOTALL)[1])
    name = re.match(r"\s*# (\S+)\n", code)[1]
    found = re.findall(r"Add `(.*?,)` to\s+`(\w+)`(?:\s+in\s+`([\w/.]+)`)?", text)
    line, table, listing = found[0] if found else ("", "", "")  # nothing to register
    return name, code.split("\n", 1)[1], line, table, listing or name


@pytest.mark.parametrize("title", ["Add an agent", "Add an attack", "Add a tactic", "Add a world"])
def test_a_recipe_is_short(title):
    [code] = re.findall(r"```py\n(.*?)```", recipe(title), re.DOTALL)
    assert len(code.strip().splitlines()) <= 24
    assert len(re.findall(r"^\d\.", recipe(title), re.MULTILINE)) <= 3


def follow(title, copy):
    """Follow a recipe in a copy of the package; return the files that it touched."""
    name, code, line, table, listing = steps(title)
    file, listing = copy / name, copy / listing
    known = file.read_text(encoding="utf-8") if file.exists() else IMPORTS[name]
    before, entries = known.split(f"\n{table}", 1) if table and f"\n{table}" in known else (known, None)
    file.write_text(before + "\n\n" + code + (f"\n{table}{entries}" if entries else ""), encoding="utf-8")
    if line:
        text = listing.read_text(encoding="utf-8")
        made = line.split()[1][:-1]
        if listing != file and made.isidentifier():
            text = text.replace('"""\n', f'"""\nfrom fairduel.{name[:-3].replace("/", ".")} import {made}\n', 1)
        text = re.sub(rf"(\n{table}[^{{]*\{{)", rf"\1\n    {line}", text, count=1)
        listing.write_text(text, encoding="utf-8")
    return {file, listing}


def followed(titles, folder):
    """Follow recipes in a copy of the package in a folder; return the files that they touched."""
    copy = folder / "fairduel"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    return set().union(*(follow(title, copy) for title in titles))


def said(script, folder):
    """Run a script with the copy of the package in a folder; return what it printed."""
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment |= {"PYTHONPATH": str(folder), "NUMBA_OPT": "0"}  # compiled anew, so quickly
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_both_drivers_agree_on_what_the_recipes_add(tmp_path):
    touched = followed(
        ("Add an agent", "Add an agent with memory", "Add a belief", "Add an attack", "Add a world"), tmp_path
    )
    assert len(touched) == 7  # the agents share the second of their two; a belief and an attack have one, a world two
    assert said(CHECK, tmp_path) == "played"


def test_a_new_tactic_is_offered_wherever_people_may_lie(tmp_path):
    assert len(followed(["Add a tactic"], tmp_path)) == 1
    assert said(CHECK_TACTIC, tmp_path) == "offered"
