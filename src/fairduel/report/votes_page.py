"""One self-contained page about recorded votes: what they say, in words first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fairduel.files import write_atomically
from fairduel.report.page import Drawn, data_uri
from fairduel.report.templating import render
from fairduel.report.votes_figures import MOST_ITEMS, draw_standings, draw_win_matrix
from fairduel.votes.bradley_terry import wins
from fairduel.votes.ranking import Ranking, Standing
from fairduel.votes.votes import Ties, Votes

_COLUMNS = (
    "item",
    "rank",
    "range",
    "score",
    "± error",
    "beats the average",
    "best",
    "votes",
    "won",
    "mean weight",
    "plain rank",
)


@dataclass(frozen=True)
class PageTable:
    """A table: its first ``text`` columns are words, the others numbers that are written already."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    text: int = 1


@dataclass(frozen=True)
class Section:
    """A part of the page under its own heading."""

    title: str
    paragraphs: Sequence[str] = ()
    tables: Sequence[PageTable] = ()
    figures: Sequence[Drawn] = ()


def write_votes_report(
    path: Path,
    *,
    title: str,
    summary: Sequence[str],
    sections: Sequence[Section],
    settings: Mapping[str, Any],
    command: str,
) -> None:
    """Write the page: the ``summary`` on top, then the ``sections``, and every setting at the bottom."""
    parts = [
        {"section": section, "figures": [(drawn.caption, data_uri(drawn)) for drawn in section.figures]}
        for section in sections
    ]
    written = {name: _written(value) for name, value in settings.items()}
    page = render("votes.html", title=title, summary=summary, parts=parts, settings=written, command=command)
    write_atomically(path, page.encode())


def ranking_sections(ranking: Ranking, votes: Votes, *, ties: Ties) -> list[Section]:
    """The ranking as figure and table, and who beat whom; figures are of the largest group of items."""
    groups = list(ranking.components())
    shown = groups[0]
    which = f" of the largest of {len(groups)} groups" if len(groups) > 1 else ""
    some = f" Only the first {MOST_ITEMS} of {len(shown)} items are drawn." if len(shown) > MOST_ITEMS else ""
    order = [votes.items.index(standing.item) for standing in shown]
    won = wins(votes, ties=ties)[np.ix_(order, order)]
    names = [standing.item for standing in shown]
    explained = (
        "The range of a rank: with 95 % confidence all true ranks lie in their ranges. Best: the probability of being "
        "the best item. Mean weight: a vote counts less than 1 where little else is known about its two items, because "
        "there a false vote would change most. Plain rank: where all votes count alike."
    )
    return [
        Section(
            "Ranking",
            [explained, *ranking.notes],
            [
                PageTable(
                    _COLUMNS,
                    [_row(standing) for standing in group],
                    f"Group {number}" if len(groups) > 1 else "",
                )
                for number, group in enumerate(groups, start=1)
            ],
            [Drawn(f"Scores{which}, the best on top.{some}", draw_standings(shown))],
        ),
        Section(
            "Who beat whom",
            ["A row shows how often its item won against each other one: red is often, blue rarely, grey has no vote."],
            figures=[Drawn(f"Win matrix{which}, best first.{some}", draw_win_matrix(names, won))],
        ),
    ]


def _written(value: Any) -> str:
    """A setting as text.

    >>> _written({"first": "a", "second": "b"}), _written([0.5, 2.0]), _written(None)
    ('first = a, second = b', '0.5, 2', 'none')
    """
    if isinstance(value, Mapping):
        return ", ".join(f"{name} = {_written(entry)}" for name, entry in value.items()) or "none"
    if isinstance(value, (list, tuple)):
        return ", ".join(_written(entry) for entry in value) or "none"
    if isinstance(value, float):
        return f"{value:.6g}"
    return "none" if value is None else str(value)


def _row(standing: Standing) -> list[str]:
    return [
        standing.item,
        f"{standing.rank}",
        rank_range(standing),
        f"{standing.score:+.2f}",
        f"{standing.error:.2f}",
        f"{standing.chance:.0%}",
        f"{standing.best:.3f}",
        f"{standing.games:,.0f}",
        f"{standing.win_rate:.0%}",
        f"{standing.mean_weight:.2f}",
        f"{standing.plain_rank}",
    ]


def rank_range(standing: Standing) -> str:
    """The interval of a rank.

    >>> from types import SimpleNamespace
    >>> rank_range(SimpleNamespace(rank_low=2, rank_high=3))
    '2–3'
    """
    low, high = standing.rank_low, standing.rank_high
    return f"{low}" if low == high else f"{low}–{high}"
