"""RCDB-S: Robust Contextual Dueling Bandit for the Sigmoid link function (Algorithm 2)."""

import math
from dataclasses import dataclass
from typing import ClassVar

from fairduel.agents.parts.agent import Guarantee
from fairduel.agents.parts.belief import LocalSlopeBelief
from fairduel.agents.parts.flip_tolerance import Constants, DesignedAgent
from fairduel.agents.parts.round import Now
from fairduel.agents.parts.rules import by_local_slope, symmetric
from fairduel.checks import number_or_name
from fairduel.core.radius import rcdbs_radius, rcdbs_ridge, rcdbs_trust
from fairduel.errors import BadInputError


@dataclass(kw_only=True, eq=False)
class RCDBS(DesignedAgent):
    """Learn like RCDB, but explore by the sigmoid's local slope instead of its smallest slope κ.

    Algorithm 2 of the paper: a second matrix Λ, in which each duel counts by v_t, a lower bound on the slope at that
    duel, steers exploration; Σ still sets the weights (s = κ as printed, or 1)::

        for t = 1 … T                                                     line 3
            Σ ← λI + Σ_{i<t} w_i s φ_i φ_iᵀ                               line 4
            Λ ← λI + Σ_{i<t} w_i v_i φ_i φ_iᵀ                             line 6
            θ ← solution of λθ + Σ_{i<t} w_i [σ(φ_iᵀθ) − o_i] φ_i = 0     line 7
            (a, b) ← argmax (x_a + x_b)ᵀθ + β̃_t‖x_a − x_b‖_Λ⁻¹            line 10
            ask a against b; the outcome o_t may be flipped               line 11
            w_t ← min(1, α/‖φ_t‖_Σ⁻¹)                                     line 12
            Δ̂_t ← |φ_tᵀθ| + β_t‖φ_t‖_Σ⁻¹                                  line 14
            v_t ← max(κ, σ′(Δ̂_t))                                         line 15

    With both theory radii, Δ̂_t is so wide at first that v_t = κ, as in RCDB: at d = 5 and C = 0, v_t leaves κ after
    about 8,000 rounds with B = 1 and 86,000 with B = 2. Departures from the paper: the practical values are ours and
    carry no guarantee; on the plain design Λ lies below Σ; β̃_t follows Lemma C.1 (with its √λ/2, and t for T) rather
    than Theorem 6.1. The logistic link is required.

    Args:
        flip_budget: C, how many outcomes may be flipped; ``None`` tolerates ⌈√T⌉ and needs ``horizon``.
        radius: β̃_t. ``"practical"``: √d/2, or √(d log T)/2 if C = 0. ``"theory"``, Lemma C.1:
            (1 + 4B)[√λ B + √λ/2 + (2d/√λ) log((dλ + 2t)/(dλδ)) + αC]; it also sets the theorem's design, λ and α.
            ``"pre-tuned"``: constants found by search, which also change β_t, α, λ and the assumed C. Or a number.
        slope_radius: β_t. ``"practical"``: √d/4. ``"theory"``: √λ B + √(d log(2(1 + 2t/λ)/δ)/κ) + αC. Or a number.
        trust: α; ``None`` uses √d/C, or (√d + √λ B)/C with a theory radius.
        design: ``"plain"``: Σ grows by w·φφᵀ. ``"kappa"``: by w·κ·φφᵀ. ``None``: ``"kappa"`` with a theory radius.
        ridge: λ; ``None`` uses 1/B², or d/B with a theory radius.

    >>> agent = RCDBS(dimension=2, norm_bound=2.0, flip_budget=5, horizon=100, seed=0)
    >>> agent.ask([[1.0, 0.0], [0.0, 1.0]]).slope > agent.settings["kappa"]
    True
    """

    title = "RCDB-S"
    colour = "#CC79A7"
    guarantee = Guarantee("the paper", "contextual dueling bandits", "strong", "Õ(dB¹·⁵√T + dBC/κ)", needs="B, T, C")
    published_settings: ClassVar[dict[str, str]] = {"radius": "theory", "slope_radius": "theory"}

    pre_tuned = Constants(radius=0.143, clean_radius=1.0, trust=0.395, ridge=7.99, tolerance=1.377, slope_radius=0.0415)

    slope_radius: float | str = "practical"

    _belief_kind = LocalSlopeBelief  # Σ, line 4; Λ, line 6; θ, line 7
    _rule = staticmethod(symmetric)  # line 10
    _trust_rule = staticmethod(by_local_slope)  # lines 12, 14 and 15

    def __post_init__(self) -> None:
        if str(self.link) != "logistic":
            raise BadInputError(f"RCDB-S supports only the logistic link, not {self.link}; use RCDB.")
        self.slope_radius = number_or_name("slope_radius", self.slope_radius, ("practical", "theory"))
        super().__post_init__()

    def _now_at(self, round_number: int) -> Now:
        return Now(self.radius_at(round_number), slope_radius=self.slope_radius_at(round_number))

    def slope_radius_at(self, round_number: int) -> float:
        """Return β_t of round t, scaled."""
        if not isinstance(self.slope_radius, str):
            return self.radius_scale * self.slope_radius
        if self.slope_radius == "practical":
            share = self._constants.slope_radius if self._constants else 0.25
            return self.radius_scale * self._practical_scale * share * math.sqrt(self._effective_dimension)
        # β_t of Lemma C.1 is Lemma 5.1's β with t for T and δ/2 for δ.
        noise = self._horizon_noise(round_number, self.failure_probability / 2.0)
        return self.radius_scale * self._confidence_radius(noise)

    def _theory_radius(self, round_number: int) -> float:
        return rcdbs_radius(
            dimension=self._size,
            norm_bound=self._norm,
            flip_budget=self._flip_budget,
            round_number=round_number,
            ridge=self._ridge,
            trust=self._theorem_trust,  # β̃ is a radius for Λ, which is the same on both designs
            failure=self.failure_probability,
        )

    def _practical_radius(self, round_number: int) -> float:
        # No slope exceeds ¼, so once the ridge is outgrown ‖φ‖_Λ⁻¹ is at least twice RCDB's ‖φ‖_Σ⁻¹: half its radius.
        return super()._practical_radius(round_number) / 2.0

    def _default_ridge(self) -> float:
        return rcdbs_ridge(self._effective_dimension, self._norm) if self._by_theorem else super()._default_ridge()

    def _default_trust(self) -> float:
        if not self._by_theorem:
            return super()._default_trust()
        return rcdbs_trust(self._effective_dimension, self._norm, self._flip_budget, self._ridge) / self._stretch
