"""Certificates of ranks: how many votes must be false, or how many voters must lie, to change an item's rank.

A *false* vote may have any answer: it is flipped, turned into a tie, or, if a tie, into a win. A voter who lies may
answer all their duels in any way. Each number is bounded from both sides:

**Proven minimum** (a lower bound): if fewer votes are false, or fewer voters lie, no other item changes places with
this one, so its rank stays the same (:mod:`fairduel.votes.lower_bound`). That includes votes that are missing.

**Found** (an upper bound): answers of so many votes, or voters, that change the rank in an exact refit. They are
searched as in :mod:`fairduel.votes.fragile`, for the item and those with the nearest scores.

The ranking's weights and ridge stay the same, and ties that it drops stay dropped.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from fairduel.checks import integer
from fairduel.core.blas import one_thread
from fairduel.duel import Vector
from fairduel.errors import BadInputError
from fairduel.votes.bradley_terry import Scores, fit_scores, ridge_scores
from fairduel.votes.fragile import CHANGED, Fitting, Taken, predict_size, search_pair, votes_inside
from fairduel.votes.lower_bound import Proof
from fairduel.votes.ranking import Ranking, Standing
from fairduel.votes.vote_counts import VoteCounts, count_votes, standard_gaps
from fairduel.votes.votes import Votes
from fairduel.votes.words import counted_noun, ordinal

MOST_CERTIFIED = 60
"""With more items in all, only the first ranks of each group have certificates."""
_MOST_RANKS = 10  # of a group then
_PROMISING_PAIRS, _TRIED_PAIRS = 6, 2


@dataclass(frozen=True)
class FalseVotes:
    """Answers that change a rank."""

    rows: tuple[int, ...]
    """File rows of the votes that are false."""
    results: tuple[float, ...]
    """Their false results: 1 if the first item wins, 0 if the second wins, 0.5 for a tie."""


@dataclass(frozen=True)
class Certificate:
    """How many false votes, or lying voters, it takes to change one item's rank."""

    item: str
    group: str
    """Component of the comparison graph, as in its :class:`~fairduel.votes.ranking.Standing`."""
    rank: int
    votes_found: int | None
    """Size of the smallest set of false votes found that changes the rank; None if no set was found."""
    votes_proven: int
    """Proven minimum: fewer false votes cannot change the rank."""
    voters_found: int | None
    """The same for voters who lie; None if no set was found, or voters are unknown."""
    voters_proven: int | None
    """Proven minimum of voters who lie; None if voters are unknown."""
    rival: str
    """Item that changes places with this one if the votes found are false."""
    false_votes: FalseVotes | None = None
    """Votes found."""
    lies: FalseVotes | None = None
    """False votes of the voters found."""

    @property
    def numbers(self) -> dict[str, int | str | None]:
        """The bounds and the rival, as in ranking.csv."""
        names = ("votes_found", "votes_proven", "voters_found", "voters_proven", "rival")
        return {name: getattr(self, name) for name in names}

    @property
    def sentence(self) -> str:
        """The certificate in one sentence.

        >>> print(Certificate("A", "1", 1, 41, 29, 5, 4, "B").sentence)
        A stays first even if any 28 votes are false, or any 3 voters lie (proven); 41 false votes, or 5 lying voters, \
can change that.
        >>> print(Certificate("tea", "1", 2, 1, 1, None, None, "milk").sentence)
        tea is 2nd, but 1 false vote can change that.
        """
        place = "first" if self.rank == 1 else ordinal(self.rank)
        votes, voters = self.votes_proven - 1, (self.voters_proven or 1) - 1
        kept = [f"any {counted_noun(votes, 'vote')} {'is' if votes == 1 else 'are'} false"] if votes else []
        kept += [f"any {counted_noun(voters, 'voter')} {'lies' if voters == 1 else 'lie'}"] if voters else []
        found = [counted_noun(self.votes_found, "false vote")] if self.votes_found else []
        found += [counted_noun(self.voters_found, "lying voter")] if self.voters_found else []
        can = f"{', or '.join(found)}{',' if len(found) > 1 else ''} can" if found else "nothing was found that can"
        if not kept:
            return f"{self.item} is {place}, but {can} change that."
        return f"{self.item} stays {place} even if {', or '.join(kept)} (proven); {can} change that."


def with_certificates(
    votes: Votes, ranking: Ranking, *, ranks: int | None = None, progress: Callable[[int], None] | None = None
) -> Ranking:
    """Add :func:`certify`'s certificates to the ranking, and a note if some ranks have none."""
    if ranking.uses_features:
        return replace(ranking, notes=(*ranking.notes, "A ranking with features has no certificates."))
    notes, chosen = ranking.notes, certified(ranking, ranks)
    compared = [group for group in ranking.components() if len(group) > 1]
    if [len(group) for group in chosen] != [len(group) for group in compared]:
        which = "rank 1" if len(chosen[0]) == 1 else f"ranks 1 to {len(chosen[0])}"
        where = "each group" if len(chosen) == len(compared) else f"the {len(chosen)} largest groups"
        only = f"Only {which}{f' of {where}' if len(compared) > 1 else ''}"
        notes = (*notes, f"{only} {'has' if which == 'rank 1' else 'have'} certificates (false votes), to save time.")
    return replace(ranking, certificates=certify(votes, ranking, ranks=ranks, progress=progress), notes=notes)


def certify(
    votes: Votes, ranking: Ranking, *, ranks: int | None = None, progress: Callable[[int], None] | None = None
) -> tuple[Certificate, ...]:
    """Certify the ranks of a ranking of these votes, in the order of its standings.

    Args:
        votes: The votes.
        ranking: Their ranking by :func:`fairduel.votes.rank`, without features.
        ranks: How many ranks of each group to certify, the best first. Default: all if there are at most 60 items in
            all, otherwise up to 10 of each group, and 60 in all.
        progress: Called with 1 after each rank.

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
    votes = replace(votes, weight=np.where(ranking.weights > 0.0, votes.weight, 0.0))
    with one_thread():
        for number, group in enumerate(certified(ranking, ranks)):
            kept, sorts, scores = _prepared(
                votes, Fitting(ranking.settings["ties"], ranking.weights, ranking.settings["ridge"], number)
            )
            for standing in group:
                found.append(_certificate(standing, kept, sorts, scores))
                done(1)
    return tuple(found)


def certified(ranking: Ranking, ranks: int | None = None) -> list[Sequence[Standing]]:
    """Return the standings of each group that :func:`certify` certifies: none if the ranking uses features."""
    if ranking.uses_features:
        return []
    groups = [group for group in ranking.components() if len(group) > 1]
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


class _Swap(NamedTuple):
    """The smallest set of units found that swaps two items."""

    taken: Taken
    scores: Vector
    """Scores after the refit, shape (K,)."""


class _Units:
    """Search and proof for one group of items and one sort of units, each pair of items once."""

    def __init__(self, kinds: VoteCounts, fitted: Scores) -> None:
        self._kinds, self._fitted = kinds, fitted
        self._proof = Proof(kinds, fitted, "false")
        self._predicted: dict[tuple[int, int], float] = {}
        self._swaps: dict[tuple[int, int], _Swap | None] = {}

    def bounds(self, votes: Votes, pairs: Sequence[tuple[int, int]], item: int) -> _Bounds:
        """Search the ``pairs`` of the item with others, the better one first, and prove a minimum."""
        nearest = np.argsort(standard_gaps(self._fitted, pairs), kind="stable")[:_PROMISING_PAIRS]
        promising = sorted((pairs[place] for place in nearest), key=self._predict)
        best, rival = None, promising[0][promising[0][0] == item]
        for pair in promising[:_TRIED_PAIRS]:
            if best is not None and self._predict(pair) >= best.taken.size:
                break
            swap = self._swap(pair)
            if swap is None or not self._changes_rank(swap.scores, item):
                continue
            if best is None or swap.taken.size < best.taken.size:
                best, rival = swap, pair[pair[0] == item]
        if best is None:
            return _Bounds(None, self._proof.least(pairs), rival, None)
        size = best.taken.size
        return _Bounds(size, self._proof.least(pairs, size), rival, self._false_votes(votes, best.taken))

    def _false_votes(self, votes: Votes, taken: Taken) -> FalseVotes:
        places, kind = self._kinds.members(self._kinds.votes_of(taken.units))
        answers = self._kinds.answers("false", taken.towards)[kind]
        results = np.where(votes.first[places] == self._kinds.winner[kind], answers, 1.0 - answers)
        false = results != votes.result[places]
        return FalseVotes(tuple(votes.row[places[false]].tolist()), tuple(results[false].tolist()))

    def _predict(self, pair: tuple[int, int]) -> float:
        if pair not in self._predicted:
            self._predicted[pair] = predict_size(self._kinds, self._fitted, pair, "false")
        return self._predicted[pair]

    def _swap(self, pair: tuple[int, int]) -> _Swap | None:
        if pair not in self._swaps:
            taken = search_pair(self._kinds, self._fitted, pair, "false")
            self._swaps[pair] = None if taken is None else _Swap(taken, self._refit(taken))
        return self._swaps[pair]

    def _refit(self, taken: Taken) -> Vector:
        won = self._kinds.after(taken.units, "false", taken.towards)
        return ridge_scores(won, self._fitted.ridge or None, self._fitted.scores)[0]

    def _changes_rank(self, scores: Vector, item: int) -> bool:
        """Whether the item's rank differs strictly by these scores (K,)."""
        before = int((self._fitted.scores > self._fitted.scores[item]).sum())
        others = np.delete(scores, item) - scores[item]
        return bool((others > CHANGED).sum() > before or (others > -CHANGED).sum() < before)


def _prepared(votes: Votes, fitting: Fitting) -> tuple[Votes, list[_Units], Vector]:
    """Return the votes of a group, its votes and voters (if known) as units, and its scores (K,)."""
    kept, weights = votes_inside(votes, fitting)
    kinds = count_votes(kept, fitting.ties, weights)
    fitted = fit_scores(kinds.won(kinds.count), ridge=fitting.ridge)
    sorts = [_Units(kinds, fitted)]
    if kept.voter is not None:
        sorts.append(_Units(count_votes(kept, fitting.ties, weights, by_voter=True), fitted))
    return kept, sorts, fitted.scores


def _certificate(standing: Standing, votes: Votes, sorts: Sequence[_Units], scores: Vector) -> Certificate:
    item = votes.items.index(standing.item)
    others = [other for other in range(len(scores)) if other != item]
    pairs = [(other, item) if scores[other] > scores[item] else (item, other) for other in others]
    by_votes, *rest = (units.bounds(votes, pairs, item) for units in sorts)
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
