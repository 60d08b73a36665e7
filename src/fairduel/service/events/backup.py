"""Check, back up, restore and replay a store; all but restoring also works while a server uses it."""

import hashlib
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, exists, insert, select, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from fairduel.agents.parts.state_file import same_state
from fairduel.core.blas import one_thread
from fairduel.errors import BadInputError
from fairduel.service.cluster.postgres import PostgresStore
from fairduel.service.events import schema
from fairduel.service.events.database import (
    DATABASE,
    FolderStore,
    Location,
    VoteStore,
    described,
    folded_learner,
    last_refold,
    load_state,
    read_events,
    reading,
    saved_learner,
    saved_states,
)
from fairduel.service.events.kinds import PersonalErased, StudyCreated
from fairduel.service.events.lifecycle import Deleted, ItemAdded, StudyDeleted
from fairduel.service.events.log import DamagedLogError, Event, read_receipt, seal, verified
from fairduel.service.events.schema import Changes
from fairduel.service.study.learner import DivergedError
from fairduel.service.study.media import MEDIA

_PERSONAL = ("name", "participant", "address", "comment")


@dataclass(frozen=True)
class Check:
    """What a check found."""

    events: int
    head: str
    """Receipt of the last event, or ""; equal heads mean equal logs."""
    votes: int
    problems: tuple[str, ...]


def check(where: Location) -> Check:
    """Check the log's hash chain, and that everything else in the store follows from the log.

    Of a text about a voter that is gone nobody can say whether it was erased from the tables alone.
    """
    try:
        with reading(where) as connection:
            return _check(connection, where)
    except BadInputError:
        raise
    except (SQLAlchemyError, sqlite3.Error, DamagedLogError, ValueError, TypeError) as error:
        problem = error.orig if isinstance(error, DBAPIError) else error
        return Check(0, "", 0, (f"The store cannot be read: {problem}",))


def _check(connection: Connection, where: Location) -> Check:
    changes, head, position = Changes(), "", 0
    sealed, erased = dict[tuple[int, str], str](), dict[tuple[str, str | None], int]()
    files, hashes, gone, deleted = set[str](), dict[int, str](), dict[str, int](), set[str]()
    saved = {study: (state["position"], state["digest"]) for study, state in saved_states(where, connection)}
    wanted = {position for position, _ in saved.values()}
    for event in verified(read_events(connection)):
        if event.position in wanted:
            hashes[event.position] = event.hash.hex()
        if isinstance(event.body, Deleted):
            gone[event.study] = gone.get(event.study, 0) + 1
        if isinstance(event.body, StudyDeleted):
            deleted.add(event.study)
        if isinstance(event.body, PersonalErased):
            erased[event.study, event.body.voter] = event.position
        if isinstance(event.body, StudyCreated):
            files |= {item[kind] for item in event.body.settings["items"] for kind in MEDIA if item.get(kind)}
        if isinstance(event.body, ItemAdded):
            files |= {file for kind in MEDIA if (file := event.body.item.get(kind))}
        changes.add(event)
        changes.events.clear()  # only the rows that follow from them are compared
        for field in _PERSONAL:
            if digest := getattr(event.body, field, None):
                sealed[event.position, field] = digest
        head, position = event.receipt, event.position
    problems = [
        *_broken_pages(connection, files),
        *_wrong_rows(connection, changes),
        *_wrong_texts(connection, sealed, erased),
        *(
            f"{count:,} events of study {study} are gone, but it was not deleted."
            for study, count in gone.items()
            if study not in deleted
        ),
        *(
            f"The saved learner of study {study} is not of this log; delete it, and the log is learned again."
            for study, (place, digest) in saved.items()
            if hashes.get(place) != digest
        ),
    ]
    votes = sum(row["status"] == "voted" for row in changes.duels.values())
    return Check(position, head, votes, tuple(problems))


def _broken_pages(connection: Connection, files: set[str]) -> Iterator[str]:
    if connection.dialect.name == "sqlite":
        for line in connection.execute(text("PRAGMA integrity_check")).scalars():
            if line != "ok":
                yield f"SQLite: {line}"
    for row in connection.execute(select(schema.media)):
        files.discard(row.digest)
        if hashlib.sha256(row.content).hexdigest() != row.digest:
            yield f"The {row.type} {row.digest} is damaged."
    for digest in sorted(files):
        yield f"The image or audio {digest} of a study is missing."


def _wrong_rows(connection: Connection, changes: Changes) -> Iterator[str]:
    """Compare the tables with those that follow from the log."""
    for table, expected in (
        (schema.duels, changes.duels),
        (schema.answers, {row["position"]: row for row in changes.answers}),
    ):
        found = {row[0]: dict(row._mapping) for row in connection.execute(select(table))}  # noqa: SLF001
        wrong = [key for key in expected.keys() | found.keys() if expected.get(key) != found.get(key)]
        if wrong:
            yield f"{len(wrong):,} rows of table {table.name} do not follow from the log."


def _wrong_texts(
    connection: Connection, sealed: dict[tuple[int, str], str], erased: dict[tuple[str, str | None], int]
) -> Iterator[str]:
    """Compare personal texts with their hashes in the log, and see that those that were erased are gone."""
    for row in connection.execute(select(schema.personal)):
        if sealed.get((row.position, row.field)) != seal(row.salt, row.text):
            yield f"The {row.field} of event {row.position:,} is not the one that was recorded."
        if row.position < max(erased.get((row.study, who), 0) for who in (row.voter, None)):
            yield f"The {row.field} of event {row.position:,} was erased, but is still there."


def backup(where: Location, to: Path) -> Check:
    """Copy a store as it is at this moment into a new folder, and check the copy."""
    _refuse_full(to)
    with reading(where) as connection:
        if isinstance(where, Path):
            _copy_file(where, to)
        else:
            _copy_rows(connection, FolderStore(to))
    return check(to)


def restore(source: Path, where: Location) -> Check:
    """Copy a backup into a new folder or an empty database, if the backup is undamaged."""
    if isinstance(where, Path):
        _refuse_full(where)
    found = check(source)
    if found.problems:
        raise BadInputError(f"{source} is damaged, so nothing was restored: {found.problems[0]}")
    if isinstance(where, Path):
        _copy_file(source, where)
        if (source / "learners").is_dir():
            shutil.copytree(source / "learners", where / "learners", dirs_exist_ok=True)
    else:
        with reading(source) as connection:
            _copy_rows(connection, PostgresStore.alone(where))
    return check(where)


def _refuse_full(folder: Path) -> None:
    if folder.exists() and any(folder.iterdir()):
        raise BadInputError(f"{folder} is not empty; choose a new folder.")


def _copy_file(source: Path, to: Path) -> None:
    """Copy an SQLite database, page by page."""
    to.mkdir(parents=True, exist_ok=True, mode=0o700)
    (to / DATABASE).touch(mode=0o600)
    uri = f"file:{(source / DATABASE).resolve()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True)) as old, closing(sqlite3.connect(to / DATABASE)) as new:
        old.backup(new)


def _copy_rows(old: Connection, store: VoteStore) -> None:
    """Copy the rows of one database into another, empty one of any kind, and close that."""
    with closing(store), store.writer() as new:
        if new.execute(select(exists(select(schema.events)))).scalar():
            raise BadInputError(f"{described(store.where)} is not empty; choose a new database.")
        for table in (schema.events, schema.duels, schema.answers, schema.personal, schema.media, schema.secrets):
            for rows in old.execution_options(yield_per=1000).execute(select(table)).mappings().partitions():
                new.execute(insert(table), [dict(row) for row in rows])
        new.commit()


@dataclass(frozen=True)
class Replayed:
    """What folding a study's log again found."""

    study: str
    question: str
    events: int
    """Events folded."""
    problem: str
    """How the result differs, or ""."""


def replay(where: Location) -> Iterator[Replayed]:
    """Fold the log of each study from its start, and compare with the learner that a restart would use."""
    with reading(where) as connection, one_thread():  # as the server does
        for study in load_state(connection).studies.values():
            refolded = last_refold(connection, study.study)
            saved = saved_learner(where, connection, study)
            if saved is not None and refolded is not None and saved.position < refolded.position:
                saved = None
            try:
                whole = folded_learner(connection, study, None, refolded)
                problem = ""
                if saved is not None:
                    restarted = folded_learner(connection, study, saved, refolded)
                    if not same_state(whole.state(), restarted.state()):
                        problem = "The saved learner and the rest of the log lead to another state than the whole log."
            except DivergedError as error:
                problem = f"On this machine {error}"
            yield Replayed(study.study, study.about.question, whole.folded if not problem else 0, problem)


def find_receipt(where: Location, receipt: str) -> Event[Any] | None:
    """Return the event of a receipt if the log has it, after checking the whole log."""
    wanted = read_receipt(receipt)
    if wanted is None:
        raise BadInputError(f"{receipt!r} is not a receipt; it looks like 12-9f3a… (a number and 64 digits).")
    with reading(where) as connection:
        found = [event for event in verified(read_events(connection)) if (event.position, event.hash) == wanted]
    return found[0] if found else None
