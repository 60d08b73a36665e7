"""Every format that was ever written can be read, and the agent goes on as it would have then.

``saved/`` has agents as older versions wrote them: one archive per format, more where a format changed under way.
Each was made as by ``waiting`` of ``helpers/every_agent.py``; ``next.json`` has what it asked next in the version that
wrote it. Duels are compared by their indices: estimates have become more exact since, and so differ in late digits.
"""

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from fairduel.agents import AGENTS, Agent
from fairduel.agents.old_formats import FORMAT
from helpers.every_agent import ACTIONS, indices, play, tell

ARCHIVES = sorted((Path(__file__).parent / "saved").glob("*.zip"))
CHANGED = {
    # Ties of the leader and of the rival have had draws of their own since.
    ("format-1-first", "CoLSTIM"),
    ("format-1-estimators", "CoLSTIM"),
    # Their radii have other constants since.
    *((a.stem, n) for a in ARCHIVES[:-1] for n in ("WeightedOFUL", "MultiLevelOFUL", "CWOFUL", "COBE")),
}
"""Agents whose algorithm has changed since: what they had learned is compared, not what they ask next."""


def saved_agents():
    for archive in ARCHIVES:
        with zipfile.ZipFile(archive) as file:
            for name, expected in json.loads(file.read("next.json")).items():
                yield pytest.param(archive, name, expected, id=f"{archive.stem}-{name}")


def saved_estimate(path):
    with np.load(path) as file:
        return file[{"regression/estimate", "bases/0/regression/estimate", "theta"}.intersection(file.files).pop()]


@pytest.mark.parametrize(("archive", "name", "expected"), list(saved_agents()))
def test_an_agent_of_an_old_format_goes_on_as_it_would_have_then(archive, name, expected, tmp_path):
    with zipfile.ZipFile(archive) as file:
        path = Path(file.extract(f"{name}.npz", tmp_path))
    agent = Agent.load(path)
    assert type(agent).__name__ == expected["agent"]
    assert agent.asked == expected["asked"]
    assert [indices(asked) for asked in agent.pending] == expected["pending"]
    if (archive.stem, name) in CHANGED:
        assert agent.recommend(ACTIONS) == np.argmax(ACTIONS @ saved_estimate(path))
    else:
        rng = np.random.default_rng(1)
        rng.random(21)  # what the answers before took
        tell(agent, agent.pending[0], rng)
        assert play(agent, len(expected["next"]), rng) == expected["next"]
        assert agent.recommend(ACTIONS) == expected["recommended"]
    agent.save(path)
    assert play(Agent.load(path), 5, np.random.default_rng(2)) == play(agent, 5, np.random.default_rng(2))


def test_there_is_a_file_of_every_old_format_and_of_every_agent_in_the_last():
    assert {int(archive.stem.split("-")[1]) for archive in ARCHIVES} == set(range(1, FORMAT))
    with zipfile.ZipFile(ARCHIVES[-1]) as file:
        assert {f"{kind.__name__}.npz" for kind in AGENTS.values()} <= set(file.namelist())
