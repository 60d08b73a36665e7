"""``fairduel serve``: live voting."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairduel.checks import needs_extra
from fairduel.errors import BadInputError

if TYPE_CHECKING:
    from fairduel.service.locations import Location
    from fairduel.service.service import Service

LOOPBACK = "127.0.0.1"

Folder = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Where everything is stored.", show_default="fairduel-votes"),
]
Database = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="PostgreSQL database (postgresql://user@host/name) instead of a folder. Several servers can share it.",
        show_default=False,
    ),
]
Port = Annotated[int, typer.Option(min=0, max=65_535, metavar="N", help="Port; 0 picks a free one.")]
Address = Annotated[
    str, typer.Option("--address", metavar="IP", help="Address to listen on; 0.0.0.0 for all of this machine's.")
]
HostNames = Annotated[
    list[str],
    typer.Option(
        "--host-name",
        metavar="NAME",
        help="Name under which people reach the server. Repeatable.",
        show_default="localhost",
    ),
]
RootPath = Annotated[
    str, typer.Option(metavar="PATH", help="Subpath under which a proxy offers the server, and which it strips.")
]
Proxies = Annotated[
    list[str],
    typer.Option(
        "--proxy",
        metavar="IP",
        help="Proxy whose word on the caller's address and https to take. Repeatable.",
        show_default="none",
    ),
]
LogRequests = Annotated[bool, typer.Option("--log-requests", help="Log every request on stderr, as JSON lines.")]
Opens = Annotated[
    bool, typer.Option("--open/--no-open", help="Open the operator's page in a browser, if run in a terminal.")
]
_DEFAULT_FOLDER = Path("fairduel-votes")


def store(folder: Path | None, database: str | None) -> "Location":
    """Return where to store."""
    if database is None:
        return folder or _DEFAULT_FOLDER
    if folder is not None:
        raise BadInputError("give --folder or --database, not both.")
    from fairduel.service.locations import database as read_address  # noqa: PLC0415  # optional

    return read_address(database)


def serve(
    port: Port = 8000,
    folder: Folder = None,
    database: Database = None,
    address: Address = LOOPBACK,
    host_name: HostNames = [],  # noqa: B006  # typer copies it
    root_path: RootPath = "",
    proxy: Proxies = [],  # noqa: B006
    log_requests: LogRequests = False,
    opens_page: Opens = True,
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
        from fairduel.cli.serving import Place, run  # noqa: PLC0415  # optional
        from fairduel.service.demo import Demo  # noqa: PLC0415

    def simulate(service: "Service", _: str) -> str:
        return f"Simulated voters, a fifth of them liars, vote in study {Demo(service).study}."

    place = Place(store(folder, database), port, address, host_name, root_path, proxy, log_requests, opens_page)
    run(place, simulate if demo else None, new_key=new_key)
