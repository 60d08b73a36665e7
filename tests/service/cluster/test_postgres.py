"""Several servers of one PostgreSQL database: one leads, the others forward, and one of them takes over."""

import asyncio
import json
import multiprocessing
import os
import re
import signal
import socket
import threading
import time
from contextlib import closing, contextmanager, suppress
from functools import partial
from types import SimpleNamespace

import httpx
import pytest
from sqlalchemy import text

from fairduel.agents.parts.state_file import same_state
from fairduel.errors import BadInputError
from fairduel.service.api.app import create_app
from fairduel.service.api.limits import Limits, RateLimit
from fairduel.service.client import Client, UnreachableError
from fairduel.service.cluster.failover import _SMALL_BODY, CALLER, Member, Standby, _Begun, _is_true, _request
from fairduel.service.cluster.postgres import DatabaseSession, Leader, PostgresStore
from fairduel.service.commands import operating, team
from fairduel.service.events import backup
from fairduel.service.events.database import database, read_events, reading
from fairduel.service.local import serving
from fairduel.service.problems import Problem
from helpers.booth import Booth, Clock
from helpers.clusters import execute
from helpers.servers import in_a_loop
from helpers.waiting import wait_for

STUDY = {"question": "Which?", "items": [{"name": f"item {n}"} for n in range(6)]}


def depose(url):
    """End the session of whoever leads, as PostgreSQL does if it hears nothing from them."""
    name = re.search("search_path%3D(.+)", url)[1]
    holder = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objid = "
    assert execute(url, f"{holder} (hashtext('{name}')::bigint & 4294967295)::oid") == [(True,)]


# ---------------------------------------------------------------------- one leader


def test_a_leader_who_lost_the_lock_cannot_commit(url, stored):
    duels = [duel["duel"] for duel in stored.ask(count=3)]
    stored.answer(duels[0])
    depose(url)
    with pytest.raises(Problem) as refused:
        stored.answer(duels[1], key="second")
    assert (refused.value.status, refused.value.code) == (502, "unconfirmed")
    for _ in range(3):  # it does not come back by itself: another server may lead by now
        with pytest.raises(Problem):
            stored.answer(duels[1], key="second")
    assert stored.ledger.store.session.is_lost
    successor = Booth.__new__(Booth)
    successor.folder, successor.clock, successor.study, successor.voters = (
        stored.folder,
        Clock(),
        stored.study,
        stored.voters,
    )
    successor.open()
    try:
        assert successor.state.counts["voted"] == 1
        assert successor.answer(duels[1], key="second")["counted"]
        with pytest.raises(Problem):
            stored.answer(duels[2])
        assert successor.state.counts["voted"] == 2
    finally:
        successor.ledger.close()
    assert backup.check(stored.folder).problems == ()


def test_a_lost_answer_to_a_commit_is_not_called_a_failure(url, stored, monkeypatch):
    """The events are on disk, but the connection ends before PostgreSQL says so."""
    duel = stored.ask()[0]["duel"]
    session = stored.ledger.store.session
    commit = session.connection.commit

    def commit_and_lose():
        commit()
        depose(url)
        session.connection.execute(text("SELECT 1"))

    monkeypatch.setattr(session.connection, "commit", commit_and_lose)
    with pytest.raises(Problem) as refused:
        stored.answer(duel)
    assert refused.value.code == "unconfirmed"
    monkeypatch.undo()
    stored.restart()
    assert stored.state.counts["voted"] == 1
    assert stored.answer(duel)["counted"]  # the retry gets the reply
    assert stored.state.counts["voted"] == 1


def test_only_one_server_leads(url, stored):
    with pytest.raises(BadInputError, match="another fairduel server leads"):
        PostgresStore.alone(database(url))
    with closing(DatabaseSession(database(url))) as session:
        assert not session.try_to_lead()
        assert session.leader() == stored.ledger.store.leader
        assert session.own_address() == "127.0.0.1"
        stored.ledger.close()
        assert wait_for(session.try_to_lead)
    stored.open()
    assert stored.ledger.store.leader.term == 2


def test_a_silent_leader_is_disconnected(url, monkeypatch):
    monkeypatch.setattr("fairduel.service.cluster.postgres.SILENCE_SECONDS", 0.3)
    with closing(DatabaseSession(database(url))) as silent, closing(DatabaseSession(database(url))) as other:
        assert silent.try_to_lead()
        silent.limit_silence(silent.connection)
        silent.connection.commit()
        assert not other.try_to_lead()
        assert wait_for(other.try_to_lead, 5.0)


def test_learners_are_kept_in_the_database(stored, monkeypatch):
    monkeypatch.setattr("fairduel.service.study.learner.SAVE_EVERY", 20)
    stored.vote(20)
    live = stored.state.learner.state()
    stored.ledger.close()
    folded = []
    monkeypatch.setattr("fairduel.service.study.learner.Learner.fold", _counting(folded))
    stored.open()
    assert same_state(stored.state.learner.state(), live)
    assert folded[0].position > 20  # the events before are in the save
    stored.run(lambda ledger: ledger.connection().execute(text("UPDATE learners SET content = 'damaged'")))
    stored.restart()
    assert same_state(stored.state.learner.state(), live)


def _counting(folded):
    from fairduel.service.study.learner import Learner  # noqa: PLC0415

    fold = Learner.fold

    def count(learner, event, **settings):
        folded.append(event)
        fold(learner, event, **settings)

    return count


def test_erased_names_are_in_no_table(url, stored):
    voter = stored.run(operating.invite, stored.study, ["Ada Lovelace"])[0]["voter"]
    stored.run(operating.erase_personal, stored.study, voter)
    stored.ledger.store.forget()
    assert execute(url, "SELECT * FROM personal") == []
    dead = "SELECT n_dead_tup FROM pg_stat_user_tables WHERE relid = 'personal'::regclass"
    assert wait_for(lambda: execute(url, dead) == [(0,)])
    assert backup.check(stored.folder).problems == ()


# ---------------------------------------------------------------------- several servers


@contextmanager
def server(url, **limits):
    """Run a server in this process; yields its address and what it knows."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def lead(service):
            keys.append(service.ledger.run(team.ensure_operator))
            return create_app(service, limits=Limits(**limits))

        keys = []
        member = Member(database(url), "127.0.0.1", listener.getsockname()[1], lead)
        with closing(member), serving(Standby(member), listener) as address:
            member.keys = keys
            yield address, member


@pytest.fixture
def pair(url):
    """A leader and a standby: their addresses, the operator's headers, and how many watch each study."""
    generous = RateLimit(1e9, 1e9)
    with server(url, joins=RateLimit(0.01, 5.0), address=generous, voter=generous) as (first, leader):
        assert leader.app is not None
        with server(url) as (second, standby):
            assert standby.app is None
            yield first, second, {"Authorization": f"Bearer {leader.keys[0]}"}, leader.app.state.streams


def test_a_standby_serves_the_same_as_the_leader(pair):
    first, second, headers, _ = pair
    created = httpx.post(f"{second}/api/studies", json=STUDY, headers=headers)
    assert created.status_code == 201
    study = created.json()["study"]
    joined = httpx.post(f"{second}/api/studies/{study}/voters", json={})
    cookie = joined.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert joined.headers["content-security-policy"] == httpx.get(first).headers["content-security-policy"]
    assert len(joined.headers.get_list("date")) == 1
    with Client(second).voter(study, joined.json()["key"]) as voter:
        assert voter.answer(voter.ask().duels[0].duel, "left").counted
    assert httpx.get(f"{first}/api/studies/{study}", headers=headers).json()["counts"]["votes"] == 1
    export = httpx.get(f"{second}/api/studies/{study}/exports/votes.csv", headers=headers)
    assert export.text.count("\n") == 2
    for path in ("healthz", "readyz", "", "openapi.json"):
        assert httpx.get(f"{second}/{path}").status_code == 200
    missing = httpx.get(f"{second}/api/studies/none%2Fnone%00?x=%20", headers=headers)
    assert (missing.status_code, missing.headers["content-type"]) == (404, "application/problem+json")
    large = httpx.post(f"{second}/api/studies/{study}/voters", json={"name": "x" * 100_000})
    assert (large.status_code, large.json()["code"]) == (413, "too-large")
    assert httpx.delete(f"{second}/api/session").status_code == 204


def test_changes_are_announced_through_a_standby(pair):
    _, second, headers, streams = pair
    study = httpx.post(f"{second}/api/studies", json=STUDY, headers=headers).json()["study"]
    positions = []
    with httpx.stream("GET", f"{second}/api/studies/{study}/events", headers=headers, timeout=10) as stream:
        for line in stream.iter_lines():
            if line.startswith("data: "):
                positions.append(json.loads(line[6:])["position"])
                if positions[-1] > positions[0]:
                    break
                if len(positions) == 1:
                    assert streams[study] == 1
                    httpx.post(f"{second}/api/studies/{study}/voters", json={})
    assert positions[-1] > positions[0]
    wait_for(lambda: streams[study] == 0)  # who goes away from the standby is gone from the leader


def test_a_callers_address_is_believed_only_from_another_server(pair):
    """Joining is limited to 5 per address: callers of the standby share one, and nobody can claim another."""
    first, second, headers, _ = pair
    study = httpx.post(f"{second}/api/studies", json=STUDY, headers=headers).json()["study"]
    join = partial(httpx.post, json={})
    path = f"api/studies/{study}/voters"
    claims = [{"X-Forwarded-For": f"10.0.0.{n}", "Forwarded": f"for=10.0.0.{n}"} for n in range(9)]
    assert [join(f"{second}/{path}", headers=claim).status_code for claim in claims] == [201] * 5 + [429] * 4
    with httpx.Client(transport=httpx.HTTPTransport(local_address="127.0.0.2")) as elsewhere:
        assert elsewhere.post(f"{second}/{path}", json={}).status_code == 201
    for claim in (b"10.0.0.1 http " + b"0" * 64, b"10.0.0.1", b"", b"\xff \xff \xff"):
        for address in (first, second):
            refused = join(f"{address}/{path}", headers=[(CALLER, claim)])
            assert (refused.status_code, refused.json()["code"]) == (503, "no-leader")
            assert refused.headers["retry-after"] == "1"
            assert refused.headers["x-frame-options"] == "DENY"


def test_slow_callers_of_a_standby_keep_no_connection_to_the_leader(monkeypatch):
    """Whoever sends half a body is not forwarded; one address has its share of large ones, and of all requests."""
    arrived, answer = [], threading.Event()

    async def leader(reader, writer):
        arrived.append(1)
        await reader.readuntil(b"\r\n\r\n")
        while not answer.is_set():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        writer.close()
        await writer.wait_closed()

    async def call(standby, address, *parts, ends=True):
        """Send a body in parts, and return the status of the reply."""
        head = {"method": "POST", "path": "/api/head", "raw_path": b"/api/head", "query_string": b"", "scheme": "http"}
        size = b"%d" % sum(map(len, parts)) if ends else b"20000000"
        rest = {"headers": [(b"content-length", size)], "client": (address, 5), "root_path": "", "state": {}}
        left, statuses = list(parts), []

        async def receive():
            if not left:
                await asyncio.Event().wait()
            return {"type": "http.request", "body": left.pop(0), "more_body": bool(left) or not ends}

        async def send(message):
            statuses.append(message.get("status"))

        await standby({"type": "http", "asgi": {"spec_version": "2.4"}, **head, **rest}, receive, send)
        return statuses[0]

    async def run():
        server = await asyncio.start_server(leader, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        member = SimpleNamespace(app=None, leader=Leader(1, f"http://127.0.0.1:{port}", b"secret"))
        standby, large = Standby(member), b"x" * (_SMALL_BODY + 1)
        calls = [asyncio.create_task(call(standby, "10.0.0.1", b"x", ends=False)) for _ in range(20)]
        await asyncio.sleep(0.2)
        assert not arrived
        calls += [asyncio.create_task(call(standby, "10.0.0.1", large, ends=False)) for _ in range(3)]
        await asyncio.sleep(0.5)
        assert [calls[-1].result(), len(arrived)] == [503, 2]
        small = [asyncio.create_task(call(standby, "10.0.0.1", b"{}")) for _ in range(5)]
        other = asyncio.create_task(call(standby, "10.0.0.2", b"{}"))
        await asyncio.sleep(0.5)
        answer.set()
        assert sorted([await each for each in small]) == [204] * 2 + [503] * 3  # four, with the two large ones
        assert await other == 204
        for each in calls:
            each.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        assert not standby._forwarded
        await standby._transport.aclose()
        server.close()
        await server.wait_closed()

    monkeypatch.setattr("fairduel.service.cluster.failover._MOST", (4, 2))
    in_a_loop(run())


def test_under_a_subpath_a_standby_requests_the_same_path():
    """Each server puts the subpath before what its proxy sends."""
    scope = {"method": "GET", "scheme": "https", "root_path": "/polls", "client": ("10.0.0.1", 5)}
    scope |= {"raw_path": b"/polls/vote/a%2Fb", "query_string": b"x=%20y", "headers": [(b"host", b"vote.example.org")]}
    leader = Leader(1, "http://[::1]:8000", b"secret")
    request = _request(leader, scope, None, _Begun(b"", is_large=False))
    assert request.url == "http://[::1]:8000/vote/a%2Fb?x=%20y"
    assert request.headers["host"] == "vote.example.org"
    claim = request.headers[CALLER.decode()].encode()
    assert claim.startswith(b"10.0.0.1 https ")
    assert _is_true(claim, leader.secret)
    assert not _is_true(claim, b"other")
    assert not _is_true(claim.replace(b"https", b"http"), leader.secret)


def test_a_standby_takes_over_when_the_leader_stops_or_is_deposed(url):
    with server(url) as (second, later):
        with server(url) as (first, member):
            assert (later.app is None, member.app is None) == (False, True)
            headers = {"Authorization": f"Bearer {later.keys[0]}"}
            study = httpx.post(f"{first}/api/studies", json=STUDY, headers=headers).json()["study"]
            watching = threading.Event()

            def watch():
                with httpx.stream("GET", f"{first}/api/studies/{study}/events", headers=headers, timeout=30) as stream:
                    for _ in stream.iter_lines():
                        watching.set()

            thread = threading.Thread(target=watch)
            thread.start()
            assert watching.wait(10)
            depose(url)
            wait_for(lambda: later.app is None or later.leader.term > 1)
            thread.join(10)  # the stream ends, so that pages watch the new leader
            assert not thread.is_alive()
            for address in (first, second):
                with Client(address, later.keys[0]) as operator:
                    assert operator.study(study).question == "Which?"
            term = max(later.leader.term, member.leader.term)
            assert term == 2
        # the other one has stopped
        wait_for(lambda: later.app is not None)
        with Client(second, later.keys[0]) as operator:
            assert operator.study(study).question == "Which?"


def test_without_a_leader_clients_are_asked_to_come_back(url, monkeypatch):
    with server(url) as (address, member):
        monkeypatch.setattr(DatabaseSession, "try_to_lead", lambda _: False)
        depose(url)
        wait_for(lambda: member.app is None)
        refused = httpx.post(f"{address}/api/session", json={"key": "x"})
        assert (refused.status_code, refused.json()["code"]) == (503, "no-leader")
        assert httpx.get(f"{address}/healthz").status_code == 200
        assert httpx.get(f"{address}/readyz").status_code == 503
        monkeypatch.undo()
        with Client(address, member.keys[0]) as operator:  # it waits
            operator.create_study(**STUDY)


# ---------------------------------------------------------------------- processes


def _serve(url, pipe):
    with server(url, joins=RateLimit(1e9, 1e9), voter=RateLimit(1e9, 1e9)) as (address, member):
        pipe.send((address, member.keys))
        threading.Event().wait()


@pytest.fixture
def start(url):
    """Starts servers in processes of their own; returns each with its address and the new operator's key, if any."""
    context, started = multiprocessing.get_context("fork"), []

    def run():
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(url, theirs))
        process.start()
        started.append(process)
        with ours, theirs:
            return process, *ours.recv()

    yield run
    for process in started:
        process.kill()
        process.join()


def vote(address, study, acknowledged, stop):
    """Vote until told to stop, whatever happens to other servers; note each receipt and its duel."""
    with suppress(UnreachableError), Client(address) as client:
        while not stop.is_set():
            with client.join(study) as voter:
                while not stop.is_set() and (duels := voter.ask().duels):
                    acknowledged.append((voter.answer(duels[0].duel, "left").receipt, duels[0].duel))


def test_votes_survive_a_paused_and_a_killed_leader(start, url):
    """The leader is paused, loses its lock and wakes up; then its successor is killed. All of this under load."""
    one, first, (key,) = start()
    two, second, _ = start()
    with Client(second, key) as operator:
        study = operator.create_study(**STUDY).study
    acknowledged, stop = {first: [], second: []}, threading.Event()
    threads = [
        threading.Thread(target=vote, args=(address, study, acknowledged[address], stop), daemon=True)
        for address in (first, first, second, second)
    ]
    for thread in threads:
        thread.start()

    def seconds_until_votes(address):
        began, before = time.monotonic(), len(acknowledged[address])
        wait_for(lambda: len(acknowledged[address]) > before + 10)
        return time.monotonic() - began

    for address in (first, second):
        seconds_until_votes(address)
    os.kill(one.pid, signal.SIGSTOP)
    depose(url)
    assert seconds_until_votes(second) < 10.0
    os.kill(one.pid, signal.SIGCONT)
    seconds_until_votes(first)
    two.kill()
    assert seconds_until_votes(first) < 10.0
    stop.set()
    for thread in threads[:2]:  # the others still look for their server
        thread.join()
    where = database(url)
    with reading(where) as connection:
        log = {event.receipt: event for event in read_events(connection)}
    answered = [event.body.duel for event in log.values() if event.body.kind == "answered"]
    assert len(answered) == len(set(answered))
    assert all(log[receipt].body.duel == duel for known in acknowledged.values() for receipt, duel in known)
    assert backup.check(where).problems == ()
    assert all(not each.problem for each in backup.replay(where))
    with Client(first, key) as operator:
        assert operator.study(study).counts.votes == len(answered)
