"""Figures of experiments and sweeps; each agent keeps its colour throughout."""

import functools
import io
import math
import unicodedata
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal
from xml.sax.saxutils import escape

import matplotlib as mpl
import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, StrMethodFormatter

from fairduel.agents import loaded_class
from fairduel.duel import Matrix, Vector
from fairduel.experiments import Curves, Lines, Shares, title_of
from fairduel.experiments.inference import exponent
from fairduel.experiments.results import Results
from fairduel.report.sweep_means import SweepMeans
from fairduel.report.tables import lines_of, recommended_best
from fairduel.text import printable_lines

# The colours of Okabe and Ito's colour-blind-safe palette that no agent uses.
_OTHER_COLOURS = ("#000000", "#56B4E9", "#999999")
_SETTING_COLOURS = ("#0072B2", "#D55E00")
_DASHES = ("-", "--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)))
_MAX_POINTS = 400
# Fonts with glyphs that matplotlib's own lacks, where they are installed; those with bitmaps only cannot be drawn.
_WORLD_FONTS = (
    *("Noto Sans CJK SC", "Noto Sans CJK JP", "Source Han Sans SC", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei"),
    *("PingFang SC", "Hiragino Sans", "Microsoft YaHei", "Yu Gothic", "Malgun Gothic", "Arial Unicode MS"),
    *("Noto Sans Devanagari", "Noto Sans Thai", "Noto Sans Bengali", "Noto Sans Tamil"),
    *("Noto Emoji", "Segoe UI Emoji", "Segoe UI Symbol", "Symbola", "Unifont"),
)
_INSTALLED = {font.name for font in fontManager.ttflist}
NARROW = 5.0
"""The width of a figure for phones, in inches."""
STYLE: dict[Any, Any] = {
    "font.family": ["sans-serif", *(name for name in _WORLD_FONTS if name in _INSTALLED)],
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "axes.titlesize": 11,
    "legend.frameon": False,
    "svg.hashsalt": "fairduel",
    "pdf.fonttype": 42,  # TrueType fonts, so that text in a PDF can be selected and edited
    "text.parse_math": False,  # names may contain dollar signs
}


def draw(results: Results, number: int, *, columns: int = 3) -> Figure:
    """Draw one view of an experiment, by its position, with at most ``columns`` panels side by side (1 for phones)."""
    view = results.experiment.views[number]
    with mpl.rc_context(STYLE):
        figure, axes = _panels([entry.panel for entry in results.experiment.entries], columns)
        for panel, axis in axes.items():
            if isinstance(view, Curves):
                _curves(axis, results, panel, number)
            elif isinstance(view, Shares):
                _shares(axis, results, panel)
            else:
                _lines(axis, results, panel, view)
        label = {Curves: "cumulative regret", Shares: "best recommended (%)", Lines: "final regret"}[type(view)]
        if columns == 1:
            for axis in axes.values():
                axis.set_ylabel(label)
        else:
            figure.supylabel(label, fontsize=10)
        _legend(figure, list(axes.values()))
        return figure


def draw_means(means: SweepMeans) -> Figure:
    """Draw means with their standard errors, joined in the order of the points."""
    points = means.points
    with mpl.rc_context(STYLE):
        figure, axes = _panels([point.panel for point in points])
        agent_of = {point.line: point.agent for point in points}
        styles = dict(zip(agent_of, _styles(list(agent_of.values())), strict=True))
        names = list(dict.fromkeys(point.x for point in points))
        are_numbers = not any(isinstance(name, str) for name in names)
        for panel, axis in axes.items():
            for line, style in styles.items():
                drawn = [point for point in points if (point.panel, point.line) == (panel, line)]
                if drawn:
                    x = [point.x if are_numbers else names.index(point.x) for point in drawn]
                    mean, error = [point.mean for point in drawn], [point.error for point in drawn]
                    _errorbar(axis, x, mean, error, line, style if are_numbers else style | {"linestyle": ""})
            if not are_numbers:
                axis.set_xticks(range(len(names)), [str(name) for name in names])
                axis.set_xlim(-0.5, len(names) - 0.5)
            axis.set_xlabel(means.x_label)
            axis.set_ylim(bottom=0)
        figure.supylabel(means.y_label, fontsize=10)
        _legend(figure, list(axes.values()))
        return figure


def _panels(names: Sequence[str], columns: int = 3) -> tuple[Figure, dict[str, Axes]]:
    """Return a figure with one titled panel per distinct name."""
    panels = list(dict.fromkeys(names))
    if columns == 1:
        width, height = NARROW - 0.4, 3.3
    else:
        width, height = (3.5, 2.9) if len(panels) > 1 else (6.6, 4.4)
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    layout = ConstrainedLayoutEngine(h_pad=0.12, w_pad=0.08)
    figure = Figure(figsize=(width * columns + 0.4, height * rows + 1.0), layout=layout)
    axes: list[Axes] = list(figure.subplots(rows, columns, squeeze=False).ravel())
    for axis, panel in zip(axes, panels, strict=False):
        axis.set_title(panel)
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    return figure, dict(zip(panels, axes, strict=False))


def _curves(axis: Axes, results: Results, panel: str, number: int) -> None:
    entries = [
        e for e in results.experiment.entries if e.panel == panel and (e.drawn_in is None or number in e.drawn_in)
    ]
    for entry, style in zip(entries, _styles([entry.cell.agent for entry in entries]), strict=True):
        index = results.experiment.entries.index(entry)
        traces = results.traces.lazy().filter(pl.col("entry") == index).select("regret").collect()
        regret = traces["regret"].to_numpy().reshape(len(results.seeds), -1)
        points = np.unique(np.linspace(0, regret.shape[1] - 1, _MAX_POINTS).astype(int))
        centre = regret[:, points].mean(axis=0)
        [drawn] = axis.plot(points + 1, centre, label=entry.legend, linewidth=1.6, **style)
        if len(regret) > 1:
            error = regret[:, points].std(axis=0, ddof=1) / np.sqrt(len(regret))
            axis.fill_between(points + 1, centre - error, centre + error, color=drawn.get_color(), alpha=0.18, lw=0)
    axis.set_xlabel("round")
    axis.xaxis.set_major_locator(MaxNLocator(5))
    axis.set_xlim(left=0)
    axis.set_ylim(bottom=0)


def _lines(axis: Axes, results: Results, panel: str, view: Lines) -> None:
    groups = {label: entries for (name, label), entries in lines_of(results).items() if name == panel}
    styles = _styles([entries[0].cell.agent for entries in groups.values()])
    one_panel = len({name for name, _ in lines_of(results)}) == 1
    for entries, style in zip(groups.values(), styles, strict=True):
        regret = np.stack([results.of(entry)["regret"].to_numpy() for entry in entries], axis=1)
        error = regret.std(axis=0, ddof=1) / np.sqrt(len(regret)) if len(regret) > 1 else None
        x = np.array([entry.x or 0.0 for entry in entries])
        one_setting = len({entry.setting for entry in entries}) == 1
        label = entries[0].legend if one_setting else title_of(entries[0].cell.agent)
        power = exponent(x, regret) if view.fit else None
        if power is not None and math.isfinite(power.value):
            _power_line(axis, x, regret, power.value, style)
            if one_panel:  # the panels share a legend
                interval = "" if math.isnan(power.low) else f" [{power.low:.2f}, {power.high:.2f}]"
                label += f": exponent {power.value:.2f}{interval}".replace("-", "−")
        _errorbar(axis, x, regret.mean(axis=0), error, label, style | ({"linestyle": ""} if view.fit else {}))
    if view.scale == "log":
        ticks = sorted({entry.x for entries in groups.values() for entry in entries if entry.x is not None})
        scale_to_logarithms(axis, {tick: f"{tick:g}" for tick in ticks})
    else:
        axis.set_ylim(bottom=0)
    axis.set_xlabel(view.x_label)


def _shares(axis: Axes, results: Results, panel: str) -> None:
    """Draw one column per agent, with one marker per setting, side by side."""
    entries = [entry for entry in results.experiment.entries if entry.panel == panel]
    agents = list(dict.fromkeys(entry.cell.agent for entry in entries))
    settings = list(dict.fromkeys(entry.setting for entry in entries))
    for place, setting in enumerate(settings):
        same = [entry for entry in entries if entry.setting == setting]
        shares = 100.0 * np.array([recommended_best(results, entry) for entry in same])  # value, error, low, high
        x = np.array([agents.index(entry.cell.agent) for entry in same]) + 0.3 * (place - (len(settings) - 1) / 2.0)
        reach = np.abs(shares[:, 2:].T - shares[:, 0])
        _errorbar(axis, x, shares[:, 0], reach, setting, {"color": _SETTING_COLOURS[place], "linestyle": ""})
    axis.set_xticks(range(len(agents)), [title_of(agent) for agent in agents], rotation=40, ha="right")
    axis.set_xlim(-0.6, len(agents) - 0.4)
    axis.set_ylim(-4.0, 104.0)


def _power_line(axis: Axes, x: Vector, regret: Matrix, power: float, style: dict[str, Any]) -> None:
    """Draw c·x^power, with the c that fits the logarithms of the mean regrets best; ``regret`` is (n, m)."""
    scale = np.exp(np.log(regret.mean(axis=0)).mean() - power * np.log(x).mean())
    smooth = np.geomspace(x.min(), x.max(), 100)
    axis.plot(smooth, scale * smooth**power, lw=1.3, **style)


def scale_to_logarithms(axis: Axes, ticks: Mapping[float, str]) -> None:
    """Make both axes logarithmic, with these ticks on the x axis."""
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xticks(list(ticks), list(ticks.values()))
    axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axis.minorticks_off()


def _errorbar(axis: Axes, x: Any, mean: Any, error: Any, label: str, style: dict[str, Any]) -> None:
    axis.errorbar(x, mean, yerr=error, label=label, marker="o", ms=3.5, capsize=2, lw=1.4, **style)


def _styles(agents: list[str]) -> list[dict[str, Any]]:
    """Return each agent's colour, with a different dash for each of its lines.

    If all lines belong to one agent, its settings get a colour scale instead.
    """
    if len(set(agents)) == 1 and len(agents) > 1:
        return [{"color": shade} for shade in mpl.colormaps["viridis"](np.linspace(0.0, 0.88, len(agents)))]
    kinds = {agent: loaded_class(agent) for agent in agents}
    own = {agent: kind.colour for agent, kind in kinds.items() if kind is not None and kind.colour}
    others = [agent for agent in kinds if agent not in own]
    styles = []
    for place, agent in enumerate(agents):
        colour = own.get(agent) or _OTHER_COLOURS[others.index(agent) % len(_OTHER_COLOURS)]
        dash = _DASHES[agents[:place].count(agent) % len(_DASHES)]
        styles.append({"color": colour, "linestyle": dash})
    return styles


def _legend(figure: Figure, axes: Sequence[Axes]) -> None:
    handles: dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    entry_width = 0.07 * max(map(len, handles)) + 0.6  # inches
    columns = min(len(handles), max(1, int(figure.get_figwidth() // entry_width)))
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=columns, fontsize=9)


def image(figure: Figure, kind: Literal["png", "svg", "pdf"]) -> bytes:
    """Return the figure as an image file; the same figure always gives the same bytes.

    An SVG file holds characters that no installed font has as text, which browsers draw with fonts of their own.
    """
    _rewrite(figure, printable_lines)
    stand_ins: dict[str, str] = {}
    if kind == "svg":
        _rewrite(figure, functools.partial(_stand_in, stand_ins=stand_ins))
    date = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    buffer = io.BytesIO()
    style = {**STYLE, "svg.fonttype": "none" if stand_ins else "path"}
    with mpl.rc_context(style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph .* missing from", UserWarning)
        figure.savefig(buffer, format=kind, dpi=150, bbox_inches="tight", metadata=date)
    figure.set_layout_engine("none")  # the next image reuses this layout, which is slow to compute
    if not stand_ins:
        return buffer.getvalue()
    _rewrite(figure, lambda line: stand_ins.get(line, line))
    drawn = buffer.getvalue().decode()
    for stand_in, line in stand_ins.items():
        drawn = drawn.replace(f">{escape(stand_in)}<", f">{escape(line)}<")
    return drawn.encode()


def _rewrite(figure: Figure, change: Callable[[str], str]) -> None:
    """Change the texts of a figure, the labels of its ticks included."""
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if isinstance(axis.get_major_locator(), FixedLocator):
                labels = [label.get_text() for label in axis.get_ticklabels()]
                changed = [change(label) for label in labels]
                if changed != labels:
                    axis.set_ticklabels(changed)
    for text in figure.findobj(Text):
        if isinstance(text, Text) and change(text.get_text()) != text.get_text():
            text.set_text(change(text.get_text()))


def _stand_in(line: str, stand_ins: dict[str, str]) -> str:
    """Return a line that is as wide as browsers will draw it, and unique: the missing glyphs are dashes of 1 em."""
    if line.isascii() or line in stand_ins or not (missing := set(map(ord, line)) - _glyphs()):
        return line
    known = next((stand_in for stand_in, original in stand_ins.items() if original == line), None)
    dashes = "".join(_dash(character) if ord(character) in missing else character for character in line)
    stand_in = known or dashes + "\u200b" * (len(stand_ins) + 1)  # of width 0
    stand_ins[stand_in] = line
    return stand_in


def _dash(character: str) -> str:
    return "" if unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Mn") else "—"


@functools.cache
def _glyphs() -> frozenset[int]:
    """The characters that the fonts of ``STYLE`` have."""
    files = [findfont(FontProperties(family=[name])) for name in STYLE["font.family"]]
    return frozenset(code for file in files for code in get_font(file).get_charmap()) | {ord("\n")}
