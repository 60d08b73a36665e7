"""The true outcome and the regret of a duel, shared by both drivers."""

from fairduel.core.compiling import inlined
from fairduel.duel import Vector


@inlined
def true_share(uniform: float, first: int, second: int, low_wins: float, ties: float) -> tuple[float, float]:
    """Draw the true outcome l_t; return the first action's share of the win (1, 0 or ½) and the outcome's probability.

    ``low_wins`` and ``ties`` are P(the action of lower index wins) and P(tie). The winner depends on ``uniform`` but
    not on which side an action stands, so that agents with the same seed and pair are told the same.
    """
    if low_wins <= uniform < low_wins + ties:
        return 0.5, ties
    low_won = uniform < low_wins
    share = 1.0 if low_won == (first <= second) else 0.0
    return share, low_wins if low_won else 1.0 - low_wins - ties


@inlined
def regrets(rewards: Vector, best: float, first: int, second: int) -> tuple[float, float]:
    """Return the average and the weak regret of a duel, given the true rewards (K,)."""
    return 2.0 * best - rewards[first] - rewards[second], best - max(rewards[first], rewards[second])
