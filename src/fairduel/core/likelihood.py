"""The weighted, ridge-regularised maximum-likelihood estimate of eq. (MLE).

θ solves λθ + Σ_i w_i [σ(φ_iᵀθ) − o_i] φ_i = 0. The left side is the gradient of the strictly convex
λ/2 ‖θ‖² + Σ_i w_i [S(φ_iᵀθ) − o_i φ_iᵀθ] with S′ = σ, so for λ > 0 there is exactly one solution,
whatever the data. Duels with the same φ matter only through (Σw, Σw·o), so they share one row.
"""

import math
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from fairduel.checks import ensure
from fairduel.core.compiling import compiled, inlined
from fairduel.core.information import HIGH_DIMENSION, SMALL_DIMENSION, checked_array, dot
from fairduel.core.links import Link, LinkNumbers, potential, probability_and_slope, slope
from fairduel.duel import Matrix, Vector
from fairduel.errors import ConvergenceError

TOLERANCE = 1e-12
"""The gradient's largest entry at the estimate is at most this times (1 + Σw), or 1 + Σw·max|φ_j| for φ beyond 1.

Small enough that tied scores stay within ``selection.TIE``; otherwise rounding, not the agent's coin, would break ties.
"""
LONGEST_DIFFERENCE = 2.0 * (1.0 + 1e-8)
"""The largest distance between two actions with norms of at most 1, plus rounding."""
_MOST_STEPS = 200
_BLOCK = 512  # rows at a time, so that they stay in the CPU cache between two products; in high dimension fewer
_LARGEST_INVERSE = 512  # features: of more, the Hessian's root is much cheaper than its inverse


class FitProblem(NamedTuple):
    """An instance of eq. (MLE): n rows of outcomes, a ridge and a link."""

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
    """1 + Σw·max(1, max|φ_j|), the factor of ``TOLERANCE``."""


@compiled
def loss(theta: Vector, problem: FitProblem) -> float:
    """λ/2 ‖θ‖² + Σ [Σw · S(φᵀθ) − Σw·o · φᵀθ] over the rows."""
    differences, weights, wins, ridge, link, _ = problem
    margins = differences @ theta
    total: float = 0.5 * ridge * np.dot(theta, theta)
    for i in range(margins.size):
        total += weights[i] * potential(link.kind, link.scale, margins[i]) - wins[i] * margins[i]
    return total


@compiled
def gradient_at(theta: Vector, problem: FitProblem, gradient: Vector, curvatures: Vector) -> float:
    """Fill the gradient (d,) of :func:`loss`, the left side of eq. (MLE), and return its largest absolute entry.

    Also fill the ``curvatures`` Σw·σ′(φᵀθ) (n,) of the rows, which the Hessian needs.
    """
    if theta.size > SMALL_DIMENSION:
        _add_rows_by_blas(theta, problem, gradient, curvatures)
    else:
        _add_rows_by_hand(theta, problem, gradient, curvatures)
    largest = 0.0
    for j in range(theta.size):
        gradient[j] += problem.ridge * theta[j]
        largest = max(largest, abs(gradient[j]))
    return largest


@compiled
def _add_rows_by_hand(theta: Vector, problem: FitProblem, gradient: Vector, curvatures: Vector) -> None:
    # Temporary arrays would make Numba count references to all arrays, which takes as long as these sums.
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
def _add_rows_by_blas(theta: Vector, problem: FitProblem, gradient: Vector, curvatures: Vector) -> None:
    differences, weights, wins, _, link, _ = problem
    gradient[:] = 0.0
    block = min(_BLOCK, max(_BLOCK * HIGH_DIMENSION // theta.size, 1))
    for start in range(0, weights.size, block):
        rows = differences[start : start + block]
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
    """L (d, d) with LLᵀ near the Hessian, for :func:`one_step_ahead`; H⁻¹ of :func:`quasi_newton`; or empty."""
    gradient: float
    """The largest absolute entry of the gradient; θ is within √d · gradient / λ of the exact solution."""
    tolerance: float
    """The largest gradient allowed."""
    steps: int
    """Newton steps taken."""
    ridge: float
    """λ, or λ + μ if the constraint ‖θ‖ ≤ B is active with multiplier μ."""


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
def _shortened(theta: Vector, step: Vector, gradient: Vector, problem: FitProblem) -> Vector:
    """Return θ − 2^−k · step (d,) for the first k at which the loss decreases enough."""
    decrement = np.dot(step, gradient)
    current = loss(theta, problem)
    allowed = current + 1e-14 * (1.0 + abs(current))  # rounding
    size = 1.0
    while loss(theta - size * step, problem) > allowed - 1e-4 * size * decrement and size > 1e-10:
        size *= 0.5
    return theta - size * step


@compiled
def newton(start: Vector, problem: FitProblem, root: Matrix) -> Estimate:
    """Minimise :func:`loss` by Newton's method, from θ = ``start`` (d,).

    ``root`` is L of an earlier Hessian LLᵀ, or empty. The root returned is that of the last Hessian computed, at or
    near θ; it is empty if no step was taken and none was given.

    A full step is accepted if it at least halves the smallest gradient so far, as it does near the solution; otherwise
    the step is halved until the loss decreases enough. A Hessian is reused if one more step should suffice: if the
    gradient will be small enough when it shrinks by the same factor again. In high dimension a Hessian costs as much as
    d steps, so there it is reused for as long as each step shrinks the gradient by a factor of 4.
    """
    tolerance = TOLERANCE * problem.size
    theta = start.copy()
    gradient, curvatures = np.empty_like(start), np.empty_like(problem.weights)
    next_gradient, next_curvatures = np.empty_like(start), np.empty_like(problem.weights)
    largest = gradient_at(theta, problem, gradient, curvatures)
    smallest = largest
    steps = 0
    needs_root, root_is_here = root.size == 0, False  # whether a new Hessian is due; whether the last one is for this θ
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
        suffices = next_largest * next_largest <= tolerance * largest
        needs_root = not (is_full and (suffices or (theta.size >= HIGH_DIMENSION and 4.0 * next_largest <= largest)))
        root_is_here = False
        theta, largest = candidate, next_largest
        smallest = min(smallest, largest)
        gradient, next_gradient = next_gradient, gradient
        curvatures, next_curvatures = next_curvatures, curvatures
        steps += 1
    return Estimate(theta, root, largest, tolerance, steps, problem.ridge)


@compiled
def keeps_inverse(dimension: int) -> bool:
    """Whether estimates that are refitted again and again keep the Hessian's inverse, rather than its root."""
    return HIGH_DIMENSION <= dimension <= _LARGEST_INVERSE


@compiled
def quasi_newton(start: Vector, problem: FitProblem, inverse: Matrix) -> Estimate:
    """Minimise :func:`loss` from θ = ``start`` (d,), near the solution of a problem with a few outcomes fewer.

    ``inverse`` (d, d) is close to that of the Hessian, or empty; each step improves it in place by what it did to the
    gradient (BFGS). Steps then shrink the gradient faster and faster, while a Hessian costs as much as d steps and is
    computed only if one does not shrink it by a factor of 4.
    """
    tolerance = TOLERANCE * problem.size
    theta, is_new, steps = start.copy(), False, 0
    gradient, curvatures = np.empty_like(start), np.empty_like(problem.weights)
    next_gradient, next_curvatures = np.empty_like(start), np.empty_like(problem.weights)
    largest = gradient_at(theta, problem, gradient, curvatures)
    while largest > tolerance and steps < _MOST_STEPS:
        if not inverse.size:
            inverse = np.ascontiguousarray(np.linalg.inv(hessian_of(problem.differences, curvatures, problem.ridge)))
            is_new = True
        candidate = theta - inverse @ gradient
        next_largest = gradient_at(candidate, problem, next_gradient, next_curvatures)
        if not (is_new or 4.0 * next_largest <= largest or next_largest <= tolerance):
            inverse = np.empty((0, 0))
            continue
        if not next_largest <= max(0.5 * largest, tolerance):
            candidate = _shortened(theta, inverse @ gradient, gradient, problem)
            next_largest = gradient_at(candidate, problem, next_gradient, next_curvatures)
        if next_largest > tolerance:
            _add_secant(inverse, candidate - theta, next_gradient - gradient)
        theta, largest, is_new = candidate, next_largest, False
        gradient, next_gradient = next_gradient, gradient
        curvatures, next_curvatures = next_curvatures, curvatures
        steps += 1
    return Estimate(theta, inverse, largest, tolerance, steps, problem.ridge)


@compiled
def _add_secant(inverse: Matrix, step: Vector, change: Vector) -> None:
    """Improve a Hessian's ``inverse`` P (d, d), in place, after a step s (d,) that changed the gradient by y (BFGS).

    P ← (I − syᵀ/sᵀy) P (I − ysᵀ/sᵀy) + ssᵀ/sᵀy, so that Py = s.
    """
    image, length = inverse @ change, np.dot(step, change)
    if not length > 0.0:  # rounding
        return
    own = (1.0 + np.dot(change, image) / length) / length
    for i in range(step.size):
        for j in range(step.size):
            inverse[i, j] += own * (step[i] * step[j]) - (image[i] * step[j] + step[i] * image[j]) / length


@inlined
def _solve(start: Vector, problem: FitProblem, root: Matrix, is_repeated: bool) -> Estimate:
    """Run Newton's method; with far fewer rows than features, in the span of the rows, which contains the estimate."""
    differences, weights, wins, ridge, link, size = problem
    rows, dimension = differences.shape
    in_span = dimension >= HIGH_DIMENSION and 4 * rows < dimension
    basis = differences
    if in_span:  # Φᵀ = QR, so φᵀθ = (Rᵀ)(Qᵀθ), and ‖θ‖ = ‖Qᵀθ‖ in the span
        orthonormal, triangle = np.linalg.qr(np.ascontiguousarray(differences.T))
        basis, differences = np.ascontiguousarray(orthonormal), np.ascontiguousarray(triangle.T)
        start, size = start @ basis, size_of(differences, weights)
        root = np.empty((0, 0))
    problem = FitProblem(differences, weights, wins, ridge, link, size)
    if is_repeated and not in_span and keeps_inverse(dimension):
        return quasi_newton(start, problem, root)
    solution = newton(start, problem, root)
    if not in_span:
        return solution
    longest = math.sqrt(rows)  # no entry of the gradient is larger than its length, which Q keeps
    theta, _, gradient, tolerance, steps, _ = solution
    return Estimate(basis @ theta, np.empty((0, 0)), longest * gradient, longest * tolerance, steps, ridge)


@inlined
def solve(start: Vector, problem: FitProblem, ball: float, root: Matrix, is_repeated: bool) -> Estimate:
    """Solve eq. (MLE) from θ = ``start`` (d,), within ‖θ‖ ≤ B = ``ball``, which may be ∞.

    ``root`` is L of an earlier Hessian LLᵀ, or empty. If the problem ``is_repeated`` with more and more outcomes, and
    :func:`keeps_inverse` says so, it is the inverse of the Hessian instead.

    By its optimality conditions the constrained estimate is the unconstrained one at a larger ridge λ + μ, and ‖θ(μ)‖
    decreases with μ, so μ is found by doubling and bisection.
    """
    differences, weights, wins, own_ridge, link, size = problem
    ridge = low = own_ridge
    high = math.inf
    while True:
        trial = _solve(start, FitProblem(differences, weights, wins, ridge, link, size), root, is_repeated)
        norm = math.sqrt(dot(trial.theta, trial.theta))
        if norm > ball:
            low = ridge
        else:
            high = ridge
            if high == own_ridge or norm >= ball * (1.0 - 1e-10) or high - low <= 1e-14 * high:
                return trial
        ridge = 2.0 * low if high == math.inf else 0.5 * (low + high)
        start, root = trial.theta, np.empty((0, 0))


@compiled
def one_step_ahead(
    theta: Vector, root: Matrix, difference: Vector, weight: float, share: float, link: LinkNumbers
) -> Vector:
    """Predict the estimate (d,) after one more outcome, to first order, as a start for :func:`newton`.

    At the last fit the gradient was zero, so it now is that of the new outcome. The Hessian is LLᵀ of that fit,
    ``root`` = L (d, d), plus the outcome's term. Return θ itself if φᵀθ would move too far for σ to be nearly linear.
    If :func:`keeps_inverse` says so, ``root`` is the inverse of the Hessian instead, and takes in the outcome's term.
    """
    p, s = probability_and_slope(link.kind, link.scale, dot(difference, theta))
    is_inverse = keeps_inverse(theta.size)
    image = root @ difference if is_inverse else solve_by_root(root, difference)
    squared = dot(difference, image)
    length = weight * (p - share) / (1.0 + weight * s * squared)
    result = theta
    if abs(link.scale * length * squared) <= 1.0:
        result = theta - length * image
    if is_inverse:
        gain = weight * slope(link.kind, link.scale, dot(difference, result))
        gain /= 1.0 + gain * squared
        for i in range(theta.size):
            for j in range(theta.size):
                root[i, j] -= gain * (image[i] * image[j])
    return result


class ToldRows(NamedTuple):
    """The arrays of :class:`Comparisons`, with spare capacity."""

    differences: Matrix
    sums: Matrix
    """Σw and Σw·o of each row, shape (2, n)."""
    slots: NDArray[np.int64]
    """A hash table of row numbers, larger than the number of rows; −1 marks a free slot."""
    size: NDArray[np.int64]
    """The number of rows, and of the votes whose order is known, shape (2,)."""
    votes: NDArray[np.int64]
    """3·row + 2·share of each vote in the order of telling; the share is that of the row's side."""


@compiled
def slot_of(slots: NDArray[np.int64], differences: Matrix, row: int) -> int:
    """Return the position of this row's difference in the hash table ``slots``, or the free slot for it."""
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
    """Add one outcome, ``share`` = o, to the rows, in place; there must be room for one more row and vote.

    φ and −φ share one row, whose first non-zero entry is positive.
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
    own_share = share if sign > 0.0 else 1.0 - share
    rows.sums[0, row] += weight
    rows.sums[1, row] += weight * own_share
    rows.votes[rows.size[1]] = 3 * row + int(2.0 * own_share)
    rows.size[1] += 1


class Comparisons:
    """All outcomes so far, as rows of (φ, Σw, Σw·o), and their order; φ and −φ share a row.

    >>> told = Comparisons(dimension=1)
    >>> told.add(np.array([1.0]), weight=1.0, share=1.0)
    >>> told.add(np.array([-1.0]), weight=1.0, share=0.5)
    >>> len(told), told.weights.tolist(), told.wins.tolist()
    (1, [2.0], [1.5])
    """

    def __init__(self, dimension: int, room: int = 64) -> None:
        self.rows = ToldRows(
            np.empty((room, dimension)),
            np.empty((2, room)),
            np.full(2 * room, -1),
            np.zeros(2, np.int64),
            np.empty(room, np.int64),
        )

    def __len__(self) -> int:
        return int(self.rows.size[0])

    @property
    def differences(self) -> Matrix:
        """The distinct differences φ, shape (n, d), signed so that the first non-zero entry is positive."""
        return self.rows.differences[: len(self)]

    @property
    def weights(self) -> Vector:
        """Σw of each row, shape (n,)."""
        return self.rows.sums[0, : len(self)]

    @property
    def wins(self) -> Vector:
        """Σw·o of each row, shape (n,)."""
        return self.rows.sums[1, : len(self)]

    @property
    def votes(self) -> NDArray[np.int64]:
        """3·row + 2·share of each vote in the order of telling, shape (v,)."""
        return self.rows.votes[: self.rows.size[1]]

    def add(self, difference: Vector, *, weight: float, share: float) -> None:
        """Add the outcome of a duel with this difference (d,); o = ``share`` is 1, 0, or ½ for a tie."""
        self.make_room()
        add_outcome(self.rows, difference, weight, share)

    def make_room(self) -> None:
        """Double the capacity if there is no room for another row, or for another vote."""
        room = self.rows.sums.shape[1]
        rows, votes = self.rows.size.tolist()
        if rows == room:
            larger = Comparisons(self.rows.differences.shape[1], 2 * room)
            larger._fill(self.differences, self.weights, self.wins)
            self.rows = larger.rows._replace(size=self.rows.size, votes=self.rows.votes)
        if votes == len(self.rows.votes):
            self.rows = self.rows._replace(votes=np.concatenate([self.votes, np.empty_like(self.votes)]))

    def _fill(self, differences: Matrix, weights: Vector, wins: Vector) -> None:
        self.rows.size[0] = len(weights)
        self.differences[:], self.weights[:], self.wins[:] = differences, weights, wins
        for row in range(len(self)):
            self.rows.slots[slot_of(self.rows.slots, self.rows.differences, row)] = row

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything that :meth:`from_state` needs."""
        return {
            "differences": self.differences.copy(),
            "weights": self.weights.copy(),
            "wins": self.wins.copy(),
            "votes": self.votes.copy(),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any], dimension: int) -> Self:
        """Rebuild the object from :meth:`state`, row for row, after checking the rows."""
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
        votes = state["votes"]
        ensure(votes.dtype == np.int64 and votes.ndim == 1, "the votes told are not a list of codes")
        ensure(((votes >= 0) & (votes < 3 * count)).all(), "a vote told belongs to no difference")
        told.rows = told.rows._replace(votes=np.concatenate([votes, np.empty(64, np.int64)]))
        told.rows.size[1] = len(votes)
        ensure(np.count_nonzero(told.rows.slots >= 0) == count, "a difference has two rows")
        return told


def problem_of(differences: Matrix, weights: Vector, wins: Vector, ridge: float, link: Link) -> FitProblem:
    """Eq. (MLE) for rows of differences (n, d), Σw (n,) and Σw·o (n,)."""
    return FitProblem(differences, weights, wins, ridge, link.numbers, size_of(differences, weights))


def solved(start: Vector, problem: FitProblem, ball: float = math.inf) -> Estimate:
    """Solve the problem, or raise :class:`ConvergenceError`."""
    with converging(problem.ridge):
        estimate = solve(start, problem, ball, np.empty((0, 0)), is_repeated=False)
    check_converged(estimate.gradient / estimate.tolerance, problem.ridge)
    return estimate


class converging:  # noqa: N801  # used as a statement; a generator would take longer than a fit
    """Turn a singular Hessian into :class:`ConvergenceError`."""

    def __init__(self, ridge: float) -> None:
        self._ridge = ridge

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        """Raise the error."""
        if isinstance(error, np.linalg.LinAlgError):
            raise ConvergenceError(
                "the estimate did not converge (singular Hessian): the features or weights are too extreme for "
                f"a ridge of {self._ridge:g}; scale them, or raise the ridge where it is a setting."
            ) from None


def check_converged(excess: float, ridge: float) -> None:
    """Raise an error if the gradient is ``excess`` > 1 times its tolerance."""
    if not excess <= 1.0:
        raise ConvergenceError(
            f"the estimate did not converge: its gradient is {excess:.2g} times the tolerance, because the features or "
            f"weights are too extreme for a ridge of {ridge:g}; scale them, or raise the ridge where it is a setting."
        )
