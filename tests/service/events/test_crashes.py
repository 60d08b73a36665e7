"""Crashes: what was acknowledged is on disk, and nothing is counted twice."""

import multiprocessing
import os
import random
import signal
import sqlite3
import threading
import time
from contextlib import closing, suppress
from functools import partial

import pytest

from fairduel.service.commands import voting
from fairduel.service.events import backup
from fairduel.service.events.database import read_events
from fairduel.service.events.ledger import Ledger
from fairduel.service.problems import Problem
from helpers.booth import open_ledger
from helpers.clusters import in_both


def _vote_until_killed(folder, voters, acknowledged, seed):
    """Vote with one thread per voter, and write each receipt to a pipe once it is acknowledged."""
    ledger = open_ledger(folder)
    write = threading.Lock()

    def vote(holder, rng):
        while True:
            duel = ledger.run(lambda ledger: voting.ask(ledger, holder, 1))["duels"][0]["duel"]
            given, key = rng.choice(["left", "right", "tie"]), str(rng.random())
            command = partial(voting.answer, holder=holder, given=voting.Given(duel, key, given))
            reply = ledger.run(command)
            with write:
                os.write(acknowledged, f"{reply['receipt']} {duel}\n".encode())

    for number, holder in enumerate(voters):
        threading.Thread(target=vote, args=(holder, random.Random(f"{seed} {number}")), daemon=True).start()
    threading.Event().wait()


@in_both
def test_no_acknowledged_vote_is_lost_by_sigkill(new_booth):
    booth = new_booth(items=6)
    booth.join(12)
    booth.ledger.close()
    rng, receipts = random.Random(0), []
    for kill in range(5):
        ours, theirs = os.pipe()
        arguments = (booth.folder, booth.voters, theirs, kill)
        child = multiprocessing.get_context("fork").Process(target=_vote_until_killed, args=arguments)
        child.start()
        os.close(theirs)
        with os.fdopen(ours) as pipe:
            receipts.append(pipe.readline())  # it is voting
            time.sleep(rng.uniform(0.0, 0.4))
            os.kill(child.pid, signal.SIGKILL)
            receipts += [line for line in pipe if line.endswith("\n")]
        child.join()
    receipts = [line.split() for line in receipts]
    assert len(receipts) > 30
    found = backup.check(booth.folder)
    assert found.problems == ()
    with backup.reading(booth.folder) as connection:
        log = {event.position: event for event in read_events(connection)}
    answered = [event.body.duel for event in log.values() if event.body.kind == "answered"]
    assert len(answered) == len(set(answered))
    for receipt, duel in receipts:
        event = log[int(receipt.partition("-")[0])]
        assert (event.receipt, event.body.duel) == (receipt, duel)
    booth.open()
    assert booth.state.counts["voted"] == len(answered) == found.votes


@in_both
@pytest.mark.parametrize("failing", range(1, 6))
def test_a_failing_commit_is_not_acknowledged(booth, monkeypatch, failing):
    duels = [booth.ask(voter)[0]["duel"] for voter in range(4)]
    commit, calls = Ledger._commit, []

    def fails_once(ledger):
        if ledger._pending.studies:
            calls.append(1)
            if len(calls) == failing:
                ledger._flush()
                raise sqlite3.OperationalError("disk I/O error")
        return commit(ledger)

    monkeypatch.setattr(Ledger, "_commit", fails_once)
    acknowledged = []
    for voter, duel in enumerate(duels):
        with suppress(Problem):
            acknowledged.append(booth.answer(duel, voter=voter)["receipt"])
    assert len(acknowledged) == (3 if failing <= 4 else 4)
    booth.restart()
    assert booth.state.counts["voted"] == len(acknowledged)
    assert backup.check(booth.folder).problems == ()
    for voter, duel in enumerate(duels):  # a retry counts once, whether or not the first attempt did
        assert booth.answer(duel, voter=voter)["counted"]
    assert booth.state.counts["voted"] == 4


@in_both
def test_backups_under_load_are_exact_prefixes(new_booth, tmp_path):
    booth = new_booth()
    stop = threading.Event()

    def vote():
        seed = 0
        while not stop.is_set():
            booth.vote(1, seed)
            seed += 1

    thread = threading.Thread(target=vote)
    thread.start()
    heads = []
    for number in range(8):
        found = backup.backup(booth.folder, tmp_path / f"backup{number}")
        assert found.problems == ()
        heads.append(found.head)
    stop.set()
    thread.join()
    with backup.reading(booth.folder) as connection:
        receipts = {event.receipt for event in read_events(connection)}
    assert set(heads) <= receipts
    assert len(set(heads)) > 2
    restored = backup.restore(tmp_path / "backup7", tmp_path / "restored")
    assert restored.head == heads[-1]
    with closing(Ledger(tmp_path / "restored")) as ledger:
        assert ledger.state.position == restored.events


def test_a_caller_who_goes_away_stops_nothing(booth):
    gate = threading.Event()
    busy = booth.ledger.submit(lambda _: gate.wait(5))
    gone = [booth.ledger.submit(lambda ledger: voting.ask(ledger, booth.voters[0], 1)) for _ in range(3)]
    assert gone[1].cancel()
    gate.set()
    assert busy.result()
    assert gone[2].result()["duels"] == gone[0].result()["duels"]


@in_both
def test_a_command_that_fails_halfway_leaves_nothing(booth):
    position = booth.run(lambda ledger: ledger.state.position)

    def fails(ledger):
        voting.ask(ledger, booth.voters[0], 1)
        raise RuntimeError

    with pytest.raises(Problem, match="nothing was recorded"):
        booth.ledger.run(fails)
    assert booth.run(lambda ledger: ledger.state.position) == position
    booth.vote(3)
    assert backup.check(booth.folder).problems == ()


def test_too_much_at_once_is_refused_and_the_rest_is_done(booth, monkeypatch):
    monkeypatch.setattr("fairduel.service.events.ledger._MOST_WAITING", 5)
    gate = threading.Event()
    busy = booth.ledger.submit(lambda _: gate.wait(5))
    while booth.ledger._queue.qsize():
        time.sleep(0.001)  # until it is being run
    queued = [booth.ledger.submit(lambda ledger: ledger.state.position) for _ in range(5)]
    with pytest.raises(Problem) as refused:
        booth.ledger.submit(lambda _: None)
    assert (refused.value.status, refused.value.code, refused.value.retry_after) == (503, "overloaded", 1)
    gate.set()
    assert busy.result()
    assert len({future.result() for future in queued}) == 1


def test_when_many_wait_for_long_new_requests_are_refused_until_it_is_over(booth):
    """More commands than one commit takes wait behind a slow one; the server's own commands are never refused."""
    slow = booth.ledger.submit(lambda _: time.sleep(0.2))
    while booth.ledger._queue.qsize():
        time.sleep(0.001)  # until it is being run
    gate = threading.Event()
    queued = [booth.ledger.submit(lambda _: gate.wait(5)) for _ in range(300)]
    slow.result()
    while booth.ledger._queue.qsize() == 300:
        time.sleep(0.001)  # until the next batch has begun, whose first command waited for 0.2 s
    with pytest.raises(Problem) as refused:
        booth.ledger.submit(lambda _: None)
    assert (refused.value.status, refused.value.code, refused.value.retry_after) == (503, "overloaded", 1)
    gate.set()
    assert booth.run(lambda ledger: ledger.state.position) > 0
    assert all(future.result() for future in queued)
    assert booth.ledger.submit(lambda _: 1).result() == 1
