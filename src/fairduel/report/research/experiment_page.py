"""The report of one or more experiments."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from fairduel.experiments.comparing import lowest_by_panel
from fairduel.experiments.experiment import Curves, Lines, Results, Shares
from fairduel.experiments.sentences import settings_text
from fairduel.experiments.tuning import Chosen
from fairduel.report.page import Drawn, Page, Section, runs_text, write_page
from fairduel.report.research.curves import draw_view
from fairduel.report.research.research_tables import (
    RECOMMENDATION_COLUMNS,
    difference_text,
    error_text,
    fits,
    recommendation_cells,
)
from fairduel.report.text_table import TextTable
from fairduel.simulation import write_parquet

_COLUMNS = {
    "regret": "Σ 2r* − r_a − r_b over the run: what both actions of each duel cost compared with the best action",
    "difference from …": "regret minus that of the named agent, seed by seed, with its 95% interval; above 0 is worse. "
    "With the same seed, agents face the same world, label noise and adversary",
    "best recommended": "share of runs that recommend the best action after the last round, with its 95% interval",
    "loss": "r* − r of the recommended action",
    "locked in": "share of runs that spent their last quarter asking a suboptimal action against itself",
    "flips": "outcomes flipped per run",
    "weak regret": "regret of the better action of each duel alone",
    "self-duels": "share of duels of an action with itself, which carry no information",
    "‖θ‖ > B": "share of rounds in which the estimate left the ball that the proofs assume",
    "mean slope": "how much a duel counted in the matrix that steers exploration: κ, 1, v_t of RCDB-S, or "
    "σ′(φᵀθ) of GINOP and HCW",
    "ms per run": "processor time",
}


def write_experiments(folder: Path, all_results: Sequence[Results], command: str) -> Path:
    """Write the report of these experiments, and their runs and rounds as Parquet, to ``folder``; return the page."""
    write_parquet(pl.concat([results.runs for results in all_results]), folder / "runs.parquet")
    write_parquet(pl.concat([results.traces for results in all_results]), folder / "traces.parquet")
    found = [results.conclusions for results in all_results]
    first = all_results[0].experiment
    several = len(all_results) > 1
    overview = [f"{r.experiment.title}: {sentences[0]}" for r, sentences in zip(all_results, found, strict=True)]
    sections: list[Section] = []
    for results, sentences in zip(all_results, found, strict=True):
        sections += _sections(results, sentences if several else ())
    page = Page(
        title="Experiments" if several else first.title,
        question="" if several else first.question,
        conclusions=overview if several else found[0],
        sections=[*sections, Section("What the columns mean", terms=_COLUMNS, folded=True)],
        seeds=all_results[0].seeds,
        command=command,
    )
    return write_page(folder, page)


def _sections(results: Results, found: Sequence[str]) -> list[Section]:
    """Return the results of an experiment, then its diagnostics, settings and tunings, folded."""
    experiment, rows = results.experiment, results.summary
    x_label, name = experiment.x_label, experiment.name
    title = f": {experiment.title}" if found else ""
    tunings = {str(entry.tuning.problem): entry.tuning for entry in experiment.entries if entry.tuning}
    return [
        main_section(results, found),
        Section(f"Diagnostics{title}", tables=[_diagnostics(rows, x_label)], name=name, folded=True),
        _settings(results, rows, f"Settings{title}"),
        *([_tunings(list(tunings.values()), f"Tuning{title}", name)] if tunings else []),
    ]


def main_section(results: Results, found: Sequence[str] = ()) -> Section:
    """Return the figures and tables of an experiment, below what it ``found`` if the page is not about it alone."""
    experiment = results.experiment
    rows = results.summary
    x_label = experiment.x_label
    grown = [fit for view in experiment.views if isinstance(view, Lines) for fit in fits(results, view)]
    panels = _by_panel(rows).items()
    if experiment.is_about_recommendations:
        columns = ["agent (setting)", *RECOMMENDATION_COLUMNS]
        tables = [TextTable(columns, [recommendation_cells(row) for row in same], panel) for panel, same in panels]
    else:
        tables = [_regret_table(panel, same, x_label) for panel, same in panels]
    if grown:
        cells = [[fit["label"], fit["panel"], fit["fit"]] for fit in grown]
        tables.insert(0, TextTable(["agent (setting)", "panel", "fit"], cells, "Fitted growth", text=3))
    if not experiment.names_lowest:
        columns = ["panel", "lowest mean regret", "not significantly lower than", "regret"]
        tables.insert(0, TextTable(columns, lowest_by_panel(results), "By panel", text=3))
    return Section(
        experiment.title if found else "Recommendations" if experiment.is_about_recommendations else "Regret",
        [
            *([experiment.question] if found else []),
            *experiment.notes,
            f"Each row: {runs_text(results.seeds)}; mean ± one standard error.",
        ],
        tables,
        [_drawn(results, number, rows) for number in range(len(experiment.views))],
        conclusions=found,
        name=experiment.name,
    )


def _by_panel(rows: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    panels: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        panels.setdefault(row["panel"], []).append(row)
    return panels


def _drawn(results: Results, number: int, rows: Sequence[dict[str, Any]]) -> Drawn:
    experiment = results.experiment
    view = experiment.views[number]
    if isinstance(view, Shares):
        kind, name = "Share of runs that recommend the best action. Percent", "recommended_best"
    else:
        against = f"Regret against {view.x_label if isinstance(view, Lines) else 'that in another panel'}"
        kind = "Curves of regret over the rounds" if isinstance(view, Curves) else against
        kind, name = f"{kind}. Final mean regret", "regret"
    factor = 100.0 if isinstance(view, Shares) else 1.0
    panels = [
        f"{panel}: " + ", ".join(f"{row['label']}{_at(row)} {factor * row[name].value:,.0f}" for row in same[:12])
        for panel, same in _by_panel(rows).items()
    ]
    return Drawn(
        view.caption,
        draw_view(results, number),
        alt=f"{kind}, {'; '.join(panels)}.",
        name=experiment.name if number == 0 else f"{experiment.name}-{number + 1}",
        narrow=draw_view(results, number, columns=1),
    )


def _at(row: dict[str, Any]) -> str:
    return "" if row["x"] is None else f" at {row['x']:g}"


def _regret_table(panel: str, rows: Sequence[dict[str, Any]], x_label: str) -> TextTable:
    lowest = min(range(len(rows)), key=lambda place: rows[place]["regret"].value)
    references = {row["label"] for row in rows if row["is_reference"]}
    reference = references.pop() if len(references) == 1 else "the reference"
    cells = [
        [
            row["label"],
            *_x_cell(row, x_label),
            error_text(row["regret"]),
            difference_text(row["difference"]) if row["difference"] else "–",
            _percent(row["locked_in"]),
            _number(row["flips"], ".1f"),
        ]
        for row in rows
    ]
    columns = ["agent (setting)", *([x_label] if x_label else []), "regret", f"difference from {reference}"]
    return TextTable([*columns, "locked in", "flips"], cells, panel, marked=None if x_label else lowest)


def _diagnostics(rows: Sequence[dict[str, Any]], x_label: str) -> TextTable:
    cells = [
        [
            row["label"],
            row["panel"],
            *_x_cell(row, x_label),
            error_text(row["weak_regret"]),
            _percent(row["self_duels"]),
            _percent(row["norm_exceeded"]),
            _number(row["mean_slope"], ".3g"),
            _number(1000 * row["seconds"], ".0f"),
        ]
        for row in rows
    ]
    columns = ["agent (setting)", "panel", *([x_label] if x_label else []), "weak regret", "self-duels", "‖θ‖ > B"]
    return TextTable([*columns, "mean slope", "ms per run"], cells, "Diagnostics", text=2)


def _settings(results: Results, rows: Sequence[dict[str, Any]], title: str) -> Section:
    cells = [entry.cell for entry in results.experiment.entries]
    worlds = sorted({f"{cell.world} ({settings_text(cell.world_settings)})" for cell in cells})
    delays = sorted({f"{cell.delay} ({settings_text(cell.delay_settings)})" for cell in cells if cell.is_delayed})
    horizons, budgets = (
        ", ".join(f"{value:,}" for value in sorted({getattr(cell, name) for cell in cells}))
        for name in ("horizon", "budget")
    )
    every = [{name: value for name, value in row["settings"].items() if name != "seed"} for row in rows]
    shared = {name: value for name, value in every[0].items() if all(name in s and s[name] == value for s in every)}
    own = [{name: value for name, value in settings.items() if name not in shared} for settings in every]
    places: dict[tuple[str, str], list[str]] = {}
    for row, settings in zip(rows, own, strict=True):
        places.setdefault((row["label"], settings_text(settings) or "–"), []).append(row["panel"] + _at(row))
    count = len({row["panel"] + _at(row) for row in rows})
    shown = [
        [label, "all" if 1 < len(where) == count else "; ".join(where), settings]
        for (label, settings), where in places.items()
    ]
    return Section(
        title,
        [
            f"World: {'; '.join(worlds)}. T = {horizons}. C = {budgets}."
            + (f" Delay: {'; '.join(delays)}." if delays else ""),
            f"Settings that all agents share: {settings_text(shared) or 'none'}.",
        ],
        [TextTable(["agent (setting)", "panel", "other settings"], shown, "Settings", text=3)],
        name=results.experiment.name,
        folded=True,
    )


def _tunings(tunings: Sequence[Chosen], title: str, name: str) -> Section:
    rows = []
    for tuned in tunings:
        problem = tuned.problem
        fixed = settings_text({**problem.attack_settings, **problem.agent_settings})
        rows.append(
            [
                f"{problem.agent}, {problem.attack}{f' ({fixed})' if fixed else ''}",
                settings_text(tuned.winner.settings) + (" (edge of the grid)" if tuned.at_edge else ""),
                f"{tuned.winner.mean:,.0f} ± {tuned.winner.standard_error:,.0f}",
                f"{tuned.seeds[0]:,}–{tuned.seeds[1]:,}",
            ]
        )
    table = TextTable(["problem", "winner", "mean regret on the tuning seeds", "tuning seeds"], rows, "Tuning", text=4)
    explained = "Each setting has the lowest mean regret of its grid on tuning seeds, none of which is reported above."
    return Section(title, [explained], [table], name=name, folded=True)


def _x_cell(row: dict[str, Any], x_label: str) -> list[str]:
    return ["–" if row["x"] is None else f"{row['x']:g}"] if x_label else []


def _percent(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.0%}"


def _number(value: float, form: str) -> str:
    return "–" if math.isnan(value) else format(value, form)
