"""All commands, in the order of the help."""

from collections.abc import Callable
from typing import Annotated

import typer

import fairduel
from fairduel.cli import results
from fairduel.cli.audit import audit_command
from fairduel.cli.citation import BIBTEX
from fairduel.cli.cost import cost_command
from fairduel.cli.demo import demo
from fairduel.cli.explain import explain_command
from fairduel.cli.export import export_command
from fairduel.cli.help import Command
from fairduel.cli.leaderboard import leaderboard
from fairduel.cli.live import add_live_commands, new_app
from fairduel.cli.output import Record, reporting
from fairduel.cli.rank import rank_command
from fairduel.cli.reproduce import reproduce
from fairduel.cli.review import review_command
from fairduel.cli.simulate import simulate
from fairduel.cli.stress import stress_command
from fairduel.cli.sweep import sweep
from fairduel.cli.tune import tune
from fairduel.cli.verify import verify

app = new_app()


def _version(value: bool) -> None:
    if value:
        typer.echo(f"fairduel {fairduel.__version__}")
        raise typer.Exit


def _cite(value: bool) -> None:
    if value:
        typer.echo(BIBTEX, nl=False)
        raise typer.Exit


@app.callback()
def fairduel_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    cite: Annotated[
        bool, typer.Option("--cite", callback=_cite, is_eager=True, help="Show how to cite fairduel, as BibTeX.")
    ] = False,
) -> None:
    """Find what people prefer, even when some of them lie.

    Have a file of votes? Start with [bold]fairduel demo[/bold], then [bold]fairduel rank votes.csv[/bold].
    Want to collect votes? Start with [bold]fairduel serve --demo[/bold].
    Comparing algorithms? Start with [bold]fairduel reproduce figure1[/bold].
    """


_VOTES: dict[str, Callable[..., Record]] = {
    "rank": rank_command,
    "audit": audit_command,
    "explain": explain_command,
    "stress": stress_command,
    "cost": cost_command,
    "review": review_command,
    "export": export_command,
    "demo": demo,
}
_BENCHMARKS: list[Callable[..., Record]] = [reproduce, simulate, tune, verify, leaderboard, sweep]
for name, command in _VOTES.items():
    app.command(name, cls=Command, rich_help_panel="Votes")(reporting(command))
add_live_commands(app)
for command in _BENCHMARKS:
    app.command(cls=Command, rich_help_panel="Benchmarks")(reporting(command))
app.add_typer(results.app, name="results", rich_help_panel="Benchmarks")
