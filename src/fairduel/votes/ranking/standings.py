"""The place of each item in a ranking, and the columns of a table of them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_type_hints

from fairduel.votes.columns import Column, Columns, Output, Row
from fairduel.words import counted_noun, ordinal

if TYPE_CHECKING:
    from fairduel.votes.ranking.rank import Ranking


@dataclass(frozen=True)
class Standing:
    """One item's rank among the items it can be compared with; ``RANKING`` says what its fields mean."""

    item: str
    component: int
    group: str
    rank: int
    rank_low: int
    rank_high: int
    own_low: int
    own_high: int
    candidate: bool
    tier: int
    score: float
    error: float
    score_low: float
    score_high: float
    best: float
    best_error: float
    chance: float
    games: float
    wins: float
    mean_weight: float
    plain_rank: int
    plain_score: float

    @property
    def win_rate(self) -> float:
        """Share of its votes that the item won."""
        return self.wins / self.games if self.games else math.nan


@dataclass(frozen=True)
class FalseVotes:
    """Answers that change a rank."""

    rows: tuple[int, ...]
    """File rows of the votes that are false."""
    results: tuple[float, ...]
    """Their false results: 1 if the first item wins, 0 if the second wins, 0.5 for a tie."""


@dataclass(frozen=True)
class Certificate:
    """How many false votes, or lying voters, it takes to change one item's rank."""

    item: str
    group: str
    """Component of the comparison graph, as in its :class:`Standing`."""
    rank: int
    votes_found: int | None
    """Size of the smallest set of false votes found that changes the rank; None if no set was found."""
    votes_proven: int
    """Proven minimum: fewer false votes cannot change the rank."""
    voters_found: int | None
    """The same for voters who lie; None if no set was found, or voters are unknown."""
    voters_proven: int | None
    """Proven minimum of voters who lie; None if voters are unknown."""
    rival: str
    """Item that changes places with this one if the votes found are false."""
    false_votes: FalseVotes | None = None
    """Votes found."""
    lies: FalseVotes | None = None
    """False votes of the voters found."""

    def record(self) -> dict[str, Any]:
        """Return the certificate as plain values, without the votes found."""
        return {name: getattr(self, name) for name in CERTIFICATE}

    @property
    def sentence(self) -> str:
        """The certificate in one sentence.

        >>> print(Certificate("A", "1", 1, 41, 29, 5, 4, "B").sentence)
        A stays first even if any 28 votes are false, or any 3 voters lie (proven); 41 false votes, or 5 lying voters, \
can change that.
        >>> print(Certificate("tea", "1", 2, 1, 1, None, None, "milk").sentence)
        tea is 2nd, but 1 false vote can change that.
        """
        place = "first" if self.rank == 1 else ordinal(self.rank)
        votes, voters = self.votes_proven - 1, (self.voters_proven or 1) - 1
        kept = [f"any {counted_noun(votes, 'vote')} {'is' if votes == 1 else 'are'} false"] if votes else []
        kept += [f"any {counted_noun(voters, 'voter')} {'lies' if voters == 1 else 'lie'}"] if voters else []
        found = [counted_noun(self.votes_found, "false vote")] if self.votes_found else []
        found += [counted_noun(self.voters_found, "lying voter")] if self.voters_found else []
        can = f"{', or '.join(found)}{',' if len(found) > 1 else ''} can" if found else "nothing was found that can"
        if not kept:
            return f"{self.item} is {place}, but {can} change that."
        return f"{self.item} stays {place} even if {', or '.join(kept)} (proven); {can} change that."


CERTIFICATE = (
    "item",
    "group",
    "rank",
    "votes_found",
    "votes_proven",
    "voters_found",
    "voters_proven",
    "rival",
    "sentence",
)
"""The fields and properties of a certificate's record."""
CERTIFIED = ("false_votes", "lying_voters")
"""Columns of certificates, for readers."""
_TYPES = get_type_hints(Standing)
_DIGITS = {"terminal": 3, "report": 2, "live": 2}
_CHANGES = "how many it takes to change the rank, from the proven minimum to the fewest found"


def _of_standings(name: str, meaning: str, **more: Any) -> Column["Ranking"]:
    """Return the column of an attribute of each standing."""

    def values(ranking: "Ranking") -> list[Any]:
        return [getattr(standing, name) for standing in ranking.standings]

    settings: dict[str, Any] = {"type": _TYPES.get(name)} | more
    return Column(name=name, meaning=meaning, values=values, **settings)


def _of_certificates(name: str, meaning: str, kind: Any) -> Column["Ranking"]:
    """Return the column of an attribute of each certificate; there is none without certificates."""

    def values(ranking: "Ranking") -> list[Any] | None:
        known = {each.item: getattr(each, name) for each in ranking.certificates}
        return [known.get(standing.item) for standing in ranking.standings] if known else None

    return Column(name=name, meaning=meaning, values=values, type=kind)


def _text(name: str, form: str = "{}") -> Callable[[Row, Output], str]:
    return lambda row, _: form.format(row[name])


def _several_groups(rows: Sequence[Row]) -> bool:
    return any(row["component"] > 1 for row in rows)


def weighted(rows: Sequence[Row]) -> bool:
    """Whether some vote counts less or more than others, so that weights are worth a column."""
    return any(abs(row["mean_weight"] - 1.0) > 0.005 for row in rows if row["games"])


def _known(name: str) -> Callable[[Sequence[Row]], bool]:
    return lambda rows: any(row.get(name) is not None for row in rows)


def elo(score: float) -> float:
    """Return a score in log-odds on the scale of Elo ratings.

    >>> elo(0.0), elo(math.log(10.0))
    (1500.0, 1900.0)
    """
    return round(1500.0 + 400.0 * score / math.log(10.0), 1)


def rank_range(low: int, high: int) -> str:
    """Write the interval of a rank.

    >>> rank_range(2, 3), rank_range(1, 1)
    ('2–3', '1')
    """
    return f"{low}" if low == high else f"{low}–{high}"


def _score(row: Row, output: Output, name: str = "score") -> str:
    text = f"{row[name]:+.{_DIGITS[output]}f}"
    return text.replace("-", "−") if output == "live" else text


def _share(share: float, output: Output, digits: str) -> str:
    if output != "live":
        return format(share, digits)
    return "> 99%" if share >= 0.995 else "< 1%" if share <= 0.005 else f"{share:.0%}"


def _bounds(proven: int | None, found: int | None) -> str:
    """Write how many it takes: from the proven minimum to the fewest found.

    >>> _bounds(29, 41), _bounds(1, 1), _bounds(3, None), _bounds(None, None)
    ('29–41', '1', '≥ 3', '–')
    """
    if proven is None:
        return "–"
    if found is None:
        return f"≥ {proven:,}"
    return f"{proven:,}" if proven == found else f"{proven:,}–{found:,}"


RANKING: Columns["Ranking"] = [
    _of_standings("item", "the item's name", cell=_text("item"), words=True),
    _of_standings("component", "the number of its group, from 1: items in different groups were never compared"),
    _of_standings(
        "group",
        "the group's context if it has one to itself, otherwise its number; ranks are within a group",
        cell=_text("group"),
        outputs=("terminal", "live"),
        shown_if=_several_groups,
    ),
    _of_standings("rank", "the place by score, from 1", cell=_text("rank")),
    Column(
        name="own_range",
        meaning="where this item is, regardless of the others: on average over the items, 95% of true ranks lie in it",
        cell=lambda row, _: rank_range(row["own_low"], row["own_high"]),
    ),
    _of_standings("own_low", "the lower end of the item's own range"),
    _of_standings("own_high", "the upper end of that range"),
    _of_standings(
        "candidate",
        "whether the item may be the best; with 95% confidence, the best is one of these",
        title="may be best",
        cell=lambda row, _: "yes" if row["candidate"] else "no",
        shown_if=lambda rows: not all(row["candidate"] for row in rows),
        optional=4,
    ),
    _of_standings(
        "tier",
        "the number of the item's tier: with 95% confidence, every item is better than all items of later tiers",
        cell=_text("tier"),
        shown_if=lambda rows: any(row["tier"] > 1 for row in rows),
        optional=3,
    ),
    Column(
        name="range",
        title="joint range",
        meaning="for whole tables: with 95% confidence, all true ranks lie in these ranges at once",
        cell=lambda row, _: rank_range(row["rank_low"], row["rank_high"]),
        optional=6,
    ),
    _of_standings("rank_low", "the lower end of the joint range"),
    _of_standings("rank_high", "the upper end of that range"),
    Column(
        name="interval",
        title="score and its 95% interval",
        meaning="the score as a mark, and its 95% interval as a line",
        cell=lambda row, output: (
            f"{_score(row, output)}, from {_score(row, output, 'score_low')} to {_score(row, output, 'score_high')}"
        ),
        outputs=("live",),
    ),
    _of_standings("score", "log-odds against an average item of the group, which has 0", cell=_score, optional=1),
    _of_standings(
        "error",
        "the standard error of the score",
        cell=lambda row, output: f"{row['error']:.{_DIGITS[output]}f}",
        outputs=("terminal", "report"),
        optional=4,
    ),
    _of_standings("score_low", "the lower end of the 95% interval of the score, for this item alone"),
    _of_standings("score_high", "the upper end of that interval"),
    Column(
        name="elo",
        meaning="the score on the scale of Elo ratings: the average item has 1,500, and 400 points are odds of 10 to 1",
        values=lambda ranking: [elo(standing.score) for standing in ranking.standings],
    ),
    _of_standings(
        "chance",
        "the probability of beating an average item",
        title="beats the average",
        cell=_text("chance", "{:.0%}"),
        outputs=("report",),
    ),
    _of_standings(
        "best",
        "the probability of being the best item",
        cell=lambda row, output: _share(row["best"], output, ".3f"),
        optional=6,
    ),
    _of_standings("best_error", "the Monte Carlo standard error of that probability"),
    _of_standings(
        "games", "the votes on the item, by weight", title="votes", cell=_text("games", "{:,.0f}"), optional=5
    ),
    _of_standings("wins", "the votes that it won; a tie counts as half a win"),
    _of_standings(
        "win_rate",
        "the share of its votes that it won",
        title="won",
        type=float | None,
        cell=lambda row, output: _share(row["win_rate"], output, ".0%") if row["games"] else "–",
        optional=7,
    ),
    Column(
        name=CERTIFIED[0],
        meaning=_CHANGES,
        cell=lambda row, _: _bounds(row["votes_proven"], row["votes_found"]),
        outputs=("terminal", "report"),
        shown_if=_known("votes_proven"),
        optional=2,
    ),
    Column(
        name=CERTIFIED[1],
        meaning=_CHANGES,
        cell=lambda row, _: _bounds(row["voters_proven"], row["voters_found"]),
        outputs=("terminal", "report"),
        shown_if=_known("voters_proven"),
        optional=3,
    ),
    Column(
        name="survives",
        title="survives false votes",
        meaning="the number of false votes that the rank provably withstands",
        cell=lambda row, _: "–" if row["votes_proven"] is None else f"{row['votes_proven'] - 1:,}",
        outputs=("live",),
        shown_if=_known("votes_proven"),
    ),
    _of_standings(
        "mean_weight",
        "what the item's votes count on average",
        title="weight",
        type=float | None,
        cell=_text("mean_weight", "{:.2f}"),
        outputs=("terminal", "report"),
        shown_if=weighted,
        optional=9,
    ),
    _of_standings(
        "plain_rank",
        "the rank by plain Bradley–Terry, which counts all votes equally",
        cell=_text("plain_rank"),
        outputs=("terminal", "report"),
        shown_if=weighted,
        optional=8,
    ),
    _of_standings("plain_score", "the score by plain Bradley–Terry", type=float | None),
    _of_certificates("votes_found", "the fewest false votes found that change the rank", int | None),
    _of_certificates("votes_proven", "the proven minimum: fewer false votes cannot change the rank", int | None),
    _of_certificates("voters_found", "the fewest lying voters found that change the rank", int | None),
    _of_certificates("voters_proven", "the proven minimum: fewer lying voters cannot change the rank", int | None),
    _of_certificates("rival", "the item that changes places with this one", str | None),
]
"""The columns of a ranking."""
