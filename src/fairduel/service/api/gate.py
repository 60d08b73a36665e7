"""What every request passes first: it is refused as early as possible, before its body is read."""

import asyncio
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

from fastapi import Request
from fastapi.responses import JSONResponse, Response

from fairduel.service.api import booth, guard
from fairduel.service.api.limits import Limits, network
from fairduel.service.events.ledger import Ledger
from fairduel.service.problems import Problem, not_found, overloaded
from fairduel.service.study.media import MEDIA

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
_READ_ONLY = {"GET", "HEAD", "OPTIONS"}
_HELD_SECONDS = 0.5
"""How long a refusal of too many requests waits, so that whoever repeats them at once takes no time from others."""
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
_RAW_HEADERS = {name.lower().encode(): value.encode() for name, value in SECURITY_HEADERS.items()}
_VOTE_PAGE = re.compile("/vote/([^/]+)")
_VOTERS_ROUTE = re.compile("/api/studies/([^/]+)/(ballot|voters|receipt|duels(/[^/]+/(answer|undo))?)")
_FOR_ALL_SITES = re.compile(f"/static/embed[.]js|/api/({'|'.join(medium.route for medium in MEDIA.values())})/[^/]+")
"""What other sites may load: the script that embeds a study, and pictures and audio, whose ids nobody can guess."""
_PARTICIPANT = ("PROLIFIC_PID", "workerId")
"""What crowd platforms call the id of a participant."""


class _Expected(NamedTuple):
    """What a route that changes something expects."""

    path: re.Pattern[str]
    media_type: str = "application/json"
    needs_key: bool = True
    is_large: bool = False
    """Whether its body may be large; then it is for operators."""


_OTHER = _Expected(re.compile("/api/.*"))
_EXPECTED = {
    "session": _Expected(re.compile("/api/session"), needs_key=False),
    "voters": _Expected(re.compile("/api/studies/[^/]+/voters"), needs_key=False),
    "sign-in": _Expected(re.compile("/api/studies/[^/]+/sign-in"), needs_key=False),
    "studies": _Expected(re.compile("/api/studies"), is_large=True),
    "study-files": _Expected(re.compile("/api/study-files"), is_large=True),
    "import": _Expected(re.compile("/api/studies/[^/]+/import"), "application/octet-stream", is_large=True),
    **{
        medium.route: _Expected(re.compile(f"/api/{medium.route}"), f"{kind}/", is_large=True)
        for kind, medium in MEDIA.items()
    },
}
"""Routes by the end of their path."""


def problem_response(problem: Problem) -> JSONResponse:
    """Return a refusal as a response."""
    headers = {} if problem.retry_after is None else {"Retry-After": str(problem.retry_after)}
    return JSONResponse(problem.body(), problem.status, headers, media_type="application/problem+json")


class Gate:
    """Refuses overload, wrong hosts, other sites, wrong types, callers without a key, and bodies that are too large.

    It also adds security headers.
    """

    def __init__(self, app: Any, limits: Limits, ledger: Ledger) -> None:
        self._app, self._limits, self._ledger = app, limits, ledger
        self._plain = list(_RAW_HEADERS.items())
        response = problem_response(overloaded())
        self._overloaded = {"status": response.status_code, "headers": response.raw_headers}, bytes(response.body)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        path: str = scope["path"].removeprefix(scope.get("root_path", ""))
        added = self._plain

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *added, *_caching(message)]
            await send(message)

        changes = scope["method"] not in _READ_ONLY
        if changes and self._ledger.is_overloaded:  # without looking at it, so that there is time for those accepted
            head, body = self._overloaded
            await send_safely({"type": "http.response.start", **head})
            await send({"type": "http.response.body", "body": body})
            return
        response: Response | None = None
        try:
            added = self._headers(scope, path)
            response, receive = await self._pass(scope, receive, path, changes=changes)
        except Problem as problem:
            if problem.status == 429:
                await _hold(scope)
            response = problem_response(problem)
        await (response or self._app)(scope, receive, send_safely)

    def _headers(self, scope: Scope, path: str) -> list[tuple[bytes, bytes]]:
        """Return the headers of every reply, which may let a study's sites show or call it; note who calls."""
        if _FOR_ALL_SITES.fullmatch(path):
            return [*(_RAW_HEADERS | {b"cross-origin-resource-policy": b"cross-origin"}).items()]
        page, route = _VOTE_PAGE.fullmatch(path), _VOTERS_ROUTE.fullmatch(path)
        found = page or route
        study = self._ledger.state.studies.get(found.group(1)) if found else None
        if study is None or not study.about.allowed_origins:
            return self._plain
        if page:
            sites = " ".join(study.about.allowed_origins)
            policy = SECURITY_HEADERS["Content-Security-Policy"].replace(
                "ancestors 'none'", f"ancestors 'self' {sites}"
            )
            framed = _RAW_HEADERS | {b"content-security-policy": policy.encode()}
            del framed[b"x-frame-options"]  # which cannot name sites
            return [*framed.items()]
        origin = dict(scope["headers"]).get(b"origin", b"")
        if origin.decode("latin-1").lower() not in study.about.allowed_origins:
            return [*self._plain, (b"vary", b"Origin")]
        scope[guard.FROM_SITE] = True
        return [
            *self._plain,
            (b"access-control-allow-origin", origin),
            (b"access-control-expose-headers", b"Retry-After"),
            (b"vary", b"Origin"),
        ]

    async def _pass(
        self, scope: Scope, receive: Receive, path: str, *, changes: bool
    ) -> tuple[Response | None, Receive]:
        """Check a request; return the response if there is one already, and where to read the body."""
        headers, request = dict(scope["headers"]), Request(scope)
        caller = network(guard.address(request))
        if not path.startswith("/api/"):
            self._limits.address.take(f"pages {caller}")
            self._check_host(headers, path)
            return _for_participant(scope, path), receive
        found = guard.holders(request)
        if found and (door := scope.get("state", {}).get("door")):
            door.is_known = True
        if not found:
            self._limits.address.take(caller)
        elif found[0].scope == "voter":
            self._limits.voter.take(found[0].voter)
            self._limits.address.take(f"voters {caller}")
        else:
            self._limits.address.take(f"{found[0].scope} {found[0].study}")
        self._check_host(headers, path)
        if not changes:
            is_question = scope["method"] == "OPTIONS" and guard.FROM_SITE in scope
            return _PREFLIGHT if is_question else None, receive
        if guard.FROM_SITE not in scope:
            _refuse_other_sites(headers)
        expected = _EXPECTED.get(path.rpartition("/")[2], _OTHER)
        if expected.path.fullmatch(path) is None:
            expected = _OTHER
        if scope["method"] != "DELETE":
            _check_type(headers, expected.media_type)
        if not expected.needs_key and scope["method"] == "POST":
            self._limits.joins.take(caller)
        most = self._most_bytes(request, expected)
        content = await _whole_body(headers, receive, most, is_patient=most >= self._limits.body)
        return await booth.shortcut(request, path, content), _replaying(content, receive)

    def _check_host(self, headers: dict[bytes, bytes], path: str) -> None:
        host = headers.get(b"host", b"").decode("latin-1").lower()
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        if "*" not in self._limits.hosts and name not in self._limits.hosts:
            raise Problem(421, "wrong-host", "This host name is not allowed; start the server with --host-name NAME.")
        if "\0" in path:  # which PostgreSQL cannot even look for
            raise not_found("page")

    def _most_bytes(self, request: Request, expected: _Expected) -> int:
        """Return how long the body may be that this caller sends there, or refuse the caller."""
        found = guard.holders(request)
        if expected.needs_key and not found:
            raise guard.no_key()
        is_operator = any(holder.scope == "operator" for holder in found)
        if not is_operator:
            if expected.is_large:
                raise not_found("page")
            return self._limits.small_body
        return self._limits.large_body if expected.is_large else self._limits.body


_PREFLIGHT = Response(
    status_code=204,
    headers={
        "Access-Control-Allow-Methods": "GET, POST",
        "Access-Control-Allow-Headers": "Authorization, Content-Type, Idempotency-Key",
        "Access-Control-Max-Age": "600",
    },
)
"""What a browser wants to know before a page of another site, which may call us, does."""


async def _hold(scope: Scope) -> None:
    """Keep a caller waiting, whose connection makes room for others meanwhile."""
    if door := scope.get("state", {}).get("door"):
        door.is_held = True
    await asyncio.sleep(_HELD_SECONDS)


def _for_participant(scope: Scope, path: str) -> Response | None:
    """Lead participants of crowd platforms to the voters' page, whatever their platform calls their id."""
    if not scope["query_string"] or not _VOTE_PAGE.fullmatch(path):
        return None
    given = Request(scope).query_params
    found = next((given[name] for name in _PARTICIPANT if given.get(name)), None)
    if found is None or "participant" in given:
        return None
    return Response(status_code=303, headers={"Location": f"?{urlencode({'participant': found})}"})


def _refuse_other_sites(headers: dict[bytes, bytes]) -> None:
    origin = headers.get(b"origin", b"").decode("latin-1").lower()
    is_same = not origin or origin.partition("://")[2] == headers.get(b"host", b"").decode("latin-1").lower()
    if not is_same or headers.get(b"sec-fetch-site", b"same-origin") not in {b"same-origin", b"none"}:
        raise Problem(403, "cross-site", "Other sites may not do this.")


def _check_type(headers: dict[bytes, bytes], wanted: str) -> None:
    media_type = headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip().lower()
    if not media_type.startswith(wanted):
        raise Problem(415, "wrong-type", f"The content type must be {wanted}{'…' if wanted[-1] == '/' else ''}.")


async def _whole_body(headers: dict[bytes, bytes], receive: Receive, most: int, *, is_patient: bool) -> bytes:
    """Read the body up to the limit; not at all if it is said to be longer.

    A patient reader reads the rest, without keeping it, so that the caller gets to read the refusal.
    """
    too_large = Problem(413, "too-large", f"The body may have at most {most:,} bytes.")
    said = headers.get(b"content-length", b"0")
    if said.isdigit() and int(said[:20]) > most and not is_patient:
        raise too_large
    parts, size, more = list[bytes](), 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            break
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        more = message.get("more_body", False)
        if size > most:
            parts.clear()
            if not (is_patient and more):
                raise too_large
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
