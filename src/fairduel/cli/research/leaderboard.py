"""``fairduel leaderboard``: which agent to use."""

import json
from pathlib import Path
from typing import Annotated

import typer

from fairduel.cli import output
from fairduel.cli.folders import claim
from fairduel.cli.research import options
from fairduel.experiments import competition
from fairduel.experiments.board_advice import board_conclusions
from fairduel.experiments.competition import HALVES
from fairduel.report.research.research_tables import interval_text, share_text
from fairduel.report.text_table import TextTable
from fairduel.simulation import Store

_QUICK = 2  # runs; fewer have no interval


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
    quick: Annotated[bool, typer.Option("--quick", help="Two runs only: sooner done, with wide intervals.")] = False,
    seed: options.Seed = 0,
    jobs: options.Jobs = options.CORES,
    out: options.Out = Path("results/leaderboard"),
) -> output.Record:
    """Compare all dueling agents, untuned, on many scenarios.

    An agent's ratio on a scenario is its regret divided by that of the best
    agent tuned for that scenario, on other seeds. The worst ratio is what
    you risk; the geometric mean is what to expect. Agents that take a flip
    budget play twice: C known, and C unknown.

    Interrupt it at any time: finished runs are saved, and rerunning resumes.
    """
    runs = min(runs, _QUICK) if quick else runs
    seeds = options.report_seeds(seed, runs)
    added = [competition.Contender(*options.Named.parse(text)) for text in agent]
    cells = competition.report_cells(added)
    claim(out, "leaderboard")
    store = Store(out, traces=False)
    output.compile_first(cells)
    left = competition.count_board_runs(store, seeds, added)
    if left:
        output.notify(f"{left:,} runs to do.")
    with output.progress_bar("Leaderboard", left) as progress:
        result = competition.compete(store, seeds, added, jobs=jobs, progress=progress)
    from fairduel.report.research.leaderboard_page import write_leaderboard  # noqa: PLC0415  # plotting is slow

    page = write_leaderboard(out, result, seeds, output.typed_command())
    concluded = board_conclusions(result)
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
    caption = f"{len(competition.SCENARIOS)} scenarios, {runs} runs each; ratios with 95% intervals"
    columns = ("agent, untuned", "worst ratio", "where", "geometric mean", *(f"worst, {half}" for half in HALVES))
    table = TextTable((*columns, "best recommended"), rows, caption)
    optional = ["best recommended", "where", *(f"worst, {half}" for half in HALVES)]
    output.print_table(table, text=["agent, untuned", "where"], optional=optional, file=out / "leaderboard.json")
    output.say_report(page)
    record = json.loads((out / "leaderboard.json").read_bytes())
    return {**record, "conclusions": concluded, "report": str(page)}
