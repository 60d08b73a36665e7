"""``fairduel leaderboard``: which agent to use."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from fairduel.cli.options import (
    CORES,
    Jobs,
    Out,
    Runs,
    Seed,
    compile_first,
    console,
    progress_bar,
    report_seeds,
    typed_command,
)
from fairduel.experiments import leaderboard as board
from fairduel.files import write_atomically
from fairduel.report.tables import with_error
from fairduel.report.templating import render
from fairduel.simulation import Store, versions


def leaderboard(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
    runs: Runs = 10,
    seed: Seed = 0,
    jobs: Jobs = CORES,
    out: Out = Path("results/leaderboard"),
) -> None:
    """Compare all dueling agents, untuned, over many scenarios.

    An agent's ratio on a scenario is its regret over that of the best agent
    tuned for that very scenario, on other seeds. The worst of its ratios says
    what you risk; their geometric mean what to expect.
    """
    console.quiet = as_json
    store, seeds = Store(out), report_seeds(seed, runs)
    compile_first(board.report_cells())
    with progress_bar("Leaderboard", board.count_runs(store, seeds)) as progress:
        result = board.compete(store, seeds, jobs=jobs, progress=progress)
    text = json.dumps(_record(result, seeds), indent=1, ensure_ascii=False)
    write_atomically(out / "leaderboard.json", (text + "\n").encode())
    page = out / "leaderboard.html"
    shown = f"{seeds[0]}–{seeds[-1]} ({len(seeds)} runs)"
    html = render("leaderboard.html", board=result, scenarios=board.SCENARIOS, seeds=shown, command=typed_command())
    write_atomically(page, html.encode())
    if as_json:
        typer.echo(text)
        return
    title = f"Leaderboard ({len(board.SCENARIOS)} scenarios, {runs} runs each; ratios ± standard error)"
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    for name in ("agent, untuned", "worst ratio", "where", "geometric mean"):
        table.add_column(name, justify="right" if "ratio" in name or "mean" in name else "left")
    for standing in result.standings:
        where, worst = standing.worst
        mean = standing.geometric_mean
        table.add_row(standing.contender.title, with_error(worst, digits=2), where, with_error(mean, digits=2))
    console.print(table)
    console.print(f"\nReport: [bold]{page}[/bold]", soft_wrap=True)


def _record(result: board.Board, seeds: range) -> dict[str, Any]:
    return {
        "command": typed_command(),
        "seeds": [seeds[0], seeds[-1]],
        "versions": versions(),
        "standings": [
            {
                "agent": standing.contender.agent,
                "settings": dict(standing.contender.settings),
                "worst": {"scenario": standing.worst[0], **standing.worst[1].as_json()},
                "geometric_mean": standing.geometric_mean.as_json(),
                "ratios": {name: ratio.as_json() for name, ratio in standing.ratios.items()},
            }
            for standing in result.standings
        ],
        "best": {
            name: {
                "agent": best.contender.agent,
                "settings": {**best.contender.settings, **best.tuning.winner.settings},
                "regret": float(best.regret.mean()),
                "tuning_seeds": best.tuning.seeds,
            }
            for name, best in result.best.items()
        },
    }
