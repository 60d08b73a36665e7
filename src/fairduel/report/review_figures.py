"""Figures of a review: votes needed, and the advantage of being shown first."""

import math
from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from fairduel.report.figures import STYLE
from fairduel.votes.planning import Need
from fairduel.votes.position import BAND, Position

MAX_NEEDS = 30
"""A figure of more neighbours would fill several screens."""
_SEPARATED, _NEEDED, _SOFT = "#0072B2", "#D55E00", "#999999"
_MAX_NAME = 24
_LEAST_REACH = 0.03  # of the axis of shares, on either side of ½


def draw_needs(needs: Sequence[Need], votes: int, *, width: float = 8.4) -> Figure:
    """Draw the votes that separate each item from the next, best on top, next to the present number of votes."""
    shown = [need for need in needs[:MAX_NEEDS] if math.isfinite(need.votes)]
    heights = np.arange(len(shown))[::-1]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width, 1.5 + 0.24 * len(shown)), layout="constrained")
        axis = figure.subplots()
        for separated, colour, marker, label in (
            (False, _NEEDED, "o", "not separated yet"),
            (True, _SEPARATED, "s", "already separated"),
        ):
            chosen = [place for place, need in enumerate(shown) if need.separated is separated]
            if chosen:
                axis.plot([shown[place].votes for place in chosen], heights[chosen], marker, color=colour, label=label)
        axis.axvline(votes, color=_SOFT, lw=1.2, ls="--", label="votes now")
        axis.set_xscale("log")
        axis.set_yticks(heights, [f"{need.rank}. {_short(need.item)}" for need in shown])
        axis.set_ylim(-0.8, len(shown) - 0.2)
        axis.set_xlabel("votes that separate it from the next item")
        figure.legend(loc="outside lower center", ncols=3 if width > 5 else 2, fontsize=9)
        return figure


def draw_position(position: Position, *, width: float = 8.4) -> Figure:
    """Draw the share of the item shown first, with its interval, over the band in which it is immaterial."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width, 1.5), layout="constrained")
        axis = figure.subplots()
        axis.axvspan(0.5 - BAND, 0.5 + BAND, color="#56B4E9", alpha=0.35, lw=0, label="immaterial")
        axis.axvline(0.5, color=_SOFT, lw=0.8)
        reach = [[position.share - position.low], [position.high - position.share]]
        axis.errorbar([position.share], [0.0], xerr=reach, fmt="o", color=_NEEDED, capsize=3, label="95% interval")
        axis.set_yticks([])
        axis.grid(visible=False, axis="y")
        widest = max(_LEAST_REACH, 1.15 * (position.high - 0.5), 1.15 * (0.5 - position.low))
        axis.set_xlim(0.5 - widest, 0.5 + widest)
        axis.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0 if widest > 0.06 else 1))
        axis.set_xlabel("share of the item shown first, if both are equal")
        figure.legend(loc="outside upper center", ncols=2, fontsize=9)
        return figure


def _short(name: str) -> str:
    return name if len(name) <= _MAX_NAME else name[: _MAX_NAME - 1] + "…"
