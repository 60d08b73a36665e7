"""Figures of experiments and sweeps; each agent keeps its colour throughout."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import LogLocator, MaxNLocator, StrMethodFormatter

from fairduel.agents import loaded_class
from fairduel.duel import Matrix, Vector
from fairduel.errors import BadInputError, unknown_name
from fairduel.experiments.experiment import Curves, Lines, Results, Shares, TradeOff
from fairduel.experiments.sentences import title_of
from fairduel.report.drawing import STYLE, WIDTH
from fairduel.simulation.query import query
from fairduel.simulation.sweep import Grid
from fairduel.stats import exponent

# The colours of Okabe and Ito's colour-blind-safe palette that no agent uses.
_OTHER_COLOURS = ("#000000", "#56B4E9", "#999999")
_SETTING_COLOURS = ("#0072B2", "#D55E00")
_DASHES = ("-", "--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)))
_MAX_POINTS = 400


@dataclass(frozen=True)
class Point:
    """The mean of some runs and its place in a figure."""

    panel: str
    line: str
    agent: str
    """The agent whose colour the line gets; empty unless lines are split by agent."""
    x: float | str
    mean: float
    error: float
    """Standard error of the mean; NaN for one run."""
    runs: int


@dataclass(frozen=True)
class SweepMeans:
    """The points of a figure and its axis labels."""

    points: list[Point]
    mixed: list[str]
    """Grid columns that vary within a point, which is rarely intended: a mean over two horizons, say."""
    x_label: str
    y_label: str


def sweep_means(
    folder: Path, *, x: str, y: str, by: Sequence[str], panel: Sequence[str], where: str = "true"
) -> SweepMeans:
    """Return the mean of column ``y`` for every value of ``x``, ``by`` and ``panel``."""
    grid = Grid.load(folder)
    types = {row[0]: row[1] for row in query(folder, "DESCRIBE runs").rows}
    for name in (x, y, *by, *panel):
        if name not in types:
            raise unknown_name("column", name, types, where="in runs")
    if types[y] not in _NUMBERS | {"BOOLEAN"}:
        raise BadInputError(f"cannot plot the mean of {y}: it is not numeric.")
    chosen = list(dict.fromkeys([x, *by, *panel]))
    others = [name for name in (*grid.columns, *grid.settings) if name not in chosen]
    measures = [f"avg({y}::DOUBLE)", f"stddev_samp({y}::DOUBLE) / sqrt(count({y}))", f"count({y})"]
    measures += [f"count(DISTINCT coalesce({name}::VARCHAR, ''))" for name in others]
    sql = (
        f"SELECT {', '.join(chosen + measures)} FROM runs "  # noqa: S608  # all but the condition are columns
        f"WHERE {x} IS NOT NULL AND NOT isnan({y}::DOUBLE) AND ({where}\n) GROUP BY ALL ORDER BY ALL"
    )
    points, mixed = [], set()
    for row in query(folder, sql).rows:
        values = dict(zip(chosen, row, strict=False))
        mean, error, runs, *differing = row[len(chosen) :]
        mixed |= {name for name, count in zip(others, differing, strict=True) if count > 1}
        points.append(
            Point(
                panel=_label(panel, values, grid),
                line=_label(by, values, grid),
                agent=values["agent"] if "agent" in by else "",
                x=float(values[x]) if types[x] in _NUMBERS else _value(values[x]),
                mean=mean,
                error=float("nan") if error is None else error,
                runs=runs,
            )
        )
    if not points:
        raise BadInputError(f"nothing to plot: no run has a {x} and meets the condition {where}.")
    measure = f"final {_words(y, grid)}" if y.endswith("regret") else _words(y, grid)
    return SweepMeans(
        points,
        mixed=[name for name in others if name in mixed],
        x_label=_words(x, grid),
        y_label=f"{measure} (mean ± standard error)",
    )


_NUMBERS = {"BIGINT", "INTEGER", "DOUBLE", "FLOAT"}


def _words(column: str, grid: Grid) -> str:
    """Return a column's name in words: the setting ``agent_radius`` is "radius"."""
    return (grid.settings[column].name if column in grid.settings else column).replace("_", " ")


def _label(names: Sequence[str], values: dict[str, Any], grid: Grid) -> str:
    """Return what distinguishes these runs: "RCDB, radius 4"."""
    parts = []
    for name in names:
        if name == "agent":
            parts.append(title_of(values[name]))
        elif name in ("attack", "world", "delay"):
            parts.append(f"no {name}" if values[name] == "none" else values[name])
        elif values[name] is not None:
            parts.append(f"{_words(name, grid)} {_value(values[name])}")
    return ", ".join(parts)


def _value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def draw_view(results: Results, number: int, *, columns: int = 3) -> Figure:
    """Draw one view of an experiment, by its position, with at most ``columns`` panels side by side (1 for phones)."""
    view = results.experiment.views[number]
    with mpl.rc_context(STYLE):
        panels = [entry.panel for entry in results.experiment.entries]
        if isinstance(view, TradeOff):
            panels = [panel for panel in panels if panel != view.x_panel]
        figure, axes = _panels(panels, columns)
        for panel, axis in axes.items():
            if isinstance(view, TradeOff):
                _trade_off(axis, results, panel, view.x_panel)
            elif isinstance(view, Curves):
                _curves(axis, results, panel, number)
            elif isinstance(view, Shares):
                _shares(axis, results, panel)
            else:
                _lines(axis, results, panel, view)
        label = {Curves: "cumulative regret", Shares: "best recommended (%)"}.get(type(view), "final regret")
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
        width, height = WIDTH - 0.4, 3.3
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
        regret = results.curves(entry)
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
    groups = {label: entries for (name, label), entries in results.lines.items() if name == panel}
    styles = _styles([entries[0].cell.agent for entries in groups.values()])
    one_panel = len({name for name, _ in results.lines}) == 1
    for entries, style in zip(groups.values(), styles, strict=True):
        regret = np.stack([results.regret(entry) for entry in entries], axis=1)
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


def _trade_off(axis: Axes, results: Results, panel: str, x_panel: str) -> None:
    """Draw each agent's regret in ``panel`` against that in ``x_panel``, its settings joined in order."""
    entries = results.experiment.entries
    regret = {(e.panel, e.cell.agent, e.setting): results.regret(e).mean() for e in entries}
    settings: dict[str, list[str]] = {}
    for entry in entries:
        if entry.panel == panel:
            settings.setdefault(entry.cell.agent, []).append(entry.setting)
    for (agent, names), style in zip(settings.items(), _styles(list(settings)), strict=True):
        x, y = ([regret[place, agent, name] for name in names] for place in (x_panel, panel))
        axis.plot(x, y, marker="o", ms=3.5, lw=1.2, label=title_of(agent), **style)
        for place in {0, len(names) // 2, len(names) - 1} if len(names) > 1 else ():
            name = names[place].rpartition(" ")[2]
            axis.annotate(name, (x[place], y[place]), (3, 3), textcoords="offset points", fontsize=6)
    every = [regret[x_panel, agent, name] for agent, names in settings.items() for name in names]
    ticks = [tick for tick in (100, 200, 500, 1000, 2000, 5000, 10_000) if min(every) <= tick <= max(every)]
    scale_to_logarithms(axis, {tick: f"{tick:,}" for tick in ticks})
    axis.set_xlabel(f"final regret, {x_panel}")


def _shares(axis: Axes, results: Results, panel: str) -> None:
    """Draw one column per agent, with one marker per setting, side by side."""
    entries = [entry for entry in results.experiment.entries if entry.panel == panel]
    agents = list(dict.fromkeys(entry.cell.agent for entry in entries))
    settings = list(dict.fromkeys(entry.setting for entry in entries))
    rows = {id(entry): row for entry, row in zip(results.experiment.entries, results.summary, strict=True)}
    for place, setting in enumerate(settings):
        same = [entry for entry in entries if entry.setting == setting]
        shares = 100.0 * np.array([rows[id(entry)]["recommended_best"] for entry in same])  # value, error, low, high
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
