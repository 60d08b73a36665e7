"""Multi-layer Active Arm Elimination Race (Lykouris 2018)."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairduel.agents.parts.agent import Actions, Guarantee, KArmed, RewardAgent
from fairduel.agents.table1.shared import Scaled
from fairduel.checks import ensure
from fairduel.core.selection import draw_level
from fairduel.duel import Pull

_DROPPED = np.iinfo(np.int64).max  # the pull count of an eliminated arm


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmRacePull(Pull):
    """A pull by one layer."""

    layer: int | None
    """The layer that learns the reward, from 0; ``None`` if none does."""


@dataclass(kw_only=True, eq=False)
class ArmRace(KArmed, Scaled, RewardAgent[ArmRacePull]):
    """Run several eliminations in parallel; slower ones meet less corruption and overrule faster ones.

    Multi-layer Active Arm Elimination Race (Lykouris 2018), for rewards in [0, 1] and unknown C. Layer l gets a share
    2^−l of the rounds, so it meets about 1 of a total corruption of 2^l::

        for t = 1 … T
            draw layer l = 1 … ⌈log₂T⌉ with probability 2^−l, the remainder going to layer 1
            if l has active arms: pull the least pulled one and add its reward to the layer's mean m_l
                drop a′ from layers 1 … l if m_l(a) − m_l(a′) > width(a) + width(a′) for some a
            else: pull any active arm of the first layer that has one, and learn nothing
        width(a) = √(L/n_l(a)) + L/n_l(a) with L = scale · log(4KT log T / δ)

    Departures: we did not read the source; the structure and the logarithm L come from secondary sources. A reward is
    not learned if its layer has dropped the arm in the meantime.

    Args:
        horizon: T; required.
        scale: Factor on L: ``"practical"`` is 1/32, ``"theory"`` is 1, or a number.

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
        ensure(asked.layer is None or asked.layer < self._layers, f"{asked} belongs to no layer")

    @property
    def active(self) -> NDArray[np.bool_]:
        """Which arms are still active in each layer, shape (layers, K)."""
        return np.asarray(self._pulls != _DROPPED)

    def _ask(self, actions: Actions) -> ArmRacePull:
        self._check_count(actions)
        layer = draw_level(self._rng, self._layers) - 1
        pulls = self._pulls[layer]
        least = pulls.min()
        if least == _DROPPED:  # no arm is left there: play for reward, and learn nothing
            return ArmRacePull(self._asked, self._any_of(self.active[self._first_layer_left()]), layer=None)
        return ArmRacePull(self._asked, self._any_of(pulls == least), layer=layer)

    def _any_of(self, candidates: NDArray[np.bool_]) -> int:
        indices = candidates.nonzero()[0]
        return int(indices[int(self._rng.random() * len(indices))])

    def _first_layer_left(self) -> int:
        """Return the first layer with an active arm; the last layer always has one."""
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
            # Also from all faster layers, which see more of the corruption.
            self._pulls[: layer + 1, doomed] = _DROPPED
            self._lower[: layer + 1, doomed] = -np.inf
            self._upper[: layer + 1, doomed] = np.inf

    def recommend(self, actions: Actions = None) -> int:
        """Return the arm with the highest mean in the first layer with an active arm."""
        self._check_count(actions)
        layer = self._first_layer_left()
        means = self._sums[layer] / np.maximum(self._pulls[layer], 1)
        return int(np.argmax(np.where(self.active[layer], means, -np.inf)))
