"""Outcomes that come late, twice, never, or for a duel of somebody else."""

import numpy as np
import pytest

from fairduel import (
    RCDB,
    RCDBS,
    BadInputError,
    Duel,
    MaxInP,
    MaxPairUCB,
    Outcome,
    UnknownDuelError,
)
from helpers.agents import ACTIONS, answer, made, played, same, sphere


def test_late_feedback_in_any_order_gives_the_same_estimate(kind):
    in_order, shuffled = made(kind, warmup=30), made(kind, warmup=30)
    rng = np.random.default_rng(3)
    tables = [sphere(rng) for _ in range(60)]
    duels = [in_order.ask(table) for table in tables]
    assert [shuffled.ask(table) for table in tables] == duels
    outcomes = [answer(duel, rng.random()) for duel in duels]
    for duel, outcome in zip(duels, outcomes, strict=True):
        in_order.tell(duel, outcome)
        assert np.isfinite(in_order.estimate).all()
    for index in rng.permutation(60):
        shuffled.tell(duels[index], outcomes[index])
    assert np.linalg.norm(in_order.estimate) > 0.1
    np.testing.assert_allclose(shuffled.estimate, in_order.estimate, atol=1e-6)


def test_telling_twice_is_refused(kind):
    agent = made(kind)
    duel = agent.ask(ACTIONS)
    agent.tell(duel, Outcome.FIRST)
    before = agent.state()
    for act in (lambda: agent.tell(duel, Outcome.FIRST), lambda: agent.cancel(duel)):
        with pytest.raises(UnknownDuelError, match=r"duel 0 \(. against .\) was already told or cancelled"):
            act()
        assert same(agent.state(), before)


def test_a_cancelled_duel_cannot_be_told_or_cancelled_again(kind):
    agent = made(kind)
    duel = agent.ask(ACTIONS)
    agent.cancel(duel)
    before = agent.state()
    for act in (lambda: agent.tell(duel, Outcome.FIRST), lambda: agent.cancel(duel)):
        with pytest.raises(UnknownDuelError, match=r"duel 0 \(. against .\) was already told or cancelled"):
            act()
        assert same(agent.state(), before)


@pytest.mark.parametrize("number", [1, 99, -1])
def test_a_duel_that_was_never_asked_is_refused(kind, number):
    agent = made(kind)
    agent.ask(ACTIONS)
    before = agent.state()
    invented = Duel(number, 2, 1, ACTIONS[2] - ACTIONS[1], weight=1.0, width=1.0, slope=1.0)
    with pytest.raises(UnknownDuelError, match=rf"duel {number} \(2 against 1\) was never asked by this agent"):
        agent.tell(invented, Outcome.FIRST)
    assert same(agent.state(), before)


def test_a_duel_of_another_agent_is_refused(kind):
    agent, stranger = made(kind), made(kind, seed=8)
    rng = np.random.default_rng(0)
    mine, foreign = agent.ask(sphere(rng)), stranger.ask(sphere(rng))
    with pytest.raises(UnknownDuelError, match="never asked by this agent"):
        agent.tell(foreign, Outcome.FIRST)
    assert agent.pending == (mine,)


def test_cancel_takes_the_duel_out_of_the_information(kind):
    agent = made(kind)
    played(agent, 20)
    duels = agent.ask_many(ACTIONS, 3)
    reference = made(kind)
    played(reference, 20)
    for duel in (duels[1], duels[0], duels[2]):
        agent.cancel(duel)
    np.testing.assert_allclose(agent.information.matrix, reference.information.matrix, atol=1e-10)
    np.testing.assert_allclose(agent.information.inverse, reference.information.inverse, atol=1e-10)
    determinant = reference.information.log_determinant
    assert agent.information.log_determinant == pytest.approx(determinant, abs=1e-10)
    np.testing.assert_array_equal(agent.estimate, reference.estimate)
    assert agent.asked == 23
    assert agent.pending == ()


def test_ask_many_is_ask_many_times(kind):
    together, one_by_one = made(kind), made(kind)
    played(together, 10)
    played(one_by_one, 10)
    duels = together.ask_many(ACTIONS, 5)
    assert duels == [one_by_one.ask(ACTIONS) for _ in range(5)]
    assert [duel.number for duel in duels] == list(range(10, 15))
    assert together.pending == tuple(duels)


@pytest.mark.parametrize("kind", [RCDB, RCDBS, MaxPairUCB, MaxInP])
def test_ask_many_does_not_ask_the_same_again_while_it_waits(kind):
    square = np.array([[-0.7, -0.7], [-0.7, 0.7], [0.7, -0.7], [0.7, 0.7]])
    one, two = kind(dimension=2, norm_bound=2.0, horizon=400).ask_many(square, 2)
    assert {frozenset((one.first, one.second)), frozenset((two.first, two.second))} == {
        frozenset((0, 3)),
        frozenset((1, 2)),
    }


@pytest.mark.parametrize("count", [0, -1])
def test_ask_many_needs_a_count(kind, count):
    with pytest.raises(BadInputError, match="count must be a whole number ≥ 1"):
        made(kind).ask_many(ACTIONS, count)
