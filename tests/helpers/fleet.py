"""Several servers of one database, each in a process and behind a relay of its own, so that all of them can fail."""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress

from sqlalchemy import make_url

from helpers.servers import Link
from helpers.waiting import free_port

LAUNCHER = """
import json, logging, os, signal, socket, sys
import uvicorn
from fairduel.service.analysis.background import Analyst
from fairduel.service.api.app import create_app
from fairduel.service.api.connections import server_config
from fairduel.service.api.limits import unlimited
from fairduel.service.cluster import postgres
from fairduel.service.cluster.failover import Member, Standby
from fairduel.service.events import ledger
from fairduel.service.events.database import database
from fairduel.service.service import warm_up

def serve(url, port, file):
    commits = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    postgres.SILENCE_SECONDS, ledger._SWEEP_SECONDS = 2.0, 0.2  # usually 6 and 1
    Analyst.want = lambda *_: None
    limits = unlimited()

    def lead(service):
        term = service.ledger.store.leader.term
        service.ledger.listen(lambda position, _: os.write(commits, f"{position} {term} {port}\\n".encode()))
        return create_app(service, limits=limits)

    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    while True:
        try:
            member = Member(database(url), "127.0.0.1", port, lead)
            break
        except Exception:
            pass  # what starts servers tries again
    uvicorn.Server(server_config(Standby(member), limits)).run(sockets=[listener])

logging.disable()
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
warm_up()
print("{}", flush=True)
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setpgid(0, 0)
        sys.stdin.close()
        try:
            serve(*json.loads(line))
        finally:
            os._exit(1)
    print(json.dumps(child), flush=True)
"""
TIMEOUT = 3.0  # seconds that a voter waits for a reply


class Relay:
    """What is between a server and its database, and may stop to pass on either direction, or end all connections."""

    def __init__(self, port):
        self.target, self.flows, self.is_cut, self.open = port, {}, False, set()
        for direction in ("up", "down"):
            self.flows[direction] = asyncio.Event()
            self.flows[direction].set()

    async def start(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        return self.server.sockets[0].getsockname()[1]

    async def serve(self, reader, writer):
        if self.is_cut:
            writer.transport.abort()
            return
        upstream, downstream = await asyncio.open_connection("127.0.0.1", self.target)
        ends = writer, downstream
        self.open.add(ends)
        with suppress(OSError, asyncio.CancelledError):  # at the end
            await asyncio.wait(
                [
                    asyncio.create_task(self.pump(reader, downstream, "up")),
                    asyncio.create_task(self.pump(upstream, writer, "down")),
                ]
            )
        self.open.discard(ends)

    async def pump(self, reader, writer, direction):
        with suppress(OSError):
            while data := await reader.read(65_536):
                await self.flows[direction].wait()
                writer.write(data)
                await writer.drain()
        await self.flows[direction].wait()  # the end of a connection is not noticed either
        writer.close()

    def freeze(self, *directions):
        for direction in directions:
            self.flows[direction].clear()

    def cut(self):
        self.is_cut = True
        for ends in list(self.open):
            for end in ends:
                end.transport.abort()

    def heal(self):
        self.is_cut = False
        for flow in self.flows.values():
            flow.set()

    def close(self):
        self.heal()
        self.cut()
        self.server.close()


class Member:
    """One of the servers."""

    def __init__(self, launcher, relay, url, port, commits):
        self.launcher, self.relay, self.port = launcher, relay, port
        self.settings = url, port, str(commits)
        self.start()

    def start(self):
        self.launcher.stdin.write(json.dumps(self.settings) + "\n")
        self.launcher.stdin.flush()
        self.pid = json.loads(self.launcher.stdout.readline())

    def send(self, number):
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)


class Fleet:
    """Servers of one database, and what happens to them."""

    def __init__(self):
        self.launcher = subprocess.Popen(
            [sys.executable, "-c", LAUNCHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.launcher.stdout.readline()
        self.members = []

    async def start(self, url, count, commits):
        """Start some servers, which note the position of each commit, their term, and their port in a file."""
        where, self.commits = make_url(url), commits
        for _ in range(count):
            relay = Relay(where.port)
            address = where.set(port=await relay.start()).render_as_string(hide_password=False)
            self.members.append(Member(self.launcher, relay, address, free_port(), commits))

    async def harm(self, rng, seconds):
        """Let things happen at random for some seconds, mostly to the last leader; return what happened."""
        end, happened = time.monotonic() + seconds, []
        while (left := end - time.monotonic()) > 0:
            port = int(self.commits.read_text().split()[-1])
            leader = next(member for member in self.members if member.port == port)
            member = leader if rng.random() < 0.6 else rng.choice(self.members)
            what = rng.choice(["kill", "pause", "cut", "freeze up", "freeze down", "freeze up down"])
            happened.append(what)
            lasts = rng.choice([0.05, 0.3, 2.5])  # PostgreSQL ends the session of a leader that is silent for 2 s
            if what == "kill":
                member.send(signal.SIGKILL)
                await asyncio.sleep(min(lasts, left))
                member.start()
            elif what == "pause":
                member.send(signal.SIGSTOP)
                await asyncio.sleep(lasts)
                member.send(signal.SIGCONT)
            else:
                member.relay.cut() if what == "cut" else member.relay.freeze(*what.split()[1:])
                await asyncio.sleep(lasts)
                if rng.random() < 0.7:  # else until the end, or until it is harmed again
                    member.relay.heal()
            await asyncio.sleep(rng.choice([0.0, 0.2, 0.6]))
        for member in self.members:
            member.relay.heal()
        return happened

    def stop(self):
        for member in self.members:
            member.send(signal.SIGKILL)
            member.relay.close()
        self.members.clear()

    def close(self):
        self.stop()
        self.launcher.communicate()


class FleetVoter:
    """A voter who asks any server, and asks another one if there is no reply in time."""

    def __init__(self, fleet, study, key, seed):
        self.fleet, self.path, self.key, self.rng = fleet, f"/api/studies/{study}/duels", key, random.Random(seed)
        self.acknowledged, self.answered, self.link = [], set(), None

    async def insist(self, path, body, **headers):
        """Return the status and the reply, which some server gives at last."""
        while True:
            if self.link is None or self.rng.random() < 0.1:
                self.leave()
                self.link = Link(self.rng.choice(self.fleet.members).port, self.key)
            with suppress(OSError, EOFError, TimeoutError):
                async with asyncio.timeout(TIMEOUT):
                    status, _, reply = await self.link.post(path, body, **headers)
                if status not in {502, 503}:
                    return status, reply
            self.leave()
            await asyncio.sleep(0.02)

    def leave(self):
        if self.link is not None:
            self.link.close()
            self.link = None

    async def vote(self, stop):
        while not stop.is_set():
            _, asked = await self.insist(self.path, {"count": 1})
            duel = asked["duels"][0]["duel"]
            path, key, answer = f"{self.path}/{duel}/answer", f"{self.rng.random()}", self.rng.choice(["left", "right"])
            status, reply = await self.insist(path, {"answer": answer}, Idempotency_Key=key)
            if status == 409:  # a former leader, who does not know it yet, may show a duel that was answered
                assert (reply["code"], duel in self.answered) == ("already-answered", True)
                continue
            assert (status, reply["counted"]) == (200, True), reply
            self.answered.add(duel)
            self.acknowledged.append((reply["receipt"], duel, answer))
        self.leave()
