r"""How a verdict is reached: evidence that one may look at often, false votes, and the votes still needed.

*Won.* If a is not best, some b* is, and a must have evidence E ≥ 1/ε against b* to win
(:mod:`fairduel.votes.ranking.intervals`). There are K − 1 such a, so ε = 5%/(K − 1). If fewer than five voters cast the
votes, they may agree by chance and tell little of others: it is too early.

*False votes.* If C votes are false, whatever the true answers, the fit of the true votes has a gap of at least ĝ minus
a proven bound (:mod:`fairduel.votes.certifying.proof`), which takes the place of ĝ.

*Leads, a tie, too early.* Otherwise an item leads if no other item may be the best
(:mod:`fairduel.votes.ranking.answers`). A tie is between the few items that may be best once others are ruled out, or
between items that are practically equal. Anything else is too early to say, and then no item is named first.

*Votes still needed.* The true scores θ are drawn. Then the estimate θ̂_t after t times the information is drawn as it
grows, (θ̂ + (t − 1)θ + W_{t−1})/t with W a Brownian motion with the covariance of the errors, until an item wins. The
lower end is a quantile of that time for θ drawn around θ̂ with its errors: the prior expects fewer large gaps than polls
that people start have. The upper end is one for θ drawn from its posterior, and is left out if it is far above the
lower one. Information grows with the votes, as fast as it lately has for the items in question, which an agent asks for
more often, or as on average: the range includes both.
"""

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import linalg, special

from fairduel.checks import integer
from fairduel.core.blas import one_thread
from fairduel.duel import Matrix, Vector
from fairduel.errors import BadInputError
from fairduel.votes.certifying.search import Fitting, Group
from fairduel.votes.given import takes_votes
from fairduel.votes.ranking.design_matrix import Pairs
from fairduel.votes.ranking.intervals import MOST_UNDERSTATED, log_evidence
from fairduel.votes.ranking.many_items import MOST_DENSE
from fairduel.votes.ranking.uncertainty import half
from fairduel.votes.reviewing.position import OneOrder, one_order
from fairduel.votes.verdict import CONFIDENCE, EQUAL, LEAST_VOTES, State, Verdict
from fairduel.votes.votes import Votes, sums

if TYPE_CHECKING:
    from fairduel.votes.ranking.rank import Ranking
    from fairduel.votes.ranking.standings import Standing

LEAST_VOTERS = 5
"""How many voters with equally many votes must say as much as those of a group for an item to lead or win."""
_MOST_TIED = 5  # items; more are not a tie
_MOST_CLOSE = 100  # items whose likelihood is compared with the first one's
_MOST_RACING = 8  # items of a forecast
_WALKS = 5  # of each end of a forecast, for each draw of the true scores
_TIMES = np.geomspace(0.02, 1000.0, 70)  # further votes of a forecast, per vote so far
_LOW, _HIGH = 0.025, 0.85  # quantiles of a forecast
_WIDEST = 30.0  # ratio of its ends
_SLOWEST, _FASTEST = 0.5, 4.0  # growth of information about the items in question, per vote, against that until now
_MOST_SPLIT = 300  # items; with more, information is taken to grow as it did


class _Race(NamedTuple):
    """What a forecast needs of the items that may win, the leader first."""

    scores: Vector
    """Shape (m,)."""
    covariance: Matrix
    """Of their errors, shape (m, m)."""
    draws: Matrix
    """True scores, shape (p, m)."""
    lost: float
    """How much of a gap the false votes can be."""


@takes_votes
def decide(
    votes: Votes,
    ranking: "Ranking",
    *,
    lies: int = 0,
    votes_per_voter: float | None = None,
    doubts: Mapping[str, str] | None = None,
    reservations: Sequence[str] = (),
) -> tuple[Verdict, ...]:
    r"""Say what the votes decide about each group of at least two items, the largest group first.

    Args:
        votes: The votes, or a file or table of votes.
        ranking: Their ranking by :func:`fairduel.votes.rank`.
        lies: C, how many of the votes that count may be false in each group.
        votes_per_voter: How many votes each further voter casts. Default: as many as the voters so far.
        doubts: Items that are first by another count of the same votes, each with the reason in a sentence: while
            they differ from the ranking's first item, it cannot have won. They say nothing new if no item would be
            named and they may be the best anyway.
        reservations: Why the counted votes may not speak for everyone, in sentences: then nobody leads or wins.

    Raises:
        BadInputError: ``lies`` is not a whole number ≥ 0, or above 0 for a ranking with features or of more than 1,000
            items.

    >>> from fairduel.votes.ranking.rank import rank
    >>> votes = Votes.from_arrays(["tea", "milk"], [0] * 100, [1] * 100, [1] * 80 + [0] * 20)
    >>> print(*decide(votes, rank(votes), lies=5)[0].sentences, sep="\n")
    tea has won against 1 other item, so you can stop.
    That holds with 95% confidence, no matter how often you look.
    This assumes that at most 5 counted votes are false, and that votes are independent of each other.
    """
    integer("lies", lies, least=0)
    votes = replace(votes, weight=np.where(ranking.weights > 0.0, votes.weight, 0.0))
    if lies and ranking.uses_features:
        raise BadInputError("a ranking with features cannot allow for false votes: rank without them, or set lies=0.")
    groups = [group for group in ranking.components() if len(group) > 1]
    if lies and max(map(len, groups), default=0) > MOST_DENSE:
        raise BadInputError(f"a ranking of more than {MOST_DENSE:,} items cannot allow for false votes: set lies=0.")
    is_large = len(ranking.items) > MOST_DENSE
    order = None if ranking.uses_features or is_large else one_order(votes, ranking.settings["ties"])
    bar = math.log(max(sum(len(group) - 1 for group in groups), 1) / (1.0 - CONFIDENCE))
    return tuple(
        _Group(votes, ranking, group, number, lies, order).verdict(
            bar, votes_per_voter, doubts or {}, reservations, several=len(groups) > 1
        )
        for number, group in enumerate(groups)
    )


class _Group(NamedTuple):
    """A group of items, with what is needed to judge it."""

    votes: Votes
    ranking: "Ranking"
    standings: "Sequence[Standing]"
    number: int
    lies: int
    order: OneOrder | None

    def verdict(
        self,
        bar: float,
        votes_per_voter: float | None,
        doubts: Mapping[str, str],
        reservations: Sequence[str],
        *,
        several: bool,
    ) -> Verdict:
        first, *others = self.standings
        counts = self._counts()
        total, (voters, per_voter) = float(counts.sum()), _voters(self.votes, counts)
        places = self._places(self.standings)
        scores, scales = self.ranking.scores[places], self.ranking.gaps.scales(places[:1])[0, places[1:]]
        lost = self._lost(others)
        gaps = np.maximum(scores[0] - scores[1:] - lost, 0.0)
        variances = np.divide(1.0, scales**2, out=np.full_like(scales, 1e-12), where=scales > 0.0)
        evidence = self._evidence(gaps, variances, bar)
        contenders = [first, *(each for each in others if each.candidate)]
        few_voters = [] if voters is None or per_voter is None else _few_voters(voters, round(total / per_voter))
        unheard = [*few_voters, *reservations]
        enough = total >= LEAST_VOTES * len(self.standings) and not unheard
        named = enough and len(contenders) == 1
        possible = [] if named else [each.item for each in contenders]  # then nobody is ahead of them anyway
        instead, doubted = self._doubts({item: why for item, why in doubts.items() if item not in possible})
        items = tuple(dict.fromkeys([*(each.item for each in contenders), *instead]))
        equal = self._are_equal(contenders) and not instead
        state: State = "too early"
        if enough:
            if evidence >= bar and named and not doubted:
                state = "won"
            elif named:
                if instead:
                    state, items = "tie", (first.item, *instead)
                elif self.order is None:  # otherwise ranges and probabilities are too sure
                    state = "leads"
            elif equal or len(items) <= min(_MOST_TIED, len(self.standings) - 1):
                state = "tie"
        return Verdict(
            state=state,
            group=first.group if several else "",
            items=items,
            of=len(self.standings),
            votes=round(total),
            best=first.best,
            evidence=evidence,
            bar=bar,
            lies=self.lies,
            voters=voters,
            per_voter=votes_per_voter or per_voter,
            doubts=(*doubted, *unheard),
            equal=equal and state == "tie",
            tiers=_tiers(self.standings),
            further=functools.partial(self._further, contenders, others, float(np.max(lost, initial=0.0)), counts, bar),
        )

    def _doubts(self, doubts: Mapping[str, str]) -> tuple[list[str], list[str]]:
        """Return the items that are first by another count of the votes, and all that speaks against a winner."""
        first = self.standings[0].item
        found = {item: reason for item, reason in doubts.items() if item != first}
        reasons = list(found.values())
        if self.order is not None:
            best = self.standings[int(np.argmax(self.order.scores[self._places(self.standings)]))].item
            found |= {} if best == first else {best: self.order.sentence}
            reasons.append(self.order.sentence)
        return list(found), reasons

    def _counts(self) -> Vector:
        """Return how many times each vote counts in this group, shape (n,)."""
        ties = self.ranking.settings["ties"]
        inside = self.votes.components(ties) == self.number
        return np.where(inside[self.votes.first], self.votes.counts(ties), 0.0)

    def _places(self, standings: "Sequence[Standing]") -> "np.ndarray[Any, np.dtype[np.int64]]":
        place = {item: number for number, item in enumerate(self.ranking.items)}
        return np.array([place[each.item] for each in standings])

    def _estimate(self, standings: "Sequence[Standing]") -> tuple[Vector, Matrix]:
        """Return the scores (m,) and the covariance of their errors (m, m)."""
        places = self._places(standings)
        return self.ranking.scores[places], self.ranking.gaps.covariance_of(places)

    def _lost(self, others: "Sequence[Standing]") -> Vector:
        """Return how much of the gap to each other item C false votes can be, at most, shape (m,)."""
        if not self.lies:
            return np.zeros(len(others))
        settings = self.ranking.settings
        fitting = Fitting(settings["ties"], self.ranking.weights, settings["ridge"], self.number)
        group = Group(self.votes, fitting)
        scores, proof = group.fitted.scores, group.by_vote.proof("false")
        leader, *rivals = (group.votes.items.index(each.item) for each in self.standings)
        gaps = [float(scores[leader] - scores[rival]) for rival in rivals]
        least = [proof.least_gap(self.lies, (leader, rival)) for rival in rivals]
        return np.asarray(np.maximum(np.array(gaps) - np.array(least), 0.0))

    def _evidence(self, gaps: Vector, variances: Vector, bar: float) -> float:
        """Return the least log E of the first item against the others, given its gaps and their variances, both (m,).

        Where an item wins nearly all its votes, errors understate the difference (Hauck and Donner 1977). If that is
        all that stands between the first item and the ``bar``, the fall of the likelihood decides.
        """
        wald, most = (log_evidence(times * gaps, variances) for times in (1.0, MOST_UNDERSTATED))
        close = np.flatnonzero(wald < bar)
        likelihood = self.ranking.likelihood
        if likelihood is None or not 0 < len(close) <= _MOST_CLOSE or (most[close] < bar).any():
            return float(wald.min())
        places = self._places(self.standings)
        units = np.eye(len(self.ranking.items), len(likelihood.theta))
        factors = likelihood.steepness(units[places[0]] - units[places[1:][close]], np.zeros(len(close)))
        wald[close] = log_evidence(np.clip(factors, 1.0, MOST_UNDERSTATED) * gaps[close], variances[close])
        return float(wald.min())

    def _are_equal(self, contenders: "Sequence[Standing]") -> bool:
        """Whether the contenders, if several, are practically equal: their gaps' 95% intervals are that small."""
        if not 1 < len(contenders) <= _MOST_TIED:
            return False
        scores, covariance = self._estimate(contenders)
        reach = float(special.ndtri(0.5 + CONFIDENCE / 2.0)) * np.sqrt(_gap_variances(covariance))
        return bool((np.abs(scores[:, None] - scores) + reach <= EQUAL).all())

    def _further(
        self, contenders: "Sequence[Standing]", others: "Sequence[Standing]", lost: float, counts: Vector, bar: float
    ) -> tuple[float, float]:
        """Forecast the votes still needed, as multiples of those so far: at least, and at most.

        The contenders most likely to be best race, or the first two items.
        """
        racing = list(contenders) if len(contenders) > 1 else [*contenders, others[0]]
        racing = [racing[0], *sorted(racing[1:], key=lambda each: -each.best)[: _MOST_RACING - 1]]
        scores, covariance = self._estimate(racing)
        drawn = np.repeat(self.ranking.draws[:, self._places(racing)], _WALKS, axis=0)
        with one_thread():
            around = scores + np.random.default_rng(1).normal(size=drawn.shape) @ half(covariance)
            growth = self._growth(racing, counts)
            low, high = (
                float(np.quantile(_more_information(_Race(scores, covariance, truth, lost), bar), at, method="nearest"))
                for truth, at in ((around, _LOW), (drawn, _HIGH))
            )
        low, high = low / max(growth, 1.0), high / min(growth, 1.0)
        return low, high if high <= _WIDEST * low else math.inf

    def _growth(self, racing: "Sequence[Standing]", counts: Vector) -> float:
        """Return how fast information about the items grew in the later half of the votes, against that in all."""
        used = np.flatnonzero(counts > 0.0)
        if len(self.ranking.items) > _MOST_SPLIT or len(used) < 2:
            return 1.0
        places, items = self._places(racing), len(self.ranking.items)
        gap = self.ranking.scores[self.votes.first[used]] - self.ranking.scores[self.votes.second[used]]
        slope = counts[used] * special.expit(gap) * special.expit(-gap)
        pairs, row, _ = Pairs.collapse(self.votes.first[used], self.votes.second[used], items)
        earlier = np.cumsum(counts[used]) <= 0.5 * counts.sum()
        known = []
        for chosen in (earlier, np.ones_like(earlier)):
            information = pairs.information(sums(row[chosen], len(pairs), slope[chosen]))
            ridge = self.ranking.settings["ridge"] or 1e-6
            covariance = np.asarray(linalg.inv(information + ridge * np.eye(items)), dtype=np.float64)
            known.append(1.0 / _gap_variances(covariance[np.ix_(places, places)])[0, 1:])
        growth = np.median((known[1] - known[0]) / (0.5 * known[1]))
        return float(np.clip(growth, _SLOWEST, _FASTEST))


def _tiers(standings: "Sequence[Standing]") -> tuple[tuple[str, ...], ...]:
    """Return the items of each tier."""
    return tuple(tuple(each.item for each in tier) for _, tier in groupby(standings, key=lambda each: each.tier))


def _voters(votes: Votes, counts: Vector) -> tuple[float | None, float | None]:
    """Return how many voters with equally many votes say as much, (Σn)²/Σn², and the mean of n; None if unknown."""
    if votes.voter is None:
        return None, None
    cast = sums(votes.voter, len(votes.voters), counts)
    cast = cast[cast > 0.0]
    if not len(cast):
        return None, None
    return float(cast.sum() ** 2 / (cast**2).sum()), float(cast.mean())


def _few_voters(voters: float, number: int) -> list[str]:
    """Say if too few voters cast the votes: ``number`` of them, who say as much as ``voters``."""
    if voters >= LEAST_VOTERS:
        return []
    if number == 1:
        return ["All votes are by one voter, who cannot speak for others."]
    if number < LEAST_VOTERS:
        return [f"All votes are by {number} voters, too few to speak for others."]
    most = math.floor(10.0 * voters) / 10.0
    return [
        f"A few of {number:,} voters cast so many of the votes that these say no more than those of {most:.1f} equally "
        f"active voters; it takes {LEAST_VOTERS}."
    ]


def _gap_variances(covariance: Matrix) -> Matrix:
    """Return the error variances of the gaps between items, shape (m, m)."""
    own = np.diag(covariance)
    return np.asarray(np.maximum(own[:, None] + own - 2.0 * covariance, 1e-12))


def _more_information(race: _Race, bar: float) -> Vector:
    """Draw how much more information it takes, as a multiple of that so far, until an item wins, shape (p,)."""
    rng = np.random.default_rng(0)
    count, items = race.draws.shape
    spread = half(race.covariance)
    variances, walk, last = _gap_variances(race.covariance), np.zeros((count, items)), 0.0
    needed, racing = np.full(count, math.inf), np.arange(count)
    for further in _TIMES:
        walk[racing] += np.sqrt(further - last) * rng.normal(size=(len(racing), items)) @ spread
        last, times = further, 1.0 + further
        seen = (race.scores + further * race.draws[racing] + walk[racing]) / times
        leader = np.argmax(seen, axis=1)
        gaps = np.maximum(seen.max(axis=1)[:, None] - seen - race.lost / times, 0.0)
        evidence = log_evidence(gaps, variances[leader] / times)
        evidence[np.arange(len(racing)), leader] = math.inf
        done = evidence.min(axis=1) >= bar
        needed[racing[done]] = further
        racing = racing[~done]
        if not len(racing):
            break
    return needed
