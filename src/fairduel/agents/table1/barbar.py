"""BARBAR: Bad Arms get Recourse (Gupta 2019)."""

import math
from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

from fairduel.agents.parts.agent import Actions, Guarantee, KArmed
from fairduel.agents.table1.shared import EpochAgent, EpochPull
from fairduel.checks import ensure


@dataclass(kw_only=True, eq=False)
class BARBAR(KArmed, EpochAgent[EpochPull]):
    """Pull every arm in every epoch, less often the worse it looked in the last one; never drop any.

    Bad Arms get Recourse (Gupta 2019), for rewards in [0, 1] and unknown C::

        λ ← scale · 1024 ln(8K log₂T / δ);  D_i ← 1
        for epoch m = 1, 2, …
            n_i ← λ/D_i²;  for ⌈Σ n_i⌉ rounds pull arm i with probability n_i/Σn
            r_i ← (sum of the rewards of i in this epoch)/n_i
            D_i ← max(2^−m, max_j (r_j − D_j/16) − r_i)

    Departures: none but the scale; at K = 10 the published first epoch takes 100,000 rounds. An epoch ends when all its
    rewards are told; later rewards of that epoch are not learned.

    Args:
        horizon: T; required, for λ only.
        scale: Factor on λ: ``"practical"`` is 1/2048, ``"theory"`` is 1, or a number.

    >>> agent = BARBAR(arms=2, horizon=1000, seed=0)
    >>> for _ in range(1000):
    ...     pull = agent.ask()
    ...     agent.tell(pull, 1.0 if pull.action == 1 else 0.0)
    >>> agent.recommend(), agent.epoch
    (1, 5)
    """

    title = "BARBAR"
    guarantee = Guarantee("Gupta 2019", "K-armed bandits", "weak", "Õ(√(KT) + KC)", needs="T", in_paper=True)

    _practical_scale = 1 / 2048
    _memory = ("_epoch", "_awaited", "_gaps", "_sums")

    def __post_init__(self) -> None:
        super().__post_init__()
        doublings = max(math.log2(self._planned_horizon()), 1.0)
        logarithm = math.log(8 * self.arms * doublings / self.failure_probability)
        self._pulls_at_gap_one = self._scale * 1024 * logarithm  # λ
        self._gaps = np.ones(self.arms)
        self._plan()

    def _plan(self) -> None:
        self._share_out()
        self._sums = np.zeros(self.arms)
        self._begin(math.ceil(float(self._expected.sum())))

    def _share_out(self) -> None:
        self._expected = self._pulls_at_gap_one / self._gaps**2  # n_i
        self._cumulative: list[float] = (np.cumsum(self._expected) / float(self._expected.sum())).tolist()
        self._cumulative[-1] = 1.0

    def _check_restored(self) -> None:
        super()._check_restored()
        ensure((self._gaps > 0).all(), "_gaps holds a gap of 0 or less")
        ensure(self._epoch > 0, "its epoch has not begun")
        self._share_out()

    def _ask(self, actions: Actions) -> EpochPull:
        self._check_count(actions)
        arm = bisect_right(self._cumulative, self._rng.random())
        return EpochPull(self._asked, arm, epoch=self._epoch)

    def _learn(self, pull: EpochPull, reward: float) -> None:
        self._sums[pull.action] += reward

    def _end_epoch(self) -> None:
        means = self._sums / self._expected  # by the expected number of pulls, not the actual one
        best = float((means - self._gaps / 16).max())
        self._gaps = np.maximum(2.0**-self._epoch, best - means)
        self._plan()

    def recommend(self, actions: Actions = None) -> int:
        """Return the arm with the smallest gap in the last full epoch; in the first, that with the largest reward."""
        self._check_count(actions)
        return int(np.argmax(self._sums / self._expected if self._epoch == 1 else -self._gaps))
