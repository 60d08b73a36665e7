"""Several servers of one PostgreSQL database: one leads, the others forward to it and are ready to take over.

A server tells the leader who called with a keyed hash of the caller's address and scheme. The key changes with every
leader and is only in the database, so nobody else can claim an address.
"""

import asyncio
import hashlib
import hmac
import logging
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

import httpx
from fastapi.responses import JSONResponse, Response, StreamingResponse
from sqlalchemy import URL

from fairduel.service.api.gate import SECURITY_HEADERS, App, Receive, Scope, Send, problem_response
from fairduel.service.api.limits import network
from fairduel.service.cluster.postgres import DatabaseSession, Leader, PostgresStore
from fairduel.service.problems import Problem, nobody_leads, overloaded, unconfirmed
from fairduel.service.server_log import log, log_failure
from fairduel.service.service import Service, warm_up

_POLL_SECONDS = 0.25
_ANY = {"0.0.0.0", "::"}  # noqa: S104  # not to listen there, but to see that someone does
CALLER = b"fairduel-caller"
_PER_CONNECTION = {b"connection", b"expect", b"keep-alive", b"te", b"trailer", b"transfer-encoding", b"upgrade"}
_NOT_FORWARDED = _PER_CONNECTION | {CALLER, b"forwarded", b"x-forwarded-for", b"x-forwarded-proto"}
_NOT_RETURNED = _PER_CONNECTION | {b"date"}  # the server sets its own
_TIMEOUT = {"connect": 2.0, "pool": 2.0, "write": 10.0, "read": 20.0}  # seconds; streams say something every 15
_CHECK_SECONDS = 0.25
_LIMITS = httpx.Limits(max_connections=1000, max_keepalive_connections=200, keepalive_expiry=2.0)
_MOST = 250, 8
"""Requests of one address that may take a connection to the leader at a time; and of those, with a large body."""
_SMALL_BODY = 16_000  # bytes, read before the request takes a connection, which slow callers would else keep


class Member:
    """One of the servers of a database.

    Args:
        lead: Called with the service each time this server becomes the leader; returns the application.

    Raises:
        BadInputError: The database cannot be used.
    """

    def __init__(self, url: URL, address: str, port: int, lead: Callable[[Service], App]) -> None:
        self.app: App | None = None
        """The application while this server leads."""
        self.leader: Leader | None = None
        """Who leads, or did last."""
        self._url, self._address, self._port, self._lead = url, address, port, lead
        self._session: DatabaseSession | None = None
        self._service: Service | None = None
        self._failure = ""
        self._stop = threading.Event()
        try:
            self._step()
        except BaseException:
            self._step_down()
            raise
        self._thread = threading.Thread(target=self._work, name="fairduel-member", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop, and let another server lead."""
        self._stop.set()
        self._thread.join()
        self._step_down()

    def _work(self) -> None:
        if self.app is None:
            warm_up()  # so that taking over does not take longer than reading the log
        while not self._stop.wait(_POLL_SECONDS):
            try:
                self._step()
                self._failure = ""
            except Exception as error:  # noqa: BLE001  # the database may come back
                self._step_down()
                if str(error) != self._failure:
                    self._failure = str(error)
                    log_failure("no connection to the database", error)

    def _step(self) -> None:
        """Lead if nobody does, or else see who does."""
        if self._service is not None:
            if self._session is None or not self._session.is_lost:
                return
            log(logging.WARNING, "no longer leads")
            self._step_down()
        if self._session is None:
            self._session = DatabaseSession(self._url)
        if self._session.try_to_lead():
            self._step_up(self._session)
        else:
            self.leader = self._session.leader()

    def _step_up(self, session: DatabaseSession) -> None:
        host = session.own_address() if self._address in _ANY else self._address
        store = PostgresStore(session, f"http://{f'[{host}]' if ':' in host else host}:{self._port}")
        self._service = Service(store)
        self._service.ledger.run(lambda ledger: session.limit_silence(ledger.connection()))
        self.leader, self.app = store.leader, self._lead(self._service)
        log(logging.WARNING, "leads", term=store.leader.term)

    def _step_down(self) -> None:
        self.app = None
        if self._service is not None:
            self._service.close()
            self._service = None
        if self._session is not None:
            self._session.close()
            self._session = None


class Standby:
    """Serves requests as the leader, or passes them on."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._leader: Leader | None = None
        self._transport = httpx.AsyncHTTPTransport(limits=_LIMITS)
        self._forwarded = Counter[str]()  # requests that take a connection to the leader, by address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, or the start and the end of the server."""
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await self._transport.aclose()
            await send({"type": "lifespan.shutdown.complete"})
            return
        app, leader = self._member.app, self._member.leader
        claim = next((value for name, value in scope["headers"] if name == CALLER), None)
        if app is None and scope["path"].removeprefix(scope.get("root_path", "")) == "/healthz":
            app = _safe(JSONResponse({"status": "ok"}))
        elif leader is None or (claim is not None and (app is None or not _is_true(claim, leader.secret))):
            app = _refusal(nobody_leads())  # also of what was passed on, so that nothing goes round in circles
        elif app is None:
            await self._pass_on(scope, receive, send)
            return
        elif claim is not None:
            if door := scope.get("state", {}).get("door"):
                door.trust()
            host, scheme, _ = claim.decode("latin-1").split(" ")
            scope = {**scope, "client": (host, 0), "scheme": scheme}
        await app(scope, receive, send)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a request, unless its address has as many on their way as it may have."""
        begun = await _begun(scope, receive)
        if begun is None:
            return
        leader = self._member.leader  # perhaps another one by now
        caller = network(scope["client"][0] if scope.get("client") else "")
        taken = [caller, f"large {caller}"] if begun.is_large else [caller]
        if any(self._forwarded[name] >= most for name, most in zip(taken, _MOST, strict=False)):
            await _refusal(overloaded())(scope, receive, send)
            return
        self._forwarded.update(taken)
        try:
            response: Response = _refusal(nobody_leads())
            if leader is not None:
                response = await self._forward(leader, scope, receive, begun)
            await response(scope, receive, send)
        finally:
            self._forwarded.subtract(taken)
            for name in taken:
                if not self._forwarded[name]:
                    del self._forwarded[name]

    async def _forward(self, leader: Leader, scope: Scope, receive: Receive, begun: "_Begun") -> Response:
        if leader != self._leader:
            old, self._transport, self._leader = self._transport, httpx.AsyncHTTPTransport(limits=_LIMITS), leader
            await old.aclose()
        try:
            found = await self._reply(leader, _request(leader, scope, receive, begun))
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout):
            return _refusal(nobody_leads())
        except httpx.TransportError:
            return _refusal(unconfirmed())
        response = StreamingResponse(_content(found), found.status_code)
        response.raw_headers = [each for each in found.headers.raw if each[0].lower() not in _NOT_RETURNED]
        return response

    async def _reply(self, leader: Leader, request: httpx.Request) -> httpx.Response:
        """Return the beginning of the leader's reply, unless another server leads before it comes."""
        reply = asyncio.ensure_future(self._transport.handle_async_request(request))
        try:
            while not (await asyncio.wait([reply], timeout=_CHECK_SECONDS))[0]:
                if self._member.leader != leader:
                    raise httpx.ReadError("the leader has changed")
            return reply.result()
        finally:
            reply.cancel()


def _refusal(problem: Problem) -> JSONResponse:
    return _safe(problem_response(problem))


def _safe(response: JSONResponse) -> JSONResponse:
    response.headers.update(SECURITY_HEADERS | {"Cache-Control": "no-store"})
    return response


class _Begun(NamedTuple):
    """The beginning of a body."""

    content: bytes
    is_large: bool
    """Whether there is more."""


async def _begun(scope: Scope, receive: Receive) -> _Begun | None:
    """Read a body to its end, unless it is large; return None if the caller has gone."""
    more = any(name in {b"content-length", b"transfer-encoding"} for name, _ in scope["headers"])
    parts, size = list[bytes](), 0
    while more and size <= _SMALL_BODY:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        more = message.get("more_body", False)
    return _Begun(b"".join(parts), more)


def _request(leader: Leader, scope: Scope, receive: Receive, begun: _Begun) -> httpx.Request:
    path = scope["raw_path"].removeprefix(scope.get("root_path", "").encode())
    query = b"?" + scope["query_string"] if scope["query_string"] else b""
    host = scope["client"][0] if scope.get("client") else ""
    headers = [each for each in scope["headers"] if each[0] not in _NOT_FORWARDED]
    return httpx.Request(
        scope["method"],
        httpx.URL(leader.address).copy_with(raw_path=path + query),
        headers=[*headers, (CALLER, _claim(host, scope["scheme"], leader.secret))],
        content=_body(begun, receive) if begun.is_large else begun.content or None,
        extensions={"timeout": _TIMEOUT},
    )


async def _body(begun: _Begun, receive: Receive) -> AsyncIterator[bytes]:
    yield begun.content
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise httpx.WriteError("the caller has gone")
        yield message.get("body", b"")
        more = message.get("more_body", False)


async def _content(found: httpx.Response) -> AsyncIterator[bytes]:
    assert isinstance(found.stream, httpx.AsyncByteStream)
    try:
        async for part in found.stream:
            yield part
    finally:
        await found.stream.aclose()


def _claim(host: str, scheme: str, secret: bytes) -> bytes:
    """Return the caller's address and scheme with their keyed hash."""
    said = f"{host.replace(' ', '')} {scheme}".encode("latin-1", "replace")
    return said + b" " + hmac.new(secret, said, hashlib.sha256).hexdigest().encode()


def _is_true(claim: bytes, secret: bytes) -> bool:
    said, _, _ = claim.rpartition(b" ")
    host, _, scheme = said.decode("latin-1").partition(" ")
    return hmac.compare_digest(_claim(host, scheme, secret), claim)
