"""The application: routes, limits, headers, and errors as problem+json."""

import json
import logging
import time
from collections import Counter as Counts
from functools import lru_cache
from typing import Any

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from fastapi.routing import APIRoute
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from pydantic import TypeAdapter
from starlette.exceptions import HTTPException

from fairduel import __version__
from fairduel.errors import FairduelError
from fairduel.service import pages
from fairduel.service.api import accounts, bodies, booth, content, guard, jobs, operators
from fairduel.service.api.gate import Gate, Message, Receive, Scope, Send, problem_response
from fairduel.service.api.limits import Limits
from fairduel.service.problems import Problem
from fairduel.service.server_log import log
from fairduel.service.service import Service
from fairduel.service.work import Challenges

_REFUSED: dict[str, Any] = {
    "description": "Refused, with the reason",
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
}
_ROUTERS = (booth.router, accounts.router, operators.router, content.router, jobs.router)
_CODES = {404: "not-found", 405: "wrong-method", 400: "invalid"}


def create_app(service: Service, *, limits: Limits | None = None) -> FastAPI:
    """Create the application for a running service."""
    limits = limits or Limits()
    app = FastAPI(
        title="fairduel",
        version=__version__,
        summary="Live voting that learns what people prefer, even when some of them lie.",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        responses={"4XX": _REFUSED, "5XX": _REFUSED},
    )
    app.openapi = lambda: _described(app)  # type: ignore[method-assign]
    app.state.service, app.state.limits, app.state.streams = service, limits, {}
    app.state.challenges, app.state.opened = Challenges(), Counts[str]()
    for router in _ROUTERS:
        app.include_router(router)
    app.add_exception_handler(FairduelError, _refuse)
    app.add_exception_handler(RequestValidationError, _refuse_invalid)
    app.add_exception_handler(HTTPException, _refuse_http)
    _add_machine_routes(app, service)
    _add_description(app)
    pages.mount(app)
    app.add_middleware(Gate, limits=limits, ledger=service.ledger)
    app.add_middleware(Watch, registry=app.state.registry)
    return app


def _described(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI description, with who may call what, and what refusals look like."""
    if app.openapi_schema is None:
        found = FastAPI.openapi(app)
        parts = found["components"]
        parts["securitySchemes"] = {
            "key": {"type": "http", "scheme": "bearer", "description": "A key of an operator, observer or voter."},
            **{name: {"type": "apiKey", "in": "cookie", "name": name} for name in (guard.SESSION, guard.VOTER)},
        }
        refusal = TypeAdapter(bodies.Refusal).json_schema(ref_template="#/components/schemas/{model}")
        parts["schemas"] |= refusal.pop("$defs") | {"Problem": refusal}
        for route in (route for each in (app, *_ROUTERS) for route in each.routes):
            if isinstance(route, APIRoute) and (cookie := _cookie_for(route)):
                is_free_here = any(each.call is guard.machine for each in route.dependant.dependencies)
                for method in route.methods or ():
                    operation = found["paths"][route.path_format][method.lower()]
                    operation["security"] = [{"key": []}, {cookie: []}, *([{}] if is_free_here else [])]
    assert app.openapi_schema is not None
    return app.openapi_schema


def _add_description(app: FastAPI) -> None:
    @lru_cache(1)
    def described() -> bytes:
        return json.dumps(app.openapi()).encode()

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi() -> Response:
        return Response(described(), media_type="application/json")


def _cookie_for(route: APIRoute) -> str | None:
    """Return the cookie that may take the place of a key in a route's header; None if it needs no key."""
    if route.endpoint in booth.NEED_KEY:
        return guard.VOTER
    return guard.SESSION if any(each.call in guard.ADMIT for each in route.dependant.dependencies) else None


def _add_machine_routes(app: FastAPI, service: Service) -> None:
    registry = app.state.registry = CollectorRegistry()
    position = Gauge("fairduel_log_position", "Events in the log", registry=registry)
    verified = Gauge("fairduel_log_verified", "Position up to which the log was verified", registry=registry)
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
        if service.damage:
            raise Problem(503, "storage", f"{service.damage[0].upper()}{service.damage[1:]}", 60)
        return {"status": "ready"}

    @app.get("/metrics", response_class=PlainTextResponse, tags=["machines"], dependencies=[Depends(guard.machine)])
    async def metrics() -> PlainTextResponse:
        """Return counters for Prometheus, to operators and to programs on this machine."""
        state = service.ledger.state
        position.set(state.position)
        verified.set(service.verified)
        for status in ("open", "voted", "skipped", "expired", "undone"):
            duels.labels(status).set(sum(study.counts[status] for study in list(state.studies.values())))
        return PlainTextResponse(generate_latest(registry), media_type="text/plain; version=0.0.4")


async def _refuse(_: Request, error: Exception) -> JSONResponse:
    if isinstance(error, Problem):
        return problem_response(error)
    return problem_response(Problem(422, "invalid", str(error)))


async def _refuse_invalid(_: Request, error: Exception) -> JSONResponse:
    """Name the fields that are wrong, without the values, which JSON may not be able to hold."""
    assert isinstance(error, RequestValidationError)
    errors = [
        _mistake(".".join(str(part) for part in each["loc"][1:]), each["msg"].removeprefix("Value error, ").rstrip("."))
        for each in error.errors()[:20]
    ]
    first = ": ".join(filter(None, errors[0].values())) if errors else "The body is invalid"
    return problem_response(Problem(422, "invalid", f"{first}.", errors=errors))


def _mistake(field: str, problem: str) -> dict[str, str]:
    """Name a field and what is wrong with it; what is wrong with a whole body is a sentence of its own."""
    return {"field": field, "problem": problem if field else problem[:1].upper() + problem[1:]}


async def _refuse_http(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    code = _CODES.get(error.status_code, "invalid")
    response = problem_response(Problem(error.status_code, code, f"{error.detail}."))
    response.headers.update(error.headers or {})
    return response


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
