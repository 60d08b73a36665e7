"""Run a server for ``fairduel serve`` and ``fairduel poll``; needs the serve extra."""

import html
import logging
import socket
import sys
import threading
import time
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import uvicorn

from fairduel.cli import output
from fairduel.cli.live.serve import Place
from fairduel.core import compiling
from fairduel.core.blas import one_thread
from fairduel.errors import BadInputError, unknown_name
from fairduel.service.api.app import create_app
from fairduel.service.api.connections import raise_descriptor_limit, server_config
from fairduel.service.api.gate import App
from fairduel.service.api.limits import PRESETS, Limits
from fairduel.service.cluster.postgres import Leader
from fairduel.service.commands import team
from fairduel.service.notices import Target, targets
from fairduel.service.server_log import log_to
from fairduel.service.service import Service, tune_process
from fairduel.service.sign_in import SignIn

_DOOR_SECONDS = 30.0  # that a browser has to start
_STOPPED = "every acknowledged vote is on disk; rerun to resume."


Prepare = Callable[[Service, str], str]
"""Called with a service and its address on the web before it is open; returns what to say."""


def run(place: Place, prepare: Prepare | None = None, *, new_key: bool = False) -> None:
    """Run a server until it is stopped.

    Args:
        place: Where it stores and listens.
        prepare: What to do first, for which the server must lead.
        new_key: Whether to replace the operator's key.
    """
    limits, told = _limits(place), targets(place.webhook or [], place.mail or [])
    raise_descriptor_limit()
    log_to(sys.stderr, logging.INFO if place.log_requests else logging.WARNING)
    with _listen(place.address, place.port) as listener:
        port = listener.getsockname()[1]
        here = f"{_origin(place, port)}{place.root_path}/"
        lead = _Lead(limits, here, prepare, new_key, told)
        one_thread()  # for the same bits on any machine; a second thread would wait for a busy core
        door: Path | None = None
        with _compiling():
            app, close = _start(place, port, lead)
        try:
            output.say(*lead.sentences)
            lead.say = output.say
            listener.listen()
            store = place.store
            if lead.page is not None and place.opens_page and isinstance(store, Path) and output.is_looked_at():
                door = _open_page(lead.page, store)
            tune_process()
            _serve(app, listener, place, limits)
        except KeyboardInterrupt:
            raise output.StoppedError(_STOPPED) from None
        finally:
            if door is not None:
                door.unlink(missing_ok=True)
            close()


class _Lead:
    """What a server does when it starts to lead; of several servers, one may start later."""

    def __init__(
        self, limits: Limits, here: str, prepare: Prepare | None, new_key: bool, told: Sequence[Target]
    ) -> None:
        SignIn.configured(here)  # says at once what is wrong
        self._told = told
        self._limits, self._here, self._prepare, self._new_key = limits, here, prepare, new_key
        self.sentences = list[str]()
        self.page: str | None = None  # the operator's, once this server leads
        self.say: Callable[..., None] = lambda *sentences: self.sentences.extend(sentences)

    def __call__(self, service: Service) -> App:
        """Return the application of a service."""
        service.offer(SignIn.configured(self._here))
        if self._prepare is not None:
            self.say(self._prepare(service, self._here))
        key: str | None = service.ledger.run(team.replace_operator if self._new_key else team.ensure_operator)
        self._prepare, self._new_key = None, False
        self.page = self._here if key is None else f"{self._here}#{key}"
        if key is not None:
            self.say(f"Operator: {self.page}", "Keep this link: its key is stored only as a hash.")
        else:
            self.say(f"Operator: {self._here} (with the key of the first start; --new-key replaces it)")
        service.notify(self._told)
        return create_app(service, limits=self._limits)

    def stand_by(self, leader: Leader | None) -> None:
        """Say that another server leads, or refuse if this one has to."""
        if self._prepare is not None or self._new_key:
            raise BadInputError(
                "another fairduel server leads this database; use its operator page, poll --server, or stop it first."
            )
        where = "another server" if leader is None else leader.address
        self.say(f"Standing by at {self._here}: forwards to {where}, and takes over if that ends.")


@contextmanager
def _compiling() -> Iterator[None]:
    """Say what a first start does for up to a minute: on a terminal all the time, otherwise once."""
    began = time.monotonic()
    with output.notices.status("Starting …") as status:

        def tell(count: int) -> None:
            seconds = time.monotonic() - began
            what = "Compiling the numerical code for this machine; later starts use the result"
            if output.notices.is_terminal:
                status.update(f"{what}: {count} functions, {seconds:.0f} s …")
            elif count == 1:
                output.notices.print(f"{what}. This takes up to a minute …", soft_wrap=True)

        with compiling.telling(tell):
            yield


def _start(place: Place, port: int, lead: _Lead) -> tuple[App, Callable[[], None]]:
    """Return the application, and what to close at the end."""
    store = place.store
    if isinstance(store, Path):
        service = Service(store)
        try:
            return lead(service), service.close
        except BaseException:
            service.close()
            raise
    from fairduel.service.cluster.failover import Member, Standby  # noqa: PLC0415  # slow, and only a database needs it

    member = Member(store, place.address, port, lead)
    if member.app is None:
        try:
            lead.stand_by(member.leader)
        except BaseException:
            member.close()
            raise
    return Standby(member), member.close


def _open_page(page: str, folder: Path) -> Path:
    """Open a page by way of a file that leads to it, because everyone on this machine can read a program's arguments.

    The file is readable by its owner only, and soon gone.
    """
    door = folder / "operator.html"
    door.unlink(missing_ok=True)
    door.touch(mode=0o600)
    door.write_text(
        f'<!doctype html><title>fairduel</title><meta http-equiv="refresh" content="0; url={html.escape(page)}">'
    )

    def show() -> None:
        webbrowser.open(door.resolve().as_uri())
        time.sleep(_DOOR_SECONDS)
        door.unlink(missing_ok=True)

    threading.Thread(target=show, daemon=True).start()
    return door


def _limits(place: Place) -> Limits:
    if place.limits not in PRESETS:
        raise unknown_name("preset of limits", place.limits, PRESETS)
    limits = PRESETS[place.limits]()
    hosts = limits.hosts | {place.address, *(name.lower() for name in place.host_name or ())}
    return replace(limits, hosts=hosts, proxies=frozenset(place.proxy or ()))


def _origin(place: Place, port: int) -> str:
    """Where people reach the server: a proxy is taken to offer https on its usual port."""
    name = place.host_name[0] if place.host_name else "127.0.0.1"
    return f"https://{name}" if place.proxy else f"http://{name}:{port}"


def _serve(app: Any, listener: socket.socket, place: Place, limits: Limits) -> None:
    config = server_config(
        app,
        limits,
        proxy_headers=bool(place.proxy),
        forwarded_allow_ips=place.proxy or [],
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
