"""``fairduel sweep``: a grid of cells, here or on a cluster. ``fairduel results``: query it with SQL, or plot it."""

import csv
import itertools
import math
import sys
from contextlib import nullcontext
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import typer

from fairduel.cli import output
from fairduel.cli.folders import claim
from fairduel.cli.help import Command, CommandGroup
from fairduel.cli.research import options
from fairduel.errors import BadInputError
from fairduel.files import write_atomically
from fairduel.report.research.curves import sweep_means
from fairduel.report.text_table import TextTable
from fairduel.simulation import Store, count_missing, run_cells
from fairduel.simulation.parallel import Cluster
from fairduel.simulation.query import query
from fairduel.simulation.sweep import read_grid

app = typer.Typer(cls=CommandGroup, no_args_is_help=True, rich_markup_mode="rich")
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder that  fairduel sweep  wrote to.")]
_MAX_ROWS = 200
_MAX_RECORDS = 10


@app.callback()
def results() -> None:
    """Query a sweep with SQL, or plot it.

    Both read the finished runs of the latest grid swept into DIR, and
    change nothing.
    """


def query_command(
    folder: Folder,
    sql: Annotated[str, typer.Argument(metavar="SQL", help="One SELECT statement in DuckDB's SQL.")],
    as_csv: Annotated[bool, typer.Option("--csv", rich_help_panel=output.PANEL, help="Print all rows as CSV.")] = False,
    as_latex: Annotated[
        bool, typer.Option("--latex", rich_help_panel=output.PANEL, help="Print all rows as a LaTeX tabular.")
    ] = False,
) -> output.Record:
    """Query a sweep with SQL.

    [bold]runs[/bold] has one row per run: agent, attack, budget, world, horizon,
    dimension, seed, regret, weak_regret, flips, self_duel_share, locked_in,
    …; and a column for every setting in the grid, such as agent_radius or
    attack_target.

    [bold]traces[/bold] has one row per run and round: the same cell and seed, with
    round, cumulative regret and weak_regret, first, second, flipped, weight,
    width and slope.

    For example:

      "SELECT agent, attack, avg(regret) FROM runs GROUP BY ALL"
      "SELECT agent, avg(regret) FROM traces WHERE round = 500 GROUP BY ALL"
      "SELECT agent_settings->>'trust', regret FROM runs LIMIT 5"
      "DESCRIBE runs"
    """
    if (as_csv or as_latex) and output.console.quiet:
        raise BadInputError(f"{'--csv' if as_csv else '--latex'} cannot be combined with --json or --quiet.")
    answer = query(folder, sql)
    if as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(answer.columns)
        writer.writerows(answer.rows)
        return {}
    if as_latex:
        output.say(*_as_table(answer.columns, list(answer.rows))[0].latex().splitlines())
        return {}
    if output.console.quiet:
        return output.record(rows=[dict(zip(answer.columns, row, strict=True)) for row in answer.rows])
    rows = list(itertools.islice(answer.rows, _MAX_ROWS))
    _print_rows(answer.columns, rows, more=next(answer.rows, None) is not None)
    return {}


def plot(
    folder: Folder,
    x: Annotated[str, typer.Option(metavar="COLUMN", help="Column on the x axis: budget, horizon, agent_radius, …")],
    y: Annotated[str, typer.Option(metavar="COLUMN", help="Column whose mean is plotted.")] = "regret",
    by: Annotated[
        list[str],
        typer.Option(metavar="COLUMN", help="One line per value of this column. Repeatable.", show_default="agent"),
    ] = ["agent"],  # noqa: B006  # typer copies it
    panel: Annotated[
        list[str],
        typer.Option(metavar="COLUMN", help="One panel per value of this column. Repeatable.", show_default="attack"),
    ] = ["attack"],  # noqa: B006
    where: Annotated[
        str, typer.Option(metavar="SQL", help='Plot only these runs: "horizon = 2000".', show_default="all")
    ] = "true",
    to: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=output.PANEL,
            help="PNG, SVG or PDF file to write.",
            show_default="DIR/plot.png",
        ),
    ] = None,
) -> output.Record:
    """Plot means and standard errors of a sweep.

    Columns are those of  runs  in  fairduel results query. Runs without a
    value of --x are left out.

    Example:  fairduel results plot DIR --x agent_radius --by agent --by budget
    """
    path = to or folder / "plot.png"
    kind = path.suffix.lower().removeprefix(".")
    if kind not in ("png", "svg", "pdf"):
        raise BadInputError(f"unsupported figure type {path.name}: use .png, .svg or .pdf.")
    means = sweep_means(folder, x=x, y=y, by=by, panel=panel, where=where)
    from fairduel.report.drawing import image  # noqa: PLC0415  # plotting is slow
    from fairduel.report.research.curves import draw_means  # noqa: PLC0415  # plotting is slow

    write_atomically(path, image(draw_means(means), cast("Literal['png', 'svg', 'pdf']", kind)))
    runs = sorted({point.runs for point in means.points})
    output.say(f"Plotted {len(means.points)} means of {runs[0]}{f' to {runs[-1]}' if len(runs) > 1 else ''} runs each.")
    if means.mixed:
        output.say(
            f"Points mix different {', '.join(means.mixed)}: split with --by or --panel, or filter with --where."
        )
    output.say_report(path)
    return output.record(points=[asdict(point) for point in means.points], mixed=means.mixed, report=str(path))


app.command("query", cls=Command)(output.reporting(query_command))
app.command("plot", cls=Command)(output.reporting(plot))


def _print_rows(columns: list[str], rows: list[tuple[Any, ...]], *, more: bool) -> None:
    """Print rows as a table or, if the terminal is too narrow, one below another."""
    table, text = _as_table(columns, rows)
    if output.fits_terminal(table, text):
        output.print_table(table, text=text)
        if more:
            output.say(f"Only the first {_MAX_ROWS} rows are shown; --csv or --json prints all.")
        return
    output.print_records(columns, table.rows[:_MAX_RECORDS])
    shown = f"Only the first {_MAX_RECORDS} rows are shown. " if more or len(rows) > _MAX_RECORDS else ""
    output.say("", f"{shown}The terminal is too narrow for a table: SELECT fewer columns, or use --csv or --json.")


def _as_table(columns: list[str], rows: list[tuple[Any, ...]]) -> tuple[TextTable, list[str]]:
    """Return the rows as text, and which columns hold words."""
    numbers = [
        all(isinstance(row[place], (int, float, Decimal, type(None))) for row in rows) for place in range(len(columns))
    ]
    words = numbers.index(True) if True in numbers else len(columns)  # how many columns of words come first
    table = TextTable(columns, [[_text(value) for value in row] for row in rows], text=words)
    return table, [name for name, is_number in zip(columns, numbers, strict=True) if not is_number]


def _text(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def sweep_command(
    grid: Annotated[Path, typer.Argument(metavar="GRID", help="TOML file that declares the grid.")],
    jobs: options.Jobs = options.CORES,
    dask: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Run on a Dask cluster: --dask tcp://10.0.0.1:8786.", show_default=False),
    ] = None,
    out: Annotated[Path | None, typer.Option(**options.OUT_OPTION, show_default="results/GRID")] = None,
) -> output.Record:
    r"""Run every combination that a TOML file declares.

    A list is a grid over its values. Every agent meets every attack in
    every world, with every horizon, budget and seed:

      runs = 100                   # seeds 0 to 99; with seed = 100: 100 to 199
      horizon = 2000
      budget = [20, 45]            # C, or "sqrt": ⌈√T⌉, as in the paper
      known_budget = \[true, false] # do agents know C? also per \[\[agent]]
      \[\[agent]]
      name = ["rcdb", "rcdb-s"]
      \[\[agent]]
      name = "maxpairucb"
      radius = [2.0, 4.0, 8.0]
      \[\[attack]]
      name = "misleading"
      target = ["random", "worst"]
      \[\[world]]                    # default: hypercube
      name = "hypercube"
      dimension = [3, 5]
      \[\[delay]]                    # default: none
      name = ["none", "stochastic"]

    Each finished run is saved within a second. A sweep that was interrupted,
    killed or moved to another machine resumes when you rerun it, with the
    same results. Query or plot them with  fairduel results.
    """
    declared = read_grid(grid)
    seeds = options.report_seeds(declared.seeds.start, len(declared.seeds))
    folder = out or Path("results") / grid.stem
    cells = list(declared.cells.values())
    with Cluster(dask) if dask else nullcontext() as cluster:
        claim(folder, "sweep")
        store = Store(folder)
        missing = count_missing(store, cells, seeds)
        declared.save(folder, output.typed_command())
        output.notify_assumptions(cells)
        if missing and cluster is None:
            output.compile_first(cells)
        with output.progress_bar(grid.stem, missing) as progress:
            run_cells(cells, seeds, store, jobs=jobs, workers=cluster, progress=progress)
    example = "SELECT agent, attack, avg(regret) FROM runs GROUP BY ALL ORDER BY ALL"
    output.say(
        f"Finished {len(cells)} cells of {len(seeds)} runs each ({missing} new), in {folder / 'cells'}.",
        f'Query them: fairduel results query {folder} "{example}"',
        f"Plot them: fairduel results plot {folder} --x budget",
    )
    return output.record(folder=str(folder), cells=len(cells), runs_per_cell=len(seeds), new_runs=missing)
