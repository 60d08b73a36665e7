"""Several servers of one PostgreSQL database: one leads, the others forward, and one takes over."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import partial

import httpx
import pytest

from fairduel.service import maintenance
from fairduel.service.client import Client
from fairduel.service.locations import database, reading
from fairduel.service.store import read_events
from helpers.clusters import new_database

LOCK = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = 'postgres')"


@pytest.fixture
def url(postgres):
    return new_database(postgres)


@pytest.fixture
def start(url):
    """Starts servers, each in a process of its own; returns them with their addresses once they are ready."""
    started = []

    def run(*words):
        command = [sys.executable, "-m", "fairduel", *words, "--database", url, "--port", "0"]
        environment = os.environ | {"COLUMNS": "500"}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        started.append(process)
        return process

    yield run
    for process in started:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.communicate()


def links(process):
    """The server's address, and the study or the operator's key if it says them."""
    said = process.stdout.readline()
    found = re.search(r"(http://127.0.0.1:\d+)/(?:vote/(\S+))?", said)
    return found[1], found[2]


def vote(address, study, acknowledged, stop):
    """Vote until told to stop, whatever happens to the servers; note each receipt and its duel."""
    with Client(address, patience=20.0) as client:
        while not stop.is_set():
            with client.join(study) as voter:
                while (duels := voter.ask().duels) and not stop.is_set():
                    acknowledged.append((voter.answer(duels[0].duel, "left").receipt, duels[0].duel))


def ready(address):
    with suppress(httpx.TransportError):
        return httpx.get(f"{address}/readyz").status_code == 200
    return False


def wait_for(condition, seconds=20.0):
    give_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.02)


def test_a_standby_counts_votes_and_takes_over_when_the_leader_is_killed(start, url):
    leader = start("poll", "tea", "milk", "water", "beer", "wine", "juice")
    first, study = links(leader)
    key = re.search("#(fdo_.+)", leader.stdout.readline())[1]
    wait_for(partial(ready, first))
    standby = start("serve")
    second, _ = links(standby)
    wait_for(partial(ready, second))
    acknowledged, stop = [], threading.Event()
    threads = [threading.Thread(target=vote, args=(second, study, acknowledged, stop)) for _ in range(4)]
    for thread in threads:
        thread.start()
    wait_for(lambda: len(acknowledged) > 20)
    leader.kill()
    killed, before = time.monotonic(), len(acknowledged)
    wait_for(lambda: len(acknowledged) > before + 20)
    print(f"{time.monotonic() - killed:.2f} s")
    assert time.monotonic() - killed < 10.0
    stop.set()
    for thread in threads:
        thread.join()
    where = database(url)
    with reading(where) as connection:
        log = {event.receipt: event for event in read_events(connection)}
    answered = [event.body["duel"] for event in log.values() if event.kind == "answered"]
    assert len(answered) == len(set(answered))
    assert all(log[receipt].body["duel"] == duel for receipt, duel in acknowledged)
    assert maintenance.check(where).problems == ()
    assert all(not each.problem for each in maintenance.replay(where))
    with Client(second, key) as operator:
        assert operator.study(study).counts.votes == len(answered)
