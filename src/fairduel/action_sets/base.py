"""What a set of actions answers that is too large to list: its best action, its best pair, one at random."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from fairduel.duel import Matrix, Vector

STARTS = 8
"""From how many eigenvectors, and from how many random actions, a search for the best pair begins."""
ROUNDING = 1e-9


@dataclass(frozen=True)
class Pair:
    """Two actions, and how good they are among all pairs of their set."""

    first: Vector
    second: Vector
    score: float
    """(x_a + x_b)ᵀθ + β‖x_a − x_b‖_Σ⁻¹."""
    gap: float
    """No other pair has a score higher than this one's by more; 0 if it is the best, up to rounding."""


class ActionSet(ABC):
    """Actions that are described, not listed; all within the unit ball."""

    dimension: int
    """d."""
    count: int | None
    """How many actions there are; ``None`` if they cannot be numbered."""

    @abstractmethod
    def best(self, direction: Vector) -> Vector:
        """argmax of xᵀ``direction``, shape (d,)."""

    @abstractmethod
    def best_pair(
        self, theta: Vector, inverse: Matrix, radius: float, rng: np.random.Generator, *, self_duels: bool = True
    ) -> Pair:
        """argmax over pairs of (x_a + x_b)ᵀθ + β‖x_a − x_b‖, the norm by ``inverse`` (d, d)."""

    @abstractmethod
    def random(self, rng: np.random.Generator) -> Vector:
        """An action, uniformly at random."""

    @abstractmethod
    def index(self, action: Vector) -> int:
        """The number of an action, from 0 to ``count`` − 1; refused by a set that cannot be numbered."""

    def indices(self, first: Vector, second: Vector) -> tuple[int, int]:
        """The numbers of two actions; where there are none 0 and 1, or 0 twice for one action."""
        if self.count is None:
            return 0, int(not np.array_equal(first, second))
        return self.index(first), self.index(second)


def pair_score(first: Vector, second: Vector, theta: Vector, inverse: Matrix, radius: float) -> float:
    """(x_a + x_b)ᵀθ + β‖x_a − x_b‖_Σ⁻¹ of two actions (d,)."""
    difference = first - second
    return float((first + second) @ theta + radius * math.sqrt(max(float(difference @ inverse @ difference), 0.0)))
