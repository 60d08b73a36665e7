"""Tsallis-INF: a distribution over arms from their losses so far, and a draw from it (Zimmert & Seldin 2021)."""

import numpy as np

from fairduel.duel import Vector
from fairduel.errors import ConvergenceError

_TOLERANCE = 1e-13
_MOST_STEPS = 200


def tsallis_distribution(losses: Vector, rate: float) -> Vector:
    """p(k) = 4/(η(L(k) − x))², shape (K,), with the x < min L for which Σp = 1; ``rate`` is η.

    From x = min L − 2/η, where the least loss alone has p = 1, Newton's method comes down to x without passing it,
    because Σp rises with x and is convex.

    >>> tsallis_distribution(np.array([0.0, 0.0]), rate=1.0).round(6).tolist()
    [0.5, 0.5]
    """
    above = losses - losses.min()
    x = -2.0 / rate
    for _ in range(_MOST_STEPS):
        roots = 2.0 / (rate * (above - x))  # √p
        excess = float(roots @ roots) - 1.0
        if excess <= _TOLERANCE:
            return np.asarray(roots * roots)
        x -= excess / (rate * float(np.sum(roots**3)))
    raise ConvergenceError(f"the distribution over arms was not reached: Σp − 1 is still {excess:.2g}.")


def draw(probabilities: Vector, uniform: float) -> int:
    """The arm that one uniform number in [0, 1) picks by these ``probabilities`` (K,)."""
    steps = np.cumsum(probabilities)
    return int(np.searchsorted(steps, uniform * steps[-1], side="right"))
