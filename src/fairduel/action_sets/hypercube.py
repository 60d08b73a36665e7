"""The vertices of a hypercube, for any dimension."""

import math

import numpy as np

from fairduel.action_sets.ball import ball_gap
from fairduel.action_sets.base import STARTS, ActionSet, Pair
from fairduel.action_sets.sign_search import climb, prove
from fairduel.checks import integer
from fairduel.duel import Matrix, Vector


class HypercubeSet(ActionSet):
    """All 2^d vertices of {±1/√d}^d, in the order of :func:`fairduel.action_sets.listed.hypercube`.

    The best pair is exact if branch and bound (:mod:`fairduel.action_sets.sign_search`) finishes within ``nodes``
    steps; otherwise its gap bounds the error.

    Args:
        dimension: d.
        nodes: The maximum number of branch-and-bound nodes per pair.
    """

    def __init__(self, dimension: int, nodes: int = 1_000_000) -> None:
        self.dimension = integer("the dimension of a hypercube", dimension, least=1)
        self.nodes = integer("nodes", nodes)
        self.count = 2**self.dimension
        self._side = 1.0 / math.sqrt(self.dimension)

    def best(self, direction: Vector) -> Vector:
        """Return the vertex with the signs of ``direction``."""
        return np.where(direction < 0.0, -self._side, self._side)

    def random(self, rng: np.random.Generator) -> Vector:
        """Draw a vertex uniformly at random."""
        return np.where(rng.random(self.dimension) < 0.5, -self._side, self._side)

    def index(self, action: Vector) -> int:
        """Return the signs read as a binary number."""
        return int("".join("1" if value > 0.0 else "0" for value in action), 2)

    def best_pair(
        self, theta: Vector, inverse: Matrix, radius: float, rng: np.random.Generator, *, self_duels: bool = True
    ) -> Pair:
        """Return the best pair, by local search followed by branch and bound."""
        cost = np.abs(theta)
        matrix = np.ascontiguousarray(inverse)
        starts = [np.where(v < 0.0, -1.0, 1.0) for v in np.linalg.eigh(matrix)[1].T[::-1][:STARTS]]
        starts += [np.where(rng.random(self.dimension) < 0.5, -1.0, 1.0) for _ in range(STARTS)]
        starts += [np.zeros(self.dimension)]
        values = [climb(signs, matrix, cost, radius) for signs in starts]
        ranked = [starts[i] for i in np.argsort(values)[::-1] if self_duels or starts[i].any()]
        signs = ranked[0] if ranked else np.eye(1, self.dimension)[0]
        found, highest = prove(signs, matrix, cost, radius, self_duels, self.nodes)
        shared = self.best(theta)
        swap = 1.0 if rng.random() < 0.5 else -1.0
        first = np.where(signs == 0.0, shared, swap * self._side * signs)
        second = np.where(signs == 0.0, shared, -swap * self._side * signs)
        gap = 2.0 * self._side * (highest - found)
        if gap > 0.0:
            gap = min(gap, ball_gap(theta, inverse, radius, rng, 2.0 * self._side * found))
        return Pair(first, second, 2.0 * self._side * found, gap)
