r"""The robust fit: weights, estimate and covariance of many votes at once.

The weight of a vote is the paper's, w = min(1, α/‖φ‖_Σ⁻¹) (eq. weight): a vote counts less where little else is known,
because there a lie would move the estimate most. Offline it comes in two forms.

*Sequential*: Σ holds the votes before this one, as in the paper (:mod:`fairduel.votes.sequential_weights`).

*Fixed point*: Σ(w) = λI + Σ_i s_i w_i φ_i φ_iᵀ holds all votes, and w is that of eq. (weight) for this very Σ(w). There
is exactly one such w. Write T(w)_i = min(1, α/‖φ_i‖_Σ(w)⁻¹). More weight is more information, so T grows with w; and
Σ(cw) ⪰ cΣ(w) for 0 < c < 1, so T(cw) ≥ √c T(w). Hence in the distance D(u, v) = max_i |log u_i/v_i|, T halves at least:
D(Tu, Tv) ≤ ½ D(u, v). So iterating T converges from anywhere, and D(Tw, w*) ≤ D(w, Tw): the last step that was taken
bounds what is left, and is reported as ``residual``.

α = √d/C guards against C lies. Where nobody knows C, the paper takes C̄ = √n; then α = √(d/n), which is the root mean
square of the widths when all weights are 1 (Σ_i ‖φ_i‖²_Σ⁻¹ ≤ d): votes that are wider than that count less.
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
_CLOSE = 1e-8  # D(w, w*) that a fixed point is good to
_MOST_ROUNDS = 200


@dataclass(frozen=True, eq=False)
class Fit:
    """An estimate with what made it."""

    theta: Vector
    """Shape (d,)."""
    covariance: Matrix
    """Sandwich covariance of θ, shape (d, d): large enough even where the votes do not follow the model."""
    weights: Vector
    """w of each vote, shape (n,)."""
    trust: float
    """α; ∞ where every weight is 1."""
    ridge: float
    """λ of the estimate."""
    steps: int
    """Newton steps."""
    rounds: int
    """Rounds of the fixed-point iteration, or 0."""
    residual: float
    """max |log w − log w*| to the exact fixed point is at most this."""


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
    """Fit n votes: where they are in ``differences``, and from whose side they were won.

    Vote i is on row ``row[i]``, whose first side won ``won[i]`` (1, 0, ½) of it; it counts ``counts[i]`` times. C is
    ``lies``, by default √n for the n votes as they count. ``group`` (n,) says which votes may depend on each other,
    such as those of one voter: the covariance then allows for that. Without ``ridge``, pairs have λ = 0 where that has
    a finite solution.

    >>> pairs = Pairs(np.array([0], np.int32), np.array([1], np.int32), 2)
    >>> fit = robust_fit(pairs, np.zeros(4, np.int64), np.array([1.0, 1, 1, 0]), np.ones(4), weights="none", ridge=None)
    >>> (fit.theta[0] - fit.theta[1]).round(6) == np.log(3.0).round(6)
    np.True_
    """
    trust = math.inf if weights == "none" else trust_for(lies, float(counts.sum()), differences.dimension)
    sigma = (ridge or TINY_RIDGE) * np.eye(differences.dimension)
    weight, rounds, residual = vote_weights(differences, row, counts, weights, trust, sigma)
    theta, covariance, steps, ridge = weighted_fit(differences, row, won, counts * weight, ridge, group)
    return Fit(theta, covariance, weight, trust, ridge, steps=steps, rounds=rounds, residual=residual)


def weighted_fit(
    differences: Rows | Pairs, row: Indices, won: Vector, counted: Vector, ridge: float | None, group: Codes | None
) -> tuple[Vector, Matrix, int, float]:
    """Estimate θ of votes that count ``counted`` (n,): θ (d,), its covariance (d, d), Newton steps and λ."""
    totals, wins = (sums(row, len(differences), values) for values in (counted, counted * won))
    with one_thread():
        theta, steps, ridge = differences.estimate(totals, wins, ridge)
        return theta, sandwich(differences, theta, row, won, counted, ridge=ridge, group=group), steps, ridge


def one_thread() -> AbstractContextManager[object]:
    """BLAS in one thread: on matrices as small as these, its threads would only wait for each other."""
    return threadpool_limits(1, user_api="blas")  # type: ignore[no-any-return]


def vote_weights(
    differences: Rows | Pairs, row: Indices, counts: Vector, form: Weights, trust: float, sigma: Matrix
) -> tuple[Vector, int, float]:
    """Weigh votes; returns w (n,), and the rounds and residual of a fixed point.

    ``sigma`` (d, d) is Σ before any of these votes; the sequential form brings it up to date.
    """
    if form not in get_args(Weights):
        raise unknown_name("form of weights", str(form), get_args(Weights))
    if form == "none" or math.isinf(trust):
        return np.ones(len(row)), 0, 0.0
    with one_thread():
        if form == "sequential":
            return differences.in_order(row, counts, trust, sigma), 0, 0.0
        weights, rounds, residual = fixed_point(differences, sums(row, len(differences), counts), trust, sigma)
        return weights[row], rounds, residual


def trust_for(lies: float | None, votes: float, dimension: int) -> float:
    """α = √d/C for C ``lies``, by default √n."""
    if lies is not None and not lies >= 0:
        raise BadInputError(f"the number of lies must be a number ≥ 0, not {lies!r}.")
    return rcdb_trust(dimension, math.sqrt(votes) if lies is None else lies, kappa=1.0)


def fixed_point(differences: Rows | Pairs, counts: Vector, trust: float, sigma: Matrix) -> tuple[Vector, int, float]:
    """Solve w = min(1, α/‖φ‖_Σ(w)⁻¹) for rows that were voted on ``counts`` (r,) times, where Σ(0) = ``sigma`` (d, d).

    Returns w (r,), the rounds and a bound on max |log w − log w*|; why that is one is said above.

    >>> w, _, residual = fixed_point(Rows(np.array([[1.0]])), np.array([100.0]), 0.05, np.array([[1e-9]]))
    >>> w.round(6).tolist(), residual < 1e-7  # w = α²n
    ([0.25], True)
    """
    logs, last, is_faster = np.zeros(len(differences)), None, True
    for rounds in range(1, _MOST_ROUNDS + 1):
        widths = differences.widths(sigma + differences.information(counts * np.exp(logs)))
        image = -np.log(np.maximum(widths / trust, 1.0))
        step = image - logs
        residual = float(np.abs(step).max(initial=0.0))
        if residual <= _CLOSE:
            return np.exp(image), rounds, residual
        logs = image
        if last is not None:
            last_image, last_step, last_residual = last
            is_faster = is_faster and residual < last_residual  # else plain steps, which converge by themselves
            if is_faster:  # a secant along the last two steps saves half the rounds
                change = step - last_step
                logs = np.minimum(image - (step @ change) / (change @ change) * (image - last_image), 0.0)
        last = image, step, residual
    raise ConvergenceError(f"the weights were not reached in {_MOST_ROUNDS} rounds: a larger ridge helps.")


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
    """H⁻¹ (G + λI) H⁻¹, shape (d, d): H the Hessian at θ, G the scatter of the votes' (or their groups') gradients.

    ``counted`` (n,) is what each vote counts, ``won`` (n,) its result from the row's side. The fit makes residuals
    small where there are few votes, and 0 where one side won them all, so G is nowhere less than the model says. λI is
    the prior that the ridge stands for: what no vote speaks of has its variance 1/λ, or 0 without a ridge.
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
    """``other`` and the positive part of ``one`` − ``other``, (d, d): in no direction less than either."""
    values, vectors = linalg.eigh(one - other)
    return np.asarray(other + (vectors * np.maximum(values, 0.0)) @ vectors.T)


def _small_sample(group: NDArray[np.int32]) -> float:
    """G/(G − 1): groups are compared with an estimate that they made themselves."""
    count = len(np.unique(group))
    return count / (count - 1.0) if count > 1 else 1.0
