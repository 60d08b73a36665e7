"""Proofs of work: whoever joins a study spends a second or so of computing, so that a thousand voters cost hours.

A challenge is solved by a number whose SHA-256, together with the challenge, begins with enough zero bits.
"""

import hashlib
import itertools

from fairduel.service.keys import Tickets
from fairduel.service.problems import Problem

_SECONDS = 900.0  # that a challenge can be used


class Challenges:
    """The challenges of one server; each can be used once."""

    def __init__(self) -> None:
        self._tickets = Tickets(_SECONDS)

    def new(self, study: str, bits: int) -> str:
        """Return a new challenge."""
        return self._tickets.new(study, bits)

    def spend(self, study: str, bits: int, challenge: str, answer: int) -> None:
        """Use a challenge.

        Raises:
            Problem: It is not ours, too old, used before, or not solved.
        """
        if not is_solved(challenge, bits, answer) or self._tickets.spend(challenge) != [study, bits]:
            raise new_challenge()


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
