"""Robust weighted OFUL, and its multi-level form for an unknown level of corruption (Zhao 2021)."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairduel.agents.base import Actions
from fairduel.agents.guarantee import Guarantee
from fairduel.agents.linear_reward import LeastSquares, OptimisticAgent, tolerated
from fairduel.checks import ensure
from fairduel.core.selection import pick
from fairduel.duel import Pull


@dataclass(kw_only=True, eq=False)
class _WeightedOFUL(OptimisticAgent):
    """Weights 1/σ̄² with σ̄ = max{(R + 1)/√d, R}, and the radius that both forms have.

    The source lets the variance σ_t² of a reward be known and differ from round to round. Here R is all that is known,
    so σ_t = R, all weights are equal, and what makes it robust is the radius alone.
    """

    _practical_scale = 1 / 50

    def __post_init__(self) -> None:
        super().__post_init__()
        deviation = max((self.noise + 1) / math.sqrt(self.dimension), self.noise)  # σ̄
        self._reward_weight = deviation**-2

    def _weight(self, width: float) -> float:  # noqa: ARG002
        return self._reward_weight

    def _radius_for(self, corruption: float, round_number: int, regressions: int = 1) -> float:
        """β_t with ``corruption`` in the place of C, for that many regressions at once.

        The last term is C√d because a corruption c of one reward counts |c|·‖x/σ̄‖_Σ⁻¹/σ̄ ≤ |c|√d/(R + 1).
        """
        d = self.dimension
        growth = math.log(1 + round_number / ((self.noise + 1) ** 2 * self._ridge))
        failure = math.log(4 * round_number**2 * regressions / self.failure_probability)
        noise = 8 * math.sqrt(d * growth * failure) + 4 * math.sqrt(d) * failure
        return noise + math.sqrt(self._ridge) * self.norm_bound + corruption * math.sqrt(d)


@dataclass(kw_only=True, eq=False)
class WeightedOFUL(_WeightedOFUL):
    """Be optimistic by as much as a corruption of C in all could have hidden: the radius has a term C√d.

    β_t = 8√(d log(1 + t/((R+1)²λ)) log(4t²/δ)) + 4√d log(4t²/δ) + √λB + C√d. The authors' code has 2C√d, which the
    proof does not need, and a factor of 0.6 on β. ``scale`` is such a factor, 1/50 where it is practical here.

    >>> agent = WeightedOFUL(dimension=2, norm_bound=1.0, noise=0.1, corruption_budget=5, seed=0)
    >>> actions = [[1.0, 0.0], [0.0, 1.0], [-0.6, 0.8]]
    >>> for _ in range(100):
    ...     pull = agent.ask(actions)
    ...     agent.tell(pull, [0.9, 0.1, -0.4][pull.action])
    >>> agent.recommend(actions)
    0
    """

    title = "Weighted OFUL"
    full_title = "Robust weighted OFUL"
    guarantee = Guarantee("Zhao 2021", "linear contextual bandits", "weak", "Õ(dC√T)", needs="B, R, C", in_paper=True)

    corruption_budget: float | None = None
    """C, a bound on the sum of all corruptions' sizes; ``None`` tolerates √T."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._corruption_budget = tolerated(self.corruption_budget, self.horizon)

    def _radius(self, round_number: int) -> float:
        return self._radius_for(self._corruption_budget, round_number)

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting as given, and the numbers that came of it."""
        return super().settings | {"corruption_budget": self._corruption_budget}


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiLevelPull(Pull):
    """A pull of one level."""

    level: int
    """l, from 1: the level whose own regression learns the reward too."""


@dataclass(kw_only=True, eq=False)
class MultiLevelOFUL(_WeightedOFUL):
    """The same without knowing C: levels that see ever less of the corruption, each with a regression of its own.

    Level l = 1, …, L = ⌈log₂2T⌉ is drawn with probability 2^−l. A drawn level pulls the action with the largest of two
    upper bounds' lesser one: of the regression on all rewards, which allows for a corruption of 2^l, and of the level's
    own, which allows for 3 + log(2l²/δ), because no more is likely to reach it, and has L/δ for 1/δ in its other
    terms, because it must hold at every level. All of it holds with probability 1 − 3δ.

    >>> agent = MultiLevelOFUL(dimension=2, norm_bound=1.0, noise=0.1, horizon=100, seed=0)
    >>> actions = [[1.0, 0.0], [0.0, 1.0], [-0.6, 0.8]]
    >>> for _ in range(100):
    ...     pull = agent.ask(actions)
    ...     agent.tell(pull, [0.9, 0.1, -0.4][pull.action])
    >>> agent.recommend(actions)
    0
    """

    title = "Multi-level OFUL"
    full_title = "Multi-level weighted OFUL"
    guarantee = Guarantee("Zhao 2021", "linear contextual bandits", "weak", "Õ(dC²√T)", needs="B, R, T")

    _asks = MultiLevelPull

    def __post_init__(self) -> None:
        super().__post_init__()
        count = math.ceil(math.log2(2 * self._planned_horizon()))
        self._levels = [LeastSquares(self.dimension, self._ridge) for _ in range(count)]

    def _radius(self, round_number: int) -> float:
        """β of the first level's own regression."""
        return self._level_radius(1, round_number)

    def _level_radius(self, level: int, round_number: int) -> float:
        """β of level l's own regression."""
        corruption = 3 + math.log(2 * level**2 / self.failure_probability)
        return self._radius_for(corruption, round_number, regressions=len(self._levels))

    def _ask(self, actions: Actions) -> MultiLevelPull:
        table = self._listed(actions)
        level = self._draw_level()
        t = self._asked + 1
        own_radius = self._scale * self._level_radius(level, t)
        shared_radius = self._scale * self._radius_for(2.0**level, t)
        scores = np.minimum(
            self._regression.upper_bounds(table, shared_radius),
            self._levels[level - 1].upper_bounds(table, own_radius),
        )
        chosen = pick(scores, self._rng.random())
        features = table[chosen].copy()
        width = self._regression.information.width(features)
        return MultiLevelPull(self._asked, chosen, features, self._reward_weight, width, level=level)

    def _draw_level(self) -> int:
        """Level l = 1, 2, … with probability 2^−l; what is left over goes to the first."""
        level = 1 - math.frexp(self._rng.random())[1]
        return level if level <= len(self._levels) else 1

    def _tell(self, asked: MultiLevelPull, answer: float) -> None:  # type: ignore[override]  # it asks no others
        super()._tell(asked, answer)
        self._levels[asked.level - 1].add(asked.features, answer, asked.weight)

    def state(self) -> dict[str, Any]:
        """Everything that the agent is, as JSON values and arrays, nested in dictionaries."""
        return super().state() | {"levels": {str(i): level.state() for i, level in enumerate(self._levels)}}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._levels = [
            LeastSquares.from_state(state["levels"][str(i)], self.dimension) for i in range(len(self._levels))
        ]

    def _check_pending(self, asked: MultiLevelPull) -> None:  # type: ignore[override]
        super()._check_pending(asked)
        ensure(1 <= asked.level <= len(self._levels), f"{asked} is of no level")
