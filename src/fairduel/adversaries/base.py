"""What an adversary may see and do.

A **weak** adversary commits before the agent acts: it is given the round, and the true rewards where it corrupts
rewards. A **strong** one sees what was asked, the true answer and the true rewards. They only say what they *want*; the
budget is kept here, out of their reach.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import final

import numpy as np

from fairduel.checks import at_least_zero, integer
from fairduel.duel import Matrix, Outcome, Vector


@dataclass(frozen=True, slots=True)
class Sight:
    """All that a strong adversary sees of one round."""

    round_number: int
    """t = 1, 2, …"""
    actions: Matrix
    """This round's actions, shape (K, d)."""
    rewards: Vector
    """Their true rewards, shape (K,)."""
    first: int
    """Index of the first action of the duel."""
    second: int
    """Index of the second."""
    outcome: Outcome
    """The true outcome l_t."""
    probability: float
    """How probable that outcome was under the true model."""

    @property
    def winner(self) -> int:
        """Index of the action that truly won."""
        return self.first if self.outcome is Outcome.FIRST else self.second

    @property
    def loser(self) -> int:
        """Index of the action that truly lost."""
        return self.second if self.outcome is Outcome.FIRST else self.first


@dataclass(frozen=True, slots=True)
class PullSight:
    """All that a strong adversary sees of one round in which an action was pulled."""

    round_number: int
    """t = 1, 2, …"""
    actions: Matrix
    """This round's actions, shape (K, d)."""
    rewards: Vector
    """Their true mean rewards, shape (K,)."""
    action: int
    """Index of the action that was pulled."""
    reward: float
    """The true reward, noise included."""


@dataclass(kw_only=True, eq=False)
class Adversary(ABC):
    """Corrupts answers, within a budget."""

    budget: float
    """C, the most that may be spent."""
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    """The adversary's own random stream."""

    def __post_init__(self) -> None:
        self.budget = self._checked_budget()
        self._spent = 0.0

    def _checked_budget(self) -> float:
        return at_least_zero("the budget of an adversary", self.budget)

    @property
    def spent(self) -> float:
        """How much was spent so far."""
        return self._spent


class FlippingAdversary(Adversary):
    """Flips the outcomes of duels, at most ``budget`` of them."""

    budget: int
    """C, the most outcomes that may be flipped."""

    def _checked_budget(self) -> int:
        return integer("the budget of an adversary", self.budget)

    @final
    def flips(self, sight: Sight) -> bool:
        """Whether this round's outcome is flipped (c_t of the paper); spends the budget if so."""
        if self._spent >= self.budget or not self._decides(sight):
            return False
        self._spent += 1
        return True

    @abstractmethod
    def _decides(self, sight: Sight) -> bool: ...


class WeakAdversary(FlippingAdversary):
    """Decides before it could see the duel: write :meth:`wants_flip` of the round alone."""

    @abstractmethod
    def wants_flip(self, round_number: int) -> bool:
        """Whether to flip round t = 1, 2, and so on."""

    @final
    def _decides(self, sight: Sight) -> bool:
        return self.wants_flip(sight.round_number)


class StrongAdversary(FlippingAdversary):
    """Sees the duel, its true outcome and the model: write :meth:`wants_flip` of that."""

    @abstractmethod
    def wants_flip(self, sight: Sight) -> bool:
        """Whether to flip this outcome."""

    @final
    def _decides(self, sight: Sight) -> bool:
        return self.wants_flip(sight)


class RewardAdversary(Adversary):
    """Adds c_t to rewards, with Σ|c_t| ≤ ``budget``; what it wants beyond that is cut to what is left."""

    @final
    def corruption(self, sight: PullSight) -> float:
        """c_t; spends |c_t|, or, of an adversary that commits, the largest |c_t| over all actions."""
        wanted, cost = self._wishes(sight)
        if not cost:
            return 0.0
        left = self.budget - self._spent
        self._spent += min(cost, left)
        return wanted * min(1.0, left / cost)

    @abstractmethod
    def _wishes(self, sight: PullSight) -> tuple[float, float]:
        """What to add to this reward, and what that costs."""


class WeakRewardAdversary(RewardAdversary):
    """Commits before the action is chosen: write :meth:`wants_added` of the round and the true means."""

    @abstractmethod
    def wants_added(self, round_number: int, rewards: Vector) -> Vector:
        """What to add to the reward of each action, shape (K,)."""

    @final
    def _wishes(self, sight: PullSight) -> tuple[float, float]:
        wanted = self.wants_added(sight.round_number, sight.rewards)
        return float(wanted[sight.action]), float(np.abs(wanted).max())


class StrongRewardAdversary(RewardAdversary):
    """Sees the action and its true reward: write :meth:`wants_added` of that."""

    @abstractmethod
    def wants_added(self, sight: PullSight) -> float:
        """What to add to this reward."""

    @final
    def _wishes(self, sight: PullSight) -> tuple[float, float]:
        wanted = self.wants_added(sight)
        return wanted, abs(wanted)
