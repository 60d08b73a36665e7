r"""How many votes would separate two neighbours, and which duels to ask next.

**Votes needed.** Two items are told apart if their scores differ by more than q standard errors, q being the quantile
that :func:`fairduel.votes.rank` uses for all pairs together. If the estimated gap g is the true one, that happens with
probability 80% once the standard error is g/(q + 0.84). Sampling errors shrink as 1/votes, tastes of voters as
1/voters, tastes of contexts as 1/contexts. So with the same mixture of duels, m times the votes by m times the voters
in m times the contexts suffice, with m = variance · ((q + 0.84)/g)². The part of the variance that comes from voters
alone gives the fewest voters that can do it, whatever the number of votes; likewise for contexts.

**Next duels.** One more vote on items a and b has information s = p(1 − p) and changes the covariance P of the scores
to P − s PφφᵀP/(1 + s φᵀPφ), φ = e_a − e_b. The next vote goes to the pair that lowers most the mean variance of the
differences in question (leader against every item that may be as good, weighted by its probability of being best);
then the next one, and so on.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl
from scipy import special

from fairduel.duel import Matrix, Vector
from fairduel.votes.ranking.rank import Ranking
from fairduel.votes.ranking.standings import Standing
from fairduel.votes.verdict import Verdict
from fairduel.votes.votes import Indices, Ties, Votes, distinct_duels, sums
from fairduel.words import counted_noun, ordinal, rough

POWER = 0.8
"""Probability with which the votes needed separate two neighbours."""
NEXT_VOTES = 100
"""Votes to spread over the next duels."""
_MOST_CONTRASTS = 50  # differences that the next duels are chosen for
_LEAST_WEIGHT = 0.01  # of a rival that is hardly ever the best
_MOST_VOTES = 1e9  # more are called out of reach


@dataclass(frozen=True)
class Need:
    """What it takes to separate an item from the next one."""

    group: str
    rank: int
    item: str
    next_item: str
    gap: float
    """Difference of their scores."""
    error: float
    """Its standard error."""
    separated: bool
    """Whether the votes already tell them apart."""
    votes: float
    """Votes in all that separate them with probability 80%; infinite if out of reach, NaN if too early to tell."""
    voters: float
    """Voters in all for that many votes; NaN if voters are unknown or do not differ."""
    fewest_voters: float
    """Voters needed even with any number of votes; NaN likewise."""
    contexts: float
    """Contexts in all for that many votes; NaN if there are none or they do not differ."""
    fewest_contexts: float
    """Contexts needed even with any number of votes and voters; NaN likewise."""


@dataclass(frozen=True, eq=False)
class VotePlan:
    """What to ask next. Created by :func:`plan_votes`."""

    needs: tuple[Need, ...]
    """One entry for each item but the last of its group, in order of rank."""
    present: Mapping[str, int]
    """Votes that count, voters and contexts in the file, as far as known."""
    duels: pl.DataFrame
    """Next duels, most votes first: ``first``, ``second``, ``votes`` of the next 100, and ``votes_now``."""
    question: str
    """What the next duels decide."""
    worth: float
    """How many votes of the same mixture as so far narrow that question as much as the next duels."""

    @property
    def separated(self) -> int:
        """Number of neighbours that the votes tell apart."""
        return sum(need.separated for need in self.needs)

    @property
    def median(self) -> float:
        """Median of the votes that separate neighbours not yet told apart; infinite if out of reach, NaN if unknown."""
        return float(np.median([need.votes for need in self._unclear] or [math.nan]))

    @property
    def _unclear(self) -> list[Need]:
        """Neighbours not yet told apart, if it is not too early to tell what that takes."""
        return [need for need in self.needs if not need.separated and not math.isnan(need.votes)]

    @property
    def sentences(self) -> list[str]:
        """The findings in plain words."""
        pairs = counted_noun(len(self.needs), "pair")
        found = [f"Joint ranges separate {self.separated} of {pairs} of neighbours."]  # tiers may tell more apart
        later = [need for need in self._unclear if need.rank > 1]  # the verdict is about the first
        if later:
            found.append(self._needed(later[0]))
        if len(self._unclear) > 1:
            found[0] = found[0][:-1] + f"; the median of the rest needs {_votes_text(self.median)}."
        elif any(math.isnan(need.votes) for need in self.needs):
            found[0] = found[0][:-1] + "; it is too early to tell how many votes the rest need."
        if len(self.duels):
            first = self.duels.row(0, named=True)
            found.append(
                f"The open question is {self.question}. Show {first['first']} against {first['second']} in "
                f"{first['votes']} of the next {NEXT_VOTES} duels (see next-duels.csv): {NEXT_VOTES} votes chosen like "
                f"this tell as much as {self.worth:,.0f} collected as before."
            )
        return found

    def _needed(self, need: Need) -> str:
        """Say what separates two neighbours."""
        pair = f"{ordinal(need.rank)} ({need.item}) from {ordinal(need.rank + 1)} ({need.next_item})"
        if math.isinf(need.votes):
            return f"No realistic number of votes separates {pair}: their scores are almost equal."
        more = [f"{rough(getattr(need, name))} {name}" for name in ("voters", "contexts") if getattr(need, name) > 0]
        have = [f"{self.present[name]:,} {name}" for name in ("voters", "contexts") if getattr(need, name) > 0]
        sentence = (
            f"Separating {pair} takes about {rough(need.votes)} votes{_from(more)}, asked the same way (now "
            f"{self.present['votes']:,}{_from(have)}), if the estimated gap is right."
        )
        for name in ("voters", "contexts"):
            fewest = getattr(need, f"fewest_{name}")
            if fewest > self.present.get(name, math.inf):
                sentence += f" More votes from the same {name} cannot do it: it takes at least {rough(fewest)} {name}."
        return sentence


def _votes_text(votes: float) -> str:
    return "more votes than anybody casts" if math.isinf(votes) else f"about {rough(votes)} votes"


def _from(counts: Sequence[str]) -> str:
    return f" from {' on '.join(counts)}" if counts else ""


def plan_votes(votes: Votes, ranking: Ranking, ties: Ties = "half") -> VotePlan:
    """Say how many votes separate neighbours, and which duels to ask next.

    Args:
        votes: The votes.
        ranking: Their ranking by :func:`fairduel.votes.rank`, with the same ``ties``.
        ties: How ties count.

    Returns:
        The votes needed for each pair of neighbours, and the next duels.

    >>> from fairduel.votes.ranking.rank import rank
    >>> votes = Votes.from_arrays(["tea", "milk"], [0] * 40, [1] * 40, [1] * 22 + [0] * 18)
    >>> plan = plan_votes(votes, rank(votes))
    >>> plan.needs[0].votes > 400, plan.duels.rows()
    (True, [('tea', 'milk', 100, 40)])
    """
    counts = votes.counts(ties)
    used = counts > 0.0
    present = {"votes": round(float(counts.sum()))}
    for name, codes in (("voters", votes.voter), ("contexts", votes.context)):
        if codes is not None:
            present[name] = len(np.unique(codes[used]))
    needs = tuple(_needs(ranking, present))
    contrasts, weights, question = _questions(ranking)
    duels, worth = _next_duels(votes, ranking, ties, contrasts, weights)
    return VotePlan(needs, present, duels, question, worth)


def _needs(ranking: Ranking, present: Mapping[str, int]) -> Iterator[Need]:
    needed = ranking.quantile + float(special.ndtri(POWER))
    one, other = neighbours(ranking)
    found = ranking.uncertainty
    shared = {each.name: each.variance * difference_variances(each.covariance, one, other) for each in found.sources}
    variances = sum(shared.values(), difference_variances(found.sampling + found.shrinking, one, other))
    standings = {standing.item: standing for standing in ranking.standings}
    early = {group[0].group for group, verdict in _with_verdicts(ranking) if verdict.has_few_votes}
    for place, (i, j) in enumerate(zip(one, other, strict=True)):
        better = standings[ranking.items[i]]
        gap, variance = float(ranking.scores[i] - ranking.scores[j]), float(variances[place])
        times = math.nan if better.group in early else (needed / gap) ** 2 if gap > 0.0 else math.inf
        factor = variance * times
        votes = factor * present["votes"]
        is_possible, numbers = votes <= _MOST_VOTES, dict[str, float]()
        for name in ("voters", "contexts"):
            taste = float(shared[name][place]) if name in shared and is_possible else 0.0
            for what, multiple in ((name, factor), (f"fewest_{name}", taste * times)):
                numbers[what] = math.ceil(multiple * present[name]) if taste else math.nan
        yield Need(
            better.group,
            better.rank,
            better.item,
            ranking.items[j],
            gap,
            math.sqrt(variance),
            separated=bool(ranking.apart[i, j]),
            votes=math.ceil(votes) if is_possible else votes + math.inf,  # NaN stays
            **numbers,
        )


def _with_verdicts(ranking: Ranking) -> Iterator[tuple[tuple[Standing, ...], Verdict]]:
    """Yield each group of at least two items with the verdict on it."""
    groups = (group for group in ranking.components() if len(group) > 1)
    return zip(groups, ranking.verdicts, strict=True)


def neighbours(ranking: Ranking) -> tuple[Indices, Indices]:
    """Return the indices of each item and of the next one in its component, both (p,), in order of rank."""
    place = {item: number for number, item in enumerate(ranking.items)}
    pairs = [(place[one.item], place[other.item]) for group in ranking.components() for one, other in pairwise(group)]
    one, other = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return one, other


def difference_variances(covariance: Matrix, one: Indices, other: Indices) -> Vector:
    """Return the variances of differences between items, shape (p,), from the covariance of their scores (K, K)."""
    own = np.diag(covariance)
    return np.asarray(own[one] + own[other] - 2.0 * covariance[one, other])


def _questions(ranking: Ranking) -> tuple[Indices, Vector, str]:
    """Return the differences to narrow as pairs of items (c, 2), their weights (c,), and the question in words."""
    place = {item: number for number, item in enumerate(ranking.items)}
    pairs, weights = [], []
    for (leader, *others), verdict in _with_verdicts(ranking):
        rivals = [other for other in others if not ranking.tells_apart(leader.item, other.item)]
        if not (rivals or verdict.can_stop):
            rivals = others[:1]  # a range is about one look, a verdict about many
        pairs += [(place[leader.item], place[rival.item]) for rival in rivals]
        weights += [max(rival.best, _LEAST_WEIGHT) for rival in rivals]
    question = "which item is the best"
    if not pairs:
        question = "which neighbours differ"
        one, other = neighbours(ranking)
        pairs = [(i, j) for i, j in zip(one, other, strict=True) if not ranking.apart[i, j]]
        weights = [1.0] * len(pairs)
    largest = np.argsort(-np.array(weights), kind="stable")[:_MOST_CONTRASTS]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)[largest], np.array(weights)[largest], question


def _next_duels(
    votes: Votes, ranking: Ranking, ties: Ties, contrasts: Indices, weights: Vector
) -> tuple[pl.DataFrame, float]:
    """Choose the next duels; return them, and how many votes of the present mixture are worth as much."""
    schema = {"first": pl.String, "second": pl.String, "votes": pl.Int64, "votes_now": pl.Int64}
    if not len(contrasts):
        return pl.DataFrame(schema=schema), 0.0
    counts, component = votes.counts(ties), votes.components(ties)
    chance = special.expit(ranking.scores[:, None] - ranking.scores[None, :])
    slope = chance * (1.0 - chance) * (component[:, None] == component[None, :])
    covariance = ranking.uncertainty.sampling + ranking.uncertainty.shrinking
    asked, before, after = choose_duels(np.triu(slope, 1), covariance, contrasts, weights, NEXT_VOTES)
    pairs, times = np.unique(asked, axis=0, return_counts=True)
    _, low, high, row, _ = distinct_duels(votes.first, votes.second, len(votes.items))
    now = dict(zip(zip(low.tolist(), high.tolist(), strict=True), sums(row, len(low), counts), strict=True))
    rows = []
    for place in np.argsort(-times, kind="stable"):
        pair = tuple(pairs[place].tolist())
        best, worst = sorted(pair, key=lambda item: -ranking.scores[item])
        rows.append((ranking.items[best], ranking.items[worst], int(times[place]), round(now.get(pair, 0.0))))
    return pl.DataFrame(rows, schema=schema, orient="row"), float(counts.sum()) * (before / after - 1.0)


def choose_duels(
    slope: Matrix, covariance: Matrix, contrasts: Indices, weights: Vector, votes: int
) -> tuple[Indices, float, float]:
    """Choose the next duels, one vote at a time.

    Args:
        slope: s, the information of one vote on each pair, above the diagonal; 0 if it may not be asked, ``(K, K)``.
        covariance: P, the covariance of the scores if all votes are independent, shape ``(K, K)``.
        contrasts: Pairs of items whose difference is in question, shape ``(c, 2)``.
        weights: Weight of each in the mean variance, shape ``(c,)``.
        votes: Number of votes to spread.

    Returns:
        The pairs, shape ``(votes, 2)``, and the mean variance before and after.

    >>> slope = np.triu(np.full((3, 3), 0.25), 1)
    >>> pairs, before, after = choose_duels(slope, np.diag([1.0, 1.0, 9.0]), np.array([[0, 2]]), np.ones(1), 1)
    >>> pairs.tolist(), before, after < before
    ([[0, 2]], 10.0, True)
    """
    share = weights / weights.sum()
    covariance = covariance.copy()
    one, other = contrasts.T

    before, asked = float(share @ difference_variances(covariance, one, other)), np.empty((votes, 2), dtype=np.int64)
    for vote in range(votes):
        moved = (covariance[:, one] - covariance[:, other]) * np.sqrt(share)  # (K, c)
        inner = moved @ moved.T
        gain = _spread(inner) * slope / (1.0 + slope * _spread(covariance))
        best = np.unravel_index(int(np.argmax(gain)), gain.shape)
        asked[vote] = best
        step = covariance[:, best[0]] - covariance[:, best[1]]
        s = slope[best]
        covariance -= np.outer(step, step) * (s / (1.0 + s * (step[best[0]] - step[best[1]])))
    return asked, before, float(share @ difference_variances(covariance, one, other))


def _spread(matrix: Matrix) -> Matrix:
    """Return M_aa + M_bb − 2M_ab of all pairs, shape (K, K)."""
    own = np.diag(matrix)
    return np.asarray(own[:, None] + own[None, :] - 2.0 * matrix)
