"""Adversaries: who corrupts answers, and what they know."""

from fairduel.adversaries.base import (
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
from fairduel.adversaries.rewards import REWARD_ATTACKS, Bury, Swap
from fairduel.adversaries.strong import STRONG_ATTACKS, Adversarial, Hiding, Misleading
from fairduel.adversaries.weak import WEAK_ATTACKS, Greedy, NoAttack, Random

ATTACKS: dict[str, type[Adversary]] = {**WEAK_ATTACKS, **STRONG_ATTACKS, **REWARD_ATTACKS}
"""Every attack by name: on duels but for the last two, which are on rewards."""

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
    "WeakAdversary",
    "WeakRewardAdversary",
]
