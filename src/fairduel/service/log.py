"""The append-only log: events in one hash chain, and the receipts that prove that an event is in it.

The hash of an event covers its position, study, kind, time and body and the hash of the event before it, so no event
can be changed, removed or inserted without changing all later hashes. Names and comments are not in the log but only a
salted hash of them, so that they can be erased.
"""

import hashlib
import json
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from fairduel.errors import FairduelError

GENESIS = bytes(32)
"""What stands for the hash before the first event."""
Body = dict[str, Any]
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


class Kind(StrEnum):
    """What happened."""

    STUDY_CREATED = "study created"
    STUDY_CHANGED = "study changed"
    ITEM_CHANGED = "item changed"
    GOLD_CHANGED = "known answers changed"
    KEY_ADDED = "key added"
    KEYS_REVOKED = "keys revoked"
    VOTER_JOINED = "voter joined"
    VOTER_CHANGED = "voter changed"
    PERSONAL_ERASED = "personal data erased"
    DUEL_ISSUED = "duel issued"
    ANSWERED = "answered"
    REFUSED = "answer refused"
    UNDONE = "answer undone"
    SETTLED = "answer settled"
    EXPIRED = "duel expired"
    REFOLDED = "learner refolded"
    IMPORTED = "votes imported"


ABOUT_DUELS = (Kind.DUEL_ISSUED, Kind.ANSWERED, Kind.REFUSED, Kind.UNDONE, Kind.SETTLED, Kind.EXPIRED)


class DamagedLogError(FairduelError):
    """The log on disk is not the log that was written."""


@dataclass(frozen=True, slots=True)
class Event:
    """One entry of the log.

    Args:
        position: 1, 2, …: the order of all events.
        study: Id of the study, or "" for the whole server.
        kind: What happened.
        at: When, in seconds since 1970; never earlier than the event before.
        body: The details, as JSON values.
        text: ``body`` as it is hashed and stored.
        hash: Link to all earlier events.
    """

    position: int
    study: str
    kind: Kind
    at: float
    body: Body
    text: str
    hash: bytes

    @property
    def receipt(self) -> str:
        """Position and hash, which together prove that this event is in the log."""
        return f"{self.position}-{self.hash.hex()}"

    def row(self) -> dict[str, Any]:
        """Return the event as a row of its table."""
        return {
            "position": self.position,
            "study": self.study,
            "kind": self.kind.value,
            "at": self.at,
            "body": self.text,
            "hash": self.hash,
        }


def canonical(body: Any) -> str:
    """Return JSON values as the one text that is hashed.

    >>> canonical({"b": 1, "a": [1.5, None]})
    '{"a":[1.5,null],"b":1}'
    """
    return _ENCODER.encode(body)


def event_hash(before: bytes, position: int, study: str, kind: str, at: float, text: str) -> bytes:
    """Return the hash of an event, given that of the event before it."""
    return hashlib.sha256(before + f"{position}\n{study}\n{kind}\n{at!r}\n{text}".encode()).digest()


def next_event(before: bytes, position: int, study: str, kind: Kind, at: float, body: Body) -> Event:
    """Create the event that follows the one with the hash ``before``.

    >>> next_event(GENESIS, 1, "", Kind.KEY_ADDED, 0.0, {}).receipt[:10]
    '1-12cbefce'
    """
    text = canonical(body)
    return Event(position, study, kind, at, body, text, event_hash(before, position, study, kind.value, at, text))


def read_event(position: int, study: str, kind: str, at: float, text: str, digest: bytes) -> Event:
    """Rebuild an event from its row, without checking its hash."""
    try:
        return Event(position, study, Kind(kind), at, json.loads(text), text, digest)
    except ValueError as error:
        raise DamagedLogError(f"event {position} of the log is damaged: {error}.") from error


def verified(events: Iterable[Event]) -> Iterator[Event]:
    """Yield the events of a whole log after checking that each follows from the one before.

    Raises:
        DamagedLogError: An event was changed, removed or inserted.

    >>> one = next_event(GENESIS, 1, "", Kind.KEY_ADDED, 0.0, {})
    >>> [event.position for event in verified([one])]
    [1]
    """
    before = GENESIS
    for position, event in enumerate(events, start=1):
        digest = event_hash(before, position, event.study, event.kind.value, event.at, event.text)
        if event.position != position or event.hash != digest:
            raise DamagedLogError(f"the log is damaged at event {position}: its hash does not fit the events before.")
        before = digest
        yield event


def sealed(text: str) -> tuple[str, str]:
    """Return a random salt for a personal text, and the hash that stands for the text in the log."""
    salt = secrets.token_hex(16)
    return salt, seal(salt, text)


def seal(salt: str, text: str) -> str:
    """Return the hash that stands for a personal text in the log."""
    return hashlib.sha256(f"{salt}\n{text}".encode()).hexdigest()


def read_receipt(receipt: str) -> tuple[int, bytes] | None:
    """Return the position and the hash of a receipt, or None if it cannot be one.

    >>> read_receipt("12-" + "ab" * 32)[0], read_receipt("twelve")
    (12, None)
    """
    position, _, digest = receipt.partition("-")
    try:
        found = int(position), bytes.fromhex(digest)
    except ValueError:
        return None
    return found if 0 < found[0] < 2**62 and len(found[1]) == 32 and receipt.isascii() else None
