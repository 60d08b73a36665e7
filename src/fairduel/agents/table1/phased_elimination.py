"""Robust Phased Elimination (Bogunovic 2021)."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fairduel.agents.parts.agent import Actions, Guarantee
from fairduel.agents.table1.shared import EpochAgent, EpochPull, FixedSetAgent
from fairduel.checks import at_least_zero, ensure
from fairduel.core.optimal_design import near_optimal_design
from fairduel.duel import Matrix, Vector

_NEVER = -(2**62)  # due count of an action outside the design


@dataclass(kw_only=True, eq=False)
class PhasedElimination(EpochAgent[EpochPull], FixedSetAgent[EpochPull]):
    """In doubling epochs, sample the remaining actions by an optimal design and drop clearly worse ones.

    Robust Phased Elimination (Bogunovic 2021), for one set of actions, that of the first ``ask``::

        m₀ ← max(2d, scale · 4d(log(1 + log d) + 18));  m ← m₀;  A ← all actions
        for epoch h = 0, 1, …
            z ← design on A with max ‖a‖²_Γ⁻¹ ≤ 1.05 d for Γ = Σ z(a) a aᵀ
            pull each action of its support ⌈m · max(z(a), 1/m₀)⌉ times;  θ ← least squares of this epoch
            margin ← 2R√(4d/m · log(2K log₂T/δ)) + scale · 2Ĉm₀/m · √(8d)
            A ← actions of A with xᵀθ within the margin of the best;  m ← 2m

    Ĉ is C or, if C is unknown, min(√T/(m₀ log₂T), m₀√d · 2^(log₂T − h)).

    Departures: the noise part of the margin is multiplied by R, and holds for all K actions and log₂T epochs at once
    (the source has log(1/δ)). The inner 1 of m₀ makes it valid for d = 1 and 2. If C is unknown, Ĉ is scaled twice:
    in m₀ and in the margin.

    Args:
        horizon: T; required.
        corruption_budget: C, a bound on the summed absolute corruptions; ``None`` uses the source's guess Ĉ.
        scale: Factor on m₀ and on the margin's corruption part: ``"practical"`` is 1/100, ``"theory"`` is 1, or a
            number.

    >>> agent = PhasedElimination(dimension=2, norm_bound=1.0, noise=0.1, corruption_budget=5, horizon=1000, seed=0)
    >>> actions = [[1.0, 0.0], [0.0, 1.0], [-0.6, 0.8]]
    >>> for _ in range(1000):
    ...     pull = agent.ask(actions)
    ...     agent.tell(pull, [0.9, 0.1, -0.4][pull.action])
    >>> agent.recommend(actions), agent.active.tolist()
    (0, [True, False, False])
    """

    title = "Phased Elimination"
    full_title = "Robust Phased Elimination"
    guarantee = Guarantee(
        "Bogunovic 2021", "linear bandits", "strong", "Õ(√(dT) + d¹·⁵C + C²)", needs="T, C", in_paper=True
    )

    _practical_scale = 1 / 100
    _memory = ("_epoch", "_awaited", "_actions", "_active", "_length", "_due", "_counts", "_sums", "_theta")

    assumes_by_default: ClassVar[str] = "its authors' guess of C"

    corruption_budget: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.corruption_budget is not None:
            self.corruption_budget = at_least_zero("corruption_budget", self.corruption_budget)
        d, self._rounds = self.dimension, self._planned_horizon()
        self._doublings = max(math.log2(self._rounds), 1.0)
        self._first_length = max(self._scale * 4 * d * (math.log(1 + math.log(d)) + 18), 2.0 * d)  # m₀
        self._length = self._first_length  # m
        self._theta: Vector = np.zeros(d)
        self._active: NDArray[np.bool_] = np.empty(0, np.bool_)
        self._due: NDArray[np.int64] = np.empty(0, np.int64)
        self._counts = self._sums = np.empty(0)

    def _check_restored(self) -> None:
        super()._check_restored()
        count = 0 if self._actions is None else len(self._actions)
        tables = (self._active, self._due, self._counts, self._sums)
        ensure(all(len(table) == count for table in tables), f"its tables do not have {count} actions")
        ensure(count == 0 or self._active.any(), "no action is left")
        ensure((self._epoch > 0) == (count > 0), f"it has {count} actions in epoch {self._epoch}")
        ensure(self._length > 0 and (self._counts >= 0).all(), "_length or _counts is below 0")

    @property
    def active(self) -> NDArray[np.bool_]:
        """Which actions are still active, shape (K,); empty before the first ask."""
        return self._active.copy()

    @property
    def estimate(self) -> Vector:
        """θ of the last full epoch, shape (d,)."""
        return self._theta.copy()

    def _plan_for(self, actions: Matrix) -> None:
        self._plan(actions, np.ones(len(actions), np.bool_))

    def _plan(self, actions: Matrix, active: NDArray[np.bool_]) -> None:
        """Plan the next epoch: u(a) = ⌈m max(z(a), ν)⌉ pulls of each action in the design's support."""
        left = active.nonzero()[0]
        support, shares = left[:1], np.ones(1)  # if only x = 0 is left, there is nothing to learn
        if actions[active].any():
            design = near_optimal_design(actions[active])
            support = left[design.support]
            shares = np.maximum(design.weights[design.support], 1 / self._first_length)
        self._active = active
        self._due = np.full(len(actions), _NEVER, np.int64)
        self._due[support] = np.ceil(self._length * shares)
        self._counts, self._sums = np.zeros(len(actions)), np.zeros(len(actions))
        self._begin(int(self._due[support].sum()))

    def _ask(self, actions: Actions) -> EpochPull:
        self._fixed_set(actions)
        # While rewards are late, due counts may go below zero: the support is then cycled through again.
        chosen = int(self._due.argmax())
        self._due[chosen] -= 1
        return EpochPull(self._asked, chosen, epoch=self._epoch)

    def _cancel(self, asked: EpochPull) -> None:
        if asked.epoch == self._epoch:
            self._due[asked.action] += 1

    def _learn(self, pull: EpochPull, reward: float) -> None:
        self._counts[pull.action] += 1
        self._sums[pull.action] += reward

    def _end_epoch(self) -> None:
        actions = self._actions
        assert actions is not None
        information = (actions.T * self._counts) @ actions
        # The remaining actions may span less than d dimensions, hence the pseudo-inverse.
        self._theta = np.linalg.pinv(information, hermitian=True) @ (actions.T @ self._sums)
        values = np.where(self._active, actions @ self._theta, -np.inf)
        active = self._active & (values >= values.max() - self._margin())
        self._length *= 2
        self._plan(actions, active)

    def _margin(self) -> float:
        """Return how far below the best an action may look and stay."""
        d, m = self.dimension, self._length
        events = 2 * len(self._active) * self._doublings  # both signs, every action, every epoch
        noise = 2 * self.noise * math.sqrt(4 * d / m * math.log(events / self.failure_probability))
        pulls_at_least = m / self._first_length  # mν, with ν = 1/m₀
        return noise + self._scale * 2 * self._tolerance() / pulls_at_least * math.sqrt(8 * d)

    def _tolerance(self) -> float:
        """Return C, or the source's guess if it is unknown."""
        if self.corruption_budget is not None:
            return self.corruption_budget
        shrinking = self._first_length * math.sqrt(self.dimension) * 2 ** (self._doublings - (self._epoch - 1))
        return min(math.sqrt(self._rounds) / (self._first_length * self._doublings), shrinking)

    def recommend(self, actions: Actions = None) -> int:
        """Return the best active action by the last full epoch; before that, by the rewards so far."""
        table = self._check_set(actions)
        if self._epoch == 0:
            return 0
        if self._epoch == 1:
            return int(np.argmax(np.where(self._counts > 0, self._sums / np.maximum(self._counts, 1), -np.inf)))
        return int(np.argmax(np.where(self._active, table @ self._theta, -np.inf)))
