"""Attacks on rewards: one that sees the action, one that commits before it."""

from dataclasses import dataclass

import numpy as np

from fairduel.adversaries.base import PullSight, RewardAdversary, StrongRewardAdversary, WeakRewardAdversary
from fairduel.checks import positive
from fairduel.duel import Vector


@dataclass(kw_only=True, eq=False)
class Bury(StrongRewardAdversary):
    """Takes ``depth`` off every reward of the best action until the budget is spent."""

    depth: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.depth = positive("depth", self.depth)

    def wants_added(self, sight: PullSight) -> float:
        """Something below zero, if the best action was pulled."""
        return -self.depth if sight.action == int(np.argmax(sight.rewards)) else 0.0


@dataclass(kw_only=True, eq=False)
class Swap(WeakRewardAdversary):
    """From the first round on, makes the best action look like the worst and the worst like the best."""

    def wants_added(self, round_number: int, rewards: Vector) -> Vector:  # noqa: ARG002
        """Each of the two means minus the other."""
        best, worst = int(np.argmax(rewards)), int(np.argmin(rewards))
        added = np.zeros(len(rewards))
        added[best] = rewards[worst] - rewards[best]
        added[worst] = rewards[best] - rewards[worst]
        return added


REWARD_ATTACKS: dict[str, type[RewardAdversary]] = {"bury": Bury, "swap": Swap}
