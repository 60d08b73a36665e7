"""Attackers without a key, in a process of their own: ``python attackers.py NAME PORT`` goes on until it is killed."""

import asyncio
import itertools
import resource
import sys
from contextlib import suppress

BODY = b'{"question": "' + b"x" * 20_000_000 + b'"}'
PATHS = itertools.cycle(["/api/studies/x/import?name=x.csv", "/api/x/import", "/import"])

ASKED = itertools.cycle(["/vote/x", "/openapi.json", "/static/voter/vote.js", "/api/head", "/api/studies", "/nothing"])


def head(path, kind):
    lines = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Type: {kind}", f"Content-Length: {len(BODY)}"]
    return "\r\n".join([*lines, "", ""]).encode()


async def repeat(port, attack, pause):
    """Connect and attack again whenever the server has closed the connection."""
    while True:
        with suppress(OSError, EOFError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                await attack(reader, writer)
            finally:
                writer.transport.abort()
        await asyncio.sleep(pause)


async def large_bodies(reader, writer):
    """Send one large body after the other."""
    while True:
        writer.write(head("/api/studies", "application/json") + BODY)
        await writer.drain()
        await reader.readuntil(b"\r\n\r\n")


async def held_bodies(reader, writer):
    """Send most of a large file, and never the rest."""
    writer.write(head(next(PATHS), "application/octet-stream") + BODY[:-1])
    await writer.drain()
    while await reader.read(1000):
        pass


async def half_headers(reader, writer):
    """Never send the rest of the headers."""
    writer.write(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")
    await reader.read()


async def flood(reader, writer):
    """Ask again and again for what everyone may see, and for what needs a key."""
    while True:
        writer.write(f"GET {next(ASKED)} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        await writer.drain()
        lines = (await reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
        await reader.readexactly(next(int(line[15:]) for line in lines if line.startswith(b"content-length:")))


ATTACKS = {"large bodies": (large_bodies, 1, 0.0), "held bodies": (held_bodies, 60, 0.05)}
ATTACKS |= {"half headers": (half_headers, 1500, 1.0), "flood": (flood, 300, 0.05)}


async def main(name, port):
    attack, count, pause = ATTACKS[name]
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await asyncio.gather(*(repeat(port, attack, pause) for _ in range(count)))


if __name__ == "__main__":
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
