"""The weighted, ridge-regularised maximum-likelihood estimate of eq. (MLE).

θ solves λθ + Σ_i w_i [σ(φ_iᵀθ) − o_i] φ_i = 0. The left side is the gradient of the strictly convex
λ/2 ‖θ‖² + Σ_i w_i [S(φ_iᵀθ) − o_i φ_iᵀθ] with S′ = σ, so for λ > 0 there is exactly one solution,
whatever the data. Duels with the same φ enter through (Σw, Σw·o) alone, so they share one row.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from fairduel._compiled import compiled
from fairduel.duel import Matrix, Vector
from fairduel.errors import ConvergenceError
from fairduel.links import Link, potential, probability, slope

TOLERANCE = 1e-8
"""The gradient's largest entry at the estimate is at most this times (1 + Σw)."""
_MOST_STEPS = 200
_BLOCK = 512  # rows at a time: they stay in the processor's cache between the three products


@compiled
def evaluate(
    theta: Vector,
    differences: Matrix,
    weights: Vector,
    wins: Vector,
    ridge: float,
    kind: int,
    scale: float,
    gradient: Vector,
    hessian: Matrix,
) -> float:
    """Return the loss at θ (d,) and fill its gradient (d,) and Hessian (d, d), in one pass over the rows.

    ``differences`` is (n, d); ``weights`` and ``wins`` are Σw and Σw·o of each row, shape (n,).
    """
    loss = 0.0
    for i in range(theta.size):
        loss += 0.5 * ridge * theta[i] * theta[i]
        gradient[i] = ridge * theta[i]
        hessian[i] = 0.0
        hessian[i, i] = ridge
    for start in range(0, weights.size, _BLOCK):
        rows = differences[start : start + _BLOCK]
        margins = rows @ theta
        curved = np.empty_like(rows)
        residuals = np.empty_like(margins)
        for i in range(margins.size):
            w, x = weights[start + i], margins[i]
            loss += w * potential(kind, scale, x) - wins[start + i] * x
            residuals[i] = w * probability(kind, scale, x) - wins[start + i]
            curved[i] = w * slope(kind, scale, x) * rows[i]
        gradient += residuals @ rows
        hessian += curved.T @ rows
    return loss


@compiled
def newton(
    start: Vector,
    differences: Matrix,
    weights: Vector,
    wins: Vector,
    ridge: float,
    kind: int,
    scale: float,
    tolerance: float,
) -> tuple[Vector, float, int]:
    """Minimise by Newton steps, halved until the loss falls; return θ, its largest gradient entry, steps."""
    d = start.size
    theta = start.copy()
    gradient, hessian = np.empty(d), np.empty((d, d))
    next_gradient, next_hessian = np.empty(d), np.empty((d, d))
    loss = evaluate(theta, differences, weights, wins, ridge, kind, scale, gradient, hessian)
    steps = 0
    while np.max(np.abs(gradient)) > tolerance and steps < _MOST_STEPS:
        step = np.linalg.solve(hessian, gradient)
        decrement = np.dot(step, gradient)
        rounding = 1e-14 * (1.0 + abs(loss))
        size = 1.0
        while True:
            candidate = theta - size * step
            next_loss = evaluate(candidate, differences, weights, wins, ridge, kind, scale, next_gradient, next_hessian)
            if next_loss <= loss - 1e-4 * size * decrement + rounding or size < 1e-10:
                break
            size *= 0.5
        theta, loss = candidate, next_loss
        gradient, next_gradient = next_gradient, gradient
        hessian, next_hessian = next_hessian, hessian
        steps += 1
    return theta, np.max(np.abs(gradient)), steps


class Comparisons:
    """All outcomes told so far, as rows of (φ, Σw, Σw·o); equal differences share a row, whatever their sign.

    >>> told = Comparisons(dimension=1)
    >>> told.add(np.array([1.0]), weight=1.0, first_won=True)
    >>> told.add(np.array([-1.0]), weight=1.0, first_won=True)
    >>> len(told), told.weights.tolist(), told.wins.tolist()
    (1, [2.0], [1.0])
    """

    def __init__(self, dimension: int) -> None:
        self._differences: Matrix = np.empty((64, dimension))
        self._weights: Vector = np.empty(64)
        self._wins: Vector = np.empty(64)
        self._row_of: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._row_of)

    @property
    def differences(self) -> Matrix:
        """The distinct differences φ, shape (n, d), each turned so that its first non-zero entry is positive."""
        return self._differences[: len(self)]

    @property
    def weights(self) -> Vector:
        """Σw of each row, shape (n,)."""
        return self._weights[: len(self)]

    @property
    def wins(self) -> Vector:
        """Σw·o of each row, shape (n,)."""
        return self._wins[: len(self)]

    def add(self, difference: Vector, *, weight: float, first_won: bool) -> None:
        """Add one outcome of a duel with this difference, shape (d,)."""
        nonzero = np.flatnonzero(difference)
        if nonzero.size and difference[nonzero[0]] < 0:
            difference, first_won = -difference, not first_won
        self._put(difference + 0.0, weight, weight if first_won else 0.0)  # + 0.0 turns −0.0 into 0.0

    def _put(self, difference: Vector, weight: float, win: float) -> None:
        key = difference.tobytes()
        row = self._row_of.get(key)
        if row is None:
            row = len(self)
            if row == len(self._weights):
                self._grow()
            self._row_of[key] = row
            self._differences[row] = difference
            self._weights[row] = self._wins[row] = 0.0
        self._weights[row] += weight
        self._wins[row] += win

    def _grow(self) -> None:
        self._differences = np.concatenate([self._differences, np.empty_like(self._differences)])
        self._weights = np.concatenate([self._weights, np.empty_like(self._weights)])
        self._wins = np.concatenate([self._wins, np.empty_like(self._wins)])

    def state(self) -> dict[str, Matrix | Vector]:
        """Everything that :meth:`from_state` needs."""
        return {
            "differences": self.differences.copy(),
            "weights": self.weights.copy(),
            "wins": self.wins.copy(),
        }

    @classmethod
    def from_state(cls, state: dict[str, Matrix | Vector]) -> Self:
        """Rebuild what :meth:`state` gave, row for row."""
        told = cls(state["differences"].shape[1])
        for difference, weight, win in zip(state["differences"], state["weights"], state["wins"], strict=True):
            told._put(difference, float(weight), float(win))
        return told


@dataclass(frozen=True, slots=True)
class Estimate:
    """θ with the certificate that it solves eq. (MLE)."""

    theta: Vector
    """The estimate, shape (d,)."""
    gradient: float
    """Largest entry of the gradient there; θ is within √d · gradient / λ of the exact solution."""
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
    >>> told.add(np.array([1.0]), weight=1.0, first_won=True)
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
    tolerance = TOLERANCE * (1.0 + float(told.weights.sum()))
    theta, gradient, steps = newton(
        start, told.differences, told.weights, told.wins, ridge, link.kind, link.scale, tolerance
    )
    if not gradient <= tolerance:
        raise ConvergenceError(
            f"the estimate was not reached: after {steps} Newton steps the gradient is {gradient:.2g}, "
            f"allowed is {tolerance:.2g}; a larger ridge than {ridge:g} helps."
        )
    return Estimate(theta, gradient, steps, ridge)
