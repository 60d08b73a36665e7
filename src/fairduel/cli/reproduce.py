"""``fairduel reproduce``: the paper's figures, and the experiments beyond them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from fairduel.cli import options
from fairduel.errors import BadInputError, unknown_name
from fairduel.experiments import EXPERIMENTS, Experiment, replay, table1
from fairduel.experiments.results import Results, run_experiment
from fairduel.report.tables import summary, with_error, with_interval
from fairduel.simulation import Store, count_missing

TABLE1 = "table1"
REPLAY = "replay"
Which = Annotated[
    str, typer.Argument(help=f"{', '.join(EXPERIMENTS)}, all of these, {TABLE1} or {REPLAY}.", metavar="EXPERIMENT")
]
DEFAULT_OUT = Path("results")


def reproduce(
    experiment: Which,
    runs: Annotated[
        int | None,
        typer.Option(min=1, help="How many runs, each with its own seed.", show_default=f"10; {REPLAY}: {replay.RUNS}"),
    ] = None,
    seed: options.Seed = 0,
    jobs: options.Jobs = options.CORES,
    data: Annotated[Path | None, typer.Option(help=f"Folder with the recorded votes that {REPLAY} replays.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the results.", show_default="results/EXPERIMENT")] = None,
) -> None:
    """Run an experiment and write its report.

    [bold]figure1[/bold]         four attacks: RCDB against tuned baselines (as in the paper)
    [bold]figure2[/bold]         regret against the number of flips (as in the paper)
    [bold]radius[/bold]          the theorems' radii against the practical ones
    [bold]sigmoid[/bold]         RCDB against RCDB-S as the norm of θ* grows
    [bold]unknown-budget[/bold]  fewer, as many and more flips than RCDB tolerates
    [bold]dimension[/bold]       growth of regret in d, with fitted exponents
    [bold]horizon[/bold]         growth of regret in T, with fitted exponents
    [bold]estimators[/bold]      exact, lazy and one-pass estimates side by side
    [bold]table1[/bold]          the paper's Table 1: every algorithm, its bound and its measured growth
    [bold]replay[/bold]          recorded votes (--data), the first of them flipped: every agent with features

    OUT then holds report.html (one self-contained page), figures as PNG
    and SVG, runs.parquet (one row a run) and traces.parquet (one row a
    round). Finished runs are not run again; a changed setting is.
    """
    if experiment not in (*EXPERIMENTS, "all", TABLE1, REPLAY):
        raise unknown_name("experiment", experiment, [*EXPERIMENTS, "all", TABLE1, REPLAY])
    if data is not None and experiment != REPLAY:
        raise BadInputError(f"--data is for {REPLAY} alone: {experiment} makes its own worlds.")
    folder = out or DEFAULT_OUT / experiment
    seeds = options.report_seeds(seed, runs or (replay.RUNS if experiment == REPLAY else 10))
    if experiment == TABLE1:
        fill_table1(folder, seeds, jobs)
    elif experiment == REPLAY:
        run_and_report(replay.replay(data), folder, seeds, jobs)
    else:
        names = list(EXPERIMENTS) if experiment == "all" else [experiment]
        run_and_report([EXPERIMENTS[name]() for name in names], folder, seeds, jobs)


def run_and_report(experiments: Sequence[Experiment], folder: Path, seeds: range, jobs: int) -> None:
    """Run experiments with a progress bar each, print their tables, write the report and say where it is."""
    cells = [entry.cell for experiment in experiments for entry in experiment.entries]
    for cell in cells:
        cell.check()
    store = Store(folder)
    options.compile_first(cells)
    all_results = []
    for experiment in experiments:
        missing = count_missing(store, [entry.cell for entry in experiment.entries], seeds)
        with options.progress_bar(experiment.title, missing) as progress:
            results = run_experiment(experiment, store, seeds, jobs=jobs, progress=progress)
        all_results.append(results)
        print_summary(results)
    with options.console.status("Drawing …"):
        from fairduel.report.experiment_page import write_report  # noqa: PLC0415  # matplotlib loads only where it draws

        page = write_report(folder, all_results, options.typed_command())
    options.console.print(f"\nReport: [bold]{page}[/bold]", soft_wrap=True)


def fill_table1(folder: Path, seeds: range, jobs: int) -> None:
    """Measure every row of Table 1, print it, write the page and say where it is."""
    store = Store(folder)
    cells = table1.all_cells()
    options.compile_first(cells)
    with options.progress_bar("Table 1", count_missing(store, cells, seeds)) as progress:
        rows = table1.measure(store, seeds, jobs=jobs, progress=progress)
    from fairduel.report.table1_page import texts, write_table1  # noqa: PLC0415  # matplotlib loads only where it draws

    title = f"Table 1 ({len(seeds)} runs, mean ± standard error)"
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    for name in ("algorithm", "bound"):
        table.add_column(name)
    for name in ("growth in T", "in C", "regret", "as published"):
        table.add_column(name, justify="right")
    for row in rows:
        words = texts(row)
        measured = [words[name] for name in ("in_horizon", "in_budget", "reference", "published")]
        table.add_row(row.algorithm.title, row.algorithm.guarantee.bound, *measured)
    options.console.print(table)
    page = write_table1(folder, rows, seeds, options.typed_command())
    options.console.print(f"\nReport: [bold]{page}[/bold]", soft_wrap=True)


def print_summary(results: Results) -> None:
    """Print one line per entry: regret with its error, and its difference to the reference."""
    rows = summary(results)
    has_x = any(row["x"] is not None for row in rows)
    title = f"{results.experiment.title} ({len(results.seeds)} runs, mean ± standard error, 95 % intervals)"
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    for name in ("agent (setting)", *(["x"] if has_x else [])):
        table.add_column(name)
    for name in ("regret", "more than the reference", "locked in"):
        table.add_column(name, justify="right", no_wrap=True)
    panel = ""
    for row in rows:
        if row["panel"] != panel:
            panel = row["panel"]
            table.add_row(f"[bold]{panel}[/bold]")
        table.add_row(*_texts(row, has_x=has_x))
    options.console.print(table)


def _texts(row: dict[str, Any], *, has_x: bool) -> list[str]:
    difference = "reference" if row["is_reference"] else "–"
    if row["difference"] is not None:
        difference = with_interval(row["difference"])
    return [
        "  " + row["label"],
        *([f"{row['x']:g}"] if has_x else []),
        with_error(row["regret"]),
        difference,
        f"{row['locked_in']:.0%}",
    ]
