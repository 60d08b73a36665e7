import itertools
import math

import numpy as np
import pytest

from fairduel import BadInputError
from fairduel.agents import MultiLevelOFUL, WeightedOFUL
from fairduel.core.selection import draw_level
from fairduel.simulation import Cell


def sphere(rng, count=8, dimension=3):
    rows = rng.standard_normal((count, dimension))
    return 0.999 * rows / np.linalg.norm(rows, axis=1, keepdims=True)


def made(kind, **settings):
    return kind(**{"dimension": 3, "norm_bound": 1.0, "noise": 0.1, "horizon": 400, "seed": 1} | settings)


def radius(t, corruption, *, d, noise, bound, ridge=1.0, failure=0.05):
    """β_t as printed, with C√d; the levels' own has L/δ for 1/δ."""
    first = 8 * math.sqrt(d * math.log(1 + t / ((noise + 1) ** 2 * ridge)) * math.log(4 * t**2 / failure))
    second = 4 * math.sqrt(d) * math.log(4 * t**2 / failure)
    return first + second + math.sqrt(ridge) * bound + corruption * math.sqrt(d)


class Slow:
    """Ridge regression with one weight, by solving the normal equations anew."""

    def __init__(self, dimension, weight):
        self.weight, self.xs, self.rewards = weight, np.empty((0, dimension)), np.empty(0)

    def add(self, x, reward):
        self.xs, self.rewards = np.vstack([self.xs, x]), np.append(self.rewards, reward)

    def bounds(self, actions, beta):
        gram = np.eye(actions.shape[1]) + self.weight * self.xs.T @ self.xs
        theta = np.linalg.solve(gram, self.weight * self.xs.T @ self.rewards)
        return actions @ theta + beta * np.sqrt([x @ np.linalg.solve(gram, x) for x in actions])


def test_the_known_form_is_optimism_with_a_longer_radius():
    rng, theta = np.random.default_rng(0), np.array([0.6, -0.5, 0.4])
    agent = made(WeightedOFUL, corruption_budget=7, scale=0.03)
    weight = 3 / 1.1**2  # 1/σ̄² with σ̄ = (R + 1)/√d
    slow = Slow(3, weight)
    for t in range(1, 151):
        actions = sphere(rng)
        beta = 0.03 * radius(t, 7, d=3, noise=0.1, bound=1.0)
        assert agent.current_radius == pytest.approx(beta)
        bounds = slow.bounds(actions, beta)
        pull = agent.ask(actions)
        assert pull.weight == pytest.approx(weight)
        assert bounds[pull.action] >= bounds.max() - 1e-9
        reward = float(actions[pull.action] @ theta + 0.1 * rng.standard_normal())
        agent.tell(pull, reward)
        slow.add(actions[pull.action], reward)


def test_loud_noise_sets_the_weight():
    assert made(WeightedOFUL, noise=3.0, corruption_budget=1)._reward_weight == pytest.approx(1 / 9)


def test_the_multi_level_form_takes_the_lesser_of_two_bounds(monkeypatch):
    rng, theta = np.random.default_rng(0), np.array([0.6, -0.5, 0.4])
    agent = made(MultiLevelOFUL, scale=0.03)
    weight, levels = 3 / 1.1**2, 10  # ⌈log₂ 800⌉
    turns = itertools.cycle(range(1, levels + 1))  # the highest, whose own bound is the lesser one, are seldom drawn
    monkeypatch.setattr("fairduel.agents.table1.weighted_oful.draw_level", lambda _rng, _levels: next(turns))
    everyone, own = Slow(3, weight), {level: Slow(3, weight) for level in range(1, levels + 1)}
    seen, lesser = set(), set()
    for t in range(1, 201):
        actions = sphere(rng)
        pull = agent.ask(actions)
        level = pull.level
        seen.add(level)
        shared = everyone.bounds(actions, 0.03 * radius(t, 2**level, d=3, noise=0.1, bound=1.0))
        small = 3 + math.log(2 * level**2 / 0.05)
        alone = own[level].bounds(actions, 0.03 * radius(t, small, d=3, noise=0.1, bound=1.0, failure=0.05 / levels))
        bounds = np.minimum(shared, alone)
        lesser.add(bool(shared[pull.action] < alone[pull.action]))
        assert bounds[pull.action] >= bounds.max() - 1e-9
        reward = float(actions[pull.action] @ theta + 0.1 * rng.standard_normal())
        agent.tell(pull, reward)
        everyone.add(actions[pull.action], reward)
        own[level].add(actions[pull.action], reward)
    assert seen == set(own)
    for level, regression in enumerate(agent._levels, start=1):
        gram = np.eye(3) + weight * own[level].xs.T @ own[level].xs
        np.testing.assert_allclose(regression.information.matrix, gram, rtol=1e-9, atol=1e-9)
    assert lesser == {True, False}


def test_level_l_is_drawn_with_probability_two_to_the_minus_l():
    rng = np.random.default_rng(0)
    levels = np.array([draw_level(rng, 3) for _ in range(16_000)])
    shares = np.array([1 / 2 + 1 / 8, 1 / 4, 1 / 8])  # the first has the rest
    counts = np.bincount(levels, minlength=4)[1:]
    assert len(counts) == 3
    assert (np.abs(counts / 16_000 - shares) < 4 * np.sqrt(shares * (1 - shares) / 16_000)).all()


def regret(agent, budget, attack, **settings):
    cell = Cell(agent, attack, budget, 1500, "linear", settings, world_settings={"dimension": 3, "arms": 8})
    return np.mean([cell.run(seed).trace.regret.sum() for seed in range(3)])


@pytest.mark.parametrize(("agent", "at_most"), [("weighted-oful", 0.06), ("multilevel-oful", 0.12)])
def test_regret_is_far_below_chance(agent, at_most):
    assert regret(agent, 0, "none") < at_most * 1500  # chance costs about 0.8 a round


def test_regret_rises_with_corruption():
    measured = [regret("weighted-oful", budget, "swap") for budget in (0, 60, 120)]
    assert measured[0] < measured[1] < measured[2] < 0.4 * 1500


def test_theory_radii_explore_for_the_whole_horizon():
    """As published, regret is that of chance, or nearly."""
    assert regret("weighted-oful", 0, "none", scale="theory") > 5 * regret("weighted-oful", 0, "none")


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (WeightedOFUL, {"corruption_budget": math.inf}),
        (WeightedOFUL, {"horizon": None}),
        (MultiLevelOFUL, {"horizon": None}),
        (MultiLevelOFUL, {"dimension": 0}),
        (MultiLevelOFUL, {"norm_bound": -1.0}),
    ],
)
def test_bad_settings_are_refused(kind, settings):
    with pytest.raises(BadInputError):
        made(kind, **settings)
