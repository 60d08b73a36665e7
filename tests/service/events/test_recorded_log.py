"""A log that was recorded once: the same events, hashes, duels and results, whatever the code becomes.

``recorded_log.jsonl`` has one event per line, of every kind: three studies with known answers, contexts, undone,
skipped, expired and refused answers, voters set aside and erased, imported votes and refolds; and one that an operator
deleted. Never record it again.
"""

import json
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from fairduel.service.analysis.analyse import recorded_votes
from fairduel.service.analysis.inputs import Subject
from fairduel.service.events import backup
from fairduel.service.events.database import FolderStore
from fairduel.service.events.kinds import read_event
from fairduel.service.events.ledger import Ledger
from fairduel.service.events.log import GENESIS, KINDS, canonical, next_event, verified
from fairduel.service.events.schema import Changes, Writer
from fairduel.votes.ranking.rank import rank
from helpers.torture import torture

RECORDED = [
    json.loads(line) for line in Path(__file__).with_name("recorded_log.jsonl").read_text(encoding="utf-8").splitlines()
]
HEAD = "236-f9e70f4afb9a9d02d6bb1fb2b415d5566984bf2669e0aacb23cb7e60b5aa9379"


def events():
    for position, row in enumerate(RECORDED, start=1):
        digest = bytes.fromhex(row["hash"])
        yield read_event(position, row["study"], row["kind"], row["at"], canonical(row["body"]), digest)


@pytest.fixture
def folder(tmp_path):
    """A store with the recorded log, and the tables that follow from it."""
    changes = Changes()
    for event in events():
        changes.add(event)
    with closing(FolderStore(tmp_path)) as store, store.writer() as connection:
        Writer(connection).write(changes)
        connection.commit()
    return tmp_path


def test_the_recorded_log_has_events_of_every_kind():
    assert {row["kind"] for row in RECORDED} == KINDS.keys()


def test_the_same_events_have_the_same_hashes():
    before = GENESIS
    for position, row in enumerate(RECORDED, start=1):
        body = {name: value for name, value in row["body"].items() if name != "by"}
        by = row["body"].get("by", "")
        event = next_event(before, position, row["study"], row["at"], KINDS[row["kind"]].read(body), by)
        assert event.hash.hex() == row["hash"], position
        before = event.hash
    assert event.receipt == HEAD
    assert len(list(verified(events()))) == len(RECORDED)


@torture(17, "a log that an earlier version recorded", small=1, full=1, unit="log")
def test_the_recorded_log_gives_the_same_duels_counts_and_ranking(trial, folder):
    assert [(replay.events, replay.problem) for replay in backup.replay(folder)] == [(101, ""), (51, ""), (61, "")]
    with closing(Ledger(folder)) as ledger, ledger.store.engine.connect() as connection:
        studies = ledger.state.studies.values()
        counts = [Counter(study.counts) for study in studies]
        rankings = [rank(recorded_votes(connection, Subject.of(study))).standings for study in studies]
    assert counts == [
        {"voted": 22, "undone": 7, "skipped": 6, "expired": 1, "open": 1},
        {"voted": 17, "expired": 2},
        {"voted": 25, "skipped": 1},
    ]
    assert [[standing.item for standing in ranking] for ranking in rankings] == [
        ["Wasser – still", "coffee", "tea", "milk", "“rum”"],
        ["three", "two", "one"],
        ["Wasser – still", "coffee", "milk", "tea", "“rum”"],
    ]
    assert backup.check(folder) == backup.Check(len(RECORDED), HEAD, 64, ())
    trial.found = f"{len(RECORDED)} events: same JSON, hashes, duels, counts and rankings"
