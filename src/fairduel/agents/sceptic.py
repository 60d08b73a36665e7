"""Sceptic: growing trust, and the most information for its regret; pre-tuned, and C may be unknown."""

import functools
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fairduel.action_sets import ActionSet
from fairduel.action_sets.listed import Pair
from fairduel.agents.parts.flip_tolerance import FlipTolerant
from fairduel.agents.parts.round import Now, count_upsets
from fairduel.agents.parts.rules import growing, is_doubted, thrifty
from fairduel.checks import at_least_zero, boolean, ensure, integer, positive
from fairduel.core.information import squared_width
from fairduel.core.radius import confidence_radius, determinant_noise, rcdb_trust
from fairduel.core.selection import TIE
from fairduel.errors import BadInputError

USUAL_HORIZON = 2000
"""T if neither T nor C is known."""
_FULL = 8.0  # the growth at which a vote counts fully: G
_RIDGE = 320.0  # λdB²
_MAPPED_RIDGE = 50.0  # the same with a feature map
_SUSPICION = 2.0  # Ĉ/√T if C is unknown
_TRUST = 16.0  # αĈ/√d
_RADIUS = 0.8  # β
_ALLOWANCE = 0.001  # regret treated as zero, as a share of B
# the robust form
_ROBUST_SUSPICION = 1.0  # Ĉ/√T if C is unknown
_ROBUST_SCALE = 0.9  # Ĉ/√(C√T) if it is known
_ROBUST_TRUST = 2.0  # αĈ/√d
_MARGIN = 0.025  # votes that must be needed to reverse a clear lead, over Ĉ log(t/Ĉ)


@dataclass(kw_only=True, eq=False)
class Sceptic(FlipTolerant):
    """Trust later votes more than early ones, and ask the duel with the most information for its regret.

    With Ĉ = C if known, else 2√T; s = σ′(0), the link's largest slope; and G = 8::

        for t = 1 … T
            Σ ← λI + Σ_{i<t} w_i s φ_i φ_iᵀ
            θ ← solution of λθ + Σ_{i<t} w_i [σ(φ_iᵀθ) − o_i] φ_i = 0
            L ← argmax x_iᵀθ, the leader
            D ← whether the last m to m + Ĉ − 1 votes in a row each contradicted the θ of its time: doubt
            if not D and (x_L − x_i)ᵀθ ≥ β‖x_L − x_i‖_Σ⁻¹ for all i: (a, b) ← (L, L)
            else (a, b) ← argmax ‖x_a − x_b‖_Σ⁻¹ / ((2x_L − x_a − x_b)ᵀθ + ε)
            ask a against b; the outcome o_t may be flipped
            w_t ← 0 if D, else (min(1 + (t − 1)/(Ĉ + 1), G)/G)² · min(1, α/‖φ_t‖_Σ⁻¹)

    The first C votes may all be lies. So the prior is strong, the first vote counts 1/64, and trust grows over the next
    7Ĉ rounds: early lies are outvoted rather than remembered. The pair maximises information over squared regret
    (information-directed sampling, Russo & Van Roy 2014). With ``self_duels=False`` such a pair is asked even when the
    leader is clear.

    With ``robust=True`` and ``constrained=True``, regret on fixed actions is Õ(T^¾) for O(√T) flips (see
    :meth:`margin_at`); without ``robust`` there is no regret bound. With ``radius="theory"`` and ``constrained=True``,
    the leader is played alone only if it is truly best, with probability 1 − δ, for up to Ĉ flips at any time.

    Args:
        flip_budget: C, how many outcomes may be flipped; ``None`` assumes 2√T, with T = 2000 if ``horizon`` is unknown.
        radius: β. ``"practical"``: 0.8. ``"theory"``: (s/κ)(√λ B + αĈ + √((log det(Σ)/λᵈ + 2 log(1/δ))/4s)), with
            the determinant bounded by (λ + 4sT/d)ᵈ. Or a number.
        trust: α; ``None`` uses 16√d/Ĉ, or ∞ if Ĉ = 0.
        growth: The power with which trust grows; 0 trusts all votes alike.
        patience: m. After m contradicting votes in a row, votes are ignored until one agrees with the estimate or Ĉ
            were ignored; 0 counts every vote. 3 protects against attacks that start late: an unbroken run of lies is
            heard three times. It ignores at most one honest vote in eight if the estimate is right, and costs about 3%
            more regret elsewhere.
        robust: Whether an attacker may see what the agent asks. Each vote then moves the estimate less, α = 2√d/Ĉ,
            with Ĉ = √T, or 0.9√(C√T) if C is known; and the leader is clear only if reversing its lead over any other
            takes about n = Ĉ log(t/Ĉ)/40 late votes: (x_L − x_i)ᵀθ ≥ n τ_t ‖x_L − x_i‖²_Σ⁻¹, where τ_t is the largest
            weight of round t. No attack that we found then makes a wrong action lead for ever. Actions must be listed.
        allowance: ε, the regret that is treated as zero. ``None`` uses B/1000; with a known C and no self-duels, at
            least C/(sT), because lies at rate C/T can reverse the majority of a pair whose rewards are closer.
        ridge: λ; ``None`` uses 320/(dB²), or 50/(dB²) with a map.

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
    assumes_by_default: ClassVar[str] = "C = 2√T, or √T if robust"

    growth: float = 2.0
    patience: int = 0
    robust: bool = False
    allowance: float | None = None

    _rule = staticmethod(thrifty)
    _trust_rule = staticmethod(growing)
    _remember = staticmethod(count_upsets)

    def __post_init__(self) -> None:
        self.growth = at_least_zero("growth", self.growth)
        self.patience = integer("patience", self.patience)
        self.robust = boolean("robust", self.robust)
        self.allowance = None if self.allowance is None else positive("allowance", self.allowance)
        super().__post_init__()

    def grown_trust(self, round_number: int) -> float:
        """The largest weight of the vote of round t, between 8^−``growth`` and 1."""
        grown = 1.0 + (round_number - 1) / (self._flip_budget + 1.0)
        return float((min(grown, _FULL) / _FULL) ** self.growth)

    def margin_at(self, round_number: int) -> float:
        """How much weight of votes must be needed in round t to reverse a clear leader's lead: n_t τ_t.

        Because it grows, the regret of ``robust=True`` is Õ(T^¾) if actions are fixed and may duel themselves, the best
        one, x*, leads by at least Δ > 0, the estimate is ``constrained``, and O(√T) votes are flipped, at any time.

        Proof. With probability 1 − δ, ‖θ − θ*‖_Σ ≤ R in every round, where R = O(√(d log T)), because O(√T) flips add
        at most α·O(√T) = O(√d) (the documentation has this bound). Norms without an index are those of Σ⁻¹.

        1. After O(√T) rounds no wrong leader is clear. If L ≠ x* were, then, with u = ‖x_L − x*‖,
           (x_L − x*)ᵀθ ≥ n_t τ_t u² and (x_L − x*)ᵀθ* ≤ −Δ would give Δ + n_t τ_t u² ≤ Ru, so n_t τ_t ≤ R²/4Δ. But
           τ_t = 1 after 7Ĉ + 8 rounds, and n_t > R²/4Δ after Ĉ exp(10R²/ΔĈ), which is O(√T) as Ĉ ∝ √T.
        2. From then on pairs are informative. If L ≠ x*, then Δ ≤ Ru for u = ‖x_L − x*‖. If L = x* is not clear, some
           x_i has Δ ≤ (x* − x_i)ᵀθ + Ru < max(β, n_t u)u + Ru for u = ‖x* − x_i‖. Either way
           u ≥ u₀ = min(√(Δ/2n_T), Δ/2(β + R)). The ratio of L and that action, information for regret, is at least
           u/(2B + Ru + ε). That of the pair asked is no smaller, so ‖φ_t‖ ≥ ω = εu₀/(2B + Ru₀ + ε).
        3. So they are few. Each multiplies det Σ by at least 1 + s min(ω², αω), and det Σ ≤ λ^d (1 + 4sT/dλ)^d. Up to
           logarithms ω is T^−¼ and αω is T^−¾, which leaves Õ(T^¾) rounds, of regret at most 4B. In all others x*
           plays itself. ∎
        """
        if not self.robust or round_number <= self._flip_budget or self._flip_budget == 0.0:
            return 0.0
        votes = _MARGIN * self._flip_budget * math.log(round_number / self._flip_budget)
        return votes * self.grown_trust(round_number)

    def _is_steady(self, horizon: int) -> bool:
        return not self.robust and super()._is_steady(horizon)

    def _now_at(self, round_number: int) -> Now:
        return Now(
            self.radius_at(round_number),
            grown=self.grown_trust(round_number),
            allowance=self._allowance,
            margin=self.margin_at(round_number),
            patience=float(self.patience) or math.inf,
            tolerated=float(self._flip_budget),
        )

    def _check_restored(self) -> None:
        super()._check_restored()
        upsets = float(self._remembered.upsets[0])
        ensure(upsets.is_integer() and 0 <= upsets <= self._asked, f"it cannot have had {upsets} upsets in a row")

    @property
    def _allowance(self) -> float:
        if self.allowance is not None:
            return self.allowance
        rate = 0.0 if self.self_duels else (self.flip_budget or 0) / (self.horizon or USUAL_HORIZON)
        return max(_ALLOWANCE * self.norm_bound, rate / self._design_slope)

    def _resolved_budget(self) -> float:
        root = math.sqrt(self.horizon or USUAL_HORIZON)
        if self.flip_budget is None:
            return (_ROBUST_SUSPICION if self.robust else _SUSPICION) * root
        known = super()._resolved_budget()
        return _ROBUST_SCALE * math.sqrt(known * root) if self.robust else known

    def _default_trust(self) -> float:
        return (_ROBUST_TRUST if self.robust else _TRUST) * rcdb_trust(
            self._effective_dimension, self._flip_budget, kappa=1.0
        )

    @functools.cached_property
    def _design_slope(self) -> float:
        return float(self._link.slope(0.0))

    def _default_ridge(self) -> float:
        return (_RIDGE if self.map is None else _MAPPED_RIDGE) / (self._effective_dimension * self._norm**2)

    @property
    def _practical_scale(self) -> float:
        return 1.0

    def _practical_radius(self, round_number: int) -> float:  # noqa: ARG002
        return _RADIUS

    def _theory_radius(self, round_number: int) -> float:
        slope, d = self._design_slope, self._size
        largest = self._ridge + 4.0 * slope * self._horizon_or(round_number) / d  # mean eigenvalue of Σ, as ‖φ‖ ≤ 2
        noise = determinant_noise(
            dimension=d,
            log_determinant=d * math.log(largest),
            ridge=self._ridge,
            kappa=slope,
            failure=self.failure_probability,
        )
        beta = confidence_radius(
            norm_bound=self._norm,
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
        theta, inverse = self._linear.theta, self._linear.information.inverse
        if self.robust:
            raise BadInputError("robust=True needs actions that are listed; leave it out for implicit sets.")
        _, now, memory = self._turn(self._asked).known
        may_settle = self.self_duels and not is_doubted(now, memory)
        pair = actions.best_pair(theta, inverse, self.current_radius, self._rng, self_duels=may_settle)
        if np.array_equal(pair.first, pair.second):
            return pair  # the leader is clearly ahead
        at_best = 2.0 * float(actions.best(theta) @ theta) + now.allowance
        while True:
            width = math.sqrt(squared_width(inverse, pair.first - pair.second))
            cost = at_best - float((pair.first + pair.second) @ theta)
            better = actions.best_pair(theta, inverse, cost / width, self._rng, self_duels=False)
            if better.score <= at_best + TIE * max(1.0, abs(at_best)):
                return Pair(pair.first, pair.second, at_best, max(better.score - at_best, 0.0) + better.gap)
            pair = better
