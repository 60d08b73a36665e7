"""Σ = λI + Σ_i c_i φ_i φ_iᵀ and its inverse, kept by rank-one updates (Algorithm 1, line 3)."""

import math
from typing import Any, NamedTuple, Self

import numpy as np

from fairduel.checks import ensure, finite, integer
from fairduel.core.compiling import compiled, inlined
from fairduel.duel import Matrix, Vector, same_array

_SMALLEST_PIVOT = 1e-6
_LEAST_DEFERRED = 1e-3  # pivot of a withdrawn duel; below it, rounding in the Gram matrix would be magnified
REFRESH_EVERY = 1024
"""An inverse or a Gram matrix is recomputed after this many updates, so that rounding errors cannot accumulate."""
HIGH_DIMENSION = 64
"""From this dimension on, updates of Σ are deferred while a Gram matrix suffices; compiled runs are not supported."""
SMALL_SET = 128
"""The Gram matrix is always kept for at most this many actions, or d."""
SMALL_DIMENSION = 8  # features: for at most this many, plain loops are faster than BLAS
_AT_ONCE = 64  # deferred updates: more than this are applied in one product
_CONSISTENT = 1e-3  # relative: rounding leaves at most 3e-7, and no validly saved agent may be rejected
_LARGEST_KEPT = 2048  # actions: a Gram matrix of 32 MiB


@compiled
def multiply(inverse: Matrix, direction: Vector) -> Vector:
    """Return Σ⁻¹φ for a symmetric (d, d) matrix, shape (d,).

    It adds multiples of rows, so that the order of operations, and with it every bit, is the same on every machine.
    """
    result = np.zeros(direction.size)
    for i in range(direction.size):
        for j in range(direction.size):
            result[j] += direction[i] * inverse[i, j]
    return result


@compiled
def dot(first: Vector, second: Vector) -> float:
    """Return firstᵀsecond for vectors (d,), summed in order."""
    total = 0.0
    for i in range(first.size):
        total += first[i] * second[i]
    return total


@compiled
def products(rows: Matrix, vector: Vector) -> Vector:
    """Return xᵀv for each row x of ``rows`` (n, d), shape (n,)."""
    if vector.size > SMALL_DIMENSION:
        return rows @ vector
    result = np.empty(len(rows))
    for i in range(result.size):
        result[i] = dot(rows[i], vector)
    return result


def effective_dimension(rows: Matrix, ridge: float) -> float:
    """tr(G(G + λI)⁻¹) with G = Σ xxᵀ over ``rows`` (n, m): how many directions n observations reveal.

    At most min(n, m), and m if λ is far below every eigenvalue of G. It takes the place of d where features are mapped
    to many dimensions, most of which hardly matter.

    >>> effective_dimension(np.array([[3.0, 0.0], [0.0, 0.1]]), ridge=1.0).__round__(2)
    0.91
    """
    energies = np.linalg.svd(rows, compute_uv=False) ** 2
    return float((energies / (energies + ridge)).sum())


@inlined
def squared_width(inverse: Matrix, direction: Vector) -> float:
    """‖φ‖² in the norm of Σ⁻¹."""
    return max(dot(direction, multiply(inverse, direction)), 0.0)


@compiled
def _fill_inverse(matrix: Matrix, inverse: Matrix) -> None:
    """Compute Σ⁻¹ (d, d) from Σ, exactly symmetric."""
    fresh = np.linalg.inv(matrix)
    for i in range(len(matrix)):
        for j in range(len(matrix)):
            inverse[i, j] = 0.5 * (fresh[i, j] + fresh[j, i])


@compiled
def rank_one(matrix: Matrix, inverse: Matrix, direction: Vector, coefficient: float, updates: int) -> float:
    """Add cφφᵀ to Σ, update Σ⁻¹ by Sherman–Morrison, in place, and return the pivot det Σ_new / det Σ_old.

    ``updates`` includes this one. After every max(1024, d) updates Σ⁻¹ is recomputed from Σ, so that rounding errors
    cannot accumulate; also if withdrawing a duel (c < 0) leaves almost nothing of a direction.
    """
    d = direction.size
    image = multiply(inverse, direction)
    pivot = 1.0 + coefficient * dot(direction, image)
    for i in range(d):
        for j in range(d):
            matrix[i, j] += coefficient * (direction[i] * direction[j])
    if pivot < _SMALLEST_PIVOT or updates % max(REFRESH_EVERY, d) == 0:
        _fill_inverse(matrix, inverse)
        return pivot
    gain = coefficient / pivot
    for i in range(d):
        for j in range(d):
            inverse[i, j] -= gain * (image[i] * image[j])  # this order keeps Σ⁻¹ exactly symmetric
    return pivot


@compiled
def gram_rank_one(gram: Matrix, first: int, second: int, coefficient: float) -> None:
    """Update XΣ⁻¹Xᵀ (K, K), in place, after c(x_a − x_b)(x_a − x_b)ᵀ was added to Σ.

    With v = XΣ⁻¹(x_a − x_b), the difference of two of its columns, subtract c/(1 + c‖x_a − x_b‖²_Σ⁻¹) vvᵀ.
    """
    image = gram[first] - gram[second]
    gain = coefficient / (1.0 + coefficient * (image[first] - image[second]))
    for i in range(image.size):
        for j in range(image.size):
            gram[i, j] -= gain * (image[i] * image[j])


class InformationArrays(NamedTuple):
    """The arrays of :class:`Information`, for compiled functions; an unused one is empty."""

    matrix: Matrix
    """Σ without deferred updates, shape (d, d)."""
    inverse: Matrix
    """Its inverse, shape (d, d)."""
    gram: Matrix
    """XΣ⁻¹Xᵀ (K, K) of the current actions, with all updates; (0, 0) if it is not kept."""
    waiting: Matrix
    """φ and c of the deferred updates, in the first rows, shape (n, d + 1); (0, d + 1) if updates are not deferred."""
    marks: Vector
    """Scalars, shape (4,): log det Σ with all updates; the number of updates of Σ, of the Gram matrix since it was
    computed, and of deferred updates."""


LOG_DETERMINANT, UPDATES, GRAM_UPDATES, WAITING = range(4)


@inlined
def fill_gram(gram: Matrix, marks: Vector, inverse: Matrix, actions: Matrix) -> None:
    """Recompute the Gram matrix (K, K) of ``actions`` (K, d) if it is outdated."""
    if gram.size and marks[GRAM_UPDATES] >= REFRESH_EVERY:
        gram[:] = (actions @ inverse) @ actions.T
        marks[GRAM_UPDATES] = 0


@inlined
def width_between(arrays: InformationArrays, difference: Vector, first: int, second: int) -> float:
    """‖φ‖_Σ⁻¹ for the difference φ (d,) of two of the current actions."""
    if arrays.gram.size and arrays.waiting.size:
        gram = arrays.gram
        return math.sqrt(max(gram[first, first] + gram[second, second] - 2.0 * gram[first, second], 0.0))
    return math.sqrt(squared_width(arrays.inverse, difference))


@inlined
def add_difference(arrays: InformationArrays, difference: Vector, coefficient: float, first: int, second: int) -> None:
    """Add cφφᵀ to Σ, where φ (d,) is the difference of two of the current actions.

    If updates are deferred, there must be room for one more.
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
    """Add cφφᵀ to Σ, and update its inverse and determinant, but not the Gram matrix.

    If c < 0 leaves almost nothing of a direction, the caller must recompute the determinant.
    """
    marks[UPDATES] += 1
    pivot = rank_one(matrix, inverse, direction, coefficient, int(marks[UPDATES]))
    marks[LOG_DETERMINANT] += math.log(max(pivot, _SMALLEST_PIVOT))


@compiled
def replace_matrix(arrays: InformationArrays, matrix: Matrix) -> None:
    """Set Σ to ``matrix`` (d, d) and compute its inverse and determinant; no update may be deferred."""
    arrays.matrix[:] = matrix
    _fill_inverse(matrix, arrays.inverse)
    arrays.marks[LOG_DETERMINANT] = np.linalg.slogdet(matrix)[1]
    arrays.marks[UPDATES], arrays.marks[GRAM_UPDATES] = 0, REFRESH_EVERY


def may_keep_gram(count: int, dimension: int) -> bool:
    """Whether to keep the Gram matrix of this many actions between rounds."""
    return dimension >= HIGH_DIMENSION and count <= _LARGEST_KEPT


class Information:
    """Σ of all duels asked so far, with Σ⁻¹ and log det Σ.

    If the same actions are asked about repeatedly, their Gram matrix XΣ⁻¹Xᵀ is kept up to date. In high dimension,
    updates of Σ itself are then deferred until it is needed, so that a round does not cost d³; also if a duel of these
    actions is withdrawn, or a round is about two of them only.

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
        self._whole: tuple[Matrix, int, int, int] | None = None
        """If the last round is about two of the actions: the Gram matrix of all without it, the two, and how many
        updates were deferred before it."""

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
        """XΣ⁻¹Xᵀ (K, K) of the current actions, or ``None`` if it is not kept."""
        return self.arrays.gram if self.arrays.gram.size else None

    def width(self, direction: Vector) -> float:
        """‖φ‖_Σ⁻¹ of one direction φ, shape (d,)."""
        return math.sqrt(squared_width(self.inverse, direction))

    def set_actions(self, actions: Matrix | None, *, few: bool = True) -> None:
        """Set the current actions X (K, d), if any, and update their Gram matrix if it is kept.

        It is kept for few actions, if ``few``. In high dimension it is also kept for more actions: from the second
        consecutive call on, or immediately, and in single precision, if the actions are in single precision; widths
        below a thousandth of the actions' own are then lost in rounding.
        """
        self._look_at_all()
        if actions is None:
            self._forget_actions()
            return
        if self._look_at_two(actions):
            return
        count, dimension = actions.shape
        is_single = actions.dtype == np.float32
        is_new = self._actions is None or not same_array(self._actions, actions)
        if is_new:
            self._forget_actions()
            self._actions = actions.copy()
        may_wait = may_keep_gram(count, dimension) and (is_single or not is_new)
        if self.gram is None and (may_wait or (few and count <= max(SMALL_SET, dimension))):
            self._keep_gram(count)
        if may_wait and self.gram is not None:
            self._make_room()
        if self.gram is not None and self.arrays.marks[GRAM_UPDATES] >= REFRESH_EVERY:
            half = actions @ self.inverse.astype(actions.dtype, copy=False)
            self.arrays.gram[:] = half @ actions.T
            self.arrays.marks[GRAM_UPDATES] = 0

    def _look_at_two(self, actions: Matrix) -> bool:
        """Look at two of the current actions only, if their Gram matrix is kept and updates are deferred."""
        if not (self._may_defer and len(actions) == 2 < len(self.arrays.gram)):
            return False
        assert self._actions is not None
        found = [np.flatnonzero((self._actions == row).all(axis=1)) for row in actions]
        if not all(places.size for places in found):
            return False
        first, second = (int(places[0]) for places in found)
        self._make_room()
        whole = self.arrays.gram
        self._whole = whole, first, second, int(self.arrays.marks[WAITING])
        self.arrays = self.arrays._replace(gram=whole[np.ix_((first, second), (first, second))])
        return True

    def _look_at_all(self) -> None:
        """Look at all current actions again after a round about two of them."""
        if self._whole is None:
            return
        whole, first, second, before = self._whole
        self._whole = None
        _, _, _, waiting, marks = self.arrays
        for coefficient in waiting[before : int(marks[WAITING]), -1].tolist():
            gram_rank_one(whole, first, second, coefficient)
        self.arrays = self.arrays._replace(gram=whole)

    @property
    def _may_defer(self) -> bool:
        """Whether updates by differences of the current actions can be deferred."""
        gram, marks = self.arrays.gram, self.arrays.marks
        is_fresh = gram.size > 0 and marks[GRAM_UPDATES] < REFRESH_EVERY
        return bool(is_fresh and may_keep_gram(len(gram), len(self.arrays.matrix)))

    def _defer(self, direction: Vector, coefficient: float) -> bool:
        """Update the Gram matrix only, if φ is a difference of two current actions and enough of it is left."""
        if not self._may_defer:
            return False
        assert self._actions is not None
        along = self._actions @ direction
        first, second = int(along.argmax()), int(along.argmin())
        if not np.array_equal(np.subtract(self._actions[first], self._actions[second], dtype=np.float64), direction):
            return False
        if 1.0 + coefficient * width_between(self.arrays, direction, first, second) ** 2 < _LEAST_DEFERRED:
            return False
        self._make_room()
        add_difference(self.arrays, direction, coefficient, first, second)
        return True

    def _forget_actions(self) -> None:
        self._settle()
        if self._actions is not None:
            self._actions = None
            self._keep_gram(0)
            self.arrays = self.arrays._replace(waiting=self.arrays.waiting[:0])

    def _keep_gram(self, count: int) -> None:
        self.arrays.marks[GRAM_UPDATES] = REFRESH_EVERY
        self.arrays = self.arrays._replace(gram=np.empty((count, count)))

    def _settle(self) -> None:
        """Apply the deferred updates to Σ and its inverse."""
        self._look_at_all()
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
        fresh = np.linalg.inv(matrix)
        inverse[:] = 0.5 * (fresh + fresh.T)
        marks[LOG_DETERMINANT] = np.linalg.slogdet(matrix)[1]
        marks[UPDATES] += count

    def _make_room(self) -> None:
        """Make room for another deferred update."""
        room, width = self.arrays.waiting.shape
        if self.arrays.marks[WAITING] == room:
            more = np.empty((max(room, _AT_ONCE), width))
            self.arrays = self.arrays._replace(waiting=np.concatenate([self.arrays.waiting, more]))

    def add(self, direction: Vector, coefficient: float) -> None:
        """Add ``coefficient`` · φφᵀ; drop the Gram matrix unless updates by differences of its actions are deferred."""
        self._look_at_all()
        if self._defer(direction, coefficient):
            return
        self._forget_actions()
        matrix, inverse, _, _, marks = self.arrays
        add_direction(matrix, inverse, marks, direction, coefficient)
        if coefficient < 0.0:
            marks[LOG_DETERMINANT] = np.linalg.slogdet(matrix)[1]

    def replace(self, matrix: Matrix) -> None:
        """Set Σ to ``matrix`` (d, d), and drop the Gram matrix."""
        self._forget_actions()
        replace_matrix(self.arrays, matrix)

    def state(self) -> dict[str, Any]:
        """Return everything that :meth:`from_state` needs.

        Drop the Gram matrix, so that this object and the rebuilt one continue identically, bit for bit.
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
        """Rebuild the object from :meth:`state`, after checking that Σ (d, d) is positive definite.

        A missing ``log_determinant`` is computed.
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
    """Return a copy of a saved array after checking that it has this ``shape`` and finite floats."""
    ensure(isinstance(array, np.ndarray) and array.dtype == np.float64, f"{name} is not an array of floats")
    ensure(array.shape == shape, f"{name} has shape {array.shape} instead of {shape}")
    ensure(np.isfinite(array).all(), f"{name} is not finite")
    return np.array(array, order="C")
