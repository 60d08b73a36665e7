"""The interface of implicit action sets: best action, best pair, random action."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from fairduel.duel import Matrix, Vector

STARTS = 8
"""The number of eigenvectors, and of random actions, from which a search for the best pair starts."""
ROUNDING = 1e-9


@dataclass(frozen=True)
class Pair:
    """Two actions of a set, and how their score compares with the best.

    Args:
        first: The first action, shape (d,).
        second: The second action, shape (d,).
        score: (x_a + x_b)ᵀθ + β‖x_a − x_b‖_Σ⁻¹.
        gap: An upper bound on how much higher any other pair's score is; 0 if this is the best, up to rounding.
    """

    first: Vector
    second: Vector
    score: float
    gap: float


class ActionSet(ABC):
    """A set of actions within the unit ball that is described rather than listed."""

    dimension: int
    """d."""
    count: int | None
    """The number of actions; ``None`` if they cannot be numbered."""

    @abstractmethod
    def best(self, direction: Vector) -> Vector:
        """Return the action, shape (d,), that maximises xᵀ``direction``."""

    @abstractmethod
    def best_pair(
        self, theta: Vector, inverse: Matrix, radius: float, rng: np.random.Generator, *, self_duels: bool = True
    ) -> Pair:
        """Return the pair that maximises (x_a + x_b)ᵀθ + β‖x_a − x_b‖_Σ⁻¹.

        Args:
            theta: θ, shape (d,).
            inverse: Σ⁻¹, shape (d, d).
            radius: β.
            rng: Breaks ties and chooses starting points.
            self_duels: Whether the two actions may be equal.
        """

    @abstractmethod
    def random(self, rng: np.random.Generator) -> Vector:
        """Draw an action uniformly at random."""

    @abstractmethod
    def index(self, action: Vector) -> int:
        """Return an action's index, from 0 to ``count`` − 1; an error if the set cannot be numbered."""

    def indices(self, first: Vector, second: Vector) -> tuple[int, int]:
        """Return the indices of two actions; if they have none, 0 and 1, or 0 twice for equal actions."""
        if self.count is None:
            return 0, int(not np.array_equal(first, second))
        return self.index(first), self.index(second)


def pair_score(first: Vector, second: Vector, theta: Vector, inverse: Matrix, radius: float) -> float:
    """(x_a + x_b)ᵀθ + β‖x_a − x_b‖_Σ⁻¹ of two actions (d,)."""
    difference = first - second
    return float((first + second) @ theta + radius * math.sqrt(max(float(difference @ inverse @ difference), 0.0)))
