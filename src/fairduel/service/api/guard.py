"""Who may call: keys, cookies, and how often."""

import time
from collections import OrderedDict
from typing import Annotated

from fastapi import Depends, Request, Response

from fairduel.service.keys import Holder, Scope, key_hash
from fairduel.service.problems import Problem, not_found
from fairduel.service.service import Service

SESSION, VOTER = "fairduel_session", "fairduel_voter"
_MOST_BUCKETS = 50_000


class RateLimit:
    """Token buckets: so many requests per second each, after a burst.

    Args:
        rate: Tokens per second.
        burst: Tokens that a bucket holds.
    """

    def __init__(self, rate: float, burst: float) -> None:
        self._rate, self._burst = rate, burst
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tokens and when; least recent first

    def take(self, name: str, tokens: float = 1.0) -> None:
        """Take tokens from a bucket, or refuse if it has too few."""
        now = time.monotonic()
        left, then = self._buckets.pop(name, (self._burst, now))
        left = min(self._burst, left + (now - then) * self._rate)
        enough = left >= tokens
        self._buckets[name] = (left - tokens if enough else left, now)
        if len(self._buckets) > _MOST_BUCKETS:
            self._buckets.popitem(last=False)
        if not enough:
            wait = max(1, round((tokens - left) / self._rate + 0.5))
            raise Problem(429, "too-many-requests", f"Too many requests; try again in {wait} s.", wait)


def service_of(request: Request) -> Service:
    """Return the service behind the application."""
    service: Service = request.app.state.service
    return service


def address(request: Request) -> str:
    """Return where a request came from; proxies are believed only if the server was told to."""
    return request.client.host if request.client else ""


def holders(request: Request) -> list[Holder]:
    """Return who holds the keys that came with a request: the one in its header, or else those in its cookies."""
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    keys = [given.strip()] if scheme.lower() == "bearer" else [request.cookies.get(name) for name in (SESSION, VOTER)]
    known = service_of(request).ledger.state.keys
    return [known[key_hash(key)] for key in keys if key and key_hash(key) in known]


def _allowed(request: Request, scopes: tuple[Scope, ...], study: str | None) -> Holder:
    limits = request.app.state.limits
    limits.address.take(address(request))
    found = holders(request)
    if not found:
        raise Problem(401, "no-key", "This needs a valid key.")
    for holder in found:
        if holder.scope in scopes and (holder.scope == "operator" or holder.study == study):
            return holder
    raise not_found("page" if study is None else "study")


async def operator(request: Request) -> Holder:
    """Admit operators."""
    return _allowed(request, ("operator",), None)


async def reader(request: Request, study: str) -> Holder:
    """Admit operators and observers of the study."""
    return _allowed(request, ("operator", "observer"), study)


def voter(request: Request, study: str) -> Holder:
    """Admit voters of the study; called directly, because dependencies take time and these are most requests."""
    holder = _allowed(request, ("voter",), study)
    request.app.state.limits.voter.take(holder.voter)
    return holder


async def anyone(request: Request) -> None:
    """Admit everyone, within the limits."""
    request.app.state.limits.address.take(address(request))


async def newcomer(request: Request) -> None:
    """Admit those who have no key yet, within stricter limits."""
    request.app.state.limits.address.take(address(request))
    request.app.state.limits.joins.take(address(request))


Operator = Annotated[Holder, Depends(operator)]
Reader = Annotated[Holder, Depends(reader)]
Running = Annotated[Service, Depends(service_of)]


def keep(request: Request, response: Response, holder: Holder, key: str) -> None:
    """Keep a key in a cookie that scripts cannot read and other sites cannot send."""
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
