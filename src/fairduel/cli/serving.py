"""Run a server for ``fairduel serve`` and ``fairduel poll``; needs the serve extra."""

import logging
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn

from fairduel.cli import output
from fairduel.core import compiling
from fairduel.errors import BadInputError
from fairduel.service import commands
from fairduel.service.api.app import Limits, create_app
from fairduel.service.logs import log_to
from fairduel.service.service import Service, tune_process

_STOPPED = "every acknowledged vote is on disk; rerun to resume."


@dataclass(frozen=True)
class Place:
    """Where a server stores and listens.

    Args:
        folder: The store.
        port: Port, or 0.
        address: Address to listen on.
        host_names: Names under which it may be called.
        root_path: Subpath behind a proxy.
        proxies: Addresses of trusted proxies.
        log_requests: Whether to log every request, not only failures.
    """

    folder: Path
    port: int
    address: str
    host_names: list[str]
    root_path: str
    proxies: list[str]
    log_requests: bool


def run(place: Place, prepare: Callable[[Service, str], Callable[[], None]], *, new_key: bool = False) -> None:
    """Run a server until it is stopped.

    Args:
        place: Where it stores and listens.
        prepare: Called with the service and its address on the web before it is open; returns what to call at the end.
        new_key: Whether to replace the operator's key.
    """
    log_to(sys.stderr, logging.INFO if place.log_requests else logging.WARNING)
    listener = _listen(place.address, place.port)
    try:
        compiling.skip_compile_notice()
        with output.notices.status("Starting (compiles on first use) …"):
            service = Service(place.folder)
    except BaseException:
        listener.close()
        raise
    here = f"{_origin(place, listener.getsockname()[1])}{place.root_path}/"
    finish: Callable[[], None] | None = None
    try:
        finish = prepare(service, here)
        key: str | None = service.ledger.run(commands.replace_operator if new_key else commands.ensure_operator)
        if key is None:
            output.say(f"Operator: {here} (with the key of the first start; --new-key replaces it)")
        else:
            output.say(f"Operator: {here}#{key}", "Keep this link: its key is stored only as a hash.")
        known = Limits().hosts | {place.address, *(name.lower() for name in place.host_names)}
        tune_process()
        _serve(create_app(service, limits=Limits(hosts=frozenset(known))), listener, place)
    except KeyboardInterrupt:
        raise output.StoppedError(_STOPPED) from None
    finally:
        if finish is not None:
            finish()
        service.close()
        listener.close()


def _origin(place: Place, port: int) -> str:
    """Where people reach the server: a proxy is taken to offer https on its usual port."""
    name = place.host_names[0] if place.host_names else "127.0.0.1"
    return f"https://{name}" if place.proxies else f"http://{name}:{port}"


def _serve(app: Any, listener: socket.socket, place: Place) -> None:
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(place.proxies),
        forwarded_allow_ips=place.proxies,
        root_path=place.root_path,
        timeout_graceful_shutdown=3,
    )
    uvicorn.Server(config).run(sockets=[listener])


def _listen(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address, port))
    except OSError as error:
        listener.close()
        raise BadInputError(
            f"cannot listen on {address} port {port}: {error.strerror}; choose another --port."
        ) from error
    return listener
