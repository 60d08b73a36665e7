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
from fairduel.adversaries.rewards import Bury, Swap
from fairduel.adversaries.strong import Adversarial, Hiding, Misleading
from fairduel.adversaries.weak import Greedy, NoAttack, Random

ATTACKS: dict[str, type[Adversary]] = {
    "none": NoAttack,
    "greedy": Greedy,
    "random": Random,
    "adversarial": Adversarial,
    "misleading": Misleading,
    "hiding": Hiding,
    "bury": Bury,
    "swap": Swap,
}
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
