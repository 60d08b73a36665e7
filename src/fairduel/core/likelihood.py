"""The weighted, ridge-regularised maximum-likelihood estimate of eq. (MLE).

θ solves λθ + Σ_i w_i [σ(φ_iᵀθ) − o_i] φ_i = 0. The left side is the gradient of the strictly convex
λ/2 ‖θ‖² + Σ_i w_i [S(φ_iᵀθ) − o_i φ_iᵀθ] with S′ = σ, so for λ > 0 there is exactly one solution,
whatever the data. Duels with the same φ enter through (Σw, Σw·o) alone, so they share one row.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from fairduel.checks import ensure
from fairduel.core.compiling import compiled, inlined
from fairduel.core.information import BY_HAND, HIGH_DIMENSION, checked_array, dot
from fairduel.core.links import Link, LinkNumbers, potential, probability_and_slope
from fairduel.duel import Matrix, Vector
from fairduel.errors import ConvergenceError

TOLERANCE = 1e-12
"""The gradient's largest entry at the estimate is at most this times (1 + Σw), or 1 + Σw·max|φ_j| for φ beyond 1.

So little that scores which tie stay within ``selection.TIE``: else rounding would break ties, not the agent's coin.
"""
LONGEST_DIFFERENCE = 2.0 * (1.0 + 1e-8)
"""How far apart two actions can be, whose norms are at most 1."""
_MOST_STEPS = 200
_BLOCK = 512  # rows at a time: they stay in the processor's cache between two products


class Problem(NamedTuple):
    """What eq. (MLE) is solved for: n rows of outcomes, a ridge and a link."""

    differences: Matrix
    """φ of each row, shape (n, d)."""
    weights: Vector
    """Σw of each row, shape (n,)."""
    wins: Vector
    """Σw·o of each row, shape (n,)."""
    ridge: float
    """λ."""
    link: LinkNumbers
    size: float
    """1 + Σw·max(1, max|φ_j|), by which ``TOLERANCE`` is multiplied."""


@compiled
def loss(theta: Vector, problem: Problem) -> float:
    """λ/2 ‖θ‖² + Σ [Σw · S(φᵀθ) − Σw·o · φᵀθ] over the rows."""
    differences, weights, wins, ridge, link, _ = problem
    margins = differences @ theta
    total: float = 0.5 * ridge * np.dot(theta, theta)
    for i in range(margins.size):
        total += weights[i] * potential(link.kind, link.scale, margins[i]) - wins[i] * margins[i]
    return total


@compiled
def gradient_at(theta: Vector, problem: Problem, gradient: Vector, curvatures: Vector) -> float:
    """Fill the gradient (d,) of :func:`loss`, the left side of eq. (MLE); return its largest entry.

    One pass over the rows, which also fills their ``curvatures`` Σw·σ′(φᵀθ) (n,), all that the Hessian needs.
    """
    if theta.size > BY_HAND:
        _add_rows_by_blas(theta, problem, gradient, curvatures)
    else:
        _add_rows_by_hand(theta, problem, gradient, curvatures)
    largest = 0.0
    for j in range(theta.size):
        gradient[j] += problem.ridge * theta[j]
        largest = max(largest, abs(gradient[j]))
    return largest


# Neither function may make an array where there are few features: with one to free, Numba counts the references
# to all others too, which takes as long as the sums.


@compiled
def _add_rows_by_hand(theta: Vector, problem: Problem, gradient: Vector, curvatures: Vector) -> None:
    differences, weights, wins, _, link, _ = problem
    for j in range(theta.size):
        gradient[j] = 0.0
    for i in range(weights.size):
        margin = 0.0
        for j in range(theta.size):
            margin += differences[i, j] * theta[j]
        p, s = probability_and_slope(link.kind, link.scale, margin)
        residual = weights[i] * p - wins[i]
        curvatures[i] = weights[i] * s
        for j in range(theta.size):
            gradient[j] += residual * differences[i, j]


@compiled
def _add_rows_by_blas(theta: Vector, problem: Problem, gradient: Vector, curvatures: Vector) -> None:
    differences, weights, wins, _, link, _ = problem
    gradient[:] = 0.0
    for start in range(0, weights.size, _BLOCK):
        rows = differences[start : start + _BLOCK]
        residuals = rows @ theta
        for i in range(residuals.size):
            p, s = probability_and_slope(link.kind, link.scale, residuals[i])
            residuals[i] = weights[start + i] * p - wins[start + i]
            curvatures[start + i] = weights[start + i] * s
        gradient += residuals @ rows


@compiled
def hessian_of(differences: Matrix, curvatures: Vector, ridge: float) -> Matrix:
    """λI + Σ c φφᵀ (d, d), the Hessian of :func:`loss`, from the rows (n, d) and their ``curvatures`` (n,)."""
    d = differences.shape[1]
    hessian = np.zeros((d, d))
    for start in range(0, curvatures.size, _BLOCK):
        rows = differences[start : start + _BLOCK]
        curved = np.empty_like(rows)
        for i in range(len(rows)):
            for j in range(d):
                curved[i, j] = curvatures[start + i] * rows[i, j]
        hessian += curved.T @ rows
    for j in range(d):
        hessian[j, j] += ridge
    return hessian


@compiled
def solve_by_root(root: Matrix, vector: Vector) -> Vector:
    """Return (LLᵀ)⁻¹v, shape (d,), for a lower triangle L (d, d)."""
    solution = vector.copy()
    for i in range(vector.size):
        for j in range(i):
            solution[i] -= root[i, j] * solution[j]
        solution[i] /= root[i, i]
    for i in range(vector.size - 1, -1, -1):
        solution[i] /= root[i, i]
        for j in range(i):
            solution[j] -= root[i, j] * solution[i]
    return solution


class Estimate(NamedTuple):
    """θ with the certificate that it solves eq. (MLE)."""

    theta: Vector
    """The estimate, shape (d,)."""
    root: Matrix
    """L (d, d) with LLᵀ the Hessian, nearly, for :func:`predicted`; or empty."""
    gradient: float
    """No entry of the gradient there is larger; θ is within √d · gradient / λ of the exact solution."""
    tolerance: float
    """How large the gradient may be."""
    steps: int
    """Newton steps taken."""
    ridge: float
    """λ, or λ + μ where the ball ‖θ‖ ≤ B pressed with multiplier μ."""


@compiled
def longest_of(difference: Vector) -> float:
    """max(1, max|φ_j|) of a difference (d,)."""
    longest = 1.0
    for j in range(difference.size):
        longest = max(longest, abs(difference[j]))
    return longest


@compiled
def size_of(differences: Matrix, weights: Vector) -> float:
    """1 + Σw·max(1, max|φ_j|) over the rows (n, d), (n,)."""
    total = 1.0
    for i in range(weights.size):
        total += weights[i] * longest_of(differences[i])
    return total


@compiled
def _shortened(theta: Vector, step: Vector, gradient: Vector, problem: Problem) -> Vector:
    """θ − 2^−k · step (d,) for the first k at which the loss itself falls enough."""
    decrement = np.dot(step, gradient)
    current = loss(theta, problem)
    allowed = current + 1e-14 * (1.0 + abs(current))  # rounding
    size = 1.0
    while loss(theta - size * step, problem) > allowed - 1e-4 * size * decrement and size > 1e-10:
        size *= 0.5
    return theta - size * step


@compiled
def newton(start: Vector, problem: Problem) -> Estimate:
    """Minimise :func:`loss` by Newton's method, from θ = ``start`` (d,).

    The root is that of the last Hessian that was taken, at or near θ; it is empty where no step was.

    A full step is taken where it leaves at most half of the smallest gradient so far, as it does near the solution;
    otherwise the step is halved until the loss itself falls enough. A Hessian serves for another step where that should
    be the last: where the gradient, if it falls by the same factor again, is small enough.
    """
    tolerance = TOLERANCE * problem.size
    theta = start.copy()
    gradient, curvatures = np.empty_like(start), np.empty_like(problem.weights)
    next_gradient, next_curvatures = np.empty_like(start), np.empty_like(problem.weights)
    largest = gradient_at(theta, problem, gradient, curvatures)
    smallest = largest
    root = np.empty((0, 0))
    steps = 0
    needs_root, root_is_here = True, False  # whether a Hessian is due, and whether the last was taken at this θ
    while largest > tolerance and steps < _MOST_STEPS:
        if needs_root:
            hessian = hessian_of(problem.differences, curvatures, problem.ridge)
            root = np.linalg.cholesky(hessian)  # type: ignore[assignment]  # it stays float64
            root_is_here = True
        candidate = solve_by_root(root, gradient)
        for j in range(theta.size):
            candidate[j] = theta[j] - candidate[j]
        next_largest = gradient_at(candidate, problem, next_gradient, next_curvatures)
        is_full = next_largest <= max(0.5 * smallest, tolerance)
        if not is_full and not root_is_here:
            needs_root = True
            continue
        if not is_full:
            candidate = _shortened(theta, solve_by_root(root, gradient), gradient, problem)
            next_largest = gradient_at(candidate, problem, next_gradient, next_curvatures)
        needs_root = not (is_full and next_largest * next_largest <= tolerance * largest)
        root_is_here = False
        theta, largest = candidate, next_largest
        smallest = min(smallest, largest)
        gradient, next_gradient = next_gradient, gradient
        curvatures, next_curvatures = next_curvatures, curvatures
        steps += 1
    return Estimate(theta, root, largest, tolerance, steps, problem.ridge)


@inlined
def _solve(start: Vector, problem: Problem) -> Estimate:
    """Newton; where there are fewer rows than features, within the span of the rows, in which the estimate lies."""
    differences, weights, wins, ridge, link, size = problem
    rows, dimension = differences.shape
    in_span = dimension >= HIGH_DIMENSION and rows < dimension
    basis = differences
    if in_span:  # Φᵀ = QR, so φᵀθ = (Rᵀ)(Qᵀθ), and ‖θ‖ = ‖Qᵀθ‖ in the span
        orthonormal, triangle = np.linalg.qr(np.ascontiguousarray(differences.T))
        basis, differences = np.ascontiguousarray(orthonormal), np.ascontiguousarray(triangle.T)
        start, size = start @ basis, size_of(differences, weights)
    solution = newton(start, Problem(differences, weights, wins, ridge, link, size))
    if not in_span:
        return solution
    longest = math.sqrt(rows)  # no entry of the gradient is larger than its length, which Q keeps
    theta, _, gradient, tolerance, steps, _ = solution
    return Estimate(basis @ theta, np.empty((0, 0)), longest * gradient, longest * tolerance, steps, ridge)


@inlined
def solve(start: Vector, problem: Problem, ball: float) -> Estimate:
    """Solve eq. (MLE) from θ = ``start`` (d,), within ‖θ‖ ≤ B = ``ball``, which may be ∞.

    By its optimality conditions the constrained estimate is the unconstrained one at a larger ridge λ + μ, and ‖θ(μ)‖
    falls with μ: so μ is a root, found by doubling and bisection.
    """
    differences, weights, wins, own_ridge, link, size = problem
    ridge = low = own_ridge
    high = math.inf
    while True:
        trial = _solve(start, Problem(differences, weights, wins, ridge, link, size))
        norm = math.sqrt(dot(trial.theta, trial.theta))
        if norm > ball:
            low = ridge
        else:
            high = ridge
            if high == own_ridge or norm >= ball * (1.0 - 1e-10) or high - low <= 1e-14 * high:
                return trial
        ridge = 2.0 * low if high == math.inf else 0.5 * (low + high)
        start = trial.theta


@compiled
def predicted(
    theta: Vector, root: Matrix, difference: Vector, weight: float, share: float, link: LinkNumbers
) -> Vector:
    """Where one more outcome will take the estimate θ, to first order, shape (d,): a good start for :func:`newton`.

    At the last fit the gradient was zero, so that now it is the outcome's own; and the Hessian is LLᵀ of that fit,
    ``root`` = L (d, d), and the outcome's share. The start is θ itself where φᵀθ would move so far that σ is no
    straight line on the way.
    """
    p, s = probability_and_slope(link.kind, link.scale, dot(difference, theta))
    image = solve_by_root(root, difference)
    squared = dot(difference, image)
    length = weight * (p - share) / (1.0 + weight * s * squared)
    if not abs(link.scale * length * squared) <= 1.0:
        return theta
    return theta - length * image


class ToldRows(NamedTuple):
    """The arrays of :class:`Comparisons`, with room for more rows than there are."""

    differences: Matrix
    sums: Matrix
    """Σw and Σw·o of each row, shape (2, n)."""
    slots: NDArray[np.int64]
    """A hash table of the rows, −1 where free; more of them than rows."""
    size: NDArray[np.int64]
    """How many rows there are, shape (1,)."""


@compiled
def slot_of(slots: NDArray[np.int64], differences: Matrix, row: int) -> int:
    """Where in the hash table ``slots`` the difference in this row stands, or would stand."""
    mark = np.uint64(14695981039346656037)
    for bits in differences[row].view(np.uint64):
        mark = (mark ^ bits) * np.uint64(1099511628211)
        mark ^= mark >> np.uint64(29)
    place = int(np.int64(mark % np.uint64(slots.size)))
    while slots[place] >= 0:
        other = slots[place]
        same = True
        for j in range(differences.shape[1]):
            same = same and differences[other, j] == differences[row, j]
        if same:
            break
        place = (place + 1) % slots.size
    return place


@compiled
def add_outcome(rows: ToldRows, difference: Vector, weight: float, share: float) -> None:
    """Add one outcome, ``share`` = o, to the rows, in place; there must be room for one more row.

    φ and −φ are one row, told from the other side: each row's first non-zero entry is positive.
    """
    differences, count = rows.differences, rows.size[0]
    sign = 1.0
    for j in range(difference.size):
        if difference[j] != 0.0:
            sign = 1.0 if difference[j] > 0.0 else -1.0
            break
    for j in range(difference.size):
        differences[count, j] = sign * difference[j] + 0.0  # + 0.0 turns −0.0 into 0.0
    place = slot_of(rows.slots, differences, count)
    if rows.slots[place] < 0:
        rows.slots[place] = count
        rows.sums[0, count] = rows.sums[1, count] = 0.0
        rows.size[0] += 1
    row = rows.slots[place]
    rows.sums[0, row] += weight
    rows.sums[1, row] += weight * (share if sign > 0.0 else 1.0 - share)


class Comparisons:
    """All outcomes told so far, as rows of (φ, Σw, Σw·o); equal differences share a row, whatever their sign.

    >>> told = Comparisons(dimension=1)
    >>> told.add(np.array([1.0]), weight=1.0, share=1.0)
    >>> told.add(np.array([-1.0]), weight=1.0, share=0.5)
    >>> len(told), told.weights.tolist(), told.wins.tolist()
    (1, [2.0], [1.5])
    """

    def __init__(self, dimension: int, room: int = 64) -> None:
        self.rows = ToldRows(
            np.empty((room, dimension)), np.empty((2, room)), np.full(2 * room, -1), np.zeros(1, np.int64)
        )

    def __len__(self) -> int:
        return int(self.rows.size[0])

    @property
    def differences(self) -> Matrix:
        """The distinct differences φ, shape (n, d), each turned so that its first non-zero entry is positive."""
        return self.rows.differences[: len(self)]

    @property
    def weights(self) -> Vector:
        """Σw of each row, shape (n,)."""
        return self.rows.sums[0, : len(self)]

    @property
    def wins(self) -> Vector:
        """Σw·o of each row, shape (n,)."""
        return self.rows.sums[1, : len(self)]

    def add(self, difference: Vector, *, weight: float, share: float) -> None:
        """Add one outcome of a duel with this difference (d,); o = ``share`` is 1, 0, or ½ of a tie."""
        self.make_room()
        add_outcome(self.rows, difference, weight, share)

    def make_room(self) -> None:
        """See that another row fits in."""
        room = self.rows.sums.shape[1]
        if len(self) == room:
            larger = Comparisons(self.rows.differences.shape[1], 2 * room)
            larger._fill(self.differences, self.weights, self.wins)
            self.rows = larger.rows

    def _fill(self, differences: Matrix, weights: Vector, wins: Vector) -> None:
        self.rows.size[0] = len(weights)
        self.differences[:], self.weights[:], self.wins[:] = differences, weights, wins
        for row in range(len(self)):
            self.rows.slots[slot_of(self.rows.slots, self.rows.differences, row)] = row

    def problem(self, ridge: float, link: Link) -> Problem:
        """Eq. (MLE) for all that was told."""
        return problem_of(self.differences, self.weights, self.wins, ridge, link)

    def state(self) -> dict[str, Matrix | Vector]:
        """Everything that :meth:`from_state` needs."""
        return {
            "differences": self.differences.copy(),
            "weights": self.weights.copy(),
            "wins": self.wins.copy(),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any], dimension: int) -> Self:
        """Rebuild what :meth:`state` gave, row for row, after checking that such rows can have been told."""
        count = len(state["weights"])
        differences = checked_array("the differences told", state["differences"], (count, dimension))
        weights = checked_array("the weights told", state["weights"], (count,))
        wins = checked_array("the wins told", state["wins"], (count,))
        ensure((wins >= 0).all() and (wins <= weights).all(), "some wins are below 0 or above their weights")
        ensure((np.linalg.norm(differences, axis=1) <= LONGEST_DIFFERENCE).all(), "a difference told is too long")
        leading = differences[np.arange(count), (differences != 0).argmax(axis=1)]
        ensure((leading >= 0).all(), "a difference is told from the wrong side")
        told = cls(dimension, room=max(64, count))
        told._fill(differences, weights, wins)
        ensure(np.count_nonzero(told.rows.slots >= 0) == count, "a difference has two rows")
        return told


def problem_of(differences: Matrix, weights: Vector, wins: Vector, ridge: float, link: Link) -> Problem:
    """Eq. (MLE) for rows of differences (n, d), Σw (n,) and Σw·o (n,)."""
    return Problem(differences, weights, wins, ridge, link.numbers, size_of(differences, weights))


def maximum_likelihood(
    told: Comparisons, *, ridge: float, link: Link, start: Vector, ball: float = math.inf
) -> Estimate:
    """Solve eq. (MLE) on all that was told, from the warm start θ_0 = ``start``, shape (d,), within ‖θ‖ ≤ ``ball``.

    >>> told = Comparisons(dimension=1)
    >>> told.add(np.array([1.0]), weight=1.0, share=1.0)
    >>> estimate = maximum_likelihood(told, ridge=0.25, link=Link("logistic"), start=np.zeros(1))
    >>> estimate.theta.round(4)
    array([1.0426])
    """
    return solved(start, told.problem(ridge, link), ball)


def solved(start: Vector, problem: Problem, ball: float = math.inf) -> Estimate:
    """:func:`solve`, or say why that was not possible."""
    with converging(problem.ridge):
        estimate = solve(start, problem, ball)
    check_converged(estimate.gradient / estimate.tolerance, problem.ridge)
    return estimate


@contextmanager
def converging(ridge: float) -> Iterator[None]:
    """Say what a singular Hessian means."""
    try:
        yield
    except np.linalg.LinAlgError:
        raise ConvergenceError(
            f"the estimate was not reached, because its Hessian is singular: a larger ridge than {ridge:g} helps."
        ) from None


def check_converged(excess: float, ridge: float) -> None:
    """Refuse an estimate whose gradient is ``excess`` times what is allowed, if that is over 1."""
    if not excess <= 1.0:
        raise ConvergenceError(
            f"the estimate was not reached: its gradient is {excess:.2g} times what is allowed; a larger ridge than "
            f"{ridge:g} helps."
        )
