"""Scan recorded votes for a burst: a stretch of votes that differs from the rest, beyond chance and tastes.

:mod:`fairduel.votes.auditing.burst_scores` has the statistic and its level. Votes are compared with others on the same
duel, so an item that appears midway is no difference, and a file sorted by pair, context or voter has none either. The
votes of one voter may be alike: if a stretch holds votes of m voters only, its score is about √m standard errors at
most. So a few voters who are alone in a stretch cannot be told from a burst, and are not reported;
:func:`fairduel.votes.auditing.voters.audit_voters` is for them.
"""

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from scipy.special import gammaln

from fairduel.checks import fraction
from fairduel.core.concluding import FEWEST_VOTES, WINDOWS
from fairduel.duel import Vector
from fairduel.votes.auditing.burst_scores import Stratified, is_sorted_by, largest_difference, parts_of
from fairduel.votes.ranking.rank import Ranking, rank
from fairduel.votes.timing import LONGEST_ANSWER, duration_text, has_timestamps
from fairduel.votes.votes import Codes, Mask, Ties, Votes, distinct_duels, sums
from fairduel.words import counted_noun

_DRAWS, _LEAST_DRAWS = 999, 99
_DRAWN = 2e7  # draws × votes: fewer draws of more votes
_YEAR_2286 = 1e10  # seconds
_BY_CHANCE = math.log(1e-6)  # rows whose order is less likely than this are sorted by result


@dataclass(frozen=True, eq=False)
class BurstScan:
    """What a scan for a burst found: the stretch of votes that differs most from the rest.

    Created by :func:`scan_bursts`.
    """

    votes: Votes
    level: float
    skipped: str = ""
    """Why nothing was scanned; if so, the other fields are empty."""
    is_timed: bool = False
    """Whether votes are in the order of their timestamps, rather than of the file."""
    items_scanned: int = 0
    """Number of items whose results were compared: the best, if there are too many votes for all."""
    draws: int = 0
    p_value: float = 1.0
    window: tuple[int, int] = (0, 0)
    """Parts of the file, of 20, at which the stretch begins and ends."""
    inside: Mask | None = None
    """Which votes are in the stretch, shape (n,)."""
    item: str = ""
    """The item whose results differ most; empty if it is the agreement with the ranking that does."""
    rate: float = math.nan
    """Share of its votes that the item won in the stretch, or that agree with the ranking."""
    usual_rate: float = math.nan
    """The same for the other votes on the same duels."""
    compared: float = 0.0
    """Number of the item's votes in the stretch, or of all its votes, on duels that were also asked elsewhere."""
    gained: tuple[str, ...] = ()
    """Items with more wins than elsewhere, beyond chance."""
    lost: tuple[str, ...] = ()
    excess: Vector | None = None
    """Wins of the item, or agreement, beyond that expected in each part, per vote, shape (20,); NaN without votes."""
    error: Vector | None = None
    """Standard error of ``excess``, shape (20,)."""
    everyone: Ranking | None = None
    """The ranking with the stretch."""
    without: Ranking | None = None
    """The ranking without it, if it is found."""

    @property
    def found(self) -> bool:
        """Whether some stretch differs."""
        return not self.skipped and self.p_value <= self.level

    @property
    def rows(self) -> tuple[int, ...]:
        """File rows of the stretch, if found."""
        return tuple(self.votes.row[self.inside].tolist()) if self.found else ()

    @property
    def where(self) -> str:
        """Where the stretch is, in words."""
        rows = self.votes.row[self.inside]
        votes = counted_noun(len(rows), "vote")
        if not self.is_timed or self.votes.time is None:
            return f"{votes} (rows {rows.min():,} to {rows.max():,})"
        time = self.votes.time[self.inside]
        begin, end = _when(float(np.nanmin(time))), _when(float(np.nanmax(time)))
        return f"{votes} from {begin} to {end}"

    @property
    def changes_leader(self) -> bool:
        """Whether another item is first without the stretch."""
        before, after = self._leaders
        return before != after

    @property
    def _leaders(self) -> tuple[str, str]:
        if self.everyone is None or self.without is None:
            return "", ""
        before, after = (next(ranking.components())[0].item for ranking in (self.everyone, self.without))
        return before, after

    def sentences(self) -> list[str]:
        """Say what was found: the stretch, then what it changes."""
        if self.skipped:
            return [f"Stretches of votes were not compared: {self.skipped}."]
        if not self.found:
            some = self.items_scanned < len(self.votes.items)
            votes = f"votes on the first {counted_noun(self.items_scanned, 'item')}" if some else "votes"
            return [f"No stretch of {votes} differs from the rest (p = {self.p_value:.2g})."]
        what = f"{self.item} won {self.rate:.0%} of {self.compared:,.0f} votes"
        if not self.item:
            what = f"{self.rate:.0%} of {self.compared:,.0f} votes agree with the ranking"
        before, after = self._leaders
        change = f"Without this stretch, {after} has the highest score; with it, {before} has."
        if not self.changes_leader:
            change = f"{after} has the highest score with or without this stretch."
        return [
            f"A stretch of {self.where} differs from the rest (p = {self.p_value:.2g}): {what} there, and "
            f"{self.usual_rate:.0%} of the votes on the same duels elsewhere.",
            change,
        ]

    def advice(self) -> list[str]:
        """Recommend what to do about the stretch, if there is one."""
        if not self.found:
            return []
        before, after = self._leaders
        wait = f" Until then, do not announce {before}: without that stretch, {after} has the highest score."
        return [
            f"Find out what happened during the stretch of {self.where}. False votes are one reading; a release, a new "
            "audience or another way of asking are others, and then its votes are as good as all others. They count "
            f"in every ranking but the one without them.{wait if self.changes_leader else ''}"
        ]

    def record(self) -> dict[str, Any]:
        """Return the findings as plain values, for JSON."""
        found: dict[str, Any] = {
            name: getattr(self, name)
            for name in (
                "found",
                "skipped",
                "p_value",
                "level",
                "draws",
                "is_timed",
                "items_scanned",
                "item",
                "rate",
                "usual_rate",
            )
        }
        if self.everyone is not None and self.without is not None:
            after = {standing.item: standing.rank for standing in self.without.standings}
            found["ranks"] = [
                {"item": each.item, "group": each.group, "with": each.rank, "without": after[each.item]}
                for each in self.everyone.standings
            ]
        return {"sentences": self.sentences(), **found, "gained": self.gained, "lost": self.lost, "rows": self.rows}


def scan_bursts(
    votes: Votes,
    *,
    ties: Ties = "half",
    level: float = 0.05,
    ranking: Ranking | None = None,
    reliability: Vector | None = None,
    seed: int = 0,
) -> BurstScan:
    """Find the stretch of votes that differs most from the rest, and rank the items without it.

    Votes are in the order of their timestamps, if they have any, and otherwise of the file. If all votes are alike,
    whatever the voters' tastes and activity, some stretch is found with probability ``level`` at most.

    Args:
        votes: The votes.
        ties: A tie counts as half a win for each item, or is dropped.
        level: Largest chance of finding a stretch if none differs.
        ranking: The ranking of these votes, if it is known. Default: that of :func:`rank`.
        reliability: Factor of each vote's weight in that ranking, shape ``(n,)``. Default: 1 each.
        seed: Seed of the draws.

    Returns:
        The scan.

    >>> result = np.arange(400) % 3 > 0
    >>> result[320:360] = False
    >>> found = scan_bursts(Votes.from_arrays(["tea", "milk"], [0] * 400, [1] * 400, result))
    >>> found.rows[0], found.rows[-1], found.item, found.rate, round(found.usual_rate, 2)
    (322, 361, 'tea', 0.0, 0.66)
    """
    fraction("level", level)
    everyone = ranking or rank(votes, ties=ties, reliability=reliability)
    is_timed = has_timestamps(votes)
    told = Stratified.of(votes, ties, everyone.scores)
    if skipped := _why_not(votes, told, is_timed=is_timed):
        return BurstScan(votes, level, skipped, is_timed)
    draws = max(int(np.clip(_DRAWN / len(told.place), _LEAST_DRAWS, _DRAWS)), math.ceil(1.0 / level) - 1)
    found = largest_difference(told, draws, level, np.random.default_rng(seed))
    begin, end = WINDOWS[found.window]
    inside = (parts_of(votes) >= begin) & (parts_of(votes) < end)
    without = None
    if found.p_value <= level:
        factor = np.ones(len(votes)) if reliability is None else reliability
        without = rank(votes, ties=ties, reliability=np.where(inside, 0.0, factor))
    names = np.array([*votes.items, ""], dtype=object)
    rate, usual_rate, compared = told.rates(found.direction, inside[told.place])
    excess, error = told.per_vote(found.direction, found.parts)
    return BurstScan(
        votes=votes,
        level=level,
        is_timed=is_timed,
        items_scanned=int(told.scanned[:-1].sum()),
        draws=draws,
        p_value=found.p_value,
        window=(int(begin), int(end)),
        inside=inside,
        item=names[found.direction],
        rate=rate,
        usual_rate=usual_rate,
        compared=compared,
        gained=tuple(names[found.gained]),
        lost=tuple(names[found.lost]),
        excess=excess,
        error=error,
        everyone=everyone,
        without=without,
    )


def _why_not(votes: Votes, told: Stratified, *, is_timed: bool) -> str:
    """Say why the votes cannot be scanned; empty if they can."""
    if len(told.place) < FEWEST_VOTES:
        return f"fewer than {FEWEST_VOTES} votes are too few"
    if len(told.low) == len(told.place):
        return "no duel was asked twice"
    if is_timed:
        return ""
    reason = ""
    if (votes.weight > 1.0).any():
        reason = "stand for several votes"
    elif votes.context is not None and is_sorted_by(votes.context):
        reason = "are sorted by context"
    elif _is_sorted_by_result(votes, None) or _is_sorted_by_result(votes, votes.context):
        reason = "are sorted by result"
    return f"rows {reason} and have no timestamps, so they are not in time order" if reason else ""


def _is_sorted_by_result(votes: Votes, context: Codes | None) -> bool:
    """Whether equal results stand together on every duel, per ``context`` (n,) if given, which is not by chance."""
    *_, stratum, turned = distinct_duels(votes.first, votes.second, len(votes.items), context)
    result = (2.0 * np.where(turned, 1.0 - votes.result, votes.result)).astype(np.int64)
    order = np.argsort(stratum, kind="stable")
    changes = (np.diff(stratum[order]) == 0) & (np.diff(result[order]) != 0)
    count = sums(3 * stratum + result, 3 * (int(stratum.max()) + 1)).reshape(-1, 3)
    kinds = (count > 0.0).sum(axis=1)
    if changes.sum() > (kinds - 1).sum():
        return False
    likely = gammaln(kinds + 1.0) + gammaln(count + 1.0).sum(axis=1) - gammaln(count.sum(axis=1) + 1.0)
    return bool(likely.sum() < _BY_CHANCE)


def _when(seconds: float) -> str:
    """Write a time for readers.

    >>> _when(1_700_000_000.0), _when(5400.0)
    ('2023-11-14 22:13', '1.5 hours')
    """
    while seconds > _YEAR_2286:  # milliseconds, or less
        seconds /= 1000.0
    if seconds > LONGEST_ANSWER:
        return datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%d %H:%M")
    return duration_text(seconds)
