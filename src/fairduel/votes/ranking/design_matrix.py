"""The distinct differences φ among many votes: rows of numbers, pairs of items, or pairs with numbers of each vote.

:class:`Rows`, :class:`Pairs` and :class:`PairsAndNumbers` share an interface, so weights, estimate and covariance are
written once. Votes on the same difference share a row, so sums over votes become sums over rows.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse, special

from fairduel.core.likelihood import problem_of, solved
from fairduel.core.links import LOGISTIC
from fairduel.duel import Matrix, Vector
from fairduel.errors import ConvergenceError
from fairduel.votes.ranking.bradley_terry import ridge_scores
from fairduel.votes.votes import Codes, Indices, Mask, distinct_duels, pair_sums, sums

_BLOCK = 4096
_SMALL_STEP, _MOST_STEPS = 1e-9, 100  # of Newton's method


@dataclass(frozen=True, eq=False)
class Rows:
    """Differences as feature vectors."""

    values: Matrix
    """One difference per row, shape (r, d)."""

    @classmethod
    def collapse(cls, differences: Matrix) -> tuple[Self, Indices, Mask]:
        """Keep each distinct difference among ``differences`` (n, d) once, treating φ and −φ as the same.

        Returns the rows, the row of each difference (n,), and whether its sign is reversed there (n,).

        >>> rows, row, turned = Rows.collapse(np.array([[1.0, 2.0], [-1.0, -2.0], [0.0, 1.0]]))
        >>> len(rows), bool(row[0] == row[1]), bool(turned[0] == turned[1])
        (2, True, False)
        """
        # equal rows have the same product with a random direction; opposite rows have its negative
        marks = differences @ np.random.default_rng(0).normal(size=differences.shape[1])
        turned = marks < 0.0
        _, first, row = np.unique(np.abs(marks), return_index=True, return_inverse=True)
        rows = differences[first]
        rows[turned[first]] *= -1.0
        repeated = np.flatnonzero(np.bincount(row)[row] > 1)
        expected = rows[row[repeated]]
        expected[turned[repeated]] *= -1.0
        apart = repeated[(expected != differences[repeated]).any(axis=1)]  # equal marks by chance
        if apart.size:
            rows = np.concatenate([rows, np.where(turned[apart, None], -differences[apart], differences[apart])])
            row[apart] = len(first) + np.arange(apart.size)
        return cls(np.ascontiguousarray(rows)), row, turned

    def __len__(self) -> int:
        return len(self.values)

    @property
    def dimension(self) -> int:
        """Length d of a difference."""
        return int(self.values.shape[1])

    def of_votes(self, row: Indices) -> sparse.csr_array:
        """Return φ of votes on these rows (n,), shape (n, d)."""
        return sparse.csr_array(self.values[row])

    def information(self, coefficients: Vector) -> Matrix:
        """Return Σ c φφᵀ over the rows, shape (d, d), for ``coefficients`` c ≥ 0 (r,)."""
        total = np.zeros((self.dimension, self.dimension))
        for start in range(0, len(self), _BLOCK):
            block = self.values[start : start + _BLOCK] * np.sqrt(coefficients[start : start + _BLOCK, None])
            total += block.T @ block
        return total

    def widths(self, matrix: Matrix) -> Vector:
        """Return ‖φ‖ of each row in the norm of the inverse of ``matrix`` (d, d), shape (r,)."""
        half = linalg.solve_triangular(linalg.cholesky(matrix, lower=True), np.eye(self.dimension), lower=True)
        result = np.empty(len(self))
        for start in range(0, len(self), _BLOCK):
            points = self.values[start : start + _BLOCK] @ half.T
            result[start : start + _BLOCK] = np.sqrt(np.einsum("ij,ij->i", points, points))
        return result

    def margins(self, theta: Vector) -> Vector:
        """Return φᵀθ of each row, shape (…, r), for θ (…, d)."""
        return theta @ self.values.T

    def total(self, coefficients: Vector) -> Vector:
        """Return Σ c φ over the rows, shape (d,), for ``coefficients`` c (r,)."""
        return coefficients @ self.values

    def estimate(self, totals: Vector, wins: Vector, ridge: float, start: Vector | None = None) -> tuple[Vector, int]:
        """Solve eq. (MLE) for rows with total weight ``totals``, of which they won ``wins``, both (r,).

        Newton's method starts from ``start`` (d,), or 0; returns θ (d,) and the number of steps.
        """
        begin = np.zeros(self.dimension) if start is None else start
        estimate = solved(begin, problem_of(self.values, totals, wins, ridge, LOGISTIC))
        return estimate.theta, estimate.steps


@dataclass(frozen=True, eq=False)
class Pairs:
    """Differences of the unit vectors of two items. Every item is its own feature, so d = K."""

    first: Codes
    """Shape (r,)."""
    second: Codes
    """Shape (r,)."""
    dimension: int
    """Number of items, K."""

    @classmethod
    def collapse(cls, first: Codes, second: Codes, count: int) -> tuple[Self, Indices, Mask]:
        """Like :meth:`Rows.collapse`, for the two items (n,) of each vote, out of ``count`` items.

        >>> pairs, row, turned = Pairs.collapse(np.array([2, 0], np.int32), np.array([0, 2], np.int32), 3)
        >>> pairs.first.tolist(), row.tolist(), turned.tolist()
        ([0], [0, 0], [True, False])
        """
        _, low, high, row, turned = distinct_duels(first, second, count)
        return cls(low.astype(np.int32), high.astype(np.int32), count), row, turned

    def __len__(self) -> int:
        return len(self.first)

    def of_votes(self, row: Indices) -> sparse.csr_array:
        """See :meth:`Rows.of_votes`."""
        columns = np.column_stack([self.first[row], self.second[row]]).ravel()
        data = np.tile([1.0, -1.0], len(row)), columns, np.arange(0, 2 * len(row) + 1, 2, dtype=np.int32)
        return sparse.csr_array(data, shape=(len(row), self.dimension))

    def information(self, coefficients: Vector) -> Matrix:
        """Return Σ c φφᵀ over the rows, shape (K, K): the Laplacian of the graph with these edge weights."""
        total = np.zeros((self.dimension, self.dimension))
        total[self.first, self.second] = -coefficients  # every pair has one row
        total += total.T
        np.fill_diagonal(total, -total.sum(axis=1))
        return total

    def widths(self, matrix: Matrix) -> Vector:
        """See :meth:`Rows.widths`."""
        inverse = linalg.inv(matrix)
        own = np.diag(inverse)
        squared = own[self.first] + own[self.second] - 2.0 * inverse[self.first, self.second]
        return np.sqrt(np.maximum(squared, 0.0))

    def margins(self, theta: Vector) -> Vector:
        """See :meth:`Rows.margins`."""
        return theta[..., self.first] - theta[..., self.second]

    def total(self, coefficients: Vector) -> Vector:
        """See :meth:`Rows.total`."""
        return sums(self.first, self.dimension, coefficients) - sums(self.second, self.dimension, coefficients)

    def estimate(self, totals: Vector, wins: Vector, ridge: float, start: Vector | None = None) -> tuple[Vector, int]:
        """See :meth:`Rows.estimate`."""
        won = np.zeros((self.dimension, self.dimension))
        won[self.first, self.second] = wins
        won[self.second, self.first] = totals - wins
        return ridge_scores(np.maximum(won, 0.0), ridge, start)


@dataclass(frozen=True, eq=False)
class PairsAndNumbers:
    """Differences of the unit vectors of two items, with numbers of the vote appended: d = K + p.

    The numbers seldom repeat, so every vote has a row of its own.

    >>> codes = np.array([2, 0], np.int32), np.array([0, 1], np.int32)
    >>> PairsAndNumbers(*codes, np.array([[0.5], [-0.25]]), items=3).of_votes(np.arange(2)).toarray().tolist()
    [[-1.0, 0.0, 1.0, 0.5], [1.0, -1.0, 0.0, -0.25]]
    """

    first: Codes
    """Shape (r,)."""
    second: Codes
    """Shape (r,)."""
    numbers: Matrix
    """Shape (r, p)."""
    items: int
    """K."""

    def __len__(self) -> int:
        return len(self.first)

    @property
    def dimension(self) -> int:
        """K + p."""
        return self.items + int(self.numbers.shape[1])

    def of_votes(self, row: Indices) -> sparse.csr_array:
        """See :meth:`Rows.of_votes`."""
        units = Pairs(self.first, self.second, self.items).of_votes(row)
        return sparse.csr_array(sparse.hstack([units, sparse.csr_array(self.numbers[row])]))

    def information(self, coefficients: Vector) -> Matrix:
        """See :meth:`Rows.information`."""
        total, count = np.zeros((self.dimension, self.dimension)), self.items
        total[:count, :count] = -pair_sums(self.first, self.second, count, coefficients)
        total[:count, :count] += total[:count, :count].T
        total[np.arange(count), np.arange(count)] = -total[:count, :count].sum(axis=1)
        for place, column in enumerate(self.numbers.T, start=count):
            total[place, :count] = self._per_item(coefficients * column)
            total[place, count:] = (coefficients * column) @ self.numbers
        total[:count, count:] = total[count:, :count].T
        return total

    def _per_item(self, values: Vector) -> Vector:
        return sums(self.first, self.items, values) - sums(self.second, self.items, values)

    def widths(self, matrix: Matrix) -> Vector:
        """See :meth:`Rows.widths`."""
        inverse = linalg.inv(matrix)
        own, across = np.diag(inverse), inverse[: self.items, self.items :]
        squared = own[self.first] + own[self.second] - 2.0 * inverse[self.first, self.second]
        squared += 2.0 * np.einsum("ij,ij->i", across[self.first] - across[self.second], self.numbers)
        squared += np.einsum("ij,ij->i", self.numbers @ inverse[self.items :, self.items :], self.numbers)
        return np.sqrt(np.maximum(squared, 0.0))

    def margins(self, theta: Vector) -> Vector:
        """See :meth:`Rows.margins`."""
        return theta[..., self.first] - theta[..., self.second] + theta[..., self.items :] @ self.numbers.T

    def total(self, coefficients: Vector) -> Vector:
        """See :meth:`Rows.total`."""
        return np.concatenate([self._per_item(coefficients), coefficients @ self.numbers])

    def estimate(self, totals: Vector, wins: Vector, ridge: float, start: Vector | None = None) -> tuple[Vector, int]:
        """See :meth:`Rows.estimate`."""
        theta = np.zeros(self.dimension) if start is None else start
        loss = self._loss(theta, totals, wins, ridge)
        for steps in range(1, _MOST_STEPS + 1):
            chance = special.expit(self.margins(theta))
            gradient = self.total(totals * chance - wins) + ridge * theta
            hessian = self.information(totals * chance * (1.0 - chance)) + ridge * np.eye(self.dimension)
            step = (
                linalg.lstsq(hessian, gradient)[0] if ridge == 0.0 else linalg.solve(hessian, gradient, assume_a="pos")
            )
            size, decrement = 1.0, float(step @ gradient)
            after = self._loss(theta - step, totals, wins, ridge)
            while after > loss - 1e-4 * size * decrement and decrement > 1e-8 and size > 1e-10:
                size *= 0.5
                after = self._loss(theta - size * step, totals, wins, ridge)
            theta, loss = theta - size * step, after
            if np.abs(step).max() <= _SMALL_STEP:
                return theta, steps
        raise ConvergenceError(
            f"scores did not converge in {_MOST_STEPS} Newton steps: use a ridge above 0, or check the features per "
            "vote and the weights for extreme values."
        )

    def _loss(self, theta: Vector, totals: Vector, wins: Vector, ridge: float) -> float:
        margins = self.margins(theta)
        return float(np.logaddexp(0.0, margins) @ totals - margins @ wins + 0.5 * ridge * theta @ theta)


Differences = Rows | Pairs | PairsAndNumbers
Design = tuple[Differences, Indices, Mask]
"""The distinct differences, the row of each vote (n,), and whether its sign is reversed there (n,)."""


def with_features(
    first: Codes, second: Codes, features: NDArray[np.float64], context: Codes | None = None
) -> tuple[Rows, Indices, Mask]:
    """Like :meth:`Pairs.collapse`, with the difference of the items' ``features`` appended to that of the unit vectors.

    ``features`` has shape (K, d), or (contexts, K, d) with the ``context`` of each vote (n,).

    >>> rows, _, _ = with_features(np.array([0], np.int32), np.array([1], np.int32), np.array([[0.5], [0.25]]))
    >>> rows.values.tolist()
    [[1.0, -1.0, 0.25]]
    """
    table, count = features[None] if features.ndim == 2 else features, features.shape[-2]
    where, low, high, row, turned = distinct_duels(first, second, count, None if features.ndim == 2 else context)
    values = np.zeros((len(low), count + table.shape[-1]))
    values[np.arange(len(low)), low] = 1.0
    values[np.arange(len(low)), high] = -1.0
    values[:, count:] = table[where, low] - table[where, high]
    return Rows(values), row, turned
