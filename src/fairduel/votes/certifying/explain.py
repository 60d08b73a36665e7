"""Explain why one item ranks above another: which duels, votes and voters say so.

The fit is the ranking's own, with its weights w and ridge λ. At its maximum, λθ = Σ w(y − p)φ over the votes, with y
the result, p its probability and φ = e_first − e_second. So with s = p(1 − p), H = Σ wsφφᵀ + λ and d = H⁻¹(e_a − e_b),

    θ_a − θ_b = Σ w dᵀφ (s φᵀθ + y − p):

every vote has a share of the gap, and the shares add up to it exactly. Votes between a and b are *direct*. A vote
between one of them and another item k goes *through* k; a vote between two other items counts half for each.

Without a vote, the gap falls by about w dᵀφ (y − p)/(1 − ws φᵀH⁻¹φ), a Newton step. What is reported for the votes and
voters with the most influence comes from exact refits, with weights and ridge kept.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy.special import expit

from fairduel.core.blas import one_thread
from fairduel.duel import Matrix, Vector
from fairduel.errors import BadInputError, unknown_name
from fairduel.votes.certifying.search import Fitting, votes_inside
from fairduel.votes.given import takes_votes
from fairduel.votes.notebook import Result
from fairduel.votes.ranking.bradley_terry import Scores, fit_scores, moved_scores
from fairduel.votes.ranking.rank import Ranking, rank
from fairduel.votes.ranking.standings import Standing
from fairduel.votes.votes import Codes, Mask, Ties, Votes, connected, pair_sums, sums
from fairduel.words import counted_noun, listed, shortened, with_minus

SHOWN = 10
"""Number of voters, and of kinds of votes, with the most influence."""
_REFITTED = 2 * SHOWN  # voters; those with the most influence to first order
STEPS = _REFITTED + SHOWN
"""Number of steps of :func:`explain`, for a progress bar."""
_LEAST_LEFT = 1e-6  # of a vote's own information: a vote that alone connects two items has all of it
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Through:
    """What votes with a third item contribute to the gap."""

    item: str
    share: float
    """Part of the gap, in log-odds."""
    above_won: float
    """Votes that the upper item won against it; a tie is half a win."""
    above_votes: float
    below_won: float
    """Votes that the lower item won against it."""
    below_votes: float


@dataclass(frozen=True)
class VoteInfluence:
    """Votes that say the same with the same weight, so that each has the same influence."""

    says: str
    rows: tuple[int, ...]
    """File rows of all of them."""
    falls_by: float
    """By how much the gap falls without one of them; NaN if the items are no longer compared."""
    falls_by_all: float
    """By how much it falls without all of them."""


@dataclass(frozen=True)
class VoterInfluence:
    """What one voter does to the gap."""

    voter: str
    votes: int
    """Number of rows."""
    above_won: float
    """How often they preferred the upper item in direct duels; a tie is half."""
    direct_votes: float
    falls_by: float
    """By how much the gap falls without this voter; NaN if the items are no longer compared."""


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Result):
    """Why one item ranks above another.

    Created by :func:`explain`.
    """

    above: str
    below: str
    gap: float
    """Difference of their scores, in log-odds."""
    error: float
    """Standard error of that difference."""
    is_clear: bool
    """Whether the ranking tells the two apart."""
    direct: float
    """Part of the gap that direct votes contribute."""
    won: float
    """Direct votes that the upper item won; a tie is half a win."""
    votes: float
    """Number of direct votes."""
    through: tuple[Through, ...]
    """The other items, largest share first, in absolute value."""
    most_votes: tuple[VoteInfluence, ...]
    """The kinds of votes with the most influence each."""
    most_voters: tuple[VoterInfluence, ...]
    """The voters with the most influence; empty if the file does not say who voted."""
    influence: pl.DataFrame
    """One row per vote that counts: what it says, its share of the gap, and how far the gap falls without it."""
    settings: Mapping[str, Any]
    """Those of the ranking."""

    @property
    def indirect(self) -> float:
        """Part of the gap that votes with other items contribute."""
        return sum(each.share for each in self.through)

    def summary(self) -> list[str]:
        """Answer in a few sentences, conclusion first."""
        clear = "" if self.is_clear else " (not clearly)"
        sentences = [
            f"{self.above} is above {self.below} by {self.gap:.2f} ± {self.error:.2f}{clear}, {_reasons(self)}.",
            f"Of the gap, {with_minus(f'{self.direct:+.2f}')} comes from "
            f"{counted_noun(round(self.votes), 'direct vote')} and {with_minus(f'{self.indirect:+.2f}')} from votes "
            "with other items.",
        ]
        if self.most_voters:
            most = self.most_voters[0]
            sentences.append(f"Without the votes of {most.voter}, who matters most, {self._left(most.falls_by)}.")
        if self.most_votes:
            vote = self.most_votes[0]
            sentences.append(
                f"Without the vote that matters most (row {vote.rows[0]:,}: {vote.says}), {self._left(vote.falls_by)}."
            )
        return sentences

    def _left(self, falls_by: float) -> str:
        """Say what is left of the gap."""
        left = self.gap - falls_by
        if math.isnan(left):
            return "no votes would compare the two"
        if left < 0.0:
            return f"{self.below} would be above {self.above} by {-left:.3g}"
        return f"the gap would be {left:.3g} instead of {self.gap:.3g}"

    def to_frame(self) -> pl.DataFrame:
        """Return ``influence``."""
        return self.influence

    def brief(self) -> str:
        """Say why, in one sentence."""
        return self.summary()[0]

    def record(self) -> dict[str, Any]:
        """Return the findings as plain values, for JSON."""
        names = ("above", "below", "gap", "error", "is_clear", "direct", "indirect", "won", "votes")
        parts = ("through", "most_votes", "most_voters")
        found = {name: getattr(self, name) for name in names}
        return {"summary": self.summary(), **found, **{n: [asdict(each) for each in getattr(self, n)] for n in parts}}


@takes_votes
def explain(
    votes: Votes,
    above: str | None = None,
    below: str | None = None,
    *,
    ties: Ties = "half",
    ranking: Ranking | None = None,
    progress: Callable[[int], None] | None = None,
) -> Explanation:
    """Explain why one item ranks above another: by which duels, votes and voters.

    Args:
        votes: The votes, or a file or table of votes.
        above: One item. Default: the leader.
        below: The other item; the two may be in either order. Default: the next item of the ranking.
        ties: A tie counts as half a win for each item, or is dropped.
        ranking: The ranking of these votes, if it is known; without features. Default: that of :func:`rank`.
        progress: Called with 1 after each of at most ``STEPS`` refits.

    Returns:
        The explanation.

    Raises:
        BadInputError: There is no such item, or no chain of votes connects the two.

    >>> from fairduel.votes.attacking.liars import arena
    >>> found = explain(arena(seed=4)[0])
    >>> print(found.summary()[0])
    Maple is above Birch by 0.05 ± 0.21 (not clearly), mainly because of their direct duels (Maple won 65 of 114).
    >>> found.most_voters[0].voter, round(found.most_voters[0].falls_by, 2)
    ('voter 141', 0.1)
    """
    ranking = ranking or rank(votes, ties=ties)
    upper, lower = _chosen(ranking, above, below)
    fitting = Fitting(ties, ranking.weights, ranking.settings["ridge"], upper.component - 1)
    done = progress or (lambda _: None)
    with one_thread():
        told = _Told.of(votes, fitting, upper.item, lower.item)
        most_voters, most_votes = tuple(told.most_voters(done)), tuple(told.most_votes(done))
    one, other = ranking.items.index(upper.item), ranking.items.index(lower.item)
    variance = ranking.covariance[one, one] + ranking.covariance[other, other] - 2.0 * ranking.covariance[one, other]
    won, count = told.record(*told.pair)
    return Explanation(
        above=upper.item,
        below=lower.item,
        gap=told.gap,
        error=math.sqrt(variance),
        is_clear=ranking.tells_apart(upper.item, lower.item),
        direct=float(told.share[told.is_direct].sum()),
        won=won,
        votes=count,
        through=tuple(told.through()),
        most_votes=most_votes,
        most_voters=most_voters,
        influence=told.frame(),
        settings=ranking.settings,
    )


def _chosen(ranking: Ranking, above: str | None, below: str | None) -> tuple[Standing, Standing]:
    """Return the standings of the two items, the upper one first."""
    standings = {standing.item: standing for standing in ranking.standings}
    for name in (above, below):
        if name is not None and name not in standings:
            raise unknown_name("item", name, standings)
    if above is None and below is not None:
        above, below = below, None
    one = ranking.standings[0] if above is None else standings[above]
    if below is None:
        group = [each for each in ranking.standings if each.component == one.component]
        if len(group) == 1:
            raise BadInputError(f"{one.item} was never compared with another item.")
        return (one, group[one.rank]) if one.rank < len(group) else (group[-2], one)
    other = standings[below]
    if one is other:
        raise BadInputError(f"{one.item} cannot be compared with itself: name two items.")
    if one.component != other.component:
        raise BadInputError(f"no chain of votes connects {one.item} and {other.item}, so neither is above the other.")
    return (one, other) if one.rank < other.rank else (other, one)


@dataclass(frozen=True, eq=False)
class _Told:
    """The n votes of one component that count, and their fit."""

    votes: Votes
    mass: Vector
    """How often each vote counts, times its weight, shape (n,)."""
    won: Matrix
    """Weighted wins of row over column, shape (K, K)."""
    fitted: Scores
    pair: tuple[int, int]
    pull: Vector
    """w dᵀφ(y − p) of each vote: how far the gap falls without it, to first order, shape (n,)."""
    share: Vector
    """Share of the gap, shape (n,)."""
    fall: Vector
    """How far the gap falls without the vote, by a Newton step, shape (n,)."""

    @classmethod
    def of(cls, votes: Votes, fitting: Fitting, above: str, below: str) -> "_Told":
        """Fit the votes as the ranking does."""
        kept, weights = votes_inside(votes, fitting)
        mass = kept.counts(fitting.ties) * (1.0 if weights is None else weights)
        kept, mass = kept.select(mass > 0.0), mass[mass > 0.0]
        won = _wins(kept, mass)
        fitted = fit_scores(won, ridge=fitting.ridge)
        pair = kept.items.index(above), kept.items.index(below)
        d = fitted.covariance[pair[0]] - fitted.covariance[pair[1]]
        margin = fitted.scores[kept.first] - fitted.scores[kept.second]
        chance = expit(margin)
        slope = chance * (1.0 - chance)
        own = np.diag(fitted.covariance)
        width = own[kept.first] + own[kept.second] - 2.0 * fitted.covariance[kept.first, kept.second]
        reach = mass * (d[kept.first] - d[kept.second])
        pull = reach * (kept.result - chance)
        fall = pull / np.maximum(1.0 - mass * slope * width, _LEAST_LEFT)
        return cls(kept, mass, won, fitted, pair, pull, share=pull + reach * slope * margin, fall=fall)

    @property
    def gap(self) -> float:
        """θ_a − θ_b."""
        return float(self.fitted.scores[self.pair[0]] - self.fitted.scores[self.pair[1]])

    @property
    def is_direct(self) -> Mask:
        """Which votes are between the two items, shape (n,)."""
        return np.isin(self.votes.first, self.pair) & np.isin(self.votes.second, self.pair)

    def record(self, one: int, other: int, among: Mask | None = None) -> tuple[float, float]:
        """Return how many votes one item won against the other, and how many there are, all or ``among`` some (n,)."""
        first, second, result, weight = self.votes.first, self.votes.second, self.votes.result, self.votes.weight
        ahead, behind = (first == one) & (second == other), (first == other) & (second == one)
        if among is not None:
            ahead, behind = ahead & among, behind & among
        won = (weight * result)[ahead].sum() + (weight * (1.0 - result))[behind].sum()
        return float(won), float(weight[ahead | behind].sum())

    def through(self) -> Iterator[Through]:
        """Yield what goes through each other item, largest first."""
        ends = np.isin([self.votes.first, self.votes.second], self.pair)
        half = np.where(ends.any(axis=0), self.share, 0.5 * self.share)
        count = len(self.votes.items)
        total = sums(self.votes.first, count, half) + sums(self.votes.second, count, half)
        played = sums(self.votes.first, count) + sums(self.votes.second, count) > 0.0
        above, below = self.pair
        for item in np.argsort(-np.abs(total), kind="stable"):
            if item not in self.pair and played[item]:
                records = *self.record(above, item), *self.record(below, item)
                yield Through(self.votes.items[item], float(total[item]), *records)

    def falls_by(self, dropped: Mask) -> float:
        """Refit without the ``dropped`` votes (n,); return how far the gap falls, NaN if nothing compares the two."""
        left = np.maximum(self.won - _wins(self.votes.select(dropped), self.mass[dropped]), 0.0)
        one, other = np.nonzero(left > _ROUNDING)
        group = connected(one, other, len(left))
        if group[self.pair[0]] != group[self.pair[1]]:
            return math.nan
        scores = moved_scores(left, self.fitted)
        if scores is None:
            scores = fit_scores(left, ridge=self.fitted.ridge or None, start=self.fitted.scores).scores
        return self.gap - float(scores[self.pair[0]] - scores[self.pair[1]])

    def most_voters(self, done: Callable[[int], None]) -> list[VoterInfluence]:
        """Return the voters with the most influence, by exact refits of those with the most to first order."""
        voter = self.votes.voter
        if voter is None:
            return []
        total = sums(voter, len(self.votes.voters), self.pull)
        found = []
        for each in np.argsort(-np.abs(total), kind="stable")[:_REFITTED]:
            theirs = voter == each
            if theirs.any():
                record = self.record(*self.pair, theirs)
                found.append(VoterInfluence(self.votes.voters[each], int(theirs.sum()), *record, self.falls_by(theirs)))
            done(1)
        return sorted(found, key=lambda each: -_size(each.falls_by))[:SHOWN]

    def most_votes(self, done: Callable[[int], None]) -> list[VoteInfluence]:
        """Return the kinds of votes with the most influence each, by exact refits."""
        winner, loser = self._sides()
        keys = np.stack([winner, loser, self.votes.is_tie, self.mass])
        _, first, kind = np.unique(keys, axis=1, return_index=True, return_inverse=True)
        found = []
        for each in np.argsort(-np.abs(self.fall[first]), kind="stable")[:SHOWN]:
            place, alike = first[each], kind.ravel() == each
            one = np.zeros(len(self.votes), dtype=np.bool_)
            one[place] = True
            rows = tuple(self.votes.row[alike].tolist())
            found.append(VoteInfluence(self._says(place), rows, self.falls_by(one), self.falls_by(alike)))
            done(1)
        return sorted(found, key=lambda each: -_size(each.falls_by))

    def _sides(self) -> tuple[Codes, Codes]:
        """Return the winner and the loser of each vote, both (n,); of a tie, the lower item first."""
        first, second, tie = self.votes.first, self.votes.second, self.votes.is_tie
        turned = np.where(tie, first > second, self.votes.result == 0.0)
        return np.where(turned, second, first), np.where(turned, first, second)

    def _says(self, place: int) -> str:
        winner, loser = (self.votes.items[side[place]] for side in self._sides())
        return f"{winner} and {loser} tied" if self.votes.is_tie[place] else f"{winner} beat {loser}"

    def frame(self) -> pl.DataFrame:
        """Return one row per vote, the most influence first."""
        names = np.array(self.votes.items, dtype=object)
        columns = {
            "row": self.votes.row,
            "first": names[self.votes.first].tolist(),
            "second": names[self.votes.second].tolist(),
            "result": self.votes.result,
            "weight": self.mass,
            "share_of_gap": self.share,
            "gap_falls_by": self.fall,
        }
        if self.votes.voter is not None:
            columns["voter"] = np.array(self.votes.voters, dtype=object)[self.votes.voter].tolist()
        order = np.argsort(-np.abs(self.fall), kind="stable")
        return pl.DataFrame(columns)[order]


def _wins(votes: Votes, mass: Vector) -> Matrix:
    """Return the weighted wins of row over column, shape (K, K)."""
    count = len(votes.items)
    won = pair_sums(votes.first, votes.second, count, mass * votes.result)
    return won + pair_sums(votes.second, votes.first, count, mass * (1.0 - votes.result))


def _size(falls_by: float) -> float:
    return math.inf if math.isnan(falls_by) else abs(falls_by)


def _reasons(found: Explanation) -> str:
    """Name the largest parts of the gap that together make up at least half of it."""
    parts = [(found.direct, "")] + [(each.share, each.item) for each in found.through]
    total, direct, items = 0.0, False, []
    for share, item in sorted(parts, key=lambda part: -part[0]):
        if total >= 0.5 * found.gap or share <= 0.0:
            break
        total += share
        direct = direct or not item
        items += [item] if item else []
    duels = [f"their direct duels ({found.above} won {found.won:,.3g} of {found.votes:,.3g})"] if direct else []
    others = [f"how they did against {shortened(items)}"] if items else []
    return f"mainly because of {listed([*duels, *others])}"
