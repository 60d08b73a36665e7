"""Certificates of ranks: how many votes must be false, or how many voters must lie, to change an item's rank.

A *false* vote may have any answer: it is flipped, turned into a tie, or, if a tie, into a win. A voter who lies may
answer all their duels in any way. Each number is bounded from both sides:

**Proven minimum** (a lower bound): if fewer votes are false, or fewer voters lie, no other item changes places with
this one, so its rank stays the same (:mod:`fairduel.votes.certifying.proof`). That includes votes that are missing.

**Found** (an upper bound): this many votes, or voters, whose answers change the rank in an exact refit. They are
searched as in :mod:`fairduel.votes.certifying.search`, for the item and those with the nearest scores.

The ranking's weights and ridge stay the same, and ties that it drops stay dropped.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from fairduel.checks import integer
from fairduel.core.blas import one_thread
from fairduel.core.memory import give_back
from fairduel.duel import Vector
from fairduel.errors import BadInputError
from fairduel.votes.certifying.search import CHANGED, Fitting, Group, Taken, Units, refitted
from fairduel.votes.certifying.vote_counts import standard_gaps
from fairduel.votes.given import takes_votes
from fairduel.votes.ranking.many_items import MOST_DENSE
from fairduel.votes.ranking.rank import Ranking
from fairduel.votes.ranking.standings import Certificate, FalseVotes, Standing
from fairduel.votes.verdict import Verdict
from fairduel.votes.votes import Votes

MOST_CERTIFIED = 60
"""With more items in all, only the first ranks of each group have certificates."""
_MOST_RANKS = 10  # of a group then
_PROMISING_PAIRS, _TRIED_PAIRS = 6, 2


def with_certificates(
    votes: Votes, ranking: Ranking, *, ranks: int | None = None, progress: Callable[[int], None] | None = None
) -> Ranking:
    """Add :func:`certify`'s certificates to the ranking, and a note if some ranks have none."""
    if ranking.uses_features:
        return replace(ranking, notes=(*ranking.notes, "A ranking with features has no certificates."))
    notes, chosen = ranking.notes, certified(ranking, ranks)
    if not chosen:  # a note of the ranking says why
        return ranking
    compared = [group for group in ranking.components() if len(group) > 1]
    if [len(group) for group in chosen] != [len(group) for group in compared]:
        which = "rank 1" if len(chosen[0]) == 1 else f"ranks 1 to {len(chosen[0])}"
        where = "each group" if len(chosen) == len(compared) else f"the {len(chosen)} largest groups"
        only = f"Only {which}{f' of {where}' if len(compared) > 1 else ''}"
        notes = (*notes, f"{only} {'has' if which == 'rank 1' else 'have'} certificates (false votes), to save time.")
    found = certify(votes, ranking, ranks=ranks, progress=progress)
    give_back(len(votes))
    return replace(ranking, certificates=found, notes=notes, verdicts=with_survival(ranking.verdicts, found))


def with_survival(verdicts: Sequence[Verdict], certificates: Sequence[Certificate]) -> tuple[Verdict, ...]:
    """Add to each verdict the certificate of the item with the highest score, if there is one."""
    firsts = {each.item: each for each in certificates if each.rank == 1}
    return tuple(replace(verdict, certificate=firsts.get(verdict.items[0])) for verdict in verdicts)


def searchable_groups(votes: Votes, ranking: Ranking) -> Callable[[int], Group]:
    """Return what prepares the votes of each component of the ranking, by its number from 0, once."""
    settings, counted = ranking.settings, replace(votes, weight=np.where(ranking.weights > 0.0, votes.weight, 0.0))
    return functools.cache(
        lambda number: Group(counted, Fitting(settings["ties"], ranking.weights, settings["ridge"], number))
    )


@takes_votes
def certify(
    votes: Votes,
    ranking: Ranking,
    *,
    ranks: int | None = None,
    progress: Callable[[int], None] | None = None,
    groups: Callable[[int], Group] | None = None,
) -> tuple[Certificate, ...]:
    """Certify the ranks of a ranking of these votes, in the order of its standings.

    Args:
        votes: The votes, or a file or table of votes.
        ranking: Their ranking by :func:`fairduel.votes.rank`, without features.
        ranks: How many ranks of each group to certify, the best first. Default: all if there are at most 60 items in
            all, otherwise up to 10 of each group, and 60 in all.
        progress: Called with 1 after each rank.
        groups: These votes as prepared by :func:`searchable_groups`, if they are.

    Returns:
        One certificate per rank; items that were never compared have none.

    Raises:
        BadInputError: The ranking uses features.

    >>> from fairduel.votes import rank
    >>> votes = Votes.from_arrays(["tea", "milk"], [0] * 40, [1] * 40, [1] * 30 + [0] * 10, voter=[0] * 40, voters="a")
    >>> print(certify(votes, rank(votes))[0].sentence)
    tea stays first even if any 8 votes are false (proven); 11 false votes, or 1 lying voter, can change that.
    """
    if ranking.uses_features:
        raise BadInputError("a ranking with features has no certificates: rank the items without them.")
    done, found = progress or (lambda _: None), list[Certificate]()
    prepared = groups or searchable_groups(votes, ranking)
    with one_thread():
        for standings in certified(ranking, ranks):
            group = prepared(standings[0].component - 1)
            sorts = [_Search(units) for units in (group.by_vote, group.by_voter) if units is not None]
            for standing in standings:
                found.append(_certificate(standing, group.votes, sorts, group.fitted.scores))
                done(1)
    return tuple(found)


def certified(ranking: Ranking, ranks: int | None = None) -> list[Sequence[Standing]]:
    """Return the standings of each group that :func:`certify` certifies: none with features, or if they are many."""
    if ranking.uses_features or (ranks is None and len(ranking.items) > MOST_DENSE):
        return []
    groups = [group for group in ranking.components() if 1 < len(group) <= MOST_DENSE]
    if ranks is not None:
        most = integer("ranks", ranks, least=1)
    elif len(ranking.items) <= MOST_CERTIFIED:
        most = MOST_CERTIFIED
    else:
        groups = groups[:MOST_CERTIFIED]
        most = max(1, min(_MOST_RANKS, MOST_CERTIFIED // max(1, len(groups))))
    return [group[:most] for group in groups]


class _Bounds(NamedTuple):
    """How many units it takes to change an item's rank."""

    found: int | None
    proven: int
    rival: int
    lies: FalseVotes | None


class _Search:
    """Search and proof for one group of items and one sort of units."""

    def __init__(self, units: Units) -> None:
        self._units, self._kinds, self._fitted = units, units.kinds, units.fitted
        self._scores: dict[tuple[int, int], Vector] = {}  # a cached method would keep all votes in a cycle

    def bounds(self, votes: Votes, pairs: Sequence[tuple[int, int]], item: int) -> _Bounds:
        """Search the ``pairs`` of the item with others, the better one first, and prove a minimum."""
        nearest = np.argsort(standard_gaps(self._fitted, pairs), kind="stable")[:_PROMISING_PAIRS]
        promising = sorted((pairs[place] for place in nearest), key=self._predict)
        proof, best, rival = self._units.proof("false"), None, promising[0][promising[0][0] == item]
        for pair in promising[:_TRIED_PAIRS]:
            if best is not None and self._predict(pair) >= best.size:
                break
            taken = self._units.swap(pair, "false")
            if taken is None or not self._changes_rank(self._after(pair, taken), item):
                continue
            if best is None or taken.size < best.size:
                best, rival = taken, pair[pair[0] == item]
        if best is None:
            return _Bounds(None, proof.least(pairs), rival, None)
        return _Bounds(best.size, proof.least(pairs, best.size), rival, self._false_votes(votes, best))

    def _predict(self, pair: tuple[int, int]) -> float:
        return self._units.predict(pair, "false")

    def _after(self, pair: tuple[int, int], taken: Taken) -> Vector:
        if pair not in self._scores:
            self._scores[pair] = refitted(self._kinds, self._fitted, taken, "false")
        return self._scores[pair]

    def _false_votes(self, votes: Votes, taken: Taken) -> FalseVotes:
        places, kind = self._kinds.members(self._kinds.votes_of(taken.units))
        answers = self._kinds.answers("false", taken.towards)[kind]
        results = np.where(votes.first[places] == self._kinds.winner[kind], answers, 1.0 - answers)
        false = results != votes.result[places]
        return FalseVotes(tuple(votes.row[places[false]].tolist()), tuple(results[false].tolist()))

    def _changes_rank(self, scores: Vector, item: int) -> bool:
        """Whether the item's rank differs strictly by these scores (K,)."""
        before = int((self._fitted.scores > self._fitted.scores[item]).sum())
        others = np.delete(scores, item) - scores[item]
        return bool((others > CHANGED).sum() > before or (others > -CHANGED).sum() < before)


def _certificate(standing: Standing, votes: Votes, sorts: Sequence[_Search], scores: Vector) -> Certificate:
    item = votes.items.index(standing.item)
    others = [other for other in range(len(scores)) if other != item]
    pairs = [(other, item) if scores[other] > scores[item] else (item, other) for other in others]
    by_votes, *rest = (search.bounds(votes, pairs, item) for search in sorts)
    by_voters = rest[0] if rest else None
    return Certificate(
        item=standing.item,
        group=standing.group,
        rank=standing.rank,
        votes_found=by_votes.found,
        votes_proven=by_votes.proven,
        voters_found=by_voters and by_voters.found,
        voters_proven=by_voters and by_voters.proven,
        rival=votes.items[by_votes.rival],
        false_votes=by_votes.lies,
        lies=by_voters and by_voters.lies,
    )
