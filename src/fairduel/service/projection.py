"""What the events mean for the tables that follow from them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fairduel.service.log import Event, Kind

Row = dict[str, Any]
_COPIED = ("duel", "voter", "deadline", "context", "first", "second", "first_is_left", "weight", "repeats")


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


def project(event: Event, changes: Changes) -> None:
    """Add what an event changes."""
    changes.events.append(event.row())
    changes.studies.add(event.study)
    body, update = event.body, changes.update
    match event.kind:
        case Kind.DUEL_ISSUED:
            unanswered = dict.fromkeys(("answer", "answered", "answered_at", "seconds"))
            issued = {"study": event.study, "issued": event.position, "issued_at": event.at}
            copied = {name: body[name] for name in _COPIED}
            changes.duels[body["duel"]] = copied | issued | unanswered | {"status": "open", "settled": False}
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
