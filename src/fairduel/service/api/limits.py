"""What callers may do: how often, how much at a time, and under which names."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import IPv6Address, ip_address

from fairduel.service.problems import Problem
from fairduel.service.study.media import MOST_BYTES

_MOST_BUCKETS = 50_000


class RateLimit:
    """Token buckets: a number of requests per second each, after a burst.

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


@dataclass
class Limits:
    """The limits of a server.

    Args:
        hosts: Names under which it may be called; others are refused, so that no web page elsewhere can rebind its own
            name to this machine.
        proxies: Addresses of trusted proxies, whose connections are not counted per address.
        small_body: Bytes of a request, except an operator's.
        body: Bytes of an operator's request.
        large_body: Bytes of a new study, an image, audio, or votes to import.
        address: Requests without a key from one address; as many for pages, and of its voters together; and as many of
            the operators, and of a study's observers.
        joins: Joining and opening sessions, from one address.
        voter: Requests of one voter.
        connections: Connections from one address at a time.
        most_streams: Pages that watch one study.
    """

    hosts: frozenset[str] = frozenset({"localhost", "127.0.0.1", "[::1]"})
    proxies: frozenset[str] = frozenset()
    small_body: int = 16_000
    body: int = 64_000
    large_body: int = max(MOST_BYTES, 20_000_000)
    address: RateLimit = field(default_factory=lambda: RateLimit(200.0, 2000.0))
    joins: RateLimit = field(default_factory=lambda: RateLimit(1.0, 150.0))
    voter: RateLimit = field(default_factory=lambda: RateLimit(10.0, 60.0))
    connections: int = 1000
    most_streams: int = 100


def _strict() -> Limits:
    return Limits(address=RateLimit(50.0, 300.0), joins=RateLimit(0.1, 10.0), connections=100)


def _hall() -> Limits:
    return Limits(address=RateLimit(2000.0, 20_000.0), joins=RateLimit(20.0, 1000.0), connections=5000)


def unlimited() -> Limits:
    """Return limits that no caller reaches by their number of requests."""
    plenty = RateLimit(1e9, 1e9)
    return Limits(address=plenty, joins=plenty, voter=plenty, connections=100_000)


PRESETS: dict[str, Callable[[], Limits]] = {"strict": _strict, "public": Limits, "hall": _hall, "none": unlimited}
"""Limits by name. From one address, 10 people may join at once (then 6 per minute), 150 (60), 1,000 (1,200), or any."""


@lru_cache(10_000)
def network(host: str) -> str:
    """Return the part of an address that one household or hall shares: an IPv4 address, or 64 bits of an IPv6 address.

    >>> network("192.0.2.7"), network("2001:db8::1:2"), network("::ffff:192.0.2.7")
    ('192.0.2.7', '2001:db8::', '192.0.2.7')
    """
    try:
        found = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if not isinstance(found, IPv6Address):
        return host
    return str(found.ipv4_mapped or IPv6Address(int(found) >> 64 << 64))
