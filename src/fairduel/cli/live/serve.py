"""``fairduel serve`` and ``poll``: live voting, and the link to share."""

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairduel.checks import needs_extra
from fairduel.cli import output
from fairduel.cli.help import grouped
from fairduel.errors import BadInputError

if TYPE_CHECKING:
    from fairduel.service.events.database import Location
    from fairduel.service.service import Service

_DEFAULT_FOLDER = Path("fairduel-votes")


@dataclass(frozen=True)
class Place:
    """Where a server stores and listens; each field is an option of ``serve`` and ``poll``."""

    port: Annotated[int, typer.Option(min=0, max=65_535, metavar="N", help="Port; 0 picks a free one.")] = 8000
    folder: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where everything is stored.", show_default="fairduel-votes"),
    ] = None
    database: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="PostgreSQL database (postgresql://user@host/name) instead of a folder. Several servers can share it.",
            show_default=False,
        ),
    ] = None
    address: Annotated[
        str, typer.Option(metavar="IP", help="Address to listen on; 0.0.0.0 for all of this machine's.")
    ] = "127.0.0.1"
    host_name: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Name under which people reach the server. Repeatable.",
            show_default="localhost",
        ),
    ] = None
    root_path: Annotated[
        str, typer.Option(metavar="PATH", help="Subpath under which a proxy offers the server, and which it strips.")
    ] = ""
    proxy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="IP",
            help="Trusted proxy: believe its X-Forwarded headers. Repeatable.",
            show_default="none",
        ),
    ] = None
    log_requests: Annotated[
        bool, typer.Option("--log-requests", help="Log every request on stderr, as JSON lines.")
    ] = False
    opens_page: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the operator's page in a browser, if run in a terminal.")
    ] = True
    limits: Annotated[
        str,
        typer.Option(
            metavar="PRESET",
            help="Limits per address. People who may join at once, and per minute: strict 10 and 6, public 150 and "
            "60, hall 1,000 and 1,200 (a lecture hall behind one address), or none.",
        ),
    ] = "public"
    webhook: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL",
            help="Post what happens to this https address, signed. Repeatable.",
            show_default="none",
        ),
    ] = None
    mail: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS",
            help="Tell this e-mail address what happens; FAIRDUEL_SMTP is smtp://user:password@host:587. Repeatable.",
            show_default="none",
        ),
    ] = None

    @property
    def store(self) -> "Location":
        """The folder or the database."""
        if self.database is None:
            return self.folder or _DEFAULT_FOLDER
        if self.folder is not None:
            raise BadInputError("give --folder or --database, not both.")
        from fairduel.service.events.database import database  # noqa: PLC0415  # optional

        return database(self.database)


@grouped()
def serve(
    place: Place,
    demo: Annotated[bool, typer.Option("--demo", help="Add a study with simulated voters, a fifth of them liars.")] = (
        False
    ),
    new_key: Annotated[bool, typer.Option("--new-key", help="Replace the operator's key.")] = False,
) -> None:
    """Collect votes live: choose duels, learn robustly, show results.

    Prints the link for the operator, who creates studies and sees the
    results, and opens it if run in a terminal. It contains a key, which is stored only as a hash, so keep it;
    --new-key makes another one.

    Everything is in DIR, or in a database, which several servers can share:
    one leads, and another takes over if it ends. A vote is acknowledged once
    it is on disk, so servers may be killed and restarted at any time.
    """
    with needs_extra("serve"):
        from fairduel.cli.live.serving import run  # noqa: PLC0415  # optional
        from fairduel.service.commands.simulated_voters import Demo  # noqa: PLC0415

    def simulate(service: "Service", _: str) -> str:
        return f"Simulated voters, a fifth of them liars, vote in study {Demo(service).study}."

    run(place, simulate if demo else None, new_key=new_key)


@grouped()
def poll(
    place: Place,
    items: Annotated[
        list[str],
        typer.Argument(
            metavar="ITEMS",
            help="A study (.toml), a table (.csv), images, audio, text files with one item per line, or texts.",
            show_default=False,
        ),
    ],
    question: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What voters are asked.", show_default="Which is better?")
    ] = None,
    votes_per_voter: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Votes per voter.", show_default="every pair once")
    ] = None,
    settings: Annotated[
        list[str],
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Any setting of a study file, such as access=invitation or closes=2030-05-31T18:00:00Z. Repeatable.",
            show_default="none",
        ),
    ] = [],  # noqa: B006
    votes: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Votes to begin with: an export, or any vote file.", show_default="none"),
    ] = None,
    server: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Add the poll to the server at this address instead of starting one.",
            show_default="none",
        ),
    ] = None,
) -> None:
    """Start a poll on some items and print the link to share.

    An item is an image or audio file, a line of a text file (.txt, .md), or
    a text given as such. A .csv file lists items (name, text, image, audio)
    or prompts with a column of answers per model; a .toml file has the
    settings too, and --set gives any of them. Everyone with the link can
    vote, unless it says otherwise.

    --server adds the poll to a server that runs, also on another machine.
    Its operator's key is in FAIRDUEL_KEY, or after # in the link.
    """
    given = read_settings(settings, question, votes_per_voter)
    if server is not None:
        with needs_extra("serve"):
            from fairduel.service.commands.polls import add_poll  # noqa: PLC0415  # optional
        url, _, key = server.partition("#")
        made = add_poll(url, key or os.environ.get("FAIRDUEL_KEY", ""), items, given, votes)
        output.say(*_addresses(f"{url.rstrip('/')}/", made))
        return
    with needs_extra("serve"):
        from fairduel.cli.live.serving import run  # noqa: PLC0415  # optional
        from fairduel.service.commands.operating import links  # noqa: PLC0415
        from fairduel.service.commands.polls import create_poll  # noqa: PLC0415

    def prepare(service: "Service", here: str) -> str:
        with output.notices.status("Creating the study …"):
            study = create_poll(service, items, given, votes)
        return "\n".join(_addresses(here, links(service.ledger.state.studies[study])))

    run(place, prepare)


_LINKS = {"vote": "Voters", "prolific": "To paste at Prolific", "mturk": "For MTurk, before the worker's id"}


def _addresses(here: str, made: dict[str, str]) -> list[str]:
    return [f"{_LINKS[name]}: {here}{link}" for name, link in made.items()]


def read_settings(given: list[str], question: str | None, votes_per_voter: int | None) -> dict[str, Any]:
    """Return the settings of a study that are given on the command line, as a study file would give them.

    >>> read_settings(["access=invitation", "comments=true", "votes_per_voter=20"], "Which?", None)
    {'access': 'invitation', 'comments': True, 'votes_per_voter': 20, 'question': 'Which?'}
    """
    found = dict[str, Any]()
    for each in given:
        name, is_there, value = each.partition("=")
        if not is_there:
            raise BadInputError(f"--set {each}: write NAME=VALUE, such as votes_per_voter=20.")
        try:
            found[name.strip()] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            found[name.strip()] = value.strip()
    named = {"question": question, "votes_per_voter": votes_per_voter}
    return found | {name: value for name, value in named.items() if value is not None}
