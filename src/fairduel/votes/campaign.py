"""Evidence that somebody pushes an item: he votes for it (or against it) always, and he meets it too often."""

from dataclasses import dataclass

import numpy as np
from scipy import special

from fairduel.duel import Vector
from fairduel.votes.null_model import Decisive, best_honest, log_mean
from fairduel.votes.votes import Indices, Votes, sums

_PUSHED = (0.9, 0.99)  # how often a liar votes for his item, or his side
_LEAST_DUELS = 3


@dataclass(frozen=True, eq=False)
class Meetings:
    """(voter, item) pairs that met in a vote, ties included, all (c,); sorted by voter · items + item."""

    voter: Indices
    item: Indices
    met: Vector
    rate: Vector
    """Share of the other voters' duels that have the item."""
    log_evidence: Vector
    unevenness: float
    """ρ of ``urn_unevenness``."""


def find_meetings(votes: Votes, *, unevenness: float | None = None) -> Meetings:
    """Count who met what, and how much that speaks for chosen duels; ρ is estimated unless it is given."""
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
    size = 1.0 / (unevenness / (1.0 - unevenness) + 1.0 / others)  # a rate that rests on few votes is uncertain itself
    return Meetings(voter, item, met, rate, exposure_evidence(met, cast, rate, size), unevenness)


@dataclass(frozen=True, eq=False)
class Cells:
    """(voter, item) pairs that occur among the decisive votes, with what was seen there; all (c,)."""

    voter: Indices
    item: Indices
    duels: Vector
    wins: Vector
    expected: Vector
    """Wins that the consensus gives the item."""
    up: Vector
    """Log E that the voter pushes the item up, from his votes."""
    down: Vector
    met: Vector
    """Duels with the item, ties included."""
    rate: Vector
    """Share of the other voters' duels that have it."""
    exposure: Vector
    """Log E that the voter chooses duels with it."""

    def pushes(self, *, duels_assigned: bool) -> tuple[Vector, Vector]:
        """Log E (c,) for pushing up and for pushing down, exposure included, where the votes alone speak for it."""
        exposure = self.exposure if duels_assigned else np.zeros(len(self.voter))
        up, down = (np.where(votes > 0.0, votes + exposure, -np.inf) for votes in (self.up, self.down))
        return up, down


def find_cells(decisive: Decisive, z: Vector, variance: Vector, meetings: Meetings) -> Cells:
    """The (voter, item) cells with at least three decisive votes, and their evidence; less convinces nobody.

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
    """ρ of the Pólya urn by which voters meet items: 0 if each duel is drawn anew, 1 if always the same item comes.

    By moments over all voters and items: x of n duels, at rate p, have the variance n·p(1 − p)·(1 + (n − 1)ρ). A
    voter weighs by his number of duels, not by its square, so that a few busy ones do not decide. The cells (c,) are
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
    """Log probability of these wins in their order, if each comes with probability .9 or, as likely, .99."""
    each = [wins * np.log(p) + (duels - wins) * np.log1p(-p) for p in _PUSHED]
    return log_mean(np.stack(each))


def exposure_evidence(met: Vector, duels: Vector, rate: Vector, size: float | Vector) -> Vector:
    """Log evidence that x of n duels are chosen: share q with density 2q, against the urn with the others' rate.

    ``size`` is 1/ρ − 1 of the urn: how many duels it starts with.
    """
    rate = np.minimum(rate, 1.0 - 1e-9)
    chosen = special.betaln(met + 2.0, duels - met + 1.0) - special.betaln(2.0, 1.0)
    assigned = special.betaln(met + size * rate, duels - met + size * (1.0 - rate))
    return np.asarray(chosen - assigned + special.betaln(size * rate, size * (1.0 - rate)))


def over_targets(voter: Indices, log_evidence: Vector, *, voters: int, targets: int) -> Vector:
    """Log of Σ_k E_vk / targets, shape (voters,): targets that a voter never met count as E = 0."""
    result = np.full(voters, -np.inf)
    np.logaddexp.at(result, voter, log_evidence)
    return np.asarray(result - np.log(targets))
