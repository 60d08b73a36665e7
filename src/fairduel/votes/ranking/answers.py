r"""Answers to single questions about a ranking, which are sharper than a table that must hold as a whole.

The simultaneous ranges of :mod:`fairduel.votes.ranking.intervals` are right about all ranks at once. Each question here
needs less. Let e be the errors of the scores, s_ij the standard error of the gap θ_i − θ_j, and t_ij the estimated gap
divided by it. True ranks count the items with a higher true score.

**Who may be best?** Item i is ruled out if some t_ji that lasts (:func:`~fairduel.votes.ranking.intervals.lasts`) is
larger than c_i. If i is the best, all gaps θ_j − θ_i are at
most 0, and then t_ji > c_i for some j with a probability of at most 5% (Gupta 1965; Hsu 1981). c_i is found in two
steps (Romano, Shaikh and Wolf 2014). First, with a probability of 99.5%, no gap θ_j − θ_i is above its upper bound
(t_ji + d_i) s_ji, d_i being the 99.5% quantile of the largest (e_i − e_j)/s_ij. Where such a bound is below 0, j trails
by that much at least. So the largest t_ji is at most the largest of (e_j − e_i)/s_ij + min(t_ji + d_i, 0), and c_i is
the 95.5% quantile of that. Items far behind i thus cost nothing. **The best item is in the set with 95% confidence.**

**Where is this item?** Its own range counts the items told apart from it at 5% per pair. With r − 1 items above it, the
range misses above only if at least r items seem to be above. If all K items are equal and in any order, the expected
number of misses on one side is Σ_r P(N ≥ r) = E N = 2½% (K − 1) per item: **on average over the items, at least 95% of
the ranges hold**. If scores differ, items that are truly above and go unseen make up for those that only seem to be, so
more ranges hold. But the best of many nearly equal items is outside more often, and one in the middle hardly ever.
A range begins at 1 if and only if the item may be the best, and is 1 alone if and only if no other item may be. For the
best item and the only one that may be, this adds a chance of at most 5%, for which the sum above leaves room.

**Which tiers?** The ranking is cut after an item if every item so far is above every later one, at level 5%/(K − 1) per
pair, on both sides. Take the true order, best first. If a cut is wrong, two neighbours in that order were told apart in
the wrong direction, or although they are equal. There are K − 1 such pairs, fixed before any vote. So **all cuts are
right with 95% confidence**, although a cut compares all pairs across it: each must pass.

Where draws are too many, Bonferroni's inequality takes their place. Variances of shared tastes are uncertain. So
quantiles of normal errors are those of a mixture: by which factor each draw of these variances changes an item's
variance, at most.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import optimize, special

from fairduel.duel import Matrix, Vector
from fairduel.votes.ranking.intervals import lasts
from fairduel.votes.ranking.uncertainty import Uncertainty
from fairduel.votes.verdict import CONFIDENCE
from fairduel.votes.votes import Codes, Indices, Mask

_FIRST_STEP = 0.005  # chance that a gap is above its upper bound
_MOST_DRAWN = 300  # items of a group; with more, Bonferroni's inequality instead of draws
_MOST_NUMBERS = 300_000  # draws × items, for one item's candidacy
_PAIRS = 2000  # over which the errors of gaps are pooled
_STRETCHES = 2000
_ROWS = 2_000_000  # ratios at once


class Answers(NamedTuple):
    """One entry per item, each (K,)."""

    candidate: Mask
    """Whether the item may be the best of its component."""
    own_low: Indices
    own_high: Indices
    """The ends of the range of its rank, for this item alone."""
    tier: Indices
    """Number of its tier, from 1 for the best."""
    joint_low: Indices
    joint_high: Indices
    """The ends of its range in a table that holds as a whole, if asked for."""


@dataclass(frozen=True, eq=False)
class Gaps:
    """The gaps between items of the same component, with their errors.

    Args:
        scores: Shape ``(K,)``.
        component: Shape ``(K,)``.
        errors: Draws of the scores' errors, shape ``(n, K)``.
        covariance: Of the errors, shape ``(K, K)``; None: that of the draws, whose noise makes ratios follow
            Student's distribution.
        above: Pairs that another statistic tells apart with simultaneous confidence, shape ``(K, K)``.
    """

    scores: Vector
    component: Codes
    errors: Matrix
    covariance: Matrix | None = None
    above: Mask | None = None

    @property
    def freedom(self) -> float:
        """Degrees of freedom of standard errors, as far as draws limit them."""
        return float(len(self.errors)) if self.covariance is None else math.inf

    def covariance_of(self, places: Indices) -> Matrix:
        """Return the covariance of these items' errors, shape (m, m)."""
        if self.covariance is not None:
            return np.asarray(self.covariance[np.ix_(places, places)])
        some = self.errors[:, places].astype(np.float64)
        return np.asarray(some.T @ some / len(some))

    def scales(self, rows: Indices) -> Matrix:
        """Return 1/s_ij for the items ``rows`` (b,) against all, shape (b, K); 0 where they were not compared."""
        if self.covariance is not None:
            own, between = np.diag(self.covariance), self.covariance[rows]
        else:
            own = np.einsum("ij,ij->j", self.errors, self.errors) / len(self.errors)
            between = self.errors[:, rows].T @ self.errors / len(self.errors)
        variances = np.asarray(own[rows, None] + own - 2.0 * between)
        compared = (self.component[rows, None] == self.component) & (variances > 0.0)
        compared[np.arange(len(rows)), rows] = False
        return np.divide(1.0, np.sqrt(np.abs(variances)), out=np.zeros_like(variances), where=compared)

    def ratios(self, rows: Indices, scales: Matrix) -> Matrix:
        """Return t_ij for the items ``rows`` (b,) against all, shape (b, K)."""
        found = (self.scores[rows, None] - self.scores) * scales
        if self.above is not None:
            found[self.above[rows]] = np.inf
            found[self.above[:, rows].T] = -np.inf
        return np.asarray(found)

    def noise(self, item: int, scales: Vector, rivals: Indices) -> Matrix:
        """Return draws of (e_j − e_i)/s_ij for the ``rivals`` j (m,) of item i, shape (n, m)."""
        used = self.errors[: max(1000, _MOST_NUMBERS // len(rivals))]
        return np.asarray((used[:, rivals] - used[:, [item]]) * scales[rivals])


def answers(gaps: Gaps, stretches: Vector, joint: float = math.inf) -> Answers:
    """Answer the three questions for all items; ``stretches`` (n,) are those of :func:`stretches_of`.

    ``joint`` is the quantile of joint ranges, in standard errors of a gap.
    """
    count = len(gaps.scores)
    sizes = np.bincount(gaps.component)[gaps.component]
    order = np.lexsort((-gaps.scores, gaps.component))
    reach = _own_reach(gaps)
    levels = {size: (1.0 - CONFIDENCE) / (2.0 * max(size - 1, 1)) for size in np.unique(sizes).tolist()}
    cuts = {size: normal_quantile(level, stretches, gaps.freedom) for size, level in levels.items()}
    cut = np.array([cuts[size] for size in sizes.tolist()])
    bonferroni = _Bonferroni(stretches, gaps.freedom)
    candidate, low, high = np.zeros(count, np.bool_), np.ones(count, np.int64), sizes.astype(np.int64)
    joint_low, joint_high = low.copy(), high.copy()
    alike = np.arange(count)  # the last place in the order that is not told apart from the one here, to cut tiers
    for places in np.array_split(np.arange(count), count * count // _ROWS + 1):
        rows = order[places]
        scales = gaps.scales(rows)
        ratios = gaps.ratios(rows, scales)
        for ends, quantile in (((low, high), reach), ((joint_low, joint_high), joint)):
            ends[0][rows] += (ratios < -quantile).sum(axis=1)
            ends[1][rows] -= (ratios > quantile).sum(axis=1)
        clear = (scales > 0.0) & (ratios > cut[rows, None])
        clear[clear] = lasts(ratios[clear], scales[clear])
        unclear = ((scales > 0.0) & ~clear)[:, order] & (np.arange(count) > places[:, None])
        alike[places] = np.where(unclear.any(axis=1), count - 1 - unclear[:, ::-1].argmax(axis=1), places)
        for item, ratio, scale in zip(rows.tolist(), ratios, scales, strict=True):
            rivals = np.flatnonzero(scale)
            candidate[item] = not rivals.size or _may_be_best(gaps, item, -ratio[rivals], scale, rivals, bonferroni)
    low = np.where(candidate, 1, np.maximum(low, 2))  # what may be the best may be first, and nothing else
    alone = candidate & (np.bincount(gaps.component, candidate)[gaps.component] == 1.0)
    high = np.where(alone, 1, np.maximum(high, np.minimum(sizes, 2)))
    return Answers(candidate, low, high, _tiers(order, alike, gaps.component), joint_low, joint_high)


class _Bonferroni:
    """Quantiles of the largest of many errors, by Bonferroni's inequality; a number of errors is rounded up."""

    def __init__(self, stretches: Vector, freedom: float) -> None:
        self._stretches, self._freedom, self._known = stretches, freedom, dict[tuple[float, int], float]()

    def quantile(self, chance: float, errors: int) -> float:
        """Return what the largest of these errors exceeds with this chance at most."""
        step = math.ceil(10.0 * math.log(max(errors, 1)))
        if (chance, step) not in self._known:
            each = chance / max(math.exp(step / 10.0), 1.0)
            self._known[chance, step] = normal_quantile(each, self._stretches, self._freedom)
        return self._known[chance, step]


def _may_be_best(gaps: Gaps, item: int, leads: Vector, scale: Vector, rivals: Indices, bonferroni: _Bonferroni) -> bool:
    """Whether an item may be the best, given the ratios t_ji of its ``rivals`` (m,)."""
    ahead = leads > 0.0
    largest = leads[ahead][lasts(leads[ahead], scale[rivals[ahead]])].max(initial=0.0)
    if largest <= 0.0 or np.isposinf(largest):
        return bool(largest <= 0.0)
    if len(rivals) >= _MOST_DRAWN:
        near = leads + bonferroni.quantile(_FIRST_STEP, len(rivals)) >= 0.0
        return bool(largest <= bonferroni.quantile(1.0 - CONFIDENCE - _FIRST_STEP, int(near.sum())))
    noise = gaps.noise(item, scale, rivals)
    reach = float(np.quantile(-noise.min(axis=1), 1.0 - _FIRST_STEP))
    noise += np.minimum(leads + reach, 0.0)
    return bool(largest <= np.quantile(noise.max(axis=1), CONFIDENCE + _FIRST_STEP))


def _own_reach(gaps: Gaps) -> float:
    """Return the 95% quantile of |e_i − e_j|/s_ij over draws and pairs."""
    count = len(gaps.scores)
    rng = np.random.default_rng(0)
    rows = np.arange(count) if count**2 <= _PAIRS else rng.choice(count, min(count, 50), replace=False)
    used = gaps.errors[: max(400, _MOST_NUMBERS // _PAIRS)]
    scales = gaps.scales(rows)
    one, other = np.nonzero(scales)
    if not len(one):
        return 0.0
    chosen = rng.permutation(len(one))[:_PAIRS]
    one, other, scale = rows[one[chosen]], other[chosen], scales[one[chosen], other[chosen]]
    return float(np.quantile(np.abs(used[:, one] - used[:, other]) * scale, CONFIDENCE))


def _tiers(order: Indices, alike: Indices, component: Codes) -> Indices:
    """Number the tiers in each component, given each place's last place that is not told apart from it."""
    last = np.maximum.accumulate(alike)
    starts = np.r_[True, last[:-1] < np.arange(1, len(order))]  # all before are told apart from all from here on
    number = np.cumsum(starts)
    first = np.r_[True, component[order][1:] != component[order][:-1]]
    tier = np.empty(len(order), np.int64)
    tier[order] = number - np.maximum.accumulate(np.where(first, number, 0)) + 1
    return tier


def stretches_of(uncertainty: Uncertainty, rng: np.random.Generator) -> Vector:
    """Return by which factor draws of the variances of tastes change an item's variance, at most, shape (n,)."""
    own = np.diag(uncertainty.covariance)
    known = own > 0.0
    tastes = np.array([np.diag(source.covariance)[known] / own[known] for source in uncertainty.sources])
    if not len(tastes) or not known.any():
        return np.ones(1)
    moved = uncertainty.moments.draws(_STRETCHES, rng) - uncertainty.moments.fitted
    return np.asarray(1.0 + (moved @ tastes).max(axis=1))


def normal_quantile(chance: float, stretches: Vector, freedom: float = math.inf) -> float:
    """Return which value an error exceeds with this chance, in standard errors of normal errors.

    Their variances are ``stretches`` (n,), each equally likely; standard errors have ``freedom`` degrees of freedom.

    >>> round(normal_quantile(0.025, np.ones(1)), 2), round(normal_quantile(0.025, np.array([0.5, 1.5])), 2)
    (1.96, 2.04)
    """
    least = -special.ndtri(chance) if math.isinf(freedom) else -special.stdtrit(freedom, chance)
    if len(stretches) == 1:
        return float(least * np.sqrt(stretches[0]))
    spread = np.sqrt(stretches[stretches > 0.0])

    def excess(value: float) -> float:
        z = -value / spread
        tail = special.ndtr(z) if math.isinf(freedom) else special.stdtr(freedom, z)
        return float(np.log(max(tail.sum() / len(stretches), 1e-300) / chance))

    most = float(least * spread.max()) + 1.0
    return float(optimize.brentq(excess, 0.0, most))
