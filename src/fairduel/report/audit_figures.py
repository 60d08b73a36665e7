"""Figures of an audit and of a stress test."""

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
import polars as pl
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, PercentFormatter, StrMethodFormatter

from fairduel.core.bursts import PARTS
from fairduel.report.figures import NARROW, STYLE
from fairduel.votes.bursts import BurstScan
from fairduel.votes.fragile import Fragility
from fairduel.votes.ranking import Ranking
from fairduel.votes.voters import LOG_10, Evidence

MAX_ITEMS = 40
_FLAGGED, _HONEST, _SOFT = "#D55E00", "#0072B2", "#999999"
_MIN_POWER, _MAX_POWER = -3.0, 13.0  # evidence beyond these powers of ten is drawn at the edge
_LINES = {
    "rank_plain": ("plain Bradley–Terry", "#0072B2", "-"),
    "rank_weighted": ("with uncertainty weights", "#E69F00", "--"),
    "rank_ours": ("ours, after the audit", "#D55E00", "-"),
}
_MOST_LEVEL = 8  # labels of an axis; more are turned


def draw_evidence(evidence: Evidence, *, columns: int = 2) -> Figure:
    """Draw every voter's evidence and agreement against their number of votes, flagged voters highlighted."""
    voted = evidence.decisive > 0
    flagged = evidence.flagged & voted
    power = np.clip(evidence.total / LOG_10, _MIN_POWER, _MAX_POWER)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(5.2 * columns, 8.4 / columns), layout=ConstrainedLayoutEngine(w_pad=0.12))
        left, right = figure.subplots(2 // columns, columns)
        for axis, height in ((left, power), (right, evidence.agreement)):
            axis.plot(evidence.votes[voted & ~flagged], height[voted & ~flagged], "o", color=_HONEST, ms=4, alpha=0.5)
            axis.plot(evidence.votes[flagged], height[flagged], "o", color=_FLAGGED, ms=6)
            axis.set_xscale("log")
            _round_numbers(axis.xaxis)
            axis.set_xlabel("votes of the voter")
        needed = evidence.settings["needed_log10_evidence"]
        left.axhline(needed, color=_SOFT, ls="--", lw=1)
        left.annotate(
            "flagged above this line",
            (0.01, needed),
            xycoords=("axes fraction", "data"),
            ha="left",
            va="bottom",
            fontsize=8,
        )
        left.set_ylim(_MIN_POWER - 0.5, _MAX_POWER + 0.8)
        left.set_yticks([-3, 0, 3, 6, 9, 13], ["≤ 1/1000", "1", "10³", "10⁶", "10⁹", "≥ 10¹³"])
        left.set_ylabel("evidence against honest voting")
        right.axhline(0.5, color=_SOFT, ls="--", lw=1)
        right.set_ylim(-0.03, 1.03)
        right.yaxis.set_major_formatter(PercentFormatter(1.0))
        right.set_ylabel("agreement with the other voters")
        figure.legend(
            handles=[
                mpl.lines.Line2D([], [], marker="o", ls="", color=_FLAGGED, label=f"flagged ({int(flagged.sum()):,})"),
                mpl.lines.Line2D([], [], marker="o", ls="", color=_HONEST, alpha=0.5, label="not flagged"),
            ],
            loc="outside lower center",
            ncols=2,
            fontsize=9,
        )
        return figure


def draw_both_ranks(everyone: Ranking, trusted: Ranking, *, width: float = 8.4) -> Figure:
    """Draw each item's rank by all votes and without the flagged voters, ordered by the latter."""
    before = {standing.item: standing for standing in next(everyone.components())}
    shown = [standing for standing in next(trusted.components()) if standing.item in before][:MAX_ITEMS]
    heights = np.arange(len(shown))[::-1]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width, 1.4 + 0.24 * len(shown)), layout="constrained")
        axis = figure.subplots()
        old = np.array([before[standing.item].rank for standing in shown])
        new = np.array([standing.rank for standing in shown])
        axis.hlines(heights, old, new, color=_SOFT, lw=2)
        axis.plot(old, heights, "D", color=_HONEST, ms=6, mfc="none", label="all votes")
        axis.plot(new, heights, "o", color=_FLAGGED, ms=5, label="without the flagged voters")
        axis.set_yticks(heights, [standing.item for standing in shown])
        axis.set_ylim(-0.8, len(shown) - 0.2)
        axis.grid(visible=False, axis="y")
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axis.set_xlabel("rank (1 is best)")
        figure.legend(loc="outside lower center", ncols=2, fontsize=9)
        return figure


def draw_burst(burst: BurstScan, *, width: float = 7.4) -> Figure:
    """Draw by how much the results of each part of the file differ from the others on the same duels."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width, 2.8), layout="constrained")
        axis = figure.subplots()
        begin, end = (place / PARTS for place in burst.window)
        axis.axhline(0.0, color=_SOFT, lw=1)
        axis.axvspan(begin, end, color=_FLAGGED if burst.found else _SOFT, alpha=0.15, lw=0)
        middle = (np.arange(PARTS) + 0.5) / PARTS
        inside = (middle > begin) & (middle < end)
        if burst.excess is not None and burst.error is not None:
            for chosen, colour in ((~inside, _HONEST), (inside, _FLAGGED if burst.found else _HONEST)):
                axis.errorbar(
                    middle[chosen], burst.excess[chosen], 2.0 * burst.error[chosen], fmt="o", color=colour, ms=5, lw=1.2
                )
        axis.set_xlim(0.0, 1.0)
        axis.xaxis.set_major_formatter(PercentFormatter(1.0))
        axis.set_xlabel("votes in the order of " + ("their times" if burst.is_timed else "the file"))
        axis.set_ylabel(f"{'wins' if burst.item else 'agreement'} beyond\nexpected, per vote")
        return figure


def draw_fragility(results: Sequence[Fragility], *, width: float = 7.4) -> Figure:
    """Draw how many votes change the top k: the proven minimum and the number found."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width, 3.6), layout="constrained")
        axis = figure.subplots()
        tops = {(r.group, r.top): r.group or r.what for r in sorted(results, key=lambda result: result.top)}
        for how, colour, shift in (("dropped", _HONEST, -0.12), ("flipped", _FLAGGED, 0.12)):
            drawn = [result for result in results if result.how == how and result.found is not None]
            x = [list(tops).index((result.group, result.top)) + shift for result in drawn]
            found, least = [result.found or 0 for result in drawn], [result.at_least for result in drawn]
            axis.vlines(x, least, found, color=colour, lw=2, alpha=0.5)
            axis.plot(x, found, "o", color=colour, ms=7, label=f"{how}: found")
            axis.plot(x, least, "_", color=colour, ms=12, mew=2, label=f"{how}: proven minimum")
        axis.set_yscale("log")
        _round_numbers(axis.yaxis)
        axis.set_ylim(bottom=0.8)
        axis.set_xticks(range(len(tops)), list(tops.values()), rotation=90 if len(tops) > _MOST_LEVEL else 0)
        axis.set_xlim(-0.5, len(tops) - 0.5)
        axis.set_ylabel("votes needed")
        figure.legend(loc="outside lower center", ncols=2, fontsize=9)
        return figure


def draw_stress(frame: pl.DataFrame, *, attack: str, width: float = 7.4) -> Figure:
    """Draw the target's rank against the size of the attack."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width, 4.4), layout="constrained")
        axis = figure.subplots()
        for name, (label, colour, dash) in _LINES.items():
            if name in frame.columns:
                axis.plot(frame["size"], frame[name], dash, marker="o", ms=4, color=colour, lw=1.6, label=label)
        axis.invert_yaxis()
        axis.yaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axis.set_ylabel(f"rank of {frame['target'][0]} (1 is best)")
        axis.set_xlabel(f"false votes (attack: {attack})")
        figure.legend(loc="outside lower center", ncols=1 if width <= NARROW else 2, fontsize=9)
        return figure


def _round_numbers(axis: Axis) -> None:
    """Label a logarithmic axis with 1, 2, 5, 10, 20, …."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axis.set_minor_formatter(NullFormatter())
