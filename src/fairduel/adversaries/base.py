"""What an adversary may see and do.

A **weak** adversary is given the round and nothing else. A **strong** one sees the duel, its true outcome
and the true rewards. Both say only whether they *want* to flip; the budget is kept here, out of their reach.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import final

import numpy as np

from fairduel.checks import whole
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


@dataclass(kw_only=True, eq=False)
class Adversary(ABC):
    """Flips outcomes, at most ``budget`` of them."""

    budget: int
    """C, the most outcomes that may be flipped."""
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    """The adversary's own random stream."""

    def __post_init__(self) -> None:
        self.budget = whole("the budget of an adversary", self.budget)
        self._spent = 0

    @property
    def spent(self) -> int:
        """How many outcomes were flipped so far."""
        return self._spent

    @final
    def flips(self, sight: Sight) -> bool:
        """Whether this round's outcome is flipped (c_t of the paper); spends the budget if so."""
        if self._spent >= self.budget or not self._decides(sight):
            return False
        self._spent += 1
        return True

    @abstractmethod
    def _decides(self, sight: Sight) -> bool: ...


class WeakAdversary(Adversary):
    """Decides before it could see the duel: write :meth:`wants_flip` of the round alone."""

    @abstractmethod
    def wants_flip(self, round_number: int) -> bool:
        """Whether to flip round t = 1, 2, and so on."""

    @final
    def _decides(self, sight: Sight) -> bool:
        return self.wants_flip(sight.round_number)


class StrongAdversary(Adversary):
    """Sees the duel, its true outcome and the model: write :meth:`wants_flip` of that."""

    @abstractmethod
    def wants_flip(self, sight: Sight) -> bool:
        """Whether to flip this outcome."""

    @final
    def _decides(self, sight: Sight) -> bool:
        return self.wants_flip(sight)
