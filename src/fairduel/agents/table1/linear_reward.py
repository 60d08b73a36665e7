"""What agents with linear rewards share: settings, weighted least squares, and optimism."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from fairduel.action_sets import checked_actions
from fairduel.agents.parts.base import Actions, Featured, PullT, RewardAgent
from fairduel.agents.table1.epochs import Scaled
from fairduel.checks import at_least_zero, ensure, positive
from fairduel.core.information import Information, checked_array
from fairduel.core.selection import pick
from fairduel.duel import Matrix, Pull, Vector
from fairduel.errors import BadInputError


@dataclass(kw_only=True, eq=False)
class LinearRewardAgent(Featured, Scaled, RewardAgent[PullT]):
    """Base of agents for rewards xᵀθ* plus noise, with actions ‖x‖ ≤ 1.

    Args:
        noise: R; the noise of a reward is R-sub-Gaussian.
    """

    noise: float

    def __post_init__(self) -> None:
        super().__post_init__()
        self.noise = positive("noise", self.noise)


@dataclass(kw_only=True, eq=False)
class FixedSetAgent(LinearRewardAgent[PullT]):
    """Base of agents that plan for one set of actions, that of the first ask.

    A subclass implements :meth:`_plan_for` and lists ``_actions`` in its ``_memory``.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self._actions: Matrix | None = None

    def _check_restored(self) -> None:
        if self._actions is not None:
            self._actions = checked_actions(self._actions, self.dimension)
        super()._check_restored()

    def _check_pending(self, asked: PullT) -> None:
        super()._check_pending(asked)
        ensure(self._actions is not None and asked.action < len(self._actions), f"{asked} is not among its actions")

    def _fixed_set(self, actions: Actions) -> Matrix:
        """Return the agent's set, which ``actions`` must equal."""
        table = self._check_set(actions)
        if self._actions is None:
            self._plan_for(table)
            self._actions = table.copy()
        return self._actions

    def _check_set(self, actions: Actions) -> Matrix:
        """Return these actions as a table, or raise if they differ from the agent's set."""
        table = self._listed(actions)
        if self._actions is not None and not np.array_equal(table, self._actions):
            raise BadInputError(
                f"{type(self).__name__} plans for one set of actions, but these differ from those of its "
                "first ask; pass the same set, or use an agent for changing sets, such as cw-oful."
            )
        return table

    @abstractmethod
    def _plan_for(self, actions: Matrix) -> None:
        """Make the first plan for these actions, shape (K, d); if it raises, they are not kept."""


class LeastSquares:
    """Weighted ridge regression: θ = Σ⁻¹b with Σ = λI + Σ_i w_i x_i x_iᵀ and b = Σ_i w_i r_i x_i.

    >>> regression = LeastSquares(dimension=2, ridge=1.0)
    >>> regression.add(np.array([1.0, 0.0]), reward=2.0, weight=3.0)
    >>> regression.estimate.tolist()
    [1.5, 0.0]
    """

    def __init__(self, dimension: int, ridge: float) -> None:
        self.information = Information(dimension, ridge)
        self._moments: Vector = np.zeros(dimension)
        self.estimate: Vector = np.zeros(dimension)
        """θ, shape (d,)."""

    def add(self, features: Vector, reward: float, weight: float) -> None:
        """Learn the reward of an action with these features (d,)."""
        self.information.add(features, weight)
        self._moments += (weight * reward) * features
        self.estimate = self.information.inverse @ self._moments

    def upper_bounds(self, actions: Matrix, radius: float) -> Vector:
        """Return xᵀθ + β‖x‖_Σ⁻¹ of each action (K, d), shape (K,)."""
        squares = ((actions @ self.information.inverse) * actions).sum(axis=1)
        return np.asarray(actions @ self.estimate + radius * np.sqrt(squares))

    def state(self) -> dict[str, Any]:
        """Return everything that :meth:`from_state` needs."""
        return {"information": self.information.state(), "moments": self._moments.copy()}

    @classmethod
    def from_state(cls, state: dict[str, Any], dimension: int) -> Self:
        """Rebuild the regression from :meth:`state`."""
        regression = cls(dimension, ridge=1.0)
        regression.information = Information.from_state(state["information"], dimension)
        regression._moments = checked_array("the moments", state["moments"], (dimension,))
        regression.estimate = regression.information.inverse @ regression._moments
        return regression


@dataclass(kw_only=True, eq=False)
class OptimisticAgent(LinearRewardAgent[Pull]):
    """Base of agents that pull argmax xᵀθ + β‖x‖_Σ⁻¹; actions may change every round.

    A subclass implements :meth:`_radius` and :meth:`_weight`. Σ and θ change only in ``tell``; ``ask`` fixes the weight
    of a reward.

    Args:
        ridge: λ; ``None`` uses the agent's default.
    """

    ridge: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.ridge = None if self.ridge is None else positive("ridge", self.ridge)
        self._ridge = self._default_ridge() if self.ridge is None else self.ridge
        self._regression = LeastSquares(self.dimension, self._ridge)

    def _default_ridge(self) -> float:
        return 1.0

    def _ask(self, actions: Actions) -> Pull:
        table = self._listed(actions)
        chosen = pick(self._regression.upper_bounds(table, self.current_radius), self._rng.random())
        features = table[chosen].copy()
        width = self._regression.information.width(features)
        return Pull(self._asked, chosen, features, self._weight(width), width)

    def _tell(self, asked: Pull, answer: float) -> None:
        self._regression.add(asked.features, answer, asked.weight)

    @abstractmethod
    def _radius(self, round_number: int) -> float:
        """Return the published β of round t."""

    @abstractmethod
    def _weight(self, width: float) -> float:
        """Return the weight of a reward, given ‖x‖_Σ⁻¹ of its action."""

    @property
    def current_radius(self) -> float:
        """β of the next pull, scaled."""
        return self._scale * self._radius(self._asked + 1)

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting, with defaults resolved."""
        return super().settings | {"ridge": self._ridge}

    @property
    def estimate(self) -> Vector:
        """θ from all rewards told, shape (d,)."""
        return self._regression.estimate.copy()

    @property
    def information(self) -> Information:
        """Σ over all rewards told."""
        return self._regression.information

    def recommend(self, actions: Actions = None) -> int:
        """Return the action with the highest estimated reward; the lowest index among equals."""
        return int(np.argmax(self._listed(actions) @ self._regression.estimate))

    def state(self) -> dict[str, Any]:
        """Return the agent's whole state as nested dictionaries of JSON values and arrays."""
        return super().state() | {"regression": self._regression.state()}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._regression = LeastSquares.from_state(state["regression"], self.dimension)

    def _check_pending(self, asked: Pull) -> None:
        super()._check_pending(asked)
        ensure(asked.features.shape == (self.dimension,), f"{asked} does not fit {self.dimension} features")


def resolved_budget(corruption_budget: float | None, horizon: int | None) -> float:
    """Return C as given, or √T if it is unknown.

    >>> resolved_budget(None, 100)
    10.0
    """
    if corruption_budget is not None:
        return at_least_zero("corruption_budget", corruption_budget)
    if horizon is None:
        raise BadInputError("set corruption_budget, or set horizon (T) to tolerate √T.")
    return math.sqrt(horizon)
