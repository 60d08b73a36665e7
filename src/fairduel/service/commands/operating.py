"""What operators do: commands that decide which events follow from a request."""

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError
from sqlalchemy import bindparam, delete, exists, insert, select, update

from fairduel.service.events import schema
from fairduel.service.events.kinds import (
    GoldChanged,
    ItemChanged,
    KeyAdded,
    KeysRevoked,
    PersonalErased,
    StudyChanged,
    StudyCreated,
    VoterChanged,
    VoterJoined,
    read_event,
)
from fairduel.service.events.ledger import Ledger
from fairduel.service.events.lifecycle import ItemAdded, StudyDeleted, with_item
from fairduel.service.events.log import body_hash, is_deleted, read_receipt
from fairduel.service.events.state import StudyState, Voter
from fairduel.service.keys import Holder, Scope, key_hash, new_id, new_key, pseudonym, signature, signing_key
from fairduel.service.problems import Problem, not_found
from fairduel.service.study.media import MEDIA, Stored
from fairduel.service.study.study import SIGN_INS, GoldDuels, Item, NewStudy, settings_to_record

MOST_STUDIES, MOST_VOTERS = 1000, 200_000
_AT_ONCE = 2000  # events, so that those who vote elsewhere do not wait


def find_study(ledger: Ledger, study: str) -> StudyState:
    """Return a study."""
    found = ledger.state.studies.get(study)
    if found is None:
        raise not_found("study")
    return found


def find_voter(study: StudyState, voter: str) -> Voter:
    """Return a voter of a study."""
    found = study.voters.get(voter)
    if found is None:
        raise not_found("voter")
    return found


def add_key(ledger: Ledger, holder: Holder, key: str | None = None) -> str:
    """Add a key, by default a new one; only its hash is stored."""
    key = key or new_key(holder.scope)
    ledger.append(holder.study, KeyAdded(holder.scope, key_hash(key), holder.voter or None))
    return key


def create_study(ledger: Ledger, about: NewStudy, *, is_copy: bool = False) -> StudyState:
    """Create a study; the agent of a copy has exactly the settings of the original's."""
    if len(ledger.state.studies) >= MOST_STUDIES:
        raise Problem(409, "too-many", f"This server has {MOST_STUDIES:,} studies; start another one.")
    if about.access in SIGN_INS.keys() - ledger.sign_ins:
        raise Problem(422, "invalid", f"Nobody can sign in like this here: set {SIGN_INS[about.access]} at the server.")
    check_files(ledger, about.items)
    _ensure_uploaded(ledger, "image", {about.page.logo})
    now = ledger.now()
    check_times(about.opens, about.closes, now)
    if about.opens is not None and about.state == "open":
        about = about.model_copy(update={"state": "paused"})
    study = new_id()
    settings = about.agent_settings if is_copy else settings_to_record(about)
    ledger.append(study, StudyCreated(about.model_dump(exclude={"gold"}) | {"agent_settings": settings}))
    found = ledger.state.studies[study]
    if about.gold.answers:
        change_gold(ledger, study, about.gold)
    return found


def check_files(ledger: Ledger, items: Sequence[Item]) -> None:
    """Refuse items whose images or audio were not uploaded."""
    for kind in MEDIA:
        _ensure_uploaded(ledger, kind, {getattr(item, kind) for item in items})


def check_item(ledger: Ledger, study: str, added: ItemAdded) -> NewStudy:
    """Return a study as it would be with one more item, or refuse the item."""
    about = find_study(ledger, study).about
    contexts = {context.name for context in about.contexts}
    strangers = sorted((added.contents.keys() | added.features.keys()) - contexts)
    if strangers:
        raise Problem(422, "invalid", f"The study has no context {strangers[0]!r}.")
    if contexts and not added.contents:
        raise Problem(422, "invalid", "Give its answer in at least one of the study's contexts (contents).")
    try:
        grown = with_item(about, added)
    except ValidationError as error:
        raise Problem(422, "invalid", first_error(error)) from error
    check_files(ledger, grown.items[-1:])
    return grown


def first_error(error: ValidationError) -> str:
    """Return the first thing that is wrong, as a sentence."""
    found = error.errors()[0]["msg"].removeprefix("Value error, ").rstrip(".")
    return f"{found[0].upper()}{found[1:]}."


def check_times(opens: float | None, closes: float | None, now: float) -> None:
    """Refuse times at which a study cannot open or close by itself."""
    if (opens is not None and opens <= now) or (closes is not None and closes <= now):
        raise Problem(422, "invalid", "The time to open or close must be in the future.")
    if opens is not None and closes is not None and closes <= opens:
        raise Problem(422, "invalid", "The time to close must be after the time to open.")


def links(study: StudyState) -> dict[str, str]:
    """Return the addresses to give to voters, or to paste at a crowd platform, which puts its ids into them."""
    vote = f"vote/{study.study}"
    if study.about.access != "platform":
        return {"vote": vote}
    ids = ("PROLIFIC_PID", "STUDY_ID", "SESSION_ID")
    prolific = "&".join(f"{name}={{{{%{name}%}}}}" for name in ids)
    return {"vote": vote, "prolific": f"{vote}?{prolific}", "mturk": f"{vote}?workerId="}


def _ensure_uploaded(ledger: Ledger, kind: str, files: set[str | None]) -> None:
    """Refuse files that are not there."""
    wanted = {file for file in files if file is not None}
    stored = schema.media.c
    known = select(stored.digest).where(stored.digest.in_(sorted(wanted)), stored.type.startswith(f"{kind}/"))
    missing = wanted - set(ledger.connection().execute(known).scalars()) if wanted else set()
    if missing:
        raise Problem(422, "invalid", f"The {kind} {min(missing)} was not uploaded; upload it first.")


def change_study(ledger: Ledger, study: str, changes: dict[str, Any]) -> StudyState:
    """Change some settings of a study; ``changes`` are valid ones."""
    found = find_study(ledger, study)
    now = found.about.model_dump(include=set(changes))
    if "page" in changes:
        changes = changes | {"page": now["page"] | changes["page"]}
        _ensure_uploaded(ledger, "image", {changes["page"]["logo"]})
    changed = {name: value for name, value in changes.items() if now[name] != value}
    if changed.keys() & {"opens", "closes"}:
        times = {name: changed.get(name, getattr(found.about, name)) for name in ("opens", "closes")}
        check_times(times["opens"], times["closes"], ledger.now())
    if changed.get("opens") is not None and found.about.state == "open":
        changed.setdefault("state", "paused")
    state, archived = (changed.get(name, getattr(found.about, name)) for name in ("state", "archived"))
    if archived and state != "closed":
        changed |= {"state": "closed"} if "archived" in changed else {"archived": False}
    if changed:
        ledger.append(study, StudyChanged(changed))
    return found


def change_item(ledger: Ledger, study: str, item: int, changes: dict[str, Any]) -> StudyState:
    """Change whether an item appears in new duels, its priority, or its minimum number of views."""
    found = find_study(ledger, study)
    if not 0 <= item < len(found.enabled):
        raise not_found("item")
    now = found.item_settings(item)
    changed = {name: value for name, value in changes.items() if now[name] != value}
    if changed:
        ledger.append(study, ItemChanged(**{"item": item, "enabled": now["enabled"]} | changed))
    return found


def change_gold(ledger: Ledger, study: str, gold: GoldDuels) -> StudyState:
    """Replace the known answers of a study, and how often voters get them."""
    found = find_study(ledger, study)
    try:
        body = GoldChanged(found.about.numbered(gold), gold.first, gold.every)
    except ValueError as error:
        raise Problem(422, "invalid", f"{str(error)[0].upper()}{str(error)[1:]}.") from error
    if body.gold != found.gold:
        ledger.append(study, body)
    return found


def store_file(ledger: Ledger, stored: Stored) -> None:
    """Store an image or audio once."""
    connection = ledger.connection()
    if not connection.execute(select(exists().where(schema.media.c.digest == stored.digest))).scalar():
        row = {"digest": stored.digest, "type": stored.media_type, "content": stored.content}
        connection.execute(insert(schema.media), row)


def add_voter(
    ledger: Ledger,
    study: StudyState,
    name: str | None = None,
    participant: str | None = None,
    model: str | None = None,
    address: str | None = None,
    key: str | None = None,
    scope: Scope = "voter",
) -> tuple[str, str]:
    """Add a voter, a person or the language model of that name; return their id and key.

    With the scope ``invitation``, their key can only be exchanged for a voter's, once.
    """
    if len(study.voters) >= MOST_VOTERS:
        raise Problem(409, "too-many", "This study is full; create another one.")
    voter = new_id()
    address = None if address is None else pseudonym(ledger.secret, address)
    texts = {"name": name, "participant": participant, "address": address}
    ledger.append_personal(study.study, VoterJoined(voter, model), **texts)
    if participant is not None:
        study.participants[participant] = voter
    return voter, add_key(ledger, Holder(scope, study.study, voter), key)


def invite(
    ledger: Ledger, study: str, names: Sequence[str | None], *, are_models: bool = False, one_time: bool = False
) -> list[dict[str, Any]]:
    """Add one voter per name, or per None, and return their keys, which may be invitations that work once."""
    found = find_study(ledger, study)
    kind = "model" if are_models else "name"
    scope: Scope = "invitation" if one_time else "voter"
    added = [(name, *add_voter(ledger, found, **{kind: name}, scope=scope)) for name in names]
    return [{"voter": voter, "name": name, "key": key} for name, voter, key in added]


def sign_participants(ledger: Ledger, study: str, participants: Sequence[str]) -> dict[str, Any]:
    """Return the key that signs participants' links, and the signatures of some."""
    if find_study(ledger, study).about.access != "participant":
        raise Problem(409, "not-invited", 'Only studies with access = "participant" have signed links.')
    signed = [{"participant": each, "signature": signature(ledger.secret, study, each)} for each in participants]
    return {"key": signing_key(ledger.secret, study).hex(), "links": signed}


def add_observer(ledger: Ledger, study: str) -> str:
    """Create a key that shows the results of a study."""
    find_study(ledger, study)
    return add_key(ledger, Holder("observer", study))


def revoke_observers(ledger: Ledger, study: str) -> None:
    """Make all observer keys of a study invalid."""
    find_study(ledger, study)
    ledger.append(study, KeysRevoked("observer"))


def set_voter_aside(ledger: Ledger, study: str, voter: str, *, set_aside: bool) -> bool:
    """Stop counting a voter's votes, or count them again; return whether that is a change."""
    found = find_voter(find_study(ledger, study), voter)
    if found.set_aside == set_aside:
        return False
    ledger.append(study, VoterChanged(voter, set_aside))
    return True


def erase_personal(ledger: Ledger, study: str, voter: str) -> None:
    """Erase a voter's name, participant id and comments; their votes and the log stay."""
    found = find_study(ledger, study)
    find_voter(found, voter)
    personal = schema.personal.c
    ledger.connection().execute(
        delete(schema.personal).where(personal.study == study, personal.voter == voter),
    )
    ledger.append(study, PersonalErased(voter))


def erase_all_personal(ledger: Ledger, study: str) -> None:
    """Erase the names, participant ids, addresses and comments of all voters of a study."""
    find_study(ledger, study)
    ledger.connection().execute(delete(schema.personal).where(schema.personal.c.study == study))
    ledger.append(study, PersonalErased())


def check_receipt(ledger: Ledger, receipt: str) -> dict[str, Any]:
    """Say whether the event of a receipt is in the log."""
    found = read_receipt(receipt)
    position = None if found is None else found[0]
    query = select(schema.events).where(schema.events.c.position == position)
    row = None if found is None else ledger.connection().execute(query).one_or_none()
    valid = found is not None and row is not None and read_event(*row).hash == found[1]
    return {"valid": valid, "position": position}


# ---------------------------------------------------------------------------- deleting
# First a study's votes, voters and files go, then the bodies of its events, whose hashes stay.


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
