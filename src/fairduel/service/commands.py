"""What operators do: commands that decide which events follow from a request."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import delete, exists, insert, select

from fairduel.service import schema
from fairduel.service.gold import Gold
from fairduel.service.keys import Holder, key_hash, new_id, new_key
from fairduel.service.ledger import Ledger
from fairduel.service.log import Kind, read_event, read_receipt
from fairduel.service.problems import Problem, not_found
from fairduel.service.state import StudyState, Voter
from fairduel.service.study import GoldDuels, NewStudy, settings_to_record

MOST_STUDIES, MOST_VOTERS = 1000, 200_000


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


def ensure_operator(ledger: Ledger) -> str | None:
    """Return a new operator key if there is none yet."""
    if any(holder.scope == "operator" for holder in ledger.state.keys.values()):
        return None
    return add_key(ledger, Holder("operator"))


def replace_operator(ledger: Ledger) -> str:
    """Return a new operator key; older ones stop working."""
    ledger.append(Kind.KEYS_REVOKED, "", {"scope": "operator"})
    return add_key(ledger, Holder("operator"))


def add_key(ledger: Ledger, holder: Holder) -> str:
    """Create a key; only its hash is stored."""
    key = new_key(holder.scope)
    body = {"scope": holder.scope, "key": key_hash(key)}
    ledger.append(Kind.KEY_ADDED, holder.study, body | ({"voter": holder.voter} if holder.voter else {}))
    return key


def create_study(ledger: Ledger, about: NewStudy, *, is_copy: bool = False) -> StudyState:
    """Create a study; the agent of a copy has no other settings than those copied."""
    if len(ledger.state.studies) >= MOST_STUDIES:
        raise Problem(409, "too-many", f"This server has {MOST_STUDIES:,} studies; start another one.")
    for kind in ("image", "audio"):
        wanted = {file for item in about.items if (file := getattr(item, kind)) is not None}
        stored = schema.images.c
        known = select(stored.image).where(stored.image.in_(sorted(wanted)), stored.type.startswith(f"{kind}/"))
        missing = wanted - set(ledger.connection().execute(known).scalars()) if wanted else set()
        if missing:
            raise Problem(422, "invalid", f"The {kind} {min(missing)} was not uploaded; upload it first.")
    study = new_id()
    settings = about.agent_settings if is_copy else settings_to_record(about)
    ledger.append(Kind.STUDY_CREATED, study, about.model_dump(exclude={"gold"}) | {"agent_settings": settings})
    found = ledger.state.studies[study]
    if about.gold.answers:
        change_gold(ledger, study, about.gold)
    return found


def change_study(ledger: Ledger, study: str, changes: dict[str, Any]) -> StudyState:
    """Change some settings of a study; ``changes`` are valid ones."""
    found = find_study(ledger, study)
    changed = {name: value for name, value in changes.items() if getattr(found.about, name) != value}
    if changed:
        ledger.append(Kind.STUDY_CHANGED, study, changed)
    return found


def change_item(ledger: Ledger, study: str, item: int, changes: dict[str, Any]) -> StudyState:
    """Change whether an item appears in new duels, more often than others, or at least so often."""
    found = find_study(ledger, study)
    if not 0 <= item < len(found.enabled):
        raise not_found("item")
    now = found.item_settings(item)
    changed = {name: value for name, value in changes.items() if now[name] != value}
    if changed:
        ledger.append(Kind.ITEM_CHANGED, study, {"item": item, "enabled": now["enabled"]} | changed)
    return found


def change_gold(ledger: Ledger, study: str, gold: GoldDuels) -> StudyState:
    """Replace the known answers of a study, and how often voters get them."""
    found = find_study(ledger, study)
    try:
        body = {"answers": found.about.numbered(gold), "first": gold.first, "every": gold.every}
    except ValueError as error:
        raise Problem(422, "invalid", f"{str(error)[0].upper()}{str(error)[1:]}.") from error
    if Gold.from_body(body) != found.gold:
        ledger.append(Kind.GOLD_CHANGED, study, body)
    return found


def store_file(ledger: Ledger, digest: str, media_type: str, content: bytes) -> None:
    """Keep an image or audio, once; the table is older than audio and called ``images``."""
    connection = ledger.connection()
    if not connection.execute(select(exists().where(schema.images.c.image == digest))).scalar():
        connection.execute(insert(schema.images), {"image": digest, "type": media_type, "content": content})


def add_voter(
    ledger: Ledger,
    study: StudyState,
    name: str | None = None,
    participant: str | None = None,
    model: str | None = None,
) -> tuple[str, str]:
    """Add a voter, a person or the language model of that name; return their id and key."""
    if len(study.voters) >= MOST_VOTERS:
        raise Problem(409, "too-many", "This study has as many voters as it can have.")
    voter = new_id()
    body = {"voter": voter} | ({} if model is None else {"model": model})
    ledger.append(Kind.VOTER_JOINED, study.study, body, {"name": name, "participant": participant})
    if participant is not None:
        study.participants[participant] = voter
    return voter, add_key(ledger, Holder("voter", study.study, voter))


def invite(
    ledger: Ledger, study: str, names: Sequence[str | None], *, are_models: bool = False
) -> list[dict[str, Any]]:
    """Add one voter per name, or per None, and return their keys."""
    found = find_study(ledger, study)
    kind = "model" if are_models else "name"
    added = [(name, *add_voter(ledger, found, **{kind: name})) for name in names]
    return [{"voter": voter, "name": name, "key": key} for name, voter, key in added]


def add_observer(ledger: Ledger, study: str) -> str:
    """Create a key that shows the results of a study."""
    find_study(ledger, study)
    return add_key(ledger, Holder("observer", study))


def revoke_observers(ledger: Ledger, study: str) -> None:
    """Make all observer keys of a study invalid."""
    find_study(ledger, study)
    ledger.append(Kind.KEYS_REVOKED, study, {"scope": "observer"})


def set_voter_aside(ledger: Ledger, study: str, voter: str, *, set_aside: bool) -> bool:
    """Stop counting a voter's votes, or count them again; return whether that is a change."""
    found = find_voter(find_study(ledger, study), voter)
    if found.set_aside == set_aside:
        return False
    ledger.append(Kind.VOTER_CHANGED, study, {"voter": voter, "set_aside": set_aside})
    return True


def erase_personal(ledger: Ledger, study: str, voter: str) -> None:
    """Erase a voter's name, participant id and comments; their votes and the log stay."""
    found = find_study(ledger, study)
    find_voter(found, voter)
    personal = schema.personal.c
    ledger.connection().execute(
        delete(schema.personal).where(personal.study == study, personal.voter == voter),
    )
    found.participants = {name: who for name, who in found.participants.items() if who != voter}
    ledger.append(Kind.PERSONAL_ERASED, study, {"voter": voter})


def check_receipt(ledger: Ledger, receipt: str) -> dict[str, Any]:
    """Say whether the event of a receipt is in the log."""
    found = read_receipt(receipt)
    position = None if found is None else found[0]
    query = select(schema.events).where(schema.events.c.position == position)
    row = None if found is None else ledger.connection().execute(query).one_or_none()
    valid = found is not None and row is not None and read_event(*row).hash == found[1]
    return {"valid": valid, "position": position}
