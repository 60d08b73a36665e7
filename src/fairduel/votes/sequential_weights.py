"""The paper's weights, vote by vote: each vote is weighted by the information in the votes before it.

w_t = min(1, α/‖φ_t‖_Σ⁻¹) with Σ before vote t is added (eq. weight); then Σ ← Σ + s_t w_t φ_t φ_tᵀ for a vote that
counts s_t times. On the plain design, without κ, α = √d/C.
"""

import math

import numpy as np
from numpy.typing import NDArray

from fairduel.core.compiling import compiled
from fairduel.core.information import gram_rank_one, rank_one, squared_width
from fairduel.core.selection import uncertainty_weight
from fairduel.duel import Matrix, Vector
from fairduel.votes.votes import Indices

_REFRESH_EVERY = 1024  # votes


@compiled
def weigh_rows(rows: Matrix, row: Indices, counts: Vector, trust: float, matrix: Matrix, inverse: Matrix) -> Vector:
    """Weight (n,) votes whose differences are ``rows[row]``; Σ and Σ⁻¹ (d, d) are updated in place."""
    weights = np.ones(row.size)
    for vote in range(row.size):
        difference = rows[row[vote]]
        weights[vote] = uncertainty_weight(trust, math.sqrt(squared_width(inverse, difference)))
        if counts[vote] > 0.0:
            rank_one(matrix, inverse, difference, counts[vote] * weights[vote], vote + 1)
    return weights


@compiled
def weigh_pairs(
    first: NDArray[np.int32],
    second: NDArray[np.int32],
    row: Indices,
    counts: Vector,
    trust: float,
    matrix: Matrix,
    inverse: Matrix,
) -> Vector:
    """Like :func:`weigh_rows`, where row r is the difference of the unit vectors of ``first[r]`` and ``second[r]``."""
    weights = np.ones(row.size)
    for vote in range(row.size):
        a, b = first[row[vote]], second[row[vote]]
        squared = inverse[a, a] + inverse[b, b] - 2.0 * inverse[a, b]
        weights[vote] = uncertainty_weight(trust, math.sqrt(max(squared, 0.0)))
        added = counts[vote] * weights[vote]
        matrix[a, a] += added
        matrix[b, b] += added
        matrix[a, b] -= added
        matrix[b, a] -= added
        if (vote + 1) % max(_REFRESH_EVERY, len(matrix)) == 0:  # keeps rounding errors from accumulating
            inverse[:] = np.linalg.inv(matrix)
        elif added > 0.0:
            gram_rank_one(inverse, a, b, added)
    return weights
