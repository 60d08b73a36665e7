"""One self-contained HTML page: figures, tables and every setting, readable without a network."""

import base64
import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from fairduel.experiments import Lines
from fairduel.experiments.experiment import settings_text
from fairduel.experiments.results import Results
from fairduel.files import write_atomically
from fairduel.report.figures import draw, image
from fairduel.report.tables import fits, summary
from fairduel.report.templating import render
from fairduel.simulation import write_parquet


@dataclass(frozen=True)
class Drawn:
    """A figure with its caption."""

    caption: str
    figure: Figure

    @functools.cached_property
    def svg(self) -> bytes:
        """The figure as an SVG file."""
        return image(self.figure, "svg")


def write_report(folder: Path, all_results: Sequence[Results], command: str) -> Path:
    """Write Parquet, PNG, SVG and ``report.html`` for these experiments into ``folder``; return the page."""
    write_parquet(pl.concat([results.runs for results in all_results]), folder / "runs.parquet")
    write_parquet(pl.concat([results.traces for results in all_results]), folder / "traces.parquet")
    sections = []
    for results in all_results:
        drawn = [Drawn(view.caption, draw(results, number)) for number, view in enumerate(results.experiment.views)]
        for number, item in enumerate(drawn, start=1):
            name = results.experiment.name if number == 1 else f"{results.experiment.name}-{number}"
            write_atomically(folder / f"{name}.png", image(item.figure, "png"))
            write_atomically(folder / f"{name}.svg", item.svg)
        sections.append(_section(results, drawn))
    page = folder / "report.html"
    write_atomically(page, render("report.html", sections=sections, command=command).encode())
    return page


def data_uri(drawn: Drawn) -> str:
    """A figure as an address that holds the whole image."""
    return "data:image/svg+xml;base64," + base64.b64encode(drawn.svg).decode()


def _section(results: Results, drawn: Sequence[Drawn]) -> dict[str, Any]:
    experiment = results.experiment
    rows = summary(results)
    tunings = {json.dumps(e.tuning.problem): e.tuning for e in experiment.entries if e.tuning}
    cells = [entry.cell for entry in experiment.entries]
    return {
        "experiment": experiment,
        "figures": [(item.caption, data_uri(item)) for item in drawn],
        "panels": {
            panel: [r for r in rows if r["panel"] == panel] for panel in dict.fromkeys(r["panel"] for r in rows)
        },
        "has_x": any(row["x"] is not None for row in rows),
        "fits": [fit for view in experiment.views if isinstance(view, Lines) for fit in fits(results, view)],
        "tunings": list(tunings.values()),
        "seeds": f"{min(results.seeds)}–{max(results.seeds)} ({len(results.seeds)} runs)",
        "world": sorted({f"{cell.world}: {settings_text(cell.world_settings)}" for cell in cells}),
        "horizons": sorted({cell.horizon for cell in cells}),
        "budgets": sorted({cell.budget for cell in cells}),
    }
