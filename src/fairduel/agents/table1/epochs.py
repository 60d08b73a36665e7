"""Bases of agents that work in epochs, and of those whose published constants were made for proofs."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from fairduel.agents.parts.base import RewardAgent
from fairduel.checks import ensure, fraction, integer, positive
from fairduel.duel import Asked, Pull
from fairduel.errors import unknown_name


@dataclass(kw_only=True, eq=False)
class Scaled:
    """Mixin for agents whose published constants can be scaled down by one factor.

    Args:
        scale: Factor on the published constants: ``"theory"`` is 1, ``"practical"`` depends on the agent, or a number.
        failure_probability: δ of the published constants.
    """

    published_settings: ClassVar[Mapping[str, Any]] = {"scale": "theory"}

    _practical_scale: ClassVar[float]

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

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting, with defaults resolved."""
        given: dict[str, Any] = super().settings  # type: ignore[misc]
        return given | {"scale": self._scale}


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
