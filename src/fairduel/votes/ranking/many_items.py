r"""The estimate and its errors for thousands of items, by sparse matrices and draws instead of K × K matrices.

Most of many items were never compared with each other, so H = I + λ of :mod:`fairduel.votes.ranking.uncertainty` has
few entries besides 0. It is never inverted: H⁻¹x comes from conjugate gradients, whose cost is proportional to the
number of pairs that met. The formulas are the same as for few items, with

- Newton steps H⁻¹g;
- traces as averages over random vectors: tr(H⁻¹BH⁻¹) is the mean of ‖H⁻¹B^½z‖²;
- errors as draws H⁻¹(noise + Σ_g A_g u_g − λθ), which have the covariance V. A standard error from n draws makes ratios
  follow Student's distribution with n degrees of freedom, which quantiles allow for;
- the posterior N(P⁻¹g, P⁻¹) of :mod:`fairduel.votes.ranking.posterior` with B + Σ τ²A_g² replaced by oI, the multiple
  of I that has the same trace. Then P = I/o + D⁻¹ and g = Hθ̂/o, and P⁻¹(g + (I/o)^½z + D^(−½)z') is a draw from it.

Left out are what needs all pairs in full: the likelihood of items that won nearly all their votes (their ranges are
wider than need be) and step-down quantiles of the joint ranges, which use Bonferroni's inequality instead.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import sparse, special
from scipy.sparse import csgraph

from fairduel.duel import Matrix, Vector
from fairduel.errors import ConvergenceError
from fairduel.votes.ranking.bradley_terry import TINY_RIDGE, unbounded
from fairduel.votes.ranking.design_matrix import Pairs
from fairduel.votes.ranking.uncertainty import MeasuredTastes, Solve, Told
from fairduel.votes.votes import Codes

MOST_DENSE = 1000
"""Items up to which K × K matrices are used."""
DRAWS = 500
"""Draws of the errors."""
_TOLERANCE, _DRAWN_TOLERANCE = 1e-9, 1e-4  # relative residual of conjugate gradients: estimates, and draws
_ROUNDING = 1e-11  # of a score: what is left then may be outside the range of a singular matrix
_MOST_ITERATIONS = 5000
_SMALL_STEP, _MOST_STEPS = 1e-7, 100  # of Newton's method
_PROBES = 16
_AT_ONCE = 50  # draws


class ManyTold(Told):
    """Votes on many items."""

    def estimate(self, ridge: float, start: Vector | None = None) -> tuple[Vector, int]:
        """See :meth:`Told.estimate`."""
        return sparse_scores(self.pairs, self.rows.counted, self.rows.wins, np.full(self.items, ridge), start)

    @property
    def pairs(self) -> Pairs:
        """The pairs that met."""
        assert isinstance(self.differences, Pairs)
        return self.differences

    @property
    def items(self) -> int:
        """K."""
        return self.differences.dimension

    def solver(self, theta: Vector, ridge: float) -> tuple[Vector, Solve]:
        """See :meth:`Told.solver`."""
        matrix = laplacian(self.pairs, self.rows.counted * self._slope(theta))
        return matrix.diagonal(), lambda values: solve_sparse(_with_ridge(matrix, ridge), values, _DRAWN_TOLERANCE)

    def _slope(self, theta: Vector) -> Vector:
        chance = special.expit(self.differences.margins(theta))
        return np.asarray(chance * (1.0 - chance))

    def _prior(self, theta: Vector, ridge: float, factor: float) -> float:
        rng = np.random.default_rng(0)
        slope = self._slope(theta)
        noise = _spread_out(self.pairs, np.sqrt(self.rows.noise * slope), rng, _PROBES)
        signs = rng.choice([-1.0, 1.0], size=(self.items, _PROBES))
        _, solve = self.solver(theta, ridge)
        moved = solve(np.hstack([noise, signs]))
        kept = signs - ridge * moved[:, _PROBES:]  # H⁻¹I = 1 − λH⁻¹
        noise_part = factor * float((moved[:, :_PROBES] ** 2).sum()) / _PROBES
        return self._spread(theta, ridge, noise_part, float((kept**2).sum()) / _PROBES).variance

    def errors(self, theta: Vector, ridge: float, measured: MeasuredTastes, rng: np.random.Generator) -> Matrix:
        """Draw errors of the estimate, shape (DRAWS, K); τ² is drawn too."""
        variance = self._prior(theta, ridge, measured.moments.taste_factor)
        shrinking = math.sqrt(ridge * max(1.0, ridge * variance))
        _, solve = self.solver(theta, ridge)
        parts = []
        for count in _chunks(DRAWS):
            noise = self._noise(theta, measured, measured.moments.draws(count, rng), rng)
            parts.append(solve(noise + shrinking * rng.normal(size=noise.shape)).T.astype(np.float32))
        return np.concatenate(parts)

    def _noise(self, theta: Vector, measured: MeasuredTastes, variances: Matrix, rng: np.random.Generator) -> Matrix:
        """Draw noise and tastes with these τ² (n, m), shape (K, n)."""
        count = len(variances)
        result = _spread_out(self.pairs, np.sqrt(self.rows.noise * self._slope(theta)), rng, count)
        pull = self._pull(theta)[:, None]
        for name, variance in zip(measured.names, variances.T, strict=True):
            if not variance.any():
                continue
            cells, item = self.sources[name]
            tastes = rng.normal(size=(len(item), count)) * np.sqrt(measured.factors[name][item])[:, None]
            result += self.phi.T @ (pull * (cells.T @ (tastes * np.sqrt(variance))))
        return result

    def _pull(self, theta: Vector) -> Vector:
        return np.asarray(self.entries.counted * self._slope(theta)[self.row]) if len(self.row) else np.empty(0)

    def posterior(
        self, theta: Vector, ridge: float, measured: MeasuredTastes, prior: Vector, count: int, rng: np.random.Generator
    ) -> Matrix:
        """Draw θ from its posterior if its prior is N(0, diag(``prior``)), shape (count, K)."""
        matrix = laplacian(self.pairs, self.rows.counted * self._slope(theta))
        known = np.tile(measured.moments.fitted, (_AT_ONCE, 1))
        noise = float((self._noise(theta, measured, known, rng) ** 2).sum()) / _AT_ONCE
        factor = noise / float(matrix.diagonal().sum())  # o
        precision = _with_ridge(sparse.csr_array(matrix / factor), 1.0 / prior)
        told = _with_ridge(matrix, ridge) @ theta / factor
        scale = np.sqrt(self.rows.counted * self._slope(theta) / factor)
        parts = []
        for some in _chunks(count):
            drawn = _spread_out(self.pairs, scale, rng, some)
            drawn += rng.normal(size=drawn.shape) / np.sqrt(prior)[:, None] + told[:, None]
            parts.append(solve_sparse(precision, drawn, _DRAWN_TOLERANCE).T.astype(np.float32))
        return np.concatenate(parts)


class PlainScores(NamedTuple):
    """Plain Bradley–Terry scores."""

    scores: Vector
    why: str
    """See :class:`~fairduel.votes.ranking.bradley_terry.Scores`."""


def plain_scores(pairs: Pairs, counted: Vector, wins: Vector) -> PlainScores:
    """Fit plain Bradley–Terry as :func:`~fairduel.votes.ranking.bradley_terry.fit_scores` does, for rows of pairs."""
    count = pairs.dimension
    edges = [(wins > 0.0, pairs.first, pairs.second), (counted > wins, pairs.second, pairs.first)]
    one, other = (np.concatenate([edge[place][edge[0]] for edge in edges]) for place in (1, 2))
    graph = sparse.coo_array((np.ones(len(one)), (one, other)), shape=(count, count)).tocsr()
    weak = csgraph.connected_components(graph, directed=False)[1]
    strong = csgraph.connected_components(graph, directed=True, connection="strong")[1]
    parts = np.bincount(np.unique(np.stack([weak, strong]), axis=1)[0])  # strong components of each weak one
    is_unbounded = parts[weak] > 1
    scores, _ = sparse_scores(pairs, counted, wins, np.where(is_unbounded, TINY_RIDGE, 0.0))
    return PlainScores(centred(scores, weak), unbounded(int(is_unbounded.sum())))


def sparse_scores(
    pairs: Pairs, counted: Vector, wins: Vector, ridge: Vector, start: Vector | None = None
) -> tuple[Vector, int]:
    """Maximise the log-likelihood minus ½ Σ λ_k θ_k² for ``ridge`` λ (K,); return θ (K,) and the Newton steps.

    >>> pairs = Pairs(np.array([0], np.int32), np.array([1], np.int32), 2)
    >>> theta, _ = sparse_scores(pairs, np.array([4.0]), np.array([3.0]), np.zeros(2))
    >>> (theta[0] - theta[1]).round(6) == np.log(3.0).round(6)
    np.True_
    """

    def loss(theta: Vector) -> float:
        margins = pairs.margins(theta)
        return float(np.logaddexp(0.0, margins) @ counted - margins @ wins + 0.5 * ridge @ theta**2)

    theta = np.zeros(pairs.dimension) if start is None else start
    before = loss(theta)
    for steps in range(1, _MOST_STEPS + 1):
        chance = special.expit(pairs.margins(theta))
        gradient = pairs.total(counted * chance - wins) + ridge * theta
        hessian = _with_ridge(laplacian(pairs, counted * chance * (1.0 - chance)), ridge)
        step = solve_sparse(hessian, gradient[:, None], _TOLERANCE)[:, 0]
        size, decrement = 1.0, float(step @ gradient)
        after = loss(theta - step)
        while after > before - 1e-4 * size * decrement and decrement > 1e-8 and size > 1e-10:
            size *= 0.5
            after = loss(theta - size * step)
        theta, before = theta - size * step, after
        if np.abs(step).max(initial=0.0) <= _SMALL_STEP:
            return theta, steps
    raise ConvergenceError(f"scores did not converge in {_MOST_STEPS} Newton steps: check for extreme vote weights.")


def laplacian(pairs: Pairs, coefficients: Vector) -> sparse.csr_array:
    """Return Σ c φφᵀ over the pairs, shape (K, K)."""
    units = pairs.of_votes(np.arange(len(pairs)))
    return sparse.csr_array(units.T @ (units * coefficients[:, None]))


def _with_ridge(matrix: sparse.csr_array, ridge: Vector | float) -> sparse.csr_array:
    return sparse.csr_array(matrix + sparse.diags_array(np.full(matrix.shape[0], ridge, np.float64)))


def solve_sparse(matrix: sparse.csr_array, values: Matrix, tolerance: float) -> Matrix:
    """Solve ``matrix`` (K, K) times x = ``values`` (K, b) by conjugate gradients, preconditioned by the diagonal.

    A singular matrix is fine if the equation has a solution.
    """
    own = matrix.diagonal()
    least = _ROUNDING**2 * float(own.sum())
    scale = np.divide(1.0, own, out=np.zeros_like(own), where=own > 0.0)[:, None]
    return np.hstack(
        [_conjugate(matrix, values[:, some], scale, tolerance, least) for some in _blocks(values.shape[1])]
    )


def _conjugate(matrix: sparse.csr_array, values: Matrix, scale: Matrix, tolerance: float, least: float) -> Matrix:
    found, left = np.zeros_like(values), values.copy()
    direction = left * scale
    size = np.einsum("ij,ij->j", left, direction)
    aim = np.maximum(tolerance**2 * size, least)
    for _ in range(_MOST_ITERATIONS):
        if (size <= aim).all():
            return found
        image = matrix @ direction
        curve = np.einsum("ij,ij->j", direction, image)
        step = np.divide(size, curve, out=np.zeros_like(size), where=curve > 0.0)
        found += step * direction
        left -= step * image
        scaled = left * scale
        new = np.einsum("ij,ij->j", left, scaled)
        direction *= np.divide(new, size, out=np.zeros_like(size), where=size > 0.0)
        direction += scaled
        size = new
    raise ConvergenceError("errors of the scores did not converge: use a ridge above 0.")


def _spread_out(pairs: Pairs, scale: Vector, rng: np.random.Generator, count: int) -> Matrix:
    """Return Σ scale·z φ over the pairs for ``count`` draws z, shape (K, count)."""
    units = pairs.of_votes(np.arange(len(pairs))) * scale[:, None]
    return np.asarray(units.T @ rng.normal(size=(len(pairs), count)))


def centred(values: Vector, component: Codes) -> Vector:
    """Subtract the mean of each component, for ``values`` (…, K)."""
    mean = sparse.csr_array((1.0 / np.bincount(component)[component], (component, np.arange(len(component)))))
    means = np.asarray(mean @ values.T)
    return np.asarray(values - means.T[..., component])


def _chunks(count: int) -> Iterator[int]:
    yield from (min(_AT_ONCE, count - start) for start in range(0, count, _AT_ONCE))


def _blocks(count: int) -> Iterator[slice]:
    yield from (slice(start, start + _AT_ONCE) for start in range(0, count, _AT_ONCE))
