"""What a ranking is made of, from few items by matrices and from many by draws."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from fairduel.core.memory import give_back
from fairduel.duel import Matrix, Vector
from fairduel.votes.ranking.answers import Answers, Gaps, answers, normal_quantile, stretches_of
from fairduel.votes.ranking.bradley_terry import ensure_matrices_fit, fit_scores, wins
from fairduel.votes.ranking.intervals import rank_intervals, score_reach
from fairduel.votes.ranking.many_items import DRAWS, MOST_DENSE, PlainScores, centred
from fairduel.votes.ranking.robust_fit import Weights
from fairduel.votes.ranking.score_fit import Effect, FittedScores, fitted_scores, many_scores
from fairduel.votes.ranking.uncertainty import Likelihood, MeasuredTastes, Uncertainty
from fairduel.votes.reading.features import Features
from fairduel.votes.verdict import CONFIDENCE
from fairduel.votes.votes import Codes, Indices, Ties, Votes

_MOST_DRAWN = 1e9  # draws × items²; more are slow and hardly more accurate
_STRETCHES = 2000


class RangedScores(NamedTuple):
    """Scores with all that is known about their errors."""

    gaps: Gaps
    low: Indices
    high: Indices
    """Ends of the joint ranges, both (K,)."""
    quantile: float
    """How many standard errors tell two items apart in them."""
    single: Answers
    error: Vector
    """Standard errors of the scores, shape (K,)."""
    reach: Vector
    """Half the width of each score's 95% interval, shape (K,)."""
    draws: Matrix
    """Draws of the scores from their posterior, shape (n, K)."""
    plain: PlainScores
    weights: Vector
    """w of each vote, shape (n,)."""
    fitted: Mapping[str, Any]
    """How the scores were fitted, for the settings."""
    tastes: Mapping[str, float]
    """τ² of each source of shared tastes."""
    likelihood: Likelihood | None
    effects: tuple[Effect, ...]
    spreads: Callable[[], Uncertainty]
    """Returns the covariance by source."""


class FitSettings(NamedTuple):
    """How to fit; see :func:`fairduel.votes.rank`."""

    ties: Ties
    features: Features | None
    reliability: Vector | None
    weights: Weights
    lies: float | None
    ridge: float | None

    def suits(self, votes: Votes) -> bool:
        """Whether sparse matrices serve: there are many items, no features, and equal weights."""
        plain = self.features is None and votes.features is None and self.weights == "none"
        return len(votes.items) > MOST_DENSE and plain


def dense_estimate(votes: Votes, fitting: FitSettings, draws: int, rng: np.random.Generator) -> RangedScores:
    """RangedScores the scores of few items; ``draws`` of the errors and of the posterior, at most."""
    ties, component = fitting.ties, votes.components(fitting.ties)
    plain = fit_scores(wins(votes, ties=ties))
    fit, chosen, effects, draws_of_scores, strength = _fitted(votes, fitting)
    give_back(len(votes))
    uncertainty = fit.uncertainty.mapped(lambda matrix: _centred_matrix(matrix, component))
    draws = min(draws, max(400, int(_MOST_DRAWN / len(component) ** 2)))
    errors = uncertainty.draws(draws, rng)
    drawn = draws_of_scores(draws, rng)
    reach = score_reach(uncertainty, errors, rng)
    scores, covariance = centred(fit.theta, component), uncertainty.covariance
    likelihood = None if fitting.features is not None or fit.ridge == 0.0 else fit.likelihood
    weights = np.zeros(len(votes))
    weights[chosen] = fit.weights
    fitted: dict[str, Any] = {"ridge": fit.ridge, "spread_of_scores": fit.spread}
    fitted |= {"alpha": fit.trust if fitting.weights != "none" else None, "fixed_point_residual": fit.residual}
    fitted |= {} if strength is None else {"feature_strength": strength}
    del fit, draws_of_scores, chosen  # they hold all votes: what follows needs the memory
    give_back(len(votes))
    found = rank_intervals(scores, covariance, errors, component, likelihood)
    gaps = Gaps(scores, component, errors, covariance, found.apart & (scores[:, None] > scores))
    return RangedScores(
        *(gaps, found.low, found.high, found.quantile, answers(gaps, stretches_of(uncertainty, rng))),
        error=np.sqrt(np.diag(covariance)),
        reach=reach,
        draws=drawn,
        plain=PlainScores(plain.scores, plain.why),
        weights=weights,
        fitted=fitted,
        tastes={source.name: source.variance for source in uncertainty.sources},
        likelihood=likelihood,
        effects=effects,
        spreads=lambda: uncertainty,
    )


def sparse_estimate(votes: Votes, fitting: FitSettings, rng: np.random.Generator) -> RangedScores:
    """RangedScores the scores of many items; see :mod:`fairduel.votes.ranking.many_items`."""
    component = votes.components(fitting.ties)
    fit = many_scores(votes, fitting.ties, fitting.reliability, fitting.ridge, rng)
    gaps = Gaps(fit.scores, component, fit.errors)
    error = np.sqrt(np.einsum("ij,ij->j", fit.errors, fit.errors) / DRAWS)
    stretches = _stretches(fit.measured, rng)
    sizes = np.bincount(component).astype(np.float64)
    joint = normal_quantile((1.0 - CONFIDENCE) / max(float(sizes @ (sizes - 1.0)), 1.0), stretches, DRAWS)
    single = answers(gaps, stretches, joint)

    def spreads() -> Uncertainty:
        ensure_matrices_fit(len(votes.items))
        found = _fitted(votes, fitting).fit.uncertainty
        return found.mapped(lambda matrix: _centred_matrix(matrix, component))

    return RangedScores(
        *(gaps, single.joint_low, single.joint_high, joint, single, error),
        reach=float(special.stdtrit(DRAWS, 0.5 + 0.5 * CONFIDENCE)) * error,
        draws=fit.draws,
        plain=fit.plain,
        weights=fit.weights,
        fitted={"ridge": fit.ridge, "spread_of_scores": fit.spread, "alpha": None, "fixed_point_residual": 0.0},
        tastes=dict(zip(fit.measured.names, fit.measured.moments.fitted.tolist(), strict=True)),
        likelihood=None,
        effects=(),
        spreads=spreads,
    )


def _fitted(votes: Votes, fitting: FitSettings) -> FittedScores:
    ties, features, reliability, weights, lies, ridge = fitting
    return fitted_scores(votes, ties, features, reliability, ridge=ridge, weights=weights, lies=lies)


def _stretches(measured: MeasuredTastes, rng: np.random.Generator) -> Vector:
    """Return by which factor draws of the variances of tastes change the mean variance of the items, shape (n,)."""
    moments = measured.moments
    if not len(moments.freedom):
        return np.ones(1)
    whole = float(moments.error[0] + moments.fitted @ moments.error[1:])
    return np.asarray(1.0 + (moments.draws(_STRETCHES, rng) - moments.fitted) @ moments.error[1:] / whole)


def _centred_matrix(matrix: Matrix, component: Codes) -> Matrix:
    """Return the covariance of the scores minus their mean in each component, from that of the scores, (K, K)."""
    return centred(centred(matrix, component).T, component)
