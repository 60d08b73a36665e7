"""Products of action sets."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from fairduel.action_sets.ball import ball_gap
from fairduel.action_sets.listed import ROUNDING, STARTS, ActionSet, Pair, checked_actions, pair_score
from fairduel.core.selection import symmetric_pair, view_by
from fairduel.duel import Matrix, Vector
from fairduel.errors import BadInputError

_CONVERGED = 1e-6  # an ascent stops at this relative gain; the gap covers the rest


class ProductSet(ActionSet):
    """One choice from each part: x = (x_1, …, x_m)/√m, where a part is a set or a list of actions (K, d).

    The pair is found by alternating ascent from several starts: given the direction u = M(a − b)/‖a − b‖_M, the best a
    maximises aᵀ(θ + βu), each part by itself, and the best b bᵀ(θ − βu); no step lowers the score. The gap is to the
    smaller of two bounds: the sum of the parts' own best pairs (‖Σ_j z_j‖ ≤ Σ_j ‖z_j‖), and the ball's.

    Args:
        parts: The sets or lists of actions to choose from.
    """

    def __init__(self, parts: Sequence["ActionSet | ArrayLike"]) -> None:
        if len(parts) == 0:
            raise BadInputError("a product of sets needs at least one part.")
        self.parts = [part if isinstance(part, ActionSet) else _ListedSet(part) for part in parts]
        self.dimension = sum(part.dimension for part in self.parts)
        counts = [part.count for part in self.parts]
        self.count = None if None in counts else math.prod(count for count in counts if count is not None)
        self._scale = 1.0 / math.sqrt(len(self.parts))
        ends = np.cumsum([part.dimension for part in self.parts])
        self._slices = [slice(int(end) - part.dimension, int(end)) for end, part in zip(ends, self.parts, strict=True)]

    def best(self, direction: Vector) -> Vector:
        """Return the best action of each part."""
        chosen = [part.best(direction[where]) for part, where in zip(self.parts, self._slices, strict=True)]
        return self._scale * np.concatenate(chosen)

    def random(self, rng: np.random.Generator) -> Vector:
        """Draw each part at random."""
        return self._scale * np.concatenate([part.random(rng) for part in self.parts])

    def index(self, action: Vector) -> int:
        """Return the parts' indices read as digits, the first part's the most significant."""
        number = 0
        for part, where in zip(self.parts, self._slices, strict=True):
            digit = part.index(action[where] / self._scale)
            number = number * (part.count or 1) + digit
        return number

    def best_pair(
        self, theta: Vector, inverse: Matrix, radius: float, rng: np.random.Generator, *, self_duels: bool = True
    ) -> Pair:
        """Return a good pair and its gap, as the class explains."""
        own = [self._own_pair(j, theta, inverse, radius, rng, self_duels=True) for j in range(len(self.parts))]
        starts = [(self._joined(own, 0), self._joined(own, 1)), (self.best(theta), self.best(theta))]
        axes = np.linalg.eigh(inverse)[1].T[::-1][:STARTS]
        starts += [(self.best(axis), self.best(-axis)) for axis in axes]
        starts += [(self.random(rng), self.random(rng)) for _ in range(STARTS)]
        found = [self._ascend(a, b, theta, inverse, radius) for a, b in starts]
        if not self_duels:
            found = [pair for pair in found if not np.array_equal(pair[0], pair[1])] or self._distinct(
                theta, inverse, radius, rng
            )
        first, second = max(found, key=lambda pair: pair_score(pair[0], pair[1], theta, inverse, radius))
        score = pair_score(first, second, theta, inverse, radius)
        gap = max(sum(pair.score + pair.gap for pair in own) - score, 0.0)
        gap = min(gap, ball_gap(theta, inverse, radius, rng, score))
        return Pair(first, second, score, gap if gap > ROUNDING else 0.0)

    def _own_pair(
        self, j: int, theta: Vector, inverse: Matrix, radius: float, rng: np.random.Generator, *, self_duels: bool
    ) -> Pair:
        """The best pair of part j, ignoring the other parts."""
        where, scale = self._slices[j], self._scale
        matrix = np.ascontiguousarray(inverse[where, where])
        return self.parts[j].best_pair(scale * theta[where], scale**2 * matrix, radius, rng, self_duels=self_duels)

    def _joined(self, own: Sequence[Pair], side: int) -> Vector:
        return self._scale * np.concatenate([(pair.first, pair.second)[side] for pair in own])

    def _ascend(
        self, first: Vector, second: Vector, theta: Vector, inverse: Matrix, radius: float
    ) -> tuple[Vector, Vector]:
        score = pair_score(first, second, theta, inverse, radius)
        while True:
            image = inverse @ (first - second)
            width = math.sqrt(max(float((first - second) @ image), 0.0))
            if width == 0.0:
                return first, second
            pull = radius / width * image
            first, second = self.best(theta + pull), self.best(theta - pull)
            before, score = score, pair_score(first, second, theta, inverse, radius)
            if score <= before + _CONVERGED * (1.0 + abs(before)):
                return first, second

    def _distinct(
        self, theta: Vector, inverse: Matrix, radius: float, rng: np.random.Generator
    ) -> list[tuple[Vector, Vector]]:
        """Pairs that take the best action of each part, except for one part in which they differ."""
        pairs = []
        for j, where in enumerate(self._slices):
            pair = self._own_pair(j, theta, inverse, radius, rng, self_duels=False)
            first, second = self.best(theta), self.best(theta)
            first[where], second[where] = self._scale * pair.first, self._scale * pair.second
            pairs.append((first, second))
        return pairs


class _ListedSet(ActionSet):
    """A list of actions as a part of a product."""

    def __init__(self, actions: ArrayLike) -> None:
        try:
            shape = np.shape(actions)
        except ValueError:
            shape = ()  # ragged rows, reported by the check below
        self._actions = checked_actions(actions, shape[-1] if shape else 0).copy()
        self.count, self.dimension = self._actions.shape

    def best(self, direction: Vector) -> Vector:
        return np.asarray(self._actions[int(np.argmax(self._actions @ direction))])

    def random(self, rng: np.random.Generator) -> Vector:
        return np.asarray(self._actions[rng.integers(len(self._actions))])

    def index(self, action: Vector) -> int:
        return int(np.argmin(np.abs(self._actions - action).max(axis=1)))

    def best_pair(
        self, theta: Vector, inverse: Matrix, radius: float, rng: np.random.Generator, *, self_duels: bool = True
    ) -> Pair:
        seen = view_by(inverse, self._actions, np.ascontiguousarray(theta))
        a, b = symmetric_pair(seen, radius, self_duels, rng.random())
        first, second = self._actions[a], self._actions[b]
        return Pair(first, second, pair_score(first, second, theta, inverse, radius), 0.0)
