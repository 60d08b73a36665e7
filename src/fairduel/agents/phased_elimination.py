"""Robust Phased Elimination (Bogunovic 2021)."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairduel.agents.base import Actions
from fairduel.agents.epochs import EpochAgent, EpochPull
from fairduel.agents.guarantee import Guarantee
from fairduel.agents.linear_reward import FixedSetAgent
from fairduel.checks import at_least_zero, ensure
from fairduel.core.optimal_design import near_optimal_design
from fairduel.duel import Matrix, Vector

_NEVER = -(2**62)  # how often an action that is not in the design is due


@dataclass(kw_only=True, eq=False)
class PhasedElimination(EpochAgent[EpochPull], FixedSetAgent[EpochPull]):
    """In epochs that double, try what is left by an optimal design, and drop what is clearly worse than the best.

    The set of actions is that of the first ask. The adversary may see what is pulled. ``scale`` is a factor on the part
    of the margin that corruption has, and on m₀, the length of the first epoch, which stays at least 2d; m₀ =
    4d(log(1 + log d) + 18) has the inner 1 so that there is one for d = 1 and 2 too. The margin's other part is the
    published one times R, for all K actions and up to log₂T epochs at once: δ/(2K log₂T) in the place of δ. Where C is
    unknown, the guess Ĉ that takes its place is made from the scaled m₀. The practical scale is 1/100.

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

    corruption_budget: float | None = None
    """C, a bound on the sum of all corruptions' sizes; ``None``: unknown, and the source's guess takes its place."""

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
        ensure(all(len(table) == count for table in tables), f"its tables are not of {count} actions")
        ensure(count == 0 or self._active.any(), "no action is left")
        ensure((self._epoch > 0) == (count > 0), f"it has {count} actions in epoch {self._epoch}")
        ensure(self._length > 0 and (self._counts >= 0).all(), "_length or _counts is below 0")

    @property
    def active(self) -> NDArray[np.bool_]:
        """Which actions are left, shape (K,); none before the first ask."""
        return self._active.copy()

    @property
    def estimate(self) -> Vector:
        """θ of the last whole epoch, shape (d,)."""
        return self._theta.copy()

    def _plan_for(self, actions: Matrix) -> None:
        self._plan(actions, np.ones(len(actions), np.bool_))

    def _plan(self, actions: Matrix, active: NDArray[np.bool_]) -> None:
        """Say how often each action is due in the next epoch: u(a) = ⌈m max(z(a), ν)⌉ on the design's support."""
        left = active.nonzero()[0]
        support, shares = left[:1], np.ones(1)  # where only x = 0 is left there is nothing to learn of
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
        # Past what is due, while rewards are late, the counts go below zero and the support is gone round again.
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
        # What is left may span less than d dimensions: there the pseudo-inverse is the least-squares estimate.
        self._theta = np.linalg.pinv(information, hermitian=True) @ (actions.T @ self._sums)
        values = np.where(self._active, actions @ self._theta, -np.inf)
        active = self._active & (values >= values.max() - self._margin())
        self._length *= 2
        self._plan(actions, active)

    def _margin(self) -> float:
        """How far below the best an action may look and stay."""
        d, m = self.dimension, self._length
        events = 2 * len(self._active) * self._doublings  # both signs, every action, every epoch
        noise = 2 * self.noise * math.sqrt(4 * d / m * math.log(events / self.failure_probability))
        pulls_at_least = m / self._first_length  # mν, with ν = 1/m₀
        return noise + self._scale * 2 * self._tolerance() / pulls_at_least * math.sqrt(8 * d)

    def _tolerance(self) -> float:
        """C, or what the source puts in its place where it is unknown."""
        if self.corruption_budget is not None:
            return self.corruption_budget
        shrinking = self._first_length * math.sqrt(self.dimension) * 2 ** (self._doublings - (self._epoch - 1))
        return min(math.sqrt(self._rounds) / (self._first_length * self._doublings), shrinking)

    def recommend(self, actions: Actions = None) -> int:
        """Index of the action that is best by the last whole epoch, among those left; before, by what was told."""
        table = self._check_set(actions)
        if self._epoch == 0:
            return 0
        if self._epoch == 1:
            return int(np.argmax(np.where(self._counts > 0, self._sums / np.maximum(self._counts, 1), -np.inf)))
        return int(np.argmax(np.where(self._active, table @ self._theta, -np.inf)))
