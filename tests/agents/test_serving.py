"""Features seen after serving: as if the duel had been asked with them."""

import numpy as np
import pytest

from fairduel import BadInputError, Outcome, UnknownDuelError
from fairduel.agents import AGENTS, RCDP, Agent
from helpers.agents import FIVE, answer, made, played, sphere


@pytest.fixture(params=[*FIVE, "rcdp"])
def kind(request):
    return AGENTS[request.param]


def twins(kind, **settings):
    agents = made(kind, warmup=500, **settings), made(kind, warmup=500, **settings)  # random pairs: both ask the same
    for agent in agents:
        played(agent, 15)
    return agents


@pytest.mark.parametrize("estimator", ["exact", "one-pass"])
def test_a_served_duel_is_one_that_was_asked_with_these_features(kind, estimator):
    served, asked = twins(kind, estimator=estimator)
    rng = np.random.default_rng(5)
    for _ in range(25):
        true, guessed = sphere(rng), sphere(rng)
        expected = asked.ask(true)
        duel = served.ask(guessed)
        assert (duel.first, duel.second) == (expected.first, expected.second)
        duel = served.serve(duel, true[[duel.first, duel.second]])
        for name in ("difference", "weight", "width", "slope"):
            np.testing.assert_allclose(getattr(duel, name), getattr(expected, name), rtol=1e-9, err_msg=name)
        outcome = answer(expected, rng.random())
        served.tell(duel, outcome)
        asked.tell(expected, outcome)
    np.testing.assert_allclose(served.information.matrix, asked.information.matrix, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(served.information.inverse, asked.information.inverse, rtol=1e-8, atol=1e-12)
    assert served.information.log_determinant == pytest.approx(asked.information.log_determinant)
    np.testing.assert_allclose(served.estimate, asked.estimate, atol=1e-8)


def test_late_serving_moves_only_its_own_duel(kind):
    agent = made(kind)
    played(agent, 10)
    rng = np.random.default_rng(1)
    duels = [agent.ask(sphere(rng)) for _ in range(4)]
    features = sphere(rng, count=2)
    before = agent.information.matrix.copy()
    new = agent.serve(duels[1], features) if not duels[1].is_self_duel else duels[1]
    slope = agent._plan.design_slope
    gained = [slope * duel.weight * np.outer(duel.difference, duel.difference) for duel in (new, duels[1])]
    np.testing.assert_allclose(agent.information.matrix, before + gained[0] - gained[1], atol=1e-12)
    assert {duel.number for duel in agent.pending} == {duel.number for duel in duels}


def test_a_served_duel_is_told_cancelled_and_saved_by_what_serve_returned(tmp_path):
    agent = made(RCDP, self_duels=False)
    played(agent, 10)
    before = agent.information.matrix.copy()
    old = agent.ask(sphere(np.random.default_rng(2)))
    new = agent.serve(old, [[0.5, 0.0, 0.0], [0.0, 0.5, 0.0]])
    with pytest.raises(UnknownDuelError):
        agent.tell(old, Outcome.FIRST)
    agent.save(tmp_path / "agent.npz")
    again = Agent.load(tmp_path / "agent.npz")
    agent.tell(new, Outcome.FIRST)
    again.tell(new, Outcome.FIRST)
    np.testing.assert_array_equal(agent.estimate, again.estimate)
    other = agent.serve(agent.ask(sphere(np.random.default_rng(3))), [[0.5, 0.0, 0.0], [0.0, 0.5, 0.0]])
    agent.cancel(other)
    gained = agent._plan.design_slope * new.weight * np.outer(new.difference, new.difference)
    np.testing.assert_allclose(agent.information.matrix, before + gained, atol=1e-10)


def test_wrong_features_change_nothing(kind):
    agent = made(kind, self_duels=False)
    played(agent, 5)
    duel = agent.ask(sphere(np.random.default_rng(2)))
    before = agent.information.matrix.copy()
    for features, words in [
        (np.zeros((3, 3)), r"shape \(2, 3\)"),
        (np.zeros((2, 4)), "shape"),
        (np.full((2, 3), 2.0), "norm"),
        ("x", "numbers"),
    ]:
        with pytest.raises(BadInputError, match=words):
            agent.serve(duel, features)
    np.testing.assert_array_equal(agent.information.matrix, before)
    agent.tell(duel, Outcome.FIRST)
    with pytest.raises(UnknownDuelError, match="already told"):
        agent.serve(duel, np.zeros((2, 3)))


def test_a_self_duel_keeps_a_difference_of_zero():
    agent = made(RCDP, radius=0.0)
    duel = agent.ask(np.array([[0.5, 0.0, 0.0], [0.5, 0.0, 0.0]]))
    while not duel.is_self_duel:
        agent.tell(duel, Outcome.TIE)
        duel = agent.ask(np.array([[0.5, 0.0, 0.0], [0.5, 0.0, 0.0]]))
    with pytest.raises(BadInputError, match="its two features differ"):
        agent.serve(duel, [[0.5, 0.0, 0.0], [0.0, 0.5, 0.0]])
    assert agent.serve(duel, np.full((2, 3), 0.5)).weight == 1.0
