"""What an adversary may see and do.

A **weak** adversary commits before the agent acts: it is given the round, and the true rewards where it corrupts
rewards. A **strong** one sees what was asked, the true answer and the true rewards. They only say what they *want*; the
budget is kept here, out of their reach.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

import numpy as np

from fairduel.checks import at_least_zero, integer
from fairduel.core.compiling import inlined, specialised
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
        """Index of the action that truly won; no adversary is asked about a tie."""
        return self.first if self.outcome is Outcome.FIRST else self.second

    @property
    def loser(self) -> int:
        """Index of the action that truly lost."""
        return self.second if self.outcome is Outcome.FIRST else self.first


class DuelSeen(NamedTuple):
    """A :class:`Sight` as compiled functions know it."""

    round_number: int
    rewards: Vector
    first: int
    second: int
    share: float
    """Of the first, in the true outcome."""
    probability: float


class AttackPlan(NamedTuple):
    """An attack's settings as compiled functions know them."""

    which: int
    """The number of its rule, in a compiled run."""
    budget: int
    numbers: Vector
    """What a rule needs to know besides, shape (m,)."""
    memory: Vector
    """What it must remember from round to round, shape (1,)."""


class FlipCase(NamedTuple):
    """All three arguments of a rule in one."""

    plan: AttackPlan
    seen: DuelSeen
    rng: np.random.Generator


@inlined
def may_flip(budget: int, spent: float, share: float) -> bool:
    """Whether budget is left, and there is something to flip: a tie has no other side."""
    return spent < budget and share != 0.5


rule: Any = None  # an attack's own, in the two below


def _seeing(case: FlipCase) -> Any:
    """A strong adversary's rule, shown everything."""
    return rule(case.plan, case.seen, case.rng)


def _blindfolded(case: FlipCase) -> Any:
    """A weak adversary's rule, shown the round alone."""
    return rule(case.plan, case.seen.round_number, case.rng)


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
    """Flips the outcomes of duels, at most ``budget`` of them.

    Its ``wants_flip`` is a method, or made from a compiled rule by :func:`by_round` or :func:`by_sight`; with such a
    rule it also takes part in compiled runs.
    """

    budget: int
    """C, the most outcomes that may be flipped."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._plan = AttackPlan(0, self.budget, np.array(self._numbers(), dtype=np.float64), np.zeros(1))

    def _checked_budget(self) -> int:
        return integer("the budget of an adversary", self.budget)

    def _numbers(self) -> tuple[float, ...]:
        """What the compiled rule needs to know besides the budget."""
        return ()

    def check_actions(self, fewest: int) -> None:
        """Refuse a world that offers too few actions for this attack."""

    def plan_run(self) -> AttackPlan | None:
        """What a compiled run needs, or ``None`` where the attack has begun."""
        return None if self._spent else self._plan._replace(memory=self._plan.memory.copy())

    @classmethod
    def flip_step(cls) -> Callable[[FlipCase], bool] | None:
        """The compiled rule, for a compiled run; ``None`` where only the plain driver serves."""
        return getattr(cls.wants_flip, "flip_step", None)

    @abstractmethod
    def wants_flip(self, seen: Any) -> bool:
        """Whether to flip, given what this adversary sees."""

    @final
    def flips(self, sight: Sight) -> bool:
        """Whether this round's outcome is flipped (c_t of the paper); spends the budget if so."""
        if not may_flip(self.budget, self._spent, sight.outcome.first_share) or not self._decides(sight):
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


def by_round(rule: Callable[[AttackPlan, int, np.random.Generator], bool]) -> Any:
    """Make a weak adversary's ``wants_flip`` of a compiled rule, which is given the round alone."""

    def wants_flip(self: WeakAdversary, round_number: int) -> bool:
        return bool(rule(self._plan, round_number, self.rng))

    wants_flip.flip_step = specialised(_blindfolded, rule=rule)  # type: ignore[attr-defined]
    return wants_flip


def by_sight(rule: Callable[[AttackPlan, DuelSeen, np.random.Generator], bool]) -> Any:
    """Make a strong adversary's ``wants_flip`` of a compiled rule, which is given the duel and its true outcome."""

    def wants_flip(self: StrongAdversary, sight: Sight) -> bool:
        self.check_actions(len(sight.rewards))
        share = sight.outcome.first_share
        duel = DuelSeen(sight.round_number, sight.rewards, sight.first, sight.second, share, sight.probability)
        return bool(rule(self._plan, duel, self.rng))

    wants_flip.flip_step = specialised(_seeing, rule=rule)  # type: ignore[attr-defined]
    return wants_flip


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
