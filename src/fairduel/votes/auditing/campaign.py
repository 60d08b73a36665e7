"""Evidence that a voter pushes an item: they always vote for it (or against it), and see it too often."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import special

from fairduel.duel import Matrix, Vector
from fairduel.votes.auditing.null_model import Decisive, best_honest, log_mean
from fairduel.votes.timing import STRETCHES, stretches, time_order
from fairduel.votes.votes import Indices, Votes, sums

_PUSHED = (0.9, 0.99)  # how often a liar votes for their item, or their side
LEAST_DUELS = 3
_PUSHES = np.log(2.0)  # log E of votes that push; with less, seeing an item often would be the only evidence
_NEARBY = 3  # stretches: a campaign in one of them is not excused by itself
_LARGE_CONTEXT = 0.02  # of the votes: enough to see which items are shown in it
_BATCH = 4_000_000


@dataclass(frozen=True, eq=False)
class Meetings:
    """(voter, item) pairs that occur in votes, ties included, all (c,); sorted by voter · items + item."""

    voter: Indices
    item: Indices
    met: Vector
    rate: Vector
    """Share of comparable duels of everyone else that include the item."""
    log_evidence: Vector
    unevenness: float
    """ρ of ``urn_unevenness``."""


def find_meetings(votes: Votes) -> Meetings:
    """Count how often each voter saw each item, with the evidence that they chose to.

    A voter's duels are compared with everyone else's around the same time: those of the same stretch and the two before
    (see ``timing.stretches``), of the same and the two after, and of all since the item's first duel. If contexts
    have enough votes, they are also compared with those in the same context. The largest of these rates counts, so that
    a release, or a context in which an item is common, explains seeing it often.
    """
    items, voters = len(votes.items), len(votes.voters)
    whose = votes.cast_by.astype(np.int64)
    keys, counts = np.unique(
        np.concatenate([whose * items + votes.first, whose * items + votes.second]), return_counts=True
    )
    voter, item, met = keys // items, keys % items, counts.astype(np.float64)
    cast = sums(whose, voters)[voter]
    overall = (sums(item, items, met)[item] - met + 1.0) / (len(votes) - cast + items / 2.0)
    rate, doubt = _rate_since_release(votes, voter, item, met, overall)
    for part, near in _neighbourhoods(votes):
        of_others, uncertainty = _rate_nearby(votes, keys, overall, part, near)
        rate, doubt = np.maximum(rate, of_others), np.maximum(doubt, uncertainty)
    unevenness = urn_unevenness(voter, item, met, voters=voters, items=items)
    size = 1.0 / (unevenness / (1.0 - unevenness) + doubt)  # a rate from few votes is itself uncertain
    return Meetings(voter, item, met, rate, exposure_evidence(met, cast, rate, size), unevenness)


def _rate_since_release(
    votes: Votes, voter: Indices, item: Indices, met: Vector, overall: Vector
) -> tuple[Vector, Vector]:
    """Return others' rate of meeting each cell's item since its first duel, times the voter's share of duels since.

    With N duels of others since then, the rate is (others' duels with the item + ``overall`` rate) / (N + 1), and its
    uncertainty is 1 / (N + 1); both (c,).
    """
    items, total, place = len(votes.items), len(votes), time_order(votes)
    release = np.full(items, total)
    for shown in (votes.first, votes.second):
        np.minimum.at(release, shown, place)
    whose = votes.cast_by.astype(np.int64)
    ordered = np.sort(whose * total + place)
    cast = np.searchsorted(ordered, (voter + 1) * total) - np.searchsorted(ordered, voter * total)
    own = np.searchsorted(ordered, (voter + 1) * total) - np.searchsorted(ordered, voter * total + release[item])
    others = total - release[item] - own
    rate = (sums(item, items, met)[item] - met + overall) / (others + 1.0)
    return rate * own / cast, 1.0 / (others + 1.0)


def _neighbourhoods(votes: Votes) -> Iterator[tuple[Indices, Matrix]]:
    """Yield partitions of the votes (n,) into P parts, and which parts (P, P) each part is compared with."""
    stretch, each = stretches(votes), np.arange(STRETCHES)
    for start in (each - _NEARBY + 1, each):
        begin = np.clip(start, 0, STRETCHES - _NEARBY)[:, None]  # as many at both ends of the file
        yield stretch, ((each >= begin) & (each < begin + _NEARBY)).astype(np.float64)
    if votes.context is None:
        return
    large = sums(votes.context, len(votes.contexts)) >= _LARGE_CONTEXT * len(votes)
    if large.any():
        part = np.where(large, np.cumsum(large), 0)[votes.context]  # all small contexts are one part
        yield part, np.eye(int(large.sum()) + 1)


def _rate_nearby(votes: Votes, keys: Indices, overall: Vector, part: Indices, near: Matrix) -> tuple[Vector, Vector]:
    """Return others' rate of meeting each cell's item near the voter's duels, on average, and its uncertainty (c,).

    Near part p, which has share w_p of the voter's duels, the rate is (others' duels with the item + ``overall`` rate)
    / (N_p + 1), where N_p is the number of others' duels there. The uncertainty is Σ_p w_p / (N_p + 1).
    """
    items, voters, parts = len(votes.items), len(votes.voters), len(near)
    whose = votes.cast_by.astype(np.int64)
    own = sums(whose * parts + part, voters * parts).reshape(voters, parts)
    others = near @ own.sum(axis=0) - own @ near.T
    share = own / np.maximum(own.sum(axis=1), 1.0)[:, None] / (others + 1.0)  # w_p / (N_p + 1), (V, P)
    shown = np.concatenate([part * items + votes.first, part * items + votes.second])
    seen = (near @ sums(shown, parts * items).reshape(parts, items)).T
    voter, item = keys // items, keys % items
    own_share = (share @ near)[whose, part]  # how much each own vote counts in ``seen``
    total = np.zeros(len(keys))
    for one in (votes.first, votes.second):
        total -= sums(np.searchsorted(keys, whose * items + one), len(keys), own_share)
    for begin in range(0, len(keys), _BATCH // parts):
        cells = slice(begin, begin + _BATCH // parts)
        total[cells] += np.einsum("cp,cp->c", share[voter[cells]], seen[item[cells]])
    uncertainty = share.sum(axis=1)[voter]
    return total + overall * uncertainty, uncertainty


class Push(NamedTuple):
    """How often a voter, or a crowd, voted for one item (or against it)."""

    item: int
    up: bool
    duels: int
    """Duels with the item and a winner."""
    pushed: int
    """How many of them went the pushed way."""
    expected: float
    """How many of them would have, judging by everyone else's votes."""

    @classmethod
    def of(cls, item: int, *, up: bool, duels: float, wins: float, expected: float) -> "Push":
        """Count the wins (or losses) of an item; ``expected`` are wins."""
        if not up:
            wins, expected = duels - wins, duels - expected
        return cls(item, up, int(duels), int(wins), float(expected))

    def sentence(self, items: tuple[str, ...]) -> str:
        """Describe the votes on the item."""
        way = f"voted {'for' if self.up else 'against'} {items[self.item]} in {self.pushed:,} of {self.duels:,} duels"
        return f"{way} (expected from everyone else: {self.expected:,.0f})"


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
    """Share of everyone else's comparable duels that include it."""
    exposure: Vector
    """Log E that the voter chooses duels with it."""

    def pushes(self, *, duels_assigned: bool) -> tuple[Vector, Vector]:
        """Return log E (c,) for pushing up and for pushing down; exposure counts only if the votes alone give E > 2."""
        exposure = self.exposure if duels_assigned else np.zeros(len(self.voter))
        up, down = (np.where(votes > _PUSHES, votes + exposure, -np.inf) for votes in (self.up, self.down))
        return up, down

    def push(self, cell: int, *, up: bool) -> Push:
        """Return the statistics of one cell, as a push up or down."""
        return Push.of(
            int(self.item[cell]), up=up, duels=self.duels[cell], wins=self.wins[cell], expected=self.expected[cell]
        )


def find_cells(decisive: Decisive, z: Vector, variance: Vector, meetings: Meetings) -> Cells:
    """Find the (voter, item) cells with at least three decisive votes, and their evidence; fewer prove nothing.

    ``variance`` is τ² of each cell of ``decisive.cells``.
    """
    keys, place = decisive.cells
    kept = np.bincount(place) >= LEAST_DUELS
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

    ``size`` is 1/ρ − 1: the number of duels the urn starts with. Seeing an item less often than at ``rate`` is no
    evidence (E = 0), so that a lower true rate gives less evidence, not more.
    """
    rate = np.clip(rate, 1e-9, 1.0 - 1e-9)
    chosen = special.betaln(met + 2.0, duels - met + 1.0) - special.betaln(2.0, 1.0)
    assigned = special.betaln(met + size * rate, duels - met + size * (1.0 - rate))
    evidence = chosen - assigned + special.betaln(size * rate, size * (1.0 - rate))
    return np.where(met > duels * rate, evidence, -np.inf)


def over_targets(voter: Indices, log_evidence: Vector, *, voters: int, targets: int) -> Vector:
    """Return log Σ_k E_vk / targets, shape (voters,); targets that a voter never saw count as E = 0."""
    result = np.full(voters, -np.inf)
    np.logaddexp.at(result, voter, log_evidence)
    return np.asarray(result - np.log(targets))
