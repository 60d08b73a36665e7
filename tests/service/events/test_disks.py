"""Disks that lose power, tear writes, flip bits, fail and fill up: what was acknowledged is there."""

import random
import shutil
import sqlite3
import threading
from contextlib import closing

import pytest
from sqlalchemy import text

from fairduel.agents.parts.state_file import same_state
from fairduel.service.analysis import exports
from fairduel.service.analysis.inputs import Analysis, Subject
from fairduel.service.events import backup
from fairduel.service.events.database import DATABASE, FolderStore, open_sqlite
from fairduel.service.events.ledger import Ledger
from fairduel.service.problems import Problem
from fairduel.votes.reading.read import read_votes
from helpers.disks import Disk, after_power_cut, mounted
from helpers.torture import torture
from helpers.waiting import wait_for


@pytest.fixture
def kept(new_booth):
    """A study of which copies are made."""
    booth = new_booth(items=4)
    booth.vote(3)
    booth.ledger.close()
    yield booth
    booth.open()


def vote_at_once(booth, votes, seed, acknowledge):
    """Let each voter vote on a thread of their own, and pass on the receipts of acknowledged votes."""

    def vote(voter):
        rng = random.Random(f"{seed} {voter}")
        for number in range(votes):
            duel = booth.ask(voter)[0]["duel"]
            given = rng.choice(["left", "right", "tie"])
            acknowledge(booth.answer(duel, given, voter, key=str(number))["receipt"])

    threads = [threading.Thread(target=vote, args=(voter,)) for voter in range(len(booth.voters))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def recorded(kept, folder, monkeypatch, seed, synchronous):
    """Let people vote on a disk that records, and return its trace, with receipts as they were acknowledged."""
    disk = Disk(synchronous, checkpoint=random.Random(seed).choice([8, 40, 1000]))
    shutil.copytree(kept.folder, folder)
    disk.keep(folder)
    with mounted(disk, monkeypatch):
        booth = kept.at(folder)
        vote_at_once(booth, 8, seed, lambda receipt: disk.trace.append(("acknowledged", receipt)))
        whole = booth.receipts()
        booth.ledger.close()
    return disk.trace, whole


def cut_power(kept, tmp_path, monkeypatch, cuts, synchronous):
    """Cut the power at random moments; return how many votes had been acknowledged, and how many of them were lost."""
    acknowledged = lost = 0
    for seed in range(cuts):
        if seed % 25 == 0:
            trace, whole = recorded(kept, tmp_path / f"{synchronous}{seed}", monkeypatch, seed, synchronous)
            begin = next(place for place, operation in enumerate(trace) if operation[0] == "acknowledged")
        rng = random.Random(seed)
        until = trace[: rng.randrange(begin, len(trace))]
        folder = tmp_path / f"{synchronous}cut{seed}"
        folder.mkdir()
        for name, content in after_power_cut(until, rng).items():
            (folder / name).write_bytes(content)
        try:
            booth = kept.at(folder)
            log = booth.receipts()
            booth.crowd(1)
            booth.ledger.close()
            problems = backup.check(folder).problems
        except Exception:
            if synchronous is None:
                raise
            log, problems = [], ()
        assert problems == () or synchronous is not None
        assert log == whole[: len(log)] or synchronous is not None
        receipts = {name for kind, name, *_ in until if kind == "acknowledged"}
        acknowledged += len(receipts)
        lost += len(receipts - set(log))
        shutil.rmtree(folder)
    return acknowledged, lost


@torture(
    2, "power cut: writes that were not synchronised are lost, reordered and torn", small=25, full=1000, unit="cuts"
)
def test_a_power_cut_loses_no_acknowledged_vote(trial, kept, tmp_path, monkeypatch):
    found = {
        synchronous: cut_power(kept, tmp_path, monkeypatch, max(12, trial.size // share), synchronous)
        for synchronous, share in ((None, 1), ("NORMAL", 5), ("OFF", 5))  # the service's own first
    }
    acknowledged, lost = found[None]
    assert acknowledged > 8 * trial.size
    assert lost == 0
    shares = {name: lost / acknowledged for name, (acknowledged, lost) in found.items()}
    assert shares["NORMAL"] > 0.05  # so this test would notice
    assert shares["OFF"] > 0.2
    trial.found = (
        f"0 of {acknowledged:,} acknowledged votes lost, every store intact "
        f"(with synchronous=NORMAL {shares['NORMAL']:.0%} lost, with OFF {shares['OFF']:.0%})"
    )


def test_a_power_cut_at_the_first_start_leaves_a_store_that_opens(tmp_path, monkeypatch):
    disk, rng = Disk(), random.Random(0)
    with mounted(disk, monkeypatch):
        Ledger(tmp_path / "new").close()
    for cut in range(0, len(disk.trace), 4):
        folder = tmp_path / f"cut{cut}"
        folder.mkdir()
        for name, content in after_power_cut(disk.trace[:cut], rng).items():
            (folder / name).write_bytes(content)
        Ledger(folder).close()
        assert backup.check(folder).problems == ()


@torture(3, "write-ahead log cut at every byte of its last 3 transactions", small=40, full=0, unit="cuts")
def test_a_log_torn_anywhere_opens_and_goes_on(trial, booth, tmp_path):
    booth.vote(4)
    wal = booth.folder / "fairduel.db-wal"
    ends, heads = [wal.stat().st_size], [booth.receipts()[-1]]
    for _ in range(3):
        booth.join(1)  # one transaction
        ends.append(wal.stat().st_size)
        heads.append(booth.receipts()[-1])
    whole, content = booth.receipts(), wal.read_bytes()
    cuts = range(ends[0], ends[-1] + 1)
    if not trial.is_full:
        near = [end + n for end in ends for n in (-1, 0, 1)]
        cuts = sorted(set(near + random.Random(0).sample(cuts, trial.size)) & set(cuts))
    copy, seen = tmp_path / "copy", set()
    copy.mkdir()
    for number, cut in enumerate(cuts):
        shutil.copy(booth.folder / "fairduel.db", copy)
        (copy / "fairduel.db-wal").write_bytes(content[:cut])
        (copy / "fairduel.db-shm").unlink(missing_ok=True)
        last = heads[sum(cut >= end for end in ends) - 1]
        with closing(sqlite3.connect(copy / "fairduel.db")) as connection:
            connection.execute("PRAGMA synchronous = OFF")  # closing it takes less time then
            position, digest = connection.execute("SELECT max(position), hash FROM events").fetchone()
        assert f"{position}-{digest.hex()}" == last
        if number % 50 == 0 or not trial.is_full:
            torn = booth.at(copy)
            torn.voters = booth.voters[:4]
            torn.crowd(1)
            receipts = torn.receipts()
            torn.ledger.close()
            assert receipts[:position] == whole[:position]
            assert len(receipts) > position
            assert backup.check(copy).problems == ()
        seen.add(last)
    assert len(seen) == 4
    trial.size = len(cuts)
    trial.found = "each opens with all whole transactions, and the next votes are recorded"


@torture(3, "exported votes (JSON Lines) cut at every byte of the last 3", small=30, full=0, unit="cuts")
def test_an_export_torn_anywhere_can_be_read(trial, booth, tmp_path):
    booth.crowd(8)
    about = Subject.of(booth.state)
    content = b"".join(exports.export_study(booth.ledger.store.engine, "votes", "jsonl", about, Analysis(), []))
    ends = [place + 1 for place, byte in enumerate(content) if byte == ord("\n")]
    whole = len(ends) - 3
    cuts = list(range(ends[whole - 1], len(content) + 1))
    if not trial.is_full:
        cuts = sorted({*random.Random(0).sample(cuts, trial.size), *ends[-3:], *(end - 1 for end in ends[-3:])})
    path = tmp_path / "votes.jsonl"
    path.write_bytes(content)
    result = read_votes(path).votes.result.tolist()
    for cut in cuts:
        path.write_bytes(content[:cut])
        complete = sum(end - 1 <= cut for end in ends)  # the last line needs no line break
        assert read_votes(path).votes.result.tolist() == result[:complete]
    trial.size = len(cuts)
    trial.found = "all whole votes are read, and the torn one is set aside"


def _content(folder):
    with backup.reading(folder) as connection:
        names = connection.execute(text("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")).scalars()
        rows = {name: connection.execute(text(f"SELECT * FROM {name}")) for name in names.all()}
        return {name.lower(): sorted(map(repr, found)) for name, found in rows.items()}


@torture(4, "a flipped bit in the database", small=60, full=1000, unit="positions")
def test_a_flipped_bit_on_disk_is_found_or_changes_nothing(trial, new_booth, tmp_path):
    booth = new_booth(items=4)
    booth.vote(15)
    booth.ledger.close()
    copy = tmp_path / "copy"
    copy.mkdir()
    original, content = (booth.folder / "fairduel.db").read_bytes(), _content(booth.folder)
    rng, found = random.Random(0), 0
    for _ in range(trial.size):
        flipped = bytearray(original)
        flipped[rng.randrange(len(original))] ^= 1 << rng.randrange(8)
        (copy / "fairduel.db").write_bytes(flipped)
        if backup.check(copy).problems:
            found += 1
        else:
            assert _content(copy) == content
    assert found > trial.size // 10  # much of a small file is unused
    trial.found = f"{found:,} found by `store check`, {trial.size - found:,} change no row"
    booth.open()


@torture(4, "a flipped bit in the write-ahead log", small=20, full=300, unit="positions")
def test_a_flipped_bit_in_the_write_ahead_log_leaves_a_prefix(trial, booth, tmp_path):
    booth.vote(6)
    whole, wal = booth.receipts(), (booth.folder / "fairduel.db-wal").read_bytes()
    copy, rng, kept = tmp_path / "copy", random.Random(0), set()
    for _ in range(trial.size):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(booth.folder, copy, ignore=shutil.ignore_patterns("*-shm", "learners"))
        flipped = bytearray(wal)
        flipped[rng.randrange(len(wal) // 2, len(wal))] ^= 1 << rng.randrange(8)
        (copy / "fairduel.db-wal").write_bytes(flipped)
        torn = booth.at(copy)
        receipts = torn.receipts()
        torn.ledger.close()
        assert receipts == whole[: len(receipts)]
        assert backup.check(copy).problems == ()
        kept.add(len(receipts))
    assert len(kept) > 2
    trial.found = "the log ends before the damage, as after a power cut; what is left verifies"


@torture(5, "fsync fails at its nth call, with and without a power cut later", small=5, full=50, unit="calls")
def test_a_failing_fsync_is_not_acknowledged(trial, kept, tmp_path, monkeypatch):
    votes = 0
    for failing in range(1, trial.size + 1):
        for checkpoint in (6, 1000):
            disk = Disk(checkpoint=checkpoint)
            folder = tmp_path / f"store{failing}-{checkpoint}"
            shutil.copytree(kept.folder, folder)
            disk.keep(folder)
            with mounted(disk, monkeypatch):
                booth = kept.at(folder)
                disk.failing = {disk.syncs + failing}
                acknowledged, refused = [], []

                def try_it(command, *arguments, refused=refused):
                    while True:
                        try:
                            return command(*arguments)
                        except Problem as problem:
                            refused.append((problem.status, problem.code, problem.retry_after))

                for number in range(trial.size // 2 + 2):
                    voter = number % 4
                    duel = try_it(booth.ask, voter)[0]["duel"]
                    acknowledged.append(try_it(booth.answer, duel, "left", voter, str(number))["receipt"])
                assert set(refused) <= {(503, "storage", 2)}
                assert len(refused) == 1 or checkpoint == 6  # one that fails in a checkpoint need not matter
                assert disk.syncs >= max(disk.failing)
                trace, whole = list(disk.trace), booth.receipts()
                booth.ledger.close()
            assert set(acknowledged) <= set(whole)
            assert backup.check(folder).problems == ()
            cut = tmp_path / f"cut{failing}-{checkpoint}"
            cut.mkdir()
            for name, content in after_power_cut(trace, random.Random(failing)).items():
                (cut / name).write_bytes(content)
            restarted = kept.at(cut)
            assert restarted.receipts() == whole
            restarted.crowd(1)
            restarted.ledger.close()
            assert backup.check(cut).problems == ()
            votes += len(acknowledged)
    trial.found = f"503 without a record, then a retry counts once; all {votes:,} acknowledged votes are there"


@pytest.mark.parametrize("is_read_only", [False, True])
def test_sqlite_synchronises_every_commit_and_overwrites_what_is_erased(tmp_path, is_read_only):
    FolderStore(tmp_path).close()
    engine = open_sqlite(tmp_path / DATABASE, read_only=is_read_only)
    with engine.connect() as connection:
        found = [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("synchronous", "secure_delete")]
    engine.dispose()
    assert found == [2, 1]  # FULL, ON


def test_a_full_disk_refuses_votes_and_recovers(kept, tmp_path, monkeypatch):
    disk = Disk(checkpoint=20)
    shutil.copytree(kept.folder, tmp_path / "store")
    with mounted(disk, monkeypatch):
        booth = kept.at(tmp_path / "store")
        before = len(booth.receipts())
        disk.quota = 40_000
        refused = []
        for _ in range(60):
            try:
                booth.join(1)
            except Problem as problem:
                refused.append((problem.status, problem.code, problem.retry_after))
        assert len(refused) > 20
        assert set(refused) == {(503, "storage", 2)}
        assert not booth.ledger.is_ready
        disk.quota = None
        wait_for(lambda: booth.ledger.is_ready)  # it tries by itself, though nobody votes
        assert len(booth.receipts()) == before + 2 * (60 - len(refused))
        booth.vote(5, seed=1)
        live = booth.state.learner.state()
        booth.restart()
        assert same_state(booth.state.learner.state(), live)
        booth.ledger.close()
    assert backup.check(tmp_path / "store").problems == ()
