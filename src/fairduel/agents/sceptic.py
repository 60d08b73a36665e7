"""Sceptic: growing trust, and the most information for what it costs; needs neither C nor tuning."""

import functools
import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from fairduel.action_sets import ActionSet
from fairduel.action_sets.base import Pair
from fairduel.agents.robust import FlipTolerant
from fairduel.agents.round import RADIUS, Plan
from fairduel.checks import at_least_zero, integer, positive
from fairduel.core.compiling import inlined
from fairduel.core.information import squared_width
from fairduel.core.radius import confidence_radius, determinant_noise, rcdb_trust
from fairduel.core.selection import TIE, View, thrifty_pair, uncertainty_weight
from fairduel.duel import Vector

GROWN, ALLOWANCE, PATIENCE, TOLERATED, UPSETS = range(RADIUS + 1, RADIUS + 6)
USUAL_HORIZON = 2000
"""T of an agent that is told neither T nor C."""
_FULL = 8.0  # the growth at which a vote counts fully: G
_RIDGE = 320.0  # λdB²
_SUSPICION = 2.0  # Ĉ/√T of an agent that is not told C
_TRUST = 16.0  # αĈ/√d
_RADIUS = 0.8  # β
_ALLOWANCE = 0.001  # regret that counts as none, as a share of B


def earlier_settings(norm_bound: float) -> dict[str, Any]:
    """Settings with which agents made before there was an allowance go on as they did."""
    return {"allowance": _ALLOWANCE * norm_bound}


@inlined
def is_doubted(numbers: Vector) -> bool:
    """Whether the next vote does not count: the last votes were m to m + Ĉ − 1 upsets in a row."""
    return 0.0 <= numbers[UPSETS] - numbers[PATIENCE] < numbers[TOLERATED]  # type: ignore[no-any-return]


@inlined
def choose(plan: Plan, numbers: Vector, seen: View, rng: np.random.Generator) -> tuple[int, int]:
    """Return the most informative pair for its regret, or the leader alone once it is clearly ahead."""
    may_settle = plan.self_duels and not is_doubted(numbers)
    return thrifty_pair(seen, numbers[RADIUS], numbers[ALLOWANCE], may_settle, rng.random())


@inlined
def weigh(
    plan: Plan,
    numbers: Vector,
    theta: Vector,  # noqa: ARG001
    difference: Vector,  # noqa: ARG001
    width: float,
) -> tuple[float, float]:
    """The paper's weight, eq. (weight), times the trust that has grown by this round; 0 after a run of upsets."""
    grown = 0.0 if is_doubted(numbers) else numbers[GROWN]
    return grown * uncertainty_weight(plan.trust, width), plan.design_slope


@dataclass(kw_only=True, eq=False)
class Sceptic(FlipTolerant):
    """Trust later votes more than early ones, and ask the duel that tells most for what it costs.

    With Ĉ = C if told, else 2√T; s = σ′(0), the link's largest slope; and G = 8::

        for t = 1 … T
            Σ ← λI + Σ_{i<t} w_i s φ_i φ_iᵀ
            θ ← solution of λθ + Σ_{i<t} w_i [σ(φ_iᵀθ) − o_i] φ_i = 0
            L ← argmax x_iᵀθ, the leader
            D ← whether the last m to m + Ĉ − 1 votes in a row each contradicted the θ of its time: doubt
            if not D and (x_L − x_i)ᵀθ ≥ β‖x_L − x_i‖_Σ⁻¹ for all i: (a, b) ← (L, L)
            else (a, b) ← argmax ‖x_a − x_b‖_Σ⁻¹ / ((2x_L − x_a − x_b)ᵀθ + ε)
            ask a against b; the outcome o_t may be flipped
            w_t ← 0 if D, else (min(1 + (t − 1)/(Ĉ + 1), G)/G)² · min(1, α/‖φ_t‖_Σ⁻¹)

    As long as fewer than C votes are in, all of them may be lies. So the prior is strong, the first vote counts 1/64,
    and trust grows over the next 7Ĉ rounds: early lies are outvoted rather than remembered. The pair maximises
    information over squared regret (information-directed sampling, Russo & Van Roy 2014). With ``self_duels=False`` it
    is asked for even when the leader is clear.

    There is no regret bound. With ``radius="theory"`` and ``constrained=True``, the leader is played alone only if it
    is truly best, with probability 1 − δ, for up to Ĉ flips at any time.

    Args:
        flip_budget: C, how many outcomes may be flipped; ``None`` assumes 2√T, with T = 2000 if ``horizon`` is unknown.
        radius: β. ``"practical"``: 0.8. ``"theory"``: (s/κ)(√λ B + αĈ + √((log det(Σ)/λᵈ + 2 log(1/δ))/4s)), with
            the determinant bounded by (λ + 4sT/d)ᵈ. Or a number.
        trust: α; ``None`` uses 16√d/Ĉ, or ∞ if Ĉ = 0.
        growth: The power with which trust grows; 0 trusts all votes alike.
        patience: m, how many votes in a row may contradict the estimate before the next ones do not count, until one
            agrees with it or Ĉ did not count; 0 counts every vote. 3 protects against attacks that start late: an
            unbroken run of lies is heard three times. It costs at most one honest vote in eight if the estimate is
            right, and about 3% more regret elsewhere.
        allowance: ε, the regret that counts as none. ``None`` uses B/1000 or, if C is told and there are no self-duels,
            C/(sT) if that is more: lies at rate C/T can reverse the majority of a pair whose rewards are closer.
        ridge: λ; ``None`` uses 320/(dB²).

    >>> from fairduel import Outcome
    >>> agent = Sceptic(dimension=2, norm_bound=2.0, seed=0)
    >>> actions = [[1.0, 0.0], [0.0, 1.0], [-0.6, 0.8]]
    >>> for _ in range(100):
    ...     duel = agent.ask(actions)
    ...     agent.tell(duel, Outcome.FIRST if duel.first < duel.second else Outcome.SECOND)
    >>> agent.recommend(actions)
    0
    """

    title = "Sceptic"
    colour = "#000000"
    published_settings: ClassVar[dict[str, str]] = {}
    assumes_if_untold: ClassVar[str] = "C = 2√T"

    growth: float = 2.0
    patience: int = 0
    allowance: float | None = None

    _counts_upsets = True
    _choose = staticmethod(choose)
    _weigh = staticmethod(weigh)

    def __post_init__(self) -> None:
        self.growth = at_least_zero("growth", self.growth)
        self.patience = integer("patience", self.patience)
        self.allowance = None if self.allowance is None else positive("allowance", self.allowance)
        super().__post_init__()

    def grown_trust(self, round_number: int) -> float:
        """The largest weight of the vote of round t, between 8^−``growth`` and 1."""
        grown = 1.0 + (round_number - 1) / (self._flip_budget + 1.0)
        return float((min(grown, _FULL) / _FULL) ** self.growth)

    def _numbers_at(self, round_number: int) -> tuple[float, ...]:
        return (
            self.radius_at(round_number),
            self.grown_trust(round_number),
            self._allowance,
            self.patience or math.inf,
            self._flip_budget,
            self._estimator.upsets,
        )

    @property
    def _allowance(self) -> float:
        if self.allowance is not None:
            return self.allowance
        rate = 0.0 if self.self_duels else (self.flip_budget or 0) / (self.horizon or USUAL_HORIZON)
        return max(_ALLOWANCE * self.norm_bound, rate / self._design_slope)

    @classmethod
    def _from_settings(cls, settings: dict[str, Any]) -> Self:
        return super()._from_settings(earlier_settings(settings["norm_bound"]) | settings)

    def _resolved_budget(self) -> float:
        if self.flip_budget is None:
            return _SUSPICION * math.sqrt(self.horizon or USUAL_HORIZON)
        return super()._resolved_budget()

    def _default_trust(self) -> float:
        return _TRUST * rcdb_trust(self.dimension, self._flip_budget, kappa=1.0)

    @functools.cached_property
    def _design_slope(self) -> float:
        return float(self._link.slope(0.0))

    def _default_ridge(self) -> float:
        return _RIDGE / (self.dimension * self.norm_bound**2)

    def _practical_radius(self, round_number: int) -> float:  # noqa: ARG002
        return _RADIUS

    def _theory_radius(self, round_number: int) -> float:
        slope, d = self._design_slope, self.dimension
        largest = self._ridge + 4.0 * slope * self._horizon_or(round_number) / d  # mean eigenvalue of Σ, as ‖φ‖ ≤ 2
        noise = determinant_noise(
            dimension=d,
            log_determinant=d * math.log(largest),
            ridge=self._ridge,
            kappa=slope,
            failure=self.failure_probability,
        )
        beta = confidence_radius(
            norm_bound=self.norm_bound,
            flip_budget=self._flip_budget,
            ridge=self._ridge,
            trust=self._trust,
            noise=noise,
        )
        return slope / self._kappa * beta

    def _pair_in(self, actions: ActionSet) -> Pair:
        """The same rule in an implicit set, by Dinkelbach's method: see :func:`~fairduel.core.selection.thrifty_pair`.

        The gap is that of the score (x_a + x_b)ᵀθ + ‖x_a − x_b‖_Σ⁻¹/ρ, where ρ is the ratio of the chosen pair.
        """
        theta, inverse = self._estimator.theta, self._information.inverse
        may_settle = self.self_duels and not is_doubted(np.array(self._numbers_at(self._asked + 1)))
        pair = actions.best_pair(theta, inverse, self.current_radius, self._rng, self_duels=may_settle)
        if np.array_equal(pair.first, pair.second):
            return pair  # the leader is clearly ahead
        at_best = 2.0 * float(actions.best(theta) @ theta) + self._allowance
        while True:
            width = math.sqrt(squared_width(inverse, pair.first - pair.second))
            cost = at_best - float((pair.first + pair.second) @ theta)
            better = actions.best_pair(theta, inverse, cost / width, self._rng, self_duels=False)
            if better.score <= at_best + TIE * max(1.0, abs(at_best)):
                return Pair(pair.first, pair.second, at_best, max(better.score - at_best, 0.0) + better.gap)
            pair = better
