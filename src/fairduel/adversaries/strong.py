"""Attacks that know the duel and the model (appendix "Experiments", strong; and the lower bound's)."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from fairduel.adversaries.base import Sight, StrongAdversary
from fairduel.core.compiling import compiled
from fairduel.duel import Vector
from fairduel.errors import BadInputError, unknown_name


@compiled
def ranked_action(rewards: Vector, rank: int) -> int:
    """Index of the action at this place among the true rewards (K,), best first from 0."""
    return int(np.argsort(-rewards, kind="mergesort")[rank])


Target = Literal["random", "median", "second", "worst"]


@dataclass(kw_only=True, eq=False)
class Adversarial(StrongAdversary):
    """Flips an outcome exactly when it agrees with the model, i.e. had probability over ½."""

    def wants_flip(self, sight: Sight) -> bool:
        """If the true outcome was the likelier one."""
        return sight.probability > 0.5


@dataclass(kw_only=True, eq=False)
class Misleading(StrongAdversary):
    """Lets one suboptimal action win all its duels; a flip is spent only where it would have lost.

    ``target`` names it by its rank among the true rewards (``"random"``: one rank below the best, drawn
    once a run), so that it also means something where actions change; or it is an action's index.
    """

    target: Target | int = "random"

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.target, str) and self.target not in get_args(Target):
            raise unknown_name("target", self.target, get_args(Target))
        self._drawn = self.rng.random()

    def wants_flip(self, sight: Sight) -> bool:
        """If the target has truly lost to another action."""
        return sight.first != sight.second and sight.loser == self.target_among(sight.rewards)

    def rank(self, rewards: Vector) -> int:
        """The target's place among actions with these true rewards (K,), best first from 0; −1 for a given index."""
        count = len(rewards)
        if isinstance(self.target, int):
            if not 0 <= self.target < count:
                raise BadInputError(f"the misleading target {self.target} is none of the {count} actions.")
            return -1
        best = min(int(np.sum(rewards == np.max(rewards))), count - 1)  # so many share the first place
        places = {"second": best, "median": max(best, count // 2), "worst": count - 1}
        return places.get(self.target, best + int(self._drawn * (count - best)))

    def target_among(self, rewards: Vector) -> int:
        """The target's index among actions with these true rewards (K,)."""
        rank = self.rank(rewards)
        return self.target if isinstance(self.target, int) else ranked_action(rewards, rank)


@dataclass(kw_only=True, eq=False)
class Hiding(StrongAdversary):
    """Hides the best action: its first C duels are answered by a fair coin (proof of Theorem kappa)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._hidden = 0

    def wants_flip(self, sight: Sight) -> bool:
        """If the best action is in the duel, is still to be hidden, and the coin disagrees."""
        best = int(np.argmax(sight.rewards))
        if sight.first == sight.second or best not in (sight.first, sight.second) or self._hidden >= self.budget:
            return False
        self._hidden += 1
        return self.rng.random() < 0.5
