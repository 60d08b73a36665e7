"""VACDB: Variance-Aware Contextual Dueling Bandit (Di 2023)."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairduel.agents.parts.agent import Actions, DuelingAgent, Featured, Guarantee, check_difference
from fairduel.checks import at_least_zero, boolean, ensure, fraction, number_or_name, positive
from fairduel.core.estimators import Estimator
from fairduel.core.information import Information
from fairduel.core.links import LOGISTIC, Link, as_link
from fairduel.core.radius import practical_radius
from fairduel.core.selection import View, pair_widths, symmetric_pair
from fairduel.duel import Duel, Matrix, Outcome, Vector
from fairduel.errors import BadInputError

PRACTICAL_ACCURACY = 2.0**-5
"""α for five levels, as in the authors' experiments."""


class _Level:
    """One resolution 2^−l: its Σ_l, the outcomes told at it, and θ_l."""

    def __init__(self, number: int, dimension: int, kappa: float, link: Link) -> None:
        self.width = 2.0**-number
        self.information = Information(dimension, self.width**2)
        self.estimator = Estimator("exact", dimension, ridge=self.width**2 * kappa, link=link)
        self.tied = 0.0  # Σw² of the ties

    @property
    def theta(self) -> Vector:
        """θ_l of 2^−2l κ θ + Σ w² (σ(φᵀθ) − o) φ = 0 over the outcomes of this level."""
        return self.estimator.fitted(self.information.log_determinant)

    def state(self) -> dict[str, Any]:
        return {
            "information": self.information.state(),
            "estimator": self.estimator.state(),
            "tied": self.tied,
        }

    def restore(self, state: dict[str, Any], most: int) -> None:
        self.information = Information.from_state(state["information"], len(self.estimator.theta))
        self.estimator.restore(state["estimator"], most)
        self.tied = at_least_zero("the weight of a level's ties", state["tied"])
        total = self.estimator.told.weights.sum() * (1 + 1e-9)
        ensure(self.tied <= total, "a level's ties weigh more than all its outcomes")


@dataclass(frozen=True, slots=True, kw_only=True)
class VACDBDuel(Duel):
    """A duel that one level or none learns from."""

    level: int
    """The level l that learns from this duel, from 1; 0 if none does."""


class _Stop(NamedTuple):
    """Where the descent through the levels ends."""

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
    """Learn at finer and finer resolutions 2^−l, so that regret scales with the variance of the outcomes.

    Di 2023; each level l = 1 … L = ⌈log₂(1/α)⌉ has its own Σ_l (from 2^−2l I) and θ_l::

        for t = 1 … T
            A ← all actions, l ← 1
            while ‖x − y‖_Σ_l⁻¹ ≤ 2^−l for all x, y in A, but not ≤ α:
                A ← {x in A : xᵀθ_l ≥ max_y yᵀθ_l − 2^−l β_l};  l ← l + 1
            if all are ≤ α: ask argmax over A of (x + y)ᵀθ_l + β_l‖x − y‖_Σ_l⁻¹, and learn nothing
            else: ask a random pair of A with ‖φ‖_Σ_l⁻¹ > 2^−l;  w ← 2^−l/‖φ‖_Σ_l⁻¹;  Σ_l ← Σ_l + w² φφᵀ
                θ_l ← solution of 2^−2l κθ + Σ w_i² [σ(φ_iᵀθ) − o_i] φ_i = 0 over the duels of level l

    ``duel.level`` says which level learns from a duel. Memory and time per round are quadratic in K.

    Departures: β_l is updated at every level in every round; the source updates only the level that was told an
    outcome, so ours is never shorter. With ``self_duels=False`` at least two actions stay. The rule was checked against
    the authors' code; the constants of the theory radius come from secondary sources.

    Args:
        link: σ, a :class:`~fairduel.core.links.Link` or its name.
        accuracy: α; ``None`` uses 2^−5, as in the authors' experiments, or T^−1.5 with the theory radius.
        radius: β_l. ``"practical"``: √(d log T)/4; the authors' code also divides by ‖θ*‖, which no agent knows.
            ``"theory"``: (16·2^−l/κ)√((8 Var_l + 18ℓ′)ℓ) + (6·2^−l/κ)ℓ + 2^(1−l)B with ℓ = log(4t²L/δ),
            ℓ′ = log(4(t+1)²L/δ), and Var_l = Σ w²(o − σ(φᵀθ_l))² if 2^l ≥ 64(max σ′/κ)√ℓ′, otherwise the number of
            outcomes. Or a number.
        radius_scale: Factor on the radius.
        failure_probability: δ of the theory radius.
        self_duels: Whether an action may duel itself.

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
    _parts = ("_levels",)
    _resolved = ("link", "kappa", "accuracy")

    link: Link | str = LOGISTIC
    accuracy: float | None = None
    radius: float | str = "practical"
    radius_scale: float = 1.0
    failure_probability: float = 0.05
    self_duels: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_settings()
        self._link = as_link(self.link)
        self._kappa = self._link.kappa(self.norm_bound)
        self._accuracy = self._default_accuracy() if self.accuracy is None else self.accuracy
        count = math.ceil(math.log2(1.0 / self._accuracy))
        self._levels = [_Level(number, self.dimension, self._kappa, self._link) for number in range(1, count + 1)]

    # ------------------------------------------------------------------ what users call

    def recommend(self, actions: Actions = None) -> int:
        """Return the best of the actions left, by the last level that knows them to within 2^−l."""
        table = self._listed(actions)
        stop = self._descend(table)
        trusted = stop.level if stop.is_sure or stop.level == 0 else stop.level - 1
        return int(stop.left[np.argmax(table[stop.left] @ self._levels[trusted].theta)])

    @property
    def levels(self) -> int:
        """L, the number of levels."""
        return len(self._levels)

    def radius_at(self, level: int) -> float:
        """Return β_l of level l = 1 … L in the next round, scaled."""
        self._level(level)
        if not isinstance(self.radius, str):
            return self.radius_scale * self.radius
        if self.radius == "practical":
            return self.radius_scale * practical_radius(self.dimension, self._horizon_or(max(self._asked + 1, 2))) / 4.0
        return self.radius_scale * self._theory_radius(level)

    # ------------------------------------------------------------------ the rule

    def _ask(self, actions: Actions) -> VACDBDuel:
        table = self._listed(actions)
        level, left, gram, widths, is_sure = self._descend(table)
        if is_sure:
            rewards = table[left] @ self._levels[level].theta
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
            pair = asked.first, asked.second
            level.estimator.tell(pair, asked.difference, weight=weight, share=answer.first_share)
            level.tied += weight if answer is Outcome.TIE else 0.0

    def _cancel(self, asked: VACDBDuel) -> None:
        if asked.level:
            self._levels[asked.level - 1].information.add(asked.difference, -(asked.weight**2))

    def _descend(self, table: Matrix) -> _Stop:
        """Go down the levels, dropping actions, to the first with a pair to ask or certainty about all."""
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
            rewards = actions @ level.theta
            worst_allowed = rewards.max() - level.width * self.radius_at(index + 1)
            if not self.self_duels:
                worst_allowed = min(worst_allowed, np.sort(rewards)[-2])
            left = left[rewards >= worst_allowed]
        raise AssertionError("the last level is sure or asks, because α ≥ 2^−L.")

    def _theory_radius(self, number: int) -> float:
        """Return β_l of Di 2023; its last term, 2^(1−l)B, is the price of the ridge in the equation of θ_l."""
        level, t = self._levels[number - 1], self._asked + 1
        scale = level.width / self._kappa
        log = math.log(4.0 * t**2 * self.levels / self.failure_probability)
        next_log = math.log(4.0 * (t + 1) ** 2 * self.levels / self.failure_probability)
        steepest = float(self._link.slope(0.0))
        variance = float(level.estimator.outcomes)
        if 1.0 / level.width >= 64.0 * steepest / self._kappa * math.sqrt(next_log):
            variance = self._variance(level)
        return (
            16.0 * scale * math.sqrt((8.0 * variance + 18.0 * next_log) * log)
            + 6.0 * scale * log
            + 2.0 * level.width * self.norm_bound
        )

    def _variance(self, level: _Level) -> float:
        """Return Σ w² (o − σ(φᵀθ_l))² over the outcomes of a level, from its rows of Σw² and Σw²o.

        o² is o, except for a tie, where it is o − ¼.
        """
        told = level.estimator.told
        chances = self._link.probability(told.differences @ level.theta)
        return float(told.wins @ (1.0 - 2.0 * chances) + told.weights @ chances**2 - 0.25 * level.tied)

    # ------------------------------------------------------------------ save and resume

    def _check_pending(self, asked: VACDBDuel) -> None:
        super()._check_pending(asked)
        check_difference(asked, self.dimension)
        ensure(asked.level <= self.levels, f"{asked} belongs to no level")

    def _level(self, number: int) -> _Level:
        if not 1 <= number <= self.levels:
            raise BadInputError(f"VACDB has levels 1 to {self.levels}, not {number!r}.")
        return self._levels[number - 1]

    def _default_accuracy(self) -> float:
        if self.radius != "theory":
            return PRACTICAL_ACCURACY
        if self.horizon is None:
            raise BadInputError("VACDB's default accuracy T^−1.5 needs a horizon; set horizon or accuracy.")
        return float(max(self.horizon, 2) ** -1.5)

    def _check_settings(self) -> None:
        self.radius = number_or_name("radius", self.radius, ("practical", "theory"))
        self.radius_scale = positive("radius_scale", self.radius_scale)
        self.failure_probability = fraction("failure_probability", self.failure_probability)
        self.accuracy = None if self.accuracy is None else fraction("accuracy", self.accuracy)
        self.self_duels = boolean("self_duels", self.self_duels)
