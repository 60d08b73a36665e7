"""Delete studies: first their votes, voters and files, then the bodies of their events, whose hashes stay."""

from sqlalchemy import bindparam, delete, select, update

from fairduel.service.commands.operating import find_study
from fairduel.service.events import schema
from fairduel.service.events.kinds import StudyCreated
from fairduel.service.events.ledger import Ledger
from fairduel.service.events.lifecycle import StudyDeleted
from fairduel.service.events.log import body_hash, is_deleted
from fairduel.service.study.media import MEDIA
from fairduel.service.study.study import NewStudy

_AT_ONCE = 2000  # events, so that those who vote elsewhere do not wait


def delete_study(ledger: Ledger, study: str) -> None:
    """Delete a study; :func:`scrub` has to follow. Deleting it again changes nothing."""
    if study in ledger.state.deleted:
        return
    files = _files(find_study(ledger, study).about)
    connection, duels = ledger.connection(), schema.duels
    of_study = select(duels.c.duel).where(duels.c.study == study)
    connection.execute(delete(schema.answers).where(schema.answers.c.duel.in_(of_study)))
    for table in (duels, schema.personal):
        connection.execute(delete(table).where(table.c.study == study))
    ledger.append(study, StudyDeleted())
    files -= {file for other in ledger.state.studies.values() for file in _files(other.about)}
    connection.execute(delete(schema.media).where(schema.media.c.digest.in_(sorted(files))))


def _files(about: NewStudy) -> set[str]:
    """Return the files that a study shows."""
    named = [getattr(item, kind) for item in about.items for kind in MEDIA]
    return {file for file in (*named, about.page.logo) if file is not None}


def scrub(ledger: Ledger, study: str, before: int) -> int:
    """Replace the bodies of a deleted study's last events before a position by their hashes.

    The last come first, so that what a restart reads is always the beginning of a log.

    Returns:
        Before which position to go on; 0 if all are done.
    """
    events = schema.events
    query = select(events.c.position, events.c.body).where(events.c.study == study, events.c.position < before)
    query = query.where(events.c.kind != StudyDeleted.kind).order_by(events.c.position.desc()).limit(_AT_ONCE)
    connection = ledger.connection()
    rows = connection.execute(query).all()
    bodies = [{"_at": row.position, "body": body_hash(row.body)} for row in rows if not is_deleted(row.body)]
    if bodies:
        connection.execute(update(events).where(events.c.position == bindparam("_at")), bodies)
    return rows[-1].position if len(rows) == _AT_ONCE else 0


def half_deleted(ledger: Ledger) -> list[str]:
    """Return the deleted studies that still have events with a body."""
    events = schema.events
    query = select(events.c.study, events.c.body).where(events.c.kind == StudyCreated.kind)
    found = ledger.connection().execute(query)
    return [row.study for row in found if row.study in ledger.state.deleted and not is_deleted(row.body)]
