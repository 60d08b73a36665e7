"""What the estimators have in common, and what sets them apart."""

import math

import numpy as np
import pytest

from fairduel import LOGISTIC, RCDB, RCDBS, Agent, BadInputError, CoLSTIM, MaxInP, MaxPairUCB, Outcome
from fairduel.core.estimators import _FITTED_OUTCOMES, UPDATES
from fairduel.core.information import HIGH_DIMENSION
from fairduel.simulation import Cell
from helpers.agents import ACTIONS, TRUTH, answer, made, played, same, sphere, sums

pytestmark = pytest.mark.filterwarnings("ignore::fairduel.LockInWarning")


def unit_rows(rng, count, dimension):
    rows = rng.normal(size=(count, dimension))
    return 0.999 * rows / np.linalg.norm(rows, axis=1, keepdims=True)


def teach(agent, actions, theta, rounds, rng):
    for _ in range(rounds):
        duel = agent.ask(actions)
        won = rng.random() < 1 / (1 + np.exp(-(actions[duel.first] - actions[duel.second]) @ theta))
        agent.tell(duel, Outcome.FIRST if won else Outcome.SECOND)


@pytest.mark.parametrize(("estimator", "at_most"), [("lazy", 1.3), ("one-pass", 1.6)])
@pytest.mark.parametrize("name", ["rcdb", "rcdb-s", "maxpairucb", "maxinp", "colstim"])
def test_a_cheaper_estimator_costs_little_regret(name, estimator, at_most):
    """Fresh actions, no attack, five seeds: a little more regret than the exact one, and far below chance."""

    def regret(settings):
        cell = Cell(name, "none", 0, 1500, world="fresh", agent_settings=settings)
        return np.mean([cell.run(seed).trace.regret.sum() for seed in range(5)])

    exact, cheap = regret({}), regret({"estimator": estimator})
    assert cheap < at_most * exact
    assert cheap < 0.35 * 1500 * 2  # chance costs about 2.6 a round


def test_one_pass_keeps_no_outcomes():
    rng = np.random.default_rng(0)
    agent = RCDB(dimension=3, norm_bound=2.0, flip_budget=5, horizon=500, estimator="one-pass")
    sizes = set()
    for _ in range(5):
        for _ in range(100):
            teach(agent, unit_rows(rng, 8, 3), np.ones(3), 1, rng)
        sizes.add(sum(np.asarray(value).nbytes for value in agent.state()["belief"]["estimator"]["told"].values()))
    assert sizes == {0}


def test_lazy_fits_seldom_and_then_exactly():
    fits = set()
    rng = np.random.default_rng(1)
    actions, theta = unit_rows(rng, 12, 4), rng.normal(size=4)
    lazy = MaxPairUCB(dimension=4, norm_bound=3.0, horizon=1000, estimator="lazy", self_duels=False)
    for _ in range(1000):
        teach(lazy, actions, theta, 1, rng)
        fits.add(lazy.state()["belief"]["estimator"]["fitted_outcomes"])
    assert 5 < len(fits) < 120
    exact = MaxPairUCB(dimension=4, norm_bound=3.0, horizon=1000, self_duels=False)
    lazy.belief.estimator.arrays.marks[_FITTED_OUTCOMES] = 0
    lazy.belief.estimator.fitted(np.inf)  # as if det Σ had grown
    told = lazy.belief.estimator.told
    for row, weight, wins in zip(told.differences, told.weights, told.wins, strict=True):
        exact.belief.estimator.tell((0, 1), row, weight=float(weight), share=float(wins / weight))
    np.testing.assert_allclose(lazy.estimate, exact.estimate, atol=1e-6)


@pytest.mark.parametrize("estimator", ["exact", "lazy", "one-pass"])
def test_each_is_saved_and_resumed(estimator, tmp_path):
    rng = np.random.default_rng(2)
    actions, theta = unit_rows(rng, 8, 3), rng.normal(size=3)
    agent = RCDBS(dimension=3, norm_bound=2.0, flip_budget=5, horizon=400, estimator=estimator)
    teach(agent, actions, theta, 150, rng)
    agent.save(tmp_path / "agent.npz")
    again = RCDBS.load(tmp_path / "agent.npz")
    for outcome in rng.choice([Outcome.FIRST, Outcome.SECOND], 200):
        ours, theirs = agent.ask(actions), again.ask(actions)
        assert ours == theirs
        agent.tell(ours, outcome)
        again.tell(theirs, outcome)


def test_unknown_and_contradictory_settings_are_refused():
    with pytest.raises(BadInputError, match="lazy"):
        RCDB(dimension=2, norm_bound=1.0, flip_budget=1, estimator="lasy")
    with pytest.raises(BadInputError, match="constrained"):
        RCDB(dimension=2, norm_bound=1.0, flip_budget=1, estimator="one-pass", constrained=True)


@pytest.mark.parametrize("kind", [RCDB, RCDBS, MaxPairUCB, MaxInP, CoLSTIM])
def test_a_fixed_set_in_high_dimension_is_asked_as_if_it_were_new_each_time(kind, monkeypatch):
    """With the kept Gram matrix and without it, the same duels; and Σ is the same in the end."""
    rng = np.random.default_rng(3)
    d = HIGH_DIMENSION + 6
    actions, theta = unit_rows(rng, 20, d), rng.normal(size=d)

    def played():
        extra = {"flip_budget": 5} if kind in (RCDB, RCDBS) else {}
        agent = kind(dimension=d, norm_bound=2.0, horizon=300, estimator="lazy", radius_scale=0.3, **extra)
        coin = np.random.default_rng(4)
        pairs = []
        for t in range(150):
            duel = agent.ask(actions)
            pairs.append((duel.first, duel.second, round(duel.weight, 9), round(duel.width, 9)))
            if t % 40 == 39:
                agent.cancel(duel)
                continue
            won = coin.random() < 1 / (1 + np.exp(-(actions[duel.first] - actions[duel.second]) @ theta))
            agent.tell(duel, Outcome.FIRST if won else Outcome.SECOND)
        return pairs, agent.information.matrix, agent.information.log_determinant

    kept = played()
    monkeypatch.setattr("fairduel.core.information.HIGH_DIMENSION", 10**9)
    plain = played()
    assert kept[0] == plain[0]
    np.testing.assert_allclose(kept[1], plain[1], atol=1e-9)
    assert kept[2] == pytest.approx(plain[2], abs=1e-6)


def test_another_set_in_between_does_no_harm():
    rng = np.random.default_rng(5)
    d = HIGH_DIMENSION
    first, second = unit_rows(rng, 12, d), unit_rows(rng, 9, d)
    agent = RCDB(dimension=d, norm_bound=2.0, flip_budget=5, horizon=100, estimator="one-pass")
    for actions in (first, first, first, second, first, first, second, second, second):
        duel = agent.ask(actions)
        before = agent.information.matrix - duel.weight * np.outer(duel.difference, duel.difference)
        assert duel.width == pytest.approx(
            np.sqrt(duel.difference @ np.linalg.solve(before, duel.difference)), rel=1e-8, abs=1e-8
        )
        agent.tell(duel, Outcome.FIRST)


@pytest.mark.parametrize("name", ["maxpairucb", "maxinp", "colstim"])
def test_one_pass_forgets_flips_that_lock_the_exact_estimate_in(name):
    """The adversarial attack of the paper, C = 45: the exact baselines end at about 14,000."""
    cell = Cell(name, "adversarial", 45, 2000, agent_settings={"estimator": "one-pass"})
    assert np.mean([cell.run(seed).trace.regret.sum() for seed in range(5)]) < 3000


@pytest.mark.parametrize("kind", [RCDB, MaxPairUCB])
def test_single_precision_asks_good_duels_too(kind):
    """The pair that is asked scores, in double precision, within rounding of the best."""
    rng = np.random.default_rng(4)
    actions = unit_rows(rng, 40, 80)
    agent = kind(dimension=80, norm_bound=2.0, horizon=100, estimator="one-pass", seed=1)
    for _ in range(30):
        inverse, theta, radius = agent.information.inverse.copy(), agent.estimate, agent.current_radius
        duel = agent.ask(actions.astype(np.float32))
        differences = actions[:, None] - actions[None]
        widths = np.sqrt(np.einsum("abi,ij,abj->ab", differences, inverse, differences))
        scores = (actions @ theta)[:, None] + (actions @ theta)[None] + radius * widths
        assert scores[duel.first, duel.second] >= scores.max() - 1e-4 * radius
        agent.tell(duel, Outcome.FIRST if rng.random() < 0.5 else Outcome.SECOND)


def test_the_lazy_estimate_waits_until_the_determinant_has_doubled(kind, score_equation):
    agent, rng = made(kind, estimator="lazy"), np.random.default_rng(0)
    history, fits, fitted_at = [], 0, -math.inf
    for _ in range(150):
        volume = agent.information.log_determinant
        before = agent.estimate
        if history and volume >= fitted_at + math.log(2):
            residual = score_equation(before, *sums(history), agent.settings["ridge"], LOGISTIC)
            assert np.abs(residual).max() <= 1e-8 * (1 + len(history))
            fits, fitted_at, fitted = fits + 1, volume, before
        elif history:
            np.testing.assert_array_equal(before, fitted)
        duel = agent.ask(sphere(rng))
        outcome = answer(duel, rng.random())
        agent.tell(duel, outcome)
        history += [] if duel.is_self_duel else [(duel, outcome)]
    assert 5 < fits < 75


def test_the_one_pass_estimate_keeps_no_outcomes_and_stays_within_the_bound(kind):
    agent = made(kind, estimator="one-pass", horizon=600)
    played(agent, 300)
    assert len(agent.state()["belief"]["estimator"]["told"]["weights"]) == 0
    played(agent, 300, seed=1)
    assert np.linalg.norm(agent.estimate) <= 2.0 * (1 + 1e-9)
    cosine = agent.estimate @ TRUTH / np.linalg.norm(agent.estimate) / np.linalg.norm(TRUTH)
    assert cosine > 0.8


@pytest.mark.parametrize("estimator", ["lazy", "one-pass"])
def test_a_saved_agent_goes_on_with_its_estimator(kind, estimator, tmp_path):
    agent = made(kind, estimator=estimator)
    played(agent, 40)
    agent.save(tmp_path / "agent.npz")
    again = Agent.load(tmp_path / "agent.npz")
    assert same(again.state(), agent.state())
    assert played(again, 100, seed=5) == played(agent, 100, seed=5)
    assert same(again.state(), agent.state())


def test_an_unknown_estimator_is_answered_with_the_nearest(kind):
    with pytest.raises(BadInputError, match="did you mean 'lazy'"):
        made(kind, estimator="lasy")


def test_the_inverse_curvature_is_computed_afresh_after_1024_outcomes(kind):
    agent = made(kind, estimator="one-pass")
    arrays = agent.belief.estimator.arrays
    arrays.marks[UPDATES] = 1022
    arrays.matrices[1] *= 1 + 1e-6
    for is_fresh in (False, True):
        duel = agent.ask(ACTIONS)
        while duel.is_self_duel:
            duel = agent.ask(ACTIONS)
        agent.tell(duel, Outcome.FIRST)
        product = arrays.matrices[1] @ arrays.matrices[0]
        assert np.allclose(product, np.eye(3), rtol=0, atol=1e-12) == is_fresh
