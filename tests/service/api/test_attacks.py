"""Callers without a key cannot stall the server, fill its memory, or lock others out."""

import asyncio
import subprocess
import sys
import time
from contextlib import contextmanager

import httpx
import numpy as np
import pytest

from helpers import attackers
from helpers.servers import Link, in_a_loop
from helpers.torture import torture

STUDY = {"question": "Which?", "items": [{"name": name} for name in ("tea", "milk", "water")], "repeat_pairs": True}
MOST_MEGABYTES, LONGEST_WAIT = 600, 0.1  # seconds, p99
VOTERS, PAUSE = 4, 0.15  # seconds between two requests of a voter


@pytest.fixture
def server(launcher, tmp_path):
    """A server with its usual limits, and as few descriptors as many systems give a process."""
    server = launcher.start(tmp_path, preset="public", descriptors=1024)
    server.wait()
    yield server
    server.end()


@contextmanager
def attack(name, port):
    process = subprocess.Popen([sys.executable, attackers.__file__, name, str(port)], stdout=subprocess.PIPE)
    try:
        process.stdout.readline()
        yield
    finally:
        process.kill()
        process.communicate()


def join(client, study):
    return client.post(f"api/studies/{study}/voters", json={}).raise_for_status().json()["key"]


async def vote(server, study, keys, seconds):
    """Let voters vote for some seconds; return how long each request took, and the most memory meanwhile."""
    most, end = 0.0, time.monotonic() + seconds

    async def voter(key):
        nonlocal most
        link, number = Link(server.port, key), time.monotonic_ns()
        _, asked = await link.insist("POST", f"/api/studies/{study}/duels", {})
        duels = asked["duels"]
        while time.monotonic() < end:
            await asyncio.sleep(PAUSE)
            path, number = f"/api/studies/{study}/duels/{duels[0]['duel']}/answer", number + 1
            status, reply = await link.insist("POST", path, {"answer": "left", "next": 1}, Idempotency_Key=str(number))
            assert status == 200
            assert reply["counted"]
            duels, most = reply["duels"], max(most, server.megabytes())
        link.close()
        return link.seconds

    return np.concatenate(await asyncio.gather(*map(voter, keys))), most


@pytest.mark.parametrize("name", attackers.ATTACKS)
@torture(
    21,
    "attacks without a key: 20 MB bodies, 60 held files, 1,500 half headers, a flood",
    small=3,
    full=60,
    unit="s each",
)
def test_a_voter_hardly_notices_an_attack(trial, server, name):
    with httpx.Client(base_url=f"http://127.0.0.1:{server.port}/", timeout=20.0) as client:
        study = client.post("api/studies", json=STUDY, headers={"Authorization": f"Bearer {server.key}"}).json()
        keys = [join(client, study["study"]) for _ in range(VOTERS)]
        for _ in range(1 if trial.is_full else 3):  # the suite may share its machine: a neighbour passes, a stall stays
            quiet, _ = in_a_loop(vote(server, study["study"], keys, min(trial.size, 10)))
            with attack(name, server.port):
                seconds, most = in_a_loop(vote(server, study["study"], keys, trial.size))
                client.close()
                with httpx.Client(base_url=client.base_url, timeout=20.0) as newcomer:
                    join(newcomer, study["study"])
            p99, usual = (float(np.quantile(each, 0.99)) for each in (seconds, quiet))
            longest = LONGEST_WAIT if trial.is_full else max(1.0, 3.0 * usual)
            if p99 < longest:
                break
    trial.found = f"{name}: p99 {1000 * p99:.0f} ms (before: {1000 * usual:.0f} ms), {most:.0f} MB"
    assert len(seconds) > 3 * trial.size
    assert most < MOST_MEGABYTES
    assert p99 < longest
