"""``fairduel store``: check, back up, restore and replay what a server has stored."""

from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated

import typer

from fairduel.checks import needs_extra
from fairduel.cli import output
from fairduel.cli.help import Command, CommandGroup
from fairduel.errors import BadInputError

if TYPE_CHECKING:
    from fairduel.service.events.backup import Check
    from fairduel.service.events.database import Location

app = typer.Typer(cls=CommandGroup, no_args_is_help=True, rich_markup_mode="rich")
Stored = Annotated[str, typer.Argument(metavar="STORE", help="Folder or database (postgresql://…) of a server.")]


@app.callback()
def store() -> None:
    """Check, back up, restore and replay what a server has stored.

    Everything but restore also works while the server runs.
    """


def check_store(store: Stored) -> output.Record:
    """Check that the log is complete and that all else follows from it."""
    where = _location(store)
    found = _maintenance().check(where)
    return _undamaged(where, found)


def backup_store(
    store: Stored, to: Annotated[Path, typer.Argument(metavar="TO", help="New folder for the backup.")]
) -> output.Record:
    """Copy a store as it is at this moment into a folder, and check the copy."""
    found = _maintenance().backup(_location(store), to)
    return _undamaged(to, found)


def restore_store(
    source: Annotated[Path, typer.Argument(metavar="FROM", help="Folder of the backup.")],
    store: Annotated[str, typer.Argument(metavar="STORE", help="New folder, or empty database, for the server.")],
) -> output.Record:
    """Copy a backup into a new folder or an empty database, if it is undamaged."""
    where = _location(store)
    found = _maintenance().restore(source, where)
    return _undamaged(where, found)


def replay_store(store: Stored) -> output.Record:
    """Learn each study again from its log, and compare with what a restart would use."""
    replays = list(_maintenance().replay(_location(store)))
    for each in replays:
        result = each.problem or f"same state after {each.events:,} events."
        output.say(f"{each.question} ({each.study}): {result}")
    if not replays:
        output.say("There are no studies.")
    if any(each.problem for each in replays):
        raise BadInputError("a study's learner differs from its log; restarting the server folds it again.")
    return output.record(studies=[asdict(each) for each in replays])


def receipt(
    store: Stored,
    text: Annotated[str, typer.Argument(metavar="RECEIPT", help="Receipt of a vote: position-hash.")],
) -> output.Record:
    """Say whether the vote of a receipt is in the log."""
    event = _maintenance().find_receipt(_location(store), text)
    if event is None:
        raise BadInputError("this receipt is not in the log.")
    said = getattr(event.body, "answer", event.body.kind)
    output.say(f"The log is intact, and event {event.position:,} is as the receipt says: {said}.")
    return output.record(position=event.position, study=event.study, kind=event.body.kind, body=event.body.written())


def _maintenance() -> ModuleType:
    with needs_extra("serve"):
        from fairduel.service.events import backup  # noqa: PLC0415  # optional
    return backup


def _location(store: str) -> "Location":
    with needs_extra("serve"):
        from fairduel.service.events.database import location  # noqa: PLC0415  # optional
    return location(store)


def _undamaged(where: "Location", found: "Check") -> output.Record:
    """Say that a store is intact, or raise an error."""
    from fairduel.service.events.database import described  # noqa: PLC0415  # optional

    if found.problems:
        raise BadInputError(f"{described(where)} is damaged: {' '.join(found.problems)}")
    head = f"Head: {found.head}." if found.head else "The log is empty."
    output.say(f"{described(where)} is intact: {found.events:,} events, {found.votes:,} votes. {head}")
    return output.record(**asdict(found))


for command in (check_store, backup_store, restore_store, replay_store, receipt):
    app.command(command.__name__.removesuffix("_store"), cls=Command)(output.reporting(command))
