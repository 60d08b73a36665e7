"""Every format that was ever written can be read, and the agent goes on as it would have then.

``saved/`` has agents as older versions wrote them: one archive per format, more where a format changed under way.
Each was made as by ``waiting`` of ``helpers/every_agent.py``; ``next.json`` has what it asked next in the version that
wrote it. Duels are compared by their indices: estimates have become more exact since, and so differ in late digits.
"""

import dataclasses
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from fairduel import BadInputError, Duel, MaxPairUCB, Pull
from fairduel.agents import AGENTS, SBE, WIWR, Agent, ArmRace, DuelingAgent, VersatileDB
from fairduel.agents.old_formats import FORMAT
from helpers.every_agent import ACTIONS, indices, play, tell, waiting

ARCHIVES = sorted((Path(__file__).parent / "saved").glob("*.zip"))
CHANGED = {
    # Ties of the leader and of the rival have had draws of their own since.
    ("format-1-first", "CoLSTIM"),
    ("format-1-estimators", "CoLSTIM"),
    # Their radii have other constants since.
    *((a.stem, n) for a in ARCHIVES[:-2] for n in ("WeightedOFUL", "MultiLevelOFUL", "CWOFUL", "COBE")),
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


def older(agent, note):
    """The state of an agent in format 4, where what is pending has this note."""
    state = agent.state() | {"version": 4}
    shared = [field.name for field in dataclasses.fields(Duel if isinstance(agent, DuelingAgent) else Pull)]
    for number, fields in state["pending"].items():
        state["pending"][number] = {name: fields[name] for name in shared} | {"note": note}
    return state


@pytest.mark.parametrize(
    ("kind", "note", "fields"),
    [
        (ArmRace, [-1], {"layer": None}),
        (ArmRace, [0], {"layer": 0}),
        (SBE, [1, -1], {"epoch": 1, "place": None}),
        (SBE, [1, 2], {"epoch": 1, "place": 2}),
        (WIWR, [1, 0.0], {"epoch": 1, "challenger_first": False}),
        (VersatileDB, [1, 0.25, 0.5], {"player": 1, "first_chance": 0.25, "second_chance": 0.5}),
    ],
    ids=str,
)
def test_a_note_becomes_fields(kind, note, fields):
    again = Agent.from_state(older(waiting(kind), note))
    for asked in again.pending:
        found = {name: getattr(asked, name) for name in fields}
        assert found == fields
        assert list(map(type, found.values())) == list(map(type, fields.values()))


@pytest.fixture
def forgotten():
    """Undo what a test defines."""
    before = dict(Agent._classes)
    yield
    Agent._classes.clear()
    Agent._classes.update(before)


@pytest.mark.usefixtures("forgotten")
def test_the_note_of_a_class_of_the_users_is_that_of_the_class_it_derives_from():
    mine = type("Mine", (ArmRace,), {"__module__": "mine", "__qualname__": "Mine"})
    again = Agent.from_state(older(waiting(mine), [3]))
    assert type(again) is mine
    assert [pull.layer for pull in again.pending] == [3, 3]


@pytest.mark.usefixtures("forgotten")
def test_a_note_that_has_no_fields_is_refused_and_an_empty_one_is_none():
    mine = type("Mine", (MaxPairUCB,), {"__module__": "mine", "__qualname__": "Mine"})
    assert len(Agent.from_state(older(waiting(mine), [])).pending) == 2
    with pytest.raises(BadInputError, match="no fields for a pending note; tell or cancel it with an older version"):
        Agent.from_state(older(waiting(mine), [0.5]))


LATER = {"GINOP", "HCW", "RandomPairs"}
"""Agents that came after the last old format."""


def test_there_is_a_file_of_every_old_format_and_of_every_agent_in_the_last():
    assert {int(archive.stem.split("-")[1]) for archive in ARCHIVES} == set(range(1, FORMAT))
    with zipfile.ZipFile(ARCHIVES[-1]) as file:
        names = {kind.__name__ for kind in AGENTS.values()}
        assert {f"{name}.npz" for name in names - LATER} <= set(file.namelist())
