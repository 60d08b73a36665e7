r"""The robust fit: weights and estimate of many votes at once.

Votes get the paper's weight w = min(1, α/‖φ‖_Σ⁻¹) (eq. weight): a vote counts less where little else is known, because
a false vote would move the estimate most there. In the paper Σ holds the votes before this one. Here
Σ(w) = λI + Σ_i s_i w_i φ_i φ_iᵀ holds all votes, and w satisfies eq. (weight) for Σ(w) itself. There is exactly one
such w. Write T(w)_i = min(1, α/‖φ_i‖_Σ(w)⁻¹). More weight means more information, so T is increasing; and
Σ(cw) ⪰ cΣ(w) for 0 < c < 1, so T(cw) ≥ √c T(w). Hence T is a contraction in D(u, v) = max_i |log u_i/v_i|:
D(Tu, Tv) ≤ ½ D(u, v). Iterating T converges from any start, and D(Tw, w*) ≤ D(w, Tw): the last step bounds the
remaining error and is reported as ``residual``.

α = √d/C guards against C false votes. If C is unknown, the paper takes C̄ = √n; then α = √(d/n), the root mean square
of the widths when all weights are 1 (Σ_i ‖φ_i‖²_Σ⁻¹ ≤ d), and votes wider than that count less.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from fairduel.core.blas import one_thread
from fairduel.core.radius import rcdb_trust
from fairduel.duel import Matrix, Vector
from fairduel.errors import BadInputError, ConvergenceError, unknown_name
from fairduel.votes.ranking.bradley_terry import TINY_RIDGE
from fairduel.votes.ranking.design_matrix import Differences
from fairduel.votes.ranking.uncertainty import ShrunkenFit, shrunken_fit
from fairduel.votes.votes import Codes, Indices, sums

Weights = Literal["none", "fixed-point"]
_TOLERANCE = 1e-8  # of a fixed point, in D(w, w*)
_MOST_ITERATIONS = 200


@dataclass(frozen=True, eq=False)
class Fit(ShrunkenFit):
    """An estimate from weighted votes."""

    weights: Vector
    """w of each vote, shape (n,)."""
    trust: float
    """α; ∞ if every weight is 1."""
    residual: float
    """Bound on max |log w − log w*|, the distance to the exact fixed point."""


def robust_fit(
    differences: Differences,
    row: Indices,
    won: Vector,
    counts: Vector,
    *,
    weights: Weights = "none",
    lies: float | None = None,
    ridge: float | None = None,
    groups: Mapping[str, Codes] | None = None,
    reliability: Vector | None = None,
) -> Fit:
    """Weight n votes and fit them with :func:`~fairduel.votes.ranking.uncertainty.shrunken_fit`, which see.

    ``counts`` (n,) are the frequencies. C is ``lies``, by default √n with n the sum of ``counts``. ``reliability`` (n,)
    multiplies the weights.

    >>> from fairduel.votes.ranking.design_matrix import Pairs
    >>> pairs = Pairs(np.array([0], np.int32), np.array([1], np.int32), 2)
    >>> fit = robust_fit(pairs, np.zeros(4, np.int64), np.array([1.0, 1, 1, 0]), np.ones(4), ridge=0.0)
    >>> (fit.theta[0] - fit.theta[1]).round(6) == np.log(3.0).round(6)
    np.True_
    """
    weight, trust, residual = vote_weights(differences, row, counts, weights, lies=lies, ridge=ridge)
    if reliability is not None:
        weight = weight * reliability
    with one_thread():
        fit = shrunken_fit(differences, row, won, counts, weight, ridge=ridge, groups=groups)
    return Fit(**vars(fit), weights=weight, trust=trust, residual=residual)


def vote_weights(
    differences: Differences, row: Indices, counts: Vector, form: Weights, *, lies: float | None, ridge: float | None
) -> tuple[Vector, float, float]:
    """Weight the votes; return w (n,), α and the residual of the fixed point."""
    if form not in get_args(Weights):
        raise unknown_name("kind of weights", str(form), get_args(Weights))
    trust = math.inf if form == "none" else trust_for(lies, float(counts.sum()), differences.dimension)
    if math.isinf(trust):
        return np.ones(len(row)), trust, 0.0
    sigma = (ridge or TINY_RIDGE) * np.eye(differences.dimension)
    with one_thread():
        weights, residual = fixed_point(differences, sums(row, len(differences), counts), trust, sigma)
        return weights[row], trust, residual


def trust_for(lies: float | None, votes: float, dimension: int) -> float:
    """Return α = √d/C for C = ``lies``, by default √n."""
    if lies is not None and not lies >= 0:
        raise BadInputError(f"lies must be a number ≥ 0, not {lies!r}.")
    return rcdb_trust(dimension, math.sqrt(votes) if lies is None else lies, kappa=1.0)


def fixed_point(differences: Differences, counts: Vector, trust: float, sigma: Matrix) -> tuple[Vector, float]:
    """Solve w = min(1, α/‖φ‖_Σ(w)⁻¹) for rows with ``counts`` (r,) votes, where Σ(0) = ``sigma`` (d, d).

    Returns w (r,) and a bound on max |log w − log w*| (see the module's docstring).

    >>> from fairduel.votes.ranking.design_matrix import Rows
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
        "(weights='none'), or check for extreme features."
    )
