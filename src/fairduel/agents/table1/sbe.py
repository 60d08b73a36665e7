"""SBE (Li, Lou and Shan 2019): our interpretation."""

import math
from dataclasses import dataclass

import numpy as np

from fairduel.agents.parts.agent import Actions, Guarantee
from fairduel.agents.table1.shared import EpochAgent, EpochPull, FixedSetAgent
from fairduel.checks import ensure
from fairduel.core.optimal_design import barycentric_spanner
from fairduel.duel import Matrix, Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class SBEPull(EpochPull):
    """A pull that explores, or plays the incumbent."""

    place: int | None
    """The spanner action that it explores, from 0; ``None`` if it plays the incumbent."""


@dataclass(kw_only=True, eq=False)
class SBE(EpochAgent[SBEPull], FixedSetAgent[SBEPull]):
    """In ever longer epochs, explore d actions that span all others; otherwise pull the best so far.

    Li, Lou and Shan 2019, for unknown C and one set of actions, that of the first ``ask``::

        b_1 … b_d ← barycentric spanner of the actions: every action is Σ c_j b_j with |c_j| ≤ 1
        λ ← scale · 1024 (2R)² d ln(8d log₂T / δ);  D ← 1
        for epoch m = 1, 2, … of N = ⌈dλ4^(m−1)⌉ pulls
            with probability (dλ/D²)/N pull a random b_j and learn, otherwise pull the best action
            value of each action ← Σ c_j · (mean reward of b_j in this epoch)
            D ← largest value − second largest, clipped to [2^−m, 1]

    **Our interpretation**: we read only the abstract, which explores the axes of a Löwner–John ellipsoid; a
    barycentric spanner does the same for a finite set. λ is BARBAR's, for noise R and d errors that add up.

    Args:
        horizon: T; required, for λ only.
        scale: Factor on λ: ``"practical"`` is 1/1024, ``"theory"`` is 1, or a number.

    >>> agent = SBE(dimension=2, norm_bound=1.0, noise=0.1, horizon=1000, seed=0)
    >>> actions = [[1.0, 0.0], [0.0, 1.0], [-0.6, 0.8]]
    >>> for _ in range(1000):
    ...     pull = agent.ask(actions)
    ...     agent.tell(pull, [0.9, 0.1, -0.4][pull.action])
    >>> agent.recommend(actions)
    0
    """

    title = "SBE"
    full_title = "SBE (our reading)"
    guarantee = Guarantee("Li 2019", "linear bandits", "weak", "Õ(d²C/Δ + d⁵/Δ²)", needs="T", in_paper=True)

    _asks = SBEPull
    _practical_scale = 1 / 1024
    _memory = (
        *("_epoch", "_awaited", "_actions", "_basis", "_coefficients"),
        *("_incumbent", "_share", "_counts", "_sums"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        doublings = max(math.log2(self._planned_horizon()), 1.0)
        logarithm = math.log(8 * self.dimension * doublings / self.failure_probability)
        self._pulls_at_gap_one = self._scale * 1024 * (2 * self.noise) ** 2 * self.dimension * logarithm  # λ
        self._basis: list[int] = []
        self._coefficients = np.empty((0, 0))
        self._counts = self._sums = np.empty(0)
        self._incumbent = 0
        self._share = 1.0  # of exploration in the epoch

    def _check_restored(self) -> None:
        super()._check_restored()
        count, rank = 0 if self._actions is None else len(self._actions), len(self._basis)
        ensure(all(type(i) is int and 0 <= i < count for i in self._basis), f"_basis is not of {count} actions")
        ensure((self._epoch > 0) == (count > 0) == (rank > 0), f"it has {count} actions in epoch {self._epoch}")
        ensure(self._coefficients.shape == (count, rank), f"_coefficients has shape {self._coefficients.shape}")
        ensure(len(self._counts) == len(self._sums) == rank, f"_counts and _sums are not of {rank} actions")
        ensure((self._counts >= 0).all() and 0 < self._share <= 1, "_counts is below 0 or _share out of (0, 1]")
        ensure(self._incumbent in range(max(count, 1)), f"_incumbent is not among {count} actions")

    def _check_pending(self, asked: SBEPull) -> None:
        super()._check_pending(asked)
        ensure(asked.place is None or asked.place < len(self._basis), f"{asked} explores nothing")

    def _plan_for(self, actions: Matrix) -> None:
        basis, self._coefficients = barycentric_spanner(actions)
        self._basis = basis.tolist()
        self._plan(gap=1.0)

    def _plan(self, gap: float) -> None:
        rank = len(self._basis)
        self._counts, self._sums = np.zeros(rank), np.zeros(rank)
        length = rank * self._pulls_at_gap_one * 4.0**self._epoch
        self._share = rank * self._pulls_at_gap_one / gap**2 / length
        self._begin(math.ceil(length))

    def _ask(self, actions: Actions) -> SBEPull:
        self._fixed_set(actions)
        place = int(self._rng.random() / self._share * len(self._basis))
        if place < len(self._basis):
            return SBEPull(self._asked, self._basis[place], epoch=self._epoch, place=place)
        return SBEPull(self._asked, self._incumbent, epoch=self._epoch, place=None)

    def _learn(self, pull: SBEPull, reward: float) -> None:
        if pull.place is not None:  # rewards of the incumbent are ignored
            self._counts[pull.place] += 1
            self._sums[pull.place] += reward

    def _end_epoch(self) -> None:
        values = self._values()
        self._incumbent = int(np.argmax(values))
        second, best = np.partition(values, -2)[-2:]
        self._plan(gap=float(np.clip(best - second, 2.0**-self._epoch, 1.0)))  # D

    def _values(self) -> Vector:
        """Return the least-squares value of each action from the exploration, shape (K,)."""
        return self._coefficients @ (self._sums / np.maximum(self._counts, 1))

    def recommend(self, actions: Actions = None) -> int:
        """Return the best action of the last full epoch; in the first epoch, by the rewards so far."""
        self._check_set(actions)
        return int(np.argmax(self._values())) if self._epoch == 1 else self._incumbent
