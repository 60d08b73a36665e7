"""Robust weighted OFUL, and its multi-level form for unknown C (Zhao 2021)."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fairduel.agents.parts.agent import Actions, Guarantee
from fairduel.agents.table1.shared import LeastSquares, OptimisticAgent, resolved_budget
from fairduel.checks import ensure
from fairduel.core.selection import draw_level, pick
from fairduel.duel import Pull


@dataclass(kw_only=True, eq=False)
class _WeightedOFUL(OptimisticAgent):
    """The weight 1/σ̄² with σ̄ = max{(R + 1)/√d, R}, and the radius, of both forms.

    In the source the variance σ_t² of a reward is known and varies. Here only R is known, so σ_t = R, all weights are
    equal, and robustness comes from the radius alone.
    """

    _practical_scale = 1 / 50

    def __post_init__(self) -> None:
        super().__post_init__()
        deviation = max((self.noise + 1) / math.sqrt(self.dimension), self.noise)  # σ̄
        self._reward_weight = deviation**-2

    def _weight(self, width: float) -> float:  # noqa: ARG002
        return self._reward_weight

    def _radius_for(self, corruption: float, round_number: int, regressions: int = 1) -> float:
        """Return β_t with ``corruption`` for C, valid for that many ``regressions`` at once.

        The last term is C√d because a corruption c of one reward counts |c|·‖x/σ̄‖_Σ⁻¹/σ̄ ≤ |c|√d/(R + 1).
        """
        d = self.dimension
        growth = math.log(1 + round_number / ((self.noise + 1) ** 2 * self._ridge))
        failure = math.log(4 * round_number**2 * regressions / self.failure_probability)
        noise = 8 * math.sqrt(d * growth * failure) + 4 * math.sqrt(d) * failure
        return noise + math.sqrt(self._ridge) * self.norm_bound + corruption * math.sqrt(d)


@dataclass(kw_only=True, eq=False)
class WeightedOFUL(_WeightedOFUL):
    """Be optimistic enough that a total corruption of C cannot hide the best action.

    Robust weighted OFUL (Zhao 2021), with σ̄ = max((R + 1)/√d, R)::

        for t = 1 … T
            θ ← Σ⁻¹b
            pull x = argmax xᵀθ + β_t(C)‖x‖_Σ⁻¹
            reward r: Σ ← Σ + xxᵀ/σ̄²,  b ← b + r·x/σ̄²
        β_t(C) = scale · [8√(d log(1 + t/((R+1)²λ)) log(4t²/δ)) + 4√d log(4t²/δ) + √λ B + C√d]

    Departures: the constants come from the authors' code and the abstract; the code has 2C√d, which the proof does not
    need, and a factor of 0.6 on β. The source knows the variance of each reward; here it is R² for all.

    Args:
        corruption_budget: C, a bound on the summed absolute corruptions; ``None`` tolerates √T and needs ``horizon``.
        scale: Factor on β: ``"practical"`` is 1/50, ``"theory"`` is 1, or a number.

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

    assumes_by_default: ClassVar[str] = "C = √T"
    _resolved = ("corruption_budget",)

    corruption_budget: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._corruption_budget = resolved_budget(self.corruption_budget, self.horizon)

    def _radius(self, round_number: int) -> float:
        return self._radius_for(self._corruption_budget, round_number)


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiLevelPull(Pull):
    """A pull at one level."""

    level: int
    """l, from 1; the level whose own regression also learns the reward."""


@dataclass(kw_only=True, eq=False)
class MultiLevelOFUL(_WeightedOFUL):
    """Weighted OFUL for unknown C: levels that see less and less of the corruption, each with its own regression.

    Multi-level weighted OFUL (Zhao 2021), with L = ⌈log₂2T⌉ levels and β_t(C) of :class:`WeightedOFUL`::

        for t = 1 … T
            draw level l = 1 … L with probability 2^−l, the remainder going to level 1
            pull x = argmax min(xᵀθ + β_t(2^l)‖x‖_Σ⁻¹,  xᵀθ_l + γ_t(l)‖x‖_Σ_l⁻¹)
            reward r: update Σ, b and Σ_l, b_l as in weighted OFUL

    γ_t(l) is β_t(3 + log(2l²/δ)) with L/δ for 1/δ: no more corruption is likely to reach level l, and the bound must
    hold at every level. All bounds hold together with probability 1 − 3δ. Departures are those of
    :class:`WeightedOFUL`.

    Args:
        horizon: T; required.
        scale: Factor on β and γ: ``"practical"`` is 1/50, ``"theory"`` is 1, or a number.

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
    _parts = ("_regression", "_levels")

    def __post_init__(self) -> None:
        super().__post_init__()
        count = math.ceil(math.log2(2 * self._planned_horizon()))
        self._levels = [LeastSquares(self.dimension, self._ridge) for _ in range(count)]

    def _radius(self, round_number: int) -> float:
        """Return β of the first level's own regression."""
        return self._level_radius(1, round_number)

    def _level_radius(self, level: int, round_number: int) -> float:
        """Return β of level l's own regression."""
        corruption = 3 + math.log(2 * level**2 / self.failure_probability)
        return self._radius_for(corruption, round_number, regressions=len(self._levels))

    def _ask(self, actions: Actions) -> MultiLevelPull:
        table = self._listed(actions)
        level = draw_level(self._rng, len(self._levels))
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

    def _tell(self, asked: MultiLevelPull, answer: float) -> None:  # type: ignore[override]  # it asks only these
        super()._tell(asked, answer)
        self._levels[asked.level - 1].add(asked.features, answer, asked.weight)

    def _check_pending(self, asked: MultiLevelPull) -> None:  # type: ignore[override]
        super()._check_pending(asked)
        ensure(1 <= asked.level <= len(self._levels), f"{asked} belongs to no level")
