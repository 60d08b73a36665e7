"""Multi-layer Active Arm Elimination Race (Lykouris 2018)."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairduel.agents.base import Actions, KArmed, RewardAgent
from fairduel.agents.guarantee import Guarantee
from fairduel.agents.scaled_constants import Scaled
from fairduel.checks import ensure
from fairduel.duel import Pull

_DROPPED = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmRacePull(Pull):
    """A pull of one layer."""

    layer: int | None
    """The layer that learns the reward, from 0; ``None`` where none does."""


@dataclass(kw_only=True, eq=False)
class ArmRace(KArmed, Scaled, RewardAgent[ArmRacePull]):
    """Race several eliminations at once; the slower one is, the less corruption it meets, and it overrules the faster.

    Layer l = 1, …, ⌈log₂T⌉ runs in a share 2^−l of the rounds, so that of a corruption of 2^l it meets about 1. It need
    not know how much is corrupted. ``scale`` is a factor on log(4KT log T / δ), which both parts of a width have; the
    source was not read, and this logarithm is uncertain. A reward of an arm that its layer has dropped by then is not
    learned.

    >>> agent = ArmRace(arms=2, horizon=1000, seed=0)
    >>> for _ in range(1000):
    ...     pull = agent.ask()
    ...     agent.tell(pull, 1.0 if pull.action == 1 else 0.0)
    >>> agent.recommend(), agent.active.sum(axis=1)[:3].tolist()
    (1, [1, 1, 1])
    """

    title = "Arm Race"
    full_title = "Multi-layer Active Arm Elimination Race"
    guarantee = Guarantee("Lykouris 2018", "K-armed bandits", "weak", "Õ(K¹·⁵C√T)", needs="T", in_paper=True)

    _asks = ArmRacePull
    _practical_scale = 1 / 32
    _memory = ("_pulls", "_sums", "_lower", "_upper")

    def __post_init__(self) -> None:
        super().__post_init__()
        horizon = self._planned_horizon()
        self._layers = max(math.ceil(math.log2(horizon)), 1)
        inside = 4 * self.arms * horizon * max(math.log(horizon), 1.0) / self.failure_probability
        self._logarithm = self._scale * math.log(inside)
        shape = (self._layers, self.arms)
        self._pulls = np.zeros(shape, np.int64)  # n_l(a), or _DROPPED
        self._sums = np.zeros(shape)
        self._lower = np.full(shape, -np.inf)
        self._upper = np.full(shape, np.inf)

    def _check_restored(self) -> None:
        super()._check_restored()
        ensure((self._pulls >= 0).all(), "_pulls holds counts below 0")
        ensure(self.active[-1].any(), "the last layer has no arm left")

    def _check_pending(self, asked: ArmRacePull) -> None:
        super()._check_pending(asked)
        ensure(asked.layer is None or asked.layer < self._layers, f"{asked} is of no layer")

    @property
    def active(self) -> NDArray[np.bool_]:
        """Which arms are left in each layer, shape (layers, K)."""
        return np.asarray(self._pulls != _DROPPED)

    def _ask(self, actions: Actions) -> ArmRacePull:
        self._check_count(actions)
        layer = self._draw_layer()
        pulls = self._pulls[layer]
        least = pulls.min()
        if least == _DROPPED:  # nobody is left there: play for reward, and learn nothing
            return ArmRacePull(self._asked, self._any_of(self.active[self._first_layer_left()]), layer=None)
        return ArmRacePull(self._asked, self._any_of(pulls == least), layer=layer)

    def _draw_layer(self) -> int:
        """Layer l with probability 2^−l, counted from 0 here; what is left over goes to the first."""
        layer = -math.frexp(self._rng.random())[1]
        return layer if layer < self._layers else 0

    def _any_of(self, candidates: NDArray[np.bool_]) -> int:
        indices = candidates.nonzero()[0]
        return int(indices[int(self._rng.random() * len(indices))])

    def _first_layer_left(self) -> int:
        """The first layer that has an arm left; the last one always has."""
        return int(self.active.any(axis=1).argmax())

    def _tell(self, asked: ArmRacePull, answer: float) -> None:
        layer, arm = asked.layer, asked.action
        if layer is None or self._pulls[layer, arm] == _DROPPED:
            return
        self._pulls[layer, arm] += 1
        self._sums[layer, arm] += answer
        pulls = int(self._pulls[layer, arm])
        mean = self._sums[layer, arm] / pulls
        width = math.sqrt(self._logarithm / pulls) + self._logarithm / pulls
        self._lower[layer, arm], self._upper[layer, arm] = mean - width, mean + width
        doomed = self._upper[layer] < self._lower[layer].max()
        if doomed.any():
            # This layer and all faster ones, which see more of the corruption.
            self._pulls[: layer + 1, doomed] = _DROPPED
            self._lower[: layer + 1, doomed] = -np.inf
            self._upper[: layer + 1, doomed] = np.inf

    def recommend(self, actions: Actions = None) -> int:
        """Index of the arm with the highest mean in the first layer that has an arm left."""
        self._check_count(actions)
        layer = self._first_layer_left()
        means = self._sums[layer] / np.maximum(self._pulls[layer], 1)
        return int(np.argmax(np.where(self.active[layer], means, -np.inf)))
