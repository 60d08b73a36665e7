"""Adversaries: attacks on duels and on rewards."""

from fairduel.adversaries.adversary import (
    Adversary,
    FlippingAdversary,
    PullSight,
    RewardAdversary,
    Sight,
    StrongAdversary,
    StrongRewardAdversary,
    WeakAdversary,
    WeakRewardAdversary,
)
from fairduel.adversaries.searching import search
from fairduel.adversaries.strong import STRONG_ATTACKS, Adversarial, Bury, Hiding, Misleading
from fairduel.adversaries.watching import Watching
from fairduel.adversaries.weak import WEAK_ATTACKS, Greedy, NoAttack, Random, Swap

REWARD_ATTACKS: dict[str, type[RewardAdversary]] = {"bury": Bury, "swap": Swap}
ATTACKS: dict[str, type[Adversary]] = {**WEAK_ATTACKS, **STRONG_ATTACKS, "watching": Watching, **REWARD_ATTACKS}
"""Every attack by name; all but the last two attack duels."""

__all__ = [
    "ATTACKS",
    "Adversarial",
    "Adversary",
    "Bury",
    "FlippingAdversary",
    "Greedy",
    "Hiding",
    "Misleading",
    "NoAttack",
    "PullSight",
    "Random",
    "RewardAdversary",
    "Sight",
    "StrongAdversary",
    "StrongRewardAdversary",
    "Swap",
    "Watching",
    "WeakAdversary",
    "WeakRewardAdversary",
    "search",
]
