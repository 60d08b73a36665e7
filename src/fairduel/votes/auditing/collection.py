"""How the duels of a file were chosen: whether the winner of a duel stays for the next one.

In a "winner stays" poll (king of the hill), people see an item often *because* they voted for it. Then seeing it often
is no sign that they chose their duels.

**The test.** Take two successive duels that share exactly one item. If duels are chosen without regard to answers, the
shared item is as likely to have won only the first of the two as only the second, whatever voters like, whichever items
are popular, and even if some voters always choose one item. If the winner stays, it has always won the first. Summed
over all such items, (won the first) − (won the second) is Σ k y: y = ±½ is the answer to a duel, 0 a tie, and
k ∈ {−2, …, 2} depends on which of its items it shares with its neighbours. By Hoeffding's inequality,
p ≤ exp(−2 (Σ k y)² / Σ k²) if that sum is positive.

**Adaptive collection.** An agent that asks around the leader looks at answers too, so this test alone would name it.
But it looks at all answers, and one more seldom changes the leader. So two more conditions say what "winner stays"
means. The winner is in the next duel without the loser at least four fifths as often as if it always stayed and met
one of the other K − 1 items at random, loser included; and of the shared items that won only one of their two duels,
few won the second.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fairduel.votes.timing import time_order
from fairduel.votes.votes import Indices, Mask, Votes

_LEVEL = 1e-5
_USUALLY = 0.8  # fewer do no harm: honest voters are then flagged no more often than elsewhere
_FEW = 0.15
WINNER_STAYS = (
    "In this file the winner of a duel usually stays for the next one, so how often a voter saw an item is not "
    "evidence."
)
"""What follows from :func:`winner_stays` for an audit."""


@dataclass(frozen=True)
class Succession:
    """What successive duels share."""

    items: int
    """Number of items that were shown, K."""
    duels: int
    """Duels with a winner that another duel follows."""
    stays: int
    """How many of these next duels have the winner, but not the loser."""
    won_first: int
    """How many of the items that alone are in two successive duels won the first and lost the second."""
    won_second: int
    """How many of them lost the first and won the second."""
    p_value: float
    """Upper bound of the probability of this many more in ``won_first``, if duels do not depend on earlier answers."""

    @property
    def winner_stays(self) -> bool:
        """Whether the winner usually stays; see the module's docstring."""
        return (
            self.p_value <= _LEVEL
            and self.stays * (self.items - 1) >= _USUALLY * self.duels * (self.items - 2)
            and self.won_second <= _FEW * (self.won_first + self.won_second)
        )


def winner_stays(votes: Votes) -> bool:
    """Return whether the winner of a duel usually stays for the next duel of the same voter, or of the file.

    Votes must be in time order, or have timestamps.

    >>> rng = np.random.default_rng(0)
    >>> duels, champion = [], 0
    >>> for challenger in rng.integers(1, 6, size=200):
    ...     first, second = champion, (champion + challenger) % 6
    ...     result = rng.random() < 0.5
    ...     duels.append((first, second, result))
    ...     champion = first if result else second
    >>> winner_stays(Votes.from_arrays("abcdef", *zip(*duels)))
    True
    """
    return any(each.winner_stays for each in successions(votes))


def successions(votes: Votes) -> Iterator[Succession]:
    """Yield what successive duels share: in the whole file, then of each voter, if voters are known."""
    votes = votes.select(votes.weight > 0.0)
    order = np.argsort(time_order(votes))
    yield _succession(votes, order, np.ones(max(len(votes) - 1, 0), dtype=np.bool_))
    if votes.voter is not None:
        order = order[np.argsort(votes.voter[order], kind="stable")]
        yield _succession(votes, order, np.diff(votes.voter[order]) == 0)


def _succession(votes: Votes, order: Indices, follows: Mask) -> Succession:
    """Compare the duels in this ``order`` (n,), where the next one ``follows`` (n − 1,) or belongs to someone else."""
    items, answer = np.stack([votes.first, votes.second])[:, order], votes.result[order] - 0.5
    before, after = items[:, :-1], items[:, 1:]
    kept = follows & (before[:, None] == after).any(axis=1)  # which of the two items are in the next duel, (2, n − 1)
    one = kept[0] ^ kept[1]
    side_before = np.where(kept[0], 1.0, -1.0)  # of the shared item
    side_after = np.where((after[0] == before[0]) | (after[0] == before[1]), 1.0, -1.0)
    change = (side_before * answer[:-1] - side_after * answer[1:])[one]
    factor = np.append(one * side_before, 0.0) - np.append(0.0, one * side_after)
    total, squares = float(change.sum()), float(factor @ factor)
    decided = follows & (answer[:-1] != 0.0)
    return Succession(
        items=len(np.unique(items)),
        duels=int(decided.sum()),
        stays=int((decided & one & (side_before * answer[:-1] > 0.0)).sum()),
        won_first=int((change == 1.0).sum()),
        won_second=int((change == -1.0).sum()),
        p_value=math.exp(-2.0 * total**2 / squares) if total > 0.0 else 1.0,
    )
