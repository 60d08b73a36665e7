"""One-pass estimation by online mirror descent, with O(d²) time and memory per round.

After Zhang and Sugiyama (2023) for logistic bandits, with the uncertainty weight w of eq. (weight) on each outcome.
With the curvature H of all earlier outcomes, one outcome (φ, w, o) moves θ to the minimiser over ‖θ‖ ≤ B of

    ⟨g, θ⟩ + ‖θ − θ_t‖²_H̃ / (2η),   g = w [σ(φᵀθ_t) − o] φ,   H̃ = H + η w σ′(φᵀθ_t) φφᵀ,

and then H grows by w σ′(φᵀθ_{t+1}) φφᵀ. (For d ≥ 64, θ is scaled into the ball instead.)
Its price compared with the MLE: θ depends on the order of the outcomes and does not solve eq. (MLE), so the theorems'
radii do not apply; and ‖θ‖ ≤ B always holds.
"""

import math

import numpy as np

from fairduel.core.compiling import compiled
from fairduel.core.information import HIGH_DIMENSION, dot, multiply, rank_one
from fairduel.core.likelihood import solve_by_root
from fairduel.core.links import LinkNumbers, probability_and_slope, slope
from fairduel.duel import Matrix, Vector

STEP = 2.0
"""η; on tuning seeds regret is flat from 2 to 5 (see docs/speed.md). The analysis asks for ½ log 2 + 2B + 1."""


@compiled
def mirror_step(
    theta: Vector,
    curvature: Matrix,
    inverse: Matrix,
    outcomes: int,
    difference: Vector,
    weight: float,
    share: float,
    step: float,
    ball: float,
    link: LinkNumbers,
) -> Vector:
    """Return θ (d,) after one more outcome, ``share`` = o; update H = ``curvature`` and its ``inverse`` in place."""
    p, s = probability_and_slope(link.kind, link.scale, dot(difference, theta))
    image = multiply(inverse, difference)
    # H̃⁻¹φ by Sherman–Morrison; H̃ itself is needed only for a projection.
    image /= 1.0 + step * weight * s * dot(difference, image)
    result = theta - step * weight * (p - share) * image
    norm = math.sqrt(dot(result, result))
    if norm > ball and theta.size >= HIGH_DIMENSION:
        result *= ball / norm  # the projection in H̃'s norm would cost d³
    elif norm > ball:
        tilted = curvature.copy()
        for i in range(theta.size):
            for j in range(theta.size):
                tilted[i, j] += step * weight * s * (difference[i] * difference[j])
        result = _into_ball(result, tilted, ball)
    margin = dot(difference, result)
    gain = weight * slope(link.kind, link.scale, margin)
    rank_one(curvature, inverse, difference, gain, outcomes)
    return result


@compiled
def _into_ball(theta: Vector, metric: Matrix, ball: float) -> Vector:
    """Project θ (d,) onto ‖·‖ ≤ B in the metric M (d, d).

    The projection is (M + μI)⁻¹Mθ for the μ that puts it on the sphere; its norm decreases with μ.
    """
    target = metric @ theta
    low, high = 0.0, np.trace(metric)
    while _norm(_pulled(metric, high, target)) > ball:
        high *= 2.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        if _norm(_pulled(metric, middle, target)) > ball:
            low = middle
        else:
            high = middle
    return _pulled(metric, high, target)


@compiled
def _pulled(metric: Matrix, pull: float, target: Vector) -> Vector:
    """(M + μI)⁻¹v, shape (d,)."""
    shifted = metric.copy()
    for i in range(target.size):
        shifted[i, i] += pull
    return solve_by_root(np.linalg.cholesky(shifted), target)  # type: ignore[arg-type]  # it stays float64


@compiled
def _norm(vector: Vector) -> float:
    return math.sqrt(dot(vector, vector))
