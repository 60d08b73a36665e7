"""Histories in which servers of one database are killed, paused, and cut off from it, at random and under load."""

import asyncio
import random
import time

import pytest

from fairduel.service.commands import voting
from fairduel.service.events import backup
from fairduel.service.events.database import database, read_events, reading
from helpers.booth import Booth, Clock
from helpers.clusters import new_database
from helpers.fleet import Fleet, FleetVoter
from helpers.servers import in_a_loop
from helpers.torture import torture

SERVERS, VOTERS = 3, 6


@pytest.fixture
def fleet():
    fleet = Fleet()
    yield fleet
    fleet.close()


def history(fleet, url, commits, seed):
    """Return what happened, what voters were told, and how long it took until all of them could vote again."""
    where = database(url)
    booth = Booth(where, Clock(), {"repeat_pairs": True})
    keys = [booth.run(voting.join, booth.study, voting.Newcomer())[1] for _ in range(VOTERS)]
    booth.ledger.close()

    async def run():
        await fleet.start(url, SERVERS, commits)
        voters = [FleetVoter(fleet, booth.study, key, 100 * seed + n) for n, key in enumerate(keys)]
        stop = asyncio.Event()
        voting = [asyncio.create_task(voter.vote(stop)) for voter in voters]

        async def another_vote():
            before = [len(voter.acknowledged) for voter in voters]
            while any(len(voter.acknowledged) <= n for voter, n in zip(voters, before, strict=True)):  # noqa: ASYNC110
                await asyncio.sleep(0.02)

        try:
            async with asyncio.timeout(120):
                await another_vote()
                happened = await fleet.harm(random.Random(seed), 3.0)
                began = time.monotonic()
                await another_vote()
            seconds = time.monotonic() - began
            stop.set()
            await asyncio.gather(*voting)
        finally:
            fleet.stop()
        return happened, voters, seconds

    return in_a_loop(run())


def check(url, commits, voters):
    """No acknowledged vote is lost or changed, no duel counts twice, and nobody commits after a later leader."""
    where = database(url)
    with reading(where) as connection:
        log = {event.receipt: event for event in read_events(connection)}
    answered = [event.body.duel for event in log.values() if event.body.kind == "answered"]
    assert len(answered) == len(set(answered))
    told = [each for voter in voters for each in voter.acknowledged]
    assert len({duel for _, duel, _ in told}) == len(told)
    for receipt, duel, answer in told:
        assert (log[receipt].body.duel, log[receipt].body.answer) == (duel, answer)
    ends = sorted(tuple(map(int, line.split())) for line in commits.read_text().splitlines())
    assert len({position for position, _, _ in ends}) == len(ends)
    assert [term for _, term, _ in ends] == sorted(term for _, term, _ in ends)
    assert backup.check(where).problems == ()
    return len(told), ends[-1][1]


@torture(22, "3 servers of one PostgreSQL: kills, pauses, cuts, one-way silence", small=2, full=300, unit="histories")
def test_no_history_loses_or_doubles_votes_or_has_two_leaders(trial, postgres, fleet, tmp_path):
    votes, terms, faults, slowest = 0, 0, 0, 0.0
    for seed in range(trial.size):
        url = new_database(postgres)
        commits = tmp_path / str(seed)
        happened, voters, seconds = history(fleet, url, commits, seed)
        told, last = check(url, commits, voters)
        votes, terms, faults, slowest = votes + told, terms + last, faults + len(happened), max(slowest, seconds)
    trial.found = (
        f"{faults:,} faults, {terms:,} leaders, {votes:,} acknowledged votes: 0 lost, 0 twice, never two leaders; "
        f"all voters went on within {slowest:.1f} s"
    )
    assert terms > trial.size
