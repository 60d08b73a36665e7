import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from fairduel import LOGISTIC, PROBIT, BadInputError, ConvergenceError, Link, MaxPairUCB, Outcome, clipped_linear
from fairduel.action_sets import hypercube
from fairduel.core.estimators import Estimator
from fairduel.core.information import HIGH_DIMENSION
from fairduel.core.likelihood import (
    TOLERANCE,
    Comparisons,
    gradient_at,
    hessian_of,
    loss,
    newton,
    one_step_ahead,
    problem_of,
    quasi_newton,
    solve_by_root,
    solved,
)
from fairduel.core.links import potential
from fairduel.core.selection import TIE

LINKS = [LOGISTIC, PROBIT, clipped_linear(0.7), Link("logistic", 1.6)]
any_link = st.sampled_from(LINKS)
any_seed = st.integers(0, 2**32 - 1)
any_ridge = st.floats(0.05, 5.0)


def loss_gradient_hessian(theta, differences, weights, wins, ridge, link):
    problem = problem_of(differences, weights, wins, ridge, link)
    gradient, curvatures = np.empty(theta.size), np.empty(len(weights))
    largest = gradient_at(theta, problem, gradient, curvatures)
    assert largest == np.abs(gradient).max()
    return loss(theta, problem), gradient, hessian_of(differences, curvatures, ridge)


def random_duels(seed, dimension=None, count=None):
    rng = np.random.default_rng(seed)
    dimension = dimension or int(rng.integers(1, 5))
    count = count or int(rng.integers(1, 40))
    differences = rng.uniform(-1, 1, (count, dimension))
    weights = rng.uniform(0.05, 1.0, count)
    truth = 2.0 * rng.standard_normal(dimension)
    outcomes = (rng.random(count) < LOGISTIC.probability(differences @ truth)).astype(float)
    return differences, weights, outcomes


def gathered(differences, weights, outcomes):
    told = Comparisons(differences.shape[1])
    for difference, weight, outcome in zip(differences, weights, outcomes, strict=True):
        told.add(difference, weight=float(weight), share=float(outcome))
    return told


def maximum_likelihood(told, *, ridge, link, start, ball=math.inf):
    """Solve eq. (MLE) for all outcomes."""
    return solved(start, problem_of(told.differences, told.weights, told.wins, ridge, link), ball)


def estimated(duels, ridge, link, *, start=None, ball=math.inf):
    start = np.zeros(duels[0].shape[1]) if start is None else start
    return maximum_likelihood(gathered(*duels), ridge=ridge, link=link, start=start, ball=ball)


def away_from_the_kinks(theta, differences, link):
    return link.name != "clipped-linear" or (abs(abs(link.scale * (differences @ theta)) - 0.5) > 1e-3).all()


@pytest.mark.parametrize("link", LINKS, ids=str)
@pytest.mark.parametrize("seed", range(10))
def test_gradient_and_hessian_are_the_derivatives_of_the_loss(link, seed):
    differences, weights, outcomes = random_duels(seed, dimension=3, count=12)
    theta = np.random.default_rng(seed + 100).standard_normal(3)
    while not away_from_the_kinks(theta, differences, link):
        theta *= 1.01
    arguments = (differences, weights, weights * outcomes, 0.3, link)
    _, gradient, hessian = loss_gradient_hessian(theta, *arguments)
    step = 1e-5
    for i in range(3):
        shift = step * np.eye(3)[i]
        above, gradient_above, _ = loss_gradient_hessian(theta + shift, *arguments)
        below, gradient_below, _ = loss_gradient_hessian(theta - shift, *arguments)
        assert gradient[i] == pytest.approx((above - below) / (2 * step), abs=1e-8)
        np.testing.assert_allclose(hessian[i], (gradient_above - gradient_below) / (2 * step), atol=1e-7)


@pytest.mark.parametrize("link", LINKS, ids=str)
@pytest.mark.parametrize("count", [1, 511, 512, 513, 1300])
def test_every_row_is_counted_once_across_blocks(link, count, score_equation):
    differences, weights, outcomes = random_duels(count, dimension=3, count=count)
    theta = np.array([0.4, -0.9, 0.2])
    value, gradient, hessian = loss_gradient_hessian(theta, differences, weights, weights * outcomes, 0.3, link)
    margins = differences @ theta
    slow_loss = 0.15 * theta @ theta + sum(
        w * potential(link.kind, link.scale, x) - w * o * x for w, o, x in zip(weights, outcomes, margins, strict=True)
    )
    curvature = 0.3 * np.eye(3) + sum(
        w * s * np.outer(p, p) for w, s, p in zip(weights, link.slope(margins), differences, strict=True)
    )
    assert value == pytest.approx(slow_loss, rel=1e-11)
    np.testing.assert_allclose(gradient, score_equation(theta, differences, weights, outcomes, 0.3, link), rtol=1e-9)
    np.testing.assert_allclose(hessian, curvature, rtol=1e-10)


@pytest.mark.parametrize("dimension", [1, 5, 40])
def test_a_root_solves_like_its_matrix(dimension):
    rng = np.random.default_rng(dimension)
    factor, vector = rng.normal(size=(dimension, dimension)), rng.normal(size=dimension)
    matrix = factor @ factor.T + np.eye(dimension)
    np.testing.assert_allclose(
        solve_by_root(np.linalg.cholesky(matrix), vector), np.linalg.solve(matrix, vector), rtol=1e-9
    )


@given(any_seed, any_link, any_ridge)
def test_the_estimate_solves_equation_mle(seed, link, ridge):
    duels = random_duels(seed)
    estimate = estimated(duels, ridge, link)
    from_raw_rows = loss_gradient_hessian(estimate.theta, duels[0], duels[1], duels[1] * duels[2], ridge, link)[1]
    assert np.abs(from_raw_rows).max() <= TOLERANCE * (1 + duels[1].sum()) * (1 + 1e-6) + 1e-13
    assert estimate.gradient == pytest.approx(np.abs(from_raw_rows).max(), abs=1e-12)


@given(any_seed, any_link, any_ridge)
def test_the_estimate_is_scipys(slow_estimate, seed, link, ridge):
    duels = random_duels(seed)
    np.testing.assert_allclose(estimated(duels, ridge, link).theta, slow_estimate(*duels, ridge, link), atol=1e-5)


@given(any_seed, any_link, any_ridge)
def test_the_estimate_is_scipys_minimum_of_the_loss(seed, link, ridge):
    differences, weights, outcomes = duels = random_duels(seed)

    def objective(theta):
        return loss_gradient_hessian(theta, differences, weights, weights * outcomes, ridge, link)[0]

    best = optimize.minimize(objective, np.zeros(differences.shape[1]), method="Nelder-Mead", options={"maxiter": 200})
    assert objective(estimated(duels, ridge, link).theta) <= best.fun + 1e-12


@pytest.mark.parametrize("weight", [1.0, 0.4])
def test_one_logistic_duel_has_the_answer_log_three(weight):
    duel = np.array([[1.0]]), np.array([weight]), np.array([1.0])
    ridge = weight * (1 - 3 / 4) / math.log(3)  # σ(log 3) = 3/4
    assert estimated(duel, ridge, LOGISTIC).theta == pytest.approx([math.log(3)], abs=1e-7)


@pytest.mark.parametrize(("weight", "answer"), [(1.0, 1 / 4), (0.5, 1 / 6), (2.0, 1 / 3)])
def test_one_clipped_linear_duel_has_a_closed_form(weight, answer):
    duel = np.array([[1.0]]), np.array([weight]), np.array([1.0])  # θ + w(½ + θ − 1) = 0
    assert estimated(duel, 1.0, clipped_linear()).theta == pytest.approx([answer], abs=1e-8)


def test_duels_in_orthogonal_directions_do_not_mix():
    duels = np.diag([1.0, 1.0, -1.0]), np.ones(3), np.array([1.0, 0.0, 1.0])
    answer = math.log(3)
    ridge = 0.25 / answer
    np.testing.assert_allclose(estimated(duels, ridge, LOGISTIC).theta, [answer, -answer, -answer], atol=1e-7)


def test_twice_the_weight_is_not_the_same_estimate():
    differences, weights, outcomes = random_duels(3, dimension=2, count=30)
    once = estimated((differences, weights, outcomes), 0.25, LOGISTIC).theta
    twice = estimated((differences, 2 * weights, outcomes), 0.25, LOGISTIC).theta
    halved_ridge = estimated((differences, weights, outcomes), 0.125, LOGISTIC).theta
    assert np.linalg.norm(once - twice) > 1e-2
    np.testing.assert_allclose(twice, halved_ridge, atol=1e-6)


@pytest.mark.parametrize("link", LINKS, ids=str)
def test_nothing_told_gives_zero(link):
    told = Comparisons(3)
    estimate = maximum_likelihood(told, ridge=0.25, link=link, start=np.zeros(3))
    assert estimate.theta.tolist() == [0, 0, 0]
    assert estimate.steps == 0


@pytest.mark.parametrize("link", [LOGISTIC, PROBIT, clipped_linear(0.7)], ids=str)
@pytest.mark.parametrize("ridge", [1e-4, 0.25])
def test_separable_data_has_a_finite_estimate(link, ridge):
    count = 1000
    duels = np.ones((count, 1)), np.ones(count), np.ones(count)
    theta = estimated(duels, ridge, link).theta
    answer = optimize.brentq(lambda x: ridge * x - count * (1 - float(link.probability(x))), 0, 1e6, xtol=1e-12)
    tolerance = TOLERANCE * (1 + count) / (ridge + count * float(link.slope(answer)))
    assert theta[0] == pytest.approx(answer, abs=tolerance + 1e-9)


@given(any_seed, any_link)
def test_repeated_duels_share_a_row_and_change_nothing(seed, link):
    rng = np.random.default_rng(seed)
    distinct = rng.uniform(-1, 1, (4, 3))
    differences = distinct[rng.integers(4, size=60)] * rng.choice([-1.0, 1.0], (60, 1))
    weights, outcomes = rng.uniform(0.1, 1, 60), rng.integers(0, 2, 60).astype(float)
    told = gathered(differences, weights, outcomes)
    assert len(told) == len(np.unique(np.abs(differences), axis=0))
    assert told.weights.sum() == pytest.approx(weights.sum())
    collapsed = maximum_likelihood(told, ridge=0.25, link=link, start=np.zeros(3)).theta
    raw = (differences, weights, weights * outcomes)
    one_row_each = newton(np.zeros(3), problem_of(*raw, 0.25, link), np.empty((0, 0))).theta
    np.testing.assert_allclose(collapsed, one_row_each, atol=1e-6)


@given(any_seed, any_link)
def test_naming_the_actions_the_other_way_round_changes_nothing(seed, link):
    differences, weights, outcomes = duels = random_duels(seed)
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], len(outcomes))
    turned = differences * signs[:, None], weights, np.where(signs > 0, outcomes, 1 - outcomes)
    assert estimated(duels, 0.25, link).theta.tolist() == estimated(turned, 0.25, link).theta.tolist()


@given(any_seed, any_link)
def test_flipping_every_outcome_negates_the_estimate(seed, link):
    differences, weights, outcomes = duels = random_duels(seed)
    flipped = differences, weights, 1 - outcomes
    np.testing.assert_allclose(estimated(duels, 0.25, link).theta, -estimated(flipped, 0.25, link).theta, atol=1e-6)


def test_minus_zero_and_zero_share_a_row():
    told = Comparisons(2)
    for difference in ([0.0, 1.0], [-0.0, 1.0], [0.0, -1.0], [-0.0, -1.0]):
        told.add(np.array(difference), weight=1.0, share=1.0)
    assert told.differences.tolist() == [[0.0, 1.0]]
    assert told.weights.tolist() == [4.0]
    assert told.wins.tolist() == [2.0]


def test_differences_that_only_look_alike_keep_rows_of_their_own():
    told = Comparisons(2)
    for difference in ([0.3, 0.5], [0.3, -0.5], [0.5, 0.3], [0.3, 0.5 + 1e-16 * 8], [0.3, 0.0]):
        told.add(np.array(difference), weight=1.0, share=1.0)
    assert len(told) == 5
    assert told.weights.tolist() == [1.0] * 5


def test_a_million_repeated_duels_stay_a_handful_of_rows():
    rng = np.random.default_rng(0)
    distinct = rng.uniform(-0.5, 0.5, (10, 3))
    truth = np.array([1.0, -2.0, 0.5])
    probabilities = LOGISTIC.probability(distinct @ truth)
    told = Comparisons(3)
    for row, uniform in zip(rng.integers(10, size=10**6).tolist(), rng.random(10**6).tolist(), strict=True):
        told.add(distinct[row], weight=1.0, share=float(uniform < probabilities[row]))
    estimate = maximum_likelihood(told, ridge=0.25, link=LOGISTIC, start=np.zeros(3))
    assert len(told) == 10
    assert told.weights.sum() == 10**6
    np.testing.assert_allclose(estimate.theta, truth, atol=0.03)


def test_a_million_distinct_duels_are_fitted():
    rng = np.random.default_rng(1)
    differences = rng.uniform(-0.5, 0.5, (10**6, 3))
    truth = np.array([1.0, -2.0, 0.5])
    outcomes = rng.random(10**6) < LOGISTIC.probability(differences @ truth)
    told = gathered(differences, np.ones(10**6), outcomes)
    estimate = maximum_likelihood(told, ridge=0.25, link=LOGISTIC, start=np.zeros(3))
    assert len(told) == 10**6
    np.testing.assert_allclose(estimate.theta, truth, atol=0.03)
    assert estimate.steps < 20


@given(any_seed, st.sampled_from([LOGISTIC, PROBIT]), st.booleans())
def test_a_prediction_is_the_next_estimate_to_first_order(seed, link, first_won):
    told = gathered(*random_duels(seed))
    before = maximum_likelihood(told, ridge=0.25, link=link, start=np.zeros(told.differences.shape[1]))
    difference = np.random.default_rng(seed).uniform(-1, 1, before.theta.size)
    errors = []
    for weight in (0.02, 0.01):
        more = Comparisons.from_state(told.state(), told.differences.shape[1])
        more.add(difference, weight=weight, share=float(first_won))
        after = maximum_likelihood(more, ridge=0.25, link=link, start=before.theta).theta
        start = one_step_ahead(before.theta, before.root, difference, weight, float(first_won), link.numbers)
        errors.append(np.linalg.norm(start - after) / np.linalg.norm(before.theta - after))
    assert errors[1] < 0.02
    assert errors[1] < 0.75 * errors[0] + 1e-4  # halves with the weight


def test_a_prediction_that_would_go_too_far_stays():
    """Where σ is flat and the ridge tiny, a Newton step leads out of the world."""
    theta, root = np.array([-30.0]), np.array([[1e-3]])
    assert one_step_ahead(theta, root, np.array([1.0]), 1.0, 1.0, LOGISTIC.numbers).tolist() == [-30.0]


@pytest.mark.parametrize("link", [LOGISTIC, PROBIT])
def test_quasi_newton_finds_newtons_estimate(link):
    """From nothing, from the inverse of an earlier Hessian, and from a wrong inverse, which it improves."""
    problem = problem_of(*random_duels(1, dimension=20, count=200), 0.25, link)
    exact = newton(np.zeros(20), problem, np.empty((0, 0))).theta
    alone = quasi_newton(np.zeros(20), problem, np.empty((0, 0)))
    first = quasi_newton(exact, problem, np.eye(20))  # nothing to do
    assert (first.steps, first.theta.tolist()) == (0, exact.tolist())
    curvatures, step = np.empty(len(problem.weights)), np.full(20, 0.01)
    gradient_at(exact, problem, np.empty(20), curvatures)
    hessian = hessian_of(problem.differences, curvatures, 0.25)
    rough = np.linalg.inv(hessian) / 1.2
    warm = quasi_newton(exact + step, problem, rough)
    for found in (alone, warm):
        assert found.gradient <= found.tolerance
        np.testing.assert_allclose(found.theta, exact, atol=1e-9)
    assert warm.steps < 9  # without improvement each step would shrink the error by 6, and a step of 0.01 needs 12
    assert np.linalg.norm(rough @ hessian @ step - step) < 0.2 * np.linalg.norm(step / 1.2 - step)


def test_estimates_in_high_dimension_are_exact_after_every_outcome():
    """With a Hessian's inverse that outcomes and steps keep up to date, whatever the weights and the surprises."""
    d, rng = HIGH_DIMENSION, np.random.default_rng(3)
    estimator, told = Estimator("exact", d, ridge=0.05, link=LOGISTIC), Comparisons(d)
    for _ in range(120):
        difference = rng.standard_normal(d) / np.sqrt(d)
        weight, share = float(rng.choice([0.01, 1.0])), float(rng.integers(3) / 2)
        estimator.tell((0, 1), difference, weight=weight, share=share)
        told.add(difference, weight=weight, share=share)
        exact = maximum_likelihood(told, ridge=0.05, link=LOGISTIC, start=np.zeros(d)).theta
        np.testing.assert_allclose(estimator.fitted(log_determinant=0.0), exact, atol=1e-8)


def test_an_agent_surprised_by_an_outcome_still_finds_its_estimate():
    agent = MaxPairUCB(dimension=2, norm_bound=100.0, ridge=1e-4, kappa=0.1, radius=1.0, self_duels=False)
    for features, wins, times in (([-0.6, 0.3], True, 1), ([-0.8, -0.5], True, 116), ([-0.6, 0.3], False, 1)):
        for _ in range(times):
            duel = agent.ask([features, [0.0, 0.0]])
            agent.tell(duel, Outcome.FIRST if (duel.first == 0) == wins else Outcome.SECOND)
            assert np.isfinite(agent.estimate).all()


def test_heavy_rows_do_not_stall_the_last_steps():
    """The loss is lost in rounding there, and only the gradient tells that a step is good."""
    rows = np.array([[1.0], [0.1]]), np.array([4304.0, 23610.0]), np.array([4303.0, 23609.0])
    estimate = newton(np.zeros(1), problem_of(*rows, 0.25, LOGISTIC), np.empty((0, 0)))
    assert estimate.gradient <= estimate.tolerance
    assert estimate.steps < 30


@pytest.mark.parametrize("size", [1.0, 1e3, 3e5])
def test_long_differences_are_fitted_too(size):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rows = size * rng.uniform(-1, 1, (20, 5))
        wins = (rng.random(20) < 0.7).astype(float)
        estimate = newton(np.zeros(5), problem_of(rows, np.ones(20), wins, 0.01, LOGISTIC), np.empty((0, 0)))
        assert estimate.gradient <= estimate.tolerance


def test_estimates_are_exact_enough_to_see_ties():
    """Scores of the estimate against those of one polished in extended precision, in rounds where ties are common."""
    agent, rng, actions = MaxPairUCB(dimension=5, norm_bound=2.0, horizon=200), np.random.default_rng(0), hypercube(5)
    truth = np.array([1.2, -0.8, 0.5, 0.9, -0.6])
    for _ in range(80):
        duel = agent.ask(actions)
        agent.tell(
            duel, Outcome.FIRST if rng.random() < LOGISTIC.probability(duel.difference @ truth) else Outcome.SECOND
        )
        told = agent.state()["belief"]["estimator"]["told"]
        rows, weights, wins = (np.asarray(told[name], np.longdouble) for name in ("differences", "weights", "wins"))
        theta = np.asarray(agent.estimate, np.longdouble)
        for _ in range(3):
            chances = 1 / (1 + np.exp(-rows @ theta))
            gradient = agent.settings["ridge"] * theta + (weights * chances - wins) @ rows
            curved = (rows.T * (weights * chances * (1 - chances))) @ rows + agent.settings["ridge"] * np.eye(5)
            theta = theta - np.linalg.solve(curved.astype(float), gradient.astype(float))
        assert np.abs(actions @ (agent.estimate - theta.astype(float))).max() < TIE / 8


def test_without_a_fit_there_is_no_prediction():
    estimator = Estimator("exact", 2, ridge=0.25, link=LOGISTIC)
    estimator.tell((0, 1), np.array([1.0, 0.0]), weight=1.0, share=1.0)
    assert estimator.theta.tolist() == [0.0, 0.0]
    fitted = estimator.fitted(0.0).copy()
    estimator.tell((0, 1), np.array([1.0, 0.0]), weight=1.0, share=1.0)
    assert estimator.theta[0] > fitted[0] > 0


@given(any_seed, any_link, st.floats(0.1, 60))
def test_the_warm_start_does_not_matter(seed, link, distance):
    duels = random_duels(seed)
    start = np.random.default_rng(seed).standard_normal(duels[0].shape[1])
    start *= distance / np.linalg.norm(start)
    cold, warm = estimated(duels, 0.25, link), estimated(duels, 0.25, link, start=start)
    certified = math.sqrt(start.size) * (cold.gradient + warm.gradient) / 0.25
    assert np.linalg.norm(cold.theta - warm.theta) <= certified + 1e-12
    assert certified < 1e-5


def test_the_start_itself_is_not_changed():
    start = np.array([3.0, -1.0, 2.0])
    estimated(random_duels(0, dimension=3), 0.25, LOGISTIC, start=start)
    assert start.tolist() == [3.0, -1.0, 2.0]


@given(any_seed, any_link, st.floats(0.05, 3.0))
def test_within_the_ball_the_optimality_conditions_hold(score_equation, seed, link, ball):
    ridge = 0.05
    duels = random_duels(seed)
    free, kept = estimated(duels, ridge, link), estimated(duels, ridge, link, ball=ball)
    assert np.linalg.norm(kept.theta) <= ball * (1 + 1e-12)
    if np.linalg.norm(free.theta) <= ball:
        assert kept.theta.tolist() == free.theta.tolist()
        assert kept.ridge == ridge
        return
    multiplier = kept.ridge - ridge
    stationarity = score_equation(kept.theta, *duels, ridge, link) + multiplier * kept.theta
    assert multiplier > 0
    assert np.abs(stationarity).max() <= 2 * TOLERANCE * (1 + duels[1].sum())
    assert np.linalg.norm(kept.theta) == pytest.approx(ball, rel=1e-6)


@settings(max_examples=25)
@given(any_seed, st.sampled_from([LOGISTIC, PROBIT]), st.floats(0.1, 1.5))
def test_within_the_ball_the_estimate_is_scipys(seed, link, ball):
    differences, weights, outcomes = duels = random_duels(seed)

    def objective(theta):
        return loss_gradient_hessian(theta, differences, weights, weights * outcomes, 0.05, link)[:2]

    within = {"type": "ineq", "fun": lambda x: ball**2 - x @ x, "jac": lambda x: -2 * x}
    start = np.zeros(differences.shape[1])
    slow = optimize.minimize(objective, start, jac=True, method="SLSQP", constraints=within, options={"ftol": 1e-10})
    np.testing.assert_allclose(estimated(duels, 0.05, link, ball=ball).theta, slow.x, atol=1e-4)


def test_an_estimate_that_cannot_be_certified_is_refused():
    told = Comparisons(1)
    told.add(np.array([1.0]), weight=math.nan, share=1.0)
    with pytest.raises(ConvergenceError, match="did not converge"):
        maximum_likelihood(told, ridge=0.25, link=LOGISTIC, start=np.zeros(1))


def test_comparisons_survive_growth_and_their_own_state():
    differences, weights, outcomes = random_duels(7, dimension=2, count=300)
    told = gathered(differences, weights, outcomes)
    again = Comparisons.from_state(told.state(), told.differences.shape[1])
    for name in ("differences", "weights", "wins", "votes"):
        np.testing.assert_array_equal(getattr(again, name), getattr(told, name))
    for both in (told, again):
        both.add(-differences[17], weight=0.5, share=1.0)
        both.add(np.array([0.3, 0.3]), weight=0.5, share=1.0)
    assert len(told) == len(again) == 301
    np.testing.assert_array_equal(again.weights, told.weights)
    np.testing.assert_array_equal(again.wins, told.wins)
    np.testing.assert_array_equal(again.votes, told.votes)
    assert told.votes[-2:].tolist() == [3 * 17 + 2 * (differences[17, 0] < 0), 3 * 300 + 2]


def test_votes_keep_their_order_and_their_side():
    rng = np.random.default_rng(0)
    phi, shares = rng.integers(-1, 2, (500, 2)) / 2.0, rng.integers(0, 3, 500) / 2.0
    told = gathered(phi, np.ones(500), shares)
    rows, own = told.votes // 3, told.votes % 3 / 2.0
    assert len(told) == 5
    sides = np.where((told.differences[rows] == phi).all(axis=1), 1.0, -1.0)
    np.testing.assert_array_equal(told.differences[rows] * sides[:, None], phi)
    np.testing.assert_array_equal(own, np.where(sides > 0.0, shares, 1.0 - shares))
    np.testing.assert_array_equal(np.bincount(rows, own), told.wins)


@pytest.mark.parametrize("wrong", [np.array([-1]), np.array([3]), np.array([0.0]), np.array([[0]])])
def test_votes_that_belong_to_no_row_are_refused(wrong):
    told = gathered(np.ones((1, 2)), np.ones(1), np.ones(1))
    with pytest.raises(BadInputError, match="told"):
        Comparisons.from_state(told.state() | {"votes": wrong}, 2)


def test_the_state_of_comparisons_is_a_copy():
    told = gathered(*random_duels(7, dimension=2, count=5))
    state = told.state()
    told.add(told.differences[0].copy(), weight=1.0, share=1.0)
    assert state["weights"][0] == pytest.approx(told.weights[0] - 1.0)


@pytest.mark.parametrize("rows", [1, 5, 40, 79, 80, 120])
@pytest.mark.parametrize("ball", [math.inf, 0.3])
def test_few_outcomes_in_many_dimensions_are_fitted_within_their_span(rows, ball):
    rng = np.random.default_rng(rows)
    told = Comparisons(dimension=80)
    for _ in range(rows):
        told.add(rng.normal(size=80) / 9, weight=rng.uniform(0.1, 1.0), share=float(rng.random() < 0.8))
    start = rng.normal(size=80)
    found = maximum_likelihood(told, ridge=0.5, link=LOGISTIC, start=start, ball=ball)
    chances = 1 / (1 + np.exp(-told.differences @ found.theta))
    gradient = found.ridge * found.theta + (told.weights * chances - told.wins) @ told.differences
    assert np.abs(gradient).max() <= found.gradient + 1e-12
    assert found.gradient <= math.sqrt(rows) * TOLERANCE * (1 + told.weights.sum())
    assert np.linalg.norm(found.theta) <= ball * (1 + 1e-9)


@pytest.mark.parametrize("count", [1, 600])
@pytest.mark.parametrize("dimension", [1, 8, 9, 20])
def test_the_gradient_by_hand_and_by_blas_is_that_of_the_formula(dimension, count):
    rng = np.random.default_rng(dimension)
    theta, rows = rng.normal(size=dimension), rng.normal(size=(count, dimension))
    weights = rng.random(count)
    wins = weights * rng.random(count)
    gradient, curvatures = np.empty(dimension), np.empty(count)
    gradient_at(theta, problem_of(rows, weights, wins, 0.25, LOGISTIC), gradient, curvatures)
    expected = 0.25 * theta + (weights * LOGISTIC.probability(rows @ theta) - wins) @ rows
    np.testing.assert_allclose(gradient, expected, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(curvatures, weights * LOGISTIC.slope(rows @ theta), rtol=1e-11)


@settings(max_examples=30, deadline=None)
@given(any_seed, st.sampled_from([LOGISTIC, PROBIT, Link("logistic", 1.6)]), any_ridge)
def test_the_estimators_hessian_is_the_derivative_of_the_gradient(seed, link, ridge):
    differences, weights, outcomes = random_duels(seed)
    dimension = differences.shape[1]
    estimator = Estimator("exact", dimension, ridge=ridge, link=link)
    for difference, weight, outcome in zip(differences, weights, outcomes, strict=True):
        estimator.tell((0, 1), difference, weight=weight, share=outcome)
    theta = estimator.fitted(log_determinant=0.0)

    def gradient(point):
        return loss_gradient_hessian(point, differences, weights, weights * outcomes, ridge, link)[1]

    step = 1e-5 * np.eye(dimension)
    slow = np.array([(gradient(theta + h) - gradient(theta - h)) / 2e-5 for h in step])
    np.testing.assert_allclose(estimator.hessian, slow, rtol=1e-6, atol=1e-7)
