"""``fairduel leaderboard``: which agent to use."""

from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from fairduel.cli import options
from fairduel.experiments import leaderboard as board
from fairduel.report.tables import with_error
from fairduel.simulation import Store


def leaderboard(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
    runs: options.Runs = 10,
    seed: options.Seed = 0,
    jobs: options.Jobs = options.CORES,
    out: options.Out = Path("results/leaderboard"),
) -> None:
    """Compare all dueling agents, untuned, over many scenarios.

    An agent's ratio on a scenario is its regret over that of the best agent
    tuned for that very scenario, on other seeds. The worst of its ratios says
    what you risk; their geometric mean what to expect.
    """
    options.console.quiet = as_json
    store, seeds = Store(out), options.report_seeds(seed, runs)
    options.compile_first(board.report_cells())
    with options.progress_bar("Leaderboard", board.count_runs(store, seeds)) as progress:
        result = board.compete(store, seeds, jobs=jobs, progress=progress)
    from fairduel.report.leaderboard_page import write_leaderboard  # noqa: PLC0415  # matplotlib loads only where it draws

    page = write_leaderboard(out, result, seeds, options.typed_command())
    if as_json:
        typer.echo((out / "leaderboard.json").read_text(encoding="utf-8"), nl=False)
        return
    title = f"Leaderboard ({len(board.SCENARIOS)} scenarios, {runs} runs each; ratios ± standard error)"
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    for name in ("agent, untuned", "worst ratio", "where", "geometric mean"):
        table.add_column(name, justify="right" if "ratio" in name or "mean" in name else "left")
    for standing in result.standings:
        where, worst = standing.worst
        mean = standing.geometric_mean
        table.add_row(standing.contender.title, with_error(worst, digits=2), where, with_error(mean, digits=2))
    options.console.print(table)
    options.console.print(f"\nReport: [bold]{page}[/bold]", soft_wrap=True)
