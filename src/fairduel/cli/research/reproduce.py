"""``fairduel reproduce`` and ``simulate``: the paper's experiments, others beyond them, and any other runs."""

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from fairduel.agents import AGENTS
from fairduel.cli import output
from fairduel.cli.folders import claim
from fairduel.cli.output import Record, notify_assumptions
from fairduel.cli.research import options
from fairduel.errors import BadInputError, unknown_name
from fairduel.experiments import EXPERIMENTS, table1_growth
from fairduel.experiments.comparing import comparison
from fairduel.experiments.experiment import Experiment, Results, run_experiment
from fairduel.experiments.replayed_votes import replay_experiments
from fairduel.report.research.research_tables import (
    RECOMMENDATION_COLUMNS,
    difference_text,
    error_text,
    recommendation_cells,
)
from fairduel.report.text_table import TextTable
from fairduel.simulation import Store, count_missing, missing_seeds
from fairduel.stats import Mean

TABLE1 = "table1"
REPLAY = "replay"
_MOST_ROWS = 40  # in a terminal; the page has them all
_NAMES = [*EXPERIMENTS, TABLE1, REPLAY, "all"]
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
            show_default=f"10; {REPLAY}, rcdp: 20",
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

    EXPERIMENTS

    Writes report.html, runs.parquet (one row per run) and
    traces.parquet (one row per round). Interrupt it at any time: finished
    runs are saved, and rerunning resumes.
    """
    if experiment not in _NAMES:
        raise unknown_name("experiment", experiment, _NAMES)
    if data is not None and experiment != REPLAY:
        raise BadInputError(f"--data is for {REPLAY} only: {experiment} generates its own data.")
    options.report_seeds(seed, runs or 1)  # refuses tuning seeds before it reads anything
    folder = out or Path("results") / experiment
    if experiment == TABLE1:
        return _report_table1(folder, options.report_seeds(seed, runs or 10), jobs)
    if experiment == REPLAY:
        declared = replay_experiments(data)
    elif experiment == "all":
        declared = [each for each in (declare() for declare in EXPERIMENTS.values()) if not each.is_slow]
    else:
        declared = [EXPERIMENTS[experiment]()]
    seeds = options.report_seeds(seed, runs or (10 if experiment == "all" else declared[0].runs))
    return run_and_report(declared, "reproduce", folder, seeds, jobs)


def _described(name: str, text: str) -> str:
    """A line of the help."""
    return f"    [bold]{name}[/bold]{' ' * (16 - len(name))}{text}"


_OTHERS = {
    TABLE1: "Every algorithm's bound beside its measured growth (paper)",
    REPLAY: "Agents on recorded votes (--data), some flipped",
    "all": "All but table1, replay and slow ones",
}
_LINES = {name: (declare.__doc__ or "").splitlines()[0].rstrip(".") for name, declare in EXPERIMENTS.items()} | _OTHERS
_LISTED = "\n".join(_described(name, text) for name, text in _LINES.items())
reproduce.__doc__ = (reproduce.__doc__ or "").replace("    EXPERIMENTS", _LISTED)


def run_and_report(
    experiments: Sequence[Experiment], command: str, folder: Path, seeds: range, jobs: int
) -> output.Record:
    """Run experiments for a command, print what they found and write the report."""
    cells = [entry.cell for experiment in experiments for entry in experiment.entries]
    claim(folder, command)
    store = Store(folder)
    missing = missing_seeds(store, cells, seeds)
    output.compile_first(cell for cell in cells if missing[cell.key])
    all_results = []
    for experiment in experiments:
        left = count_missing(store, [entry.cell for entry in experiment.entries], seeds)
        with output.progress_bar(experiment.name, left) as progress:
            results = run_experiment(experiment, store, seeds, jobs=jobs, progress=progress)
        all_results.append(results)
        _print_results(results)
    with output.notices.status("Drawing …"):
        from fairduel.report.research.experiment_page import write_experiments  # noqa: PLC0415  # plotting is slow

        page = write_experiments(folder, all_results, output.typed_command())
    output.say_report(page)
    found = [
        {
            "name": results.experiment.name,
            "title": results.experiment.title,
            "conclusions": results.conclusions,
            "rows": [_plain(row) for row in results.summary],
        }
        for results in all_results
    ]
    return output.record(seeds=[seeds[0], seeds[-1]], experiments=found, report=str(page))


def _report_table1(folder: Path, seeds: range, jobs: int) -> output.Record:
    claim(folder, "reproduce")
    store, cells = Store(folder), table1_growth.all_cells()
    output.compile_first(cells)
    with output.progress_bar("Table 1", count_missing(store, cells, seeds)) as progress:
        rows = table1_growth.measure(store, seeds, jobs=jobs, progress=progress)
    from fairduel.report.research.table1_page import texts, write_table1  # noqa: PLC0415  # plotting is slow

    page = write_table1(folder, rows, seeds, output.typed_command())
    found = table1_growth.table1_conclusions(rows)
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


def _print_results(results: Results) -> None:
    """Print the conclusions, and one line per entry unless the conclusions would then scroll away."""
    output.say("", results.experiment.title, style="bold")
    output.say(*results.conclusions)
    if len(results.summary) <= _MOST_ROWS:
        _print_table(results)
    else:
        output.say(f"The report has all {len(results.summary)} rows.")


def _print_table(results: Results) -> None:
    rows = results.summary
    x_label = results.experiment.x_label
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
        difference = difference_text(row["difference"])
    return [
        row["label"],
        *(["–" if row["x"] is None else f"{row['x']:g}"] if has_x else []),
        error_text(row["regret"]),
        difference,
        f"{row['locked_in']:.0%}",
    ]


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value.as_json() if isinstance(value, Mean) else value for name, value in row.items()}


def simulate(
    agent: Annotated[
        list[str],
        typer.Option(
            metavar="AGENT",
            autocompletion=lambda: list(AGENTS),
            help=f"{options.AGENT_NAMES} {options.SETTINGS}rcdb,radius=8. Repeat to compare.",
            show_default="rcdb",
        ),
    ] = ["rcdb"],  # noqa: B006  # typer copies it
    attack: Annotated[list[str], typer.Option(**options.ATTACK_OPTION, show_default="greedy")] = ["greedy"],  # noqa: B006
    budget: options.Budget = 45,
    horizon: options.Horizon = 2000,
    world: options.World = "hypercube",
    delay: options.Delay = "none",
    runs: options.Runs = 10,
    seed: options.Seed = 0,
    jobs: options.Jobs = options.CORES,
    out: options.Out = Path("results/simulate"),
) -> Record:
    """Run agents against attacks and plot their regret.

    Every agent meets every attack. The first agent is the reference.

    Your own agent needs ask(actions), which returns a pair of indices, and
    tell(pair, outcome). Its constructor may name dimension, norm_bound,
    link, arms, horizon, flip_budget, delay and seed to receive them. Your
    own attack extends WeakAdversary or StrongAdversary of
    fairduel.adversaries and implements wants_flip; your own delay extends
    Delay of fairduel.delays.

    Examples:
      fairduel simulate --agent rcdb --agent colstim --attack misleading
      fairduel simulate --agent rcdb,radius=2 --agent rcdb,radius=theory
      fairduel simulate --attack greedy --attack random,probability=0.1
      fairduel simulate --agent rcdb --agent rcdp --delay fixed,rounds=50
    """
    pairs = itertools.product(dict.fromkeys(attack), dict.fromkeys(agent))
    cells = [options.cell_of(player, attacker, world, delay, budget, horizon) for attacker, player in pairs]
    for cell in cells:
        cell.check()
    notify_assumptions(cells)
    return run_and_report([comparison(cells)], "simulate", out, options.report_seeds(seed, runs), jobs)
