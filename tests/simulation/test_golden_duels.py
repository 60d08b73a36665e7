"""Every agent × attack × world plays the duels that it played before the round was written once.

golden_duels.json was made by the code of before:  python tests/simulation/test_golden_duels.py
A change that is meant to change duels makes it anew, and says why.
"""

import json
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest

from fairduel.adversaries import ATTACKS
from fairduel.agents import AGENTS
from fairduel.errors import BadInputError
from fairduel.simulation import Cell

GOLDEN = Path(__file__).with_name("golden_duels.json")
WORLDS = {
    "hypercube": ("hypercube", {}),
    "fresh": ("fresh", {"count": 12}),
    "many": ("fresh", {"count": 150, "dimension": 3}),
    "hard-stochastic": ("hard-stochastic", {"dimension": 3}),
    "hard-corrupted": ("hard-corrupted", {}),
    "arms": ("arms", {}),
    "linear": ("linear", {}),
    "preferences": ("preferences", {}),
    "cyclic": ("preferences", {"family": "cyclic", "regret": "borda"}),
}


def played(agent, attack, world):
    """A mark of who met whom and what was corrupted, or None where the three do not go together."""
    name, settings = WORLDS[world]
    cell = Cell(agent, attack, 10, 30 if agent == "fgts" else 60, name, world_settings=settings)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            trace = cell.run(seed=5).trace
    except BadInputError:
        return None
    return f"{zlib.crc32(np.stack([trace.first, trace.second, trace.flipped]).astype(np.int64).tobytes()):08x}"


def all_played(agent):
    marks = {f"{attack} in {world}": played(agent, attack, world) for attack in ATTACKS for world in WORLDS}
    return {key: mark for key, mark in marks.items() if mark}


@pytest.mark.parametrize("agent", json.loads(GOLDEN.read_text()) if GOLDEN.exists() else [])
def test_duels_are_those_of_before(agent):
    golden = json.loads(GOLDEN.read_text())[agent]
    assert len(golden) >= 6
    assert all_played(agent) == golden


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps({agent: all_played(agent) for agent in AGENTS}, indent=1) + "\n")
