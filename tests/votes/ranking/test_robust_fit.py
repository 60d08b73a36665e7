import math
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from fairduel import LOGISTIC, BadInputError
from fairduel.votes.ranking.design_matrix import Pairs, Rows, with_features
from fairduel.votes.ranking.robust_fit import fixed_point, robust_fit, trust_for

RIDGE = 0.05


def problem(seed=0, items=6, count=80):
    """Votes between items, as pairs and as the same rows of numbers."""
    rng = np.random.default_rng(seed)
    first = rng.integers(items, size=count).astype(np.int32)
    second = ((first + rng.integers(1, items, size=count)) % items).astype(np.int32)
    result = rng.choice([0.0, 0.5, 1.0], size=count)
    counts = rng.choice([1.0, 2.0, 0.5], size=count)
    units = np.eye(items)
    return first, second, result, counts, units[first] - units[second]


def both(seed=0):
    first, second, result, counts, differences = problem(seed)
    pairs, pair_row, pair_turned = Pairs.collapse(first, second, 6)
    rows, row, turned = Rows.collapse(differences)
    return (
        (pairs, pair_row, np.where(pair_turned, 1 - result, result), counts),
        (rows, row, np.where(turned, 1 - result, result), counts),
    )


def test_collapsed_rows_give_the_differences_back():
    *_, differences = problem()
    doubled = np.concatenate([differences, -differences, np.zeros((2, 6))])
    rows, row, turned = Rows.collapse(doubled)
    np.testing.assert_array_equal(np.where(turned[:, None], -1, 1) * rows.values[row], doubled)
    assert len(rows) == len(np.unique(np.abs(rows.values @ [1, 2, 4, 8, 16, 32])))


def test_rows_with_the_same_mark_by_chance_stay_apart(monkeypatch):
    class Flat:
        def normal(self, size):
            return np.ones(size)

    monkeypatch.setattr(np.random, "default_rng", lambda _seed: Flat())
    differences = np.array([[1.0, 2.0], [2.0, 1.0], [-1.0, -2.0], [3.0, 0.0]])
    rows, row, turned = Rows.collapse(differences)
    np.testing.assert_array_equal(np.where(turned[:, None], -1, 1) * rows.values[row], differences)


def test_pairs_answer_like_rows():
    (pairs, pair_row, *_), (rows, row, *_) = both()
    rng = np.random.default_rng(1)
    per_vote = rng.random(80)
    matrix = np.eye(6) + pairs.information(np.bincount(pair_row, per_vote))
    np.testing.assert_allclose(matrix, np.eye(6) + rows.information(np.bincount(row, per_vote)), atol=1e-12)
    np.testing.assert_allclose(pairs.widths(matrix)[pair_row], rows.widths(matrix)[row], rtol=1e-10)
    theta = rng.normal(size=6)
    np.testing.assert_allclose(np.abs(pairs.margins(theta)[pair_row]), np.abs(rows.margins(theta)[row]))


@pytest.mark.parametrize("weights", ["none", "fixed-point"])
def test_pairs_are_fitted_like_rows(weights):
    one, other = (
        robust_fit(*votes, weights=weights, ridge=RIDGE, lies=30, groups={"voters": np.arange(80, dtype=np.int32) // 4})
        for votes in both()
    )
    np.testing.assert_allclose(one.weights, other.weights, rtol=1e-7)
    np.testing.assert_allclose(one.theta, other.theta, atol=1e-6)
    # the simulated residuals differ in order and sign
    np.testing.assert_allclose(one.uncertainty.covariance, other.uncertainty.covariance, rtol=0.01)
    assert [source.name for source in one.uncertainty.sources] == ["voters"]
    assert (one.weights.min() < 1.0) == (weights != "none")


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("weights", ["none", "fixed-point"])
def test_the_estimate_solves_the_papers_equation(score_equation, kind, weights):
    *_, result, counts, differences = problem()
    fit = robust_fit(*both()[kind], weights=weights, ridge=RIDGE)
    residual = score_equation(fit.theta, differences, counts * fit.weights, result, RIDGE, LOGISTIC)
    assert np.abs(residual).max() < 1e-6


@settings(max_examples=20)
@given(st.integers(0, 10_000), st.floats(0.01, 2.0), st.floats(1e-3, 1.0))
def test_the_fixed_point_is_one_and_its_residual_bounds_the_error(seed, trust, ridge):
    first, second, *_ = problem(seed)
    pairs, row, _ = Pairs.collapse(first, second, 6)
    counts = np.bincount(row).astype(float)
    sigma = ridge * np.eye(6)
    with patch("fairduel.votes.ranking.robust_fit._MOST_ITERATIONS", 59):
        weights, residual = fixed_point(pairs, counts, trust, sigma)
    widths = pairs.widths(sigma + pairs.information(counts * weights))
    np.testing.assert_allclose(weights, np.minimum(1.0, trust / widths), rtol=1e-7)
    assert residual <= 1e-8
    iterated = np.full(len(pairs), 1e-6)  # from far below, by plain steps
    for _ in range(45):
        iterated = np.minimum(1.0, trust / pairs.widths(sigma + pairs.information(counts * iterated)))
    assert np.abs(np.log(weights / iterated)).max() <= residual + 1e-9


def test_one_step_halves_the_distance_of_any_two_weights():
    rng = np.random.default_rng(3)
    first, second, *_ = problem()
    pairs, row, _ = Pairs.collapse(first, second, 6)
    counts = np.bincount(row).astype(float)

    def step(weights):
        return np.minimum(1.0, 0.1 / pairs.widths(RIDGE * np.eye(6) + pairs.information(counts * weights)))

    for _ in range(50):
        one, other = rng.random((2, len(pairs))) ** 4 + 1e-6
        after = np.abs(np.log(step(one) / step(other))).max()
        assert after <= 0.5 * np.abs(np.log(one / other)).max() + 1e-12


def test_the_default_trust_is_the_root_mean_square_width():
    first, second, *_ = problem(count=3000)
    pairs, row, _ = Pairs.collapse(first, second, 6)
    counts = np.bincount(row).astype(float)
    widths = pairs.widths(1e-9 * np.eye(6) + pairs.information(counts))
    # one of the six directions, a constant added to all, is in no vote
    assert trust_for(None, 3000.0, 5) == pytest.approx(math.sqrt((counts @ widths**2) / 3000), rel=1e-4)


def test_no_lies_trust_every_vote_and_many_none():
    votes = both()[0]
    assert (robust_fit(*votes, weights="fixed-point", lies=0).weights == 1.0).all()
    assert robust_fit(*votes, weights="fixed-point", lies=1e6).weights.max() < 1e-3
    for lies in (-1, math.nan):
        with pytest.raises(BadInputError, match="lies"):
            robust_fit(*votes, weights="fixed-point", lies=lies)
    with pytest.raises(BadInputError, match="kind of weights"):
        robust_fit(*votes, weights="both")


def test_features_stand_beside_the_items():
    first, second, *_ = problem()
    rng = np.random.default_rng(0)
    context = rng.integers(3, size=80).astype(np.int32)
    units = np.eye(6)
    for features in (rng.normal(size=(6, 2)), rng.normal(size=(3, 6, 2))):
        rows, row, turned = with_features(first, second, features, context)
        table = features if features.ndim == 3 else np.stack([features] * 3)
        expected = np.hstack([units[first] - units[second], table[context, first] - table[context, second]])
        np.testing.assert_allclose(np.where(turned[:, None], -1, 1) * rows.values[row], expected, atol=1e-12)
        assert len(np.unique(rows.values, axis=0)) == len(rows)


def test_scores_without_ridge_are_plain_bradley_terry():
    (pairs, row, won, counts), _ = both()

    def loss(theta):
        margins = pairs.margins(theta)[row]
        return float(np.sum(counts * (np.logaddexp(0, margins) - won * margins)))

    fit = robust_fit(pairs, row, won, counts, weights="none", ridge=0.0)
    slow = optimize.minimize(loss, np.zeros(6), tol=1e-12).x
    np.testing.assert_allclose(fit.theta, slow - slow.mean(), atol=1e-4)
