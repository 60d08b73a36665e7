"""Load on ``fairduel serve``, from another process over loopback: durable votes per second, and how long a vote takes.

``python -m benchmarks.live_voting [CLIENTS] [SECONDS]`` starts a server in a temporary folder; each client is one voter
who answers duels; each reply brings the next one. Every acknowledged vote is then looked up in the log.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SERVER = """
import sys, time
from pathlib import Path
from fairduel.service.api.app import Limits
from fairduel.service.api.guard import RateLimit
from fairduel.service.local import local_server
free = RateLimit(1e9, 1e9)
with local_server(Path(sys.argv[1]), limits=Limits(address=free, joins=free, voter=free)) as (url, key):
    print(url, key, flush=True)
    sys.stdin.read()
"""


class Connection:
    """One kept-alive HTTP connection, with as little work as possible in the client."""

    def __init__(self, port, key):
        self.port, self.key = port, key

    async def open(self):
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)

    async def post(self, path, body, extra=""):
        content = json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self.key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n{extra}\r\n"
        )
        self.writer.write(head.encode() + content)
        headers = await self.reader.readuntil(b"\r\n\r\n")
        length = int(headers.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        return int(headers[9:12]), json.loads(await self.reader.readexactly(length))


async def voter(port, key, study, until, times, receipts):
    one = Connection(port, key)
    await one.open()
    status, joined = await one.post(f"/api/studies/{study}/voters", {})
    assert status == 201, joined
    one.key = joined["key"]
    status, reply = await one.post(f"/api/studies/{study}/duels", {"count": 1})
    assert status == 200, reply
    while time.perf_counter() < until:
        began = time.perf_counter()
        path = f"/api/studies/{study}/duels/{reply['duels'][0]['duel']}/answer"
        status, reply = await one.post(path, {"answer": "left", "next": 1}, "Idempotency-Key: key\r\n")
        assert status == 200, reply
        times.append(time.perf_counter() - began)
        receipts.append(reply["receipt"])
    one.writer.close()


async def load(url, key, clients, seconds):
    port = int(url.rsplit(":", 1)[1])
    operator = Connection(port, key)
    await operator.open()
    items = [{"name": f"item {n}"} for n in range(12)]
    _, made = await operator.post("/api/studies", {"question": "Which?", "items": items, "repeat_pairs": True})
    times, receipts = [], []
    until = time.perf_counter() + seconds
    voters = [voter(port, key, made["study"], until, times, receipts) for _ in range(clients)]
    await asyncio.gather(*voters)
    return times, receipts


def main(clients=32, seconds=10):
    from fairduel.service import maintenance  # noqa: PLC0415  # only this file needs the serve extra

    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", SERVER, folder]
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        url, key = server.stdout.readline().split()
        times, receipts = asyncio.run(load(url, key, clients, seconds))
        server.communicate()
        with maintenance.reading(Path(folder)) as connection:
            known = {event.receipt for event in maintenance.read_events(connection)}
    assert set(receipts) <= known
    assert len(set(receipts)) == len(receipts)
    print(f"{clients} clients, {seconds} s: {len(receipts) / seconds:,.0f} durable votes/s, each with its own duel")
    p50, p99 = 1000 * np.quantile(times, [0.5, 0.99])
    print(f"  vote and next duel: median {p50:.0f} ms, p99 {p99:.0f} ms")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
