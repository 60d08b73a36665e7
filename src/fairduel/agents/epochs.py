"""Base of agents that work in epochs."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from fairduel.agents.base import RewardAgent
from fairduel.agents.scaled_constants import Scaled
from fairduel.checks import ensure, integer
from fairduel.duel import Asked, Pull


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
