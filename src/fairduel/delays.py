"""Delays: how many rounds after its duel (or pull) an answer arrives."""

import math
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from fairduel.checks import at_least_zero, boolean, integer
from fairduel.core.compiling import compiled
from fairduel.duel import Vector

_NONE, _FIXED, _STOCHASTIC, _STRATEGIC = range(4)
_NEVER = 2.0**53
"""More rounds than any run has."""


class DelayPlan(NamedTuple):
    """A delay's settings for compiled functions."""

    kind: int
    flipped_at_once: bool
    numbers: Vector
    """Its own settings, shape (2,)."""
    spent: Vector
    """The sum of a strategic delay so far, shape (1,)."""


@compiled
def lateness(plan: DelayPlan, better: float, is_flipped: bool, rng: np.random.Generator) -> int:
    """Return how many rounds late this round's answer is; ``better`` is the larger true reward of the actions asked."""
    at_once = is_flipped and plan.flipped_at_once
    late = 0.0
    if plan.kind == _FIXED:
        late = plan.numbers[0]
    elif plan.kind == _STOCHASTIC:  # drawn also if it is not used, so that all agents of a seed share the draws
        late = max(0.0, np.rint(plan.numbers[0] + plan.numbers[1] * rng.standard_normal()))
    elif plan.kind == _STRATEGIC and better > 0.0 and not at_once:
        late = min(math.floor(math.sqrt(plan.numbers[0])), plan.numbers[0] - plan.spent[0])
        plan.spent[0] += late
    return 0 if at_once else int(min(late, _NEVER))


@dataclass(kw_only=True, eq=False)
class Delay:
    """Base of delays: an answer that is τ rounds late arrives after the choice of τ later rounds.

    What has not arrived when the run ends never arrives. Your own delay overrides :meth:`rounds_late`.

    Args:
        flipped_at_once: Whether corrupted answers are never late, as in the experiments of Oh 2026.
        rng: The delay's own random stream.
    """

    flipped_at_once: bool = False
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    _kind: ClassVar[int] = _NONE

    def __post_init__(self) -> None:
        self.flipped_at_once = boolean("flipped_at_once", self.flipped_at_once)
        numbers = np.array([*self._numbers(), 0.0, 0.0][:2], dtype=np.float64)
        self._plan = DelayPlan(self._kind, self.flipped_at_once, numbers, np.zeros(1))

    @property
    def size(self) -> float:
        """D, which agents with a setting ``delay`` are told: the mean delay, or √Λ if the sum Λ is bounded."""
        return 0.0

    def rounds_late(self, better: float, *, is_flipped: bool) -> int:
        """Return by how many rounds this round's answer is late.

        Args:
            better: The larger true reward of the two actions (or that of the action pulled).
            is_flipped: Whether the answer was corrupted.
        """
        return int(lateness(self._plan, better, is_flipped, self.rng))

    def plan_run(self) -> DelayPlan | None:
        """Return what a compiled run needs; ``None`` if the delay is not a built-in one or has begun."""
        is_new = type(self) in DELAYS.values() and not self._plan.spent[0]
        return self._plan._replace(spent=np.zeros(1)) if is_new else None

    def _numbers(self) -> tuple[float, ...]:
        """Return the settings that :func:`lateness` needs."""
        return ()


class NoDelay(Delay):
    """Every answer arrives at once."""


@dataclass(kw_only=True, eq=False)
class FixedDelay(Delay):
    """Every answer arrives the same number of rounds late.

    Args:
        rounds: How many.

    >>> FixedDelay(rounds=3).rounds_late(0.5, is_flipped=False)
    3
    """

    rounds: int = 100
    _kind = _FIXED

    @property
    def size(self) -> float:
        """The number of rounds."""
        return float(self.rounds)

    def _numbers(self) -> tuple[float, ...]:
        self.rounds = integer("the delay's rounds", self.rounds)
        return (float(self.rounds),)


@dataclass(kw_only=True, eq=False)
class StochasticDelay(Delay):
    """Delays are Gaussian, rounded to whole rounds, and 0 if negative.

    Args:
        mean: The mean before rounding; that of the delays is larger if many are cut off at 0.
        deviation: The standard deviation before rounding.

    >>> StochasticDelay(mean=5.0, deviation=0.0).rounds_late(0.5, is_flipped=False)
    5
    """

    mean: float = 100.0
    deviation: float = 100.0
    _kind = _STOCHASTIC

    @property
    def size(self) -> float:
        """The mean."""
        return self.mean

    def _numbers(self) -> tuple[float, ...]:
        self.mean = at_least_zero("the delay's mean", self.mean)
        self.deviation = at_least_zero("the delay's deviation", self.deviation)
        return self.mean, self.deviation


@dataclass(kw_only=True, eq=False)
class StrategicDelay(Delay):
    """Withholds good news: ⌊√Λ⌋ rounds whenever a true reward asked about is positive, until the sum of delays is Λ.

    Args:
        budget: Λ.

    >>> delay = StrategicDelay(budget=10)
    >>> [delay.rounds_late(reward, is_flipped=False) for reward in (0.5, -0.5, 0.5, 0.5, 0.5, 0.5)]
    [3, 0, 3, 3, 1, 0]
    """

    budget: int = 10_000
    _kind = _STRATEGIC

    @property
    def size(self) -> float:
        """√Λ."""
        return math.sqrt(self.budget)

    def _numbers(self) -> tuple[float, ...]:
        self.budget = integer("the delay's budget", self.budget)
        return (float(self.budget),)


DELAYS: dict[str, type[Delay]] = {
    "none": NoDelay,
    "fixed": FixedDelay,
    "stochastic": StochasticDelay,
    "strategic": StrategicDelay,
}
"""Every delay by name."""
