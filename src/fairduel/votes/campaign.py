"""Evidence that a voter pushes an item: they always vote for it (or against it), and see it too often."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import special

from fairduel.duel import Vector
from fairduel.votes.null_model import Decisive, best_honest, log_mean
from fairduel.votes.votes import Indices, Votes, sums

_PUSHED = (0.9, 0.99)  # how often a liar votes for their item, or their side
_LEAST_DUELS = 3


@dataclass(frozen=True, eq=False)
class Meetings:
    """(voter, item) pairs that occur in votes, ties included, all (c,); sorted by voter · items + item."""

    voter: Indices
    item: Indices
    met: Vector
    rate: Vector
    """Share of everyone else's duels that include the item."""
    log_evidence: Vector
    unevenness: float
    """ρ of ``urn_unevenness``."""


def find_meetings(votes: Votes, *, unevenness: float | None = None) -> Meetings:
    """Count how often each voter saw each item, with the evidence that they chose to; ρ is estimated unless given."""
    items, voters = len(votes.items), len(votes.voters)
    whose = votes.cast_by.astype(np.int64)
    seen = np.concatenate([whose * items + votes.first, whose * items + votes.second])
    keys, counts = np.unique(seen, return_counts=True)
    voter, item, met = keys // items, keys % items, counts.astype(np.float64)
    if unevenness is None:
        unevenness = urn_unevenness(voter, item, met, voters=voters, items=items)
    cast = sums(whose, voters)[voter]
    others = len(votes) - cast + items / 2.0
    rate = (sums(item, items, met)[item] - met + 1.0) / others
    size = 1.0 / (unevenness / (1.0 - unevenness) + 1.0 / others)  # a rate from few votes is itself uncertain
    return Meetings(voter, item, met, rate, exposure_evidence(met, cast, rate, size), unevenness)


class Push(NamedTuple):
    """How often a voter, or a crowd, saw one item and voted for it (or against it)."""

    item: int
    up: bool
    met: int
    """Duels with the item, ties included."""
    rate: float
    """Share of everyone else's duels that include the item."""
    duels: int
    """Duels with the item and a winner."""
    pushed: int
    """How many of them went the pushed way."""
    expected: float
    """How many of them would have, judging by everyone else's votes."""

    def words(self, items: tuple[str, ...], cast: int) -> tuple[str, str]:
        """Describe how often the item was seen in ``cast`` votes, and how it was voted on."""
        name, way = items[self.item], "for" if self.up else "against"
        expected = f"expected from everyone else: {self.expected:,.0f}"
        return (
            f"saw {name} in {self.met:,} of {cast:,} duels (everyone else: {self.rate:.1%})",
            f"voted {way} {name} in {self.pushed:,} of {self.duels:,} duels ({expected})",
        )


@dataclass(frozen=True, eq=False)
class Cells:
    """(voter, item) pairs that occur in decisive votes, with their statistics; all (c,)."""

    voter: Indices
    item: Indices
    duels: Vector
    wins: Vector
    expected: Vector
    """Wins that the consensus predicts for the item."""
    up: Vector
    """Log E that the voter pushes the item up, from their votes."""
    down: Vector
    met: Vector
    """Duels with the item, ties included."""
    rate: Vector
    """Share of everyone else's duels that include it."""
    exposure: Vector
    """Log E that the voter chooses duels with it."""

    def pushes(self, *, duels_assigned: bool) -> tuple[Vector, Vector]:
        """Return log E (c,) for pushing up and for pushing down; exposure counts only if the votes alone give E > 1."""
        exposure = self.exposure if duels_assigned else np.zeros(len(self.voter))
        up, down = (np.where(votes > 0.0, votes + exposure, -np.inf) for votes in (self.up, self.down))
        return up, down

    def push(self, cell: int, *, up: bool) -> Push:
        """Return the statistics of one cell, as a push up or down."""
        duels, wins, expected = self.duels[cell], self.wins[cell], self.expected[cell]
        return Push(
            item=int(self.item[cell]),
            up=up,
            met=int(self.met[cell]),
            rate=float(self.rate[cell]),
            duels=int(duels),
            pushed=int(wins if up else duels - wins),
            expected=float(expected if up else duels - expected),
        )


def find_cells(decisive: Decisive, z: Vector, variance: Vector, meetings: Meetings) -> Cells:
    """Find the (voter, item) cells with at least three decisive votes, and their evidence; fewer prove nothing.

    ``variance`` is τ² of each cell of ``decisive.cells()``.
    """
    keys, place = decisive.cells()
    kept = np.bincount(place) >= _LEAST_DUELS
    inside = kept[place]
    keys, place = keys[kept], (np.cumsum(kept) - 1)[place[inside]]
    sign, logit, count = decisive.sides(decisive.sign)[inside], decisive.sides(z)[inside], len(keys)
    duels, wins = sums(place, count), sums(place, count, sign > 0)
    honest = best_honest(place, count, logit, sign, np.sqrt(variance[kept]))
    same = np.searchsorted(meetings.voter * decisive.items + meetings.item, keys)
    return Cells(
        voter=keys // decisive.items,
        item=keys % decisive.items,
        duels=duels,
        wins=wins,
        expected=sums(place, count, special.expit(logit)),
        up=pushing(wins, duels) - honest,
        down=pushing(duels - wins, duels) - honest,
        met=meetings.met[same],
        rate=meetings.rate[same],
        exposure=meetings.log_evidence[same],
    )


def urn_unevenness(voter: Indices, item: Indices, met: Vector, *, voters: int, items: int) -> float:
    """Estimate ρ of the Pólya urn by which voters see items: 0 for independent duels, 1 for always the same item.

    By moments over all voters and items: x of n duels at rate p have variance n·p(1 − p)·(1 + (n − 1)ρ). Voters are
    weighted by their number of duels, not by its square, so that a few busy voters do not dominate. The cells (c,) are
    those with x = ``met`` > 0; the others follow from Σ_k x_k = 2n.
    """
    duels = sums(voter, voters, met) / 2.0
    rate = sums(item, items, met) / duels.sum()
    squares = float(rate @ rate)
    many = duels > 1.0
    cell = many[voter]
    spread = (met**2 / duels[voter] - 2.0 * met * rate[item])[cell].sum() + duels[many].sum() * squares
    surplus = spread - many.sum() * (2.0 - squares)
    scale = (duels[many] - 1.0).sum() * (2.0 - squares)
    return float(np.clip(surplus / scale, 1e-4, 0.99)) if scale > 0.0 else 0.99


def pushing(wins: Vector, duels: Vector) -> Vector:
    """Return the log-probability of these wins, in order, if each has probability 0.9 or 0.99, equally likely."""
    each = [wins * np.log(p) + (duels - wins) * np.log1p(-p) for p in _PUSHED]
    return log_mean(np.stack(each))


def exposure_evidence(met: Vector, duels: Vector, rate: Vector, size: float | Vector) -> Vector:
    """Return the log-evidence that x of n duels were chosen: share q with density 2q, against everyone else's urn.

    ``size`` is 1/ρ − 1: the number of duels the urn starts with.
    """
    rate = np.minimum(rate, 1.0 - 1e-9)
    chosen = special.betaln(met + 2.0, duels - met + 1.0) - special.betaln(2.0, 1.0)
    assigned = special.betaln(met + size * rate, duels - met + size * (1.0 - rate))
    return np.asarray(chosen - assigned + special.betaln(size * rate, size * (1.0 - rate)))


def over_targets(voter: Indices, log_evidence: Vector, *, voters: int, targets: int) -> Vector:
    """Return log Σ_k E_vk / targets, shape (voters,); targets that a voter never saw count as E = 0."""
    result = np.full(voters, -np.inf)
    np.logaddexp.at(result, voter, log_evidence)
    return np.asarray(result - np.log(targets))
