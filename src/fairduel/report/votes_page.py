"""One self-contained page about recorded votes: what they say, in words first."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fairduel.files import write_atomically
from fairduel.report.page import Drawn, data_uri
from fairduel.report.templating import render
from fairduel.report.votes_figures import MOST_ITEMS, draw_standings, draw_win_matrix
from fairduel.report.votes_tables import TextTable, standing_cells
from fairduel.votes.bradley_terry import wins
from fairduel.votes.ranking import Ranking, Standing
from fairduel.votes.votes import Votes

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
class Section:
    """A part of the page under its own heading."""

    title: str
    paragraphs: Sequence[str] = ()
    tables: Sequence[TextTable] = ()
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


def ranking_section(ranking: Ranking, _: Votes) -> Section:
    """The standings."""
    groups = list(ranking.components())
    explained = (
        "The range of a rank: with 95 % confidence all true ranks lie in their ranges. Best: the probability of being "
        "the best item. Mean weight: a vote counts less than 1 where little else is known about its two items, because "
        "there a false vote would change most. Plain rank: where all votes count alike."
    )
    tables = [
        TextTable.of(
            (standing_cells(standing, digits=2) for standing in group),
            _COLUMNS,
            f"Group {number}" if len(groups) > 1 else "",
        )
        for number, group in enumerate(groups, start=1)
    ]
    figure = Drawn(_caption(groups, "Scores{which}, the best on top."), draw_standings(groups[0]))
    return Section("Ranking", [explained, *ranking.notes], tables, [figure])


def win_matrix_section(ranking: Ranking, votes: Votes) -> Section:
    """Who beat whom."""
    groups = list(ranking.components())
    names = [standing.item for standing in groups[0]]
    order = [votes.items.index(name) for name in names]
    figure = draw_win_matrix(names, wins(votes, ties=ranking.settings["ties"])[np.ix_(order, order)])
    return Section(
        "Who beat whom",
        ["A row shows how often its item won against each other one: red is often, blue rarely, grey has no vote."],
        figures=[Drawn(_caption(groups, "Win matrix{which}, best first."), figure)],
    )


def _caption(groups: Sequence[Sequence[Standing]], text: str) -> str:
    """The text, with ``{which}`` of the groups is drawn, and whether all of it."""
    which = f" of the largest of {len(groups)} groups" if len(groups) > 1 else ""
    shown = len(groups[0])
    some = f" Only the first {MOST_ITEMS} of {shown} items are drawn." if shown > MOST_ITEMS else ""
    return text.format(which=which) + some


RANKING_SECTIONS: list[Callable[[Ranking, Votes], Section]] = [ranking_section, win_matrix_section]
"""The sections of the page of a ranking, in their order."""


def ranking_sections(ranking: Ranking, votes: Votes) -> list[Section]:
    """All sections of the page; figures are of the largest group of items."""
    return [build(ranking, votes) for build in RANKING_SECTIONS]


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
