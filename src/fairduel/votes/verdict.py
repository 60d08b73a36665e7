"""What the votes decide: one verdict on each group of items, which every command, page and interface repeats."""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from fairduel.votes.ranking.standings import Certificate
from fairduel.words import counted_noun, listed, rough, shortened

CONFIDENCE = 0.95
"""Of all ranges, intervals and winners."""
State = Literal["too early", "tie", "leads", "won"]
LEAST_VOTES = 5
"""Votes per item below which it is too early to say anything."""
EQUAL = 0.25
"""Log-odds within which two items are practically equal: the better one wins at most 56% of their duels."""
_HEADLINES = 3  # of the largest groups
_MOST_TIERS = 6


@dataclass(frozen=True)
class Forecast:
    """How many more votes it takes until an item has won, with a probability of at least 80%."""

    low: float
    high: float
    """Infinite if it is too early to tell. ``low`` is infinite if above 1,000 times the votes so far."""
    per_voter: float | None
    """Votes per voter; None if unknown."""

    @property
    def sentence(self) -> str:
        """The forecast in a sentence.

        >>> print(Forecast(120, 900.0, 10.0).sentence)
        A winner takes 120 to 900 more votes like these (12 to 90 voters with 10 votes each).
        >>> print(Forecast(120, math.inf, None).sentence)
        A winner takes at least 120 more votes like these; it is too early to tell how many at most.
        """
        if math.isinf(self.low):
            return "No realistic number of votes like these makes a winner."
        if math.isinf(self.high):
            voters = f" ({self._voters(self.low)})" if self.per_voter else ""
            most = "it is too early to tell how many at most"
            return f"A winner takes at least {rough(self.low)} more votes like these{voters}; {most}."
        voters = f" ({self._voters(self.low, self.high)})" if self.per_voter else ""
        return f"A winner takes {_span(self.low, self.high)} more votes like these{voters}."

    def _voters(self, *votes: float) -> str:
        each = self.per_voter or 1.0
        people = [math.ceil(number / each) for number in votes]
        quota = counted_noun(round(each), "vote")
        if people[-1] == 1:
            return f"1 voter with {quota}"
        return f"{_span(*people) if len(people) > 1 else rough(people[0])} voters with {quota} each"


def _span(low: float, high: float) -> str:
    return rough(low) if rough(low) == rough(high) else f"{rough(low)} to {rough(high)}"


VERDICT = (
    *("state", "group", "leader", "items", "of", "votes", "best", "evidence", "bar", "lies", "can_stop"),
    *("votes_low", "votes_high", "missing", "headline", "details"),
)
"""The fields and properties of a verdict's record."""


@dataclass(frozen=True)
class Verdict:
    """What the votes decide about a group of items. Created by :func:`decide`."""

    state: State
    group: str
    """Name of the group; empty if there is only one."""
    items: tuple[str, ...]
    """Items that may be the best, the one with the highest score first."""
    of: int
    """Number of items in the group."""
    votes: int
    """Votes that count in the group."""
    best: float
    """Probability that the first item is the best."""
    evidence: float
    """log E of the first item against the one from which it is hardest to tell."""
    bar: float
    """log E needed."""
    lies: int
    """C: how many votes may be false."""
    voters: float | None
    """How many voters with equally many votes say as much as those of the group; None if voters are unknown."""
    per_voter: float | None
    """Votes per voter; None if unknown."""
    doubts: tuple[str, ...]
    """Why nobody can have won, if something else speaks against it."""
    certificate: Certificate | None = None
    """How many false votes, or lying voters, put another item first, if known."""
    equal: bool = False
    """Whether the ``items`` are practically equal."""
    tiers: tuple[tuple[str, ...], ...] = ()
    """Groups that the votes tell apart, the best first."""
    further: Callable[[], tuple[float, float]] | None = field(default=None, repr=False, compare=False)
    """Returns how many more votes it takes at least and at most, as multiples of those so far."""

    @property
    def leader(self) -> str | None:
        """The item that has won or leads; None if no item can be named."""
        return self.items[0] if self.state in ("won", "leads") else None

    @property
    def can_stop(self) -> bool:
        """Whether an item has won, with 95% confidence, however often this is asked."""
        return self.state == "won"

    @property
    def has_few_votes(self) -> bool:
        """Whether it is too early to say anything, and to forecast anything."""
        return self.votes < LEAST_VOTES * self.of

    @functools.cached_property
    def forecast(self) -> Forecast | None:
        """Votes still needed; None if an item has won, or nobody can say."""
        if self.further is None or self.can_stop or self.has_few_votes or self.doubts:
            return None
        low, high = (times * self.votes for times in self.further())
        low, high = (each if math.isinf(each) else float(math.ceil(each)) for each in (low, high))
        return Forecast(low, high, self.per_voter)

    @property
    def headline(self) -> str:
        """The verdict in one sentence."""
        return f"{f'Group {self.group}: ' if self.group else ''}{self._headline}"

    @property
    def _headline(self) -> str:
        if self.state == "won":
            return f"{self.items[0]} has won against {counted_noun(self.of - 1, 'other item')}, so you can stop."
        if self.state == "leads":
            return f"{self.items[0]} leads, the best of {self.of:,} items with a probability {self._chance}."
        if self.state == "tie":
            return f"{shortened(self.items)} are tied for first of {self.of:,} items."
        return f"It is too early to say which of {self.of:,} items is the best."

    @property
    def _chance(self) -> str:
        return "above 99%" if self.best >= 0.995 else f"of {self.best:.0%}"

    @property
    def reasons(self) -> list[str]:
        """Why the verdict is what it is, in sentences."""
        found = list(self.doubts)
        if self.state == "won":
            found.append(f"That holds with {CONFIDENCE:.0%} confidence, no matter how often you look.")
        elif self.has_few_votes:
            few = f"{counted_noun(self.votes, 'vote')} on {self.of:,} items {'is' if self.votes == 1 else 'are'} fewer"
            found.append(f"{few} than {LEAST_VOTES} per item.")
        elif self.equal:
            share = 1.0 / (1.0 + math.exp(-EQUAL))
            found.append(f"They are practically equal: the better of two would win at most {share:.0%} of their duels.")
        elif self.state == "tie" and not self.doubts and self.best >= CONFIDENCE:
            found.append(
                f"{self.items[0]} is the best with a probability {self._chance}, but equal items, too, show such a gap "
                "at some looks."
            )
        elif self.state == "tie" and not self.doubts:
            found.append("The votes do not show which of them is the best.")
        elif self.state == "too early" and not self.doubts:
            every = "each of them" if len(self.items) == self.of else shortened(self.items)
            found.append(f"By these votes, {every} may still be the best.")
        elif self.state == "leads":
            lies = f", even if {counted_noun(self.lies, 'vote')} {'is' if self.lies == 1 else 'are'} false"
            found.append(
                "By these votes no other item may be the best, but a winner takes more: that must hold no matter how "
                f"often you look{lies if self.lies else ''}."
            )
        return found

    @property
    def tiered(self) -> str:
        """The tiers in one line; empty if there is only one, or one per item of two, or they contradict the verdict."""
        if not len(self.tiers) > 1 or self.of == 2:  # the headline says as much about two items
            return ""
        if self.doubts or (len(self.items) == 1 and len(self.tiers[0]) > 1):
            return ""
        shown = [shortened(tier) for tier in self.tiers[:_MOST_TIERS]]
        more = [f"{len(self.tiers) - _MOST_TIERS} more tiers"] if len(self.tiers) > _MOST_TIERS else []
        return f"Tiers that the votes tell apart, best first: {'; '.join([*shown, *more])}."

    @property
    def survives(self) -> str:
        """How many false votes, or lying voters, the first place survives; empty if unknown or no item is first."""
        return self.certificate.sentence if self.certificate is not None and self.leader is not None else ""

    @property
    def missing(self) -> str:
        """What it takes until an item has won; empty if one has."""
        if self.can_stop or self.doubts:
            return ""
        if self.forecast is None:
            return "It is too early to tell how many more votes that takes."
        if self.equal:
            return f"If they are equal, no number of votes makes a winner. {self.forecast.sentence}"
        return self.forecast.sentence

    @property
    def assumes(self) -> str:
        """What the verdict assumes, in a sentence."""
        false = {0: "no counted vote is false", 1: "at most 1 counted vote is false"}.get(
            self.lies, f"at most {self.lies:,} counted votes are false"
        )
        votes = "votes are independent of each other" if self.voters is None else "other voters would vote like these"
        return f"This assumes that {false}, and that {votes}."

    @property
    def sentences(self) -> list[str]:
        """The verdict with its evidence, what is missing and what it assumes, conclusion first."""
        return [self.headline, *self.details]

    @property
    def details(self) -> list[str]:
        """What follows the headline."""
        return [each for each in (*self.reasons, self.tiered, self.survives, self.missing, self.assumes) if each]

    @property
    def votes_low(self) -> int | None:
        """Votes still needed, at least; None if nobody can say."""
        return None if self.forecast is None or math.isinf(self.forecast.low) else int(self.forecast.low)

    @property
    def votes_high(self) -> int | None:
        """Votes still needed, at most; None if it is too early to tell."""
        return None if self.forecast is None or math.isinf(self.forecast.high) else int(self.forecast.high)

    def record(self) -> dict[str, Any]:
        """Return the verdict as plain values, for JSON."""
        return {name: getattr(self, name) for name in VERDICT} | {"items": list(self.items)}


def headlines(verdicts: Sequence[Verdict]) -> list[str]:
    """Return the headlines of the largest groups, and how many of the others have a winner."""
    found = [verdict.headline for verdict in verdicts[:_HEADLINES]]
    if len(verdicts) > _HEADLINES:
        won = [verdict.items[0] for verdict in verdicts if verdict.can_stop]
        names = f": {listed(won)}" if 0 < len(won) <= _HEADLINES else ""
        more = f"{len(verdicts) - _HEADLINES} more groups are in the table"
        found.append(f"{more}; {len(won)} of all have a winner{names}.")
    return found
