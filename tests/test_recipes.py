"""The recipes in CONTRIBUTING.md for an agent, an attack and a world, followed to the letter in a copy."""

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
IMPORTS = {
    "agents/uniform.py": """
from dataclasses import dataclass

import numpy as np

from fairduel.agents.contextual import ContextualAgent
from fairduel.agents.round import Plan
from fairduel.core.compiling import inlined
from fairduel.core.selection import View, random_pair
from fairduel.duel import Vector
""",
    "worlds/ladder.py": """
import numpy as np

from fairduel.core.links import LOGISTIC
from fairduel.worlds.base import FixedWorld
""",
}
CHECK = """
import numpy as np
from fairduel.simulation import Cell, play
from fairduel.simulation.compiled_run import play_compiled

cell = Cell("uniform", "against-the-first", 20, 60, world="ladder", world_settings={"ties": "davidson(1)"})
assert cell.is_compiled
traces = []
for driver in (play, play_compiled):
    agent, world, adversary, streams = cell.start(seed=1)
    traces.append(driver(agent, world, adversary, horizon=60, labels=streams.labels))
for column in ("first", "second", "flipped", "tied"):
    np.testing.assert_array_equal(getattr(traces[0], column), getattr(traces[1], column))
assert traces[1].flipped.sum() == 20 and traces[1].tied.sum() > 5 and len(set(traces[1].first)) == 5
print("played")
"""


def recipe(title):
    return CONTRIBUTING.split(f"## {title}\n")[1].split("\n## ")[0]


def steps(title):
    """The file that a recipe names with the code for it, the line to register it by, and the table for that."""
    text = recipe(title)
    code = textwrap.dedent(
        re.search(r"```py\n(.*?)```", text, re.DOTALL)[1].replace("   #", "#", 1).replace("\n   ", "\n")
    )
    [(line, table)] = re.findall(r"Add `(.*?,)` to\s+`(\w+)`", text)
    return re.match(r"\s*# (\S+)\n", code)[1], code.split("\n", 1)[1], line, table


@pytest.mark.parametrize("title", ["Add an agent", "Add an attack", "Add a world"])
def test_a_recipe_is_short(title):
    [code] = re.findall(r"```py\n(.*?)```", recipe(title), re.DOTALL)
    assert len(code.strip().splitlines()) <= 24
    assert len(re.findall(r"^\d\.", recipe(title), re.MULTILINE)) <= 3


def test_an_agent_an_attack_and_a_world_added_so_are_played_alike_by_both_drivers(tmp_path):
    copy = tmp_path / "fairduel"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    touched = set()
    for title in ("Add an agent", "Add an attack", "Add a world"):
        name, code, line, table = steps(title)
        file = copy / name
        known = file.read_text(encoding="utf-8") if file.exists() else IMPORTS[name]
        before, entries = known.split(f"\n{table}", 1) if f"\n{table}" in known else (known, None)
        file.write_text(before + "\n\n" + code + (f"\n{table}{entries}" if entries else ""), encoding="utf-8")
        listing = file if entries else file.parent / "__init__.py"
        text = listing.read_text(encoding="utf-8")
        if not entries:
            text = text.replace(
                '"""\n', f'"""\nfrom fairduel.{name[:-3].replace("/", ".")} import {line.split()[1][:-1]}\n', 1
            )
        text = re.sub(rf"(\n{table}[^\n]*\{{)", rf"\1\n    {line}", text, count=1)
        listing.write_text(text, encoding="utf-8")
        touched |= {file, listing}
    assert len(touched) == 5  # two files for an agent, two for a world, one for an attack
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment |= {"PYTHONPATH": str(tmp_path), "NUMBA_OPT": "0"}  # compiled anew, so quickly
    command = [sys.executable, "-c", CHECK]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "played", done.stderr
