"""Load on ``fairduel serve``, measured from this process over loopback.

``python -m benchmarks.live_voting [NAME …] [--short] [--database URL]`` measures ``load``, ``duels``, ``memory``,
``recovery`` and ``overload``, all by default, with SQLite or an empty PostgreSQL database, and prints one table;
``--short`` takes a tenth of the votes and of the time. Each client is one voter with a connection of its own; a request
carries an answer and brings the next duel. Every acknowledged vote is afterwards looked up in the log.
"""

import argparse
import asyncio
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

SERVER = """
import sys
from fairduel.cli import main
sys.argv = ["fairduel", "serve", "--port", "0", "--new-key", "--limits", "none", *sys.argv[1:]]
main()
"""  # as people run it, but without limits per address and per voter: all of them are on this machine
CLIENTS = 32
FEW, MANY, FEATURES = 12, 1000, 64
NOISE = Console(stderr=True)


@dataclass(frozen=True)
class Row:
    """One measurement, and what it should be: at least the target if that is a rate, else at most."""

    what: str
    measured: float
    unit: str
    target: float | None = None
    is_rate: bool = False


class Server:
    """A server in another process."""

    def __init__(self, where):
        self.began = time.perf_counter()
        is_folder = isinstance(where, Path)
        store = ["--folder", str(where)] if is_folder else ["--database", where.render_as_string(hide_password=False)]
        command = [sys.executable, "-c", SERVER, *store]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        found = re.search(r"(http://127.0.0.1:(\d+)/)#(\S+)", self.process.stdout.readline())
        self.url, self.port, self.key = found[1], int(found[2]), found[3]
        while True:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.url}readyz") as reply:  # noqa: S310  # its own
                if reply.status == 200:
                    break
            time.sleep(0.005)
        self.seconds_to_ready, self.cpu_to_ready = time.perf_counter() - self.began, self.cpu_seconds

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        self.process.wait()
        self.process.stdout.close()

    @property
    def megabytes(self):
        return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{self.process.pid}/status").read_text())[1]) / 1024

    @property
    def cpu_seconds(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Connection:
    """One kept-alive HTTP connection, with as little work as possible in the client."""

    def __init__(self, port, key):
        self.port, self.key = port, key

    async def open(self):
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)

    async def post(self, path, body, extra=""):
        """Return the status, whether there is a Retry-After, and the reply."""
        content = json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self.key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n{extra}\r\n"
        )
        self.writer.write(head.encode() + content)
        headers = (await self.reader.readuntil(b"\r\n\r\n")).lower()
        length = int(headers.split(b"content-length: ")[1].split(b"\r\n")[0])
        reply = await self.reader.readexactly(length)
        return int(headers[9:12]), b"retry-after: " in headers, reply

    async def insist(self, path, body):
        """Post until it is accepted, and return the reply."""
        while True:
            status, _, reply = await self.post(path, body)
            if status < 400:
                return json.loads(reply)
            assert status in {429, 503}, reply
            await asyncio.sleep(0.2)


@dataclass
class Tally:
    """What clients saw."""

    seconds: list[float] = field(default_factory=list)
    receipts: list[str] = field(default_factory=list)
    refused: int = 0
    without_retry_after: int = 0

    def quantiles(self):
        return [float(q) for q in 1000 * np.quantile(self.seconds, [0.5, 0.99])]


def items_of(count, features):
    """Items with names, and with features of length 1 if wanted."""
    rows = np.random.default_rng(0).normal(size=(count, max(features, 1)))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return [{"name": f"item {n}"} | ({"features": row.tolist()} if features else {}) for n, row in enumerate(rows)]


def prefers_left(duel, rng):
    """Whether a voter who likes low numbers, by a logistic model, prefers the left item."""
    left, right = (int(duel[side]["text"].split()[1]) for side in ("left", "right"))
    return rng.random() < 1.0 / (1.0 + np.exp(0.02 * (left - right)))


async def join(server, study):
    """Return a new voter's connection and first duel."""
    one = Connection(server.port, server.key)
    await one.open()
    one.key = (await one.insist(f"/api/studies/{study}/voters", {}))["key"]
    return one, (await one.insist(f"/api/studies/{study}/duels", {"count": 1}))["duels"][0]


async def vote(one, duel, study, tally, is_over, pause, seed):
    """Vote until it is over; repeat what is refused after a pause."""
    rng = np.random.default_rng(seed)
    while not is_over():
        path = f"/api/studies/{study}/duels/{duel['duel']}/answer"
        body = {"answer": "left" if prefers_left(duel, rng) else "right", "next": 1}
        began = time.perf_counter()
        status, may_retry, reply = await one.post(path, body, "Idempotency-Key: key\r\n")
        if status == 200:
            tally.seconds.append(time.perf_counter() - began)
            found = json.loads(reply)
            tally.receipts.append(found["receipt"])
            duel = found["duels"][0]
        else:
            assert status in {429, 503}, reply
            tally.refused += 1
            tally.without_retry_after += not may_retry
            await asyncio.sleep(pause)
    one.writer.close()


def load(server, study=None, *, clients=CLIENTS, seconds=None, votes=None, pause=0.1):
    """Let clients vote for some time, or up to a number of votes; return what they saw, and the study's id."""

    async def run():
        found = study
        if found is None:
            operator = Connection(server.port, server.key)
            await operator.open()
            about = {"question": "Which?", "items": items_of(FEW, 0), "repeat_pairs": True}
            found = (await operator.insist("/api/studies", about))["study"]
        voters = await asyncio.gather(*(join(server, found) for _ in range(clients)))
        tally, until = Tally(), time.perf_counter() + (seconds or 1e9)

        def is_over():
            return time.perf_counter() > until or len(tally.receipts) >= (votes or 1e9)

        voting = (vote(one, duel, found, tally, is_over, pause, seed) for seed, (one, duel) in enumerate(voters))
        await asyncio.gather(*voting)
        return tally, found

    return asyncio.run(run())


def check_durable(where, *tallies):
    """Every acknowledged vote is in the log, once."""
    from fairduel.service.events import backup  # noqa: PLC0415  # only this file needs the serve extra

    with backup.reading(where) as connection:
        known = {event.receipt for event in backup.read_events(connection)}
    receipts = [receipt for tally in tallies for receipt in tally.receipts]
    assert set(receipts) <= known
    assert len(set(receipts)) == len(receipts)


def fill(where, votes, count, features):
    """Make a store with votes, in this process; return the study's id."""
    from fairduel.service.cluster.postgres import PostgresStore  # noqa: PLC0415
    from fairduel.service.commands import operating, voting  # noqa: PLC0415
    from fairduel.service.events.ledger import Ledger  # noqa: PLC0415
    from fairduel.service.keys import Holder  # noqa: PLC0415
    from fairduel.service.study.study import NewStudy  # noqa: PLC0415

    about = NewStudy(question="Which?", items=items_of(count, features), repeat_pairs=True)
    store = where if isinstance(where, Path) else PostgresStore.alone(where)
    ledger, rng = Ledger(store, sweep=voting.sweep), np.random.default_rng(0)
    study = ledger.run(lambda ledger: operating.create_study(ledger, about)).study
    voters = [
        Holder("voter", study, ledger.run(lambda it: voting.join(it, study, voting.Newcomer()))[0]) for _ in range(16)
    ]
    replies = [ledger.run(lambda it, voter=voter: voting.ask(it, voter, 1)) for voter in voters]
    for _ in track(range(votes // len(voters)), f"{votes:,} votes on {count:,} items", console=NOISE):
        futures = []
        for voter, reply in zip(voters, replies, strict=True):
            duel = reply["duels"][0]
            given = voting.Given(duel["duel"], "key", "left" if prefers_left(duel, rng) else "right")
            futures.append(ledger.submit(partial(voting.answer_and_ask, holder=voter, given=given, count=1)))
        replies = [future.result() for future in futures]
    ledger.close()
    return study


def measure_load(where, scale):
    """Durable votes per second, and how long one takes."""
    with Server(where) as server:
        _, study = load(server, seconds=3)  # the start, and the analysis of few votes, are not measured
        cpu, seconds = server.cpu_seconds, max(3, 20 * scale)
        tally, _ = load(server, study, seconds=seconds)
        cpu = server.cpu_seconds - cpu
    check_durable(where, tally)
    p50, p99 = tally.quantiles()
    yield Row(f"durable votes per second, {CLIENTS} clients", len(tally.receipts) / seconds, "/s", 1000, is_rate=True)
    yield Row("vote and next duel, median", p50, "ms")
    yield Row("vote and next duel, p99", p99, "ms", 50)
    yield Row("the server's CPU time per vote", 1000 * cpu / len(tally.receipts), "ms", 1)


def measure_duels(where, scale):
    """How long the next duel of many items takes after many votes."""
    from fairduel.service.study.study import Item  # noqa: PLC0415

    features, votes = FEATURES if "features" in Item.model_fields else 0, int(100_000 * scale)
    study = fill(where, votes, MANY, features)
    with Server(where) as server:
        for clients in (1, 8):
            tally, _ = load(server, study, clients=clients, seconds=max(3, 20 * scale))
            what = f"{MANY:,} items, {f'd = {features}' if features else 'no features'}, {votes:,} votes"
            yield Row(f"next duel, p99; {what}, {clients} at once", tally.quantiles()[1], "ms", 50)


def measure_memory(where, scale):
    """Whether memory grows with votes."""
    votes = int(200_000 * scale)
    with Server(where) as server:
        first, study = load(server, votes=votes // 10)
        before = server.megabytes
        rest, _ = load(server, study, votes=votes - votes // 10)
        after = server.megabytes
    check_durable(where, first, rest)
    yield Row(f"memory after {votes // 10:,} votes", before, "MB")
    yield Row(f"memory after {votes:,} votes", after, "MB", 1.1 * before)


def measure_recovery(where, scale):
    """How long a killed server takes to be ready again, from its start, without losing a vote."""
    votes = int(100_000 * scale)
    study, tallies, times, cpu = fill(where, votes, FEW, 0), [], [], []
    server = Server(where)
    for _ in range(3):
        tally, _ = load(server, study, seconds=2)
        server.process.kill()
        server.process.wait()
        server = Server(where)
        tallies.append(tally)
        times.append(server.seconds_to_ready)
        cpu.append(server.cpu_to_ready)
    with server:
        pass
    check_durable(where, *tallies)
    yield Row(f"ready after SIGKILL at {votes:,} votes, slowest of {len(times)}", max(times), "s", 2)
    yield Row("CPU time of that", max(cpu), "s")


def measure_overload(where, scale):
    """What happens with ten times as many clients, none of whom waits as long as it is told."""
    with Server(where) as server:
        _, study = load(server, seconds=3)
        before, seconds = server.megabytes, max(5, 60 * scale)
        tally, _ = load(server, study, clients=10 * CLIENTS, seconds=seconds, pause=0.05)
        after = server.megabytes
    check_durable(where, tally)
    what = f"{10 * CLIENTS} clients for {seconds:.0f} s"
    yield Row(f"{what}: accepted votes per second", len(tally.receipts) / seconds, "/s")
    yield Row(f"{what}: refusals per second", tally.refused / seconds, "/s")
    yield Row(f"{what}: refusals without Retry-After", tally.without_retry_after, "", 0)
    yield Row(f"{what}: accepted, p99", tally.quantiles()[1], "ms", 250)
    yield Row(f"{what}: memory", after, "MB", 1.1 * before)


MEASURES = {
    "load": measure_load,
    "duels": measure_duels,
    "memory": measure_memory,
    "recovery": measure_recovery,
    "overload": measure_overload,
}


def sync_milliseconds(folder):
    """How long this disk takes to make one page durable, median of 50."""
    times = []
    with (Path(folder) / "sync").open("wb") as file:
        for _ in range(50):
            file.write(bytes(4096))
            file.flush()
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - began)
    return 1000 * float(np.median(times))


def shown(rows):
    table = Table("measured", "result", "target", "result ÷ target", box=None)
    for row in rows:
        sign = "≥" if row.is_rate else "≤"
        target = "" if row.target is None else f"{sign} {row.target:,.4g} {row.unit}"
        ratio = f"{row.measured / row.target:.2f}" if row.target else ""
        table.add_row(row.what, f"{row.measured:,.4g} {row.unit}", target, ratio)
    return table


def _where(database, folder):
    from fairduel.service.events.database import location  # noqa: PLC0415

    return location(database or folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(MEASURES))
    parser.add_argument("--short", action="store_true", help="a tenth of the votes and of the time")
    parser.add_argument("--folder", type=Path, help="where to make temporary stores, to choose the disk")
    parser.add_argument("--database", metavar="URL", help="an empty PostgreSQL database to use instead of SQLite")
    given = parser.parse_args()
    unknown = set(given.names) - set(MEASURES)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; choose from {', '.join(MEASURES)}")
    rows, before = [], os.getloadavg()[0]
    for name in given.names or MEASURES:
        with tempfile.TemporaryDirectory(dir=given.folder) as folder:
            sync = sync_milliseconds(folder)
            rows += MEASURES[name](_where(given.database, folder), 0.1 if given.short else 1.0)
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(shown(rows))
    load_average = f"{before:.1f} before, {os.getloadavg()[0]:.1f} after"
    console.print(f"{os.cpu_count()} cores, load average {load_average}; one fdatasync takes {sync:.1f} ms.")


if __name__ == "__main__":
    main()
