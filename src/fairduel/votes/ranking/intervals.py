r"""Intervals of ranks and scores, the probability of being best, and evidence that one may look at often.

*Evidence.* Let a be ahead of b by ĝ, with error variance v, which shrinks as votes come in. If the true gap is g ≤ 0
and ĝ/v is a Gaussian process with independent increments of variance 1/v (as the information grows), then, for any
δ > 0, exp(δĝ/v − δ²/2v) is a supermartingale that starts at 1. So is its average over δ with the density 2N(δ; 0, s²),

    E = 2 √(v/(v + s²)) exp(u²/2) Φ(u),  with u = ĝ/√v · √(s²/(v + s²)).

By Ville's inequality the probability that E ever reaches 1/ε is at most ε, however often one looks. The Gaussian
process is an approximation, as in the ranges, and its variance is theirs: it allows for voters and contexts that
differ.

Items are told apart only if E ≥ 1/ε with ε = 20%, besides what ranges that hold at one look require. Otherwise each of
two equal items would be ahead "with 95% confidence" at one look in twenty.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr

from fairduel.duel import Matrix, Vector
from fairduel.votes.ranking.uncertainty import Likelihood, Uncertainty
from fairduel.votes.verdict import CONFIDENCE
from fairduel.votes.votes import Codes, Indices, Mask

MOST_UNDERSTATED = 3.0
"""Factor by which Wald's statistic may understate a difference, at most."""
_SCALE = 1.0  # s: most sensitive to gaps of about one log-odd; the choice matters little
_LASTING = math.log(1.0 / 0.2)  # least log E of items that are told apart
_MOST_NUMBERS = 2e7  # draws × pairs for the quantile; more are slow and no more accurate
_MOST_COMPARED = 2e6  # pairs × items², or × rows of the design, for which the fall of the likelihood is computed
_MOST_STEPS = 10  # of the step-down procedure, which usually ends after two or three
_MOST_STEPPED = 300  # items; with more, further steps take long and gain little


def log_evidence(gap: float | Vector, variance: float | Vector) -> Vector:
    """Return log E for a ``gap`` ĝ with error ``variance`` v > 0; see the module's docstring.

    >>> float(log_evidence(0.5, 0.01).round(2))
    10.76
    """
    share = _SCALE**2 / (variance + _SCALE**2)
    u = gap / np.sqrt(variance) * np.sqrt(share)
    return np.asarray(math.log(2.0) + 0.5 * np.log1p(-share) + 0.5 * u**2 + log_ndtr(u))


def lasts(ratios: Vector, scales: Vector) -> Mask:
    """Return whether gaps are told from 0 however often one looks, given t = ĝ/√v and 1/√v > 0, both (n,).

    >>> lasts(np.array([2.0, 3.0]), np.array([10.0, 10.0])).tolist()
    [False, True]
    """
    return np.asarray(log_evidence(ratios / scales, scales**-2.0) >= _LASTING)


class RankIntervals(NamedTuple):
    """Ends of the ranks' intervals within components, both (K,)."""

    low: Indices
    high: Indices
    apart: Mask
    """Whether items i and j are told apart, shape (K, K)."""
    quantile: float
    """How many standard errors tell two items apart."""


def rank_intervals(
    scores: Vector, covariance: Matrix, errors: Matrix, component: Codes, likelihood: Likelihood | None = None
) -> RankIntervals:
    """Compute a simultaneous 95% confidence set of all ranks; see :func:`fairduel.votes.rank`.

    ``scores`` are (K,), with ``covariance`` (K, K) and draws of their ``errors`` (draws, K). Where errors understate
    how clearly an item won, the ``likelihood`` decides, if given.
    """
    count = len(scores)
    variances = np.diag(covariance)[:, None] + np.diag(covariance)[None, :] - 2.0 * covariance
    scales = np.divide(1.0, np.sqrt(np.maximum(variances, 0.0)), out=np.zeros_like(variances), where=variances > 0.0)
    ratios = (scores[:, None] - scores[None, :]) * scales
    compared = component[:, None] == component[None, :]
    np.fill_diagonal(compared, val=False)
    used = errors[: max(400, int(2 * _MOST_NUMBERS / count**2))]
    above, left = np.zeros_like(compared), compared
    for _ in range(_MOST_STEPS if count <= _MOST_STEPPED else 1):
        quantile = _quantile(used, scales, left)
        found = compared & (ratios > quantile)
        found[found] = lasts(ratios[found], scales[found])
        close = compared & ~found & (ratios > quantile / MOST_UNDERSTATED)
        if likelihood is not None and close.any():
            pairs = np.argwhere(close)
            effort = max(count**2, len(likelihood.differences))
            nearest = np.argsort(-ratios[close], kind="stable")[: int(_MOST_COMPARED / effort) + 1]
            one, other = pairs[nearest].T
            units = np.eye(count, len(likelihood.theta))  # features per vote come after the scores
            factors = likelihood.steepness(units[one] - units[other], quantile / ratios[one, other])
            told = factors * ratios[one, other]
            found[one, other] = (told > quantile) & lasts(told, scales[one, other])
        if (found == above).all():
            break
        above, left = found, compared & ~found
    size = np.bincount(component)[component]
    return RankIntervals(1 + above.sum(axis=0), size - above.sum(axis=1), above | above.T, quantile)


def ranks_within(scores: Vector, component: Codes) -> Indices:
    """Rank each item in its component, from 1 for the highest score, shape (K,); ties keep their order.

    >>> ranks_within(np.array([0.1, 0.5, 0.3, 0.2]), np.array([0, 0, 1, 0])).tolist()
    [3, 1, 1, 2]
    """
    order = np.lexsort((-scores, component))
    result = np.empty(len(scores), dtype=np.int64)
    result[order] = np.arange(1, len(scores) + 1) - np.searchsorted(component[order], component[order])
    return result


def score_reach(uncertainty: Uncertainty, errors: Matrix, rng: np.random.Generator) -> Vector:
    """Return half the width of the 95% interval of each score, shape (K,); the scores' spread is uncertain, too."""
    variances = np.diag(uncertainty.covariance)
    share = np.divide(np.diag(uncertainty.shrinking), variances, out=np.zeros_like(variances), where=variances > 0.0)
    more = uncertainty.spread.ratios(len(errors), rng)[:, None] - 1.0
    return np.asarray(np.quantile(np.abs(errors) * np.sqrt(1.0 + share * more), CONFIDENCE, axis=0))


def chances_of_best(draws: Matrix, component: Codes) -> Vector:
    """Return how often each item is the best of its component, shape (K,), among draws of the scores (count, K)."""
    best = np.zeros(len(component))
    for number in range(int(component.max()) + 1):
        members = np.flatnonzero(component == number)
        best[members] = np.bincount(np.argmax(draws[:, members], axis=1), minlength=len(members)) / len(draws)
    return best


def _quantile(errors: Matrix, scales: Matrix, pairs: Mask) -> float:
    """Return the 95% quantile of the largest (e_i − e_j)·scale_ij among ordered ``pairs`` (K, K), for draws of e."""
    largest, columns = np.zeros(len(errors), np.float32), np.ascontiguousarray(errors.T, dtype=np.float32)
    scales = scales.astype(np.float32)
    for item in range(len(scales)):
        others = np.flatnonzero(pairs[item, item + 1 :] | pairs[item + 1 :, item]) + item + 1
        if others.size:
            ratios = (columns[item] - columns[others]) * scales[item, others, None]
            for chosen, values in ((pairs[item, others], ratios), (pairs[others, item], -ratios)):
                if chosen.any():
                    np.maximum(largest, values[chosen].max(axis=0), out=largest)
    return float(np.quantile(largest, CONFIDENCE))
