"""Attacks that see what was asked: the paper's strong ones (appendix "Experiments"), the lower bound's, on rewards."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from fairduel.adversaries.adversary import (
    AttackPlan,
    DuelSeen,
    PullSight,
    StrongAdversary,
    StrongRewardAdversary,
    by_sight,
)
from fairduel.checks import positive
from fairduel.core.compiling import compiled
from fairduel.duel import Vector
from fairduel.errors import BadInputError, unknown_name

Target = Literal["random", "median", "second", "worst"]
_RANDOM, _MEDIAN, _SECOND, _WORST, _GIVEN = range(5)


@compiled
def against_the_model(plan: AttackPlan, seen: DuelSeen, rng: np.random.Generator) -> bool:  # noqa: ARG001
    """Flip if the true outcome was the likelier one."""
    return seen.probability > 0.5


@dataclass(kw_only=True, eq=False)
class Adversarial(StrongAdversary):
    """Flips every outcome that agrees with the model, that is, had probability over ½."""

    wants_flip = by_sight(against_the_model)


@compiled
def rank_of(rewards: Vector, action: int) -> int:
    """Return an action's rank among the true rewards (K,): 0 is best; the lower index wins ties."""
    rank = 0
    for other in range(rewards.size):
        is_ahead = rewards[other] > rewards[action] or (rewards[other] == rewards[action] and other < action)
        rank += is_ahead
    return rank


@compiled
def target_rank(kind: int, uniform: float, rewards: Vector) -> int:
    """Return the target's rank among the true rewards (K,), which is never that of a best action."""
    count = rewards.size
    best = min(int(np.sum(rewards == np.max(rewards))), count - 1)  # how many share rank 0
    if kind == _SECOND:
        return best
    if kind == _MEDIAN:
        return max(best, count // 2)
    if kind == _WORST:
        return count - 1
    return best + int(uniform * (count - best))


@compiled
def for_the_target(plan: AttackPlan, seen: DuelSeen, rng: np.random.Generator) -> bool:  # noqa: ARG001
    """Flip if the target truly lost to another action."""
    kind, value = int(plan.numbers[0]), plan.numbers[1]
    loser = seen.second if seen.share == 1.0 else seen.first
    if seen.first == seen.second:
        return False
    if kind == _GIVEN:
        return bool(loser == value)
    return rank_of(seen.rewards, loser) == target_rank(kind, value, seen.rewards)


@dataclass(kw_only=True, eq=False)
class Misleading(StrongAdversary):
    """Makes one suboptimal action win all its duels; flips are spent only where it would have lost.

    Args:
        target: The action, by its rank among the true rewards, so that it is defined even if actions change:
            ``"second"``, ``"median"``, ``"worst"``, or ``"random"``, a rank below the best drawn once per run; or an
            action's index.
    """

    target: Target | int = "random"
    wants_flip = by_sight(for_the_target)

    def __post_init__(self) -> None:
        if isinstance(self.target, str) and self.target not in get_args(Target):
            raise unknown_name("target", self.target, get_args(Target))
        self._drawn = self.rng.random()
        super().__post_init__()

    def _numbers(self) -> tuple[float, ...]:
        if isinstance(self.target, str):
            return get_args(Target).index(self.target), self._drawn
        return _GIVEN, self.target

    def check_actions(self, fewest: int) -> None:
        """Raise if the target is not among the actions."""
        if isinstance(self.target, int) and not 0 <= self.target < fewest:
            raise BadInputError(f"target {self.target} of the misleading attack is not one of the {fewest} actions.")

    def rank(self, rewards: Vector) -> int:
        """Return the target's rank among actions with these true rewards (K,); 0 is best."""
        self.check_actions(len(rewards))
        if isinstance(self.target, int):
            return rank_of(rewards, self.target)
        return target_rank(get_args(Target).index(self.target), self._drawn, rewards)


@compiled
def for_the_best(plan: AttackPlan, seen: DuelSeen, rng: np.random.Generator) -> bool:
    """Flip on a coin toss if the best action is in the duel and still to be hidden."""
    best = np.argmax(seen.rewards)
    if seen.first == seen.second or best not in (seen.first, seen.second) or plan.memory[0] >= plan.budget:
        return False
    plan.memory[0] += 1
    return rng.random() < 0.5


@dataclass(kw_only=True, eq=False)
class Hiding(StrongAdversary):
    """Hides the best action by answering its first C duels with a fair coin (proof of Theorem 5.4)."""

    wants_flip = by_sight(for_the_best)


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


STRONG_ATTACKS: dict[str, type[StrongAdversary]] = {
    "adversarial": Adversarial,
    "misleading": Misleading,
    "hiding": Hiding,
}
