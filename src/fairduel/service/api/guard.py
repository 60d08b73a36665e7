"""Authentication by keys and cookies, and commands for those who are admitted."""

import asyncio
from typing import Annotated, TypeVar

from fastapi import Depends, Request, Response

from fairduel.service.commands.voting import ensure_results_shown
from fairduel.service.events.ledger import Command, outcome
from fairduel.service.keys import Holder, Scope, key_hash
from fairduel.service.problems import Problem, not_found
from fairduel.service.service import Service
from fairduel.service.sign_in import MINUTES

SESSION, VOTER, ATTEMPT = "fairduel_session", "fairduel_voter", "fairduel_sign_in"
_LOOPBACK = {"127.0.0.1", "::1"}
_HOLDERS = "fairduel.holders"  # in the scope of a request
FROM_SITE = "fairduel.from_site"
"""In the scope of a request that another site's page makes, with leave; its cookies do not count."""
Result = TypeVar("Result")


def service_of(request: Request) -> Service:
    """Return the service behind the application."""
    service: Service = request.app.state.service
    return service


def address(request: Request) -> str:
    """Return where a request came from; proxies are believed only if the server was told to."""
    return request.client.host if request.client else ""


def is_local(request: Request) -> bool:
    """Whether a request comes from this machine, and not by way of a proxy on it."""
    is_passed_on = any(name in request.headers for name in ("x-forwarded-for", "forwarded", "x-real-ip", "via"))
    return not is_passed_on and address(request) in _LOOPBACK


def holders(request: Request) -> list[Holder]:
    """Return who holds the keys that came with a request: the one in its header, or else those in its cookies."""
    if _HOLDERS in request.scope:
        found: list[Holder] = request.scope[_HOLDERS]
        return found
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    cookies = [] if FROM_SITE in request.scope else [request.cookies.get(name) for name in (SESSION, VOTER)]
    keys = [given.strip()] if scheme.lower() == "bearer" else cookies
    known = service_of(request).ledger.state.keys
    request.scope[_HOLDERS] = found = [known[digest] for key in keys if key and (digest := key_hash(key)) in known]
    return found


def no_key() -> Problem:
    """Return the refusal of a caller without a key."""
    return Problem(401, "no-key", "This needs a valid key.")


def owners_only() -> Problem:
    """Return the refusal of an operator who is not an owner."""
    return Problem(403, "not-allowed", "Only owners may do this.")


def _allowed(request: Request, scopes: tuple[Scope, ...], study: str | None) -> Holder:
    found = holders(request)
    if not found:
        raise no_key()
    for holder in found:
        if holder.scope in scopes and (not holder.study or holder.study == study):
            return holder
    raise not_found("page" if study is None else "study")


async def known(request: Request) -> Holder:
    """Admit everyone with a key."""
    found = holders(request)
    if not found:
        raise no_key()
    return found[0]


async def machine(request: Request) -> None:
    """Admit programs on this machine, and operators."""
    if not is_local(request):
        _allowed(request, ("operator",), None)


async def operator(request: Request) -> Holder:
    """Admit operators."""
    return _allowed(request, ("operator",), None)


async def owner(request: Request) -> Holder:
    """Admit operators who are owners."""
    holder = _allowed(request, ("operator",), None)
    known = service_of(request).ledger.state.operators.get(holder.operator)
    if known is None or known.role != "owner":
        raise owners_only()
    return holder


async def watcher(request: Request) -> Holder:
    """Admit operators and observers of all studies."""
    return _allowed(request, ("operator", "observer"), None)


async def reader(request: Request, study: str) -> Holder:
    """Admit operators and observers of the study."""
    return _allowed(request, ("operator", "observer"), study)


async def viewer(request: Request, study: str) -> Holder:
    """Admit them, and voters to whom the study shows its results."""
    found = _allowed(request, ("operator", "observer", "voter"), study)
    if found.scope == "voter":
        await call(service_of(request), lambda ledger: ensure_results_shown(ledger, found))
    return found


def voter(request: Request, study: str) -> Holder:
    """Admit voters of the study; called directly, because dependencies take time and these are most requests."""
    return _allowed(request, ("voter",), study)


Known = Annotated[Holder, Depends(known)]
Owner = Annotated[Holder, Depends(owner)]
Operator = Annotated[Holder, Depends(operator)]
Watcher = Annotated[Holder, Depends(watcher)]
Reader = Annotated[Holder, Depends(reader)]
Viewer = Annotated[Holder, Depends(viewer)]
ADMIT = {known, machine, owner, operator, watcher, reader, viewer}
"""The dependencies that ask for a key."""
Running = Annotated[Service, Depends(service_of)]


async def call(service: Service, command: Command[Result | Problem], by: Holder | None = None) -> Result:
    """Run a command and wait until its events are on disk; they say which operator did it."""
    operator = "" if by is None else by.operator
    result = outcome(await asyncio.wrap_future(service.ledger.submit(command, operator)))
    assert not isinstance(result, Problem)
    return result


def keep(request: Request, response: Response, holder: Holder, key: str) -> None:
    """Keep a key in a cookie that scripts cannot read and other sites cannot send.

    In a frame on another site, browsers keep a voter's cookie for that site alone ("Partitioned").
    """
    root = request.scope.get("root_path", "").rstrip("/")
    is_voter = holder.scope == "voter"
    response.set_cookie(
        VOTER if is_voter else SESSION,
        key,
        path=f"{root}/api/studies/{holder.study}" if is_voter else f"{root}/",
        max_age=90 * 86_400,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    study = service_of(request).ledger.state.studies.get(holder.study)
    if is_voter and study is not None and study.about.allowed_origins and request.url.scheme == "https":
        cookie = response.headers["set-cookie"].replace("SameSite=strict", "SameSite=none")
        response.headers["set-cookie"] = f"{cookie}; Partitioned"


def keep_attempt(request: Request, response: Response, attempt: str | None) -> None:
    """Keep an attempt to sign in, or forget it; the provider's page leads back, so other sites' links may send it."""
    root = request.scope.get("root_path", "").rstrip("/")
    response.set_cookie(
        ATTEMPT,
        attempt or "",
        path=f"{root}/api",
        max_age=0 if attempt is None else 60 * MINUTES,
        httponly=True,
        samesite="lax",
        secure=request.url.scheme == "https",
    )
