"""The weighted, ridge-regularised maximum-likelihood estimate of eq. (MLE).

θ solves λθ + Σ_i w_i [σ(φ_iᵀθ) − o_i] φ_i = 0. The left side is the gradient of the strictly convex
λ/2 ‖θ‖² + Σ_i w_i [S(φ_iᵀθ) − o_i φ_iᵀθ] with S′ = σ, so for λ > 0 there is exactly one solution,
whatever the data. Duels with the same φ enter through (Σw, Σw·o) alone, so they share one row.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fairduel.checks import ensure
from fairduel.core.compiling import compiled
from fairduel.core.information import HIGH_DIMENSION, checked_array, combination, dot, products
from fairduel.core.links import Link, potential, probability_and_slope
from fairduel.duel import Matrix, Vector
from fairduel.errors import ConvergenceError

TOLERANCE = 1e-12
"""The gradient's largest entry at the estimate is at most this times (1 + Σw), or 1 + Σw·max|φ_j| for φ beyond 1.

So little that scores which tie stay within ``selection.TIE``: else rounding would break ties, not the agent's coin.
"""
LONGEST_DIFFERENCE = 2.0 * (1.0 + 1e-8)
"""How far apart two actions can be, whose norms are at most 1."""
_MOST_STEPS = 200
_LOG_TWO = math.log(2.0)
_BLOCK = 512  # rows at a time: they stay in the processor's cache between two products


@compiled
def loss(
    theta: Vector, differences: Matrix, weights: Vector, wins: Vector, ridge: float, kind: int, scale: float
) -> float:
    """λ/2 ‖θ‖² + Σ [Σw · S(φᵀθ) − Σw·o · φᵀθ] over the rows (n, d), (n,), (n,)."""
    margins = differences @ theta
    total: float = 0.5 * ridge * np.dot(theta, theta)
    for i in range(margins.size):
        total += weights[i] * potential(kind, scale, margins[i]) - wins[i] * margins[i]
    return total


@compiled
def gradient_at(
    theta: Vector,
    differences: Matrix,
    weights: Vector,
    wins: Vector,
    ridge: float,
    kind: int,
    scale: float,
    gradient: Vector,
    curvatures: Vector,
) -> float:
    """Fill the gradient (d,) of :func:`loss`, the left side of eq. (MLE); return its largest entry.

    One pass over the rows, which also fills their ``curvatures`` Σw·σ′(φᵀθ) (n,), all that the Hessian needs.
    """
    for j in range(theta.size):
        gradient[j] = ridge * theta[j]
    for start in range(0, weights.size, _BLOCK):
        rows = differences[start : start + _BLOCK]
        residuals = products(rows, theta)
        for i in range(residuals.size):
            p, s = probability_and_slope(kind, scale, residuals[i])
            residuals[i] = weights[start + i] * p - wins[start + i]
            curvatures[start + i] = weights[start + i] * s
        sums = combination(residuals, rows)
        for j in range(theta.size):
            gradient[j] += sums[j]
    largest = 0.0
    for entry in gradient:
        largest = max(largest, abs(entry))
    return largest


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


@compiled
def newton(
    start: Vector,
    differences: Matrix,
    weights: Vector,
    wins: Vector,
    ridge: float,
    kind: int,
    scale: float,
) -> tuple[Vector, Matrix, float, float, int]:
    """Minimise :func:`loss` by Newton's method; return θ, L, its largest gradient entry, the tolerance, the steps.

    LLᵀ is the last Hessian that was taken, at or near θ; L is empty where no step was.

    A full step is taken where it leaves at most half of the smallest gradient so far, as it does near the solution;
    otherwise the step is halved until the loss itself falls enough. A Hessian serves for another step where that should
    be the last: where the gradient, if it falls by the same factor again, is small enough.
    """
    tolerance = 1.0
    for i in range(weights.size):
        longest = 1.0
        for j in range(start.size):
            longest = max(longest, abs(differences[i, j]))
        tolerance += weights[i] * longest
    tolerance *= TOLERANCE
    theta = start.copy()
    gradient, curvatures = np.empty_like(start), np.empty_like(weights)
    next_gradient, next_curvatures = np.empty_like(start), np.empty_like(weights)
    largest = gradient_at(theta, differences, weights, wins, ridge, kind, scale, gradient, curvatures)
    smallest = largest
    root = np.empty((0, 0))
    steps = 0
    needs_root, root_is_here = True, False  # whether a Hessian is due, and whether the last was taken at this θ
    while largest > tolerance and steps < _MOST_STEPS:
        if needs_root:
            hessian = hessian_of(differences, curvatures, ridge)
            root = np.linalg.cholesky(hessian)  # type: ignore[assignment]  # it stays float64
            root_is_here = True
        step = solve_by_root(root, gradient)
        candidate = theta - step
        next_largest = gradient_at(
            candidate, differences, weights, wins, ridge, kind, scale, next_gradient, next_curvatures
        )
        is_full = next_largest <= max(0.5 * smallest, tolerance)
        if not is_full and not root_is_here:
            needs_root = True
            continue
        if not is_full:
            decrement = np.dot(step, gradient)
            current = loss(theta, differences, weights, wins, ridge, kind, scale)
            allowed = current + 1e-14 * (1.0 + abs(current))  # rounding
            size = 1.0
            while (
                loss(candidate, differences, weights, wins, ridge, kind, scale) > allowed - 1e-4 * size * decrement
                and size > 1e-10
            ):
                size *= 0.5
                candidate = theta - size * step
            next_largest = gradient_at(
                candidate, differences, weights, wins, ridge, kind, scale, next_gradient, next_curvatures
            )
        needs_root = not (is_full and next_largest * next_largest <= tolerance * largest)
        root_is_here = False
        theta, largest = candidate, next_largest
        smallest = min(smallest, largest)
        gradient, next_gradient = next_gradient, gradient
        curvatures, next_curvatures = next_curvatures, curvatures
        steps += 1
    return theta, root, largest, tolerance, steps


@compiled
def predicted(
    theta: Vector, root: Matrix, difference: Vector, weight: float, share: float, kind: int, scale: float
) -> Vector:
    """Where one more outcome will take the estimate θ, to first order, shape (d,): a good start for :func:`newton`.

    At the last fit the gradient was zero, so that now it is the outcome's own; and the Hessian is LLᵀ of that fit,
    ``root`` = L (d, d), and the outcome's share. The start is θ itself where ``root`` is empty, and where φᵀθ would
    move so far that σ is no straight line on the way.
    """
    if root.size == 0:
        return theta
    p, s = probability_and_slope(kind, scale, dot(difference, theta))
    image = solve_by_root(root, difference)
    squared = dot(difference, image)
    length = weight * (p - share) / (1.0 + weight * s * squared)
    if not abs(scale * length * squared) <= 1.0:
        return theta
    return theta - length * image


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
def add_outcome(
    differences: Matrix,
    weights: Vector,
    wins: Vector,
    slots: NDArray[np.int64],
    count: int,
    difference: Vector,
    weight: float,
    share: float,
) -> int:
    """Add one outcome to the first ``count`` rows, in place, and return how many rows there are now.

    ``share`` is how much of a win it is for the first: 1, 0, or ½ of a tie.
    φ and −φ are one row, told from the other side: each row's first non-zero entry is positive. There must be
    room for one more row, and more ``slots`` (−1 where free) than rows.
    """
    sign = 1.0
    for j in range(difference.size):
        if difference[j] != 0.0:
            sign = 1.0 if difference[j] > 0.0 else -1.0
            break
    for j in range(difference.size):
        differences[count, j] = sign * difference[j] + 0.0  # + 0.0 turns −0.0 into 0.0
    place = slot_of(slots, differences, count)
    if slots[place] < 0:
        slots[place] = count
        weights[count] = wins[count] = 0.0
        count += 1
    row = slots[place]
    weights[row] += weight
    wins[row] += weight * (share if sign > 0.0 else 1.0 - share)
    return count


@compiled
def worth_a_fit(gain: float, outcomes_then: int, outcomes_now: int) -> bool:
    """Whether a lazy estimate is due: det Σ has doubled since the last (log gain ≥ log 2) and a tenth more was told."""
    return gain >= _LOG_TWO and 10 * outcomes_now >= 11 * outcomes_then


class Comparisons:
    """All outcomes told so far, as rows of (φ, Σw, Σw·o); equal differences share a row, whatever their sign.

    >>> told = Comparisons(dimension=1)
    >>> told.add(np.array([1.0]), weight=1.0, share=1.0)
    >>> told.add(np.array([-1.0]), weight=1.0, share=1.0)
    >>> len(told), told.weights.tolist(), told.wins.tolist()
    (1, [2.0], [1.0])
    """

    def __init__(self, dimension: int, room: int = 64) -> None:
        self._differences: Matrix = np.empty((room, dimension))
        self._weights: Vector = np.empty(room)
        self._wins: Vector = np.empty(room)
        self._slots = np.full(2 * room, -1)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def differences(self) -> Matrix:
        """The distinct differences φ, shape (n, d), each turned so that its first non-zero entry is positive."""
        return self._differences[: self._count]

    @property
    def weights(self) -> Vector:
        """Σw of each row, shape (n,)."""
        return self._weights[: self._count]

    @property
    def wins(self) -> Vector:
        """Σw·o of each row, shape (n,)."""
        return self._wins[: self._count]

    def add(self, difference: Vector, *, weight: float, share: float) -> None:
        """Add one outcome of a duel with this difference, shape (d,): ``share`` is 1 if the first won, ½ for a tie."""
        if self._count == len(self._weights):
            self._make_room(2 * self._count)
        self._count = add_outcome(
            self._differences, self._weights, self._wins, self._slots, self._count, difference, weight, share
        )

    def _make_room(self, room: int) -> None:
        larger = Comparisons(self._differences.shape[1], room)
        larger._fill(self.differences, self.weights, self.wins)
        self.__dict__.update(larger.__dict__)

    def _fill(self, differences: Matrix, weights: Vector, wins: Vector) -> None:
        self._count = len(weights)
        self.differences[:], self.weights[:], self.wins[:] = differences, weights, wins
        for row in range(self._count):
            self._slots[slot_of(self._slots, self._differences, row)] = row

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
        ensure(np.count_nonzero(told._slots >= 0) == count, "a difference has two rows")
        return told


@dataclass(frozen=True, slots=True)
class Estimate:
    """θ with the certificate that it solves eq. (MLE)."""

    theta: Vector
    """The estimate, shape (d,)."""
    root: Matrix
    """L (d, d) with LLᵀ the Hessian, nearly, for :func:`predicted`; or empty."""
    gradient: float
    """No entry of the gradient there is larger; θ is within √d · gradient / λ of the exact solution."""
    steps: int
    """Newton steps taken."""
    ridge: float
    """λ, or λ + μ where the ball ‖θ‖ ≤ B pressed with multiplier μ."""


def maximum_likelihood(
    told: Comparisons, *, ridge: float, link: Link, start: Vector, ball: float | None = None
) -> Estimate:
    """Solve eq. (MLE) on all that was told, from the warm start θ_0 = ``start``, shape (d,).

    With ``ball`` = B the estimate is the constrained one, ‖θ‖ ≤ B. By its optimality conditions that is
    the unconstrained estimate at a larger ridge λ + μ, and ‖θ(μ)‖ falls with μ: so μ is a root.

    >>> told = Comparisons(dimension=1)
    >>> told.add(np.array([1.0]), weight=1.0, share=1.0)
    >>> estimate = maximum_likelihood(told, ridge=0.25, link=Link("logistic"), start=np.zeros(1))
    >>> estimate.theta.round(4)
    array([1.0426])
    """
    free = _solve(told, ridge, link, start)
    if ball is None or np.linalg.norm(free.theta) <= ball:
        return free
    low, high = ridge, 2.0 * ridge  # ‖θ‖ > B at low; raise high until ‖θ‖ ≤ B there
    inside = _solve(told, high, link, free.theta)
    while np.linalg.norm(inside.theta) > ball:
        low, high = high, 2.0 * high
        inside = _solve(told, high, link, inside.theta)
    while np.linalg.norm(inside.theta) < ball * (1.0 - 1e-10) and high - low > 1e-14 * high:
        middle = 0.5 * (low + high)
        trial = _solve(told, middle, link, inside.theta)
        if np.linalg.norm(trial.theta) > ball:
            low = middle
        else:
            high, inside = middle, trial
    return inside


def _solve(told: Comparisons, ridge: float, link: Link, start: Vector) -> Estimate:
    """Newton; where there are fewer rows than features, within the span of the rows, in which the estimate lies."""
    rows, dimension = told.differences.shape
    if dimension < HIGH_DIMENSION or rows >= dimension:
        return _newton(told.differences, told, ridge, link, start)
    basis, triangle = np.linalg.qr(told.differences.T)  # Φᵀ = QR, so φᵀθ = (Rᵀ)(Qᵀθ), and ‖θ‖ = ‖Qᵀθ‖ in the span
    small = _newton(np.ascontiguousarray(triangle.T), told, ridge, link, np.ascontiguousarray(start @ basis))
    # No entry of the gradient is larger than its length, which Q keeps.
    return replace(small, theta=basis @ small.theta, root=np.empty((0, 0)), gradient=math.sqrt(rows) * small.gradient)


def _newton(differences: Matrix, told: Comparisons, ridge: float, link: Link, start: Vector) -> Estimate:
    try:
        theta, root, gradient, tolerance, steps = newton(
            start, differences, told.weights, told.wins, ridge, link.kind, link.scale
        )
    except np.linalg.LinAlgError:
        raise ConvergenceError(
            f"the estimate was not reached, because its Hessian is singular: a larger ridge than {ridge:g} helps."
        ) from None
    if not gradient <= tolerance:
        raise ConvergenceError(
            f"the estimate was not reached: after {steps} Newton steps the gradient is {gradient:.2g}, "
            f"allowed is {tolerance:.2g}; a larger ridge than {ridge:g} helps."
        )
    return Estimate(theta, root, gradient, steps, ridge)
