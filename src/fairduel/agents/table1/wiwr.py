"""WIWR: Winner Isolation With Recourse (Agarwal 2021)."""

import math
from dataclasses import dataclass

import numpy as np

from fairduel.agents.parts.agent import Actions, DuelingAgent, Guarantee, KArmed
from fairduel.agents.table1.shared import Scaled
from fairduel.checks import ensure, integer
from fairduel.core.selection import draw
from fairduel.duel import Duel, Outcome, Vector

THEORY_LENGTH = 2304.0
"""λ = 2304 ln(40 K² log T / δ), as published."""
PRACTICAL_SCALE = 0.3 / THEORY_LENGTH
"""The practical scale, chosen by hand."""
SLACK = 1.0 / 8.0
"""The share of the last gap that is subtracted from a new one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WIWRDuel(Duel):
    """A challenger against the candidate."""

    epoch: int
    """The epoch m in which it was asked, from 1."""
    challenger_first: bool
    """Whether the first arm is the challenger."""


@dataclass(kw_only=True, eq=False)
class WIWR(KArmed, Scaled, DuelingAgent[WIWRDuel]):
    """Let arms challenge a candidate in epochs, bad-looking ones less often, without ever giving up on any.

    Winner Isolation With Recourse (Agarwal 2021), for unknown C; P counts wins minus losses across epochs::

        λ ← scale · 2304 ln(40 K² log T / δ);  D_i ← ½;  v ← a random arm;  P ← 0
        for epoch m = 1, 2, …
            n_i ← ⌈λ/D_i²⌉, N ← Σ n_i
            for N rounds: draw u with probability n_u/N and ask u against v; count a win in P and, if u won, in r[u, v]
                if P[u, v] > 0: v ← u
            q_i ← r[i, j]/(n_i · j's share of the rounds), q_j ← ½, if some j was candidate for N/2 rounds
                  or Σ_j r[i, j]/n_i, if none was
            D_i ← max(2^−m, ½ − q_i − D_i/8); if all exceed 2^−m, the smallest ← 2^−m

    The published first epoch has about 4Kλ duels, over a million at K = 10; smaller scales carry no guarantee.

    Departures: n_i is rounded up. An epoch ends after N of its outcomes; a later outcome counts only in P. An arm
    replaces the candidate that it beat only while that one is still the candidate. A tie is half a win and leaves P
    unchanged.

    Args:
        horizon: T, for λ only; ``None`` uses the round in which the epoch began.
        scale: Factor on λ: ``"practical"`` is 0.3/2304, ``"theory"`` is 1, or a number.

    >>> agent = WIWR(arms=3, horizon=2000, seed=0)
    >>> for _ in range(2000):
    ...     duel = agent.ask()
    ...     agent.tell(duel, Outcome.FIRST if duel.first >= duel.second else Outcome.SECOND)
    >>> agent.recommend()
    2
    """

    title = "WIWR"
    guarantee = Guarantee(
        "Agarwal 2021", "K-armed dueling bandits", "weak", "Õ(K²C/Δ_min + Σ K²/Δ_i²)", needs="T", in_paper=True
    )

    _asks = WIWRDuel
    _practical_scale = PRACTICAL_SCALE
    _memory = ("_candidate", "_leads", "_gaps", "_epoch", "_due", "_told", "_reigns", "_wins")

    def __post_init__(self) -> None:
        super().__post_init__()
        self._candidate = int(self._rng.integers(self.arms))  # v
        self._leads = np.zeros((self.arms, self.arms))  # P: wins of row over column minus its losses
        self._gaps = np.full(self.arms, 0.5)  # D
        self._epoch = 0
        self._begin_epoch()

    def _check_restored(self) -> None:
        super()._check_restored()
        integer("_epoch", self._epoch, least=1)
        integer("_told", self._told)
        ensure(self._candidate in range(self.arms), f"_candidate is not one of {self.arms} arms")
        ensure((self._leads == -self._leads.T).all(), "_leads is not antisymmetric")
        ensure((self._gaps > 0).all() and (self._due >= 1).all(), "_gaps or _due is not positive")
        ensure((self._reigns >= 0).all() and (self._wins >= 0).all(), "_reigns or _wins is below 0")
        ensure(self._told < self._due.sum(), "its epoch is over")

    def _check_pending(self, asked: WIWRDuel) -> None:
        super()._check_pending(asked)
        ensure(1 <= asked.epoch <= self._epoch, f"{asked} belongs to no epoch")

    @property
    def epoch(self) -> int:
        """The current epoch m, from 1."""
        return self._epoch

    @property
    def gaps(self) -> Vector:
        """D, each arm's estimated gap to the winner, shape (K,)."""
        return self._gaps.copy()

    def recommend(self, actions: Actions = None) -> int:
        """Return the candidate."""
        self._check_count(actions)
        return self._candidate

    def _ask(self, actions: Actions) -> WIWRDuel:
        self._check_count(actions)
        challenger, candidate = draw(self._due, self._rng.random()), self._candidate
        challenger_first = self._rng.random() < 0.5
        first, second = (challenger, candidate) if challenger_first else (candidate, challenger)
        return WIWRDuel(self._asked, first, second, epoch=self._epoch, challenger_first=challenger_first)

    def _tell(self, asked: WIWRDuel, answer: Outcome) -> None:
        challenger, candidate = asked.first, asked.second
        won = 0.5 if asked.is_self_duel else answer.first_share  # Z
        if not asked.challenger_first:
            challenger, candidate, won = candidate, challenger, 1.0 - won
        self._leads[challenger, candidate] += 2.0 * won - 1.0
        self._leads[candidate, challenger] -= 2.0 * won - 1.0
        if asked.epoch == self._epoch:
            self._reigns[candidate] += 1.0
            self._wins[challenger, candidate] += won
            self._told += 1
        if candidate == self._candidate and self._leads[challenger, candidate] > 0.0:
            self._candidate = challenger
        if self._told >= self._due.sum():
            self._end_epoch()

    def _begin_epoch(self) -> None:
        self._epoch += 1
        self._due = np.ceil(self._length / self._gaps**2)  # n
        self._told = 0
        self._reigns = np.zeros(self.arms)  # W: how long each arm was candidate
        self._wins = np.zeros((self.arms, self.arms))  # r: wins of row as the challenger of column

    def _end_epoch(self) -> None:
        total = self._due.sum()  # N
        keeper = int(np.argmax(self._reigns))
        if self._reigns[keeper] >= total / 2.0:
            chances = self._wins[:, keeper] / (self._reigns[keeper] / total * self._due)
            chances[keeper] = 0.5
        else:
            chances = self._wins.sum(axis=1) / self._due
        least = 2.0**-self._epoch
        self._gaps = np.maximum(least, 0.5 - chances - SLACK * self._gaps)
        if self._gaps.min() > least:
            self._gaps[np.argmin(self._gaps)] = least
        self._begin_epoch()

    @property
    def _length(self) -> float:
        """λ, scaled."""
        horizon = max(self._horizon_or(self._asked), 3)
        logarithm = math.log(40.0 * self.arms**2 * math.log(horizon) / self.failure_probability)
        return self._scale * THEORY_LENGTH * logarithm
