"""Attacks on rewards: a strong one, which sees the action, and a weak one, which does not."""

from dataclasses import dataclass

import numpy as np

from fairduel.adversaries.base import PullSight, RewardAdversary, StrongRewardAdversary, WeakRewardAdversary
from fairduel.checks import positive
from fairduel.duel import Vector


@dataclass(kw_only=True, eq=False)
class Bury(StrongRewardAdversary):
    """Subtracts ``depth`` from every reward of the best action until the budget is spent.

    Args:
        depth: How much to subtract from one reward.
    """

    depth: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.depth = positive("depth", self.depth)

    def wants_added(self, sight: PullSight) -> float:
        """Return −depth if the best action was pulled, otherwise 0."""
        return -self.depth if sight.action == int(np.argmax(sight.rewards)) else 0.0


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


REWARD_ATTACKS: dict[str, type[RewardAdversary]] = {"bury": Bury, "swap": Swap}
