"""VACDB: Variance-Aware Contextual Dueling Bandit (Di 2023)."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairduel.agents.base import Actions, DuelingAgent, Featured, check_difference
from fairduel.agents.guarantee import Guarantee
from fairduel.checks import at_least_zero, boolean, ensure, fraction, integer, number_or_name, positive
from fairduel.core.information import Information, checked_array
from fairduel.core.likelihood import Comparisons, maximum_likelihood
from fairduel.core.links import LOGISTIC, Link, as_link
from fairduel.core.radius import practical_radius
from fairduel.core.selection import View, pair_widths, symmetric_pair
from fairduel.duel import Duel, Matrix, Outcome, Vector
from fairduel.errors import BadInputError

PRACTICAL_ACCURACY = 2.0**-5
"""α: five levels, as in the authors' experiments."""


class _Level:
    """One resolution 2^−l: its Σ_l, what was told at it, and θ_l."""

    def __init__(self, number: int, dimension: int, kappa: float) -> None:
        self.width = 2.0**-number
        self.ridge = self.width**2 * kappa
        self.information = Information(dimension, self.width**2)
        self.told = Comparisons(dimension)
        self.tied = 0.0  # Σw² of the ties among it
        self.outcomes = 0
        self.theta: Vector = np.zeros(dimension)
        self.stale = False

    def refit(self, link: Link) -> Vector:
        """θ_l of 2^−2l κ θ + Σ w² (σ(φᵀθ) − o) φ = 0 over all that was told at this level."""
        if self.stale:
            self.theta = maximum_likelihood(self.told, ridge=self.ridge, link=link, start=self.theta).theta
            self.stale = False
        return self.theta

    def state(self) -> dict[str, Any]:
        return {
            "information": self.information.state(),
            "told": self.told.state(),
            "tied": self.tied,
            "outcomes": self.outcomes,
            "theta": self.theta.copy(),
            "stale": self.stale,
        }

    def restore(self, state: dict[str, Any]) -> None:
        dimension = len(self.theta)
        self.information = Information.from_state(state["information"], dimension)
        self.told = Comparisons.from_state(state["told"], dimension)
        self.tied = at_least_zero("the weight of a level's ties", state["tied"])
        ensure(self.tied <= self.told.weights.sum() * (1 + 1e-9), "a level's ties weigh more than all its outcomes")
        self.outcomes = integer("the outcomes of a level", state["outcomes"], least=len(self.told))
        self.theta = checked_array("the estimate of a level", state["theta"], (dimension,))
        self.stale = boolean("whether a level is stale", state["stale"])


@dataclass(frozen=True, slots=True, kw_only=True)
class VACDBDuel(Duel):
    """A duel that one level learns from, or none."""

    level: int
    """The level l that learns from this duel, from 1; 0 where none does."""


class _Stop(NamedTuple):
    """Where the way down the levels ends: the level, the actions left there, and their pairs' widths."""

    level: int
    left: NDArray[np.int64]
    """Indices of the actions that no earlier level ruled out, shape (k,)."""
    gram: Matrix
    """XΣ_l⁻¹Xᵀ of these, shape (k, k)."""
    widths: Matrix
    """‖x − y‖_Σ_l⁻¹ of each pair of these, shape (k, k)."""
    is_sure: bool
    """Whether even the widest pair is within α."""


@dataclass(kw_only=True, eq=False)
class VACDB(Featured, DuelingAgent[VACDBDuel]):
    """Learn at finer and finer resolutions 2^−l, so that regret follows the variance of the outcomes.

    At each level actions that are surely worse are dropped, once all pairs of those left are known to within 2^−l.
    The first level with a pair that is not known so well asks one such pair, at random, and is alone told its outcome,
    with the weight w = 2^−l/‖φ‖_Σ_l⁻¹. Where all pairs are known to within α, the agent plays the symmetric rule of
    MaxPairUCB among the actions left, and learns nothing from the outcome. ``duel.level`` says which it was.

    ``radius="practical"`` is √(d log T)/4 with α = 2^−5, after the authors' code; that divides by ‖θ*‖, which no agent
    knows. ``radius="theory"`` is β_l of the paper with α = T^−1.5; the rule was checked against public code, but its
    constants are from secondary sources.

    Readings of ours: β_l is that of the present round at every level, while the source renews it only at the level that
    was told something; so ours is never the shorter one. Σ_l grows in ``ask``, as in all agents here. Where
    ``self_duels`` are not allowed, the runner-up stays too when all but one action would be dropped. It looks at all
    pairs of actions in every round.

    >>> agent = VACDB(dimension=2, norm_bound=2.0, horizon=100, seed=0)
    >>> duel = agent.ask([[1.0, 0.0], [0.0, 1.0]])
    >>> duel.level, round(duel.weight * duel.width, 12)
    (1, 0.5)
    """

    title = "VACDB"
    guarantee = Guarantee(
        "Di 2023", "contextual dueling bandits", "none", "Õ(d√(Σσ_t²) + d); no claim for C > 0", needs="B, T"
    )
    published_settings: ClassVar[dict[str, str]] = {"radius": "theory"}

    _asks = VACDBDuel

    link: Link | str = LOGISTIC
    """σ, a :class:`~fairduel.core.links.Link` or its name."""
    accuracy: float | None = None
    """α, below which nothing more is learned; there are L = ⌈log₂ 1/α⌉ levels. ``None``: 2^−5, or T^−1.5 in theory."""
    radius: float | str = "practical"
    """β: ``"practical"``, ``"theory"`` or a number."""
    radius_scale: float = 1.0
    """A factor on the radius, whichever it is."""
    failure_probability: float = 0.05
    """δ of the theory radius."""
    self_duels: bool = True
    """Whether an action may duel itself."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_settings()
        self._link = as_link(self.link)
        self._kappa = self._link.kappa(self.norm_bound)
        self._accuracy = self._default_accuracy() if self.accuracy is None else self.accuracy
        count = math.ceil(math.log2(1.0 / self._accuracy))
        self._levels = [_Level(number, self.dimension, self._kappa) for number in range(1, count + 1)]

    # ------------------------------------------------------------------ what users call

    def recommend(self, actions: Actions = None) -> int:
        """Index of the best action among those left, by the last level that knows them well; the lowest of equals."""
        table = self._listed(actions)
        stop = self._descend(table)
        trusted = stop.level if stop.is_sure or stop.level == 0 else stop.level - 1
        return int(stop.left[np.argmax(table[stop.left] @ self._levels[trusted].refit(self._link))])

    @property
    def levels(self) -> int:
        """L."""
        return len(self._levels)

    def estimate_at(self, level: int) -> Vector:
        """θ_l of level l = 1 … L on all that was told at it, shape (d,)."""
        return self._level(level).refit(self._link).copy()

    def information_at(self, level: int) -> Information:
        """Σ_l of level l = 1 … L."""
        return self._level(level).information

    def radius_at(self, level: int) -> float:
        """β_l of level l = 1 … L in the next round, with its scale."""
        self._level(level)
        if not isinstance(self.radius, str):
            return self.radius_scale * self.radius
        if self.radius == "practical":
            return self.radius_scale * practical_radius(self.dimension, self._horizon_or(max(self._asked + 1, 2))) / 4.0
        return self.radius_scale * self._theory_radius(level)

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting as given, and the numbers that came of it."""
        return super().settings | {"link": str(self._link), "kappa": self._kappa, "accuracy": self._accuracy}

    # ------------------------------------------------------------------ the rule

    def _ask(self, actions: Actions) -> VACDBDuel:
        table = self._listed(actions)
        level, left, gram, widths, is_sure = self._descend(table)
        if is_sure:
            rewards = table[left] @ self._levels[level].refit(self._link)
            pair = symmetric_pair(
                View(rewards, gram, table[:0]), self.radius_at(level + 1), self.self_duels, self._rng.random()
            )
        else:
            pairs = np.argwhere(np.tril(widths) > self._levels[level].width)
            pair = tuple(pairs[int(self._rng.random() * len(pairs))])
        width = float(widths[pair])
        if self._rng.random() < 0.5:
            pair = pair[::-1]
        first, second = int(left[pair[0]]), int(left[pair[1]])
        difference = table[first] - table[second]
        if is_sure:
            return VACDBDuel(self._asked, first, second, difference, width=width, slope=1.0, level=0)
        weight = self._levels[level].width / width
        self._levels[level].information.add(difference, weight**2)
        return VACDBDuel(self._asked, first, second, difference, weight, width, slope=1.0, level=level + 1)

    def _tell(self, asked: VACDBDuel, answer: Outcome) -> None:
        if asked.level:
            level, weight = self._levels[asked.level - 1], asked.weight**2
            level.told.add(asked.difference, weight=weight, share=answer.first_share)
            level.tied += weight if answer is Outcome.TIE else 0.0
            level.outcomes += 1
            level.stale = True

    def _cancel(self, asked: VACDBDuel) -> None:
        if asked.level:
            self._levels[asked.level - 1].information.add(asked.difference, -(asked.weight**2))

    def _descend(self, table: Matrix) -> _Stop:
        """Go down the levels, dropping actions, to the first that has something to ask or is sure of everything."""
        left = np.arange(len(table))
        for index, level in enumerate(self._levels):
            actions = table[left]
            gram = actions @ level.information.inverse @ actions.T
            widths = pair_widths(gram)
            widest = widths.max()
            if widest <= self._accuracy:
                return _Stop(index, left, gram, widths, is_sure=True)
            if widest > level.width:
                return _Stop(index, left, gram, widths, is_sure=False)
            rewards = actions @ level.refit(self._link)
            worst_allowed = rewards.max() - level.width * self.radius_at(index + 1)
            if not self.self_duels:
                worst_allowed = min(worst_allowed, np.sort(rewards)[-2])
            left = left[rewards >= worst_allowed]
        raise AssertionError("the last level is sure of all that it does not ask, because α ≥ 2^−L.")

    def _theory_radius(self, number: int) -> float:
        """β_l of Di 2023, with Var_l of the outcomes told; the constants are from secondary sources.

        Its last term, 2^(1−l)B, is the price of the ridge, 2^−2l κθ* in the equation of θ_l.
        """
        level, t = self._levels[number - 1], self._asked + 1
        scale = level.width / self._kappa
        log = math.log(4.0 * t**2 * self.levels / self.failure_probability)
        next_log = math.log(4.0 * (t + 1) ** 2 * self.levels / self.failure_probability)
        steepest = float(self._link.slope(0.0))
        variance = float(level.outcomes)
        if 1.0 / level.width >= 64.0 * steepest / self._kappa * math.sqrt(next_log):
            variance = self._variance(level)
        return (
            16.0 * scale * math.sqrt((8.0 * variance + 18.0 * next_log) * log)
            + 6.0 * scale * log
            + 2.0 * level.width * self.norm_bound
        )

    def _variance(self, level: _Level) -> float:
        """Σ w² (o − σ(φᵀθ_l))² over the outcomes of a level, from its rows of Σw² and Σw²o.

        o² is o but for a tie, where it is o − ¼.
        """
        chances = self._link.probability(level.told.differences @ level.refit(self._link))
        return float(level.told.wins @ (1.0 - 2.0 * chances) + level.told.weights @ chances**2 - 0.25 * level.tied)

    # ------------------------------------------------------------------ the books

    def state(self) -> dict[str, Any]:
        """Everything that the agent is, as JSON values and arrays, nested in dictionaries."""
        return super().state() | {"levels": {str(i): level.state() for i, level in enumerate(self._levels)}}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        for i, level in enumerate(self._levels):
            level.restore(state["levels"][str(i)])

    def _check_pending(self, asked: VACDBDuel) -> None:
        super()._check_pending(asked)
        check_difference(asked, self.dimension)
        ensure(asked.level <= self.levels, f"{asked} is of no level")

    def _level(self, number: int) -> _Level:
        if not 1 <= number <= self.levels:
            raise BadInputError(f"this VACDB has levels 1 to {self.levels}, not {number!r}.")
        return self._levels[number - 1]

    def _default_accuracy(self) -> float:
        if self.radius != "theory":
            return PRACTICAL_ACCURACY
        if self.horizon is None:
            raise BadInputError("VACDB's α = T^−1.5 needs a horizon: give one, or the accuracy itself.")
        return float(max(self.horizon, 2) ** -1.5)

    def _check_settings(self) -> None:
        self.radius = number_or_name("radius", self.radius, ("practical", "theory"))
        self.radius_scale = positive("radius_scale", self.radius_scale)
        self.failure_probability = fraction("failure_probability", self.failure_probability)
        self.accuracy = None if self.accuracy is None else fraction("accuracy", self.accuracy)
        self.self_duels = boolean("self_duels", self.self_duels)
