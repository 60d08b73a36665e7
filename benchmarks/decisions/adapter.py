"""What the package says of votes: the only place to change if that changes."""

from collections.abc import Sequence
from typing import NamedTuple

import fairduel.votes
from fairduel.votes import Ranking, Votes

DRAWS = 1000
STATES = ("too early", "tie", "leads", "won")


class Said(NamedTuple):
    """What is said of a group of items."""

    state: str
    """One of :data:`STATES`."""
    leader: str | None
    """The item that is named as the leader, or the winner."""
    items: tuple[str, ...]
    """The items that may be best."""
    needed: tuple[float, float] | None
    """How many more votes until the leader can have won: from, to."""


def ranked(votes: Votes) -> Ranking:
    """Rank with few draws, for speed."""
    return fairduel.votes.rank(votes, draws=DRAWS)


def decided(votes: Votes, ranking: Ranking, *, forecasts: bool = False) -> Sequence[Said]:
    """Return the verdict on each group of at least two items, by default settings; forecasts only if asked for."""
    found = fairduel.votes.decide(votes, ranking)
    return [
        Said(
            verdict.state,
            verdict.leader,
            tuple(verdict.items),
            (float(verdict.forecast.low), float(verdict.forecast.high)) if forecasts and verdict.forecast else None,
        )
        for verdict in found
    ]
