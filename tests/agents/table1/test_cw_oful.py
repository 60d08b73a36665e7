import math

import numpy as np
import pytest

from fairduel import BadInputError
from fairduel.agents import CWOFUL
from fairduel.agents.table1.shared import LeastSquares
from fairduel.simulation import Cell


def sphere(rng, count=8, dimension=3):
    rows = rng.standard_normal((count, dimension))
    return 0.999 * rows / np.linalg.norm(rows, axis=1, keepdims=True)


def made(**settings):
    return CWOFUL(**{"dimension": 3, "norm_bound": 1.0, "noise": 0.1, "horizon": 400, "seed": 1} | settings)


def test_without_corruption_it_is_plain_oful():
    """α = ∞: the same actions as ridge regression with an upper bound, written out."""
    rng, theta = np.random.default_rng(0), np.array([0.6, -0.5, 0.4])
    agent = made(corruption_budget=0, scale="theory")
    ridge = 0.1**2  # R²/B²
    beta = 0.1 * math.sqrt(3 * math.log((1 + 400 / ridge) / 0.05)) + 0.1
    history = np.empty((0, 3)), np.empty(0)
    for _ in range(300):
        actions = sphere(rng)
        gram = ridge * np.eye(3) + history[0].T @ history[0]
        estimate = np.linalg.solve(gram, history[0].T @ history[1])
        bounds = [x @ estimate + beta * math.sqrt(x @ np.linalg.solve(gram, x)) for x in actions]
        pull = agent.ask(actions)
        assert bounds[pull.action] >= max(bounds) - 1e-9
        assert pull.weight == 1.0
        reward = actions[pull.action] @ theta + 0.1 * rng.standard_normal()
        agent.tell(pull, reward)
        history = np.vstack([history[0], actions[pull.action]]), np.append(history[1], reward)
    np.testing.assert_allclose(made(trust=math.inf, corruption_budget=5).settings["trust"], math.inf)


def test_weights_and_estimate_are_those_of_weighted_least_squares():
    rng, theta = np.random.default_rng(0), np.array([0.6, -0.5, 0.4])
    agent = made(corruption_budget=20, ridge=1.0)
    alpha = (0.1 * math.sqrt(3) + 1.0) / 20
    gram, moments, weights = np.eye(3), np.zeros(3), set()
    for _ in range(200):
        actions = sphere(rng)
        pull = agent.ask(actions)
        x = actions[pull.action]
        width = math.sqrt(x @ np.linalg.solve(gram, x))
        weight = min(1.0, alpha / width)
        assert pull.width == pytest.approx(width, rel=1e-9)
        assert pull.weight == pytest.approx(weight, rel=1e-9)
        weights.add(weight)
        reward = float(x @ theta + 0.1 * rng.standard_normal())
        agent.tell(pull, reward)
        gram += weight * np.outer(x, x)
        moments += weight * reward * x
        np.testing.assert_allclose(agent.estimate, np.linalg.solve(gram, moments), atol=1e-9)
    assert min(weights) < 0.1
    np.testing.assert_allclose(agent.information.matrix, gram, rtol=1e-9, atol=1e-12)


def test_least_squares_solves_the_normal_equations():
    rng = np.random.default_rng(5)
    regression = LeastSquares(4, ridge=0.3)
    xs, rewards, weights = sphere(rng, 3000, 4), rng.standard_normal(3000), rng.uniform(0.01, 3, 3000)
    for x, reward, weight in zip(xs, rewards, weights, strict=True):
        regression.add(x, reward, weight)
    gram = 0.3 * np.eye(4) + (xs.T * weights) @ xs
    np.testing.assert_allclose(regression.estimate, np.linalg.solve(gram, xs.T @ (weights * rewards)), rtol=1e-9)
    bounds = xs[:5] @ regression.estimate + 2 * np.sqrt([x @ np.linalg.solve(gram, x) for x in xs[:5]])
    np.testing.assert_allclose(regression.upper_bounds(xs[:5], 2.0), bounds, rtol=1e-9)


def test_the_theory_radius_and_the_practical_quarter_of_it():
    agent = CWOFUL(dimension=5, norm_bound=2.0, noise=0.2, corruption_budget=50, horizon=1000, ridge=0.5)
    root = math.sqrt(0.5) * 2.0
    alpha = (0.2 * math.sqrt(5) + root) / 50
    beta = 0.2 * math.sqrt(5 * math.log((1 + 1000 / 0.5) / 0.05)) + root + alpha * 50
    assert agent.settings["trust"] == pytest.approx(alpha)
    assert agent.current_radius == pytest.approx(beta / 4)


@pytest.mark.parametrize("scale", ["practical", "theory"])
def test_the_ridge_is_the_theorems(scale):
    """λ = R²/S² with S our B, so that √λB = R, and α = R(√d + 1)/C."""
    agent = CWOFUL(dimension=4, norm_bound=2.0, noise=0.5, corruption_budget=10, horizon=1000, scale=scale)
    assert agent.settings["ridge"] == 1 / 16
    assert agent.settings["trust"] == pytest.approx(0.5 * 3 / 10)
    np.testing.assert_allclose(agent.information.matrix, np.eye(4) / 16)


def test_an_unknown_budget_is_taken_as_the_root_of_the_horizon():
    assert made().settings["corruption_budget"] == 20.0
    with pytest.raises(BadInputError, match="set corruption_budget, or set horizon"):
        made(horizon=None)


def test_a_late_reward_keeps_the_weight_of_its_time():
    rng = np.random.default_rng(0)
    agent, actions = made(corruption_budget=20), sphere(rng)
    late = agent.ask(actions)
    for _ in range(50):
        agent.tell(agent.ask(actions), 0.1)
    before = agent.information.matrix.copy()
    agent.tell(late, 0.3)
    grown = late.weight * np.outer(late.features, late.features)
    np.testing.assert_allclose(agent.information.matrix, before + grown, atol=1e-12)


def regret(budget, attack, **settings):
    cell = Cell("cw-oful", attack, budget, 1500, "linear", settings, world_settings={"dimension": 3, "arms": 8})
    return np.mean([cell.run(seed).trace.regret.sum() for seed in range(3)])


def test_regret_is_far_below_chance():
    assert regret(0, "none") < 0.02 * 1500  # chance costs about 0.8 a round


@pytest.mark.parametrize("attack", ["swap", "bury"])
def test_regret_rises_about_linearly_with_corruption(attack):
    budgets = np.array([0, 30, 60, 90])
    measured = np.array([regret(int(budget), attack) for budget in budgets])
    slope, start = np.polyfit(budgets, measured, 1)
    residual = measured - (slope * budgets + start)
    assert 1 - residual.var() / measured.var() > 0.9
    assert 0.5 < slope < 6.0  # d·C = 3C for the order of it


def test_weights_make_it_robust():
    """Under an adversary who buries the best, full trust is caught more often than not."""
    robust, trusting = regret(40, "bury"), regret(40, "bury", trust=math.inf)
    assert robust < 0.6 * trusting


@pytest.mark.parametrize(
    "settings", [{"trust": 0.0}, {"trust": math.nan}, {"corruption_budget": -1}, {"ridge": 0}, {"noise": None}]
)
def test_bad_settings_are_refused(settings):
    with pytest.raises(BadInputError):
        made(**settings)


def test_actions_must_be_listed():
    with pytest.raises(BadInputError, match="needs the actions as a list"):
        made().ask()
    with pytest.raises(BadInputError, match=r"\(K, 3\)"):
        made().ask(np.eye(2))
