"""The distinct differences φ of many votes: rows of numbers, or pairs of named items.

Both answer the same few questions about all rows at once, so that weights, estimate and covariance are written once.
A sum over votes is a sum over rows here: votes on the same two things share one.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from fairduel.core.likelihood import problem_of, solved
from fairduel.core.links import LOGISTIC
from fairduel.duel import Matrix, Vector
from fairduel.votes.bradley_terry import TINY_RIDGE, fit_scores
from fairduel.votes.sequential_weights import weigh_pairs, weigh_rows
from fairduel.votes.votes import Codes, Indices, Mask, distinct_duels

_BLOCK = 4096


@dataclass(frozen=True, eq=False)
class Rows:
    """Differences given as numbers."""

    values: Matrix
    """One difference a row, shape (r, d)."""

    @classmethod
    def collapse(cls, differences: Matrix) -> tuple[Self, Indices, Mask]:
        """Keep each of the ``differences`` (n, d) once, φ and −φ being one.

        Returns the rows, the row of each difference (n,), and whether it stands there with the other sign (n,).

        >>> rows, row, turned = Rows.collapse(np.array([[1.0, 2.0], [-1.0, -2.0], [0.0, 1.0]]))
        >>> len(rows), bool(row[0] == row[1]), bool(turned[0] == turned[1])
        (2, True, False)
        """
        # equal rows have the same product with a random direction, opposite ones its negative
        marks = differences @ np.random.default_rng(0).normal(size=differences.shape[1])
        turned = marks < 0.0
        _, first, row = np.unique(np.abs(marks), return_index=True, return_inverse=True)
        rows = differences[first]
        rows[turned[first]] *= -1.0
        repeated = np.flatnonzero(np.bincount(row)[row] > 1)
        expected = rows[row[repeated]]
        expected[turned[repeated]] *= -1.0
        apart = repeated[(expected != differences[repeated]).any(axis=1)]  # same mark by chance
        if apart.size:
            rows = np.concatenate([rows, np.where(turned[apart, None], -differences[apart], differences[apart])])
            row[apart] = len(first) + np.arange(apart.size)
        return cls(np.ascontiguousarray(rows)), row, turned

    def __len__(self) -> int:
        return len(self.values)

    @property
    def dimension(self) -> int:
        """The length d of a difference."""
        return int(self.values.shape[1])

    def information(self, coefficients: Vector) -> Matrix:
        """Σ c φφᵀ over the rows, shape (d, d), for ``coefficients`` c ≥ 0 (r,)."""
        total = np.zeros((self.dimension, self.dimension))
        for start in range(0, len(self), _BLOCK):
            block = self.values[start : start + _BLOCK] * np.sqrt(coefficients[start : start + _BLOCK, None])
            total += block.T @ block
        return total

    def widths(self, matrix: Matrix) -> Vector:
        """‖φ‖ in the norm of the inverse of ``matrix`` (d, d), for all rows, shape (r,)."""
        half = linalg.solve_triangular(linalg.cholesky(matrix, lower=True), np.eye(self.dimension), lower=True)
        result = np.empty(len(self))
        for start in range(0, len(self), _BLOCK):
            points = self.values[start : start + _BLOCK] @ half.T
            result[start : start + _BLOCK] = np.sqrt(np.einsum("ij,ij->i", points, points))
        return result

    def in_order(self, row: Indices, counts: Vector, trust: float, matrix: Matrix) -> Vector:
        """Weigh votes in their order, starting from Σ = ``matrix``, which is brought up to date, shape (n,)."""
        return weigh_rows(self.values, row, counts, trust, matrix, np.ascontiguousarray(linalg.inv(matrix)))

    def margins(self, theta: Vector) -> Vector:
        """φᵀθ of all rows, shape (r,)."""
        return self.values @ theta

    def estimate(self, totals: Vector, wins: Vector, ridge: float | None) -> tuple[Vector, int, float]:
        """Solve eq. (MLE) for rows of weight ``totals`` that won ``wins`` of it, both (r,).

        Returns θ (d,), the Newton steps and λ: ``ridge``, or for None ``TINY_RIDGE``.
        """
        ridge = TINY_RIDGE if ridge is None else ridge
        estimate = solved(np.zeros(self.dimension), problem_of(self.values, totals, wins, ridge, LOGISTIC))
        return estimate.theta, estimate.steps, ridge

    def scatter(self, groups: sparse.csr_array) -> Matrix:
        """Σ_g s_g s_gᵀ with s_g = Σ_r c_gr φ_r, shape (d, d), for the coefficients c (g, r) of ``groups``."""
        sums = np.asarray(groups @ self.values)
        return np.asarray(sums.T @ sums)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Differences of the unit vectors of two items: each item is its own feature, so d = K."""

    first: Codes
    """Shape (r,)."""
    second: Codes
    """Shape (r,)."""
    dimension: int
    """How many items there are, K."""

    @classmethod
    def collapse(cls, first: Codes, second: Codes, count: int) -> tuple[Self, Indices, Mask]:
        """As :meth:`Rows.collapse`, for the codes (n,) of two of ``count`` items.

        >>> pairs, row, turned = Pairs.collapse(np.array([2, 0], np.int32), np.array([0, 2], np.int32), 3)
        >>> pairs.first.tolist(), row.tolist(), turned.tolist()
        ([0], [0, 0], [True, False])
        """
        _, low, high, row, turned = distinct_duels(first, second, count)
        return cls(low.astype(np.int32), high.astype(np.int32), count), row, turned

    def __len__(self) -> int:
        return len(self.first)

    def information(self, coefficients: Vector) -> Matrix:
        """Σ c φφᵀ over the rows, shape (K, K): the Laplacian of the graph with these weights."""
        total = np.zeros((self.dimension, self.dimension))
        np.add.at(total, (self.first, self.second), -coefficients)
        total += total.T
        np.fill_diagonal(total, -total.sum(axis=1))
        return total

    def widths(self, matrix: Matrix) -> Vector:
        """As :meth:`Rows.widths`."""
        inverse = linalg.inv(matrix)
        own = np.diag(inverse)
        squared = own[self.first] + own[self.second] - 2.0 * inverse[self.first, self.second]
        return np.sqrt(np.maximum(squared, 0.0))

    def in_order(self, row: Indices, counts: Vector, trust: float, matrix: Matrix) -> Vector:
        """As :meth:`Rows.in_order`."""
        inverse = np.ascontiguousarray(linalg.inv(matrix))
        return weigh_pairs(self.first, self.second, row, counts, trust, matrix, inverse)

    def margins(self, theta: Vector) -> Vector:
        """As :meth:`Rows.margins`."""
        return theta[self.first] - theta[self.second]

    def estimate(self, totals: Vector, wins: Vector, ridge: float | None) -> tuple[Vector, int, float]:
        """As :meth:`Rows.estimate`; without ``ridge``, λ = 0 where that has a finite solution."""
        won = np.zeros((self.dimension, self.dimension))
        won[self.first, self.second] = wins
        won[self.second, self.first] = totals - wins
        fitted = fit_scores(np.maximum(won, 0.0), ridge=ridge)
        return fitted.scores, fitted.iterations, fitted.ridge

    def scatter(self, groups: sparse.csr_array) -> Matrix:
        """As :meth:`Rows.scatter`."""
        count, ones = len(self), np.ones(len(self))
        places = (np.tile(np.arange(count), 2), np.concatenate([self.first, self.second]))
        unit = sparse.coo_array((np.concatenate([ones, -ones]), places), shape=(count, self.dimension)).tocsr()
        sums = groups @ unit
        return np.asarray((sums.T @ sums).toarray())


Design = tuple[Rows | Pairs, Indices, Mask]
"""Distinct differences, the row of each vote among them (n,), and whether it stands there with the other sign (n,)."""


def with_features(
    first: Codes, second: Codes, features: NDArray[np.float64], context: Codes | None = None
) -> tuple[Rows, Indices, Mask]:
    """As :meth:`Pairs.collapse`, where items have ``features`` beside themselves: the unit vectors, then the features.

    ``features`` are (K, d), or (contexts, K, d) with the ``context`` of each vote (n,).

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
