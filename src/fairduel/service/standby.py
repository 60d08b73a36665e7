"""The application of one of several servers: its own while it leads, else a proxy of the leader's.

A server tells the leader who called with a keyed hash of the caller's address and scheme. The key changes with every
leader and is only in the database, so nobody else can claim an address.
"""

import asyncio
import hashlib
import hmac
from collections.abc import AsyncIterator, MutableMapping
from typing import Any

import httpx
from fastapi.responses import JSONResponse, StreamingResponse

from fairduel.service.api.app import SECURITY_HEADERS, problem_response
from fairduel.service.members import Member, Receive, Send
from fairduel.service.postgres import Leader
from fairduel.service.problems import Problem, nobody_leads, unconfirmed

CALLER = b"fairduel-caller"
_PER_CONNECTION = {b"connection", b"expect", b"keep-alive", b"te", b"trailer", b"transfer-encoding", b"upgrade"}
_NOT_FORWARDED = _PER_CONNECTION | {CALLER, b"forwarded", b"x-forwarded-for", b"x-forwarded-proto"}
_NOT_RETURNED = _PER_CONNECTION | {b"date"}  # the server sets its own
_TIMEOUT = {"connect": 2.0, "pool": 2.0, "write": 10.0, "read": 20.0}  # seconds; streams say something every 15
_CHECK_SECONDS = 0.25
_LIMITS = httpx.Limits(max_connections=1000, max_keepalive_connections=200, keepalive_expiry=2.0)
Scope = MutableMapping[str, Any]


class Standby:
    """Serves requests as the leader, or passes them on.

    Args:
        member: Knows who leads.
    """

    def __init__(self, member: Member) -> None:
        self._member = member
        self._leader: Leader | None = None
        self._transport = httpx.AsyncHTTPTransport(limits=_LIMITS)

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
            app = await self._forward(leader, scope, receive)
        elif claim is not None:
            host, scheme, _ = claim.decode("latin-1").split(" ")
            scope = {**scope, "client": (host, 0), "scheme": scheme}
        await app(scope, receive, send)

    async def _forward(self, leader: Leader, scope: Scope, receive: Receive) -> StreamingResponse | JSONResponse:
        if leader != self._leader:
            old, self._transport, self._leader = self._transport, httpx.AsyncHTTPTransport(limits=_LIMITS), leader
            await old.aclose()
        try:
            found = await self._reply(leader, _request(leader, scope, receive))
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


def _request(leader: Leader, scope: Scope, receive: Receive) -> httpx.Request:
    path = scope["raw_path"].removeprefix(scope.get("root_path", "").encode())
    query = b"?" + scope["query_string"] if scope["query_string"] else b""
    host = scope["client"][0] if scope.get("client") else ""
    headers = [each for each in scope["headers"] if each[0] not in _NOT_FORWARDED]
    has_body = any(name in {b"content-length", b"transfer-encoding"} for name, _ in scope["headers"])
    return httpx.Request(
        scope["method"],
        httpx.URL(leader.address).copy_with(raw_path=path + query),
        headers=[*headers, (CALLER, _claim(host, scope["scheme"], leader.secret))],
        content=_body(receive) if has_body else None,
        extensions={"timeout": _TIMEOUT},
    )


async def _body(receive: Receive) -> AsyncIterator[bytes]:
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
