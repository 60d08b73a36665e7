"""The append-only log: events in one hash chain, and the receipts that prove that an event is in it.

The hash of an event covers its position, study, kind and time, the hash of its body and the hash of the event before
it, so no event can be changed, removed or inserted without changing all later hashes. Names and comments are not in
the log but only a salted hash of them, so that they can be erased. When a study is deleted, the hashes of its bodies
replace them, so the chain still verifies.
"""

import hashlib
import json
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, fields
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar, dataclass_transform

from fairduel.errors import FairduelError

if TYPE_CHECKING:
    from fairduel.service.events.schema import Changes
    from fairduel.service.events.state import State, StudyState
    from fairduel.service.study.learner import Learner

GENESIS = bytes(32)
"""What stands for the hash before the first event."""
Json = dict[str, Any]
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


class DamagedLogError(FairduelError):
    """The log on disk is not the log that was written."""


class Absent(Enum):
    """Stands for a field that is not in an event's JSON, where null says something else."""

    ABSENT = "absent"


ABSENT = Absent.ABSENT


KINDS: dict[str, type["Body"]] = {}
"""The kinds of events by their names in the log, once :mod:`~fairduel.service.events.kinds` is imported."""


class Body:
    """What happened, and what that changes; its kinds are :func:`recorded` in :mod:`~fairduel.service.events.kinds`.

    A field that has its default is not in the JSON.
    """

    __slots__ = ()
    kind: ClassVar[str]
    about_duel: ClassVar[bool] = False
    """Whether table ``duels`` has all that the state needs of it after a restart."""

    @classmethod
    def read(cls, values: Json) -> Self:
        """Return a body from its JSON values."""
        return cls(**values)

    def written(self) -> Json:
        """Return the JSON values that :meth:`read` reads."""
        defaults: dict[str, Any] = _defaults(type(self))  # type: ignore[arg-type]  # a type can be hashed
        values = ((name, getattr(self, name)) for name in defaults)
        return {name: value for name, value in values if value is not defaults[name]}

    def apply(self, state: "State", event: "Event[Any]") -> None:
        """Change what the server knows."""
        self.change(state.studies[event.study], event)

    def change(self, study: "StudyState", event: "Event[Any]") -> None:
        """Change what the server knows about the study."""

    def write(self, changes: "Changes", event: "Event[Any]") -> None:
        """Change the tables."""

    def learn(self, learner: "Learner") -> None:
        """Change the learner."""

    def notice(self, study: "StudyState | None", by: str) -> str:  # noqa: ARG002  # most are no news
        """Return the sentence by which those hear of it who asked to be notified, or ""; ``by`` names who did it."""
        return ""

    def is_left_out(self, without: Collection[str]) -> bool:  # noqa: ARG002  # most are not
        """Whether a learner that forgets these voters does not fold it."""
        return False


Happened = TypeVar("Happened", bound=Body)


@dataclass_transform(frozen_default=True)
def recorded(kind: str) -> Callable[[type[Happened]], type[Happened]]:
    """Make a body a frozen dataclass, known in the log by this name."""

    def make(cls: type[Happened]) -> type[Happened]:
        cls.kind = kind
        KINDS[kind] = made = dataclass(frozen=True, slots=True)(cls)
        return made

    return make


@cache
def _defaults(kind: type[Any]) -> dict[str, Any]:
    """Return the fields of a body with their defaults, ``MISSING`` if they have none."""
    return {each.name: each.default for each in fields(kind)}


@dataclass(frozen=True, slots=True)
class Event(Generic[Happened]):
    """One entry of the log.

    Args:
        position: 1, 2, …: the order of all events.
        study: Id of the study, or "" for the whole server.
        at: When, in seconds since 1970; never earlier than the event before.
        body: What happened.
        text: The JSON of ``body``, as it is hashed and stored.
        hash: Link to all earlier events.
        by: Id of the operator who did it, or "".
    """

    position: int
    study: str
    at: float
    body: Happened
    text: str
    hash: bytes
    by: str = ""

    @property
    def receipt(self) -> str:
        """Position and hash, which together prove that this event is in the log."""
        return f"{self.position}-{self.hash.hex()}"

    def row(self) -> Json:
        """Return the event as a row of its table."""
        return {
            "position": self.position,
            "study": self.study,
            "kind": self.body.kind,
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
    return hashlib.sha256(before + f"{position}\n{study}\n{kind}\n{at!r}\n{body_hash(text)}".encode()).digest()


def body_hash(text: str) -> str:
    """Return the hash of an event's body, which takes the body's place when its study is deleted."""
    return text if is_deleted(text) else hashlib.sha256(text.encode()).hexdigest()


def is_deleted(text: str) -> bool:
    """Whether only the hash of an event's body is left; bodies are JSON objects."""
    return not text.startswith("{")


def next_event(before: bytes, position: int, study: str, at: float, body: Happened, by: str = "") -> Event[Happened]:
    """Create the event that follows the one with the hash ``before``."""
    text = canonical(body.written() | ({"by": by} if by else {}))
    return Event(position, study, at, body, text, event_hash(before, position, study, body.kind, at, text), by)


def verified(events: Iterable[Event[Any]]) -> Iterator[Event[Any]]:
    """Yield the events of a whole log after checking that each follows from the one before.

    Raises:
        DamagedLogError: An event was changed, removed or inserted.
    """
    before = GENESIS
    for position, event in enumerate(events, start=1):
        digest = event_hash(before, position, event.study, event.body.kind, event.at, event.text)
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
    is_as_written = f"{found[0]}-{found[1].hex()}" == receipt
    return found if is_as_written and 0 < found[0] < 2**62 and len(found[1]) == 32 else None
