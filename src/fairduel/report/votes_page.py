"""The reports on recorded votes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fairduel.report.figures import NARROW
from fairduel.report.page import Drawn, Page, Section, write_page
from fairduel.report.text_table import TextTable
from fairduel.report.votes_figures import MAX_ITEMS, MAX_SCORES, draw_standings, draw_win_matrix
from fairduel.report.votes_tables import certificates_explained, certified_columns, effects_table, ranking_cells
from fairduel.votes.bradley_terry import wins
from fairduel.votes.ranking import Ranking, Standing
from fairduel.votes.votes import Votes

_COLUMNS = ("item", "rank", "range", "score", "± error", "beats the average", "best", "votes", "won")
_WEIGHT_COLUMNS = ("mean weight", "plain rank")
_FALSE = (
    "A false vote may be flipped, tied or missing; a voter who lies may answer all their duels in any way. Weights and "
    "ridge stay the same. Proven: fewer cannot change the rank, whichever they are. Found: these do, in an exact refit."
)
_NAMED = 10  # items that the alternative text of a figure names


def write_votes_report(
    path: Path,
    *,
    title: str,
    summary: Sequence[str],
    sections: Sequence[Section],
    settings: Mapping[str, Any],
    command: str,
) -> None:
    """Write the page at ``path``: the summary first, then the sections, then the settings."""
    last = Section("Settings", terms=dict(_terms(settings)))
    write_page(path.parent, Page(title, conclusions=summary, sections=[*sections, last], command=command))


def ranking_section(ranking: Ranking, _: Votes) -> Section:
    """Build the standings."""
    groups = list(ranking.components())
    explained = (
        "Range: with 95% confidence, all true ranks lie in their ranges. Best: the probability of being the best "
        "item. Scores are shrunken towards 0, the average, the more the less is known about the item. "
        "Mean weight: a vote counts less than 1 if little else is known about its two items, because a false "
        "vote does the most damage there. Plain rank: the rank if all votes count the same."
    )
    certified = certified_columns(ranking)
    cells = ranking_cells(ranking, digits=2)
    tables = [
        TextTable.of(
            (row for row, each in zip(cells, ranking.standings, strict=True) if each.component == group[0].component),
            (*_COLUMNS, *certified, *_WEIGHT_COLUMNS),
            f"Group {group[0].group}" if len(groups) > 1 else "Standings",
        )
        for group in groups
    ]
    scores = ", ".join(f"{each.rank}. {each.item} {each.score:+.2f}" for each in groups[0][:_NAMED])
    figure = Drawn(
        _caption(groups, "Scores{which}, best first.", MAX_SCORES),
        draw_standings(groups[0]),
        alt=f"Scores with 95% intervals. Best {min(_NAMED, len(groups[0]))}: {scores}.",
        name="standings",
        narrow=draw_standings(groups[0], width=NARROW),
    )
    explanations = [explained, *([f"{certificates_explained(ranking)} {_FALSE}"] if certified else []), *ranking.notes]
    return Section("Ranking", explanations, tables, [figure])


def effects_section(ranking: Ranking, _: Votes) -> Section | None:
    """Build the effects of features per vote, or None without any."""
    if not ranking.effects:
        return None
    explained = (
        "These numbers of each vote were fitted together with the scores, so the ranking holds for equal features. "
        "Effect: log-odds in favour of an item whose feature is larger by one root mean square; error: its standard "
        "error. Plain ranks and the win matrix do not allow for them."
    )
    return Section("Features per vote", [explained], [effects_table(ranking)])


def win_matrix_section(ranking: Ranking, votes: Votes) -> Section:
    """Build the win matrix."""
    groups = list(ranking.components())
    names = [standing.item for standing in groups[0]]
    order = [votes.items.index(name) for name in names]
    figure = draw_win_matrix(names, wins(votes, ties=ranking.settings["ties"])[np.ix_(order, order)])
    won = ", ".join(f"{each.item} {each.win_rate:.0%}" for each in groups[0][:_NAMED])
    alt = f"Heatmap of how often each item beat each other item. Share of all its votes that an item won: {won}."
    drawn = Drawn(_caption(groups, "Win matrix{which}, best first.", MAX_ITEMS), figure, alt=alt, name="win-matrix")
    explained = "Each row shows how often its item beat each other item. Hatched cells had no votes."
    return Section("Who beat whom", [explained], figures=[drawn])


def _caption(groups: Sequence[Sequence[Standing]], text: str, most: int) -> str:
    """Fill in ``{which}`` group is shown, and add a note if only its first ``most`` items are."""
    which = f" of the largest of {len(groups)} groups" if len(groups) > 1 else ""
    count = len(groups[0])
    note = f" Only the first {most} of {count} items are shown." if count > most else ""
    return text.format(which=which) + note


RANKING_SECTIONS: list[Callable[[Ranking, Votes], Section | None]] = [
    ranking_section,
    effects_section,
    win_matrix_section,
]
"""The sections of a ranking's page, in order."""


def ranking_sections(ranking: Ranking, votes: Votes) -> list[Section]:
    """Build all sections of the page that have content; figures show the largest group of items."""
    return [section for build in RANKING_SECTIONS if (section := build(ranking, votes)) is not None]


def _terms(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the settings with readable names, those of an audit's parts one by one.

    >>> dict(_terms({"both_bad": 0, "evidence": {"level": 0.05}}))
    {'both bad': '0', 'evidence: level': '0.05'}
    """
    for name, value in settings.items():
        if name in ("evidence", "ranking"):
            yield from _terms(value, f"{name}: ")
        else:
            yield prefix + name.replace("_", " "), _text(value)


def _text(value: Any) -> str:
    """Return a setting as text.

    >>> _text({"first": "a", "second": "b"}), _text([0.5, 2.0]), _text(None), _text(4713), _text(True)
    ('first = a, second = b', '0.5, 2', 'none', '4,713', 'yes')
    """
    if isinstance(value, Mapping):
        return ", ".join(f"{name} = {_text(entry)}" for name, entry in value.items()) or "none"
    if isinstance(value, (list, tuple)):
        return ", ".join(_text(entry) for entry in value) or "none"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return "none" if value is None else str(value)
