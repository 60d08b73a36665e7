"""How much each vote should count in the estimate, given how its voter votes: a soft weight from 0 to 2.

Flags (see ``voters``) are for the few voters with overwhelming evidence. These weights use every voter's record a
little, need no level, and follow from the mixture of voters: votes of voters who are random, one-sided or in a camp
count nothing, those of a voter of ability a count a, and those of a voter who pushes an item count as far as they are
the voter's opinion. No weight is negative: opposed voters are ignored, not inverted.
"""

import numpy as np
from scipy import special

from fairduel.duel import Vector
from fairduel.votes.auditing.mixture import (
    ABILITIES,
    Ballots,
    Fitted,
    Members,
    honest_share,
)
from fairduel.votes.votes import sums

_CROWD = 0.05  # share of occasional voters on an item who push it at which their votes that way count half
_MAJORITY = 0.5
IGNORED = 0.1
"""A vote with less weight hardly counts."""
MOST_WEIGHT = 2.0
"""Largest weight of a vote; 1 is an average voter's."""


def reliability_of(ballots: Ballots, fitted: Fitted, shared: Vector) -> Vector:
    """Return how much each vote counts, (n,), 1 on average for voters like everyone.

    It is the expected ability, at least 0, divided by its mean, or the share of opinion in the votes of those who push,
    times ``shared``. If many occasional voters push an item, all their votes that way count less.
    """
    found, able = fitted.members, np.maximum(ABILITIES, 0.0)
    shares = fitted.model.shares[: len(ABILITIES)]
    scale = np.where(ballots.occasional, 1.0, shares.sum() / float(shares @ able))
    of_voter = scale * (found.classes[:, : len(ABILITIES)] @ able)
    counted = of_voter[ballots.voter] + sum(honest_share(ballots, found, special.expit(fitted.margins[0])))
    counted *= trust_in_crowd(ballots, found)
    usual = float(ballots.counts @ shared) / float(ballots.counts.sum())
    return np.asarray(np.clip(counted * shared / usual, 0.0, MOST_WEIGHT))


def trust_in_crowd(ballots: Ballots, found: Members) -> Vector:
    """Return how much votes count, (n,), as occasional voters: less the way that many of them push one of the items.

    A vote against the push is not the crowd's, so it counts fully.
    """
    theirs = ballots.occasional[ballots.cell_voter]
    voters = np.maximum(sums(ballots.cell_item, ballots.items, theirs.astype(np.float64)), 1.0)
    up, down = (
        1.0 / (1.0 + (sums(ballots.cell_item, ballots.items, way * theirs) / voters / _CROWD) ** 2)
        for way in found.pushes.sum(axis=0)
    )
    for_first, for_second = up[ballots.first] * down[ballots.second], down[ballots.first] * up[ballots.second]
    trust = ballots.result * for_first + (1.0 - ballots.result) * for_second
    return np.where(ballots.occasional[ballots.voter], trust, 1.0)


def mostly_ignored(ballots: Ballots, reliability: Vector) -> bool:
    """Return whether most votes hardly count: then there is no order that most votes share."""
    return bool(ballots.counts[reliability < IGNORED].sum() > _MAJORITY * ballots.counts.sum())
