"""When votes were cast: stretches of the file, and the time that a voter needs for a vote."""

import math

import numpy as np
import polars as pl

from fairduel.duel import Vector
from fairduel.votes.votes import Indices, Votes

STRETCHES = 10
_SESSION_BREAK = 30 * 60.0  # seconds: a longer gap is the time between two visits, not the time for a vote
LONGEST_ANSWER = 1e8
"""In seconds: larger times are timestamps."""


def time_order(votes: Votes) -> Indices:
    """Return the place of each vote in time, from 0, shape (n,).

    Votes are in the order of their timestamps (unknown ones last). In a file without timestamps, rows are taken to be
    in time order.
    """
    place = np.arange(len(votes))
    if votes.time is not None and has_timestamps(votes):
        place[np.argsort(votes.time, kind="stable")] = np.arange(len(votes))
    return place


def has_timestamps(votes: Votes) -> bool:
    """Return whether the times say when votes were cast, rather than how long voters took.

    >>> has_timestamps(Votes.from_arrays("ab", [0] * 3, [1] * 3, [1] * 3, time=[5, 9, 7]))
    False
    """
    return _gaps(votes) is not None


def stretches(votes: Votes) -> Indices:
    """Return in which of ten equally long stretches of ``time_order`` each vote was cast, shape (n,).

    >>> stretches(Votes.from_arrays("ab", [0] * 5, [1] * 5, [1] * 5, voter=[0] * 5, voters=["u"])).tolist()
    [0, 2, 4, 6, 8]
    """
    return time_order(votes) * STRETCHES // max(len(votes), 1)


def seconds_per_vote(votes: Votes) -> tuple[Vector, float]:
    """Return the median seconds per vote, shape (V,), and the smallest difference between two times per vote.

    Differences of timestamps count, unless they exceed 30 minutes: then the voter was away. Other times are response
    times. NaN if unknown.
    """
    result = np.full(len(votes.voters), np.nan)
    if votes.time is None:
        return result, math.nan
    known = ~np.isnan(votes.time)
    voter, time = _gaps(votes) or (votes.cast_by[known], votes.time[known])
    medians = pl.DataFrame({"voter": voter, "time": time}).group_by("voter").agg(pl.col("time").median())
    result[medians["voter"].to_numpy()] = medians["time"].to_numpy()
    return result, float(np.diff(np.unique(time)).min(initial=math.inf))


def duration_text(seconds: float) -> str:
    """Write a time for readers.

    >>> duration_text(4.26), duration_text(90.0), duration_text(7200.0)
    ('4.3 seconds', '1.5 minutes', '2 hours')
    """
    size, unit = next(each for each in ((3600.0, "hours"), (60.0, "minutes"), (0.0, "seconds")) if seconds >= each[0])
    return f"{seconds / (size or 1.0):.2g} {unit}"


def _gaps(votes: Votes) -> tuple[Indices, Vector] | None:
    """Return the voter and the seconds of each gap between two votes of one visit, or None if times are no timestamps.

    Timestamps are times that never decrease from one vote of a voter to the next, or that mostly exceed three years. If
    voters are unknown, all votes count as one voter's.
    """
    time = np.zeros(0) if votes.time is None else votes.time
    known = np.flatnonzero(~np.isnan(time))
    who = np.zeros(len(votes), np.int64) if votes.voter is None else votes.voter.astype(np.int64)
    voter, time = who[known], time[known]
    in_file = np.argsort(voter, kind="stable")
    gaps = np.diff(time[in_file])[np.diff(voter[in_file]) == 0]
    if not (len(gaps) and (gaps >= 0.0).all()) and not (len(time) and np.median(time) > LONGEST_ANSWER):
        return None
    order = np.lexsort((time, voter))
    gaps = np.diff(time[order])
    kept = (np.diff(voter[order]) == 0) & (gaps <= _SESSION_BREAK)
    return voter[order][1:][kept], gaps[kept]
