"""Tsallis-INF: a distribution over arms from their losses so far (Zimmert & Seldin 2021)."""

import numpy as np

from fairduel.duel import Vector
from fairduel.errors import ConvergenceError

_TOLERANCE = 1e-13
_MAX_STEPS = 200


def tsallis_distribution(losses: Vector, rate: float) -> Vector:
    """Return p(k) = 4/(η(L(k) − x))², shape (K,), with the x < min L for which Σp = 1.

    Newton's method starts from x = min L − 2/η, where the smallest loss alone has p = 1, and decreases to the solution
    without overshooting, because Σp is convex and increasing in x.

    Args:
        losses: L, shape (K,).
        rate: η.

    >>> tsallis_distribution(np.array([0.0, 0.0]), rate=1.0).round(6).tolist()
    [0.5, 0.5]
    """
    above = losses - losses.min()
    x = -2.0 / rate
    for _ in range(_MAX_STEPS):
        roots = 2.0 / (rate * (above - x))  # √p
        excess = float(roots @ roots) - 1.0
        if excess <= _TOLERANCE:
            return np.asarray(roots * roots)
        x -= excess / (rate * float(np.sum(roots**3)))
    raise ConvergenceError(f"the distribution over arms did not converge: Σp − 1 is still {excess:.2g}.")
