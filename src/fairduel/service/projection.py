"""What the events mean for the tables that follow from them, and how these are written."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Insert, Table, Update, bindparam, insert, update

from fairduel.service import schema
from fairduel.service.log import Event, Kind

Row = dict[str, Any]
_COPIED = ("duel", "voter", "deadline", "context", "first", "second", "first_is_left", "weight", "repeats")
_UNANSWERED = dict.fromkeys(("answer", "answered", "answered_at", "seconds")) | {"status": "open", "settled": False}


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
    """Writes rows by statements that are compiled once; to compile and bind them anew takes longer than writing them.

    Args:
        connection: Where to write.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._compiled: dict[tuple[str, ...], tuple[str, Callable[[Row], Any]]] = {}

    def write(self, changes: Changes) -> None:
        """Write all rows, without committing."""
        self._insert(schema.events, changes.events)
        self._insert(schema.duels, list(changes.duels.values()))
        self._insert(schema.answers, changes.answers)
        self._insert(schema.personal, changes.personal)
        for rows in changes.updates_by_columns():
            duels = update(schema.duels).where(schema.duels.c.duel == bindparam("_duel"))
            self._execute(("update", *rows[0]), duels, rows)

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


def project(event: Event, changes: Changes) -> None:
    """Add what an event changes."""
    changes.events.append(event.row())
    changes.studies.add(event.study)
    body, update = event.body, changes.update
    match event.kind:
        case Kind.DUEL_ISSUED:
            issued = {"study": event.study, "issued": event.position, "issued_at": event.at}
            changes.duels[body["duel"]] = {name: body[name] for name in _COPIED} | issued | _UNANSWERED
        case Kind.ANSWERED:
            changes.answers.append({"position": event.position, "duel": body["duel"], "key": body["key"]})
            if body["settles"] is not None:
                update(body["settles"], settled=True)
            update(
                body["duel"],
                status="skipped" if body["answer"] == "skip" else "voted",
                answer=body["answer"],
                answered=event.position,
                answered_at=body.get("cast_at", event.at),
                seconds=body["seconds"],
                settled=body["final"],
            )
        case Kind.REFUSED:
            changes.answers.append({"position": event.position, "duel": body["duel"], "key": body["key"]})
        case Kind.UNDONE:
            update(body["duel"], status="undone", settled=True)
        case Kind.SETTLED:
            update(body["duel"], settled=True)
        case Kind.EXPIRED:
            update(body["duel"], status="expired")
