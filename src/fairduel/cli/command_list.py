"""All commands, in the order of the help; each is imported when it is needed."""

import ast
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

import fairduel
from fairduel.cli.help import Command, CommandGroup

_COMMANDS = {
    "Votes": {
        "rank": "votes.rank_command:rank_command",
        "audit": "votes.audit_command:audit_command",
        "explain": "votes.explain_command:explain_command",
        "stress": "votes.stress_command:stress_command",
        "review": "votes.review_command:review_command",
        "export": "votes.export_command:export_command",
        "demo": "votes.demo_command:demo_command",
    },
    "Live voting": {"serve": "live.serve:serve", "poll": "live.serve:poll"},
    "Benchmarks": {
        "reproduce": "research.reproduce:reproduce",
        "simulate": "research.reproduce:simulate",
        "attack": "research.attack:attack",
        "verify": "research.verify:verify_command",
        "leaderboard": "research.leaderboard:leaderboard",
        "sweep": "research.results:sweep_command",
    },
    "Needed less often": {
        "cost": "votes.cost_command:cost_command",
        "tune": "research.tune:tune",
        "store": "live.store:app",
        "results": "research.results:app",
    },
}
_UNTIL_STOPPED = ("serve", "poll")  # these have nothing to report
_WITHOUT_PAGE = ("export", "sweep")
_BIBTEX = f"""\
@software{{fairduel,
  title   = {{fairduel}},
  author  = {{{{The fairduel authors}}}},
  version = {{{fairduel.__version__}}},
  year    = {{2026}},
  url     = {{https://github.com/fairduel/fairduel}},
}}

@inproceedings{{di2025nearly,
  title     = {{Nearly Optimal Algorithms for Contextual Dueling Bandits from Adversarial Feedback}},
  author    = {{Di, Qiwei and He, Jiafan and Gu, Quanquan}},
  booktitle = {{Proceedings of the 42nd International Conference on Machine Learning}},
  series    = {{Proceedings of Machine Learning Research}},
  volume    = {{267}},
  publisher = {{PMLR}},
  year      = {{2025}},
  url       = {{https://arxiv.org/abs/2404.10776}},
}}
"""


def _version(value: bool) -> None:
    if value:
        typer.echo(f"fairduel {fairduel.__version__}")
        raise typer.Exit


def _cite(value: bool) -> None:
    if value:
        typer.echo(_BIBTEX, nl=False)
        raise typer.Exit


def _fairduel(
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


def app_for(arguments: Sequence[str] | None = None) -> typer.Typer:
    """Return ``fairduel`` with the command that the arguments name, or for ``None`` with all, which takes seconds.

    If the arguments name no command, all are there by name and summary only: for the help, or to say what is misspelt.
    """
    app = typer.Typer(
        name="fairduel",
        cls=CommandGroup,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_fairduel)
    listed = [(panel, name, place) for panel, places in _COMMANDS.items() for name, place in places.items()]
    every = arguments is None or arguments[:1] == ["--"]
    chosen = [each for each in listed if every or each[1] in (arguments or ())[:1]]
    for panel, name, place in chosen:
        _add(app, panel, name, place)
    for panel, name, place in () if chosen else listed:
        app.command(name, rich_help_panel=panel, help=_summary(place))(lambda: None)
    return app


def _add(app: typer.Typer, panel: str, name: str, place: str) -> None:
    from fairduel.cli.output import reporting  # noqa: PLC0415  # slow

    module, _, member = place.partition(":")
    found = getattr(import_module(f"fairduel.cli.{module}"), member)
    if isinstance(found, typer.Typer):
        app.add_typer(found, name=name, rich_help_panel=panel)
    else:
        command = found if name in _UNTIL_STOPPED else reporting(found, writes_page=name not in _WITHOUT_PAGE)
        app.command(name, cls=Command, rich_help_panel=panel)(command)


def _summary(place: str) -> str:
    """Return the first line of the docstring of a command, or of a group's callback, without importing it."""
    module, _, member = place.partition(":")
    path = Path(__file__).parent.joinpath(*module.split(".")).with_suffix(".py")
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            marks = [ast.unparse(mark) for mark in node.decorator_list]
            if node.name == member or f"{member}.callback()" in marks:
                return (ast.get_docstring(node) or "").partition("\n")[0]
    raise ValueError(f"{place} is no command")
