"""Attacks that see only the round: the paper's weak ones (appendix "Experiments"), and one on rewards."""

from dataclasses import dataclass

import numpy as np

from fairduel.adversaries.adversary import AttackPlan, WeakAdversary, WeakRewardAdversary, by_round
from fairduel.checks import fraction
from fairduel.core.compiling import compiled
from fairduel.duel import Vector


@compiled
def never(plan: AttackPlan, round_number: int, rng: np.random.Generator) -> bool:  # noqa: ARG001
    """Flip nothing."""
    return False


@compiled
def always(plan: AttackPlan, round_number: int, rng: np.random.Generator) -> bool:  # noqa: ARG001
    """Flip everything, until the budget is spent."""
    return True


@compiled
def by_chance(plan: AttackPlan, round_number: int, rng: np.random.Generator) -> bool:  # noqa: ARG001
    """Flip with a fixed probability."""
    return bool(rng.random() < plan.numbers[0])


@dataclass(kw_only=True, eq=False)
class NoAttack(WeakAdversary):
    """Flips nothing, whatever its budget."""

    budget: int = 0
    wants_flip = by_round(never)


@dataclass(kw_only=True, eq=False)
class Greedy(WeakAdversary):
    """Flips the first C rounds."""

    wants_flip = by_round(always)


@dataclass(kw_only=True, eq=False)
class Random(WeakAdversary):
    """Flips each round with the same probability until the budget is spent.

    Args:
        probability: Between 0 and 1.
    """

    probability: float = 0.5
    wants_flip = by_round(by_chance)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.probability = fraction("the random attack's probability", self.probability)

    def _numbers(self) -> tuple[float, ...]:
        return (self.probability,)


@dataclass(kw_only=True, eq=False)
class Swap(WeakRewardAdversary):
    """Swaps the means of the best and the worst action from the first round on."""

    def wants_added(self, round_number: int, rewards: Vector) -> Vector:  # noqa: ARG002
        """Return the difference of the two means, with opposite signs."""
        best, worst = int(np.argmax(rewards)), int(np.argmin(rewards))
        added = np.zeros(len(rewards))
        added[best] = rewards[worst] - rewards[best]
        added[worst] = rewards[best] - rewards[worst]
        return added


WEAK_ATTACKS: dict[str, type[WeakAdversary]] = {"none": NoAttack, "greedy": Greedy, "random": Random}
