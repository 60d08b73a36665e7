"""RCDB-S: Robust Contextual Dueling Bandit for the Sigmoid link function (Algorithm 2)."""

import math
from dataclasses import dataclass
from typing import ClassVar

from fairduel.agents.guarantee import Guarantee
from fairduel.agents.robust import RobustAgent
from fairduel.agents.round import RADIUS, Plan
from fairduel.checks import number_or_name
from fairduel.core.compiling import inlined
from fairduel.core.information import Information, dot
from fairduel.core.links import slope
from fairduel.core.radius import horizon_noise, practical_radius, rcdbs_radius, rcdbs_ridge, rcdbs_trust
from fairduel.core.selection import uncertainty_weight
from fairduel.duel import Vector
from fairduel.errors import BadInputError

SLOPE_RADIUS = RADIUS + 1


@inlined
def weigh(plan: Plan, numbers: Vector, theta: Vector, difference: Vector, width: float) -> tuple[float, float]:
    """The weight of line 12, and v_t, a lower bound on the slope at this duel (lines 14 and 15)."""
    largest = abs(dot(difference, theta)) + numbers[SLOPE_RADIUS] * width  # Δ̂_t
    link = plan.estimator.link
    return uncertainty_weight(plan.trust, width), max(plan.kappa, slope(link.kind, link.scale, largest))


@dataclass(kw_only=True, eq=False)
class RCDBS(RobustAgent):
    """Learn like RCDB, but explore by how steep the sigmoid is where each duel stands.

    Besides Σ, whose duels inform by κ, it keeps Λ, whose duels inform by v_t, a lower bound on the local
    slope; Λ alone steers exploration. Σ gives the weight (eq. weight) and the bound Δ̂_t.

    ``radius="theory"`` is Lemma cE: κ design, λ = d/B, α = (√d + √λ B)/C and β̃_t; ``slope_radius="theory"`` is its
    β_t. With both, Δ̂_t is so wide at first that v_t = κ, as in RCDB; at d = 5 and C = 0 v_t leaves κ after about 8,000
    rounds with B = 1, and after about 86,000 with B = 2. The practical values are RCDB's (plain design, λ = 1/B²,
    α = √d/C), with radius √d/2 (√(d log T)/2 where C = 0) and slope radius √d/4.

    >>> agent = RCDBS(dimension=2, norm_bound=2.0, flip_budget=5, horizon=100, seed=0)
    >>> agent.ask([[1.0, 0.0], [0.0, 1.0]]).slope > agent.settings["kappa"]
    True
    """

    title = "RCDB-S"
    colour = "#CC79A7"
    guarantee = Guarantee("the paper", "contextual dueling bandits", "strong", "Õ(dB¹·⁵√T + dBC/κ)", needs="B, T, C")
    published_settings: ClassVar[dict[str, str]] = {"radius": "theory", "slope_radius": "theory"}

    slope_radius: float | str = "practical"
    """β_t, the radius of Σ within Δ̂_t: ``"practical"``, ``"theory"`` or a number."""

    _weigh = staticmethod(weigh)
    _has_local_information = True

    def __post_init__(self) -> None:
        if str(self.link) != "logistic":
            raise BadInputError(
                f"RCDB-S is built on the sigmoid's slope and takes no {self.link} link: use RCDB for that."
            )
        self.slope_radius = number_or_name("slope_radius", self.slope_radius, self._radius_names())
        super().__post_init__()

    def _numbers_at(self, round_number: int) -> tuple[float, ...]:
        return self.radius_at(round_number), self.slope_radius_at(round_number)

    @property
    def current_slope_radius(self) -> float:
        """β_t of the next duel, with its scale."""
        return self.slope_radius_at(self._asked + 1)

    def slope_radius_at(self, round_number: int) -> float:
        """β_t of round t, with its scale."""
        if not isinstance(self.slope_radius, str):
            return self.radius_scale * self.slope_radius
        if self.slope_radius == "practical":
            return self.radius_scale * math.sqrt(self.dimension) / 4.0
        noise = horizon_noise(  # β_t of Lemma cE is Lemma MLE's β with t for T and δ/2 for δ
            dimension=self.dimension,
            horizon=round_number,
            ridge=self._ridge,
            kappa=self._kappa,
            failure=self.failure_probability / 2.0,
        )
        return self.radius_scale * self._confidence_radius(noise)

    def _theory_radius(self, round_number: int) -> float:
        return rcdbs_radius(
            dimension=self.dimension,
            norm_bound=self.norm_bound,
            flip_budget=self._flip_budget,
            round_number=round_number,
            ridge=self._ridge,
            trust=self._theorem_trust,  # β̃ is a radius for Λ, which is the same on both designs
            failure=self.failure_probability,
        )

    def _practical_radius(self, round_number: int) -> float:
        # No slope exceeds ¼, so once the ridge is outgrown ‖φ‖_Λ⁻¹ is at least twice RCDB's ‖φ‖_Σ⁻¹: half its radius.
        if self._flip_budget == 0:
            return practical_radius(self.dimension, self._horizon_or(round_number)) / 2.0
        return math.sqrt(self.dimension) / 2.0

    def _default_ridge(self) -> float:
        return rcdbs_ridge(self.dimension, self.norm_bound) if self._by_theorem else super()._default_ridge()

    def _default_trust(self) -> float:
        if not self._by_theorem:
            return super()._default_trust()
        return rcdbs_trust(self.dimension, self.norm_bound, self._flip_budget, self._ridge) / self._stretch

    @property
    def local_information(self) -> Information:
        """Λ of all that was asked."""
        return self._local_information
