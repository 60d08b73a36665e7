"""Designs against an independent solver, and the certificate that Kiefer and Wolfowitz promise."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from fairduel import BadInputError
from fairduel.core.optimal_design import barycentric_spanner, near_optimal_design


def sphere(seed, count, dimension):
    rows = np.random.default_rng(seed).standard_normal((count, dimension))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def largest_square(actions, weights):
    inverse = np.linalg.pinv(sum(w * np.outer(x, x) for w, x in zip(weights, actions, strict=True)), hermitian=True)
    return max(x @ inverse @ x for x in actions)


def log_det(actions, weights):
    return np.linalg.slogdet((actions.T * weights) @ actions)[1]


@given(seed=st.integers(0, 10_000), count=st.integers(6, 25), dimension=st.integers(1, 5))
def test_the_certificate_is_true_and_nothing_beats_the_rank(seed, count, dimension):
    actions = sphere(seed, count, dimension)
    design = near_optimal_design(actions, tolerance=0.01)
    assert design.weights.sum() == pytest.approx(1.0, abs=1e-12)
    assert design.weights.min() >= 0
    assert design.rank == dimension
    assert design.largest == pytest.approx(largest_square(actions, design.weights), rel=1e-6)
    assert dimension * (1 - 1e-9) <= design.largest <= 1.01 * dimension


@pytest.mark.parametrize("seed", range(5))
def test_the_design_is_the_one_that_a_solver_finds_for_the_determinant(seed):
    """G- and D-optimal designs are the same; SLSQP maximises log det Γ over the simplex, from uniform weights."""
    actions = sphere(seed, 9, 3)
    solved = optimize.minimize(
        lambda w: -log_det(actions, w),
        np.full(9, 1 / 9),
        bounds=[(0, 1)] * 9,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 1000},
    )
    assert solved.success
    ours = near_optimal_design(actions, tolerance=1e-7)
    assert log_det(actions, ours.weights) == pytest.approx(-solved.fun, abs=1e-6)
    np.testing.assert_allclose(ours.weights, solved.x, atol=2e-3)


@pytest.mark.parametrize(("count", "dimension"), [(20, 5), (60, 5), (200, 3), (200, 8)])
@pytest.mark.parametrize("seed", range(4))
def test_the_support_is_small(seed, count, dimension):
    """Carathéodory: d(d + 1)/2 actions suffice for the best design; a near one has at most twice that here."""
    design = near_optimal_design(sphere(seed, count, dimension))
    assert dimension <= len(design.support) <= dimension * (dimension + 1)


def test_unit_vectors_are_tried_equally_and_short_ones_never():
    actions = np.vstack([np.eye(4), 0.1 * np.eye(4)])
    np.testing.assert_allclose(near_optimal_design(actions).weights, [0.25] * 4 + [0.0] * 4, atol=1e-12)


def test_actions_of_a_plane_are_designed_for_in_their_plane():
    flat = sphere(1, 12, 2) @ np.array([[0.6, 0.8, 0.0], [0.0, 0.0, 1.0]])
    design = near_optimal_design(flat, tolerance=0.01)
    assert design.rank == 2
    assert design.largest == pytest.approx(largest_square(flat, design.weights), rel=1e-6)
    assert design.largest <= 2.02


def test_one_direction_needs_its_longest_action_alone():
    np.testing.assert_array_equal(near_optimal_design(np.array([[0.5], [-0.9], [0.2]])).weights, [0, 1, 0])


def test_nothing_but_zeros_is_refused():
    with pytest.raises(BadInputError, match="zero"):
        near_optimal_design(np.zeros((3, 2)))


@given(seed=st.integers(0, 10_000), count=st.integers(5, 20), dimension=st.integers(1, 5))
def test_a_spanner_makes_every_action_with_coefficients_up_to_one(seed, count, dimension):
    actions = sphere(seed, count, dimension)
    basis, coefficients = barycentric_spanner(actions)
    assert len(basis) == dimension
    assert np.abs(coefficients).max() <= 1 + 1e-8
    np.testing.assert_allclose(coefficients @ actions[basis], actions, atol=1e-8)


def test_a_spanners_volume_is_near_the_largest():
    """No exchange enlarges it; over all subsets it is here within 3/4 of the largest."""
    for seed in range(10):
        actions = sphere(seed, 9, 3)
        basis, _ = barycentric_spanner(actions)
        volumes = [abs(np.linalg.det(actions[list(three)])) for three in itertools.combinations(range(9), 3)]
        assert abs(np.linalg.det(actions[basis])) >= 0.75 * max(volumes)


def test_a_spanner_of_a_plane_has_two_actions():
    flat = sphere(1, 7, 2) @ np.array([[0.6, 0.8, 0.0], [0.0, 0.0, 1.0]])
    basis, coefficients = barycentric_spanner(flat)
    assert coefficients.shape == (7, 2)
    np.testing.assert_allclose(coefficients @ flat[basis], flat, atol=1e-9)
