"""What the agents of Table 1 share: scaled constants, epochs, linear rewards, least squares, and optimism."""

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np

from fairduel.action_sets import checked_actions
from fairduel.agents.parts.agent import Actions, Featured, PullT, RewardAgent
from fairduel.checks import at_least_zero, ensure, fraction, integer, positive
from fairduel.core.information import Information, checked_array
from fairduel.core.selection import pick
from fairduel.duel import Asked, Matrix, Pull, Vector
from fairduel.errors import BadInputError, unknown_name


@dataclass(kw_only=True, eq=False)
class Scaled:
    """Mixin for agents whose published constants can be scaled down by one factor.

    Args:
        scale: Factor on the published constants: ``"theory"`` is 1, ``"practical"`` depends on the agent, or a number.
        failure_probability: δ.
    """

    published_settings: ClassVar[Mapping[str, Any]] = {"scale": "theory"}

    _practical_scale: ClassVar[float]
    _resolved: ClassVar[tuple[str, ...]] = ("scale",)

    scale: float | str = "practical"
    failure_probability: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()  # type: ignore[misc]  # the agent's, next in the MRO
        self.failure_probability = fraction("failure_probability", self.failure_probability)
        known = {"practical": self._practical_scale, "theory": 1.0}
        if isinstance(self.scale, str):
            if self.scale not in known:
                raise unknown_name("scale", self.scale, [*known, "a number"])
            self._scale = known[self.scale]
        else:
            self._scale = self.scale = positive("scale", self.scale)


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochPull(Pull):
    """A pull in one epoch."""

    epoch: int
    """The epoch in which it was asked, from 1."""


EpochPullT = TypeVar("EpochPullT", bound=EpochPull)


@dataclass(kw_only=True, eq=False)
class EpochAgent(Scaled, RewardAgent[EpochPullT]):
    """Base of agents that plan an epoch of N pulls, and the next one after N rewards.

    With immediate feedback this is the published order. A reward that arrives after its epoch is not learned. A
    subclass lists ``_epoch`` and ``_awaited`` in its ``_memory``.
    """

    _asks: ClassVar[type[Asked]] = EpochPull

    def __post_init__(self) -> None:
        super().__post_init__()
        self._epoch = 0
        self._awaited = 0

    def _check_restored(self) -> None:
        super()._check_restored()
        integer("_epoch", self._epoch)
        integer("_awaited", self._awaited, least=min(self._epoch, 1))

    def _check_pending(self, asked: EpochPullT) -> None:
        super()._check_pending(asked)
        ensure(1 <= asked.epoch <= self._epoch, f"{asked} belongs to no epoch")

    @property
    def epoch(self) -> int:
        """The current epoch, from 1; 0 before the first ask of an agent that needs the actions to start."""
        return self._epoch

    def _begin(self, length: int) -> None:
        """Start the next epoch, which ends after ``length`` rewards."""
        self._epoch += 1
        self._awaited = length

    def _tell(self, asked: EpochPullT, answer: float) -> None:
        if asked.epoch != self._epoch:
            return
        self._learn(asked, answer)
        self._awaited -= 1
        if self._awaited == 0:
            self._end_epoch()

    @abstractmethod
    def _learn(self, pull: EpochPullT, reward: float) -> None:
        """Learn one reward of the current epoch."""

    @abstractmethod
    def _end_epoch(self) -> None:
        """Evaluate the epoch, and begin the next one."""


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
        """Return everything that :meth:`restore` needs."""
        return {"information": self.information.state(), "moments": self._moments.copy()}

    def restore(self, state: dict[str, Any], most: int) -> None:  # noqa: ARG002  # rewards are not counted
        """Load what :meth:`state` returned, after checking it."""
        self.information = Information.from_state(state["information"], len(self._moments))
        self._moments = checked_array("the moments", state["moments"], self._moments.shape)
        self.estimate = self.information.inverse @ self._moments


@dataclass(kw_only=True, eq=False)
class OptimisticAgent(LinearRewardAgent[Pull]):
    """Base of agents that pull argmax xᵀθ + β‖x‖_Σ⁻¹; actions may change every round.

    A subclass implements :meth:`_radius` and :meth:`_weight`. Σ and θ change only in ``tell``; ``ask`` fixes the weight
    of a reward.

    Args:
        ridge: λ; ``None`` uses 1.
    """

    ridge: float | None = None

    _parts: ClassVar[tuple[str, ...]] = ("_regression",)
    _resolved: ClassVar[tuple[str, ...]] = ("ridge",)

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
