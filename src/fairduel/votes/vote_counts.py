"""Votes grouped by kind: only the number of votes with the same winner, loser and weight matters.

A row that counts f times is f votes; if f is not whole, it is ⌈f⌉ votes of weight f/⌈f⌉.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from fairduel.duel import Matrix, Vector
from fairduel.votes.bradley_terry import Scores
from fairduel.votes.votes import Codes, Indices, Mask, Ties, Votes, connected, ensure_some_count, pair_sums

How = Literal["dropped", "flipped"]


@dataclass(frozen=True, eq=False)
class VoteCounts:
    """The q kinds of votes, each with one winner, loser and weight; arrays are (q,) except the last two."""

    winner: Indices
    loser: Indices
    tie: Mask
    weight: Vector
    count: Indices
    order: Indices
    """Indices of all rows that count, kind by kind."""
    copies: Indices
    """How many votes each of these rows stands for."""
    items: int
    others: Matrix | None = None
    """Wins of votes of other kinds, shape (K, K), that nobody takes."""

    def won(self, count: Indices) -> Matrix:
        """Return the matrix of wins (K, K) for ``count`` (q,) votes of each kind, without ``others``."""
        mass, tie = self.weight * count, self.tie
        won = pair_sums(self.winner, self.loser, self.items, np.where(tie, 0.5, 1.0) * mass)
        return won + pair_sums(self.loser[tie], self.winner[tie], self.items, 0.5 * mass[tie])

    def after(self, taken: Indices, how: How) -> Matrix:
        """Return the matrix of wins (K, K) after ``taken`` (q,) votes of each kind are dropped or flipped."""
        left = self.won(self.count - taken)
        left = left if self.others is None else left + self.others
        return left if how == "dropped" else left + self.won(taken).T

    def only(self, kinds: Indices) -> "VoteCounts":
        """Keep these kinds, and sum up the rest."""
        rest = self.count.copy()
        rest[kinds] = 0
        parts = {name: getattr(self, name)[kinds] for name in ("winner", "loser", "tie", "weight", "count")}
        return replace(self, **parts, others=self.won(rest))

    @functools.cached_property
    def other_components(self) -> Codes:
        """Component of each item in the comparison graph of the ``others``, shape (K,)."""
        if self.others is None:
            return np.arange(self.items, dtype=np.int32)
        one, other = np.nonzero(self.others)
        return connected(one, other, self.items)

    def members(self, taken: Indices) -> Indices:
        """Return the indices of the rows with the first ``taken`` (q,) votes of each kind."""
        before = np.cumsum(self.copies) - self.copies  # votes on earlier rows
        starts = np.cumsum(self.count) - self.count  # votes of earlier kinds
        kind = np.searchsorted(starts, before, side="right") - 1
        return np.sort(self.order[before - starts[kind] < taken[kind]])


def count_votes(votes: Votes, ties: Ties, weights: Vector | None = None) -> VoteCounts:
    """Group the votes by winner, loser and weight; ``weights`` (n,) multiply the votes that each row stands for."""
    frequency = votes.counts(ties)
    ensure_some_count(frequency)
    places = np.flatnonzero(frequency)
    first, second, result = votes.first[places], votes.second[places], votes.result[places]
    tie = votes.is_tie[places]
    ahead = np.where(tie, np.minimum(first, second), np.where(result == 1.0, first, second))
    behind = np.where(tie, np.maximum(first, second), np.where(result == 1.0, second, first))
    copies = np.ceil(frequency[places])
    weight = frequency[places] / copies * (1.0 if weights is None else weights[places])
    keys = np.stack([ahead, behind, tie, weight])
    found, kind = np.unique(keys, axis=1, return_inverse=True)
    order = np.argsort(kind.ravel(), kind="stable")
    return VoteCounts(
        winner=found[0].astype(np.int64),
        loser=found[1].astype(np.int64),
        tie=found[2] > 0.0,
        weight=found[3],
        count=np.bincount(kind.ravel(), copies).astype(np.int64),
        order=places[order],
        copies=copies[order].astype(np.int64),
        items=len(votes.items),
    )


def standard_gaps(fitted: Scores, pairs: Sequence[tuple[int, int]] | Indices) -> Vector:
    """Return the score gap of each of p pairs in standard errors, g/κ, shape (p,)."""
    inside, outside = np.asarray(pairs).T
    variance = np.diag(fitted.covariance)
    kappa = np.sqrt(variance[inside] + variance[outside] - 2.0 * fitted.covariance[inside, outside])
    return np.asarray((fitted.scores[inside] - fitted.scores[outside]) / kappa)
