"""Duels of an action with itself, and the lock-in that they tell of."""

import warnings

import numpy as np
import pytest

from fairduel import (
    RCDB,
    Agent,
    LockInWarning,
    MaxPairUCB,
    Outcome,
)
from helpers.agents import ACTIONS, answer, made


def locked(kind, **settings):
    """An agent that knows the best action and has no curiosity left."""
    agent = made(kind, radius=0.0, warmup=20, **settings)
    for _ in range(20):
        duel = agent.ask(ACTIONS)
        agent.tell(duel, Outcome.FIRST if duel.first < duel.second else Outcome.SECOND)
    return agent


def interrupted(agent):
    """Let an agent that duels itself ask one real duel."""
    agent.self_duels = False
    assert not agent.ask(ACTIONS).is_self_duel
    agent.self_duels = True


def test_a_lock_in_is_reported_once_and_not_before_a_hundred_rounds(kind):
    agent = locked(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert all(agent.ask(ACTIONS).is_self_duel for _ in range(99))
    with pytest.warns(LockInWarning, match=rf"100 .*{kind.__name__}.*action 0") as said:
        duel = agent.ask(ACTIONS)
    assert len(said) == 1
    assert said[0].filename == __file__
    assert duel.is_self_duel
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert all(agent.ask(ACTIONS).is_self_duel for _ in range(300))


def test_a_lock_in_is_not_said_again_after_a_reload(tmp_path):
    agent = locked(RCDB)
    with pytest.warns(LockInWarning):
        agent.ask_many(ACTIONS, 100)
    agent.save(tmp_path / "agent.npz")
    again = Agent.load(tmp_path / "agent.npz")
    again.ask_many(ACTIONS, 150)
    interrupted(again)
    again.ask_many(ACTIONS, 150)


def test_a_real_duel_in_between_starts_the_count_again():
    agent = locked(MaxPairUCB)
    agent.ask_many(ACTIONS, 99)
    interrupted(agent)
    agent.ask_many(ACTIONS, 99)
    with pytest.warns(LockInWarning):
        agent.ask(ACTIONS)


def test_a_second_lock_in_is_not_said():
    agent = locked(MaxPairUCB)
    with pytest.warns(LockInWarning):
        agent.ask_many(ACTIONS, 100)
    interrupted(agent)
    agent.ask_many(ACTIONS, 150)


def test_self_duels_can_be_forbidden(kind):
    agent = locked(kind, self_duels=False)
    rng = np.random.default_rng(0)
    for _ in range(150):
        duel = agent.ask(ACTIONS)
        assert not duel.is_self_duel
        agent.tell(duel, answer(duel, rng.random()))


def test_an_agent_that_asks_people_never_warns_when_it_has_found_the_best():
    agent = RCDB(dimension=2, norm_bound=2.0, flip_budget=10, horizon=500, seed=0, self_duels=False)
    actions = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(500):
            duel = agent.ask(actions)
            agent.tell(duel, Outcome.FIRST if duel.first > duel.second else Outcome.SECOND)
    assert agent.recommend(actions) == 2
