import math

import numpy as np
import pytest

from fairduel import LOGISTIC, PROBIT, BadInputError, Outcome
from fairduel.action_sets import hypercube
from fairduel.agents import VACDB
from fairduel.simulation import Cell
from helpers.agents import sphere

TRUTH = np.array([1.2, -0.8, 0.5])


def made(**settings):
    return VACDB(**{"dimension": 3, "norm_bound": 2.0, "horizon": 400, "seed": 2} | settings)


class Books:
    """VACDB's levels once more, from the whole history, as notes A4 prints them."""

    def __init__(self, levels, kappa, slow_estimate):
        self.levels, self.kappa, self.slow_estimate = levels, kappa, slow_estimate
        self.history = {level: ([], [], []) for level in range(1, levels + 1)}  # φ, w, o

    def sigma(self, level):
        phis, weights, _ = self.history[level]
        return 4.0**-level * np.eye(3) + sum((w**2 * np.outer(p, p) for p, w in zip(phis, weights, strict=True)))

    def theta(self, level):
        phis, weights, outcomes = self.history[level]
        if not phis:
            return np.zeros(3)
        return self.slow_estimate(phis, np.square(weights), outcomes, 4.0**-level * self.kappa, LOGISTIC)

    def stop(self, actions, accuracy, beta):
        """The level at which the loop stops, the actions left there, and whether nothing is left to learn."""
        left = list(range(len(actions)))
        for level in range(1, self.levels + 1):
            inverse = np.linalg.inv(self.sigma(level))
            widest = max(width(actions[i] - actions[j], inverse) for i in left for j in left)
            if widest <= accuracy:
                return level, left, True
            if widest > 2.0**-level:
                return level, left, False
            rewards = actions @ self.theta(level)
            best = max(rewards[i] for i in left)
            left = [i for i in left if rewards[i] >= best - 2.0**-level * beta]
        raise AssertionError


def width(phi, inverse):
    return math.sqrt(max(phi @ inverse @ phi, 0.0))


@pytest.mark.parametrize(
    ("accuracy", "radius", "ties"), [(0.25, 0.7, 0.0), (2.0**-4, "practical", 0.0), (0.2, 0.0, 0.0), (0.25, 0.7, 0.4)]
)
def test_levels_weights_and_choices_are_those_of_the_pseudocode(accuracy, radius, ties, slow_estimate):
    agent = made(accuracy=accuracy, radius=radius)
    books = Books(math.ceil(math.log2(1 / accuracy)), agent.settings["kappa"], slow_estimate)
    assert agent.levels == books.levels
    beta = math.sqrt(3 * math.log(400)) / 4 if radius == "practical" else radius
    rng, seen = np.random.default_rng(3), set()
    actions = sphere(rng, 5)
    for _ in range(120):
        level, left, is_sure = books.stop(actions, accuracy, beta)
        theta, inverse = books.theta(level), np.linalg.inv(books.sigma(level))
        duel = agent.ask(actions)
        phi = actions[duel.first] - actions[duel.second]
        assert duel.width == pytest.approx(width(phi, inverse), abs=1e-9)
        assert {duel.first, duel.second} <= set(left)
        if is_sure:
            score = {
                (i, j): (actions[i] + actions[j]) @ theta + beta * width(actions[i] - actions[j], inverse)
                for i in left
                for j in left
            }
            assert score[duel.first, duel.second] >= max(score.values()) - 1e-6
            assert (duel.level, duel.weight) == (0, 1.0)
        else:
            assert duel.level == level
            assert duel.width > 2.0**-level
            assert duel.weight * duel.width == pytest.approx(2.0**-level, rel=1e-12)
        share = float(rng.random() < LOGISTIC.probability(phi @ TRUTH))
        if ties and rng.random() < ties:
            share = 0.5
        agent.tell(duel, {1.0: Outcome.FIRST, 0.5: Outcome.TIE, 0.0: Outcome.SECOND}[share])
        if not is_sure:
            for column, value in zip(books.history[level], (phi, duel.weight, share), strict=True):
                column.append(value)
        seen.add(duel.level)
    for level in range(1, books.levels + 1):
        np.testing.assert_allclose(agent._levels[level - 1].theta, books.theta(level), atol=1e-5)
        np.testing.assert_allclose(agent._levels[level - 1].information.matrix, books.sigma(level), atol=1e-9)
    assert len(seen) > 1


@pytest.mark.parametrize("link", [LOGISTIC, PROBIT], ids=str)
def test_each_estimate_solves_its_weighted_equation(link, score_equation):
    agent = made(link=link, norm_bound=1.0, accuracy=2.0**-4)
    history = {level: [] for level in range(5)}
    rng = np.random.default_rng(0)
    for _ in range(200):
        duel = agent.ask(sphere(rng, 7))
        won = rng.random() < link.probability(duel.difference @ TRUTH)
        agent.tell(duel, Outcome.FIRST if won else Outcome.SECOND)
        history[duel.level].append((duel.difference, duel.weight, float(won)))
    kappa = float(link.slope(2.0))
    for level in range(1, 5):
        if history[level]:
            phis, weights, outcomes = (np.array(column) for column in zip(*history[level], strict=True))
            ridge = 4.0**-level * kappa
            residual = score_equation(agent._levels[level - 1].theta, phis, weights**2, outcomes, ridge, link)
            assert np.abs(residual).max() <= 1e-8 * (1 + np.sum(weights**2))


@pytest.mark.parametrize("ties", [0.0, 0.4])
def test_the_theory_radius_is_the_printed_one(ties):
    agent = made(radius="theory", horizon=100, failure_probability=0.1, norm_bound=0.1, accuracy=2.0**-17)
    rng = np.random.default_rng(1)
    history = {level: [] for level in range(18)}
    for t in range(150):
        short = 0.01 if t % 2 else 5e-6  # so short that the coarse levels know them
        duel = agent.ask(short * sphere(rng, 7))
        share = float(rng.random() < 0.5)
        if ties and rng.random() < ties:
            share = 0.5
        agent.tell(duel, {1.0: Outcome.FIRST, 0.5: Outcome.TIE, 0.0: Outcome.SECOND}[share])
        history[duel.level].append((duel, share))
    kappa, t, levels = agent.settings["kappa"], 151, 17
    log, next_log = math.log(4 * t**2 * levels / 0.1), math.log(4 * (t + 1) ** 2 * levels / 0.1)
    used = [level for level in range(1, 18) if history[level]]
    kinds = set()
    for level in used:
        by_variance = 2**level >= 64 * 0.25 / kappa * math.sqrt(next_log)
        kinds.add(by_variance)
        variance = len(history[level])
        if by_variance:
            theta = agent._levels[level - 1].theta
            chances = [float(LOGISTIC.probability(duel.difference @ theta)) for duel, _ in history[level]]
            pairs = zip(history[level], chances, strict=True)
            variance = sum(duel.weight**2 * (share - p) ** 2 for (duel, share), p in pairs)
        beta = 16 * 2.0**-level / kappa * math.sqrt((8 * variance + 18 * next_log) * log)
        beta += 6 * 2.0**-level / kappa * log + 2.0 ** (1 - level) * 0.1  # B, of the ridge
        assert agent.radius_at(level) == pytest.approx(beta, rel=1e-9)
    assert kinds == {True, False}


def test_theory_has_enough_levels_for_the_last_to_be_finer_than_the_horizon():
    agent = made(radius="theory", horizon=2000)
    assert agent.settings["accuracy"] == 2000**-1.5
    assert agent.levels == 17
    assert made().levels == 5
    with pytest.raises(BadInputError, match="horizon"):
        made(radius="theory", horizon=None)


def test_cancel_takes_the_duel_out_of_its_level():
    agent, rng = made(), np.random.default_rng(0)
    actions = sphere(rng, 7)
    before = [agent._levels[level - 1].information.matrix.copy() for level in range(1, 6)]
    duels = agent.ask_many(actions, 12)
    assert any(not np.allclose(agent._levels[level - 1].information.matrix, before[level - 1]) for level in range(1, 6))
    for duel in rng.permutation(len(duels)):
        agent.cancel(duels[duel])
    for level in range(1, 6):
        np.testing.assert_allclose(agent._levels[level - 1].information.matrix, before[level - 1], atol=1e-9)


def test_it_spreads_its_duels_while_it_waits():
    pairs = [frozenset((duel.first, duel.second)) for duel in made().ask_many(sphere(np.random.default_rng(0)), 12)]
    assert len(set(pairs)) > 3


def test_no_self_duels_where_they_are_not_allowed():
    agent, rng, actions = made(self_duels=False, radius=0.0, accuracy=0.25), np.random.default_rng(1), hypercube(3)
    levels = set()
    for _ in range(300):
        duel = agent.ask(actions)
        assert not duel.is_self_duel
        agent.tell(duel, Outcome.FIRST if rng.random() < 0.9 == (duel.first > duel.second) else Outcome.SECOND)
        levels.add(duel.level)
    assert 0 in levels


def test_it_recommends_the_best():
    agent, rng, actions = made(horizon=1500), np.random.default_rng(2), hypercube(3)
    for _ in range(1500):
        duel = agent.ask(actions)
        won = rng.random() < LOGISTIC.probability(duel.difference @ TRUTH)
        agent.tell(duel, Outcome.FIRST if won else Outcome.SECOND)
    assert agent.recommend(actions) == np.argmax(actions @ TRUTH)


def test_a_level_without_outcomes_recommends_nothing():
    agent, rng, actions = made(radius=100.0), np.random.default_rng(2), hypercube(3)
    duel = agent.ask(actions)
    while duel.level == 1:
        won = rng.random() < LOGISTIC.probability(duel.difference @ TRUTH)
        agent.tell(duel, Outcome.FIRST if won else Outcome.SECOND)
        duel = agent.ask(actions)
    assert duel.level == 2
    assert agent.recommend(actions) == np.argmax(actions @ agent._levels[0].theta) != 0


def test_its_regret_is_far_below_that_of_random_play():
    """The paper's cube, d = 5 and T = 1500: random play has twice the best reward a round as its regret."""
    trace = Cell("vacdb", "none", 0, 1500).run(3).trace
    best = Cell("vacdb", "none", 0, 1500).start(3)[1].offer(1).rewards.max()
    assert trace.regret.sum() < 0.35 * 2 * best * 1500


@pytest.mark.parametrize(
    "settings",
    [{"accuracy": 1.0}, {"accuracy": 0.0}, {"radius": "long"}, {"radius": -1}, {"norm_bound": None}, {"dimension": 0}],
)
def test_bad_settings_are_refused(settings):
    with pytest.raises(BadInputError):
        made(**settings)


def test_an_unknown_level_is_refused():
    for level in (0, 6):
        with pytest.raises(BadInputError, match="levels 1 to 5"):
            made().radius_at(level)
