"""Gold duels: pairs whose better item is known, shown like any other, to see who answers them right.

**What the learner does.** A known answer is learned once, when the operator gives it; a voter's answer to a gold duel
is neither learned as a vote nor ranked. An honest voter is taken to answer at least h = ``HONEST`` of them right. The
evidence against that is E: the likelihood of the voter's answers if each is right with probability q, averaged over q
from 0 to h, over that with q = h. While E ≥ 1/``LEVEL``, the agent does not learn the voter's votes; right answers
lower E again. For honest voters E is a supermartingale that starts at 1, so over a whole study it reaches 1/``LEVEL``
for at most a share ``LEVEL`` of them (Ville's inequality). Ties and skips say nothing. All of it follows from the log.
The ranking still counts these votes: whom to set aside is up to the operator.
"""

import hashlib
import hmac
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any, Self

Compared = tuple[int | None, int, int]
"""A context and two items, the lower first."""
HONEST = Fraction(4, 5)
"""The share of known answers that an honest voter has right, at least."""
LEVEL = Fraction(1, 20)
"""The largest probability that the agent ever stops learning an honest voter's votes."""
GOLD_WEIGHT = -1.0
"""What marks gold duels in the log and its tables."""


def compared(context: int | None, one: int, other: int) -> Compared:
    """Return a pair of items without its order.

    >>> compared(None, 3, 1)
    (None, 1, 3)
    """
    return context, min(one, other), max(one, other)


@dataclass(frozen=True)
class Gold:
    """Known answers, and how often voters get them.

    Args:
        answers: The better item by context and pair.
        first: A voter's first gold duel is among this many.
        every: Afterwards one in so many duels is gold.
    """

    answers: Mapping[Compared, int] = field(default_factory=dict)
    first: int = 5
    every: int = 10

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> Self:
        """Read it from the event that records it."""
        return cls(known_answers(body), body["first"], body["every"])

    def to_body(self) -> dict[str, Any]:
        """Return what :meth:`from_body` reads."""
        answers = [[context, winner, one + other - winner] for (context, one, other), winner in self.answers.items()]
        return {"answers": answers, "first": self.first, "every": self.every}


def known_answers(body: Mapping[str, Any]) -> dict[Compared, int]:
    """Return the better item by context and pair.

    >>> known_answers({"answers": [[None, 3, 1]]})
    {(None, 1, 3): 3}
    """
    return {compared(context, winner, loser): winner for context, winner, loser in body["answers"]}


def is_gold_turn(secret: bytes, voter: str, number: int, *, first: int, every: int) -> bool:
    """Whether a voter's duel is to be gold: one of the first few, then one of each ``every``, by a keyed hash.

    Args:
        secret: The server's secret, so that nobody can predict it.
        voter: The voter.
        number: How many duels the voter got before.
        first: Duels of the first block.
        every: Duels of each later block.
    """
    block, place = (0, number) if number < first else divmod(number - first + every, every)
    return keyed_number(secret, f"gold\n{voter}\n{block}") % (every if block else first) == place


def keyed_number(secret: bytes, text: str) -> int:
    """Return a number below 2⁶⁴ that only the server can know beforehand."""
    return int.from_bytes(hmac.new(secret, text.encode(), hashlib.sha256).digest()[:8])


def evidence_against(right: int, of: int) -> Fraction:
    """Return E, as the top of this file defines it, exactly.

    With n = ``of``, r = ``right`` and S ~ Binomial(n + 1, h)::

        E = P(S > r) / ((n + 1) (n choose r) h^(r + 1) (1 − h)^(n − r))

    >>> float(evidence_against(0, 3)), float(evidence_against(3, 3))
    (39.0, 0.25)
    """
    yes, no = HONEST.numerator, HONEST.denominator - HONEST.numerator
    above = sum(math.comb(of + 1, k) * yes**k * no ** (of + 1 - k) for k in range(right + 1, of + 2))
    return Fraction(above, (of + 1) * math.comb(of, right) * yes ** (right + 1) * no ** (of - right))


@lru_cache(maxsize=4096)
def is_doubtful(right: int, of: int) -> bool:
    """Whether a voter's known answers are too often wrong for an honest voter."""
    return of > 0 and evidence_against(right, of) >= 1 / LEVEL


def in_words(right: int, of: int) -> str:
    """Say how a voter did.

    >>> in_words(3, 9)
    '3 of 9 known answers right; someone who answers at random gets 4.5'
    """
    return f"{right} of {of} known answers right; someone who answers at random gets {of / 2:g}" if of else ""


def tested(right: int, of: int) -> dict[str, Any]:
    """Return the columns about a voter's known answers, with the exact 95% interval of the share that is right."""
    from fairduel.experiments.inference import share  # noqa: PLC0415  # slow: a server should be ready soon

    found = share(right, of) if of else None
    return {
        "gold_right": right,
        "gold_of": of,
        "gold_low": None if found is None else found.low,
        "gold_high": None if found is None else found.high,
        "gold": in_words(right, of),
    }
