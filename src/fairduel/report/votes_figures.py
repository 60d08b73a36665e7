"""Figures of a ranking: scores and the win matrix."""

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from fairduel.duel import Matrix
from fairduel.report.figures import STYLE
from fairduel.report.votes_tables import short_name
from fairduel.votes.ranking import Standing

MAX_ITEMS = 60
"""A win matrix of more items would not be readable."""
MAX_SCORES = 30
"""A figure of more scores would fill several screens."""
_MAX_WITHOUT_TOP_LABELS = 20
_WEIGHTED, _PLAIN = "#D55E00", "#0072B2"
_MAX_NUMBERED = 14


def draw_standings(standings: Sequence[Standing], *, width: float = 8.4) -> Figure:
    """Draw scores with 95% intervals, best on top, next to plain Bradley–Terry scores."""
    shown = standings[:MAX_SCORES]
    heights = np.arange(len(shown))[::-1]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width, 1.3 + 0.24 * len(shown)), layout="constrained")
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
