"""Means over the runs of a sweep, as the points of a figure."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairduel.errors import BadInputError, unknown_name
from fairduel.experiments.experiment import title_of
from fairduel.simulation.query import grid_columns, query


@dataclass(frozen=True)
class Point:
    """The mean of some runs, and where it stands in a figure."""

    panel: str
    line: str
    agent: str
    """Whose colour the line has; the same for all lines where agents are not told apart."""
    x: float | str
    mean: float
    error: float
    """Standard error of the mean; NaN for one run."""
    runs: int


def points_of(
    folder: Path, *, x: str, y: str, by: Sequence[str], panel: Sequence[str], where: str = "true"
) -> tuple[list[Point], list[str]]:
    """Return the mean of column ``y`` for every value of ``x``, ``by`` and ``panel``; and what it averages over.

    The second list names the columns of the grid in which the runs of a point differ: a mean over two
    horizons is seldom meant.
    """
    types = {row[0]: row[1] for row in query(folder, "DESCRIBE runs").rows}
    for name in (x, y, *by, *panel):
        if name not in types:
            raise unknown_name("column of runs", name, types)
    if types[y] not in _NUMBERS | {"BOOLEAN"}:
        raise BadInputError(f"the mean of {y} cannot be drawn, because it is no number.")
    chosen = list(dict.fromkeys([x, *by, *panel]))
    others = [name for name in grid_columns(folder) if name not in chosen]
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
                panel=_label(panel, values),
                line=_label(by, values),
                agent=values["agent"] if "agent" in by else "",
                x=float(values[x]) if types[x] in _NUMBERS else _value(values[x]),
                mean=mean,
                error=float("nan") if error is None else error,
                runs=runs,
            )
        )
    if not points:
        raise BadInputError(f"there is nothing to draw: no run has a {x} and meets the condition {where}.")
    return points, [name for name in others if name in mixed]


_NUMBERS = {"BIGINT", "INTEGER", "DOUBLE", "FLOAT"}


def axis_title(column: str) -> str:
    """A column in words.

    >>> axis_title("agent_radius_scale")
    'radius scale'
    """
    kind, _, setting = column.partition("_")
    return (setting if setting and kind in ("agent", "attack", "world") else column).replace("_", " ")


def _label(names: Sequence[str], values: dict[str, Any]) -> str:
    """What tells these runs from others: "RCDB, radius 4"."""
    parts = []
    for name in names:
        if name == "agent":
            parts.append(title_of(values[name]))
        elif name in ("attack", "world"):
            parts.append("no attack" if values[name] == "none" else values[name])
        elif values[name] is not None:
            parts.append(f"{axis_title(name)} {_value(values[name])}")
    return ", ".join(parts)


def _value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
