"""Σ = λI + Σ_i c_i φ_i φ_iᵀ and its inverse, kept by rank-one updates (Algorithm 1, line 3)."""

import math
from typing import Self

import numpy as np

from fairduel._compiled import compiled
from fairduel.duel import Matrix, Vector

_SMALLEST_PIVOT = 1e-6
_AFRESH = 1024


@compiled
def multiply(inverse: Matrix, direction: Vector) -> Vector:
    """Return Σ⁻¹φ for a symmetric (d, d) matrix, shape (d,).

    It adds multiples of whole rows, so that the order of operations, and with it every last bit, is the
    same on every machine.
    """
    result = np.zeros_like(direction)
    for i in range(direction.size):
        result += direction[i] * inverse[i]
    return result


@compiled
def dot(first: Vector, second: Vector) -> float:
    """Return firstᵀsecond, both (d,), added up in order."""
    total = 0.0
    for i in range(first.size):
        total += first[i] * second[i]
    return total


@compiled
def squared_width(inverse: Matrix, direction: Vector) -> float:
    """‖φ‖² in the norm of Σ⁻¹."""
    return max(dot(direction, multiply(inverse, direction)), 0.0)


@compiled
def rank_one(matrix: Matrix, inverse: Matrix, direction: Vector, coefficient: float, updates: int) -> float:
    """Add cφφᵀ to Σ, and to Σ⁻¹ by Sherman–Morrison, in place; return the pivot det Σ_new / det Σ_old.

    ``updates`` counts this one. Every max(1024, d) of them Σ⁻¹ is computed afresh from Σ, so that rounding cannot
    pile up; and so it is where taking back a duel (c < 0) leaves next to nothing of a direction.
    """
    d = direction.size
    image = multiply(inverse, direction)
    pivot = 1.0 + coefficient * dot(direction, image)
    for i in range(d):
        for j in range(d):
            matrix[i, j] += coefficient * (direction[i] * direction[j])
    if pivot < _SMALLEST_PIVOT or updates % max(_AFRESH, d) == 0:
        fresh = np.linalg.inv(matrix)
        for i in range(d):
            for j in range(d):
                inverse[i, j] = 0.5 * (fresh[i, j] + fresh[j, i])
        return pivot
    gain = coefficient / pivot
    for i in range(d):
        for j in range(d):
            inverse[i, j] -= gain * (image[i] * image[j])  # this order keeps Σ⁻¹ exactly symmetric
    return pivot


class Information:
    """What has been asked so far, as Σ, Σ⁻¹ and log det Σ.

    >>> information = Information(dimension=2, ridge=1.0)
    >>> information.add(np.array([1.0, 0.0]), 3.0)
    >>> information.inverse.tolist()
    [[0.25, 0.0], [0.0, 1.0]]
    """

    def __init__(self, dimension: int, ridge: float) -> None:
        self.matrix: Matrix = ridge * np.eye(dimension)
        self.inverse: Matrix = np.eye(dimension) / ridge
        self.log_determinant = dimension * math.log(ridge)
        self.updates = 0

    def width(self, direction: Vector) -> float:
        """‖φ‖_Σ⁻¹ of one direction φ, shape (d,)."""
        return math.sqrt(squared_width(self.inverse, direction))

    def norm(self, vector: Vector) -> float:
        """‖v‖_Σ of one vector v, shape (d,)."""
        return math.sqrt(squared_width(self.matrix, vector))

    def add(self, direction: Vector, coefficient: float) -> None:
        """Add ``coefficient`` · φφᵀ."""
        self.updates += 1
        pivot = rank_one(self.matrix, self.inverse, direction, coefficient, self.updates)
        if pivot < _SMALLEST_PIVOT:
            self.log_determinant = float(np.linalg.slogdet(self.matrix)[1])
        else:
            self.log_determinant += math.log(pivot)

    def remove(self, direction: Vector, coefficient: float) -> None:
        """Take back an earlier :meth:`add` of the same direction and coefficient."""
        self.add(direction, -coefficient)

    def state(self) -> dict[str, Matrix | float | int]:
        """Everything that :meth:`from_state` needs."""
        return {
            "matrix": self.matrix.copy(),
            "inverse": self.inverse.copy(),
            "log_determinant": self.log_determinant,
            "updates": self.updates,
        }

    @classmethod
    def from_state(cls, state: dict[str, Matrix | float | int]) -> Self:
        """Rebuild what :meth:`state` gave."""
        matrix = np.array(state["matrix"], dtype=np.float64)
        information = cls(len(matrix), ridge=1.0)
        information.matrix = matrix
        information.inverse = np.array(state["inverse"], dtype=np.float64)
        information.log_determinant = float(state["log_determinant"])
        information.updates = int(state["updates"])
        return information
