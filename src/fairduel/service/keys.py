"""Ids, keys and sides. Keys are random and stored only as hashes."""

import base64
import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from typing import Literal

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
