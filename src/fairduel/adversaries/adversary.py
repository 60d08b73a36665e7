"""What an adversary sees and may do.

A **weak** adversary commits before the agent acts: it sees the round and, if it corrupts rewards, the true rewards. A
**strong** one also sees what was asked and the true answer. An attack only says what it *wants*; the budget is enforced
here.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, final

import numpy as np

from fairduel.checks import at_least_zero, integer
from fairduel.core.compiling import inlined, specialised
from fairduel.duel import Matrix, Outcome, Vector


@dataclass(frozen=True, slots=True)
class Sight:
    """What a strong adversary sees of a duel.

    Args:
        round_number: t = 1, 2, …
        actions: This round's actions, shape (K, d).
        rewards: Their true rewards, shape (K,).
        first: Index of the first action.
        second: Index of the second action.
        outcome: The true outcome l_t.
        probability: Probability of that outcome under the true model.
        weight: w_t, how much the agent will trust the outcome; 1 for agents without weights.
        width: How uncertain the agent is about the duel; NaN for agents that do not say.
        lead: How far it believes the first action ahead of the second; NaN likewise.
        leader: Index of the action that it believes best; −1 likewise.
        settling: How near that is to being clearly ahead, which it is from 1 on; NaN likewise. These three are only
            seen by attacks that watch the agent (``watches``).
    """

    round_number: int
    actions: Matrix
    rewards: Vector
    first: int
    second: int
    outcome: Outcome
    probability: float
    weight: float = 1.0
    width: float = math.nan
    lead: float = math.nan
    leader: int = -1
    settling: float = math.nan

    @property
    def winner(self) -> int:
        """Index of the action that truly won; adversaries are never asked about ties."""
        return self.first if self.outcome is Outcome.FIRST else self.second

    @property
    def loser(self) -> int:
        """Index of the action that truly lost."""
        return self.second if self.outcome is Outcome.FIRST else self.first


class DuelSeen(NamedTuple):
    """A :class:`Sight` for compiled functions."""

    round_number: int
    rewards: Vector
    first: int
    second: int
    share: float
    """1 if the first action truly won, 0 if the second did."""
    probability: float
    weight: float
    width: float
    lead: float
    leader: int
    settling: float


class AttackPlan(NamedTuple):
    """An attack's settings for compiled functions."""

    which: int
    """Index of its rule in a compiled run."""
    budget: int
    start: int
    """The first round that may be flipped, from 1."""
    every: int
    """Only every n-th round from there on may be flipped."""
    numbers: Vector
    """The rule's own settings, shape (m,)."""
    memory: Vector
    """What the rule remembers between rounds, shape (m,)."""
    watches: bool
    """Whether the rule needs to know what the agent believes."""


class FlipCase(NamedTuple):
    """The arguments of a rule."""

    plan: AttackPlan
    seen: DuelSeen
    rng: np.random.Generator


@inlined
def may_flip(plan: AttackPlan, spent: float, round_number: int, share: float) -> bool:
    """Whether budget is left, it is the attack's time, and the outcome can be flipped, which a tie cannot."""
    late = round_number - plan.start
    return spent < plan.budget and late >= 0 and late % plan.every == 0 and share != 0.5


rule: Any = None  # the attack's rule is filled into the two functions below


def _strong_step(case: FlipCase) -> Any:
    return rule(case.plan, case.seen, case.rng)


def _weak_step(case: FlipCase) -> Any:
    return rule(case.plan, case.seen.round_number, case.rng)


@dataclass(frozen=True, slots=True)
class PullSight:
    """What a strong adversary sees of a pull.

    Args:
        round_number: t = 1, 2, …
        actions: This round's actions, shape (K, d).
        rewards: Their true mean rewards, shape (K,).
        action: Index of the action pulled.
        reward: The true reward, including noise.
    """

    round_number: int
    actions: Matrix
    rewards: Vector
    action: int
    reward: float


@dataclass(kw_only=True, eq=False)
class Adversary(ABC):
    """Corrupts answers within a budget.

    Args:
        budget: C, the most that may be spent.
        rng: The adversary's own random stream.
    """

    budget: float
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def __post_init__(self) -> None:
        self.budget = self._checked_budget()
        self._spent = 0.0

    def _checked_budget(self) -> float:
        return at_least_zero("the adversary's budget", self.budget)

    @property
    def spent(self) -> float:
        """How much has been spent so far."""
        return self._spent


@dataclass(kw_only=True, eq=False)
class FlippingAdversary(Adversary):
    """Flips the outcomes of at most ``budget`` duels.

    Its ``wants_flip`` is a method, or made from a compiled rule by :func:`by_round` or :func:`by_sight`; only attacks
    with a compiled rule support compiled runs.

    Args:
        budget: C, the number of duels that may be flipped.
        start: The first round that may be flipped, from 1.
        every: Only every n-th round, from ``start`` on, may be flipped.
    """

    budget: int
    start: int = 1
    every: int = 1

    watches: ClassVar[bool] = False
    """Whether the attack needs to know what the agent believes."""
    _remembered: ClassVar[int] = 1
    """How many numbers its rule remembers."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.start = integer("the attack's start", self.start, least=1)
        self.every = integer("the attack's every", self.every, least=1)
        numbers = np.array(self._numbers(), dtype=np.float64)
        memory = np.zeros(self._remembered)
        self._plan = AttackPlan(0, self.budget, self.start, self.every, numbers, memory, self.watches)

    def _checked_budget(self) -> int:
        return integer("the adversary's budget", self.budget)

    def _numbers(self) -> tuple[float, ...]:
        """Return the settings that the compiled rule needs besides the budget."""
        return ()

    def check_actions(self, fewest: int) -> None:
        """Raise if a world that offers at least ``fewest`` actions has too few for this attack."""

    def plan_run(self) -> AttackPlan | None:
        """Return what a compiled run needs; ``None`` if the attack has begun."""
        return None if self._spent else self._plan._replace(memory=self._plan.memory.copy())

    @classmethod
    def flip_step(cls) -> Callable[[FlipCase], bool] | None:
        """Return the rule for compiled runs; ``None`` if there is none."""
        return getattr(cls.wants_flip, "flip_step", None)

    @abstractmethod
    def wants_flip(self, seen: Any) -> bool:
        """Whether to flip, given what this adversary sees."""

    @final
    def flips(self, sight: Sight) -> bool:
        """Decide whether to flip this round's outcome (c_t of the paper), and spend the budget if so."""
        if not may_flip(self._plan, self._spent, sight.round_number, sight.outcome.first_share):
            return False
        if not self._decides(sight):
            return False
        self._spent += 1
        return True

    @abstractmethod
    def _decides(self, sight: Sight) -> bool: ...


class WeakAdversary(FlippingAdversary):
    """Decides before it sees the duel; implement :meth:`wants_flip` from the round alone."""

    @abstractmethod
    def wants_flip(self, round_number: int) -> bool:
        """Whether to flip round t, counted from 1."""

    @final
    def _decides(self, sight: Sight) -> bool:
        return self.wants_flip(sight.round_number)


class StrongAdversary(FlippingAdversary):
    """Sees the duel, its true outcome and the model; implement :meth:`wants_flip` from these."""

    @abstractmethod
    def wants_flip(self, sight: Sight) -> bool:
        """Whether to flip this outcome."""

    @final
    def _decides(self, sight: Sight) -> bool:
        return self.wants_flip(sight)


def by_round(rule: Callable[[AttackPlan, int, np.random.Generator], bool]) -> Any:
    """Make a weak adversary's ``wants_flip`` from a compiled rule, which sees the round alone."""

    def wants_flip(self: WeakAdversary, round_number: int) -> bool:
        return bool(rule(self._plan, round_number, self.rng))

    wants_flip.flip_step = specialised(_weak_step, rule=rule)  # type: ignore[attr-defined]
    return wants_flip


def by_sight(rule: Callable[[AttackPlan, DuelSeen, np.random.Generator], bool]) -> Any:
    """Make a strong adversary's ``wants_flip`` from a compiled rule, which sees the duel and its true outcome."""

    def wants_flip(self: StrongAdversary, sight: Sight) -> bool:
        self.check_actions(len(sight.rewards))
        share = sight.outcome.first_share
        duel = DuelSeen(
            sight.round_number,
            sight.rewards,
            sight.first,
            sight.second,
            share,
            sight.probability,
            sight.weight,
            sight.width,
            sight.lead,
            sight.leader,
            sight.settling,
        )
        return bool(rule(self._plan, duel, self.rng))

    wants_flip.flip_step = specialised(_strong_step, rule=rule)  # type: ignore[attr-defined]
    return wants_flip


class RewardAdversary(Adversary):
    """Adds c_t to rewards, clipped so that Σ|c_t| ≤ ``budget``."""

    @final
    def corruption(self, sight: PullSight) -> float:
        """Return c_t and spend its absolute value; a weak adversary spends the largest over all actions."""
        wanted, cost = self._wanted_and_cost(sight)
        if not cost:
            return 0.0
        left = self.budget - self._spent
        self._spent += min(cost, left)
        return wanted * min(1.0, left / cost)

    @abstractmethod
    def _wanted_and_cost(self, sight: PullSight) -> tuple[float, float]:
        """Return what to add to this reward, and what that costs."""


class WeakRewardAdversary(RewardAdversary):
    """Commits before the action is chosen; implement :meth:`wants_added` from the round and the true means."""

    @abstractmethod
    def wants_added(self, round_number: int, rewards: Vector) -> Vector:
        """Return what to add to the reward of each action, shape (K,)."""

    @final
    def _wanted_and_cost(self, sight: PullSight) -> tuple[float, float]:
        wanted = self.wants_added(sight.round_number, sight.rewards)
        return float(wanted[sight.action]), float(np.abs(wanted).max())


class StrongRewardAdversary(RewardAdversary):
    """Sees the action and its true reward; implement :meth:`wants_added` from these."""

    @abstractmethod
    def wants_added(self, sight: PullSight) -> float:
        """Return what to add to this reward."""

    @final
    def _wanted_and_cost(self, sight: PullSight) -> tuple[float, float]:
        wanted = self.wants_added(sight)
        return wanted, abs(wanted)
