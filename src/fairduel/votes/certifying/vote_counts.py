"""Votes grouped by kind: only the number of votes with the same winner, loser and weight matters.

A row that counts f times is f votes; if f is not whole, it is ⌈f⌉ votes of weight f/⌈f⌉.

An attacker takes *units*: single votes, or voters with all their votes. Votes of one kind are alike, so a kind is as
many alike units as it has votes; a voter is one unit with one or more kinds.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy import sparse

from fairduel.duel import Matrix, Vector
from fairduel.votes.ranking.bradley_terry import Scores
from fairduel.votes.votes import Codes, Indices, Mask, Ties, Votes, connected, ensure_some_count, pair_sums, sums

How = Literal["dropped", "flipped", "false"]
"""What happens to the votes taken: a false vote has whatever answer helps the attacker most."""


@dataclass(frozen=True, eq=False)
class VoteCounts:
    """The q kinds of votes, each with one winner, loser and weight, and voter if units are voters; arrays are (q,)."""

    winner: Codes
    loser: Codes
    tie: Mask
    weight: Vector
    count: Indices
    order: Codes
    """Indices of all n rows that count, kind by kind, shape (n,)."""
    copies: Indices
    """How many votes each of these rows stands for, shape (n,)."""
    items: int
    others: Matrix | None = None
    """Wins of votes of other kinds, shape (K, K), that nobody takes."""
    voter: Codes | None = None
    """Voter of each kind, from 0, if units are voters; None if they are votes."""

    @functools.cached_property
    def available(self) -> Indices:
        """How many alike units there are of each of u units: the votes of a kind, or 1 voter, shape (u,)."""
        return self.count if self.voter is None else np.ones(int(self.voter.max()) + 1, np.int64)

    def per_unit(self, values: Vector) -> Vector:
        """Return the value of each unit (u,), given that of one vote of each kind (q,)."""
        return values if self.voter is None else sums(self.voter, len(self.available), values * self.count)

    def pushes(self, rows: Matrix | Vector) -> Matrix | Vector:
        """Return how much one of each unit, if false, changes the product of the gradient and ``rows`` at most.

        ``rows`` are (K,) or (p, K), and the result is (u,) or (p, u). A win can be lost, and a tie turned either way.
        """
        winner, loser, tie, votes = self._outcomes
        pull = rows[..., winner] - rows[..., loser]
        most = np.where(tie, 0.5 * np.abs(pull), np.maximum(pull, 0.0))
        return most * self.weight if votes is None else np.asarray((votes @ most.T).T)

    @functools.cached_property
    def _outcomes(self) -> tuple[Codes, Codes, Mask, sparse.csr_array | None]:
        """Winner, loser and tie of each of o outcomes, and how much each voter's count, (u, o), if units are voters."""
        if self.voter is None:
            return self.winner, self.loser, self.tie, None
        code = (self.winner.astype(np.int64) * self.items + self.loser) * 2 + self.tie
        _, kind, outcome = np.unique(code, return_index=True, return_inverse=True)
        mass = (self.weight * self.count, (self.voter, outcome))
        votes = sparse.coo_array(mass, shape=(len(self.available), len(kind))).tocsr()
        return self.winner[kind], self.loser[kind], self.tie[kind], votes

    def votes_of(self, units: Indices) -> Indices:
        """Return how many votes of each kind (q,) these ``units`` (u,) have."""
        return units if self.voter is None else units[self.voter] * self.count

    def answers(self, how: How, towards: Vector | None = None) -> Vector:
        """Return the share of a win that the winner of each kind has in a flipped or false vote, shape (q,).

        In a false vote, the item with the lower value of ``towards`` (K,) wins.
        """
        if how == "flipped" or towards is None:
            return np.where(self.tie, 0.5, 0.0)
        pull = towards[self.winner] - towards[self.loser]
        return np.where(pull > 0.0, 0.0, np.where(self.tie & (pull == 0.0), 0.5, 1.0))

    def won(self, count: Indices) -> Matrix:
        """Return the matrix of wins (K, K) for ``count`` (q,) votes of each kind, without ``others``."""
        mass, tie = self.weight * count, self.tie
        won = pair_sums(self.winner, self.loser, self.items, np.where(tie, 0.5, 1.0) * mass)
        return won + pair_sums(self.loser[tie], self.winner[tie], self.items, 0.5 * mass[tie])

    def after(self, units: Indices, how: How, towards: Vector | None = None) -> Matrix:
        """Return the matrix of wins (K, K) after ``units`` (u,) are dropped, flipped or false (see ``answers``)."""
        taken = self.votes_of(units)
        left = self.won(self.count - taken)
        left = left if self.others is None else left + self.others
        if how == "dropped":
            return left
        mass, answers = self.weight * taken, self.answers(how, towards)
        left += pair_sums(self.winner, self.loser, self.items, mass * answers)
        return left + pair_sums(self.loser, self.winner, self.items, mass * (1.0 - answers))

    def only(self, units: Indices) -> "VoteCounts":
        """Keep these units, and sum up the rest."""
        kinds, voter = units, None
        if self.voter is not None:
            number = np.full(len(self.available), -1)
            number[units] = np.arange(len(units))
            kinds = np.flatnonzero(number[self.voter] >= 0)
            voter = number[self.voter[kinds]]
        rest = self.count.copy()
        rest[kinds] = 0
        parts = {name: getattr(self, name)[kinds] for name in ("winner", "loser", "tie", "weight", "count")}
        return replace(self, **parts, others=self.won(rest), voter=voter)

    @functools.cached_property
    def other_components(self) -> Codes:
        """Component of each item in the comparison graph of the ``others``, shape (K,)."""
        if self.others is None:
            return np.arange(self.items, dtype=np.int32)
        one, other = np.nonzero(self.others)
        return connected(one, other, self.items)

    def members(self, taken: Indices) -> tuple[Indices, Indices]:
        """Return the indices of the rows with the first ``taken`` (q,) votes of each kind, and their kinds."""
        kinds = np.flatnonzero(taken)
        before = np.cumsum(self.copies) - self.copies  # votes on earlier rows
        starts = (np.cumsum(self.count) - self.count)[kinds]  # votes of earlier kinds
        begin, end = np.searchsorted(before, starts), np.searchsorted(before, starts + taken[kinds])
        size = end - begin
        rows = self.order[np.arange(size.sum()) + np.repeat(begin - (np.cumsum(size) - size), size)]
        kind = np.repeat(kinds, size)
        by_row = np.argsort(rows)
        return rows[by_row], kind[by_row]


def count_votes(votes: Votes, ties: Ties, weights: Vector | None = None, *, by_voter: bool = False) -> VoteCounts:
    """Group the votes by winner, loser and weight, and by voter if the units are voters.

    ``weights`` (n,) multiply the votes that each row stands for.
    """
    frequency = votes.counts(ties)
    ensure_some_count(frequency)
    places = np.flatnonzero(frequency).astype(np.int32)
    first, second, result = votes.first[places], votes.second[places], votes.result[places]
    tie = votes.is_tie[places]
    ahead = np.where(tie, np.minimum(first, second), np.where(result == 1.0, first, second))
    behind = np.where(tie, np.maximum(first, second), np.where(result == 1.0, second, first))
    copies = np.ceil(frequency[places])
    weight = frequency[places] / copies * (1.0 if weights is None else weights[places])
    voter = np.zeros(len(places), np.int32)
    if by_voter:
        voter = np.unique(votes.cast_by[places], return_inverse=True)[1].astype(np.int32)
    outcome = (ahead.astype(np.int64) * len(votes.items) + behind) * 2 + tie
    order = np.lexsort((weight, outcome, voter))
    keys = (voter[order], outcome[order], weight[order])
    first_of_kind = np.flatnonzero(np.any([np.diff(key, prepend=np.nan) != 0.0 for key in keys], axis=0))
    kinds = order[first_of_kind]
    return VoteCounts(
        winner=ahead[kinds],
        loser=behind[kinds],
        tie=tie[kinds],
        weight=weight[kinds],
        count=np.add.reduceat(copies[order], first_of_kind).astype(np.int64),
        order=places[order],
        copies=copies[order].astype(np.int64),
        items=len(votes.items),
        voter=voter[kinds] if by_voter else None,
    )


def standard_gaps(fitted: Scores, pairs: Sequence[tuple[int, int]] | Indices) -> Vector:
    """Return the score gap of each of p pairs in standard errors, g/κ, shape (p,)."""
    inside, outside = np.asarray(pairs).T
    variance = np.diag(fitted.covariance)
    kappa = np.sqrt(variance[inside] + variance[outside] - 2.0 * fitted.covariance[inside, outside])
    return np.asarray((fitted.scores[inside] - fitted.scores[outside]) / kappa)
