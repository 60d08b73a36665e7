"""Simulated votes with known position bias, tastes and ties."""

import numpy as np

from fairduel.votes import Votes
from fairduel.votes.ranking.outcome_models import outcome_chances


def board(rng, scores, *, voters, each, side=0.0, lean=0.0, taste=0.0, model="half", tie=0.0):
    """Return votes on random pairs: a voter's log-odds add a lean to the first and a taste for each item."""
    items, count = len(scores), voters * each
    voter = np.repeat(np.arange(voters), each)
    first = rng.integers(items, size=count)
    second = (first + rng.integers(1, items, size=count)) % items
    liked = np.asarray(scores) + taste * rng.normal(size=(voters, items))
    z = liked[voter, first] - liked[voter, second] + side + lean * rng.normal(size=voters)[voter]
    drawn = rng.random(count)[:, None] > np.cumsum(outcome_chances(model, z, tie), axis=1)[:, :2]
    return Votes.from_arrays(
        [f"item {i}" for i in range(items)],
        first,
        second,
        1.0 - 0.5 * drawn.sum(axis=1),
        voter=voter,
        voters=[f"voter {i}" for i in range(voters)],
    )
