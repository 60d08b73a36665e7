"""A server in this process, to try things out."""

import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from fairduel.service.api.app import create_app
from fairduel.service.api.connections import server_config
from fairduel.service.api.gate import App
from fairduel.service.api.limits import Limits
from fairduel.service.commands import team
from fairduel.service.service import Service


@contextmanager
def local_server(*, limits: Limits | None = None) -> Iterator[tuple[str, str]]:
    """Run a server on a free port of this machine and a temporary folder; yields its address and the operator's key."""
    with tempfile.TemporaryDirectory() as temporary:
        service = Service(Path(temporary))
        try:
            key = service.ledger.run(team.replace_operator)
            limits = limits or Limits()
            with serving(create_app(service, limits=limits), limits=limits) as url:
                yield url, key
        finally:
            service.close()


@contextmanager
def serving(app: App, listener: socket.socket | None = None, *, limits: Limits | None = None) -> Iterator[str]:
    """Serve an application, by default on a free port of this machine; yields its address."""
    with listener or socket.create_server(("127.0.0.1", 0)) as opened:
        config = server_config(app, limits or Limits(), proxy_headers=False, timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [opened]})
        thread.start()
        while not server.started and thread.is_alive():
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{opened.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
