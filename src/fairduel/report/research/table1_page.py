"""The report of Table 1."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairduel.duel import Matrix
from fairduel.experiments import table1_growth
from fairduel.experiments.sentences import settings_text
from fairduel.experiments.table1_growth import Measured, table1_conclusions
from fairduel.files import versions, write_atomically
from fairduel.report.drawing import STYLE
from fairduel.report.page import Drawn, Page, Section, write_page
from fairduel.report.research.curves import scale_to_logarithms
from fairduel.report.research.research_tables import error_text
from fairduel.report.text_table import TextTable


def write_table1(folder: Path, rows: Sequence[Measured], seeds: Sequence[int], command: str) -> Path:
    """Write the report and ``table1.json`` to ``folder``; return the page."""
    record = {
        "command": command,
        "seeds": [seeds[0], seeds[-1]],
        "versions": versions(),
        "horizons": table1_growth.HORIZONS,
        "budgets": table1_growth.BUDGETS,
        "rows": [_record(row) for row in rows],
    }
    write_atomically(folder / "table1.json", (json.dumps(record, indent=1, ensure_ascii=False) + "\n").encode())
    page = Page(
        title="Table 1, measured",
        question="Does each algorithm's regret grow as its bound allows?",
        conclusions=table1_conclusions(rows),
        sections=[_growth(rows), _reference_point(rows), _where_run(rows)],
        command=command,
        seeds=seeds,
    )
    return write_page(folder, page)


def _growth(rows: Sequence[Measured]) -> Section:
    cells = []
    for row in rows:
        guarantee, words = row.algorithm.guarantee, texts(row)
        source = guarantee.source + ("" if guarantee.in_paper else "; not in the paper's table")
        adversary = "no" if guarantee.adversary == "none" else guarantee.adversary
        told = f"{guarantee.model}; {adversary} adversary; knows {guarantee.needs}"
        measured = [words["in_horizon"], words["in_budget"], words["per_corruption"]]
        cells.append([row.algorithm.title, source, told, guarantee.bound, *measured])
    columns = [
        "algorithm",
        "source",
        "setting",
        "bound on regret",
        "growth in T",
        "growth in C",
        "regret per unit of C",
    ]
    described = ", ".join(f"{row[0]} T^{row[4]}" for row in cells)
    return Section(
        "Bounds and measured growth",
        [
            f"Growth in T is the exponent of regret without an attack, for T from {table1_growth.HORIZONS[0]:,} to "
            f"{table1_growth.HORIZONS[-1]:,}: ½ is √T, near 0 is logarithmic, 1 never stops growing.",
            "Growth in C is the exponent of the regret that an attack adds at "
            f"T = {table1_growth.REFERENCE_HORIZON:,}, for C from {table1_growth.BUDGETS[0]} to "
            f"{table1_growth.BUDGETS[-1]}: 1 is linear. "
            "“Within the noise”: these runs do not show that the attack costs anything, even at the largest C.",
            "A weak adversary commits before it sees the action; a strong one sees it first. Bounds hide logarithms, "
            "and the paper's table drops κ; Zhao's abstract has C² where the table has C.",
            "Units of regret differ between settings: compare growth, not values. ± is one standard error.",
        ],
        [TextTable(columns, cells, "Table 1", text=4, marked=_rcdb(rows))],
        [
            Drawn(
                "Left of each pair: regret against T without an attack (log-log). Right: regret against C at "
                f"T = {table1_growth.REFERENCE_HORIZON:,}. Bars are ± one standard error.",
                _panels(rows, columns=4),
                alt=f"Two panels per algorithm: regret against T and against C. Growth in T: {described}.",
                name="table1",
                narrow=_panels(rows, columns=2),
            )
        ],
    )


def _reference_point(rows: Sequence[Measured]) -> Section:
    cells = []
    for row in rows:
        words = texts(row)
        measured = [words["published"], words["reference"], f"{row.uniform:,.0f}", words["microseconds"]]
        cells.append([row.algorithm.title, *measured])
    columns = ["algorithm", "with published constants", "with practical constants", "uniform play", "µs per round"]
    return Section(
        f"Regret at T = {table1_growth.REFERENCE_HORIZON:,} and C = {table1_growth.REFERENCE_BUDGET}",
        [
            "“As uniform play” and “never past its first epoch” mean that the published constants are so large that "
            "the algorithm explores for the whole horizon. All other numbers on this page use practical constants, "
            "which have no guarantee."
        ],
        [TextTable(columns, cells, "Regret at the reference point", text=2, marked=_rcdb(rows))],
    )


def _where_run(rows: Sequence[Measured]) -> Section:
    cells = [
        [
            row.algorithm.title,
            f"{row.algorithm.agent} {settings_text(row.algorithm.settings)}".strip(),
            f"{row.algorithm.world[0]} ({settings_text(row.algorithm.world[1])})",
            row.algorithm.attack,
        ]
        for row in rows
    ]
    return Section("Settings", tables=[TextTable(["algorithm", "agent", "world", "attack"], cells, "Settings", text=4)])


def _rcdb(rows: Sequence[Measured]) -> int | None:
    return next((place for place, row in enumerate(rows) if row.algorithm.agent == "rcdb"), None)


def texts(row: Measured) -> dict[str, str]:
    """Return the measured cells of a row as text."""
    published = "the same" if row.published is None else error_text(row.published)
    if row.published_is_uniform:
        published += ", as uniform play"
    elif row.published_epoch == 1:
        published += ", never past its first epoch"
    return {
        "in_horizon": error_text(row.in_horizon, digits=2),
        "in_budget": "within the noise" if np.isnan(row.in_budget.value) else error_text(row.in_budget, digits=2),
        "per_corruption": error_text(row.per_corruption, digits=2),
        "reference": error_text(row.reference),
        "published": published,
        "microseconds": f"{1e6 * row.seconds_a_round:.0f}",
    }


def _record(row: Measured) -> dict[str, Any]:
    algorithm = row.algorithm
    return {
        "algorithm": algorithm.title,
        "source": algorithm.guarantee.source,
        "setting": algorithm.guarantee.model,
        "adversary": algorithm.guarantee.adversary,
        "bound": algorithm.guarantee.bound,
        "needs": algorithm.guarantee.needs,
        "agent": algorithm.agent,
        "agent_settings": dict(algorithm.settings),
        "world": f"{algorithm.world[0]}: {settings_text(algorithm.world[1])}",
        "attack": algorithm.attack,
        "exponent_in_horizon": row.in_horizon.as_json(),
        "exponent_in_budget": row.in_budget.as_json(),
        "regret_per_corruption": row.per_corruption.as_json(),
        "regret_at_reference": row.reference.as_json(),
        "regret_as_published": row.published.as_json() if row.published else None,
        "published_is_uniform": row.published_is_uniform,
        "last_epoch_as_published": row.published_epoch,
        "uniform_play": row.uniform,
        "microseconds_a_round": 1e6 * row.seconds_a_round,
    }


def _panels(rows: Sequence[Measured], *, columns: int) -> Figure:
    """Draw two panels per row: regret against T and against C."""
    with mpl.rc_context({**STYLE, "font.size": 8, "axes.titlesize": 8}):
        lines = -(-2 * len(rows) // columns)
        figure = Figure(figsize=(2.6 * columns, 1.7 * lines), layout="tight")
        axes = figure.subplots(lines, columns, squeeze=False).ravel()
        for row, in_horizon, in_budget in zip(rows, axes[::2], axes[1::2], strict=False):
            _points(in_horizon, np.array(table1_growth.HORIZONS), row.by_horizon)
            scale_to_logarithms(
                in_horizon, {T: f"{T // 1000}k" if T >= 1000 else f"{T}" for T in table1_growth.HORIZONS}
            )
            in_horizon.set_title(row.algorithm.title, loc="left")
            in_horizon.set_xlabel("T", labelpad=0)
            clean = row.by_horizon[:, [table1_growth.HORIZONS.index(table1_growth.REFERENCE_HORIZON)]]
            _points(in_budget, np.array([0, *table1_growth.BUDGETS]), np.hstack([clean, row.by_budget]))
            in_budget.set_ylim(bottom=0)
            in_budget.set_xlabel("C", labelpad=0)
        for axis in axes[2 * len(rows) :]:
            axis.set_visible(False)
        return figure


def _points(axis: Axes, x: Any, regret: Matrix) -> None:
    error = regret.std(axis=0, ddof=1) / np.sqrt(len(regret)) if len(regret) > 1 else None
    axis.errorbar(x, regret.mean(axis=0), yerr=error, marker="o", ms=2.5, capsize=1.5, lw=1.2, color="#D55E00")
