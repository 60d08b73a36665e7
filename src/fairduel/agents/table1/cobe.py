"""COBE: Corruption-robustness through Balancing and Elimination (Wei 2022)."""

import itertools
import math
import sys
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from fairduel.agents.parts.agent import Actions, Guarantee, RewardAgent
from fairduel.agents.table1.cw_oful import CWOFUL
from fairduel.agents.table1.phased_elimination import PhasedElimination
from fairduel.agents.table1.shared import FixedSetAgent, LinearRewardAgent
from fairduel.agents.table1.weighted_oful import WeightedOFUL
from fairduel.by_name import find, make
from fairduel.checks import ensure, finite, integer, positive
from fairduel.duel import Pull
from fairduel.errors import BadInputError

BASES: dict[str, type[RewardAgent[Any]]] = {
    "cw-oful": CWOFUL,
    "weighted-oful": WeightedOFUL,
    "phased-elimination": PhasedElimination,
}
"""Agents that take a corruption budget, which COBE estimates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class COBEPull(Pull):
    """A pull by one of the base agents."""

    restarts: int
    """Number of restarts before it; after another restart its reward is not learned."""
    base: int
    """Index of the base agent that asked it."""
    base_number: int
    """Its number among that agent's pulls."""


@dataclass(kw_only=True, eq=False)
class COBE(LinearRewardAgent[COBEPull]):
    """Estimate C online: run a base agent for several guesses of C, and drop the smallest when it fails a test.

    Corruption-robustness through Balancing and Elimination (Wei 2022), with R(t, θ) = √(b₁t) + b₂θ + b₃ the base
    agent's regret bound under corruption θ::

        k ← max(0, ⌈log₂(R(T, c_max)/b₂)⌉)
        repeat
            for guess i = k … ⌈log₂(c_max T)⌉: a_i ← 2^(k−i−1), and a_k the remainder
                start a base agent with budget θ_i = 1.25 a_i 2^i + scale · 21 c_max log(T/δ)
            for t = 1, 2, …: draw i with probability a_i; base i asks and learns
                N_i, R_i: its pulls and summed rewards
                stop if for some i < j
                    (R_i + R(N_i, θ_i))/a_i < R_j/a_j − scale · 8(√(t log(T/δ)/a_j) + (log(T/δ) + θ_j)/a_j)
            k ← k + 1

    **For weak adversaries only**: it relies on a base agent that plays a share of the rounds meeting about that share
    of the corruption. An adversary that sees the action can spend everything on one base. With the published constants
    the test cannot fire at short horizons: see :attr:`earliest_restart`.

    Departures: k is at most ⌈log₂(c_max T)⌉. Rewards of pulls asked before a restart are not learned.

    Args:
        horizon: T; required.
        base: The base agent: ``"cw-oful"``, ``"weighted-oful"``, ``"phased-elimination"``, or ``module:Name``.
        base_settings: Settings of the base agent, without its corruption budget.
        largest_corruption: c_max, a bound on the corruption of one reward.
        regret_per_root: b₁; ``None`` uses d², that of CW-OFUL without logarithms.
        regret_per_corruption: b₂; ``None`` uses d.
        regret_constant: b₃; ``None`` uses d.
        scale: Factor on the 21 and the 8: ``"practical"`` is 1/20, ``"theory"`` is 1, or a number.

    >>> agent = COBE(
    ...     base="cw-oful", dimension=2, norm_bound=1.0, noise=0.1, horizon=2000, scale="theory"
    ... )
    >>> agent.earliest_restart is None
    True
    """

    title = "COBE"
    full_title = "COBE over CW-OFUL"
    guarantee = Guarantee("Wei 2022", "linear contextual bandits", "weak only", "Õ(d√T + dC)", needs="B, R, T")
    assumes = "a weak adversary, which commits before the action is chosen; no guarantee holds against a strong one"

    _asks = COBEPull
    _practical_scale = 1 / 20
    _memory = ("_smallest", "_restarts", "_pulls", "_rewards")

    base: str = "cw-oful"
    base_settings: dict[str, Any] = field(default_factory=dict)
    largest_corruption: float = 1.0
    regret_per_root: float | None = None
    regret_per_corruption: float | None = None
    regret_constant: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        horizon, d = self._planned_horizon(), self.dimension
        if not isinstance(self.base_settings, dict) or "corruption_budget" in self.base_settings:
            raise BadInputError("base_settings must be a dictionary without corruption_budget, which COBE estimates.")
        self.base_settings = {
            name: value.item() if isinstance(value, np.generic) else value for name, value in self.base_settings.items()
        }
        self.largest_corruption = positive("largest_corruption", self.largest_corruption)
        defaults = {"regret_per_root": d**2, "regret_per_corruption": d, "regret_constant": d}
        given = {name: getattr(self, name) for name in defaults}
        self._regret = {
            name: positive(name, default if given[name] is None else given[name]) for name, default in defaults.items()
        }
        self._logarithm = math.log(horizon / self.failure_probability)
        self._largest = max(math.ceil(math.log2(self.largest_corruption * horizon)), 0)
        b2 = self._regret["regret_per_corruption"]
        unnoticed = self._bound(horizon, self.largest_corruption) / b2  # a corruption that the bound covers
        self._smallest = min(max(math.ceil(math.log2(unnoticed)), 0), self._largest)  # k
        self._restarts = 0
        self._start()

    def _bound(self, rounds: float, corruption: float) -> float:
        """Return R(t, θ) = √(b₁t) + b₂θ + b₃."""
        b1, b2, b3 = self._regret.values()
        return math.sqrt(b1 * rounds) + b2 * corruption + b3

    # ------------------------------------------------------------------ the guesses

    def _start(self) -> None:
        """Start a base agent for every guess from k on."""
        self._share_out()
        self._bases = [self._new_base(budget) for budget in self._budgets]
        self._pulls = [0] * len(self._bases)  # N_i
        self._rewards = [0.0] * len(self._bases)  # R_i

    def _share_out(self) -> None:
        guesses = range(self._smallest, self._largest + 1)
        shares = [2.0 ** (self._smallest - i - 1) for i in guesses]
        shares[0] = 1.0 - sum(shares[1:])
        more = 21 * self._scale * self.largest_corruption * self._logarithm
        self._shares = shares  # a_i
        self._budgets = [1.25 * a * 2.0**i + more for i, a in zip(guesses, shares, strict=True)]  # θ_i
        self._cumulative = list(itertools.accumulate(shares))
        self._cumulative[-1] = 1.0

    def _new_base(self, budget: float) -> RewardAgent[Any]:
        known = ("dimension", "norm_bound", "noise", "horizon", "failure_probability")
        offered = {name: getattr(self, name) for name in known} | {"seed": int(self._rng.integers(2**32))}
        chosen = {**self.base_settings, "corruption_budget": budget}
        return make("base agent", self._base_class(), chosen, offered)

    def _base_class(self) -> type[RewardAgent[Any]]:
        found = find("base agent", self.base, BASES)
        if not (isinstance(found, type) and issubclass(found, RewardAgent)):
            raise BadInputError(f"base agent {self.base!r} must derive from RewardAgent.")
        return found

    def _has_failed(self) -> bool:
        """Whether some larger guess earns more than a smaller one's regret bound allows."""
        rounds, lowest = sum(self._pulls), math.inf
        for share, budget, pulls, reward in zip(self._shares, self._budgets, self._pulls, self._rewards, strict=True):
            if lowest < reward / share - self._slack(rounds, share, budget):
                return True
            lowest = min(lowest, (reward + self._bound(pulls, budget)) / share)
        return False

    def _slack(self, rounds: float, share: float, budget: float) -> float:
        """Return what luck and corruption may add to a guess's rewards: 8(√(t log(T/δ)/a) + (log(T/δ) + θ)/a)."""
        root = math.sqrt(rounds * self._logarithm / share)
        return 8 * self._scale * (root + (self._logarithm + budget) / share)

    @property
    def earliest_restart(self) -> int | None:
        """The first round since the last restart in which the test could fire; ``None`` if not by the horizon.

        This is the best case: every guess is drawn as often as expected, and of two guesses one always earns B and the
        other −B. Then 2Bt must exceed the bound of one and the slack of the other, a quadratic inequality in √t.
        """
        assert self.horizon is not None
        b1, budget_cost, b3 = self._regret.values()
        earliest = math.inf
        guesses = list(zip(self._shares, self._budgets, strict=True))
        for (a, theta), (b, other) in itertools.combinations(guesses, 2):
            linear = math.sqrt(b1 / a) + 8 * self._scale * math.sqrt(self._logarithm / b)
            constant = (budget_cost * theta + b3) / a + self._slack(0, b, other)
            root = (linear + math.sqrt(linear**2 + 8 * self.norm_bound * constant)) / (4 * self.norm_bound)
            earliest = min(earliest, math.floor(root**2) + 1)
        return int(earliest) if earliest <= self.horizon else None

    @property
    def restarts(self) -> int:
        """How often the smallest guess was dropped."""
        return self._restarts

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting, with defaults resolved, and what it assumes about the adversary."""
        return super().settings | self._regret | {"assumes": self.assumes, "earliest_restart": self.earliest_restart}

    # ------------------------------------------------------------------ the round

    def _ask(self, actions: Actions) -> COBEPull:
        self._listed(actions)  # before anything is drawn
        for base in self._bases:
            if isinstance(base, FixedSetAgent):
                base._check_set(actions)  # noqa: SLF001
        index = bisect_right(self._cumulative, self._rng.random())
        pull = self._bases[index].ask(actions)
        place = {"restarts": self._restarts, "base": index, "base_number": pull.number}
        return COBEPull(self._asked, pull.action, pull.features, pull.weight, pull.width, **place)

    def _tell(self, asked: COBEPull, answer: float) -> None:
        if asked.restarts != self._restarts:
            return
        self._bases[asked.base].tell(self._base_pull(asked), answer)
        self._pulls[asked.base] += 1
        self._rewards[asked.base] += answer
        if self._smallest < self._largest and self._has_failed():
            self._smallest += 1
            self._restarts += 1
            self._start()

    def _cancel(self, asked: COBEPull) -> None:
        if asked.restarts == self._restarts:
            self._bases[asked.base].cancel(self._base_pull(asked))

    def _base_pull(self, asked: COBEPull) -> Any:
        """Return the base agent's own pull, which has more fields; ``None`` if it is not pending."""
        return self._bases[asked.base]._pending.get(asked.base_number)  # noqa: SLF001

    def recommend(self, actions: Actions = None) -> int:
        """Return the recommendation of the base agent drawn most often, that of the smallest guess."""
        return self._bases[0].recommend(actions)

    # ------------------------------------------------------------------ save and resume

    def state(self) -> dict[str, Any]:
        """Return the agent's whole state as nested dictionaries of JSON values and arrays."""
        return super().state() | {"bases": {str(i): base.state() for i, base in enumerate(self._bases)}}

    @classmethod
    def _from_settings(cls, settings: dict[str, Any]) -> Self:
        module, colon, _ = settings["base"].partition(":")
        if colon and module not in sys.modules:
            raise BadInputError(f"its base agent is {settings['base']}; import {module} first.")
        return super()._from_settings(settings)

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        integer("_restarts", self._restarts)
        ensure(integer("_smallest", self._smallest) <= self._largest, "_smallest is above the largest guess")
        self._share_out()
        kind = self._base_class()
        self._bases = [kind.from_state(state["bases"][str(i)]) for i in range(len(self._shares))]  # type: ignore[misc]

    def _check_restored(self) -> None:
        super()._check_restored()
        count = len(self._bases)
        ensure(len(self._pulls) == len(self._rewards) == count, f"_pulls and _rewards do not have {count} bases")
        for pulls, reward in zip(self._pulls, self._rewards, strict=True):
            integer("_pulls", pulls)
            finite("_rewards", reward)
        dimensions = {getattr(base, "dimension", self.dimension) for base in self._bases}
        ensure(dimensions == {self.dimension}, f"its bases do not have {self.dimension} features")
        places = [(pull.restarts, pull.base, pull.base_number) for pull in self._pending.values()]
        ensure(len(set(places)) == len(places), "one pull of a base is pending twice")

    def _check_pending(self, asked: COBEPull) -> None:
        super()._check_pending(asked)
        ensure(asked.restarts <= self._restarts, f"{asked} belongs to no base")
        if asked.restarts == self._restarts:
            ensure(asked.base < len(self._bases), f"{asked} belongs to no base")
            kept = self._base_pull(asked)
            ensure(kept is not None and kept.action == asked.action, f"{asked} is not pending in its base")
