"""``fairduel poll``: a study from files or lines of text, and the link to share."""

from typing import TYPE_CHECKING, Annotated

import typer

from fairduel.checks import needs_extra
from fairduel.cli import serve as serving

if TYPE_CHECKING:
    from fairduel.service.service import Service


def poll(
    items: Annotated[
        list[str],
        typer.Argument(
            metavar="ITEMS", help="Images, text files with one item per line, or texts.", show_default=False
        ),
    ],
    question: Annotated[str, typer.Option(metavar="TEXT", help="What voters are asked.")] = "Which is better?",
    votes: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Votes per voter.", show_default="every pair once")
    ] = None,
    port: serving.Port = 8000,
    folder: serving.Folder = None,
    database: serving.Database = None,
    address: serving.Address = serving.LOOPBACK,
    host_name: serving.HostNames = [],  # noqa: B006  # typer copies it
    root_path: serving.RootPath = "",
    proxy: serving.Proxies = [],  # noqa: B006
    log_requests: serving.LogRequests = False,
) -> None:
    """Start a poll on some items and print the link to share.

    An item is an image file, a line of a text file (.txt, .md), or a text
    given as such. Everyone with the link can vote.
    """
    with needs_extra("serve"):
        from fairduel.cli.serving import Place, run  # noqa: PLC0415  # optional
        from fairduel.service.polls import create_poll  # noqa: PLC0415

    def prepare(service: "Service", here: str) -> str:
        return f"Voters: {here}vote/{create_poll(service, items, question, votes)}"

    store = serving.store(folder, database)
    run(Place(store, port, address, host_name, root_path, proxy, log_requests), prepare)
