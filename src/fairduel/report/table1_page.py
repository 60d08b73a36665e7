"""Table 1 as one page: a row an algorithm, with a small panel each."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairduel.duel import Matrix
from fairduel.experiments.experiment import settings_text
from fairduel.experiments.table1 import BUDGETS, HORIZONS, REFERENCE_BUDGET, REFERENCE_HORIZON, Measured
from fairduel.files import write_atomically
from fairduel.report.figures import STYLE, scale_to_logarithms
from fairduel.report.page import Drawn, data_uri
from fairduel.report.tables import with_error
from fairduel.report.templating import render
from fairduel.simulation import versions


def write_table1(folder: Path, rows: Sequence[Measured], seeds: range, command: str) -> Path:
    """Write table1.html and table1.json into ``folder``; return the page."""
    record = {
        "command": command,
        "seeds": [seeds[0], seeds[-1]],
        "versions": versions(),
        "horizons": HORIZONS,
        "budgets": BUDGETS,
        "rows": [_record(row) for row in rows],
    }
    write_atomically(folder / "table1.json", (json.dumps(record, indent=1, ensure_ascii=False) + "\n").encode())
    page = folder / "table1.html"
    text = render(
        "table1.html",
        rows=[(texts(row), row, data_uri(Drawn(row.algorithm.title, _panel(row)))) for row in rows],
        seeds=f"{seeds[0]}–{seeds[-1]} ({len(seeds)} runs)",
        horizons=HORIZONS,
        budgets=BUDGETS,
        horizon=REFERENCE_HORIZON,
        budget=REFERENCE_BUDGET,
        command=command,
    )
    write_atomically(page, text.encode())
    return page


def texts(row: Measured) -> dict[str, str]:
    """The measured cells of a row, in words."""
    published = "the same" if row.published is None else with_error(row.published)
    if row.published_is_uniform:
        published += ", as uniform play"
    elif row.published_epoch == 1:
        published += ", never past its first epoch"
    return {
        "in_horizon": with_error(row.in_horizon, digits=2),
        "in_budget": "within the noise" if np.isnan(row.in_budget.value) else with_error(row.in_budget, digits=2),
        "per_corruption": with_error(row.per_corruption, digits=2),
        "reference": with_error(row.reference),
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


def _panel(row: Measured) -> Figure:
    with mpl.rc_context({**STYLE, "font.size": 7, "axes.titlesize": 7}):
        figure = Figure(figsize=(4.2, 1.5), layout="constrained")
        in_horizon, in_budget = figure.subplots(1, 2)
        _points(in_horizon, np.array(HORIZONS), row.by_horizon)
        scale_to_logarithms(in_horizon, {horizon: f"{horizon // 1000}k" for horizon in HORIZONS})
        in_horizon.set_title("regret against T, no attack (log-log)")
        clean = row.by_horizon[:, [HORIZONS.index(REFERENCE_HORIZON)]]
        _points(in_budget, np.array([0, *BUDGETS]), np.hstack([clean, row.by_budget]))
        in_budget.set_ylim(bottom=0)
        in_budget.set_title(f"regret against C, T = {REFERENCE_HORIZON:,}")
        return figure


def _points(axis: Axes, x: Any, regret: Matrix) -> None:
    error = regret.std(axis=0, ddof=1) / np.sqrt(len(regret)) if len(regret) > 1 else None
    axis.errorbar(x, regret.mean(axis=0), yerr=error, marker="o", ms=2.5, capsize=1.5, lw=1.2, color="#D55E00")
