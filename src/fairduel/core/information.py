"""Σ = λI + Σ_i c_i φ_i φ_iᵀ and its inverse, kept by rank-one updates (Algorithm 1, line 3)."""

import math
from typing import Any, Self

import numpy as np

from fairduel.checks import ensure, finite, integer
from fairduel.core.compiling import compiled
from fairduel.duel import Matrix, Vector

_SMALLEST_PIVOT = 1e-6
AFRESH = 1024
"""After so many updates an inverse or a Gram matrix is computed afresh, so that rounding cannot pile up."""
HIGH_DIMENSION = 64
"""From this dimension on an agent keeps the Gram matrix of a fixed set; compiled runs, which stay below, always do."""
_BY_HAND = 8  # features: to call BLAS for so few costs more than the sums
_AT_ONCE = 64  # updates that waited: more than these are cheaper in one product
_CONSISTENT = 1e-3  # relative: rounding leaves 3e-7 at the very worst, and no agent that was saved may be refused
_LARGEST_KEPT = 2048  # actions: their Gram matrix has 32 MiB


@compiled
def multiply(inverse: Matrix, direction: Vector) -> Vector:
    """Return Σ⁻¹φ for a symmetric (d, d) matrix, shape (d,).

    It adds multiples of whole rows, so that the order of operations, and with it every last bit, is the
    same on every machine.
    """
    result = np.zeros_like(direction)
    for i in range(direction.size):
        for j in range(direction.size):
            result[j] += direction[i] * inverse[i, j]
    return result


@compiled
def dot(first: Vector, second: Vector) -> float:
    """Return firstᵀsecond, both (d,), added up in order."""
    total = 0.0
    for i in range(first.size):
        total += first[i] * second[i]
    return total


@compiled
def products(rows: Matrix, vector: Vector) -> Vector:
    """Return xᵀv of each of the ``rows`` (n, d), shape (n,)."""
    if vector.size > _BY_HAND:
        return rows @ vector
    result = np.empty(len(rows))
    for i in range(result.size):
        result[i] = dot(rows[i], vector)
    return result


@compiled
def combination(factors: Vector, rows: Matrix) -> Vector:
    """Return Σ_i f_i x_i of the ``rows`` (n, d), shape (d,)."""
    if rows.shape[1] > _BY_HAND:
        return factors @ rows
    result = np.zeros(rows.shape[1])
    for i in range(factors.size):
        for j in range(result.size):
            result[j] += factors[i] * rows[i, j]
    return result


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
    if pivot < _SMALLEST_PIVOT or updates % max(AFRESH, d) == 0:
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


@compiled
def gram_rank_one(gram: Matrix, first: int, second: int, coefficient: float) -> None:
    """Bring XΣ⁻¹Xᵀ (K, K) up to date, in place, after c(x_a − x_b)(x_a − x_b)ᵀ was added to Σ.

    With v = XΣ⁻¹(x_a − x_b), which is the difference of two of its columns, it loses c/(1 + c‖x_a − x_b‖²_Σ⁻¹) vvᵀ.
    """
    image = gram[first] - gram[second]
    gain = coefficient / (1.0 + coefficient * (image[first] - image[second]))
    for i in range(image.size):
        for j in range(image.size):
            gram[i, j] -= gain * (image[i] * image[j])


def keeps_gram(count: int, dimension: int) -> bool:
    """Whether the Gram matrix of so many actions is worth keeping."""
    return dimension >= HIGH_DIMENSION and count <= _LARGEST_KEPT


class Information:
    """What has been asked so far, as Σ, Σ⁻¹ and log det Σ.

    In high dimension, a set of actions that is asked again and again has its Gram matrix XΣ⁻¹Xᵀ kept up to date, and
    updates of Σ itself wait until somebody looks at it: so such an agent never pays for d².

    >>> information = Information(dimension=2, ridge=1.0)
    >>> information.add(np.array([1.0, 0.0]), 3.0)
    >>> information.inverse.tolist()
    [[0.25, 0.0], [0.0, 1.0]]
    """

    def __init__(self, dimension: int, ridge: float) -> None:
        self._matrix: Matrix = ridge * np.eye(dimension)
        self._inverse: Matrix = np.eye(dimension) / ridge
        self._log_determinant = dimension * math.log(ridge)
        self._waiting: list[tuple[Vector, float, float]] = []  # φ, c, and what log det Σ has of it already
        self._actions: Matrix | None = None
        self.gram: Matrix | None = None
        """XΣ⁻¹Xᵀ (K, K) of the set that is looked at, where it is kept."""
        self._gram_updates = 0
        self.updates = 0

    @property
    def matrix(self) -> Matrix:
        """Σ, shape (d, d)."""
        self._work_in()
        return self._matrix

    @property
    def inverse(self) -> Matrix:
        """Σ⁻¹, shape (d, d)."""
        self._work_in()
        return self._inverse

    @property
    def log_determinant(self) -> float:
        """log det Σ."""
        if self.gram is None:
            self._work_in()
        return self._log_determinant

    def width(self, direction: Vector, pair: tuple[int, int] | None = None) -> float:
        """‖φ‖_Σ⁻¹ of one direction φ, shape (d,); ``pair``: of which two actions of the set looked at."""
        if self.gram is not None and pair is not None:
            a, b = pair
            return math.sqrt(max(self.gram[a, a] + self.gram[b, b] - 2.0 * self.gram[a, b], 0.0))
        return math.sqrt(squared_width(self.inverse, direction))

    def look_at(self, actions: Matrix | None) -> None:
        """Say which list X (K, d) is asked about now, if any.

        The second time on end its Gram matrix is made and kept; of a list in single precision at once, in that
        precision: widths below a thousandth of the actions' own are then lost in rounding.
        """
        if actions is None or not keeps_gram(*actions.shape):
            self._actions = self.gram = None
            return
        is_new = self._actions is None or not np.array_equal(self._actions, actions)
        if is_new:
            self._actions, self.gram = actions.copy(), None
        if (not is_new or actions.dtype == np.float32) and (self.gram is None or self._gram_updates >= AFRESH):
            half = actions @ self.inverse.astype(actions.dtype, copy=False)
            self.gram = np.ascontiguousarray(half @ actions.T, dtype=np.float64)
            self._gram_updates = 0

    def norm(self, vector: Vector) -> float:
        """‖v‖_Σ of one vector v, shape (d,)."""
        return math.sqrt(squared_width(self.matrix, vector))

    def add(self, direction: Vector, coefficient: float, pair: tuple[int, int] | None = None) -> None:
        """Add ``coefficient`` · φφᵀ; ``pair``: of which two actions of the set looked at φ is the difference.

        Without it a kept Gram matrix is dropped, and made afresh when the set is next looked at.
        """
        if self.gram is None or pair is None:
            self.gram = None
            self._waiting.append((direction, coefficient, 0.0))
            return
        pivot = 1.0 + coefficient * self.width(direction, pair) ** 2
        gram_rank_one(self.gram, pair[0], pair[1], coefficient)
        self._gram_updates += 1
        self._log_determinant += math.log(pivot)
        self._waiting.append((direction, coefficient, math.log(pivot)))

    def _work_in(self) -> None:
        if len(self._waiting) > _AT_ONCE:
            directions = np.array([direction for direction, _, _ in self._waiting])
            coefficients = np.array([coefficient for _, coefficient, _ in self._waiting])
            self._matrix += (directions.T * coefficients) @ directions
            inverse = np.linalg.inv(self._matrix)
            self._inverse = np.asarray(0.5 * (inverse + inverse.T), dtype=np.float64)
            self._log_determinant = float(np.linalg.slogdet(self._matrix)[1])
            self.updates += len(self._waiting)
            self._waiting.clear()
        for direction, coefficient, counted in self._waiting:
            self.updates += 1
            pivot = rank_one(self._matrix, self._inverse, direction, coefficient, self.updates)
            if pivot < _SMALLEST_PIVOT:
                self._log_determinant = float(np.linalg.slogdet(self._matrix)[1])
            else:
                self._log_determinant += math.log(pivot) - counted
        self._waiting.clear()

    def state(self) -> dict[str, Any]:
        """Everything that :meth:`from_state` needs.

        A kept Gram matrix is dropped, so that this one goes on to the last bit like the one that is rebuilt.
        """
        self._actions = self.gram = None
        return {
            "matrix": self.matrix.copy(),
            "inverse": self.inverse.copy(),
            "log_determinant": self.log_determinant,
            "updates": self.updates,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any], dimension: int) -> Self:
        """Rebuild what :meth:`state` gave, after checking that it belongs to a positive-definite Σ (d, d).

        Without a ``log_determinant`` it is computed.
        """
        information = cls(dimension, ridge=1.0)
        information._matrix = matrix = checked_array("Σ", state["matrix"], (dimension, dimension))
        information._inverse = inverse = checked_array("Σ⁻¹", state["inverse"], (dimension, dimension))
        information.updates = integer("updates of Σ", state["updates"])
        diagonal = matrix.diagonal()
        ensure((diagonal > 0).all(), "Σ is not positive definite")
        scale = np.sqrt(np.outer(diagonal, diagonal))
        ensure((np.abs(matrix - matrix.T) <= _CONSISTENT * scale).all(), "Σ is not symmetric")
        ensure((np.abs(inverse - inverse.T) <= _CONSISTENT * np.abs(inverse).max()).all(), "Σ⁻¹ is not symmetric")
        sign, log_determinant = np.linalg.slogdet(matrix)
        ensure(sign > 0 and (np.linalg.eigvalsh(matrix / scale) > 0).all(), "Σ is not positive definite")
        error = np.abs(matrix @ inverse - np.eye(dimension)).max()
        ensure(error <= _CONSISTENT * (np.abs(matrix) @ np.abs(inverse)).max(), "Σ⁻¹ is not the inverse of Σ")
        information._log_determinant = finite("log det Σ", state.get("log_determinant", float(log_determinant)))
        ensure(
            abs(information._log_determinant - log_determinant) <= _CONSISTENT * (dimension + abs(log_determinant)),
            "log det Σ is not that of Σ",
        )
        return information


def checked_array(name: str, array: Any, shape: tuple[int, ...]) -> Matrix:
    """Return a copy of a saved array of finite floats, if it has this ``shape``."""
    ensure(isinstance(array, np.ndarray) and array.dtype == np.float64, f"{name} is not an array of floats")
    ensure(array.shape == shape, f"{name} has shape {array.shape} instead of {shape}")
    ensure(np.isfinite(array).all(), f"{name} is not finite")
    return np.array(array, order="C")
