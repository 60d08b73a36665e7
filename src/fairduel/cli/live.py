"""The commands of live voting, apart from all others, which take a second to import: a server should be ready soon."""

import typer

from fairduel.cli import store
from fairduel.cli.help import Command, Group
from fairduel.cli.poll import poll
from fairduel.cli.serve import serve

NAMES = ("serve", "poll", "store")


def new_app() -> typer.Typer:
    """Return the ``fairduel`` command without subcommands."""
    return typer.Typer(
        name="fairduel",
        cls=Group,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def add_live_commands(app: typer.Typer) -> None:
    """Add the subcommands."""
    for command in (serve, poll):  # they run until they are stopped, so there is nothing to report
        app.command(cls=Command, rich_help_panel="Live voting")(command)
    app.add_typer(store.app, name="store", rich_help_panel="Live voting")
