"""``fairduel serve``: live voting."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairduel.checks import needs_extra
from fairduel.cli import output

if TYPE_CHECKING:
    from fairduel.service.service import Service

LOOPBACK = "127.0.0.1"

Folder = Annotated[Path, typer.Option(metavar="DIR", help="Where everything is stored.")]
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
DEFAULT_FOLDER = Path("fairduel-votes")


def serve(
    port: Port = 8000,
    folder: Folder = DEFAULT_FOLDER,
    address: Address = LOOPBACK,
    host_name: HostNames = [],  # noqa: B006  # typer copies it
    root_path: RootPath = "",
    proxy: Proxies = [],  # noqa: B006
    log_requests: LogRequests = False,
    demo: Annotated[bool, typer.Option("--demo", help="Add a study with simulated voters, a fifth of them liars.")] = (
        False
    ),
    new_key: Annotated[bool, typer.Option("--new-key", help="Replace the operator's key.")] = False,
) -> None:
    """Collect votes live: choose duels, learn robustly, show results.

    Prints the link for the operator, who creates studies and sees the
    results. It contains a key, which is stored only as a hash, so keep it;
    --new-key makes another one.

    Everything is in DIR. A vote is acknowledged once it is on disk, so the
    server may be killed and restarted at any time.
    """
    with needs_extra("serve"):
        from fairduel.cli.serving import Place, run  # noqa: PLC0415  # optional
        from fairduel.service.demo import Demo  # noqa: PLC0415

    def prepare(service: "Service", _: str) -> Callable[[], None]:
        if not demo:
            return lambda: None
        simulated = Demo(service)
        output.say(f"Simulated voters, a fifth of them liars, vote in study {simulated.study}.")
        return simulated.close

    run(Place(folder, port, address, host_name, root_path, proxy, log_requests), prepare, new_key=new_key)
