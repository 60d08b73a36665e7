r"""The robust fit: weights, estimate and covariance of many votes at once.

Votes get the paper's weight w = min(1, α/‖φ‖_Σ⁻¹) (eq. weight): a vote counts less where little else is known, because
a false vote would move the estimate most there. Offline, there are two forms:

*Sequential*: Σ holds the votes before this one, as in the paper (:mod:`fairduel.votes.sequential_weights`).

*Fixed point*: Σ(w) = λI + Σ_i s_i w_i φ_i φ_iᵀ holds all votes, and w satisfies eq. (weight) for Σ(w) itself. There is
exactly one such w. Write T(w)_i = min(1, α/‖φ_i‖_Σ(w)⁻¹). More weight means more information, so T is increasing; and
Σ(cw) ⪰ cΣ(w) for 0 < c < 1, so T(cw) ≥ √c T(w). Hence T is a contraction in D(u, v) = max_i |log u_i/v_i|:
D(Tu, Tv) ≤ ½ D(u, v). Iterating T converges from any start, and D(Tw, w*) ≤ D(w, Tw): the last step bounds the
remaining error and is reported as ``residual``.

α = √d/C guards against C false votes. If C is unknown, the paper takes C̄ = √n; then α = √(d/n), the root mean square
of the widths when all weights are 1 (Σ_i ‖φ_i‖²_Σ⁻¹ ≤ d), and votes wider than that count less.
"""

import math
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse, special
from threadpoolctl import threadpool_limits

from fairduel.core.radius import rcdb_trust
from fairduel.duel import Matrix, Vector
from fairduel.errors import BadInputError, ConvergenceError, unknown_name
from fairduel.votes.bradley_terry import TINY_RIDGE
from fairduel.votes.design import Pairs, Rows
from fairduel.votes.votes import Codes, Indices, sums

Weights = Literal["none", "sequential", "fixed-point"]
_TOLERANCE = 1e-8  # of a fixed point, in D(w, w*)
_MOST_ITERATIONS = 200


@dataclass(frozen=True, eq=False)
class Fit:
    """An estimate, and how it was made."""

    theta: Vector
    """Shape (d,)."""
    covariance: Matrix
    """Sandwich covariance of θ, shape (d, d): valid even if the votes do not follow the model."""
    weights: Vector
    """w of each vote, shape (n,)."""
    trust: float
    """α; ∞ if every weight is 1."""
    residual: float
    """Bound on max |log w − log w*|, the distance to the exact fixed point."""


def robust_fit(
    differences: Rows | Pairs,
    row: Indices,
    won: Vector,
    counts: Vector,
    *,
    weights: Weights = "fixed-point",
    lies: float | None = None,
    ridge: float | None = TINY_RIDGE,
    group: Codes | None = None,
) -> Fit:
    """Weight and fit n votes.

    Vote i is on row ``row[i]`` of ``differences``, with result ``won[i]`` (1, 0 or ½) for the row's first side, and
    counts ``counts[i]`` times. C is ``lies``, by default √n with n the sum of ``counts``. Votes with the same ``group``
    (n,), such as those of one voter, may depend on each other; the covariance allows for that. Without ``ridge``, λ = 0
    for pairs where that has a finite solution.

    >>> pairs = Pairs(np.array([0], np.int32), np.array([1], np.int32), 2)
    >>> fit = robust_fit(pairs, np.zeros(4, np.int64), np.array([1.0, 1, 1, 0]), np.ones(4), weights="none", ridge=None)
    >>> (fit.theta[0] - fit.theta[1]).round(6) == np.log(3.0).round(6)
    np.True_
    """
    trust = math.inf if weights == "none" else trust_for(lies, float(counts.sum()), differences.dimension)
    sigma = (ridge or TINY_RIDGE) * np.eye(differences.dimension)
    weight, residual = vote_weights(differences, row, counts, weights, trust, sigma)
    theta, covariance, _ = weighted_fit(differences, row, won, counts * weight, ridge, group)
    return Fit(theta, covariance, weight, trust, residual)


def weighted_fit(
    differences: Rows | Pairs, row: Indices, won: Vector, counted: Vector, ridge: float | None, group: Codes | None
) -> tuple[Vector, Matrix, int]:
    """Estimate θ from votes that count ``counted`` (n,); return θ (d,), its covariance (d, d) and Newton steps."""
    totals, wins = (sums(row, len(differences), values) for values in (counted, counted * won))
    with one_thread():
        theta, steps, ridge = differences.estimate(totals, wins, ridge)
        return theta, sandwich(differences, theta, row, won, counted, ridge=ridge, group=group), steps


def one_thread() -> AbstractContextManager[object]:
    """Limit BLAS to one thread: on matrices this small, threads only wait for each other."""
    return threadpool_limits(1, user_api="blas")  # type: ignore[no-any-return]


def vote_weights(
    differences: Rows | Pairs, row: Indices, counts: Vector, form: Weights, trust: float, sigma: Matrix
) -> tuple[Vector, float]:
    """Weight the votes; return w (n,) and the residual of a fixed point (0 for other forms).

    ``sigma`` (d, d) is Σ before these votes; the sequential form updates it in place.
    """
    if form not in get_args(Weights):
        raise unknown_name("kind of weights", str(form), get_args(Weights))
    if form == "none" or math.isinf(trust):
        return np.ones(len(row)), 0.0
    with one_thread():
        if form == "sequential":
            return differences.in_order(row, counts, trust, sigma), 0.0
        weights, residual = fixed_point(differences, sums(row, len(differences), counts), trust, sigma)
        return weights[row], residual


def trust_for(lies: float | None, votes: float, dimension: int) -> float:
    """Return α = √d/C for C = ``lies``, by default √n."""
    if lies is not None and not lies >= 0:
        raise BadInputError(f"lies must be a number ≥ 0, not {lies!r}.")
    return rcdb_trust(dimension, math.sqrt(votes) if lies is None else lies, kappa=1.0)


def fixed_point(differences: Rows | Pairs, counts: Vector, trust: float, sigma: Matrix) -> tuple[Vector, float]:
    """Solve w = min(1, α/‖φ‖_Σ(w)⁻¹) for rows with ``counts`` (r,) votes, where Σ(0) = ``sigma`` (d, d).

    Returns w (r,) and a bound on max |log w − log w*| (see the module's docstring).

    >>> w, residual = fixed_point(Rows(np.array([[1.0]])), np.array([100.0]), 0.05, np.array([[1e-9]]))
    >>> w.round(6).tolist(), residual < 1e-7  # w = α²n
    ([0.25], True)
    """
    logs, last, is_faster = np.zeros(len(differences)), None, True
    for _ in range(_MOST_ITERATIONS):
        widths = differences.widths(sigma + differences.information(counts * np.exp(logs)))
        image = -np.log(np.maximum(widths / trust, 1.0))
        step = image - logs
        residual = float(np.abs(step).max(initial=0.0))
        if residual <= _TOLERANCE:
            return np.exp(image), residual
        logs = image
        if last is not None:
            last_image, last_step, last_residual = last
            is_faster = is_faster and residual < last_residual  # otherwise plain steps, which always converge
            if is_faster:  # a secant through the last two steps halves the iterations
                change = step - last_step
                logs = np.minimum(image - (step @ change) / (change @ change) * (image - last_image), 0.0)
        last = image, step, residual
    raise ConvergenceError(
        f"the uncertainty weights did not converge in {_MOST_ITERATIONS} iterations: count all votes equally "
        "(--weights none), or check for extreme features."
    )


def sandwich(
    differences: Rows | Pairs,
    theta: Vector,
    row: Indices,
    won: Vector,
    counted: Vector,
    *,
    ridge: float,
    group: Codes | None = None,
) -> Matrix:
    """Return H⁻¹ (G + λI) H⁻¹, shape (d, d): H is the Hessian at θ, G the scatter of the votes' or groups' gradients.

    ``counted`` (n,) is how much each vote counts, ``won`` (n,) its result for the row's first side. Because the fit
    makes residuals small where votes are few, and 0 where one side won them all, G is never taken below its expectation
    under the model. λI is the prior behind the ridge: directions without votes have variance 1/λ, or 0 without a ridge.
    """
    chance = special.expit(differences.margins(theta))
    slope, prior = chance * (1.0 - chance), ridge * np.eye(len(theta))
    hessian = differences.information(sums(row, len(differences), counted) * slope) + prior
    gradients = counted * (chance[row] - won)
    if group is None:
        scatter = differences.information(sums(row, len(differences), gradients**2))
    else:
        groups = int(group.max(initial=0)) + 1
        by_group = sparse.coo_array((gradients, (group, row)), shape=(groups, len(differences))).tocsr()
        scatter = differences.scatter(by_group) * _small_sample(group)
    expected = differences.information(sums(row, len(differences), counted**2) * slope)
    inverse = linalg.pinvh(hessian)
    covariance = inverse @ (_larger(scatter, expected) + prior) @ inverse
    return 0.5 * (covariance + covariance.T)


def _larger(one: Matrix, other: Matrix) -> Matrix:
    """Return ``other`` plus the positive part of ``one`` − ``other``, (d, d): in no direction less than either."""
    values, vectors = linalg.eigh(one - other)
    return np.asarray(other + (vectors * np.maximum(values, 0.0)) @ vectors.T)


def _small_sample(group: NDArray[np.int32]) -> float:
    """G/(G − 1), because the groups' own votes went into the estimate."""
    count = len(np.unique(group))
    return count / (count - 1.0) if count > 1 else 1.0
