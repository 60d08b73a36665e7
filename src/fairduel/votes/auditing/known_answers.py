"""Evidence from duels whose better item is known: how many of them a voter answered right.

An honest voter is taken to answer at least h = ``HONEST`` of them right. The evidence against that is E: the likelihood
of the voter's answers if each is right with probability q, averaged over q from 0 to h, over that with q = h. For
honest voters E is a supermartingale that starts at 1, in any order and number of answers. Ties say nothing.
"""

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from fairduel.errors import BadInputError
from fairduel.votes.votes import Votes

HONEST = Fraction(4, 5)
"""The share of known answers that an honest voter has right, at least."""


class RightAnswers(NamedTuple):
    """How a voter answered duels with a known answer."""

    right: int
    of: int


KnownAnswers = Mapping[str, RightAnswers]
"""How voters answered such duels, by the voter's name."""


@lru_cache(maxsize=4096)
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


def split_known(votes: Votes, answers: Votes) -> tuple[Votes, KnownAnswers]:
    """Return the votes on duels without a known answer, and how voters answered the others.

    Args:
        votes: All votes, which must name their voters.
        answers: One vote per known answer, for the better item; with contexts, it is known in that context only.

    Raises:
        BadInputError: The votes do not say who voted, an answer is a tie, or two answers contradict each other.

    >>> votes = Votes.from_arrays(["tea", "mud"], [0, 0], [1, 1], [1, 0], voter=[0, 1], voters=["Ann", "Bob"])
    >>> split_known(votes, Votes.from_arrays(["tea", "mud"], [0], [1], [1]))
    (Votes(0 votes, 2 items, 2 voters), {'Ann': RightAnswers(right=1, of=1), 'Bob': RightAnswers(right=0, of=1)})
    """
    if votes.voter is None:
        raise BadInputError("known answers need votes that say who voted.")
    better = dict[_Duel, str]()
    for duel, winner in _duels(answers):
        if not winner or better.setdefault(duel, winner) != winner:
            raise BadInputError(f"the known answer to {duel[1]} against {duel[2]} must be one item.")
    counted, is_known = dict[str, RightAnswers](), np.zeros(len(votes), dtype=np.bool_)
    for place, ((context, one, other), winner) in enumerate(_duels(votes)):
        known = better.get((context, one, other), better.get(("", one, other), ""))
        is_known[place] = bool(known)
        if known and winner:
            right, of = counted.get(name := votes.voters[votes.voter[place]], (0, 0))
            counted[name] = RightAnswers(right + (winner == known), of + 1)
    return votes.without(is_known), counted


_Duel = tuple[str, str, str]
"""A context, or an empty string, and two items in alphabetical order."""


def _duels(votes: Votes) -> Iterator[tuple[_Duel, str]]:
    """Yield the duel of each vote, and its winner; an empty string for a tie."""
    for place, (first, second, result) in enumerate(zip(votes.first, votes.second, votes.result, strict=True)):
        context = "" if votes.context is None else votes.contexts[votes.context[place]]
        one, other = votes.items[first], votes.items[second]
        winner = "" if result == 0.5 else one if result > 0.5 else other
        yield (context, min(one, other), max(one, other)), winner
