"""When a poll can stop: the leader is the best item, whenever one looks and although some votes are false.

Let the leader a be ahead of b by ĝ, with error variance v, which shrinks as votes come in. If the true gap is g ≤ 0 and
ĝ/v is a Gaussian process with independent increments of variance 1/v (as the information grows), then, for any δ > 0,
exp(δĝ/v − δ²/2v) is a supermartingale that starts at 1. So is its average over δ with the density 2N(δ; 0, s²),

    E = 2 √(v/(v + s²)) exp(u²/2) Φ(u),  with u = ĝ/√v · √(s²/(v + s²)).

By Ville's inequality the probability that E ever reaches 1/ε is at most ε, however often one looks. If a is not best,
some b* is, and a must have E ≥ 1/ε against b* to be announced. There are K − 1 such a, so ε = 5%/(K − 1).

*False votes.* If at most C votes are false, whatever the true answers, the fit of the true votes has a gap of at least
ĝ minus a proven bound (:mod:`fairduel.votes.lower_bound`), which takes the place of ĝ.

The Gaussian process is an approximation, as in the ranking's intervals. Its variance is theirs, so it allows for voters
and contexts that differ.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr

from fairduel.checks import integer
from fairduel.duel import Vector
from fairduel.errors import BadInputError
from fairduel.votes.bradley_terry import Scores
from fairduel.votes.fragile import Fitting, prepared
from fairduel.votes.intervals import CONFIDENCE
from fairduel.votes.lower_bound import Proof
from fairduel.votes.planning import rough
from fairduel.votes.ranking import Ranking, Standing
from fairduel.votes.vote_counts import VoteCounts
from fairduel.votes.votes import Votes
from fairduel.votes.words import counted_noun

_SCALE = 1.0  # s: most sensitive to gaps of about one log-odd; the choice matters little
_ACCURACY = 1.05  # of a forecast
_MOST_TIMES = 1000.0  # how many times the votes so far a forecast may take


@dataclass(frozen=True)
class Stopping:
    """Whether a group's leader can be named the best now, and if not, how many more votes that takes."""

    leader: str
    rival: str
    """The item from which the leader is hardest to tell."""
    items: int
    votes: int
    """Number of votes in the group."""
    false_votes: int
    """C: how many of them may be false."""
    evidence: float
    """log E against the rival."""
    bar: float
    """log E needed."""
    needed: int | None
    """How many more votes like these are needed, if the gap stays as it is; None if more than 1,000 times as many."""
    group: str = ""
    """Name of the group, if there are several."""

    @property
    def can_stop(self) -> bool:
        """Whether the leader is the best with 95% confidence, however often this is asked."""
        return self.needed == 0

    @property
    def sentence(self) -> str:
        """The answer in a sentence.

        >>> print(Stopping("tea", "milk", 3, 420, 10, 9.1, 3.7, 0).sentence)
        You can stop: tea is the best of 3 items (95% confidence, however often you look), even if 10 votes are false.
        >>> print(Stopping("tea", "milk", 3, 420, 0, 1.2, 3.7, 300).sentence)
        Do not stop yet: about 300 more votes are needed to tell tea from milk.
        """
        where = f"Group {self.group}: " if self.group else ""
        lies = f", even if {counted_noun(self.false_votes, 'vote')} {'is' if self.false_votes == 1 else 'are'} false"
        if self.can_stop:
            sure = f"({CONFIDENCE:.0%} confidence, however often you look)"
            best = f"{self.leader} is the best of {self.items} items {sure}{lies if self.false_votes else ''}."
            return f"{where}You can stop: {best}"
        pair = f"to tell {self.leader} from {self.rival}{lies if self.false_votes else ''}."
        if self.needed is None:
            return f"{where}Do not stop yet: no reasonable number of votes would be enough {pair}"
        return f"{where}Do not stop yet: about {rough(self.needed)} more votes are needed {pair}"


def log_evidence(gap: float | Vector, variance: float | Vector) -> Vector:
    """Return log E for a ``gap`` ĝ with error ``variance`` v > 0; see the module's docstring.

    >>> float(log_evidence(0.5, 0.01).round(2))
    10.76
    """
    share = _SCALE**2 / (variance + _SCALE**2)
    u = gap / np.sqrt(variance) * np.sqrt(share)
    return np.asarray(math.log(2.0) + 0.5 * np.log1p(-share) + 0.5 * u**2 + log_ndtr(u))


def stopping(votes: Votes, ranking: Ranking, *, false_votes: int | None = None) -> list[Stopping]:
    """Say for each group of at least two items whether its leader can be named the best now.

    Args:
        votes: The votes.
        ranking: Their ranking by :func:`fairduel.votes.rank`, without features.
        false_votes: C, how many votes may be false in each group. Default: √n.

    Raises:
        BadInputError: The ranking uses features.

    >>> from fairduel.votes.ranking import rank
    >>> votes = Votes.from_arrays(["tea", "milk"], [0] * 100, [1] * 100, [1] * 80 + [0] * 20)
    >>> print(stopping(votes, rank(votes), false_votes=5)[0].sentence)
    You can stop: tea is the best of 2 items (95% confidence, however often you look), even if 5 votes are false.
    """
    if ranking.uses_features:
        raise BadInputError("whether a poll can stop is unknown if its ranking uses features: rank without them.")
    groups = [group for group in ranking.components() if len(group) > 1]
    ties, ridge = ranking.settings["ties"], ranking.settings["ridge"]
    rivals = sum(len(group) - 1 for group in groups)
    several = len(groups) > 1
    found = []
    for number, (leader, *others) in enumerate(groups):
        kept, kinds, fitted = prepared(votes, Fitting(ties, ranking.weights, ridge, number))
        total = int(kinds.count.sum())
        most = math.isqrt(total) if false_votes is None else integer("false_votes", false_votes)
        race = _Race(kinds, fitted, most)
        pairs = [(kept.items.index(leader.item), kept.items.index(other.item)) for other in others]
        variances = [_variance(ranking, leader, other) for other in others]
        evidence = [race.evidence(pair, variance) for pair, variance in zip(pairs, variances, strict=True)]
        bar, hardest = math.log(rivals / (1.0 - CONFIDENCE)), int(np.argmin(evidence))
        times = race.times_needed(pairs[hardest], variances[hardest], bar)
        found.append(
            Stopping(
                leader=leader.item,
                rival=others[hardest].item,
                items=len(pairs) + 1,
                votes=total,
                false_votes=most,
                evidence=evidence[hardest],
                bar=bar,
                needed=None if times is None else math.ceil((times - 1.0) * total),
                group=leader.group if several else "",
            )
        )
    return found


def _variance(ranking: Ranking, one: Standing, other: Standing) -> float:
    """Return the error variance of the gap between two items."""
    i, j = ranking.items.index(one.item), ranking.items.index(other.item)
    covariance = ranking.covariance
    return float(covariance[i, i] + covariance[j, j] - 2.0 * covariance[i, j])


class _Race(NamedTuple):
    """The fit of a group's votes, of which some may be false."""

    kinds: VoteCounts
    fitted: Scores
    false_votes: int

    def evidence(self, pair: tuple[int, int], variance: float, times: float = 1.0) -> float:
        """Return log E of the ``pair``, or what it would be with ``times`` as many votes like these."""
        kinds = replace(self.kinds, count=np.ceil(self.kinds.count * times).astype(np.int64))
        fitted = replace(self.fitted, covariance=self.fitted.covariance / times)
        gap = Proof(kinds, fitted, "false").least_gap(self.false_votes, pair)
        return float(log_evidence(max(gap, 0.0), variance / times))

    def times_needed(self, pair: tuple[int, int], variance: float, bar: float) -> float | None:
        """Return how many times as many votes are needed for a log E of ``bar``."""
        if self.evidence(pair, variance) >= bar:
            return 1.0
        if self.evidence(pair, variance, _MOST_TIMES) < bar:
            return None
        low, high = 1.0, _MOST_TIMES
        while high > _ACCURACY * low:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if self.evidence(pair, variance, middle) >= bar else (middle, high)
        return high
