"""GINOP (Ben Yahmed 2026), its linear case."""

import math
from dataclasses import dataclass

from fairduel.agents.parts.belief import HessianBelief
from fairduel.agents.parts.contextual import ContextualAgent
from fairduel.agents.parts.rules import by_curvature
from fairduel.core.radius import rcdbs_radius


@dataclass(kw_only=True, eq=False)
class GINOP(ContextualAgent):
    """Ask MaxPairUCB's pair, with the uncertainty of the likelihood at the current estimate.

    Ben Yahmed 2026, linear case, with every outcome fully trusted::

        for t = 1 … T
            θ ← solution of λθ + Σ_{i<t} [σ(φ_iᵀθ) − o_i] φ_i = 0
            H ← λI + Σ_{i<t} σ′(φ_iᵀθ) φ_i φ_iᵀ
            (a, b) ← argmax (x_a + x_b)ᵀθ + b‖x_a − x_b‖_H⁻¹
            ask a against b

    The rule is from the text of the publication. **Inferred by us**: that its confidence set is this ellipsoid around
    the MLE, and the theory radius, which is Lemma C.1 of RCDB-S at C = 0. While outcomes are pending, their duels count
    in H by σ′(φᵀθ) at the time they were asked.

    Args:
        radius: b. ``"practical"``: √d. ``"theory"``: (1 + 4B)[√λ B + √λ/2 + (2d/√λ) log((dλ + 2t)/(dλδ))]. Or a number.
        ridge: λ; ``None`` uses 1/B².

    >>> agent = GINOP(dimension=2, norm_bound=2.0, horizon=100, seed=0)
    >>> agent.ask([[1.0, 0.0], [0.0, 1.0]]).slope
    0.25
    """

    title = "GINOP (adapted)"
    colour = "#56B4E9"

    _belief_kind = HessianBelief
    _trust_rule = staticmethod(by_curvature)

    def _practical_radius(self, round_number: int) -> float:  # noqa: ARG002
        return math.sqrt(self._effective_dimension)

    def _theory_radius(self, round_number: int) -> float:
        return rcdbs_radius(
            dimension=self._size,
            norm_bound=self._norm,
            flip_budget=0,
            round_number=round_number,
            ridge=self._ridge,
            trust=math.inf,
            failure=self.failure_probability,
        )
