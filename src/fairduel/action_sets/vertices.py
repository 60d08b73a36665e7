"""The vertices of a hypercube, for any dimension, and their best pair without listing them.

For a, b ∈ {±s}^d write a − b = 2sε with ε ∈ {−1, 0, 1}^d. Where ε_i = 0 both take the sign of θ_i, so the best pair of
a given ε has the score 2s·f(ε),

    f(ε) = Σ_{i: ε_i = 0} |θ_i| + β √(εᵀMε),    M = Σ⁻¹,

and f(ε) = f(−ε). A local search finds a good ε; branch and bound proves that it is the best, or bounds how far it is
from the best. The bound: if D is diagonal and D − M is positive semidefinite, then with F the fixed coordinates and
h = Mε_F

    εᵀMε ≤ ε_FᵀMε_F + Σ_{j free} |ε_j|(2|h_j| + D_j),

and √y ≤ (y + y₀)/(2√y₀) for every y₀ > 0 leaves a sum over the free j whose terms can be maximised separately.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairduel.action_sets.ball import ball_gap
from fairduel.action_sets.listed import STARTS, ActionSet, Pair
from fairduel.checks import integer
from fairduel.core.compiling import compiled
from fairduel.duel import Matrix, Vector

_TANGENTS = 4  # how often y₀ is updated
_DUAL_STEPS = 15
_EQUAL = 1e-12  # a gain below this is rounding


@compiled
def sign_score(signs: Vector, matrix: Matrix, cost: Vector, radius: float) -> float:
    """f(ε), with ``cost`` |θ|, shape (d,)."""
    quadratic, kept = 0.0, 0.0
    for i in range(signs.size):
        kept += cost[i] * (1.0 - abs(signs[i]))
        for j in range(signs.size):
            quadratic += signs[i] * matrix[i, j] * signs[j]
    return kept + radius * math.sqrt(max(quadratic, 0.0))


@compiled
def climb_signs(signs: Vector, matrix: Matrix, cost: Vector, radius: float) -> float:  # noqa: C901  # two nested moves
    """Change one or two coordinates of ε at a time, in place, as long as f grows; return f."""
    value = sign_score(signs, matrix, cost, radius)
    while True:
        image = matrix @ signs
        quadratic = np.dot(signs, image)
        kept = np.sum(cost * (1.0 - np.abs(signs)))
        best, first, second, new_first, new_second = value + _EQUAL * (1.0 + abs(value)), -1, -1, 0.0, 0.0
        for i in range(signs.size):
            for new in (-1.0, 0.0, 1.0):
                step = new - signs[i]
                if step == 0.0:
                    continue
                q = quadratic + 2.0 * step * image[i] + step * step * matrix[i, i]
                k = kept + cost[i] * (abs(signs[i]) - abs(new))
                score = k + radius * math.sqrt(max(q, 0.0))
                if score > best:
                    best, first, second, new_first = score, i, -1, new
                for j in range(i):
                    for other in (-1.0, 0.0, 1.0):
                        move = other - signs[j]
                        if move == 0.0:
                            continue
                        both = q + 2.0 * move * (image[j] + step * matrix[i, j]) + move * move * matrix[j, j]
                        left = k + cost[j] * (abs(signs[j]) - abs(other))
                        score = left + radius * math.sqrt(max(both, 0.0))
                        if score > best:
                            best, first, second, new_first, new_second = score, i, j, new, other
        if first < 0:
            return value
        signs[first] = new_first
        if second >= 0:
            signs[second] = new_second
        value = sign_score(signs, matrix, cost, radius)


@compiled
def diagonal_over(matrix: Matrix) -> Vector:
    """Return D (d,) with diag(D) − M positive semidefinite and a small sum.

    D = t + λ_max(M − diag t) is valid for every t; a few subgradient steps on its sum improve t = 0.
    """
    d = len(matrix)
    shift = np.zeros(d)
    best, smallest = np.zeros(d), np.inf
    step = np.trace(matrix) / (2.0 * d)
    for number in range(_DUAL_STEPS):
        values, vectors = np.linalg.eigh(matrix - np.diag(shift))
        # Rounding of the eigenvalue must not make D too small.
        over = shift + values[-1] + 1e-12 * abs(values[-1])
        if np.sum(over) < smallest:
            best, smallest = over, np.sum(over)
        slope = 1.0 - d * vectors[:, -1] ** 2
        length = math.sqrt(np.dot(slope, slope))
        if length < 1e-9:
            break
        shift = shift - step / (1.0 + number) ** 0.6 / length * slope
    return best


class _Problem(NamedTuple):
    """The parameters of f: M (d, d), |θ| (d,) and β."""

    matrix: Matrix
    cost: Vector
    radius: float


class _Tree(NamedTuple):
    """The state of the depth-first search: at depth k the first k coordinates of ``order`` are fixed."""

    order: NDArray[np.int64]
    """The order in which coordinates are fixed, shape (d,)."""
    over: Matrix
    """A diagonal over M restricted to the coordinates that are free at each depth, shape (d + 1, d)."""
    trial: Vector
    """ε_F, 0 where it is free, shape (d,)."""
    image: Matrix
    """Mε_F at each depth, shape (d + 1, d)."""
    quadratic: Vector
    """ε_FᵀMε_F at each depth, shape (d + 1,)."""
    kept: Vector
    """Cost of the fixed coordinates that are 0 at each depth, shape (d + 1,)."""
    values: Matrix
    """The three values of the coordinate fixed next, the most promising first, for each depth, shape (d, 3)."""
    bounds: Matrix
    """An upper bound on f for each of these, shape (d, 3)."""
    tried: NDArray[np.int64]
    """How many of these were tried, shape (d,); −1 before they are bounded."""


@compiled
def _bound(
    problem: _Problem, over: Vector, free: NDArray[np.int64], image: Vector, quadratic: float, kept: float
) -> float:
    """An upper bound on f over all values of the free coordinates."""
    lowest, tangent = np.inf, max(quadratic, 0.0) + 1.0
    for _ in range(_TANGENTS):
        half = problem.radius / (2.0 * math.sqrt(tangent))
        total, reached = kept + half * (max(quadratic, 0.0) + tangent), max(quadratic, 0.0)
        for j in free:
            gain = 2.0 * abs(image[j]) + over[j]
            if half * gain > problem.cost[j]:
                total += half * gain
                reached += gain
            else:
                total += problem.cost[j]
        lowest = min(lowest, total)
        if reached <= 0.0 or abs(reached - tangent) <= 1e-9 * tangent:
            break
        tangent = reached
    return lowest


@compiled
def _root(matrix: Matrix) -> _Tree:
    """Return the search tree before any coordinate is fixed."""
    d = len(matrix)
    order = np.argsort(-np.diag(matrix))
    over = np.zeros((d + 1, d))
    for depth in range(d):
        free = order[depth:]
        over[depth][free] = diagonal_over(matrix[free][:, free])
        if depth > 0 and np.sum(over[depth][free]) > np.sum(over[depth - 1][free]):
            over[depth][free] = over[depth - 1][free]
    image, values = np.zeros((d + 1, d)), np.zeros((d, 3))
    return _Tree(
        order, over, np.zeros(d), image, np.zeros(d + 1), np.zeros(d + 1), values, values.copy(), np.full(d, -1)
    )


@compiled
def _branch(tree: _Tree, depth: int, problem: _Problem, self_duels: bool) -> int:
    """Bound f for each value of the next coordinate, in place; return the number of bounds computed."""
    j, d, looked = tree.order[depth], len(tree.order), 0
    is_first = not np.any(tree.trial[tree.order[:depth]])  # f(ε) = f(−ε), so the first sign is +
    values, bounds = np.array([1.0, 0.0, -1.0]), np.full(3, -np.inf)
    for number, value in enumerate(values):
        if value < 0.0 and is_first:
            continue
        looked += 1
        q = tree.quadratic[depth] + 2.0 * value * tree.image[depth, j] + value * value * problem.matrix[j, j]
        k = tree.kept[depth] + problem.cost[j] * (1.0 - abs(value))
        if depth + 1 < d:
            below = tree.image[depth] + value * problem.matrix[j]
            bounds[number] = _bound(problem, tree.over[depth + 1], tree.order[depth + 1 :], below, q, k)
        elif self_duels or value != 0.0 or not is_first:
            bounds[number] = k + problem.radius * math.sqrt(max(q, 0.0))
    ranks = np.argsort(-bounds)
    tree.values[depth], tree.bounds[depth] = values[ranks], bounds[ranks]
    tree.tried[depth] = 0
    return looked


@compiled
def prove(
    signs: Vector, matrix: Matrix, cost: Vector, radius: float, self_duels: bool, nodes: int
) -> tuple[float, float]:
    """Improve ε, in place, by branch and bound; return f(ε) and an upper bound on f.

    The search is depth first, the most promising value first, and stops when it is complete or after ``nodes`` bounds.
    Without ``self_duels``, ε = 0 is excluded.
    """
    best = sign_score(signs, matrix, cost, radius)
    if nodes == 0:
        return best, np.inf
    problem, tree = _Problem(matrix, cost, radius), _root(matrix)
    looked, depth = 0, 0
    while depth >= 0:
        if tree.tried[depth] < 0:
            looked += _branch(tree, depth, problem, self_duels)
        j, number = tree.order[depth], tree.tried[depth]
        if number == 3 or tree.bounds[depth, number] <= best + _EQUAL * (1.0 + abs(best)):
            tree.trial[j] = 0.0
            tree.tried[depth] = -1
            depth -= 1
            continue
        if looked > nodes:
            highest = best
            for level in range(depth + 1):
                if tree.tried[level] < 3:
                    highest = max(highest, tree.bounds[level, tree.tried[level]])
            return best, highest
        tree.tried[depth] += 1
        tree.trial[j] = tree.values[depth, number]
        if depth + 1 == len(tree.order):
            best = tree.bounds[depth, number]
            signs[:] = tree.trial
            continue
        tree.image[depth + 1] = tree.image[depth] + tree.trial[j] * matrix[j]
        change = 2.0 * tree.trial[j] * tree.image[depth, j]
        tree.quadratic[depth + 1] = tree.quadratic[depth] + change + tree.trial[j] ** 2 * matrix[j, j]
        tree.kept[depth + 1] = tree.kept[depth] + cost[j] * (1.0 - abs(tree.trial[j]))
        depth += 1
    return best, best


class HypercubeSet(ActionSet):
    """All 2^d vertices of {±1/√d}^d, in the order of :func:`fairduel.action_sets.listed.hypercube`.

    The best pair is exact if branch and bound finishes within ``nodes``
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
        values = [climb_signs(signs, matrix, cost, radius) for signs in starts]
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
