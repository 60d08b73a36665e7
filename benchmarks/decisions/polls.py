"""Live polls that are looked at again and again: what is said at each look, and when they stop."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import polars as pl

from benchmarks.decisions.adapter import STATES, decided, ranked
from benchmarks.decisions.crowds import TASTE, Codes, Crowd, People
from benchmarks.decisions.files import Decider, Ranker, Row, Share, is_best, is_wrong
from benchmarks.decisions.populations import Duels, Population, alike, asked, asking, cast, chained, random_pairs, zeal
from fairduel.duel import Vector

LOOKS = (23, 50, 100, 200, 400, 800, 1600, 3200, 6400)
"""Numbers of votes at which polls are compared."""
_CLOSER = 1.2  # ratio of consecutive looks, by which the time of stopping is found
_QUOTAS, _QUOTA = (10, 50), 30  # fewest and most votes of a voter, and their mean

SCHEMA = {
    "seed": pl.Int64,
    "votes": pl.Int64,
    "voters": pl.Int64,
    "whole": pl.Boolean,
    "state": pl.String,
    "named": pl.Boolean,
    "wrong": pl.Boolean,
    "low": pl.Float64,
    "high": pl.Float64,
    "first": pl.Boolean,
    "said": pl.Float64,
}
"""What is said at a look:

- ``votes``, ``voters``: how many there are; ``whole``: whether all items can be compared with each other;
- ``state``: the verdict on the largest group; ``named``: whether it names a leader; ``wrong``: whether it names wrong
  items (see :data:`benchmarks.decisions.files.SCHEMA`);
- ``low``, ``high``: the total number of votes at which the poll can stop, as forecast; null without forecast;
- ``first``: whether the first item is truly better than all others; ``said``: its P(best).
"""


@dataclass(frozen=True)
class Poll:
    """A kind of poll with its sizes.

    Args:
        kind: Its name.
        items: K.
        scores: ``"normal"`` (N(0, 1)), ``"equal"``, ``"two best"`` (normal, but the best two are equal) or ``"clear"``
            (normal, but the best is 1 ahead).
        asks: ``"random"`` pairs, ``"sceptic"``, or ``"winner"`` (the winner stays, per voter).
        votes: How many votes there are in the end.
        voters: How many voters take turns; if None, as many as it takes come, one after another.
        first_alone: How many votes the first voter casts before the others come.
        fans: Whether voters cast more votes the more they like one of the items.
        crowd: Settings of :class:`Crowd`.
    """

    kind: str
    items: int
    scores: str = "normal"
    asks: str = "random"
    votes: int = LOOKS[-1]
    voters: int | None = None
    first_alone: int = 0
    fans: bool = False
    crowd: Mapping[str, Any] = field(default_factory=lambda: {"taste": TASTE})

    @property
    def name(self) -> str:
        """The kind and the number of items."""
        return f"{self.kind}, {self.items} items"


def drawn(poll: Poll, seed: int) -> Population:
    """Draw all votes of a poll, in order: one voter after another, each with 10 to 50 votes.

    Polls that differ only in who asks have the same items and the same voters.

    >>> found = drawn(Poll("example", items=5, votes=100), seed=0)
    >>> len(found.votes), bool((np.diff(found.votes.voter) >= 0).all())
    (100, True)
    """
    world, rng = (np.random.default_rng([crc32(kind.encode()), seed]) for kind in (poll.scores, poll.kind))
    theta = _scores(poll, world)
    most = math.ceil(poll.votes / _QUOTAS[0]) if poll.voters is None else poll.voters
    people = People.drawn(Crowd(theta=theta, **poll.crowd), most, world)
    voter = _voters(poll, people, world)
    if poll.asks == "sceptic":
        return asked(people, voter, asking(poll.asks, poll.items, poll.votes, int(rng.integers(2**31))), rng)
    if poll.asks == "winner":
        return chained(people, voter, rng)
    return cast(people, Duels(voter, *random_pairs(alike(poll.items), poll.votes, rng)), rng)


def _scores(poll: Poll, rng: np.random.Generator) -> Vector:
    theta = rng.standard_normal(poll.items)
    best, second = np.argsort(-theta)[:2]
    if poll.scores == "equal":
        theta[:] = 0.0
    elif poll.scores == "two best":
        theta[second] = theta[best]
    elif poll.scores == "clear":
        theta[best] = theta[second] + 1.0
    return theta


def _voters(poll: Poll, people: People, rng: np.random.Generator) -> Codes:
    """Return who casts each vote, shape ``(votes,)``."""
    count = len(people.own)
    if poll.voters is not None:
        return np.arange(poll.votes) // _QUOTA % count
    quota = rng.integers(_QUOTAS[0], _QUOTAS[1] + 1, count).astype(np.float64)
    if poll.fans:
        quota *= zeal(people, rng)
    if poll.first_alone:
        quota[0] = poll.first_alone
    return np.repeat(np.arange(count), np.ceil(quota).astype(np.int64))[: poll.votes]


def looks(votes: int) -> list[int]:
    """Return the numbers of votes at which a poll of ``votes`` votes in the end is looked at.

    >>> looks(100)
    [23, 27, 33, 39, 47, 50, 57, 68, 82, 98, 100]
    """
    steps = int(math.log(votes / LOOKS[0]) / math.log(_CLOSER)) + 1
    closer = {int(LOOKS[0] * _CLOSER**step) for step in range(steps)}
    return sorted(closer | {look for look in LOOKS if look <= votes})


def study(poll: Poll, seed: int, ranker: Ranker = ranked, decider: Decider | None = None) -> list[Row]:
    """Look at a poll until it can stop, and at :data:`LOOKS` also after that; one row per look (see :data:`SCHEMA`)."""
    population, rows, has_stopped = drawn(poll, seed), list[Row](), False
    for look in looks(poll.votes):
        if has_stopped and look not in LOOKS:
            continue
        row = at(population, look, ranker, decider or partial(decided, forecasts=look in LOOKS))
        has_stopped |= row["state"] == "won" and row["whole"]
        rows.append({"seed": seed, **row})
    return rows


def at(population: Population, look: int, ranker: Ranker, decider: Decider) -> Row:
    """Return what is said after ``look`` votes."""
    every = population.votes
    votes = every.select(np.arange(len(every)) < look)
    ranking = ranker(votes)
    group, said = next(ranking.components()), decider(votes, ranking)[0]
    place = {item: number for number, item in enumerate(every.items)}
    members = [place[standing.item] for standing in group]
    return {
        "votes": look,
        "voters": len(np.unique(votes.cast_by)),
        "whole": len(group) == len(every.items),
        "state": said.state,
        "named": said.leader is not None,
        "wrong": is_wrong(said, place, members, population.truth),
        "low": None if said.needed is None else look + said.needed[0],
        "high": None if said.needed is None else look + said.needed[1],
        "first": is_best(members[0], members, population.truth),
        "said": group[0].best,
    }


# ---------------------------------------------------------------------- over studies


class Stop(NamedTuple):
    """When a study stopped."""

    votes: float
    """At how many votes; infinite if never."""
    before: int
    """At how many votes it did not stop yet, the last time it was looked at before."""
    wrong: bool
    """Whether the winner is not the best item."""


def stop_of(rows: pl.DataFrame) -> Stop:
    """Return when a study stopped, from its rows in order."""
    won = (rows["state"] == "won") & rows["whole"]
    if not won.any():
        return Stop(math.inf, int(rows["votes"][-1]), wrong=False)
    place = int(won.arg_max() or 0)
    return Stop(float(rows["votes"][place]), int(rows["votes"][place - 1]) if place else 0, bool(rows["wrong"][place]))


def held(stop: Stop, low: float, high: float) -> bool:
    """Return whether a forecast of the number of votes includes a time in (``stop.before``, ``stop.votes``]."""
    return low <= stop.votes and high > stop.before


def summary(rows: pl.DataFrame) -> Row:
    """Return what happened in all studies of a poll.

    Returns:
        ``studies``; ``stopped`` and ``false`` (stops with a wrong winner), each a :class:`Share`; ``median``, the
        number of votes at which half have stopped; and ``looks``, a record per number of votes in :data:`LOOKS`. It
        has the mean number of ``voters``; for each state a share of the verdicts in it that name wrong items; how many
        studies are still ``running``; the share of forecasts that ``held``; how many are ``open``, without an upper
        end; and their median ``width``, the upper end over the lower end of the further votes.
    """
    studies = rows.partition_by("seed", maintain_order=True)
    stops = [stop_of(study) for study in studies]
    found = []
    for look in sorted(set(LOOKS) & set(rows["votes"])):
        here = rows.filter(pl.col("votes") == look)
        record: Row = {"votes": look, "voters": float(here["voters"].mean())}
        for state in STATES:
            chosen = here.filter(pl.col("state") == state)
            record[state] = Share(int(chosen["wrong"].sum()), len(chosen))
        running = [
            (stop, row) for stop, row in zip(stops, here.iter_rows(named=True), strict=True) if stop.votes > look
        ]
        forecasts = [(stop, row["low"], row["high"]) for stop, row in running if row["low"] is not None]
        record |= {
            "running": len(running),
            "held": Share(sum(held(*forecast) for forecast in forecasts), len(forecasts)),
            "open": sum(math.isinf(high) for _, _, high in forecasts),
            "width": float(np.median([_ratio(low - look, high - look) for _, low, high in forecasts]))
            if forecasts
            else None,
        }
        found.append(record)
    times = np.array([stop.votes for stop in stops])
    count, stopped = len(stops), int(np.isfinite(times).sum())
    return {
        "studies": count,
        "stopped": Share(stopped, count),
        "false": Share(sum(stop.wrong for stop in stops), count),
        "median": float(np.sort(times)[(count - 1) // 2]),
        "looks": found,
    }


def _ratio(low: float, high: float) -> float:
    return 1.0 if low == high else high / max(low, 1.0)


# ---------------------------------------------------------------------- the polls


_ASKING = {"random": "", "sceptic": ", Sceptic asks"}
"""Who asks, and what is added to a poll's name."""


def _polls() -> dict[str, Poll]:
    found = [Poll("random pairs", items) for items in (2, 5, 12, 30)]
    found += [Poll("Sceptic asks", items, asks="sceptic") for items in (5, 12, 30)]
    found += [Poll(f"voters alike{name}", 12, asks=asks, crowd={}) for asks, name in _ASKING.items()]
    for asks, name in _ASKING.items():
        found += [
            Poll(f"clear best{like}{name}", 12, scores="clear", asks=asks, crowd=crowd)
            for like, crowd in (("", {"taste": TASTE}), (", voters alike", {}))
        ]
        found.append(Poll(f"two equal best{name}", 12, scores="two best", asks=asks))
        found += [
            Poll(f"equal items{name}", items, scores="equal", asks=asks)
            for items in ((2, 5, 12, 30) if asks == "random" else (5, 12))
        ]
    found += [Poll(name, 5, voters=count, votes=1600) for count, name in ((1, "one voter"), (2, "two voters"))]
    found += [Poll("one casts the first 100", items, first_alone=100, votes=3200) for items in (5, 12)]
    found.append(Poll("two divisive items", 12, crowd={"taste": TASTE, "divided": (0, 1)}))
    found.append(Poll("winner stays", 12, asks="winner"))
    found.append(Poll("fans vote more", 12, fans=True))
    return {poll.name: poll for poll in found}


POLLS = _polls()
"""All polls, by name."""
