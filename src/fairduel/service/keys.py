"""Ids, keys and sides. Keys are random and stored only as hashes."""

import base64
import hashlib
import hmac
import json
import secrets
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Literal

Scope = Literal["operator", "observer", "voter", "invitation"]
Role = Literal["owner", "operator", "observer"]
"""What someone may do: everything; everything about studies but delete them; look at the results of all studies."""
_PREFIX: dict[Scope, str] = {"operator": "fdo_", "observer": "fdr_", "voter": "fdv_", "invitation": "fdi_"}


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a key: an operator, an observer of a study, a voter of a study, or who may become that voter, once."""

    scope: Scope
    study: str = ""
    """"" for operators, and for observers of all studies."""
    voter: str = ""
    operator: str = ""
    """The id of an operator, or of an observer of all studies."""
    since: int = field(default=0, compare=False)
    """Position of the event that added the key."""


def new_id() -> str:
    """Return a random id of 128 bits; it never begins with a minus, which a spreadsheet would take for a formula."""
    while (found := secrets.token_urlsafe(16)).startswith("-"):
        pass
    return found


def new_key(scope: Scope) -> str:
    """Return a random key of 256 bits."""
    return _PREFIX[scope] + secrets.token_urlsafe(32)


def derived_key(secret: bytes, *parts: str) -> str:
    """Return a voter's key that is always the same for the same parts, one of which nobody else knows.

    >>> derived_key(b"secret", "study", "", "nonce")
    'fdv_UdroshviuBCnPd_Ub7rxO_Fz52e-t9-eCQ1EH0NO_Ww'
    """
    digest = _keyed(secret, "key", *parts)
    return _PREFIX["voter"] + base64.urlsafe_b64encode(digest).decode().rstrip("=")


def signing_key(secret: bytes, study: str) -> bytes:
    """Return the key by which an operator signs links for a study's participants."""
    return _keyed(secret, "participants", study)


def webhook_key(secret: bytes) -> bytes:
    """Return the key by which receivers of webhooks know that they are from this server."""
    return _keyed(secret, "webhooks").hex().encode()


def signature(secret: bytes, study: str, participant: str) -> str:
    """Return what proves that a participant got their link from the operator: HMAC-SHA256 of their id."""
    return hmac.new(signing_key(secret, study), participant.encode(), hashlib.sha256).hexdigest()


def account_id(secret: bytes, study: str, kind: str, account: str) -> str:
    """Return what a study knows an account by: the same for the same account, and nothing else about it."""
    return _keyed(secret, "account", study, kind, account).hex()[:32]


def pseudonym(secret: bytes, address: str) -> str:
    """Return what operators see of an address: the same for the same address, and nothing else about it."""
    return _keyed(secret, "address", address).hex()[:8]


def _keyed(secret: bytes, *parts: str) -> bytes:
    return hmac.new(secret, "\n".join(parts).encode(), hashlib.sha256).digest()


def key_hash(key: str) -> str:
    """Return what is stored of a key; it has 256 random bits, so a plain hash cannot be reversed."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def first_is_left(secret: bytes, voter: str, duel: str) -> bool:
    """Whether a duel's first item is shown on the left: half of all duels, by a keyed hash that nobody can predict.

    >>> first_is_left(b"secret", "voter", "duel")
    False
    """
    return hmac.new(secret, f"{voter}\n{duel}".encode(), hashlib.sha256).digest()[0] % 2 == 0


class Tickets:
    """Strings that this server alone makes: each carries values, and works once and for a while.

    The server remembers nothing of a ticket until it is spent, so callers can ask for any number of them.

    Args:
        seconds: How long a ticket works.

    >>> tickets = Tickets(60.0)
    >>> ticket = tickets.new("tea", 3)
    >>> tickets.spend(ticket), tickets.spend(ticket)
    (['tea', 3], None)
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._secret = secrets.token_bytes(32)  # of this process, so a restart ends all tickets
        self._spent: OrderedDict[str, tuple[float, str]] = OrderedDict()  # until when, in that order, and by whom
        self._lock = threading.Lock()

    def new(self, *carried: Any) -> str:
        """Return a ticket that carries JSON values, which whoever has it can read."""
        said = json.dumps([time.monotonic() + self._seconds, secrets.token_hex(16), *carried])
        body = base64.urlsafe_b64encode(said.encode()).decode()
        return f"{body}.{_keyed(self._secret, body).hex()}"

    def spend(self, ticket: str, by: str = "") -> list[Any] | None:
        """Return what a ticket carries, or None if it is not ours, too old, or spent (by another than ``by``)."""
        body, _, code = ticket.rpartition(".")
        if not hmac.compare_digest(code.encode(), _keyed(self._secret, body).hex().encode()):
            return None
        until, _, *values = json.loads(base64.urlsafe_b64decode(body))
        carried: list[Any] = values
        now = time.monotonic()
        with self._lock:
            while self._spent and next(iter(self._spent.values()))[0] < now:
                self._spent.popitem(last=False)
            if until < now or (ticket in self._spent and not (by and self._spent[ticket][1] == by)):
                return None
            self._spent.setdefault(ticket, (now + self._seconds, by))
        return carried
