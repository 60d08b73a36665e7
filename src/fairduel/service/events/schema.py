"""The tables: ``events`` is the log, ``duels`` and ``answers`` follow from it, the others hold what no log may."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Float,
    Index,
    Insert,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    Update,
    bindparam,
    insert,
    inspect,
    select,
    update,
)

from fairduel.errors import BadInputError
from fairduel.service.events.log import Event

metadata = MetaData()
_ID = String(32)

events = Table(
    "events",
    metadata,
    Column("position", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=False),
    Column("study", _ID, nullable=False),
    Column("kind", String(32), nullable=False),
    Column("at", Float(53), nullable=False),
    Column("body", Text, nullable=False),
    Column("hash", LargeBinary(32), nullable=False),
    Index("events_by_kind", "kind", "position"),
)
duels = Table(
    "duels",
    metadata,
    Column("duel", _ID, primary_key=True),
    Column("study", _ID, nullable=False),
    Column("voter", _ID, nullable=False),
    Column("issued", BigInteger, nullable=False),  # position of the event
    Column("issued_at", Float(53), nullable=False),
    Column("deadline", Float(53), nullable=False),
    Column("context", Integer),
    Column("first", Integer, nullable=False),
    Column("second", Integer, nullable=False),
    Column("first_is_left", Boolean, nullable=False),
    Column("weight", Float(53), nullable=False),
    Column("gold", Boolean, nullable=False),  # whether the answer is known
    Column("repeats", _ID),  # the undone duel whose pair it shows again
    Column("status", String(8), nullable=False),  # open, voted, skipped, expired, undone
    Column("answer", String(8)),  # left, right, tie, skip
    Column("answered", BigInteger),  # position of the event
    Column("answered_at", Float(53)),
    Column("seconds", Float(53)),  # as the voter's browser measured them
    Column("settled", Boolean, nullable=False),  # whether an answer can no longer be undone
    Index("duels_by_study", "study", "status", "answered"),
    Index("duels_by_voter", "study", "voter", "issued"),
)
answers = Table(
    "answers",
    metadata,
    Column("position", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=False),
    Column("duel", _ID, nullable=False),
    Column("key", String(64), nullable=False),
    UniqueConstraint("duel", "key", name="answers_once"),
)
personal = Table(
    "personal",
    metadata,
    Column("position", BigInteger, primary_key=True, autoincrement=False),  # of the event that holds the hash
    Column("field", String(16), primary_key=True),  # name, participant, comment
    Column("study", _ID, nullable=False),
    Column("voter", _ID, nullable=False),
    Column("salt", String(32), nullable=False),
    Column("text", Text, nullable=False),
    Index("personal_by_voter", "study", "voter"),
)
media = Table(  # images and audio
    "media",
    metadata,
    Column("digest", String(64), primary_key=True),  # SHA-256 of the content
    Column("type", String(32), nullable=False),
    Column("content", LargeBinary, nullable=False),
)
secrets = Table("secrets", metadata, Column("name", String(16), primary_key=True), Column("value", LargeBinary))
learners = Table(  # only in PostgreSQL; beside SQLite they are files
    "learners",
    metadata,
    Column("study", _ID, primary_key=True),
    Column("content", LargeBinary, nullable=False),
)
deliveries = Table(  # up to which event someone was notified
    "deliveries",
    metadata,
    Column("target", String(64), primary_key=True),  # SHA-256 of the address
    Column("position", BigInteger, nullable=False),
)
layout = Table("layout", metadata, Column("version", Integer, primary_key=True, autoincrement=False))
leader = Table(  # which of the servers of a database runs all commands; in one row
    "leader",
    metadata,
    Column("term", BigInteger, primary_key=True, autoincrement=False),  # 1, 2, …: how many servers have led
    Column("address", Text, nullable=False),  # where the other servers reach it
    Column("secret", LargeBinary, nullable=False),  # what they authenticate with
)

Row = dict[str, Any]


@dataclass(slots=True)
class Changes:
    """Rows to write, and the studies that they are about."""

    events: list[Row] = field(default_factory=list)
    answers: list[Row] = field(default_factory=list)
    personal: list[Row] = field(default_factory=list)
    duels: dict[str, Row] = field(default_factory=dict)
    """New duels by id."""
    updates: dict[str, Row] = field(default_factory=dict)
    """New values of some columns of older duels, by id."""
    studies: set[str] = field(default_factory=set)

    def add(self, event: Event[Any]) -> None:
        """Add what an event changes."""
        self.events.append(event.row())
        self.studies.add(event.study)
        event.body.write(self, event)

    def add_answer(self, position: int, duel: str, key: str) -> None:
        """Keep the key of an answer."""
        self.answers.append({"position": position, "duel": duel, "key": key})

    def update(self, duel: str, **columns: Any) -> None:
        """Set columns of a duel."""
        row = self.duels.get(duel)
        (self.updates.setdefault(duel, {}) if row is None else row).update(columns)

    def updates_by_columns(self) -> Iterator[list[Row]]:
        """Yield updates that set the same columns together; each names its duel ``_duel``."""
        groups: dict[frozenset[str], list[Row]] = {}
        for duel, columns in self.updates.items():
            groups.setdefault(frozenset(columns), []).append({"_duel": duel, **columns})
        yield from groups.values()


class Writer:
    """Writes rows by statements that are compiled once: compiling and binding them takes longer than writing."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._compiled: dict[tuple[str, ...], tuple[str, Callable[[Row], Any]]] = {}

    def write(self, changes: Changes) -> None:
        """Write all rows, without committing."""
        self._insert(events, changes.events)
        self._insert(duels, list(changes.duels.values()))
        self._insert(answers, changes.answers)
        self._insert(personal, changes.personal)
        for rows in changes.updates_by_columns():
            statement = update(duels).where(duels.c.duel == bindparam("_duel"))
            self._execute(("update", *rows[0]), statement, rows)

    def _insert(self, table: Table, rows: list[Row]) -> None:
        if rows:
            self._execute(("insert", table.name), insert(table), rows)

    def _execute(self, name: tuple[str, ...], statement: Insert | Update, rows: list[Row]) -> None:
        if name not in self._compiled:
            compiled = statement.compile(dialect=self._connection.dialect, column_keys=[*rows[0]])
            order = getattr(compiled, "positiontup", None)
            self._compiled[name] = str(compiled), dict if order is None else itemgetter(*order)
        text, bound = self._compiled[name]
        self._connection.exec_driver_sql(text, [bound(row) for row in rows])


# ---------------------------------------------------------------------------- creation

LAYOUT = 1
"""The version of the tables."""


def create_tables(connection: Connection) -> None:
    """Create the tables, unless they exist; the caller commits."""
    if not has_tables(connection):
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("BEGIN")  # else each table is committed by itself, and a crash leaves some
        metadata.create_all(connection)
        connection.execute(insert(layout), {"version": LAYOUT})


def has_tables(connection: Connection) -> bool:
    """Whether there are tables; refuse those of another version."""
    if not inspect(connection).has_table(layout.name):
        return False
    version = connection.execute(select(layout.c.version)).scalar()
    if version != LAYOUT:
        raise BadInputError(
            f"this version of fairduel reads stores with schema {LAYOUT}, not {version}; open this store with the "
            "version that made it."
        )
    return True
