"""What both drivers make of a duel: its true outcome, and its regret."""

from fairduel.core.compiling import inlined
from fairduel.duel import Vector


@inlined
def true_share(uniform: float, first: int, second: int, low_wins: float, ties: float) -> tuple[float, float]:
    """Draw the true outcome l_t: the first's share of a win, 1, 0 or ½, and how probable that outcome was.

    ``low_wins`` and ``ties`` are P(the action of lower index wins) and P(tie). The same ``uniform`` number lets the
    same action win whichever side it stands on: two agents of a seed that ask the same pair are told the same.
    """
    if low_wins <= uniform < low_wins + ties:
        return 0.5, ties
    low_won = uniform < low_wins
    share = 1.0 if low_won == (first <= second) else 0.0
    return share, low_wins if low_won else 1.0 - low_wins - ties


@inlined
def regrets(rewards: Vector, best: float, first: int, second: int) -> tuple[float, float]:
    """The average and the weak regret of a duel among actions with these true rewards (K,)."""
    return 2.0 * best - rewards[first] - rewards[second], best - max(rewards[first], rewards[second])
