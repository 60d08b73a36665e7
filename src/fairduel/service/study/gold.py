"""Gold duels: pairs whose better item is known, shown like any other, to see who answers them right.

**What the learner does.** A known answer is learned once, when the operator gives it; a voter's answer to a gold duel
is neither learned as a vote nor ranked. An honest voter is taken to answer at least h = ``HONEST`` of them right. The
evidence against that is E: the likelihood of the voter's answers if each is right with probability q, averaged over q
from 0 to h, over that with q = h. While E ≥ 1/``LEVEL``, the agent does not learn the voter's votes; right answers
lower E again. For honest voters E is a supermartingale that starts at 1, so over a whole study it reaches 1/``LEVEL``
for at most a share ``LEVEL`` of them (Ville's inequality). Ties and skips say nothing. All of it follows from the log.
The audit counts E as evidence, too, and its ranking leaves out the voters whom it flags.
"""

import hashlib
import hmac
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

from fairduel.stats import exact_share
from fairduel.votes.auditing.known_answers import evidence_against

Compared = tuple[int | None, int, int]
"""A context and two items, the lower first."""
LEVEL = Fraction(1, 20)
"""The largest probability that the agent ever stops learning an honest voter's votes."""


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
        every: Afterwards, one in ``every`` duels is gold.
    """

    answers: Mapping[Compared, int] = field(default_factory=dict)
    first: int = 5
    every: int = 10


def known_answers(answers: Iterable[Sequence[Any]]) -> dict[Compared, int]:
    """Return the better item by context and pair, given contexts, winners and losers.

    >>> known_answers([[None, 3, 1]])
    {(None, 1, 3): 3}
    """
    return {compared(context, winner, loser): winner for context, winner, loser in answers}


def is_gold_turn(secret: bytes, voter: str, number: int, *, first: int, every: int) -> bool:
    """Whether a voter's duel is to be gold: one of the first few, then one of each ``every``, by a keyed hash."""
    block, place = (0, number) if number < first else divmod(number - first + every, every)
    return keyed_number(secret, f"gold\n{voter}\n{block}") % (every if block else first) == place


def keyed_number(secret: bytes, text: str) -> int:
    """Return a number below 2⁶⁴ that only the server can know beforehand."""
    return int.from_bytes(hmac.new(secret, text.encode(), hashlib.sha256).digest()[:8])


@lru_cache(maxsize=4096)
def is_doubtful(right: int, of: int) -> bool:
    """Whether a voter's known answers are too often wrong for an honest voter."""
    return of > 0 and evidence_against(right, of) >= 1 / LEVEL


def score_in_words(right: int, of: int) -> str:
    """Say how a voter did.

    >>> score_in_words(3, 9)
    '3 of 9 known answers right; someone who answers at random gets 4.5'
    """
    return f"{right} of {of} known answers right; someone who answers at random gets {of / 2:g}" if of else ""


def tested(right: int, of: int) -> dict[str, Any]:
    """Return the columns about a voter's known answers, with the exact 95% interval of the share that is right."""
    found = exact_share(right, of) if of else None
    return {
        "gold_right": right,
        "gold_of": of,
        "gold_low": None if found is None else found.low,
        "gold_high": None if found is None else found.high,
        "gold": score_in_words(right, of),
    }
