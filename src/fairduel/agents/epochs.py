"""What agents that work in epochs share: how one ends, and what comes too late for it."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from fairduel.agents.base import RewardAgent
from fairduel.agents.scaled_constants import Scaled
from fairduel.checks import ensure, integer
from fairduel.duel import Asked, Pull


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochPull(Pull):
    """A pull of one epoch."""

    epoch: int
    """Number of the epoch in which it was asked, from 1."""


EpochPullT = TypeVar("EpochPullT", bound=EpochPull)


@dataclass(kw_only=True, eq=False)
class EpochAgent(Scaled, RewardAgent[EpochPullT]):
    """Plans an epoch of N pulls, and when N rewards were told plans the next one.

    Feedback at once makes that the published order. A reward that comes when its epoch is over is not learned: the next
    plan was made without it. A subclass has ``_epoch`` and ``_awaited`` in its memory.
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
        ensure(1 <= asked.epoch <= self._epoch, f"{asked} is of no epoch")

    @property
    def epoch(self) -> int:
        """Number of the epoch it is in: 1, 2, and so on; 0 before the first ask where that must tell the actions."""
        return self._epoch

    def _begin(self, length: int) -> None:
        """Start the next epoch, which ends when ``length`` rewards were told."""
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
        """Take in one reward of the current epoch."""

    @abstractmethod
    def _end_epoch(self) -> None:
        """Decide what the epoch's rewards say, and begin the next one."""
