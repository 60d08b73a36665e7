"""``fairduel poll``: a study from files or lines of text, and the link to share."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairduel.checks import needs_extra
from fairduel.cli import output
from fairduel.cli import serve as serving

if TYPE_CHECKING:
    from fairduel.service.service import Service


def poll(
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
    votes: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Votes to begin with: an export, or any vote file.", show_default="none"),
    ] = None,
    port: serving.Port = 8000,
    folder: serving.Folder = None,
    database: serving.Database = None,
    address: serving.Address = serving.LOOPBACK,
    host_name: serving.HostNames = [],  # noqa: B006  # typer copies it
    root_path: serving.RootPath = "",
    proxy: serving.Proxies = [],  # noqa: B006
    log_requests: serving.LogRequests = False,
    opens_page: serving.Opens = True,
) -> None:
    """Start a poll on some items and print the link to share.

    An item is an image or audio file, a line of a text file (.txt, .md), or
    a text given as such. A .csv file lists items (name, text, image, audio)
    or prompts with a column of answers per model; a .toml file has the
    settings too. Everyone with the link can vote, unless it says otherwise.
    """
    with needs_extra("serve"):
        from fairduel.cli.serving import Place, run  # noqa: PLC0415  # optional
        from fairduel.service.polls import create_poll  # noqa: PLC0415

    def prepare(service: "Service", here: str) -> str:
        with output.notices.status("Creating the study …"):
            study = create_poll(service, items, question, votes_per_voter, votes)
        return f"Voters: {here}vote/{study}"

    store = serving.store(folder, database)
    run(Place(store, port, address, host_name, root_path, proxy, log_requests, opens_page), prepare)
