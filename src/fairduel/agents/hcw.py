"""HCW: Hessian-based confidence weights with a one-pass estimate (Kim 2026), for duels."""

from dataclasses import dataclass
from typing import Any, ClassVar

from fairduel.agents.parts.belief import HessianBelief
from fairduel.agents.parts.flip_tolerance import Constants, FlipTolerant
from fairduel.agents.parts.rules import by_curvature
from fairduel.core.estimators import EstimatorName
from fairduel.core.radius import rcdb_trust


@dataclass(kw_only=True, eq=False)
class HCW(FlipTolerant):
    """Weigh like RCDB, but by the Hessian of a one-pass estimate, at constant cost per round.

    HCW-GLB-OMD of Kim 2026, a bandit of rewards with a generalized linear link, adapted to duels::

        for t = 1 … T
            (a, b) ← argmax (x_a + x_b)ᵀθ + β‖x_a − x_b‖_H⁻¹
            ask a against b; the outcome o_t may be flipped
            w ← min(1, α/‖φ‖_H⁻¹)
            g ← w [σ(φᵀθ) − o_t] φ;  H̃ ← H + η w σ′(φᵀθ) φφᵀ
            θ ← projection of θ − η H̃⁻¹ g onto ‖θ‖ ≤ B in the norm of H̃
            H ← H + w σ′(φᵀθ) φφᵀ

    The mirror descent follows the publication. **Inferred by us**: the form of the weight, the pair, α and β. The
    publication's constants are not used: λ = 1/B² and η = 2 are those of every one-pass estimate here. Nothing is
    proven for duels, so there is no theory radius. While outcomes are pending, their duels count in H by σ′(φᵀθ) at the
    time they were asked.

    Args:
        flip_budget: C, how many outcomes may be flipped; ``None`` tolerates ⌈√T⌉ and needs ``horizon``.
        radius: β. ``"practical"``: √d/2, or √(d log T)/2 if C = 0. ``"pre-tuned"``: constants found by search, which
            also change α, λ and the assumed C. Or a number.
        trust: α; ``None`` uses √d/(C√σ′(0)), which is 2√d/C for the logistic link: RCDB's weights where rewards are
            close, because H is then σ′(0) times RCDB's Σ.
        ridge: λ; ``None`` uses 1/B².

    >>> agent = HCW(dimension=2, norm_bound=2.0, flip_budget=5, horizon=100, seed=0)
    >>> round(agent.ask([[1.0, 0.0], [0.0, 1.0]]).weight, 3)
    0.2
    """

    title = "HCW (adapted)"
    full_title = "HCW-GLB-OMD (adapted)"
    colour = "#882255"
    published_settings: ClassVar[dict[str, Any]] = {}

    pre_tuned = Constants(radius=0.406, clean_radius=1.0, trust=0.838, ridge=0.38, tolerance=1.168)

    estimator: EstimatorName = "one-pass"

    _belief_kind = HessianBelief
    _trust_rule = staticmethod(by_curvature)

    def _default_trust(self) -> float:
        return rcdb_trust(self._effective_dimension, self._flip_budget, float(self._link.slope(0.0)))

    def _practical_radius(self, round_number: int) -> float:
        # No slope exceeds ¼, so once the ridge is outgrown ‖φ‖_H⁻¹ is at least twice RCDB's ‖φ‖_Σ⁻¹: half its radius.
        return super()._practical_radius(round_number) / 2.0

    _theory_radius = _practical_radius

    def _radius_names(self) -> tuple[str, ...]:
        return tuple(name for name in super()._radius_names() if name != "theory")
