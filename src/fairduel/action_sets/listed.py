"""Listed action sets, and the interface of implicit ones: best action, best pair, random action."""

import itertools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fairduel.core.compiling import compiled
from fairduel.core.information import may_keep_gram
from fairduel.duel import Matrix, Vector
from fairduel.errors import BadInputError

_LARGEST_SQUARED_NORM = (1.0 + 1e-9) ** 2


@compiled
def _first_bad_row(actions: Matrix) -> int:
    """Index of the first row that is not finite or longer than 1, or −1."""
    for i in range(actions.shape[0]):
        squared = 0.0
        for j in range(actions.shape[1]):
            squared += actions[i, j] * actions[i, j]
        if not squared <= _LARGEST_SQUARED_NORM:
            return i
    return -1


def checked_actions(actions: ArrayLike, dimension: int, *, single: bool = False) -> Matrix:
    """Return ``actions`` as a float array (K, d) after checking Assumption 1: finite, ‖x‖ ≤ 1, K ≥ 2.

    Args:
        actions: One row of features per action.
        dimension: d.
        single: Keep single precision in high dimension, where products with Σ⁻¹ dominate a round.

    Raises:
        BadInputError: The actions do not fit.
    """
    try:
        given = np.asarray(actions)
    except ValueError:
        raise BadInputError("actions must be numbers, one row of features per action, all of one length.") from None
    if given.dtype.kind not in "fiu":
        raise BadInputError(f"actions must be real numbers, one row of features per action, not {given.dtype}.")
    kept = single and given.dtype == np.float32 and given.ndim == 2 and may_keep_gram(*given.shape)
    array: Matrix = np.ascontiguousarray(given, dtype=None if kept else np.float64)
    if array.ndim != 2 or array.shape[1] != dimension:
        raise BadInputError(
            f"actions must have shape (K, {dimension}), one row of features per action, not {array.shape}."
        )
    if len(array) < 2:
        raise BadInputError(f"there must be at least two actions, not {len(array)}.")
    if not array.flags.writeable:
        array = array.copy()  # compiled functions are specialised to writable arrays
    bad = _first_bad_row(array)
    if bad >= 0:
        if not np.isfinite(array[bad]).all():
            raise BadInputError(f"action {bad} has a feature that is NaN or infinite.")
        raise BadInputError(
            f"action {bad} has norm {np.linalg.norm(array[bad]):.6g}, but at most 1 is allowed; divide all "
            "features by the largest norm."
        )
    return array


def hypercube(dimension: int) -> Matrix:
    """All vertices of {±1/√d}^d, shape (2^d, d): the action set of the paper's experiments.

    >>> hypercube(2).round(3).tolist()
    [[-0.707, -0.707], [-0.707, 0.707], [0.707, -0.707], [0.707, 0.707]]
    """
    side = 1.0 / math.sqrt(dimension)
    return np.array(list(itertools.product((-side, side), repeat=dimension)))


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
