"""Adversaries: who flips outcomes, and what they know."""

from fairduel.adversaries.base import Adversary, Sight, StrongAdversary, WeakAdversary
from fairduel.adversaries.strong import Adversarial, Hiding, Misleading
from fairduel.adversaries.weak import Greedy, NoAttack, Random

ATTACKS: dict[str, type[Adversary]] = {
    "none": NoAttack,
    "greedy": Greedy,
    "random": Random,
    "adversarial": Adversarial,
    "misleading": Misleading,
    "hiding": Hiding,
}
"""Every attack by name."""

__all__ = [
    "ATTACKS",
    "Adversarial",
    "Adversary",
    "Greedy",
    "Hiding",
    "Misleading",
    "NoAttack",
    "Random",
    "Sight",
    "StrongAdversary",
    "WeakAdversary",
]
