"""Save and resume."""

import os
import pickle
import re
from pathlib import Path

import numpy as np
import pytest

from fairduel import (
    RCDB,
    Agent,
    BadInputError,
    MaxInP,
    MaxPairUCB,
    Outcome,
    UnknownDuelError,
)
from fairduel.agents import AGENTS, DuelingAgent
from fairduel.agents.parts.state_file import FORMAT, write_state
from helpers.agents import ACTIONS, made, played, same
from helpers.every_agent import play, small


@pytest.mark.parametrize("stale", [True, False])
def test_a_saved_agent_goes_on_as_if_nothing_had_happened(kind, stale, tmp_path):
    agent = made(kind, warmup=5)
    played(agent, 40)
    waiting = agent.ask_many(ACTIONS, 5)
    agent.tell(waiting[0], Outcome.FIRST)
    agent.cancel(waiting[1])
    if not stale:
        agent.cancel(agent.ask(ACTIONS))  # this fits it
    agent.save(tmp_path / "agent.npz")
    again = Agent.load(tmp_path / "agent.npz")

    assert type(again) is kind
    assert again.state()["belief"]["estimator"]["stale"] is (stale and not waiting[0].is_self_duel)
    assert same(again.state(), agent.state())
    assert again.settings == agent.settings
    assert again.pending == agent.pending == tuple(waiting[2:])
    for both in (agent, again):
        both.tell(waiting[3], Outcome.SECOND)
        for gone in waiting[:2]:
            with pytest.raises(UnknownDuelError, match="already told or cancelled"):
                both.tell(gone, Outcome.FIRST)
    assert played(again, 300, seed=5) == played(agent, 300, seed=5)
    for both in (agent, again):
        both.tell(waiting[2], Outcome.FIRST)
    assert same(again.state(), agent.state())
    np.testing.assert_array_equal(again.estimate, agent.estimate)


@pytest.mark.parametrize("name", [name for name, agent in AGENTS.items() if issubclass(agent, DuelingAgent)])
def test_an_answer_just_before_saving_is_not_forgotten(name):
    kind = AGENTS[name]
    agent = small(kind, **({"self_duels": False} if "self_duels" in kind.__dataclass_fields__ else {}))
    play(agent, 20, np.random.default_rng(1))
    again = Agent.from_state(agent.state())
    assert again.recommend(ACTIONS) == agent.recommend(ACTIONS)
    if hasattr(agent, "estimate"):
        assert np.linalg.norm(again.estimate) > (0.02 if name == "sceptic" else 0.1)  # Sceptic's prior is strong
        np.testing.assert_array_equal(again.estimate, agent.estimate)
    rng, twin = np.random.default_rng(2), np.random.default_rng(2)
    assert play(again, 10, rng) == play(agent, 10, twin)


def test_saving_changes_nothing(kind, tmp_path):
    agent, unsaved = made(kind), made(kind)
    for seed in range(3):
        assert played(agent, 20, seed) == played(unsaved, 20, seed)
        agent.save(tmp_path / "agent.npz")


def test_the_state_shares_nothing_with_the_agent(kind):
    agent = made(kind)
    played(agent, 10)
    state = agent.state()
    twin = Agent.from_state(agent.state())
    played(agent, 10, seed=1)
    assert same(twin.state(), state)


def test_a_torn_file_is_refused_wherever_it_was_cut(kind, tmp_path):
    agent = made(kind)
    played(agent, 10)
    agent.ask(ACTIONS)
    path = tmp_path / "agent.npz"
    agent.save(path)
    whole = path.read_bytes()
    for end in [*range(0, len(whole), len(whole) // 80), len(whole) - 1]:
        path.write_bytes(whole[:end])
        with pytest.raises(BadInputError, match="is corrupt or not a saved agent"):
            Agent.load(path)


def test_a_changed_byte_in_the_content_is_noticed(tmp_path):
    agent = made(RCDB)
    played(agent, 10)
    path = tmp_path / "agent.npz"
    agent.save(path)
    whole = path.read_bytes()
    place = whole.index(b"n\0\0\0o\0\0\0r\0\0\0m\0\0\0")  # within the JSON text
    path.write_bytes(whole[:place] + b"N" + whole[place + 1 :])
    with pytest.raises(BadInputError, match="is corrupt or not a saved agent"):
        Agent.load(path)


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("exploded",)


def test_a_pickle_is_refused_and_never_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("bare").write_bytes(pickle.dumps(Bomb()))
    np.savez("inside.npz", json=np.array(Bomb(), dtype=object))
    for name in ("bare", "inside.npz"):
        with pytest.raises(BadInputError, match="not a saved agent"):
            Agent.load(name)
    assert not Path("exploded").exists()


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(BadInputError, match=r"no saved agent at .*nothing\.npz"):
        Agent.load(tmp_path / "nothing.npz")


@pytest.mark.parametrize("version", [0, FORMAT + 1, None, "3", True])
def test_another_format_is_refused_in_one_sentence(version, tmp_path):
    path = tmp_path / "agent.npz"
    write_state(path, made(RCDB).state() | {"version": version})
    advice = f"this version of fairduel reads format {FORMAT}, not {version!r}; load the agent with the version that"
    with pytest.raises(BadInputError, match=rf"^cannot load .*agent\.npz: {re.escape(advice)} saved it\.$"):
        Agent.load(path)


@pytest.mark.parametrize("part", ["random", "asked", "memory", "belief", "remembered", "pending", "settings"])
def test_a_file_with_a_part_missing_is_refused(part, tmp_path):
    agent = made(RCDB)
    played(agent, 5)
    state = agent.state()
    del state[part]
    agent.state = lambda: state
    agent.save(tmp_path / "agent.npz")
    with pytest.raises(BadInputError, match=r"cannot load .*agent\.npz"):
        Agent.load(tmp_path / "agent.npz")


def test_an_agent_loads_only_as_its_own_class(tmp_path):
    made(MaxInP).save(tmp_path / "agent.npz")
    assert type(MaxInP.load(tmp_path / "agent.npz")) is MaxInP
    with pytest.raises(
        BadInputError, match=r"cannot load .*agent\.npz: it contains an agent of class fairduel.agents.maxinp:MaxInP"
    ):
        RCDB.load(tmp_path / "agent.npz")


def test_a_failed_save_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    agent = made(RCDB)
    path = tmp_path / "agent.npz"
    agent.save(path)
    before = path.read_bytes()
    played(agent, 5)

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BadInputError, match="No space left"):
        agent.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(BadInputError, match="cannot write"):
        made(RCDB).save(tmp_path / "nowhere" / "agent.npz")


def test_a_subclass_of_a_user_is_saved_and_loaded(tmp_path):
    class Stubborn(MaxPairUCB):
        @staticmethod
        def _rule(plan, now, memory, seen, rng):  # noqa: ARG004
            return 0, seen.rewards.size - 1

    agent = made(Stubborn)
    duel = agent.ask(ACTIONS)
    assert {duel.first, duel.second} == {0, 3}
    agent.save(tmp_path / "agent.npz")
    assert type(Agent.load(tmp_path / "agent.npz")) is Stubborn
