"""Sets of actions that are too large to list: where the best pair is found by mathematics instead of search.

Each set answers the paper's argmax over pairs (Algorithm 1, line 6) with a :class:`Pair`, whose ``gap`` says how far
its score can be from the best: 0 where it is exact.

>>> cube = HypercubeSet(20)  # a million actions
>>> pair = cube.best_pair(np.linspace(-1, 1, 20), np.eye(20), 1.0, np.random.default_rng(0))
>>> pair.gap, pair.first.shape
(0.0, (20,))
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from fairduel.actions import checked_actions
from fairduel.checks import whole
from fairduel.duel import Matrix, Vector
from fairduel.errors import BadInputError
from fairduel.selection import symmetric_pair
from fairduel.sign_search import climb, prove

_STARTS = 8
_ROUNDING = 1e-9
_CONVERGED = 1e-6  # where an ascent ends; what it may miss is within the gap


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


class BallSet(ActionSet):
    """All actions with ‖x‖ ≤ 1, for d ≥ 2. Its best pair is exact.

    With Σ⁻¹ = M the score is max over w ∈ βM^½·(unit ball) of ‖θ + w‖ + ‖θ − w‖, attained by a and b along θ ± w. Its
    square is 2(t + p) + 2√((t + p)² − 4q), where t = ‖θ‖², p = ‖w‖², q = (θᵀw)²; so it is at least 2c exactly if
    c·p/2 − q ≥ c²/4 − c·t/2 for some w. The left side's maximum is an eigenvalue, and the largest such c a root.
    """

    count = None

    def __init__(self, dimension: int) -> None:
        self.dimension = whole("the dimension of a ball", dimension, least=2)

    def best(self, direction: Vector) -> Vector:
        """The action along ``direction``; the first axis if that is 0."""
        length = float(np.linalg.norm(direction))
        if length == 0.0:
            return np.asarray(np.eye(1, self.dimension)[0])
        return np.asarray(direction / (length * (1.0 + _ROUNDING)))

    def random(self, rng: np.random.Generator) -> Vector:
        """Uniform on the sphere: inner points inform less."""
        return self.best(rng.standard_normal(self.dimension))

    def index(self, action: Vector) -> int:  # noqa: ARG002
        """Refused: a ball has no numbers."""
        raise BadInputError("the actions of a ball cannot be numbered: take best(agent.estimate) instead.")

    def best_pair(
        self, theta: Vector, inverse: Matrix, radius: float, rng: np.random.Generator, *, self_duels: bool = True
    ) -> Pair:
        """See the class; ties of the eigenvalue are broken at random."""
        if radius == 0.0 and self_duels:
            best = self.best(theta)
            return Pair(best, best, _score(best, best, theta, inverse, 0.0), 0.0)
        values, vectors = np.linalg.eigh(inverse)
        spread = max(radius, _ROUNDING) * np.sqrt(np.maximum(values, 0.0))  # w = spread · v in the eigenbasis
        # Which pair is best does not change with the scale of θ and w together: 1 makes ties a matter of rounding.
        scale = math.sqrt(float(theta @ theta) + float(spread[-1] ** 2)) or 1.0
        spread, centre = spread / scale, vectors.T @ theta / scale
        along = spread * centre  # θᵀw = alongᵀv
        squared = float(centre @ centre)

        def form(c: float) -> Matrix:
            return np.asarray(0.5 * c * np.diag(spread**2) - np.outer(along, along))

        def excess(c: float) -> float:
            return float(np.linalg.eigvalsh(form(c))[-1] - c * c / 4.0 + c * squared / 2.0)

        # q = 0 would give c = 2(t + p); w along the longest axis gives a value that can be had.
        longest = float(spread[-1] ** 2)
        high = 2.0 * (squared + longest) * (1.0 + 1e-6)
        low = squared + longest + math.sqrt(max((squared + longest) ** 2 - 4.0 * along[-1] ** 2, 0.0))
        c = brentq(excess, low * (1.0 - 1e-6), high, xtol=1e-14 * high) if excess(high) < 0.0 else high
        eigenvalues, eigenvectors = np.linalg.eigh(form(c))
        top = eigenvectors[:, eigenvalues >= eigenvalues[-1] - _ROUNDING]
        chosen = top @ rng.standard_normal(top.shape[1])
        offset = vectors @ (spread * chosen / np.linalg.norm(chosen))
        first, second = self.best(theta / scale + offset), self.best(theta / scale - offset)
        return Pair(first, second, _score(first, second, theta, inverse, radius), 0.0)


class HypercubeSet(ActionSet):
    """All 2^d vertices of {±1/√d}^d, in the order of :func:`fairduel.actions.hypercube`, never listed.

    The best pair is exact if branch and bound (:mod:`fairduel.sign_search`) ends within ``nodes`` steps; else the gap
    says what may be missing.
    """

    def __init__(self, dimension: int, nodes: int = 1_000_000) -> None:
        self.dimension = whole("the dimension of a hypercube", dimension, least=1)
        self.nodes = whole("nodes", nodes)
        self.count = 2**self.dimension
        self._side = 1.0 / math.sqrt(self.dimension)

    def best(self, direction: Vector) -> Vector:
        """The vertex with the signs of ``direction``."""
        return np.where(direction < 0.0, -self._side, self._side)

    def random(self, rng: np.random.Generator) -> Vector:
        """A vertex by d coins."""
        return np.where(rng.random(self.dimension) < 0.5, -self._side, self._side)

    def index(self, action: Vector) -> int:
        """The signs read as a binary number."""
        return int("".join("1" if value > 0.0 else "0" for value in action), 2)

    def best_pair(
        self, theta: Vector, inverse: Matrix, radius: float, rng: np.random.Generator, *, self_duels: bool = True
    ) -> Pair:
        """Climb from the eigenvectors and from random vertices, then prove."""
        cost = np.abs(theta)
        matrix = np.ascontiguousarray(inverse)
        starts = [np.where(v < 0.0, -1.0, 1.0) for v in np.linalg.eigh(matrix)[1].T[::-1][:_STARTS]]
        starts += [np.where(rng.random(self.dimension) < 0.5, -1.0, 1.0) for _ in range(_STARTS)]
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
            gap = min(gap, _ball_gap(theta, inverse, radius, rng, 2.0 * self._side * found))
        return Pair(first, second, 2.0 * self._side * found, gap)


class ProductSet(ActionSet):
    """One choice from each part: x = (x_1, …, x_m)/√m, where a part is a set or a list of actions (K, d).

    The pair is found by alternating ascent from several starts: given the direction u = M(a − b)/‖a − b‖_M, the best a
    maximises aᵀ(θ + βu), each part by itself, and the best b bᵀ(θ − βu); no step lowers the score. The gap is to the
    smaller of two bounds: the sum of the parts' own best pairs (‖Σ_j z_j‖ ≤ Σ_j ‖z_j‖), and the ball's.
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
        """The best of each part."""
        chosen = [part.best(direction[where]) for part, where in zip(self.parts, self._slices, strict=True)]
        return self._scale * np.concatenate(chosen)

    def random(self, rng: np.random.Generator) -> Vector:
        """Each part at random."""
        return self._scale * np.concatenate([part.random(rng) for part in self.parts])

    def index(self, action: Vector) -> int:
        """The parts' numbers as digits, the first part's the highest."""
        number = 0
        for part, where in zip(self.parts, self._slices, strict=True):
            digit = part.index(action[where] / self._scale)
            number = number * (part.count or 1) + digit
        return number

    def best_pair(
        self, theta: Vector, inverse: Matrix, radius: float, rng: np.random.Generator, *, self_duels: bool = True
    ) -> Pair:
        """See the class."""
        own = [self._own_pair(j, theta, inverse, radius, rng, self_duels=True) for j in range(len(self.parts))]
        starts = [(self._joined(own, 0), self._joined(own, 1)), (self.best(theta), self.best(theta))]
        axes = np.linalg.eigh(inverse)[1].T[::-1][:_STARTS]
        starts += [(self.best(axis), self.best(-axis)) for axis in axes]
        starts += [(self.random(rng), self.random(rng)) for _ in range(_STARTS)]
        found = [self._ascend(a, b, theta, inverse, radius) for a, b in starts]
        if not self_duels:
            found = [pair for pair in found if not np.array_equal(pair[0], pair[1])] or self._distinct(
                theta, inverse, radius, rng
            )
        first, second = max(found, key=lambda pair: _score(pair[0], pair[1], theta, inverse, radius))
        score = _score(first, second, theta, inverse, radius)
        gap = max(sum(pair.score + pair.gap for pair in own) - score, 0.0)
        gap = min(gap, _ball_gap(theta, inverse, radius, rng, score))
        return Pair(first, second, score, gap if gap > _ROUNDING else 0.0)

    def _own_pair(
        self, j: int, theta: Vector, inverse: Matrix, radius: float, rng: np.random.Generator, *, self_duels: bool
    ) -> Pair:
        """The best pair of part j as if the others were not there."""
        where, scale = self._slices[j], self._scale
        matrix = np.ascontiguousarray(inverse[where, where])
        return self.parts[j].best_pair(scale * theta[where], scale**2 * matrix, radius, rng, self_duels=self_duels)

    def _joined(self, own: Sequence[Pair], side: int) -> Vector:
        return self._scale * np.concatenate([(pair.first, pair.second)[side] for pair in own])

    def _ascend(
        self, first: Vector, second: Vector, theta: Vector, inverse: Matrix, radius: float
    ) -> tuple[Vector, Vector]:
        score = _score(first, second, theta, inverse, radius)
        while True:
            image = inverse @ (first - second)
            width = math.sqrt(max(float((first - second) @ image), 0.0))
            if width == 0.0:
                return first, second
            pull = radius / width * image
            first, second = self.best(theta + pull), self.best(theta - pull)
            before, score = score, _score(first, second, theta, inverse, radius)
            if score <= before + _CONVERGED * (1.0 + abs(before)):
                return first, second

    def _distinct(
        self, theta: Vector, inverse: Matrix, radius: float, rng: np.random.Generator
    ) -> list[tuple[Vector, Vector]]:
        """The best of each part, but for one in which the two differ."""
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
            shape = ()  # rows of several lengths, which the check tells
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
        a, b = symmetric_pair(self._actions, np.ascontiguousarray(theta), inverse, radius, self_duels, rng.random())
        first, second = self._actions[a], self._actions[b]
        return Pair(first, second, _score(first, second, theta, inverse, radius), 0.0)


def _score(first: Vector, second: Vector, theta: Vector, inverse: Matrix, radius: float) -> float:
    difference = first - second
    return float((first + second) @ theta + radius * math.sqrt(max(float(difference @ inverse @ difference), 0.0)))


def _ball_gap(theta: Vector, inverse: Matrix, radius: float, rng: np.random.Generator, score: float) -> float:
    """How far ``score`` is from the ball's best, which no set within the ball exceeds."""
    if len(theta) == 1:
        return math.inf
    ball = BallSet(len(theta)).best_pair(theta, inverse, radius, rng)
    return max(ball.score * (1.0 + 4.0 * _ROUNDING) - score, 0.0)
