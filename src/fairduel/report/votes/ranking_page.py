"""The reports on recorded votes: sections and figures of a ranking."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from fairduel.duel import Matrix
from fairduel.report.drawing import STYLE, WIDTH
from fairduel.report.page import Drawn, Page, Section, write_page
from fairduel.report.text_table import tabulate
from fairduel.report.votes.votes_tables import effects_table, short_name
from fairduel.votes.columns import explained, shown
from fairduel.votes.ranking.bradley_terry import wins
from fairduel.votes.ranking.rank import Ranking
from fairduel.votes.ranking.standings import CERTIFIED, RANKING, Standing
from fairduel.votes.votes import Ties, Votes

MAX_ITEMS = 60
"""A win matrix of more items would not be readable."""
MAX_SCORES = 30
"""A figure of more scores would fill several screens."""
_MAX_WITHOUT_TOP_LABELS = 20
_WEIGHTED, _PLAIN = "#D55E00", "#0072B2"
_MAX_NUMBERED = 14


def draw_standings(standings: Sequence[Standing]) -> Figure:
    """Draw scores with 95% intervals, best on top, next to plain Bradley–Terry scores."""
    shown = standings[:MAX_SCORES]
    heights = np.arange(len(shown))[::-1]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 1.3 + 0.24 * len(shown)), layout="constrained")
        axis = figure.subplots()
        reach = [standing.score_high - standing.score for standing in shown]
        scores = [standing.score for standing in shown]
        axis.errorbar(
            scores,
            heights,
            xerr=reach,
            fmt="o",
            color=_WEIGHTED,
            ms=5,
            capsize=2.5,
            lw=1.4,
            label="score, 95% interval",
        )
        plain = [standing.plain_score for standing in shown]
        axis.plot(plain, heights, "D", color=_PLAIN, ms=6, mfc="none", zorder=3, label="plain Bradley–Terry")
        axis.axvline(0.0, color="#999999", lw=0.8)
        axis.set_yticks(heights, [f"{standing.rank}. {short_name(standing.item)}" for standing in shown])
        axis.set_ylim(-0.8, len(shown) - 0.2)
        axis.grid(visible=False, axis="y")
        axis.tick_params(labeltop=len(shown) > _MAX_WITHOUT_TOP_LABELS)
        axis.set_xlabel("score in log-odds (0 is the average item)")
        figure.legend(loc="outside lower center", ncols=2, fontsize=9)
        return figure


def draw_win_matrix(names: Sequence[str], won: Matrix) -> Figure:
    """Draw the share of votes that each row's item won against each column's; ``won`` is (K, K), in that order."""
    count = min(len(names), MAX_ITEMS)
    won = won[:count, :count]
    games = won + won.T
    share = np.divide(won, games, out=np.full(won.shape, np.nan), where=games > 0.0)
    side = max(3.6, 1.8 + 0.165 * count) if count > _MAX_NUMBERED else 2.2 + 0.5 * count
    with mpl.rc_context({**STYLE, "axes.grid": False}):
        figure = Figure(figsize=(side + 1.2, side), layout="constrained")
        axis = figure.subplots()
        colours = mpl.colormaps["RdBu_r"].with_extremes(bad="none")
        axis.patch.set(hatch="////", facecolor="#f4f4f4", edgecolor="#bbbbbb")  # shows through where nobody voted
        drawn = axis.imshow(share, cmap=colours, vmin=0.0, vmax=1.0, interpolation="nearest")
        size = 9 if count <= 20 else 6.5
        axis.set_xticks(range(count), [short_name(name) for name in names[:count]], rotation=90, fontsize=size)
        axis.set_yticks(range(count), [short_name(name) for name in names[:count]], fontsize=size)
        axis.spines[:].set_visible(False)
        axis.tick_params(length=0)
        if count <= _MAX_NUMBERED:
            for i, j in zip(*np.nonzero(games), strict=True):
                colour = "white" if abs(share[i, j] - 0.5) > 0.3 else "#1d2330"
                axis.text(j, i, f"{share[i, j]:.0%}", ha="center", va="center", fontsize=8, color=colour)
        bar = figure.colorbar(drawn, ax=axis, shrink=0.6, format=PercentFormatter(1.0))
        bar.set_label("share of votes won by the row's item")
        bar.outline.set_visible(False)
        return figure


_EXPLAINED = ("own_range", "candidate", "tier", "range", "best", "mean_weight", "plain_rank")
_FALSE = (
    "A false vote may be flipped, tied or missing; a voter who lies may answer all their duels in any way. Weights and "
    "ridge stay the same. Proven: no smaller number can change the rank. Found: these do, in an exact refit."
)
_NAMED = 10  # items that the alternative text of a figure names


def write_votes_report(
    folder: Path,
    *,
    title: str,
    summary: Sequence[str],
    sections: Sequence[Section],
    settings: Mapping[str, Any],
    command: str,
) -> Path:
    """Write the page to ``folder`` and return its path: the summary first, then the sections, then the settings."""
    last = Section("Settings", terms=dict(_terms(settings)))
    return write_page(folder, Page(title, conclusions=summary, sections=[*sections, last], command=command))


def ranking_section(ranking: Ranking, _: Votes) -> Section:
    """Build the standings."""
    groups, rows = list(ranking.components()), ranking.records()
    tables = [
        tabulate(
            RANKING,
            [row for row in rows if row["component"] == group[0].component],
            "report",
            f"Group {group[0].group}" if len(groups) > 1 else "Standings",
            among=rows,
        )
        for group in groups
    ]
    columns = shown(RANKING, rows, "report")
    scores = ", ".join(f"{each.rank}. {each.item} {each.score:+.2f}" for each in groups[0][:_NAMED])
    figure = Drawn(
        _caption(groups, "Scores{which}, best first.", MAX_SCORES),
        draw_standings(groups[0]),
        alt=f"Scores with 95% intervals. Best {min(_NAMED, len(groups[0]))}: {scores}.",
        name="standings",
    )
    certified = [each for each in columns if each.name in CERTIFIED]
    explanations = [
        explained([each for each in columns if each.name in _EXPLAINED]),
        *([f"{explained(certified)} {_FALSE}"] if certified else []),
        *ranking.notes,
    ]
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
    figure = draw_win_matrix(names, _wins_among(names[:MAX_ITEMS], votes, ranking.settings["ties"]))
    won = ", ".join(f"{each.item} {each.win_rate:.0%}" for each in groups[0][:_NAMED])
    alt = f"Heatmap of how often each item beat each other item. Share of all its votes that an item won: {won}."
    drawn = Drawn(_caption(groups, "Win matrix{which}, best first.", MAX_ITEMS), figure, alt=alt, name="win-matrix")
    explained = "Each row shows how often its item beat each other item. Hatched cells had no votes."
    return Section("Who beat whom", [explained], figures=[drawn])


def _wins_among(names: Sequence[str], votes: Votes, ties: Ties) -> Matrix:
    """Return the wins of row over column among these items only, shape (m, m)."""
    known, place = {name: number for number, name in enumerate(names)}, np.full(len(votes.items), -1)
    for item, name in enumerate(votes.items):
        place[item] = known.get(name, -1)
    inside = votes.select((place[votes.first] >= 0) & (place[votes.second] >= 0))
    return wins(replace(inside, items=tuple(names), first=place[inside.first], second=place[inside.second]), ties=ties)


def _caption(groups: Sequence[Sequence[Standing]], text: str, most: int) -> str:
    """Fill in ``{which}`` group is shown, and add a note if only its first ``most`` items are."""
    which = f" of the largest of {len(groups)} groups" if len(groups) > 1 else ""
    count = len(groups[0])
    note = f" Only the first {most} of {count:,} items are shown." if count > most else ""
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
