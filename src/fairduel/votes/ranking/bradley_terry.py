"""Bradley–Terry scores of named items: P(i beats j) = σ(θ_i − θ_j), logistic σ.

Votes enter only through the K × K matrix of wins, so a fit costs the same for a thousand votes as for ten million.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import linalg, sparse, special
from scipy.sparse import csgraph

from fairduel.checks import at_least_zero
from fairduel.duel import Matrix, Vector
from fairduel.errors import BadInputError, ConvergenceError
from fairduel.votes.votes import Codes, Indices, Ties, Votes, pair_sums

TINY_RIDGE = 0.01
"""λ used where no finite estimate exists: a normal prior with a standard deviation of 10 log-odds."""
MOST_ITEMS = 5000
"""With more items, several copies of the matrix of wins do not fit into memory."""
INFINITE = "some items won or lost every vote, so their scores are infinite: use a ridge above 0."
_SMALL_STEP = 1e-9  # Newton converges quadratically, so only rounding error is left
_MOST_STEPS = 100
_MOST_NEAR_STEPS = 12


@dataclass(frozen=True, eq=False)
class Scores:
    """Fitted scores, and how they were fitted."""

    scores: Vector
    """θ in log-odds, shape (K,), with mean 0 in each component of the comparison graph."""
    covariance: Matrix
    """Inverse Fisher information, shape (K, K), valid if the model holds; 0 between components."""
    ridge: float
    """λ, or 0 without a ridge."""
    why: str
    """Why a ridge was added although none was requested; empty otherwise."""


def wins(votes: Votes, *, ties: Ties = "half") -> Matrix:
    """Count the weighted wins of row over column, shape (K, K); a tie is half a win for both, or dropped.

    >>> wins(Votes.from_arrays("ab", first=[0, 0, 1], second=[1, 1, 0], result=[1, 0.5, 1])).tolist()
    [[0.0, 1.5], [1.5, 0.0]]
    """
    weight, count = votes.counts(ties), len(votes.items)
    ensure_matrices_fit(count)
    won = pair_sums(votes.first, votes.second, count, weight * votes.result)
    return won + pair_sums(votes.second, votes.first, count, weight * (1.0 - votes.result))


def ensure_matrices_fit(items: int) -> None:
    """Raise an error if there are too many items for a matrix of all pairs."""
    if items > MOST_ITEMS:
        raise BadInputError(f"{items:,} items are too many to compare all pairs: select at most {MOST_ITEMS:,}.")


def fit_scores(won: Matrix, *, ridge: float | None = None, start: Vector | None = None) -> Scores:
    """Maximise the log-likelihood of ``won`` (K, K) minus λ/2 ‖θ‖², starting from ``start`` (K,) or 0.

    ``won`` holds the wins of row over column. Without ``ridge``, λ = 0 in every component with a finite solution: one
    where wins lead from every item to every other. Other components, in which some items never lost to the rest, get
    ``TINY_RIDGE``, and ``why`` says so.

    >>> fitted = fit_scores(np.array([[0.0, 3.0], [1.0, 0.0]]))
    >>> (fitted.scores[0] - fitted.scores[1]).round(9) == np.log(3.0).round(9)
    np.True_
    """
    parts = list(_fit_parts(won, ridge, start))
    scores, covariance = np.zeros(len(won)), np.zeros(np.shape(won))
    for part in parts:
        scores[part.items] = part.scores
        covariance[np.ix_(part.items, part.items)] = _inverse(part.hessian)
    why = unbounded(sum(len(part.items) for part in parts if part.is_unbounded)) if ridge is None else ""
    return Scores(scores, covariance, max((part.ridge for part in parts), default=0.0), why)


def unbounded(items: int) -> str:
    """Say that the scores of this many items have no finite estimate; empty for 0."""
    if not items:
        return ""
    return f"among {items} items, some won or lost every vote against the rest, so scores have no finite estimate"


def ridge_scores(won: Matrix, ridge: float | None, start: Vector | None = None) -> tuple[Vector, int]:
    """Return the scores (K,) of :func:`fit_scores` and the number of Newton steps, without the covariance."""
    scores, steps = np.zeros(len(won)), 0
    for part in _fit_parts(won, ridge, start):
        scores[part.items], steps = part.scores, max(steps, part.steps)
    return scores, steps


class _Part(NamedTuple):
    """The fit of one component."""

    items: Indices
    scores: Vector
    hessian: Matrix
    steps: int
    ridge: float
    is_unbounded: bool


def _fit_parts(won: Matrix, ridge: float | None, start: Vector | None) -> Iterator[_Part]:
    """Fit each component; see :func:`fit_scores`."""
    won = _checked(won)
    if ridge is not None:
        at_least_zero("ridge", ridge)
    for items in _groups(_components(won, directed=False)):
        inner = won[np.ix_(items, items)]
        is_unbounded = _components(inner, directed=True).max() > 0
        if is_unbounded and ridge == 0.0:
            raise ConvergenceError(INFINITE)
        penalty = ridge if ridge is not None else TINY_RIDGE if is_unbounded else 0.0
        begin = np.zeros(len(items)) if start is None else start[items]
        yield _Part(items, *_solve(inner, penalty, begin), penalty, is_unbounded)


def moved_scores(won: Matrix, near: Scores) -> Vector | None:
    """Refit the scores (K,) of ``won`` (K, K) starting from ``near``, a fit of almost the same votes.

    Every step uses the covariance of ``near`` as the inverse Hessian, so it costs K² instead of K³. Returns None if
    that does not converge quickly.
    """
    games, theta = won + won.T, near.scores
    for _ in range(_MOST_NEAR_STEPS):
        step = near.covariance @ _gradient(theta, _chances(theta), won, games, near.ridge)
        theta = theta - step
        if np.abs(step).max() <= _SMALL_STEP:
            return theta
    return None


def _solve(won: Matrix, ridge: float, start: Vector) -> tuple[Vector, Matrix, int]:
    """Fit one component from ``start`` (K,); return scores (K,), Hessian (K, K) and the number of Newton steps."""
    count = len(won)
    games, theta = won + won.T, start - start.mean()
    gradient, hessian = _derivatives(theta, won, games, ridge)
    for steps in range(1, _MOST_STEPS + 1):
        # votes do not determine a constant added to all scores: 1/K makes the Hessian invertible in that direction
        step = linalg.solve(hessian + 1.0 / count, gradient, assume_a="pos")
        step -= step.mean()
        is_last = np.abs(step).max() <= _SMALL_STEP
        after = _derivatives(theta - step, won, games, ridge)
        if not is_last and not np.abs(after[0]).max() <= 0.5 * np.abs(gradient).max():  # far from the solution
            step *= _step_size(theta, step, gradient, won, ridge)
            after = _derivatives(theta - step, won, games, ridge)
        theta, (gradient, hessian) = theta - step, after
        if is_last:
            break
        if steps == _MOST_STEPS:
            raise ConvergenceError(f"scores did not converge in {steps} Newton steps: check for extreme vote weights.")
    return theta, hessian, steps


def _inverse(hessian: Matrix) -> Matrix:
    """Invert the Hessian of scores with mean 0, (K, K)."""
    covariance = linalg.inv(hessian + 1.0 / len(hessian))
    covariance -= covariance.mean(axis=0)
    covariance -= covariance.mean(axis=1, keepdims=True)
    return np.asarray(0.5 * (covariance + covariance.T))


def _checked(won: Matrix) -> Matrix:
    won = np.asarray(won, dtype=np.float64)
    if won.ndim != 2 or won.shape[0] != won.shape[1] or len(won) == 0:
        raise BadInputError("wins must be a square matrix: the wins of row over column.")
    if not (np.isfinite(won) & (won >= 0.0)).all() or np.diag(won).any():
        raise BadInputError("wins must be numbers ≥ 0, with zeros on the diagonal.")
    return won


def _components(won: Matrix, *, directed: bool) -> Codes:
    against = won > 0.0
    against |= np.eye(len(won), dtype=np.bool_) if directed else against.T | np.eye(len(won), dtype=np.bool_)
    if (against.all(axis=0) & against.all(axis=1)).any():  # saves the search: one item beat, and lost to, all others
        return np.zeros(len(won), dtype=np.int32)
    graph = sparse.coo_array(won).tocsr()
    _, labels = csgraph.connected_components(graph, directed=directed, connection="strong")
    return labels


def _groups(labels: Codes) -> list[Indices]:
    """Return the indices of each label that occurs more than once."""
    order = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels)
    return [group for group in np.split(order, np.cumsum(sizes)[:-1]) if len(group) > 1]


def _derivatives(theta: Vector, won: Matrix, games: Matrix, ridge: float) -> tuple[Vector, Matrix]:
    """Gradient (K,) and Hessian (K, K) of the loss."""
    chance = _chances(theta)
    hessian = -games * chance * chance.T
    np.fill_diagonal(hessian, ridge - hessian.sum(axis=1))
    return _gradient(theta, chance, won, games, ridge), hessian


def _gradient(theta: Vector, chance: Matrix, won: Matrix, games: Matrix, ridge: float) -> Vector:
    return np.asarray((games * chance - won).sum(axis=1) + ridge * theta)


def _chances(theta: Vector) -> Matrix:
    """P(row beats column), shape (K, K)."""
    return np.asarray(special.expit(theta[:, None] - theta[None, :]))


def _loss(theta: Vector, won: Matrix, ridge: float) -> float:
    """Σ_ij won_ij · log(1 + exp(θ_j − θ_i)) + ½ λ ‖θ‖²."""
    return float((won * np.logaddexp(0.0, theta[None, :] - theta[:, None])).sum() + 0.5 * ridge * theta @ theta)


def _step_size(theta: Vector, step: Vector, gradient: Vector, won: Matrix, ridge: float) -> float:
    """Backtrack from 1 until the loss falls enough; near the solution, where rounding hides the fall, return 1."""
    decrement = float(step @ gradient)
    if decrement <= 1e-8:
        return 1.0
    current, size = _loss(theta, won, ridge), 1.0
    while _loss(theta - size * step, won, ridge) > current - 1e-4 * size * decrement and size > 1e-10:
        size *= 0.5
    return size
