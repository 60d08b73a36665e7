"""Σ = λI + Σ_i c_i φ_i φ_iᵀ and its inverse, kept by rank-one updates (Algorithm 1, line 3)."""

import math
from typing import Any, NamedTuple, Self

import numpy as np

from fairduel.checks import ensure, finite, integer
from fairduel.core.compiling import compiled, inlined
from fairduel.duel import Matrix, Vector

_SMALLEST_PIVOT = 1e-6
AFRESH = 1024
"""After so many updates an inverse or a Gram matrix is computed afresh, so that rounding cannot pile up."""
HIGH_DIMENSION = 64
"""From this dimension on updates of Σ wait while the Gram matrix of a fixed set answers; compiled runs stay below."""
FEW = 128
"""Of so few actions, or of up to d, the Gram matrix is always worth having."""
BY_HAND = 8  # features: to call BLAS for so few costs more than the sums
_AT_ONCE = 64  # updates that waited: more than these are cheaper in one product
_CONSISTENT = 1e-3  # relative: rounding leaves 3e-7 at the very worst, and no agent that was saved may be refused
_LARGEST_KEPT = 2048  # actions: their Gram matrix has 32 MiB


@compiled
def multiply(inverse: Matrix, direction: Vector) -> Vector:
    """Return Σ⁻¹φ for a symmetric (d, d) matrix, shape (d,).

    It adds multiples of whole rows, so that the order of operations, and with it every last bit, is the
    same on every machine.
    """
    result = np.zeros(direction.size)
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
    if vector.size > BY_HAND:
        return rows @ vector
    result = np.empty(len(rows))
    for i in range(result.size):
        result[i] = dot(rows[i], vector)
    return result


@inlined
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


class InformationArrays(NamedTuple):
    """The arrays of :class:`Information`, as compiled functions know them; an agent without them has empty ones."""

    matrix: Matrix
    """Σ without the updates that wait, shape (d, d)."""
    inverse: Matrix
    """Its inverse, shape (d, d)."""
    gram: Matrix
    """XΣ⁻¹Xᵀ (K, K) of the actions looked at, with all updates; (0, 0) where none is kept."""
    waiting: Matrix
    """φ and c of the updates that wait, in the first rows, shape (n, d + 1); (0, d + 1) where none ever does."""
    marks: Vector
    """log det Σ with all updates; how many updates there were, of Σ and of the Gram matrix since it was made; how many
    wait; shape (4,)."""


LOG_DETERMINANT, UPDATES, GRAM_UPDATES, WAITING = range(4)


@inlined
def fill_gram(gram: Matrix, marks: Vector, inverse: Matrix, actions: Matrix) -> None:
    """Compute the Gram matrix (K, K) of ``actions`` (K, d) if it is due, so that rounding cannot pile up."""
    if gram.size and marks[GRAM_UPDATES] >= AFRESH:
        gram[:] = (actions @ inverse) @ actions.T
        marks[GRAM_UPDATES] = 0


@inlined
def width_between(arrays: InformationArrays, difference: Vector, first: int, second: int) -> float:
    """‖φ‖_Σ⁻¹ of the difference φ (d,) of two of the actions looked at."""
    if arrays.gram.size and arrays.waiting.size:
        gram = arrays.gram
        return math.sqrt(max(gram[first, first] + gram[second, second] - 2.0 * gram[first, second], 0.0))
    return math.sqrt(squared_width(arrays.inverse, difference))


@inlined
def add_difference(arrays: InformationArrays, difference: Vector, coefficient: float, first: int, second: int) -> None:
    """Add cφφᵀ to Σ, where φ (d,) is the difference of two of the actions looked at.

    Where updates may wait there must be room for one more.
    """
    matrix, inverse, gram, waiting, marks = arrays
    if gram.size and waiting.size:
        squared = gram[first, first] + gram[second, second] - 2.0 * gram[first, second]
        marks[LOG_DETERMINANT] += math.log(1.0 + coefficient * max(squared, 0.0))
        place = int(marks[WAITING])
        waiting[place, :-1], waiting[place, -1] = difference, coefficient
        marks[WAITING] += 1
    else:
        add_direction(matrix, inverse, marks, difference, coefficient)
    if gram.size:
        gram_rank_one(gram, first, second, coefficient)
        marks[GRAM_UPDATES] += 1


@inlined
def add_direction(matrix: Matrix, inverse: Matrix, marks: Vector, direction: Vector, coefficient: float) -> None:
    """Add cφφᵀ to Σ, its inverse and its determinant; the Gram matrix is left alone.

    Where c < 0 leaves next to nothing of a direction, the determinant must be computed afresh.
    """
    marks[UPDATES] += 1
    pivot = rank_one(matrix, inverse, direction, coefficient, int(marks[UPDATES]))
    marks[LOG_DETERMINANT] += math.log(max(pivot, _SMALLEST_PIVOT))


def may_keep_gram(count: int, dimension: int) -> bool:
    """Whether the Gram matrix of so many actions is worth keeping from one round to the next."""
    return dimension >= HIGH_DIMENSION and count <= _LARGEST_KEPT


class Information:
    """What has been asked so far, as Σ, Σ⁻¹ and log det Σ.

    A set of actions that is asked again and again has its Gram matrix XΣ⁻¹Xᵀ kept up to date. In high dimension
    updates of Σ itself then wait until somebody looks at it: so such an agent never pays for d².

    >>> information = Information(dimension=2, ridge=1.0)
    >>> information.add(np.array([1.0, 0.0]), 3.0)
    >>> information.inverse.tolist()
    [[0.25, 0.0], [0.0, 1.0]]
    """

    def __init__(self, dimension: int, ridge: float) -> None:
        self.arrays = InformationArrays(
            matrix=ridge * np.eye(dimension),
            inverse=np.eye(dimension) / ridge,
            gram=np.empty((0, 0)),
            waiting=np.empty((0, dimension + 1)),
            marks=np.array([dimension * math.log(ridge), 0.0, 0.0, 0.0]),
        )
        self._actions: Matrix | None = None

    @property
    def matrix(self) -> Matrix:
        """Σ, shape (d, d)."""
        self._settle()
        return self.arrays.matrix

    @property
    def inverse(self) -> Matrix:
        """Σ⁻¹, shape (d, d)."""
        self._settle()
        return self.arrays.inverse

    @property
    def log_determinant(self) -> float:
        """log det Σ."""
        return float(self.arrays.marks[LOG_DETERMINANT])

    @property
    def gram(self) -> Matrix | None:
        """XΣ⁻¹Xᵀ (K, K) of the actions looked at, where it is kept."""
        return self.arrays.gram if self.arrays.gram.size else None

    def width(self, direction: Vector) -> float:
        """‖φ‖_Σ⁻¹ of one direction φ, shape (d,)."""
        return math.sqrt(squared_width(self.inverse, direction))

    def norm(self, vector: Vector) -> float:
        """‖v‖_Σ of one vector v, shape (d,)."""
        return math.sqrt(squared_width(self.matrix, vector))

    def look_at(self, actions: Matrix | None, *, few: bool = True) -> None:
        """Say which list X (K, d) is asked about now, if any; a Gram matrix that is kept is up to date then.

        One is kept of ``few`` actions, if wanted; in high dimension also of more, from the second time on end, and of
        any list in single precision, at once and in that precision: widths below a thousandth of the actions' own are
        then lost in rounding.
        """
        if actions is None:
            self._forget_actions()
            return
        count, dimension = actions.shape
        is_single = actions.dtype == np.float32
        is_new = self._actions is None or not np.array_equal(self._actions, actions)
        if is_new:
            self._forget_actions()
            self._actions = actions.copy()
        may_wait = may_keep_gram(count, dimension) and (is_single or not is_new)
        if self.gram is None and (may_wait or (few and count <= max(FEW, dimension))):
            self._keep_gram(count)
        if may_wait and self.gram is not None:
            self._make_room()
        if self.gram is not None and self.arrays.marks[GRAM_UPDATES] >= AFRESH:
            half = actions @ self.inverse.astype(actions.dtype, copy=False)
            self.arrays.gram[:] = half @ actions.T
            self.arrays.marks[GRAM_UPDATES] = 0

    def _forget_actions(self) -> None:
        self._settle()
        if self._actions is not None:
            self._actions = None
            self._keep_gram(0)
            self.arrays = self.arrays._replace(waiting=self.arrays.waiting[:0])

    def _keep_gram(self, count: int) -> None:
        self.arrays.marks[GRAM_UPDATES] = AFRESH
        self.arrays = self.arrays._replace(gram=np.empty((count, count)))

    def _settle(self) -> None:
        """Work the updates that wait into Σ and its inverse."""
        matrix, inverse, _, waiting, marks = self.arrays
        count = int(marks[WAITING])
        if count == 0:
            return
        marks[WAITING] = 0
        directions, coefficients = np.ascontiguousarray(waiting[:count, :-1]), waiting[:count, -1]
        if count <= _AT_ONCE:
            for direction, coefficient in zip(directions, coefficients.tolist(), strict=True):
                marks[UPDATES] += 1
                rank_one(matrix, inverse, direction, coefficient, int(marks[UPDATES]))
            return
        matrix += (directions.T * coefficients) @ directions
        afresh = np.linalg.inv(matrix)
        inverse[:] = 0.5 * (afresh + afresh.T)
        marks[LOG_DETERMINANT] = np.linalg.slogdet(matrix)[1]
        marks[UPDATES] += count

    def _make_room(self) -> None:
        """See that another update can wait."""
        room, width = self.arrays.waiting.shape
        if self.arrays.marks[WAITING] == room:
            more = np.empty((max(room, _AT_ONCE), width))
            self.arrays = self.arrays._replace(waiting=np.concatenate([self.arrays.waiting, more]))

    def add(self, direction: Vector, coefficient: float) -> None:
        """Add ``coefficient`` · φφᵀ; a kept Gram matrix is dropped, and made afresh when its actions are looked at."""
        self._forget_actions()
        matrix, inverse, _, _, marks = self.arrays
        add_direction(matrix, inverse, marks, direction, coefficient)
        if coefficient < 0.0:
            marks[LOG_DETERMINANT] = np.linalg.slogdet(matrix)[1]

    def state(self) -> dict[str, Any]:
        """Everything that :meth:`from_state` needs.

        A kept Gram matrix is dropped, so that this one goes on to the last bit like the one that is rebuilt.
        """
        self._forget_actions()
        return {
            "matrix": self.matrix.copy(),
            "inverse": self.inverse.copy(),
            "log_determinant": self.log_determinant,
            "updates": int(self.arrays.marks[UPDATES]),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any], dimension: int) -> Self:
        """Rebuild what :meth:`state` gave, after checking that it belongs to a positive-definite Σ (d, d).

        Without a ``log_determinant`` it is computed.
        """
        information = cls(dimension, ridge=1.0)
        matrix = checked_array("Σ", state["matrix"], (dimension, dimension))
        inverse = checked_array("Σ⁻¹", state["inverse"], (dimension, dimension))
        diagonal = matrix.diagonal()
        ensure((diagonal > 0).all(), "Σ is not positive definite")
        scale = np.sqrt(np.outer(diagonal, diagonal))
        ensure((np.abs(matrix - matrix.T) <= _CONSISTENT * scale).all(), "Σ is not symmetric")
        ensure((np.abs(inverse - inverse.T) <= _CONSISTENT * np.abs(inverse).max()).all(), "Σ⁻¹ is not symmetric")
        sign, true = np.linalg.slogdet(matrix)
        ensure(sign > 0 and (np.linalg.eigvalsh(matrix / scale) > 0).all(), "Σ is not positive definite")
        error = np.abs(matrix @ inverse - np.eye(dimension)).max()
        ensure(error <= _CONSISTENT * (np.abs(matrix) @ np.abs(inverse)).max(), "Σ⁻¹ is not the inverse of Σ")
        saved = finite("log det Σ", state.get("log_determinant", float(true)))
        ensure(abs(saved - true) <= _CONSISTENT * (dimension + abs(true)), "log det Σ is not that of Σ")
        arrays = information.arrays
        arrays.matrix[:], arrays.inverse[:], arrays.marks[LOG_DETERMINANT] = matrix, inverse, saved
        arrays.marks[UPDATES] = integer("updates of Σ", state["updates"])
        return information


def checked_array(name: str, array: Any, shape: tuple[int, ...]) -> Matrix:
    """Return a copy of a saved array of finite floats, if it has this ``shape``."""
    ensure(isinstance(array, np.ndarray) and array.dtype == np.float64, f"{name} is not an array of floats")
    ensure(array.shape == shape, f"{name} has shape {array.shape} instead of {shape}")
    ensure(np.isfinite(array).all(), f"{name} is not finite")
    return np.array(array, order="C")
