"""Connections over real sockets: those who send little, slowly, or too much are cut off, and others get in."""

import re
import socket
import time
from contextlib import ExitStack

import pytest

from fairduel.service.api import connections
from fairduel.service.api.limits import Limits, network
from fairduel.service.local import local_server
from helpers.waiting import wait_for

READY = b"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
HALF = b"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "


@pytest.fixture(scope="module")
def server():
    with local_server(limits=Limits(connections=5)) as (url, key):
        yield int(url.rpartition(":")[2]), key


@pytest.fixture(scope="module")
def port(server):
    return server[0]


@pytest.fixture(scope="module")
def key(server):
    return server[1]


@pytest.fixture
def dial(port):
    """Connects to the server from some address of this machine."""
    with ExitStack() as opened:

        def make(sent=b"", source="127.0.0.1"):
            connection = socket.create_connection(("127.0.0.1", port), 20, source_address=(source, 0))
            opened.enter_context(connection)
            connection.sendall(sent)
            return connection

        yield make


def reply(connection):
    """The status of the next reply, which is read to its end."""
    found = b""
    while b"\r\n\r\n" not in found:
        found += connection.recv(1000)
    head, _, body = found.partition(b"\r\n\r\n")
    (length,) = re.findall(rb"content-length: (\d+)", head.lower()) or [b"0"]
    while len(body) < int(length):
        body += connection.recv(1000)
    return int(head[9:12])


def repeat(connection, sent, pause=0.0):
    for _ in range(100_000):
        connection.sendall(sent)
        time.sleep(pause)


def is_closed(connection):
    """Whether the server has ended a connection; what it said before is skipped."""
    connection.setblocking(False)
    try:
        while connection.recv(1000):
            pass
    except BlockingIOError:
        return False
    except ConnectionError:
        pass
    return True


def test_a_caller_who_sends_nothing_makes_room_for_others(dial):
    silent = [dial(HALF) for _ in range(5)]
    time.sleep(0.2)
    assert reply(dial(READY)) == 200
    assert wait_for(lambda: is_closed(silent[0]))
    assert not any(map(is_closed, silent[1:]))
    assert reply(dial(READY, "127.0.0.2")) == 200
    assert not any(map(is_closed, silent[1:]))  # who calls from elsewhere takes nobody's place


def test_who_has_shown_a_key_stays_while_strangers_come_and_go(dial, key):
    voter = dial()
    request = READY.replace(b"/readyz", b"/api/session").replace(
        b"\r\n\r\n", f"\r\nAuthorization: Bearer {key}\r\n\r\n".encode()
    )
    voter.sendall(request)
    assert reply(voter) == 200
    for _ in range(20):
        dial(HALF)
    time.sleep(0.2)
    assert not is_closed(voter)
    voter.setblocking(True)
    voter.sendall(request)
    assert reply(voter) == 200


def test_a_connection_can_be_used_again_and_again(dial):
    connection = dial()
    for _ in range(5):
        connection.sendall(READY)
        assert reply(connection) == 200
        for _ in range(3):
            dial()


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        HALF,
        b"POST /api/session HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        b"Content-Type: application/json\r\nContent-Length: 99\r\n\r\n{",
    ],
    ids=["nothing", "half headers", "half a body"],
)
def test_slow_callers_are_cut_off(dial, monkeypatch, sent):
    monkeypatch.setattr(connections, "_REQUEST_SECONDS", 1.0)
    connection = dial(sent)
    time.sleep(0.3)
    assert not is_closed(connection)
    wait_for(lambda: is_closed(connection), 10.0)


@pytest.mark.parametrize("line", [b"X: y\r\n", b"X: " + b"y" * 5000 + b"\r\n", b"y" * 5000], ids=str)
def test_endless_headers_are_cut_off(dial, line):
    connection = dial(b"GET / HTTP/1.1\r\n")
    with pytest.raises(OSError):
        repeat(connection, line)


def test_endless_pipelines_are_cut_off(dial):
    connection = dial()
    with pytest.raises(OSError):
        repeat(connection, 1000 * READY)


@pytest.fixture
def small_buffers(monkeypatch):
    """The system keeps little of a reply that a caller does not read."""
    begin = connections.Door.connection_made

    def begin_with_small_buffer(door, transport):
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 5000)
        begin(door, transport)

    monkeypatch.setattr(connections.Door, "connection_made", begin_with_small_buffer)


@pytest.mark.usefixtures("small_buffers")
def test_callers_who_do_not_read_make_room_for_others(dial, caplog):
    unread = [dial() for _ in range(5)]
    for connection in unread:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 5000)
        connection.sendall(16 * READY.replace(b"/readyz", b"/openapi.json"))
    time.sleep(1.0)
    assert reply(dial(READY)) == 200
    assert wait_for(lambda: is_closed(unread[0]))
    assert not any(map(is_closed, unread[1:]))
    for connection in unread:
        connection.close()
    time.sleep(1.0)
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.mark.parametrize("seconds", [1.0, 3.0])
@pytest.mark.usefixtures("small_buffers")
def test_a_caller_who_does_not_read_is_cut_off(dial, monkeypatch, seconds):
    monkeypatch.setattr(connections, "_STUCK_SECONDS", seconds)
    connection = dial()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 5000)
    began = time.monotonic()
    connection.sendall(12 * b"GET /static/board/voters.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" + HALF)
    with pytest.raises(OSError):
        repeat(connection, b"x", pause=0.1)
    assert seconds < time.monotonic() - began < connections._REQUEST_SECONDS


def test_households_share_an_address():
    assert network("2001:db8:1:2:3:4:5:6") == network("2001:db8:1:2::9") != network("2001:db8:1:3::9")
    assert network("192.0.2.1") != network("192.0.2.2")
