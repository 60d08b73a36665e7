"""What the live pages draw: how the verdict came about, and who beat whom."""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairduel.duel import Vector
from fairduel.service.events.log import Json
from fairduel.votes.auditing.audit import Audit
from fairduel.votes.deciding import decide
from fairduel.votes.ranking.rank import Ranking, rank
from fairduel.votes.verdict import Verdict
from fairduel.votes.votes import Votes

_MOST_POINTS, _MOST_LINES, _MOST_BEATEN = 16, 6, 12
_MOST_FITTED = 60  # items; with more, a ranking takes a second, and the course only has its end
_DRAWS = 2000  # of the points before the last, whose probabilities then have errors of about 1%


def course(found: Audit) -> list[Json]:
    """Return the verdict on the largest group by the first votes, more and more of them; the last one is today's.

    Votes count as today's audit counts them, so a voter who is flagged now does not count in earlier points either.
    Points are at multiples of a step that doubles, so that most of them are known from the last time.
    """
    if not found.verdicts:
        return []
    verdict, shown = found.verdicts[0], found.shown
    last = _point(verdict, shown, len(found.votes))
    if len(found.votes.items) > _MOST_FITTED or len(found.verdicts) > 1 or found.votes.context is not None:
        return [last]
    step = 1
    while len(found.votes) / step > _MOST_POINTS:
        step *= 2
    weights = shown.weights if shown is not found.everyone else np.ones(len(found.votes))
    least = max(step, len(found.votes.items))
    earlier = [
        _earlier(_Prefix(found.votes, weights, count), verdict.lies)
        for count in range(step, len(found.votes), step)
        if count >= least
    ]
    return [*(point for point in earlier if point is not None), last]


class _Prefix:
    """The first votes, equal to others with the same content, so that what follows from them is computed once."""

    def __init__(self, votes: Votes, weights: Vector, count: int) -> None:
        self.votes, self.weights = votes.select(np.arange(len(votes)) < count), weights[:count]
        cast = votes.cast_by[:count]
        arrays: list[NDArray[Any]] = [
            votes.first[:count],
            votes.second[:count],
            votes.result[:count],
            cast,
            self.weights,
        ]
        self._content = votes.items, *(each.tobytes() for each in arrays)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Prefix) and self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)


@lru_cache(500)
def _earlier(prefix: _Prefix, lies: int) -> Json | None:
    votes = prefix.votes
    if not (votes.counts("half")[prefix.weights > 0.0] > 0.0).any():
        return None
    ranking = rank(votes, reliability=prefix.weights, draws=_DRAWS)
    verdicts = decide(votes, ranking, lies=lies)
    return _point(verdicts[0], ranking, len(votes)) if verdicts else None


def _point(verdict: Verdict, ranking: Ranking, votes: int) -> Json:
    best = {each.item: each.best for each in ranking.standings if each.component == 1}
    likely = sorted(best, key=lambda item: -best[item])[:_MOST_LINES]
    return {
        "votes": votes,
        "best": {item: best[item] for item in likely},
        **{name: getattr(verdict, name) for name in ("evidence", "bar", "state")},
    }


def beats(found: Audit) -> Json:
    """Return how often each of the first items of the ranking won against each other, by all votes."""
    votes, names = found.votes, [each.item for each in found.shown.standings[:_MOST_BEATEN]]
    place = np.full(len(votes.items), -1)
    place[[votes.items.index(name) for name in names]] = np.arange(len(names))
    one, other = place[votes.first], place[votes.second]
    is_shown = (one >= 0) & (other >= 0)
    wins = np.zeros((len(names), len(names)))
    np.add.at(wins, (one[is_shown], other[is_shown]), votes.result[is_shown])
    np.add.at(wins, (other[is_shown], one[is_shown]), 1.0 - votes.result[is_shown])
    return {"items": names, "wins": wins.tolist()}
