import math

import numpy as np
import pytest
from scipy.optimize import minimize

from fairduel import LOGISTIC, PROBIT, BadInputError, Outcome
from fairduel.agents import HCW
from fairduel.core.estimators import STEP
from helpers.agents import ACTIONS, TRUTH, made, pair_scores, played, sphere

BOUND = 0.8  # short enough that the estimate is projected now and then


def projected(theta, metric):
    """The nearest point of the ball in the norm of ``metric``, by a general optimiser."""
    if np.linalg.norm(theta) <= BOUND:
        return theta, False
    found = minimize(
        lambda point: (point - theta) @ metric @ (point - theta),
        theta * BOUND / np.linalg.norm(theta),
        jac=lambda point: 2 * metric @ (point - theta),
        constraints={"type": "ineq", "fun": lambda p: BOUND**2 - p @ p, "jac": lambda p: -2 * p},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    )
    return found.x, True


@pytest.mark.parametrize("link", [LOGISTIC, PROBIT], ids=str)
def test_sixty_rounds_under_flips_are_the_algorithm(link):
    agent = HCW(dimension=3, norm_bound=BOUND, flip_budget=4, horizon=60, seed=1, link=link)
    alpha, beta = math.sqrt(3) / (4 * math.sqrt(float(link.slope(0.0)))), math.sqrt(3) / 2
    theta, hessian = np.zeros(3), np.eye(3) / BOUND**2
    rng = np.random.default_rng(2)
    projections = light = 0
    for t in range(60):
        np.testing.assert_allclose(agent.estimate, theta, atol=1e-6)
        theta = agent.estimate  # so that the optimiser's errors do not add up
        np.testing.assert_allclose(agent.steering.matrix, hessian, rtol=1e-5, atol=1e-6)
        hessian = agent.steering.matrix.copy()
        inverse = np.linalg.inv(hessian)
        actions = sphere(rng)
        score = pair_scores(actions, theta, inverse, beta)

        duel = agent.ask(actions)

        assert score[duel.first, duel.second] >= max(score.values()) - 1e-9
        phi = actions[duel.first] - actions[duel.second]
        width = math.sqrt(phi @ inverse @ phi)
        weight = min(1.0, alpha / width) if width > 0 else 1.0
        assert duel.width == pytest.approx(width, abs=1e-9)
        assert duel.weight == pytest.approx(weight, rel=1e-9)
        first_won = (rng.random() < link.probability(phi @ TRUTH)) != (t < 4)
        agent.tell(duel, Outcome.FIRST if first_won else Outcome.SECOND)
        gradient = weight * (float(link.probability(phi @ theta)) - first_won) * phi
        tilted = hessian + STEP * weight * float(link.slope(phi @ theta)) * np.outer(phi, phi)
        theta, is_projected = projected(theta - STEP * np.linalg.solve(tilted, gradient), tilted)
        hessian += weight * float(link.slope(phi @ theta)) * np.outer(phi, phi)
        projections += is_projected
        light += weight < 1.0
    assert projections > 3
    assert light > 10


def test_trust_and_radius_follow_the_flip_budget():
    def agent(**settings):
        return HCW(dimension=5, norm_bound=2.0, horizon=2000, **settings)

    assert agent(flip_budget=10).settings["trust"] == pytest.approx(2 * math.sqrt(5) / 10)
    assert agent().settings["flip_budget"] == 45
    assert agent(flip_budget=10).current_radius == pytest.approx(math.sqrt(5) / 2)
    assert agent(flip_budget=0).current_radius == pytest.approx(math.sqrt(5 * math.log(2000)) / 2)
    assert agent(flip_budget=0).ask(np.eye(5)).weight == 1.0
    with pytest.raises(BadInputError, match="set flip_budget, or set horizon"):
        HCW(dimension=5, norm_bound=2.0)


def test_there_is_no_theory_radius():
    with pytest.raises(BadInputError, match="unknown radius 'theory'"):
        HCW(dimension=5, norm_bound=2.0, flip_budget=1, radius="theory")


def test_the_weight_bounds_the_effect_of_one_duel():
    """‖H⁻¹wφ‖_H ≤ α: C flips move a first-order estimate by at most αC in the norm of H."""
    agent = made(HCW, flip_budget=20)
    for duel, _ in played(agent, 100):
        assert duel.weight * duel.width <= agent.settings["trust"] * (1 + 1e-12)


def test_pending_duels_count_by_their_slope_when_asked():
    agent = made(HCW, flip_budget=5, self_duels=False)
    played(agent, 20)
    before = agent.steering.matrix.copy()
    duels = agent.ask_many(ACTIONS, 3)
    for duel in duels:
        before += duel.weight * duel.slope * np.outer(duel.difference, duel.difference)
    np.testing.assert_allclose(agent.steering.matrix, before, rtol=1e-9)
    agent.cancel(duels[1])
    agent.tell(duels[0], Outcome.FIRST)
    phi, last = duels[0].difference, duels[2]
    expected = agent.state()["belief"]["estimator"]["curvature"]["matrix"].copy()
    expected += last.weight * last.slope * np.outer(last.difference, last.difference)
    np.testing.assert_allclose(agent.steering.matrix, expected, rtol=1e-9)
    assert agent.steering.width(phi) < duels[0].width


def test_it_keeps_no_outcomes():
    agent = made(HCW, flip_budget=5)
    played(agent, 50)
    assert agent.state()["belief"]["estimator"]["told"]["weights"].size == 0
    assert np.linalg.norm(agent.estimate) <= 2.0 * (1 + 1e-9)
