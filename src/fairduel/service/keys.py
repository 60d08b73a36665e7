"""Ids, keys and sides. Keys are random and stored only as hashes."""

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from typing import Literal

Scope = Literal["operator", "observer", "voter"]
_PREFIX: dict[Scope, str] = {"operator": "fdo_", "observer": "fdr_", "voter": "fdv_"}


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a key: an operator, an observer of a study, or a voter of a study."""

    scope: Scope
    study: str = ""
    voter: str = ""


def new_id() -> str:
    """Return a random id of 128 bits."""
    return secrets.token_urlsafe(16)


def new_key(scope: Scope) -> str:
    """Return a random key of 256 bits."""
    return _PREFIX[scope] + secrets.token_urlsafe(32)


def key_hash(key: str) -> str:
    """Return what is stored of a key; it has 256 random bits, so a plain hash cannot be reversed."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def first_is_left(secret: bytes, voter: str, duel: str) -> bool:
    """Whether a duel's first item is shown on the left: half of all duels, by a keyed hash that nobody can predict.

    >>> first_is_left(b"secret", "voter", "duel")
    False
    """
    return hmac.new(secret, f"{voter}\n{duel}".encode(), hashlib.sha256).digest()[0] % 2 == 0
