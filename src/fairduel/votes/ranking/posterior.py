r"""What the votes say about the scores: the posterior behind the probability of being the best.

An estimate is about normal: θ̂ = Kθ + e with K = H⁻¹I, where e has the covariance W of the noise and of shared tastes
(:mod:`fairduel.votes.ranking.uncertainty`). How far apart scores are is not known beforehand, so it is learned too:

    θ_k ~ N(0, σ² + s²x_k²),   x_k = max(0, log(n̄/2n_k)).

σ has a half-Cauchy prior of scale 1 (Gelman 2006). n_k is the number of votes on item k, and n̄ the median: items with
less than half as many, such as newcomers, may lie far from the others, by s per factor of e. Before votes are seen,
each s on a short list is equally likely. With many such items, the votes tell whether they differ; with one, they
cannot, and the prior must not pretend to know.

With J = KᵀW⁺K and g = KᵀW⁺θ̂, and D the diagonal covariance of the prior, the posterior is N(P⁻¹g, P⁻¹), P = J + D⁻¹,
and σ and s have the marginal likelihood |DP|^(−½) exp(½ gᵀP⁻¹g). The draws come from the mixture over σ, s and τ².
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from fairduel.duel import Matrix, Vector
from fairduel.votes.ranking.uncertainty import ShrunkenFit

_SCALE = 1.0  # of σ's half-Cauchy prior
_SPREADS = np.geomspace(0.02, 8.0, 11)  # σ
_RARE_SPREADS = np.array([0.15, 0.4, 0.8])  # s; least Brier score of five lists (15 seeds from 1,000,100)
_FEW, _MANY = 64, 300  # items: with more, fewer values of τ², and one only
_TASTES = 8, 4, 1  # values of τ² to average over
_MOST_COMPARED = 1000  # items: with more, σ is as estimated, to save time
_NO_VARIANCE = 1e-10  # relative; the mean of a component has none, and its inverse would be rounding errors


@dataclass(frozen=True, eq=False)
class Posterior:
    """The posterior of θ, given a fit.

    Args:
        fit: The fit, with the ridge that the votes suggest. With a weaker ridge, an item that wins nearly all its votes
            is so far from the others that the likelihood around it is flat, and no longer normal.
        rarity: x of each coefficient, shape ``(d,)``.

    >>> from fairduel.votes.ranking.design_matrix import Pairs
    >>> from fairduel.votes.ranking.uncertainty import shrunken_fit
    >>> pairs = Pairs(np.array([0], np.int32), np.array([1], np.int32), 2)
    >>> won = np.array([1.0] * 30 + [0.0] * 10)
    >>> fit = shrunken_fit(pairs, np.zeros(40, np.int64), won, np.ones(40), np.ones(40))
    >>> draws = Posterior(fit, np.zeros(2)).draws(1000, np.random.default_rng(0))
    >>> draws.shape, bool(np.mean(draws[:, 0] > draws[:, 1]) > 0.98)
    ((1000, 2), True)
    """

    fit: ShrunkenFit
    rarity: Vector

    def draws(self, count: int, rng: np.random.Generator) -> Matrix:
        """Draw θ, shape (count, d)."""
        size, result = len(self.fit.theta), []
        uncertainty = self.fit.uncertainty
        values = _TASTES[int(np.searchsorted((_FEW, _MANY), size))] if uncertainty.sources else 1
        tastes = uncertainty.moments.draws(values, rng) if values > 1 else uncertainty.moments.fitted[None]
        shares = np.diff(np.linspace(0, count, values + 1).round().astype(np.int64))
        for variances, share in zip(tastes, shares.tolist(), strict=True):
            shared = sum(
                (each * source.covariance for each, source in zip(variances, uncertainty.sources, strict=True)),
                uncertainty.sampling,
            )
            weighed = self.fit.kept.T @ linalg.pinvh(shared, rtol=_NO_VARIANCE)
            result.append(self._given(weighed @ self.fit.kept, weighed @ self.fit.theta, share, rng))
        return np.concatenate(result)

    def _given(self, precision: Matrix, score: Vector, count: int, rng: np.random.Generator) -> Matrix:
        """Draw θ given J (d, d) and g (d,), that is, for one value of τ²."""
        priors, log_weights = self._priors()
        evidence, centres, roots = list[float](), list[Vector](), list[Matrix]()
        for variance in priors:
            root = linalg.cholesky(precision + np.diag(1.0 / variance), lower=True)
            half = linalg.solve_triangular(root, score, lower=True)
            evidence.append(0.5 * float(half @ half - np.log(variance).sum()) - float(np.log(np.diag(root)).sum()))
            centres.append(linalg.solve_triangular(root, half, lower=True, trans="T"))
            roots.append(root)
        logs = np.array(evidence) + log_weights
        chances = np.exp(logs - logs.max())
        times = rng.multinomial(count, chances / chances.sum())
        drawn = [
            centre + linalg.solve_triangular(root, rng.normal(size=(len(score), n)), lower=True, trans="T").T
            for centre, root, n in zip(centres, roots, times.tolist(), strict=True)
            if n
        ]
        return np.concatenate(drawn) if drawn else np.empty((0, len(score)))

    def _priors(self) -> tuple[NDArray[np.float64], Vector]:
        """Return the diagonals of D on the grid of σ and s, shape (m, d), and their log prior weights (m,)."""
        few = len(self.rarity) <= _MOST_COMPARED
        spreads = _SPREADS if few else np.array([self.fit.spread])
        rare = _RARE_SPREADS[1:2] if not few else _RARE_SPREADS if self.rarity.any() else _RARE_SPREADS[:1]
        weights = np.log(spreads) - np.log1p((spreads / _SCALE) ** 2)  # the grid is even in log σ
        variances = spreads[:, None, None] ** 2 + (rare[:, None] * self.rarity) ** 2
        return variances.reshape(-1, len(self.rarity)), np.repeat(weights, len(rare))


def prior_variances(variance: float, rarity: Vector) -> Vector:
    """Return the diagonal of D, shape (K,), for σ² as estimated and s as usual; ``rarity`` x is (K,)."""
    return np.asarray(variance + (_RARE_SPREADS[1] * rarity) ** 2)


def rarity(games: Vector, component: NDArray[np.int32]) -> Vector:
    """Return x = max(0, log(n̄/2n)) of each item, shape (K,), for its number of votes n (K,).

    n̄ is the median of the item's ``component`` (K,).

    >>> rarity(np.array([100.0, 100.0, 10.0, 5.0]), np.array([0, 0, 0, 1])).round(2).tolist()
    [0.0, 0.0, 1.61, 0.0]
    """
    logs = np.log(np.maximum(games, 1e-9))
    order = np.argsort(component, kind="stable")
    parts = np.split(logs[order], np.cumsum(np.bincount(component))[:-1])
    medians = np.array([np.median(part) for part in parts])
    return np.asarray(np.maximum(medians[component] - logs - math.log(2.0), 0.0))
