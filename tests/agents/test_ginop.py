import math

import numpy as np
import pytest

from fairduel import LOGISTIC, PROBIT, Outcome
from fairduel.agents import GINOP
from helpers.agents import ACTIONS, TRUTH, made, pair_scores, played, sphere


def slow_hessian(phis, theta, link=LOGISTIC, ridge=0.25):
    hessian = ridge * np.eye(3)
    for phi in phis:
        hessian += float(link.slope(phi @ theta)) * np.outer(phi, phi)
    return hessian


@pytest.mark.parametrize("link", [LOGISTIC, PROBIT], ids=str)
@pytest.mark.parametrize("radius", [0.4, "practical"])
def test_sixty_rounds_under_flips_are_the_symmetric_rule_in_the_norm_of_the_hessian(radius, link, slow_estimate):
    agent = GINOP(dimension=3, norm_bound=2.0, horizon=60, seed=1, radius=radius, link=link)
    b = 0.4 if radius == 0.4 else math.sqrt(3)
    rng = np.random.default_rng(2)
    phis, outcomes, slopes = np.empty((0, 3)), [], []
    for t in range(60):
        theta = slow_estimate(phis, np.ones(t), outcomes, 0.25, link)
        np.testing.assert_allclose(agent.estimate, theta, atol=1e-6)
        hessian = slow_hessian(phis, agent.estimate, link)
        np.testing.assert_allclose(agent.steering.matrix, hessian, rtol=1e-9, atol=1e-12)
        inverse = np.linalg.inv(hessian)
        actions = sphere(rng)
        score = pair_scores(actions, agent.estimate, inverse, b)

        duel = agent.ask(actions)

        assert score[duel.first, duel.second] >= max(score.values()) - 1e-9
        phi = actions[duel.first] - actions[duel.second]
        assert duel.weight == 1.0
        assert duel.width == pytest.approx(math.sqrt(phi @ inverse @ phi), abs=1e-9)
        assert duel.slope == pytest.approx(float(link.slope(phi @ agent.estimate)), rel=1e-12)
        first_won = (rng.random() < link.probability(phi @ TRUTH)) != (t < 6)
        agent.tell(duel, Outcome.FIRST if first_won else Outcome.SECOND)
        phis, outcomes, slopes = np.vstack([phis, phi]), [*outcomes, float(first_won)], [*slopes, duel.slope]
    # Slopes of the past are those of today's estimate, not of when they were asked.
    assert np.abs(link.slope(phis @ agent.estimate) - slopes).max() > 0.05


def test_pending_duels_count_by_their_slope_when_asked_until_told_or_cancelled():
    agent = made(GINOP, self_duels=False)
    told = [duel.difference for duel, _ in played(agent, 20)]
    duels = agent.ask_many(ACTIONS, 4)
    agent.tell(duels[1], Outcome.FIRST)
    agent.cancel(duels[2])
    told.append(duels[1].difference)

    def pending(*which):
        return sum(duels[i].slope * np.outer(duels[i].difference, duels[i].difference) for i in which)

    found = slow_hessian(told, agent.estimate) + pending(0, 3)
    np.testing.assert_allclose(agent.steering.matrix, found, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(agent.steering.inverse @ found, np.eye(3), atol=1e-9)
    agent.cancel(duels[0])
    np.testing.assert_allclose(agent.steering.matrix, found - pending(0), rtol=1e-9, atol=1e-12)
    agent.tell(duels[3], Outcome.SECOND)
    told.append(duels[3].difference)
    np.testing.assert_allclose(agent.steering.matrix, slow_hessian(told, agent.estimate), rtol=1e-9, atol=1e-12)


def test_it_asks_something_else_while_it_waits():
    square = np.array([[-0.7, -0.7], [-0.7, 0.7], [0.7, -0.7], [0.7, 0.7]])
    one, two = GINOP(dimension=2, norm_bound=2.0).ask_many(square, 2)
    assert {one.first, one.second} != {two.first, two.second}


def test_the_radii_are_root_d_and_lemma_ces_without_flips():
    settings = {"dimension": 5, "norm_bound": 1.5, "horizon": 2000, "failure_probability": 0.1}
    assert GINOP(**settings).current_radius == pytest.approx(math.sqrt(5))
    lam = 1 / 1.5**2
    growth = math.log((5 * lam + 2 * 700) / (5 * lam * 0.1))
    beta = (1 + 4 * 1.5) * (math.sqrt(lam) * 1.5 + math.sqrt(lam) / 2 + 2 * 5 / math.sqrt(lam) * growth)
    assert GINOP(**settings, radius="theory").radius_at(700) == pytest.approx(beta, rel=1e-12)


@pytest.mark.parametrize("dimension", [3, 70])
def test_a_fixed_set_is_asked_as_if_it_were_new_each_time(dimension):
    """Also where updates of a matrix are deferred."""
    rng = np.random.default_rng(0)
    actions = sphere(rng, count=9, dimension=dimension)
    fixed, renewed = (GINOP(dimension=dimension, norm_bound=2.0, horizon=60, seed=0, radius=0.5) for _ in range(2))
    for _ in range(30):
        batch = fixed.ask_many(actions, 2)
        others = []
        for _ in batch:
            renewed.belief.steering.set_actions(None)
            others.append(renewed.ask(actions))
        for duel, other in zip(batch, others, strict=True):
            assert (duel.first, duel.second) == (other.first, other.second)
            assert duel.width == pytest.approx(other.width, rel=1e-9, abs=1e-12)
            outcome = Outcome.FIRST if duel.first < duel.second else Outcome.SECOND
            fixed.tell(duel, outcome)
            renewed.tell(other, outcome)
