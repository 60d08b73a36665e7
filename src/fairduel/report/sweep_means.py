"""Means over a sweep's runs, as the points of a figure."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairduel.errors import BadInputError, unknown_name
from fairduel.experiments.experiment import title_of
from fairduel.simulation.query import query
from fairduel.simulation.sweep import Grid


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
