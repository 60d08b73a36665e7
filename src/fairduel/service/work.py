"""Proofs of work: whoever joins a study spends a second or so of computing, so that a thousand voters cost hours.

A challenge is solved by a number whose SHA-256, together with the challenge, begins with enough zero bits. The server
remembers nothing of a challenge until it is spent: an authentication code says that it is the server's own.
"""

import hashlib
import hmac
import itertools
import secrets
import threading
import time
from collections import OrderedDict

from fairduel.service.problems import Problem

_SECONDS = 900.0  # that a challenge can be used


class Challenges:
    """The challenges of one server; each can be used once."""

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)  # of this process, so a restart ends all challenges
        self._spent: OrderedDict[str, float] = OrderedDict()  # and when they end, in that order
        self._lock = threading.Lock()

    def new(self, study: str, bits: int) -> str:
        """Return a new challenge."""
        said = f"{time.monotonic() + _SECONDS:.0f}.{secrets.token_hex(16)}"
        return f"{said}.{self._code(study, bits, said)}"

    def spend(self, study: str, bits: int, challenge: str, answer: int) -> None:
        """Use a challenge.

        Raises:
            Problem: It is not ours, too old, used before, or not solved.
        """
        now, (said, _, code) = time.monotonic(), challenge.rpartition(".")
        is_ours = hmac.compare_digest(code.encode(), self._code(study, bits, said).encode())
        if not is_ours or float(said.partition(".")[0]) < now or not is_solved(challenge, bits, answer):
            raise new_challenge()
        with self._lock:
            while self._spent and next(iter(self._spent.values())) < now:
                self._spent.popitem(last=False)
            if challenge in self._spent:
                raise new_challenge()
            self._spent[challenge] = now + _SECONDS

    def _code(self, study: str, bits: int, said: str) -> str:
        return hmac.new(self._secret, f"{study}\n{bits}\n{said}".encode(), hashlib.sha256).hexdigest()


def new_challenge() -> Problem:
    """Return the refusal of someone who joins without a solved challenge."""
    return Problem(409, "new-challenge", "Joining needs a solved challenge: get a new one from the ballot.")


def is_solved(challenge: str, bits: int, answer: int) -> bool:
    """Whether a number solves a challenge.

    >>> is_solved("tea", 8, 99), is_solved("tea", 8, solve_challenge("tea", 8))
    (False, True)
    """
    digest = hashlib.sha256(f"{challenge}:{answer}".encode()).digest()
    return int.from_bytes(digest) >> (256 - bits) == 0


def solve_challenge(challenge: str, bits: int) -> int:
    """Return the least number that solves a challenge; it takes 2^bits attempts on average."""
    return next(answer for answer in itertools.count() if is_solved(challenge, bits, answer))
