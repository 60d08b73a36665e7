"""Random draws that several agents share."""

import math

import numpy as np

from fairduel.duel import Vector


def draw(probabilities: Vector, uniform: float) -> int:
    """Return the index that a uniform number in [0, 1) picks by these ``probabilities`` (K,), up to a factor."""
    steps = np.cumsum(probabilities)
    return int(np.searchsorted(steps, uniform * steps[-1], side="right"))


def draw_level(rng: np.random.Generator, levels: int) -> int:
    """Draw level l = 1 … ``levels`` with probability 2^−l; the remainder goes to level 1."""
    level = 1 - math.frexp(rng.random())[1]
    return level if level <= levels else 1
