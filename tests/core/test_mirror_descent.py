import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from fairduel.core.estimators import STEP, _into_ball, mirror_step
from fairduel.core.links import LOGISTIC, PROBIT


def slow_step(theta, curvature, difference, weight, first_won, step, ball, link):
    """The minimiser of the docstring's objective, by a general solver."""
    margin = float(difference @ theta)
    gradient = weight * (float(link.probability(margin)) - first_won) * difference
    tilted = curvature + step * weight * float(link.slope(margin)) * np.outer(difference, difference)

    def objective(x):
        return gradient @ x + (x - theta) @ tilted @ (x - theta) / (2 * step)

    inside = {"type": "ineq", "fun": lambda x: ball**2 - x @ x}
    found = minimize(objective, theta, constraints=[inside], method="SLSQP", options={"ftol": 1e-14, "maxiter": 500})
    grown = curvature + weight * float(link.slope(float(difference @ found.x))) * np.outer(difference, difference)
    return found.x, grown


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.booleans(), st.sampled_from([LOGISTIC, PROBIT]))
def test_a_step_is_the_minimiser_that_it_claims_to_be(seed, dimension, first_won, link):
    rng = np.random.default_rng(seed)
    ball = 2.0
    theta = rng.normal(size=dimension)
    theta *= rng.uniform(0.0, ball) / np.linalg.norm(theta)
    root = rng.normal(size=(dimension, dimension))
    curvature = root @ root.T + 0.25 * np.eye(dimension)
    difference = rng.normal(size=dimension)
    difference *= rng.uniform(0.1, 2.0) / np.linalg.norm(difference)
    weight = rng.uniform(0.05, 1.0)
    expected, grown = slow_step(theta, curvature, difference, weight, first_won, STEP, ball, link)
    inverse = np.linalg.inv(curvature)
    found = mirror_step(theta, curvature, inverse, 1, difference, weight, float(first_won), STEP, ball, link.numbers)
    np.testing.assert_allclose(found, expected, atol=2e-5)
    np.testing.assert_allclose(curvature, grown, atol=1e-4)
    np.testing.assert_allclose(inverse @ curvature, np.eye(dimension), atol=1e-8)


def test_a_point_outside_is_brought_to_the_sphere_along_the_metric():
    metric = np.diag([100.0, 1.0])
    inside = _into_ball(np.array([1.0, 3.0]), metric, 1.0)
    assert np.linalg.norm(inside) == pytest.approx(1.0, abs=1e-9)
    assert inside[0] > 0.9  # the stiff direction hardly gives way


def test_an_outcome_moves_the_estimate_towards_itself():
    phi = np.array([1.0, 0.0])
    for share, sign in ((1.0, 1), (0.0, -1)):
        moved = mirror_step(
            np.zeros(2), 0.25 * np.eye(2), 4 * np.eye(2), 1, phi, 1.0, share, 5.0, 2.0, LOGISTIC.numbers
        )
        assert np.sign(moved[0]) == sign


def test_in_high_dimension_the_ball_is_kept_too():
    rng = np.random.default_rng(0)
    d = 80
    theta, curvature, inverse = np.zeros(d), 0.25 * np.eye(d), 4 * np.eye(d)
    for outcomes in range(1, 60):
        phi = rng.normal(size=d)
        phi /= np.linalg.norm(phi)
        theta = mirror_step(theta, curvature, inverse, outcomes, phi, 1.0, 1.0, 5.35, 2.0, LOGISTIC.numbers)
        assert np.linalg.norm(theta) <= 2.0 + 1e-9


@pytest.mark.parametrize(("updates", "is_fresh"), [(1023, False), (1024, True)])
def test_an_error_in_the_inverse_curvature_is_gone_after_every_1024th_step(updates, is_fresh):
    curvature, inverse = 0.25 * np.eye(2), (4 + 1e-6) * np.eye(2)
    phi = np.array([1.0, 0.5])
    mirror_step(np.zeros(2), curvature, inverse, updates, phi, 1.0, 1.0, STEP, 2.0, LOGISTIC.numbers)
    assert np.allclose(inverse @ curvature, np.eye(2), rtol=0, atol=1e-12) == is_fresh
