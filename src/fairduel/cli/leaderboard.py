"""``fairduel leaderboard``: which agent to use."""

import json
import math
from pathlib import Path
from typing import Annotated

import typer

from fairduel.cli import options, output
from fairduel.cli.folders import claim
from fairduel.experiments import leaderboard as board
from fairduel.experiments.leaderboard import HALVES
from fairduel.experiments.leaderboard_conclusions import leaderboard_conclusions
from fairduel.report.tables import interval_text, share_text
from fairduel.report.text_table import TextTable
from fairduel.simulation import Store


def leaderboard(
    agent: Annotated[
        list[str],
        typer.Option(
            metavar="AGENT",
            help=f"Add an agent: your own as module:Class, or a built-in one with settings. {options.SETTINGS}"
            "rcdb,radius=8. Repeat to add more.",
            show_default=False,
        ),
    ] = [],  # noqa: B006  # typer copies it
    runs: options.Runs = 10,
    seed: options.Seed = 0,
    jobs: options.Jobs = options.CORES,
    out: options.Out = Path("results/leaderboard"),
) -> output.Record:
    """Compare all dueling agents, untuned, on many scenarios.

    An agent's ratio on a scenario is its regret divided by that of the best
    agent tuned for that scenario, on other seeds. The worst ratio is what
    you risk; the geometric mean is what to expect. Agents that take a flip
    budget play twice: told C, and not told.

    Says how many runs are left, and about how long they take, before it
    starts. Interrupt it at any time: finished runs are saved, and rerunning
    resumes.
    """
    seeds = options.report_seeds(seed, runs)
    added = [board.Contender(*options.Named.parse(text)) for text in agent]
    cells = board.report_cells(added)
    claim(out, "leaderboard")
    store = Store(out, traces=False)
    output.compile_first(cells)
    estimating = "Estimating the time …"
    if not output.notices.is_terminal and board.count_runs(store, seeds, added):
        output.notify(estimating)  # a status is shown in a terminal only
    with output.notices.status(estimating):
        work = board.estimate(store, seeds, added, jobs=jobs)
    if work.runs:
        minutes, cores = math.ceil(work.minutes), "1 idle core" if jobs == 1 else f"{jobs} idle cores"
        output.notify(f"{work.runs:,} runs to do, about {minutes:,} min on {cores}.")
    with output.progress_bar("Leaderboard", work.runs) as progress:
        result = board.compete(store, seeds, added, jobs=jobs, progress=progress)
    from fairduel.report.leaderboard_page import write_leaderboard  # noqa: PLC0415  # plotting is slow

    page = write_leaderboard(out, result, seeds, output.typed_command())
    concluded = leaderboard_conclusions(result)
    output.say(*concluded)
    rows = [
        [
            standing.contender.title,
            interval_text(standing.overall.worst),
            standing.overall.where,
            interval_text(standing.overall.geometric_mean),
            *(interval_text(standing.halves[half].worst) if half in standing.halves else "–" for half in HALVES),
            share_text(standing.recommended_best),
        ]
        for standing in result.standings
    ]
    caption = f"{len(board.SCENARIOS)} scenarios, {runs} runs each; ratios with 95% intervals"
    columns = ("agent, untuned", "worst ratio", "where", "geometric mean", *(f"worst, {half}" for half in HALVES))
    table = TextTable((*columns, "best recommended"), rows, caption)
    optional = ["best recommended", "where", *(f"worst, {half}" for half in HALVES)]
    output.print_table(table, text=["agent, untuned", "where"], optional=optional, file=out / "leaderboard.json")
    output.say_report(page)
    record = json.loads((out / "leaderboard.json").read_bytes())
    return {**record, "conclusions": concluded, "report": str(page)}
