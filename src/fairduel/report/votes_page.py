"""One self-contained page about recorded votes: what they say, in words first."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fairduel.files import write_atomically
from fairduel.report.page import Drawn, data_uri
from fairduel.report.templating import render
from fairduel.report.votes_figures import MOST_ITEMS, draw_standings, draw_win_matrix
from fairduel.report.votes_tables import TextTable, standing_cells
from fairduel.votes.bradley_terry import wins
from fairduel.votes.ranking import Ranking, Standing
from fairduel.votes.votes import Ties, Votes

_TITLES = {
    "item": "item",
    "rank": "rank",
    "range": "range",
    "score": "score",
    "error": "± error",
    "chance": "beats the average",
    "best": "best",
    "votes": "votes",
    "won": "won",
    "weight": "mean weight",
    "plain": "plain rank",
}


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


class Ranked(NamedTuple):
    """A ranking with the votes that made it."""

    ranking: Ranking
    votes: Votes
    ties: Ties

    @property
    def drawn(self) -> tuple[Standing, ...]:
        """The largest group of items, which figures show."""
        return next(self.ranking.components())

    def caption(self, what: str, order: str) -> str:
        """Say what a figure shows, and of whom."""
        groups = max(standing.component for standing in self.ranking.standings)
        which = f" of the largest of {groups} groups" if groups > 1 else ""
        shown = len(self.drawn)
        some = f" Only the first {MOST_ITEMS} of {shown} items are drawn." if shown > MOST_ITEMS else ""
        return f"{what}{which}, {order}.{some}"


def ranking_section(found: Ranked) -> Section:
    """The standings."""
    groups = list(found.ranking.components())
    explained = (
        "The range of a rank: with 95 % confidence all true ranks lie in their ranges. Best: the probability of being "
        "the best item. Mean weight: a vote counts less than 1 where little else is known about its two items, because "
        "there a false vote would change most. Plain rank: where all votes count alike."
    )
    tables = [
        TextTable.of(
            (standing_cells(standing, digits=2) for standing in group),
            _TITLES,
            f"Group {number}" if len(groups) > 1 else "",
        )
        for number, group in enumerate(groups, start=1)
    ]
    figure = Drawn(found.caption("Scores", "the best on top"), draw_standings(found.drawn))
    return Section("Ranking", [explained, *found.ranking.notes], tables, [figure])


def win_matrix_section(found: Ranked) -> Section:
    """Who beat whom."""
    order = [found.votes.items.index(standing.item) for standing in found.drawn]
    won = wins(found.votes, ties=found.ties)[np.ix_(order, order)]
    figure = draw_win_matrix([standing.item for standing in found.drawn], won)
    return Section(
        "Who beat whom",
        ["A row shows how often its item won against each other one: red is often, blue rarely, grey has no vote."],
        figures=[Drawn(found.caption("Win matrix", "best first"), figure)],
    )


RANKING_SECTIONS: list[Callable[[Ranked], Section]] = [ranking_section, win_matrix_section]
"""The sections of the page of a ranking, in their order."""


def ranking_sections(ranking: Ranking, votes: Votes, *, ties: Ties) -> list[Section]:
    """All sections of the page; figures are of the largest group of items."""
    return [build(Ranked(ranking, votes, ties)) for build in RANKING_SECTIONS]


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
