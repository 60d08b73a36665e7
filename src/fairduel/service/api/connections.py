"""The connections of a server: how many there may be, and how long a caller may take to send a request.

A connection *waits* while its caller has not sent a whole request, or not read the reply. If there are too many
connections, the one that has waited longest is closed, so callers who send or read nothing never keep others out; those
whose callers have shown a key come last.
"""

import asyncio
import resource
from collections import Counter, OrderedDict
from contextlib import suppress
from functools import partial
from typing import Any
from weakref import WeakSet

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from fairduel.service.api.limits import Limits, network

_REQUEST_SECONDS = 10.0
"""Seconds from the end of a reply to the end of the next request, and more for what is sent at this rate at least:"""
_LEAST_RATE = 10_000.0  # bytes per second
_STUCK_SECONDS = 30.0  # that a caller may read nothing of a reply
_MOST_HEADERS, _MOST_HEADER_BYTES, _MOST_QUEUED = 100, 32_000, 16
_BACKLOG = 128  # few, so that a burst of connections does not keep those who vote waiting
_RESERVED = _BACKLOG + 128
"""Descriptors for connections that are not counted yet, and for files."""
_MOST_DESCRIPTORS = 65_536
_REFUSED = b"HTTP/1.1 %s\r\nContent-Length: 0\r\nConnection: close\r\nRetry-After: 1\r\n\r\n"


class Doorman:
    """Admits connections, and closes those that wait for too long."""

    def __init__(self, limits: Limits) -> None:
        self._proxies, self._per_address = limits.proxies, limits.connections
        self._open: OrderedDict[Door, None] = OrderedDict()  # in the order in which they began to wait
        self._count: Counter[str] = Counter()
        self._sweeping: asyncio.TimerHandle | None = None

    def admit(self, door: "Door") -> bool:
        """Add a connection; close one that waits if there are too many, or refuse the new one."""
        most = max(8, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - _RESERVED)
        if self._count[door.place] >= min(self._per_address, most // 2) and not self._close_one(door.place):
            return False
        if len(self._open) >= most and not self._close_one(None):
            return False
        self._open[door] = None
        if door.place:
            self._count[door.place] += 1
        if self._sweeping is None:
            self._sweeping = door.loop.call_later(1.0, self._sweep, door.loop)
        return True

    def place(self, host: str) -> str:
        """Return what connections are counted by; "" for trusted proxies, whose connections are not."""
        return "" if host in self._proxies else network(host)

    def trust(self, door: "Door") -> None:
        """Count a connection no longer, because another server of ours made it."""
        if door.place and door in self._open:
            self._forget_place(door)
            door.place = ""

    def served(self, door: "Door") -> None:
        """Note that a connection waits for the next request from now on."""
        if door in self._open:
            self._open.move_to_end(door)

    def leave(self, door: "Door") -> None:
        """Remove a connection."""
        if door in self._open:
            del self._open[door]
            self._forget_place(door)

    def _forget_place(self, door: "Door") -> None:
        if door.place:
            self._count[door.place] -= 1
            if not self._count[door.place]:
                del self._count[door.place]

    def _close_one(self, place: str | None) -> bool:
        found: Door | None = None
        for each in self._open:
            if each.waits and place in {None, each.place}:
                if not each.is_known:
                    found = each
                    break
                found = found or each
        if found is None:
            return False
        self.leave(found)
        found.abort()  # without a reply, which takes time
        return True

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for door in [door for door in self._open if door.is_late(now)]:
            self.leave(door)
            door.shut(b"408 Request Timeout")
        self._sweeping = loop.call_later(1.0, self._sweep, loop) if self._open else None


class Door(HttpToolsProtocol):
    """One connection."""

    def __init__(self, *args: Any, doorman: Doorman, **named: Any) -> None:
        super().__init__(*args, **named)
        self._doorman = doorman
        self.place = ""
        """What it is counted by."""
        self.is_known = False
        """Whether its caller has shown a key."""
        self.is_held = False
        """Whether its caller is kept waiting for a refusal."""
        self._since = self.loop.time()
        self._received = 0  # bytes since then
        self._unread, self._unread_since = 0, self._since  # bytes of the reply not read by the caller, and since when
        self._cycles = WeakSet[Any]()  # the requests, of which uvicorn knows only the last one

    @property
    def waits(self) -> bool:
        """Whether the caller has not sent a whole request, or one that is refused, or has not read a reply."""
        cycle = self.cycle
        if self.is_held or cycle is None or cycle.response_complete or cycle.more_body:
            return True
        return bool(self.transport.get_write_buffer_size())

    def is_late(self, now: float) -> bool:
        """Whether the caller has taken too long to send a request, or to read the reply."""
        unread = self.transport.get_write_buffer_size()
        if unread == 0 or unread < self._unread:
            self._unread_since = now
        self._unread = unread
        if unread:
            return now - self._unread_since > _STUCK_SECONDS
        return self.waits and not self.is_held and now - self._since > _REQUEST_SECONDS + self._received / _LEAST_RATE

    def shut(self, status: bytes) -> None:
        """Close the connection, after a reply if none has begun."""
        if self.transport.get_write_buffer_size() or self.transport.is_closing():
            self.abort()
            return
        cycle = self.cycle
        if cycle is None or not cycle.response_started or (cycle.response_complete and not cycle.more_body):
            self.transport.write(_REFUSED % status)
        self.transport.close()

    def abort(self) -> None:
        """Close the connection at once."""
        self._end_replies()
        self.transport.abort()

    def _end_replies(self) -> None:
        """Let what replies to the requests write nothing more, which would be an error."""
        for cycle in self._cycles:
            cycle.disconnected = True
            cycle.message_event.set()

    def connection_made(self, transport: Any) -> None:
        """Begin, or close it at once if there are too many."""
        super().connection_made(transport)
        self.place = self._doorman.place(self.client[0] if self.client else "")
        if not self._doorman.admit(self):
            self.shut(b"503 Service Unavailable")

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._doorman.leave(self)
        self._end_replies()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take in what the caller sent, within limits."""
        if self.transport.is_closing():
            return
        self._received += len(data)
        super().data_received(data)
        is_idle = self.cycle is None or self.cycle.response_complete
        if is_idle and self._received > _MOST_HEADER_BYTES and not self.transport.is_closing():
            self.shut(b"431 Request Header Fields Too Large")

    def on_message_begin(self) -> None:
        """Begin a request, unless too many wait in line."""
        if len(self.pipeline) > _MOST_QUEUED:
            raise ValueError("too many requests at once")
        super().on_message_begin()
        self.scope["state"]["door"] = self

    def trust(self) -> None:
        """Count this connection no longer, because another server of ours made it."""
        self._doorman.trust(self)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take in a header, unless there are too many."""
        if len(self.headers) >= _MOST_HEADERS:
            raise ValueError("too many headers")
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begin to reply, or wait in line."""
        super().on_headers_complete()
        self._cycles.add(self.cycle)

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self._since, self._received, self.is_held = self.loop.time(), 0, False
        self._doorman.served(self)
        super().on_response_complete()


def server_config(app: Any, limits: Limits, **settings: Any) -> uvicorn.Config:
    """Return how to serve an application within limits."""
    http: Any = partial(Door, doorman=Doorman(limits))
    return uvicorn.Config(
        app, http=http, backlog=_BACKLOG, log_config=None, access_log=False, server_header=False, ws="none", **settings
    )


def raise_descriptor_limit() -> None:
    """Let this process have as many connections and files open as the system allows it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):  # some systems allow less than they say
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
