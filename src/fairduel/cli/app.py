"""All commands in one place."""

from typing import Annotated

import typer

import fairduel
from fairduel.cli import results
from fairduel.cli.audit import audit_command
from fairduel.cli.demo import demo
from fairduel.cli.leaderboard import leaderboard
from fairduel.cli.rank import rank_command
from fairduel.cli.reproduce import reproduce
from fairduel.cli.simulate import simulate
from fairduel.cli.stress import stress_command
from fairduel.cli.sweep import sweep
from fairduel.cli.tune import tune
from fairduel.cli.verify import verify

app = typer.Typer(
    name="fairduel",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"fairduel {fairduel.__version__}")
        raise typer.Exit


@app.callback()
def fairduel_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """Find what people prefer, even when some of them lie.

    Contextual dueling bandits under adversarial feedback: RCDB and RCDB-S,
    their rivals, attacks on them, and the experiments that compare them.

    Start with:  [bold]fairduel demo[/bold]  (a file of votes with liars), or
    [bold]fairduel reproduce figure1[/bold]  (the paper).
    """


app.command()(reproduce)
app.command()(simulate)
app.command()(tune)
app.command()(verify)
app.command()(leaderboard)
app.command()(sweep)
app.command("rank")(rank_command)
app.command("audit")(audit_command)
app.command("stress")(stress_command)
app.command()(demo)
app.add_typer(results.app, name="results")
