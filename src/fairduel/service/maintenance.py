"""Check, back up, restore and replay a store; all but restoring also works while a server uses it."""

import hashlib
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import Connection, exists, insert, select, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from fairduel.core.blas import one_thread
from fairduel.errors import BadInputError
from fairduel.service import schema
from fairduel.service.learner import DivergedError
from fairduel.service.locations import DATABASE, Location, described, reading
from fairduel.service.log import DamagedLogError, Event, read_receipt, seal, verified
from fairduel.service.postgres import PostgresStore
from fairduel.service.projection import Changes, project
from fairduel.service.store import (
    FolderStore,
    Store,
    folded_learner,
    last_refold,
    load_state,
    read_events,
    saved_learner,
)

_PERSONAL = {"name", "participant", "comment"}


@dataclass(frozen=True)
class Check:
    """What a check found."""

    events: int
    head: str
    """Receipt of the last event, or ""; equal heads mean equal logs."""
    votes: int
    problems: tuple[str, ...]


def check(where: Location) -> Check:
    """Check the log's hash chain, and that everything else in the store follows from the log."""
    try:
        with reading(where) as connection:
            return _check(connection)
    except BadInputError:
        raise
    except (SQLAlchemyError, sqlite3.Error, DamagedLogError, ValueError, TypeError) as error:
        problem = error.orig if isinstance(error, DBAPIError) else error
        return Check(0, "", 0, (f"The store cannot be read: {problem}",))


def _check(connection: Connection) -> Check:
    changes, head, position = Changes(), "", 0
    sealed = dict[tuple[int, str], str]()
    for event in verified(read_events(connection)):
        project(event, changes)
        changes.events.clear()  # only the rows that follow from them are compared
        for field in _PERSONAL & event.body.keys():
            sealed[event.position, field] = event.body[field]
        head, position = event.receipt, event.position
    problems = [*_broken_pages(connection), *_wrong_rows(connection, changes), *_wrong_texts(connection, sealed)]
    votes = sum(row["status"] == "voted" for row in changes.duels.values())
    return Check(position, head, votes, tuple(problems))


def _broken_pages(connection: Connection) -> Iterator[str]:
    if connection.dialect.name == "sqlite":
        for line in connection.execute(text("PRAGMA integrity_check")).scalars():
            if line != "ok":
                yield f"SQLite: {line}"
    for row in connection.execute(select(schema.images)):
        if hashlib.sha256(row.content).hexdigest() != row.image:
            yield f"Image {row.image} is damaged."


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


def _wrong_texts(connection: Connection, sealed: dict[tuple[int, str], str]) -> Iterator[str]:
    """Compare personal texts with their hashes in the log."""
    for row in connection.execute(select(schema.personal)):
        if sealed.get((row.position, row.field)) != seal(row.salt, row.text):
            yield f"The {row.field} of event {row.position:,} is not the one that was recorded."


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


def _copy_rows(old: Connection, store: Store) -> None:
    """Copy the rows of one database into another, empty one of any kind, and close that."""
    with closing(store), store.writer() as new:
        if new.execute(select(exists(select(schema.events)))).scalar():
            raise BadInputError(f"{described(store.where)} is not empty; choose a new database.")
        for table in (schema.events, schema.duels, schema.answers, schema.personal, schema.images, schema.secrets):
            for rows in old.execution_options(yield_per=1000).execute(select(table)).mappings().partitions():
                new.execute(insert(table), [dict(row) for row in rows])
        new.commit()


@dataclass(frozen=True)
class Replay:
    """What folding a study's log again found."""

    study: str
    question: str
    events: int
    """Events folded."""
    problem: str
    """How the result differs, or ""."""


def replay(where: Location) -> Iterator[Replay]:
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
                    if not same(whole.state(), restarted.state()):
                        problem = "The saved learner and the rest of the log lead to another state than the whole log."
            except DivergedError as error:
                problem = f"On this machine {error}"
            yield Replay(study.study, study.about.question, whole.folded if not problem else 0, problem)


def same(one: Any, other: Any) -> bool:
    """Whether two states, nested dictionaries and lists of JSON values and arrays, are equal bit by bit."""
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and one.shape == other.shape and one.tobytes() == other.tobytes()
    return bool(one == other or (one != one and other != other))  # noqa: PLR0124  # NaN


def find_receipt(where: Location, receipt: str) -> Event | None:
    """Return the event of a receipt if the log has it, after checking the whole log."""
    wanted = read_receipt(receipt)
    if wanted is None:
        raise BadInputError(f"{receipt!r} is not a receipt; it looks like 12-9f3a… (a number and 64 digits).")
    with reading(where) as connection:
        found = [event for event in verified(read_events(connection)) if (event.position, event.hash) == wanted]
    return found[0] if found else None
