"""The best pair of a hypercube, without listing it.

For a, b ∈ {±s}^d write a − b = 2sε with ε ∈ {−1, 0, 1}^d. Where ε_i = 0 both take the sign of θ_i, so the best pair of
a given ε has the score 2s·f(ε),

    f(ε) = Σ_{i: ε_i = 0} |θ_i| + β √(εᵀMε),    M = Σ⁻¹,

and f(ε) = f(−ε). A local search finds a good ε, and branch and bound proves it best, or says by how much at most it is
not. The bound: if D is diagonal and D − M is positive semidefinite, then with F the fixed coordinates and h = Mε_F

    εᵀMε ≤ ε_FᵀMε_F + Σ_{j free} |ε_j|(2|h_j| + D_j),

and √y ≤ (y + y₀)/(2√y₀) for every y₀ > 0 leaves a sum over the free j, each of which is maximised by itself.
"""

import math

import numpy as np
from numpy.typing import NDArray

from fairduel.core.compiling import compiled
from fairduel.duel import Matrix, Vector

_TANGENTS = 4  # how often y₀ is chosen anew
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
def climb(signs: Vector, matrix: Matrix, cost: Vector, radius: float) -> float:  # noqa: C901  # two nested moves
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
    """Some D (d,) with diag(D) − M positive semidefinite and a small sum.

    For every t, D = t + λ_max(M − diag t) is one; a few subgradient steps on its sum improve t = 0.
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


@compiled
def _bound(
    free: NDArray[np.int64],
    image: Vector,
    quadratic: float,
    kept: float,
    cost: Vector,
    over: Vector,
    radius: float,
) -> float:
    """The most that f can be, whatever the free coordinates become."""
    lowest, tangent = np.inf, max(quadratic, 0.0) + 1.0
    for _ in range(_TANGENTS):
        half = radius / (2.0 * math.sqrt(tangent))
        total, reached = kept + half * (max(quadratic, 0.0) + tangent), max(quadratic, 0.0)
        for j in free:
            gain = 2.0 * abs(image[j]) + over[j]
            if half * gain > cost[j]:
                total += half * gain
                reached += gain
            else:
                total += cost[j]
        lowest = min(lowest, total)
        if reached <= 0.0 or abs(reached - tangent) <= 1e-9 * tangent:
            break
        tangent = reached
    return lowest


@compiled
def prove(  # noqa: C901, PLR0912, PLR0915  # one loop over the nodes of a tree
    signs: Vector, matrix: Matrix, cost: Vector, radius: float, self_duels: bool, nodes: int
) -> tuple[float, float]:
    """Improve ε, in place, by branch and bound; return f(ε) and the most that any other ε can have.

    Depth first, the most promising value of a coordinate first, until all is searched or ``nodes`` were looked at.
    Without ``self_duels`` ε = 0 does not count.
    """
    d = cost.size
    best = sign_score(signs, matrix, cost, radius)
    if nodes == 0:
        return best, np.inf
    order = np.argsort(-np.diag(matrix))
    over = np.zeros((d + 1, d))
    for depth in range(d):
        free = order[depth:]
        over[depth][free] = diagonal_over(matrix[free][:, free])
        if depth > 0 and np.sum(over[depth][free]) > np.sum(over[depth - 1][free]):
            over[depth][free] = over[depth - 1][free]

    trial = np.zeros(d)
    image = np.zeros((d + 1, d))  # M ε_F at each depth
    quadratic, kept = np.zeros(d + 1), np.zeros(d + 1)
    values, bounds = np.zeros((d, 3)), np.zeros((d, 3))
    tried = np.full(d, -1)
    looked, depth = 0, 0
    while depth >= 0:
        j = order[depth]
        if tried[depth] < 0:  # bound the children of this node
            is_first = not np.any(trial[order[:depth]])  # ε and −ε are alike: the first sign is +
            for number, value in enumerate((1.0, 0.0, -1.0)):
                values[depth, number], bounds[depth, number] = value, -np.inf
                if value < 0.0 and is_first:
                    continue
                looked += 1
                q = quadratic[depth] + 2.0 * value * image[depth, j] + value * value * matrix[j, j]
                k = kept[depth] + cost[j] * (1.0 - abs(value))
                if depth + 1 < d:
                    below = image[depth] + value * matrix[j]
                    bounds[depth, number] = _bound(order[depth + 1 :], below, q, k, cost, over[depth + 1], radius)
                elif self_duels or value != 0.0 or not is_first:
                    bounds[depth, number] = k + radius * math.sqrt(max(q, 0.0))
            ranks = np.argsort(-bounds[depth])
            values[depth], bounds[depth] = values[depth][ranks], bounds[depth][ranks]
            tried[depth] = 0
        number = tried[depth]
        if number == 3 or bounds[depth, number] <= best + _EQUAL * (1.0 + abs(best)):
            trial[j] = 0.0
            tried[depth] = -1
            depth -= 1
            continue
        if looked > nodes:
            highest = best
            for level in range(depth + 1):
                if tried[level] < 3:
                    highest = max(highest, bounds[level, tried[level]])
            return best, highest
        tried[depth] += 1
        trial[j] = values[depth, number]
        if depth + 1 == d:
            best = bounds[depth, number]
            signs[:] = trial
            continue
        image[depth + 1] = image[depth] + trial[j] * matrix[j]
        quadratic[depth + 1] = quadratic[depth] + 2.0 * trial[j] * image[depth, j] + trial[j] ** 2 * matrix[j, j]
        kept[depth + 1] = kept[depth] + cost[j] * (1.0 - abs(trial[j]))
        depth += 1
    return best, best
