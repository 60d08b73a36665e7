"""``fairduel reproduce``: the paper's figures and table, and experiments beyond them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from fairduel.cli import options, output
from fairduel.cli.folders import claim
from fairduel.errors import BadInputError, unknown_name
from fairduel.experiments import EXPERIMENTS, Experiment, Lines, coverage, replay, table1, vote_attacks
from fairduel.experiments.conclusions import conclusions, table1_conclusions
from fairduel.experiments.inference import Mean
from fairduel.experiments.rcdp import RUNS as RCDP_RUNS
from fairduel.experiments.results import Results, run_experiment
from fairduel.experiments.votes_conclusions import coverage_conclusions, vote_attacks_conclusions
from fairduel.report.tables import RECOMMENDATION_COLUMNS, recommendation_cells, summary, with_error, with_interval
from fairduel.report.text_table import TextTable
from fairduel.simulation import Store, count_missing

TABLE1 = "table1"
REPLAY = "replay"
COVERAGE = "coverage"
VOTES = "votes"
SLOW = "post-serving"
_NAMES = [*EXPERIMENTS, TABLE1, REPLAY, COVERAGE, VOTES, "all"]
_RUNS = {REPLAY: replay.RUNS, "rcdp": RCDP_RUNS, COVERAGE: coverage.RUNS, VOTES: vote_attacks.RUNS}
"""Experiments with more than 10 runs by default."""
Which = Annotated[
    str, typer.Argument(metavar="EXPERIMENT", autocompletion=lambda: _NAMES, help="Name of the experiment; see above.")
]


def reproduce(
    experiment: Which,
    runs: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Number of runs, one seed each.",
            show_default=f"10; {REPLAY}, rcdp, {VOTES}: {replay.RUNS}; {COVERAGE}: {coverage.RUNS}",
        ),
    ] = None,
    seed: options.Seed = 0,
    jobs: options.Jobs = options.CORES,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help=f"Recorded votes for {REPLAY}.", show_default=False)
    ] = None,
    out: Annotated[Path | None, typer.Option(**options.OUT_OPTION, show_default="results/EXPERIMENT")] = None,
) -> output.Record:
    """Reproduce a figure or table of the paper, or go beyond it.

    [bold]figure1[/bold]         RCDB against tuned baselines under four attacks (paper)
    [bold]figure2[/bold]         regret against the number of flips (paper)
    [bold]table1[/bold]          every algorithm's bound beside its measured growth (paper)
    [bold]radius[/bold]          the theorems' radii against the practical ones
    [bold]sigmoid[/bold]         RCDB against RCDB-S as the norm of θ* grows
    [bold]unknown-budget[/bold]  RCDB with too low, exact and too high a flip tolerance
    [bold]dimension[/bold]       growth of regret in d, with fitted exponents
    [bold]horizon[/bold]         growth of regret in T, with fitted exponents
    [bold]estimators[/bold]      exact, lazy and one-pass estimates side by side
    [bold]recommendation[/bold]  final recommendations under lies at any time
    [bold]sceptic[/bold]         Sceptic without one of its parts at a time
    [bold]ginop[/bold]           30 random actions, d = 10 to 20, with and without flips
    [bold]rcdp[/bold]            RCDB against RCDP-UCB when outcomes arrive late
    [bold]replay[/bold]          agents on recorded votes (--data), some flipped
    [bold]post-serving[/bold]    the same when some features are seen late (slow)
    [bold]coverage[/bold]        how often the ranges of fairduel rank hold
    [bold]votes[/bold]           rankings of votes under attack, ours and five rivals
    [bold]all[/bold]             all but table1, replay, votes, coverage, post-serving

    Writes report.html, the figures, runs.parquet (one row per run) and
    traces.parquet (one row per round). Interrupt it at any time: finished
    runs are saved, and rerunning resumes.
    """
    if experiment not in _NAMES:
        raise unknown_name("experiment", experiment, _NAMES)
    if data is not None and experiment != REPLAY:
        raise BadInputError(f"--data is for {REPLAY} only: {experiment} generates its own data.")
    folder = out or Path("results") / experiment
    seeds = options.report_seeds(seed, runs or _RUNS.get(experiment, 10))
    if experiment == TABLE1:
        return _report_table1(folder, seeds, jobs)
    if experiment == COVERAGE:
        return _report_coverage(folder, seeds, jobs)
    if experiment == VOTES:
        return _report_votes(folder, seeds, jobs)
    if experiment == REPLAY:
        return run_and_report(replay.replay(data), "reproduce", folder, seeds, jobs)
    names = [name for name in EXPERIMENTS if name != SLOW] if experiment == "all" else [experiment]
    return run_and_report([EXPERIMENTS[name]() for name in names], "reproduce", folder, seeds, jobs)


def run_and_report(
    experiments: Sequence[Experiment], command: str, folder: Path, seeds: range, jobs: int
) -> output.Record:
    """Run experiments for a command, print what they found and write the report."""
    cells = [entry.cell for experiment in experiments for entry in experiment.entries]
    for cell in cells:
        cell.check()
    claim(folder, command)
    store = Store(folder)
    output.compile_first(cells)
    all_results = []
    for experiment in experiments:
        missing = count_missing(store, [entry.cell for entry in experiment.entries], seeds)
        with output.progress_bar(experiment.name, missing) as progress:
            results = run_experiment(experiment, store, seeds, jobs=jobs, progress=progress)
        all_results.append(results)
        _print_results(results)
    with output.notices.status("Drawing …"):
        from fairduel.report.experiment_page import write_report  # noqa: PLC0415  # plotting is slow

        page = write_report(folder, all_results, output.typed_command())
    output.say_report(page)
    found = [
        {
            "name": results.experiment.name,
            "title": results.experiment.title,
            "conclusions": conclusions(results),
            "rows": [_plain(row) for row in summary(results)],
        }
        for results in all_results
    ]
    return output.record(seeds=[seeds[0], seeds[-1]], experiments=found, report=str(page))


def _report_table1(folder: Path, seeds: range, jobs: int) -> output.Record:
    claim(folder, "reproduce")
    store, cells = Store(folder), table1.all_cells()
    output.compile_first(cells)
    with output.progress_bar("Table 1", count_missing(store, cells, seeds)) as progress:
        rows = table1.measure(store, seeds, jobs=jobs, progress=progress)
    from fairduel.report.table1_page import texts, write_table1  # noqa: PLC0415  # plotting is slow

    page = write_table1(folder, rows, seeds, output.typed_command())
    found = table1_conclusions(rows)
    output.say(*found)
    columns = {"growth in T": "in_horizon", "in C": "in_budget", "regret": "reference", "as published": "published"}
    cells_of = [
        [row.algorithm.title, row.algorithm.guarantee.bound, *(texts(row)[name] for name in columns.values())]
        for row in rows
    ]
    table = TextTable(("algorithm", "bound", *columns), cells_of, "Measured (mean ± standard error)")
    output.print_table(
        table, text=["algorithm", "bound"], optional=["as published", "bound"], file=folder / "table1.json"
    )
    output.say_report(page)
    return {**json.loads((folder / "table1.json").read_bytes()), "conclusions": found, "report": str(page)}


def _report_coverage(folder: Path, seeds: range, jobs: int) -> output.Record:
    claim(folder, "reproduce")
    missing = coverage.count_missing(folder, seeds)
    with output.progress_bar("Coverage", missing, unit="vote files") as progress:
        found = coverage.measure_grid(folder, seeds, jobs=jobs, progress=progress)
    from fairduel.report.coverage_page import kinds_table, write_coverage  # noqa: PLC0415  # plotting is slow

    page = write_coverage(folder, found, seeds, output.typed_command())
    concluded = coverage_conclusions(found)
    output.say(*concluded)
    output.print_table(
        kinds_table(found),
        text=["votes", "what they are"],
        optional=["what they are", "before"],
        file=folder / "coverage.json",
    )
    output.say_report(page)
    return {**json.loads((folder / "coverage.json").read_bytes()), "conclusions": concluded, "report": str(page)}


def _report_votes(folder: Path, seeds: range, jobs: int) -> output.Record:
    claim(folder, "reproduce")
    with output.progress_bar("Votes", vote_attacks.count_missing(folder, seeds)) as progress:
        frame = vote_attacks.measure(folder, seeds, jobs=jobs, progress=progress)
    from fairduel.report.vote_attacks_page import tau_table, write_vote_attacks  # noqa: PLC0415  # plotting is slow

    cells = vote_attacks.compare(frame)
    page = write_vote_attacks(folder, frame, cells, seeds, output.typed_command())
    found = vote_attacks_conclusions(cells)
    output.say(*found)
    output.print_table(tau_table(cells), text=["population", "attack"], file=folder / "table-kendall.csv")
    output.say_report(page)
    rows = [
        {
            "population": cell.population,
            "attack": cell.attack,
            "share": cell.share,
            "tau": {name: found.as_json() for name, found in cell.tau.items()},
            "gained": cell.gained and {name: found.as_json() for name, found in cell.gained.items()},
            "best_rival": cell.best,
            "lead": cell.lead.as_json(),
        }
        for cell in cells
    ]
    return output.record(seeds=[seeds[0], seeds[-1]], conclusions=found, rows=rows, report=str(page))


def _print_results(results: Results) -> None:
    """Print the conclusions and one line per entry."""
    output.say("", results.experiment.title, style="bold")
    output.say(*conclusions(results))
    rows = summary(results)
    x_label = next((view.x_label for view in results.experiment.views if isinstance(view, Lines)), "")
    lines: list[list[str]] = []
    panel = ""
    for row in rows:
        if row["panel"] != panel:
            panel = row["panel"]
            lines.append([panel])
        about_recommendations = results.experiment.is_about_recommendations
        lines.append(recommendation_cells(row) if about_recommendations else _cells(row, has_x=bool(x_label)))
    columns = ["agent (settings)", *([x_label] if x_label else []), "regret", "difference from reference", "locked in"]
    if results.experiment.is_about_recommendations:
        columns = ["agent (settings)", *RECOMMENDATION_COLUMNS]
    output.print_table(TextTable(columns, lines), text=["agent (settings)"], optional=["locked in"])


def _cells(row: dict[str, Any], *, has_x: bool) -> list[str]:
    difference = "reference" if row["is_reference"] else "–"
    if row["difference"] is not None:
        difference = with_interval(row["difference"])
    return [
        row["label"],
        *(["–" if row["x"] is None else f"{row['x']:g}"] if has_x else []),
        with_error(row["regret"]),
        difference,
        f"{row['locked_in']:.0%}",
    ]


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value.as_json() if isinstance(value, Mean) else value for name, value in row.items()}
