"""Near-optimal experimental designs and barycentric spanners."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from fairduel.duel import Matrix, Vector
from fairduel.errors import BadInputError, ConvergenceError

_MOST_STEPS = 100_000


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """A distribution over actions, with a certificate that it is nearly optimal."""

    weights: Vector
    """z, shape (K,): sums to 1, and is zero off the support."""
    largest: float
    """max over all actions of ‖a‖² in the norm of Γ⁻¹, Γ = Σ z(a) a aᵀ; at least ``rank`` for every design."""
    rank: int
    """Dimension of the span of the actions."""

    @property
    def support(self) -> NDArray[np.intp]:
        """Indices of the actions with positive weight."""
        return np.flatnonzero(self.weights)


def near_optimal_design(actions: Matrix, *, tolerance: float = 0.05) -> Design:
    """Return a design for ``actions`` (K, d) with max ‖a‖²_Γ⁻¹ ≤ (1 + ``tolerance``) · rank.

    By Kiefer and Wolfowitz the smallest possible maximum is the rank, and the design that attains it also maximises
    det Γ. It is found by Frank–Wolfe steps: weight moves towards the action with the largest norm (Fedorov), or away
    from the action of the support with the smallest (Atwood): the one further from the rank; the latter steps keep
    the support small.

    Actions that span fewer than d dimensions are handled within their span.

    >>> design = near_optimal_design(np.array([[1.0, 0.0], [0.0, 1.0], [0.1, 0.1]]))
    >>> design.weights.tolist(), round(design.largest, 9)
    ([0.5, 0.5, 0.0], 2.0)
    """
    points = _in_their_span(actions)
    count, rank = points.shape
    weights = np.zeros(count)
    weights[_spanner(points)] = 1.0 / rank
    for _ in range(_MOST_STEPS):
        inverse = np.linalg.inv((points.T * weights) @ points)
        squares = ((points @ inverse) * points).sum(axis=1)
        least_known = int(np.argmax(squares))
        largest = float(squares[least_known])
        if largest <= (1.0 + tolerance) * rank:
            return Design(weights, largest, rank)
        best_known = int(np.argmin(np.where(weights > 0, squares, np.inf)))
        smallest = float(squares[best_known])
        if largest - rank >= rank - smallest:
            _move(weights, least_known, (largest / rank - 1.0) / (largest - 1.0))
        else:
            own = weights[best_known]
            wanted = (1.0 - smallest / rank) / (smallest - 1.0) if smallest > 1.0 else np.inf
            dropped = wanted >= own / (1.0 - own)
            _move(weights, best_known, -(own / (1.0 - own)) if dropped else -wanted)
            if dropped:
                weights[best_known] = 0.0
    raise ConvergenceError(f"no design within {tolerance} of the optimum was found in {_MOST_STEPS} steps.")


def barycentric_spanner(actions: Matrix) -> tuple[NDArray[np.intp], Matrix]:
    """Return ``rank`` of the actions (K, d), and coefficients (K, rank) in [−1, 1] that express all actions by them.

    Awerbuch and Kleinberg: a subset of maximal volume has this property, and so does one whose volume no exchange of a
    single action increases, which is what is returned.

    >>> basis, coefficients = barycentric_spanner(np.array([[0.1, 0.0], [1.0, 0.0], [0.0, 1.0], [0.5, -0.5]]))
    >>> basis.tolist(), np.abs(coefficients).round(9).tolist()
    ([1, 2], [[0.1, 0.0], [1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    """
    points = _in_their_span(actions)
    basis = _spanner(points)
    return basis, _coefficients(points, basis)


def _in_their_span(actions: Matrix) -> Matrix:
    """The actions in coordinates of their span, shape (K, rank); the change of basis preserves every ‖a‖_Γ⁻¹."""
    left, singular, _ = np.linalg.svd(actions, full_matrices=False)
    rank = int((singular > singular[0] * 1e-9).sum()) if singular[0] > 0 else 0
    if rank == 0:
        raise BadInputError("all actions are zero, so there is nothing to explore; pass other features.")
    return np.ascontiguousarray(left[:, :rank])


def _spanner(points: Matrix) -> NDArray[np.intp]:
    rank = points.shape[1]
    basis = qr(points.T, mode="r", pivoting=True)[1][:rank].astype(np.intp)
    while True:
        sizes = np.abs(_coefficients(points, basis))
        new, out = np.unravel_index(int(np.argmax(sizes)), sizes.shape)
        if sizes[new, out] <= 1.0 + 1e-9:
            return np.sort(basis)
        basis[out] = new  # the volume grows by this coefficient


def _coefficients(points: Matrix, basis: NDArray[np.intp]) -> Matrix:
    return np.ascontiguousarray(np.linalg.solve(points[basis].T, points.T).T)


def _move(weights: Vector, index: int, share: float) -> None:
    """Move ``share`` of all weight to one action, in place; a negative share moves it to the others."""
    weights *= 1.0 - share
    weights[index] += share
