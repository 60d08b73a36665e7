"""The application: routes, limits, headers, and errors as problem+json."""

import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.exceptions import HTTPException

from fairduel import __version__
from fairduel.errors import FairduelError
from fairduel.service import pages
from fairduel.service.api import content, jobs, operators, voters
from fairduel.service.api.guard import RateLimit
from fairduel.service.images import MOST_BYTES
from fairduel.service.ledger import Ledger
from fairduel.service.logs import log
from fairduel.service.problems import Problem, not_found, overloaded
from fairduel.service.service import Service

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
_FILES = {"/api/images": "image/", "/api/audio": "audio/", "/import": "application/octet-stream"}
"""What the bodies of some routes are, by the end of their path; all others are JSON."""
_LARGE = ("/api/images", "/api/audio", "/api/studies", "/api/study-files", "/import")
_CODES = {404: "not-found", 405: "wrong-method", 400: "invalid"}
SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "media-src 'self'; font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'self'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}
_RAW_HEADERS = [(name.lower().encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]


@dataclass
class Limits:
    """How much a server takes.

    Args:
        hosts: Names under which it may be called; others are refused, so that no web page elsewhere can rebind its own
            name to this machine.
        body: Bytes of a request.
        large_body: Bytes of a new study, an image, audio, or votes to import.
        address: Requests from one address.
        joins: Joining and opening sessions, from one address.
        voter: Requests of one voter.
        most_streams: Pages that watch one study.
    """

    hosts: frozenset[str] = frozenset({"localhost", "127.0.0.1", "[::1]"})
    body: int = 64_000
    large_body: int = max(MOST_BYTES, 20_000_000)
    address: RateLimit = field(default_factory=lambda: RateLimit(200.0, 1000.0))
    joins: RateLimit = field(default_factory=lambda: RateLimit(1.0, 60.0))
    voter: RateLimit = field(default_factory=lambda: RateLimit(10.0, 60.0))
    most_streams: int = 100


def create_app(service: Service, *, limits: Limits | None = None) -> FastAPI:
    """Create the application for a running service.

    Args:
        service: The service; the caller closes it.
        limits: How much to take.
    """
    limits = limits or Limits()
    app = FastAPI(
        title="fairduel",
        version=__version__,
        summary="Live voting that learns what people prefer, even when some of them lie.",
        docs_url=None,
        redoc_url=None,
    )
    app.state.service, app.state.limits, app.state.streams = service, limits, {}
    app.include_router(voters.router)
    app.include_router(operators.router)
    app.include_router(content.router)
    app.include_router(jobs.router)
    app.add_exception_handler(FairduelError, _refuse)
    app.add_exception_handler(RequestValidationError, _refuse_invalid)
    app.add_exception_handler(HTTPException, _refuse_http)
    _add_machine_routes(app, service)
    pages.mount(app)
    app.add_middleware(Gate, limits=limits, ledger=service.ledger)
    app.add_middleware(Watch, registry=app.state.registry)
    return app


def _add_machine_routes(app: FastAPI, service: Service) -> None:
    registry = app.state.registry = CollectorRegistry()
    position = Gauge("fairduel_log_position", "Events in the log", registry=registry)
    duels = Gauge("fairduel_duels", "Duels of all studies, by what became of them", ["status"], registry=registry)

    @app.get("/healthz", tags=["machines"])
    async def healthz() -> dict[str, str]:
        """Say that the process is alive."""
        return {"status": "ok"}

    @app.get("/readyz", tags=["machines"])
    async def readyz() -> dict[str, str]:
        """Say whether the log can be read and written."""
        if not service.ledger.is_ready:
            raise Problem(503, "storage", "The log cannot be read or written.", 2)
        return {"status": "ready"}

    @app.get("/metrics", response_class=PlainTextResponse, tags=["machines"])
    async def metrics() -> PlainTextResponse:
        """Return counters for Prometheus."""
        state = service.ledger.state
        position.set(state.position)
        for status in ("open", "voted", "skipped", "expired", "undone"):
            duels.labels(status).set(sum(study.counts[status] for study in list(state.studies.values())))
        return PlainTextResponse(generate_latest(registry), media_type="text/plain; version=0.0.4")


def problem_response(problem: Problem) -> JSONResponse:
    """Return a refusal as a response."""
    headers = {} if problem.retry_after is None else {"Retry-After": str(problem.retry_after)}
    return JSONResponse(problem.body(), problem.status, headers, media_type="application/problem+json")


async def _refuse(_: Request, error: Exception) -> JSONResponse:
    if isinstance(error, Problem):
        return problem_response(error)
    return problem_response(Problem(422, "invalid", str(error)))


async def _refuse_invalid(_: Request, error: Exception) -> JSONResponse:
    """Name the fields that are wrong, without the values, which JSON may not be able to hold."""
    assert isinstance(error, RequestValidationError)
    errors = [
        {"field": ".".join(str(part) for part in each["loc"][1:]), "problem": str(each["msg"])}
        for each in error.errors()[:20]
    ]
    first = f"{errors[0]['field'] or 'the body'}: {errors[0]['problem']}" if errors else "the body is invalid"
    return problem_response(Problem(422, "invalid", f"{first}.", errors=errors))


async def _refuse_http(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    code = _CODES.get(error.status_code, "invalid")
    response = problem_response(Problem(error.status_code, code, f"{error.detail}."))
    response.headers.update(error.headers or {})
    return response


class Gate:
    """Refuses overload, wrong hosts, other sites, wrong types and bodies that are too large; adds security headers."""

    def __init__(self, app: Any, limits: Limits, ledger: Ledger) -> None:
        self._app, self._limits, self._ledger = app, limits, ledger
        response = problem_response(overloaded())
        self._overloaded = {"status": response.status_code, "headers": response.raw_headers}, bytes(response.body)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *_RAW_HEADERS, *_caching(message)]
            await send(message)

        changes = scope["method"] not in {"GET", "HEAD"}
        if changes and self._ledger.is_overloaded:  # without looking at it, so that there is time for those accepted
            head, body = self._overloaded
            await send_safely({"type": "http.response.start", **head})
            await send({"type": "http.response.body", "body": body})
            return
        response: Response | None = None
        try:
            self._check(scope)
            if changes:
                content = await self._whole_body(scope, receive)
                response = await voters.shortcut(scope, content)
                receive = _replaying(content, receive)
        except Problem as problem:
            response = problem_response(problem)
        await (response or self._app)(scope, receive, send_safely)

    def _check(self, scope: Scope) -> None:
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1").lower()
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        if "*" not in self._limits.hosts and name not in self._limits.hosts:
            raise Problem(421, "wrong-host", "The server is not called that; start it with --host-name to allow it.")
        if "\0" in scope["path"]:  # which PostgreSQL cannot even look for
            raise not_found("page")
        if scope["method"] in {"GET", "HEAD", "OPTIONS"}:
            return
        if headers.get(b"sec-fetch-site", b"same-origin") not in {b"same-origin", b"none"}:
            raise Problem(403, "cross-site", "Other sites may not do this.")
        origin = headers.get(b"origin", b"").decode("latin-1")
        if origin and origin.partition("://")[2].lower() != host:
            raise Problem(403, "cross-site", "Other sites may not do this.")
        media_type = headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip().lower()
        ends = scope["path"].endswith
        wanted = next((kind for end, kind in _FILES.items() if ends(end)), "application/json")
        if scope["method"] != "DELETE" and not media_type.startswith(wanted):
            raise Problem(415, "wrong-type", f"The content type must be {wanted}{'…' if wanted[-1] == '/' else ''}.")

    async def _whole_body(self, scope: Scope, receive: Receive) -> bytes:
        """Read the body up to the limit."""
        most = self._limits.large_body if scope["path"].endswith(_LARGE) else self._limits.body
        parts, size, more = list[bytes](), 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                break
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            more = message.get("more_body", False)
            if size > most:
                raise Problem(413, "too-large", f"The body may have at most {most:,} bytes.")
        return b"".join(parts)


def _replaying(content: bytes, receive: Receive) -> Receive:
    """Return what yields a body that was read, and then what follows it."""
    whole = [content]

    async def replay() -> Message:
        if whole:
            return {"type": "http.request", "body": whole.pop(), "more_body": False}
        return await receive()

    return replay


def _caching(message: Message) -> list[tuple[bytes, bytes]]:
    """Nothing is cached unless its route says so."""
    has_own = any(name.lower() == b"cache-control" for name, _ in message.get("headers", []))
    return [] if has_own else [(b"cache-control", b"no-store")]


class Watch:
    """Counts and logs requests: their route, status and time, never their keys, bodies or queries."""

    def __init__(self, app: Any, registry: CollectorRegistry) -> None:
        self._app = app
        self._requests = Counter("fairduel_requests", "Requests", ["method", "route", "status"], registry=registry)
        self._seconds = Histogram("fairduel_request_seconds", "Time per request", ["route"], registry=registry)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500

        async def send_and_note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_and_note)
        finally:
            seconds = time.perf_counter() - began
            route = getattr(scope.get("route"), "path", "other")
            self._requests.labels(scope["method"] if route != "other" else "any", route, status).inc()
            self._seconds.labels(route).observe(seconds)
            level = logging.ERROR if status >= 500 and status != 503 else logging.INFO  # a 503's cause is logged once
            log(level, "request", method=scope["method"], route=route, status=status, ms=round(1000 * seconds, 1))
