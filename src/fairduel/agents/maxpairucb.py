"""MaxPairUCB (Di 2023): RCDB's loop with every duel fully trusted."""

import math
from dataclasses import dataclass

from fairduel.agents.parts.contextual import ContextualAgent
from fairduel.core.radius import confidence_radius, horizon_noise, practical_radius


@dataclass(kw_only=True, eq=False)
class MaxPairUCB(ContextualAgent):
    """Ask the pair with the largest estimated rewards plus uncertainty, and trust every outcome fully.

    It is RCDB with w = 1 and no κ in Σ (Di 2023)::

        for t = 1 … T
            θ ← solution of λθ + Σ_{i<t} [σ(φ_iᵀθ) − o_i] φ_i = 0
            (a, b) ← argmax (x_a + x_b)ᵀθ + β‖x_a − x_b‖_Σ⁻¹
            ask a against b; Σ ← Σ + φ_t φ_tᵀ

    Departures: the theory radius is ours, Lemma 5.1's β at C = 0 divided by √κ, because Σ here is not scaled by κ. The
    authors' code has 2√(d log T) and a ridge of 0.001; here one λ serves both Σ and θ.

    Args:
        radius: β. ``"practical"``: √(d log T). ``"theory"``: (√λ B + √(d log((1 + 2T/λ)/δ)/κ))/√κ. Or a number.
        ridge: λ; ``None`` uses 1/B².

    >>> agent = MaxPairUCB(dimension=2, norm_bound=2.0, horizon=100, seed=0)
    >>> agent.ask([[1.0, 0.0], [0.0, 1.0]]).weight
    1.0
    """

    title = "MaxPairUCB"
    colour = "#0072B2"

    def _practical_radius(self, round_number: int) -> float:
        return practical_radius(self._effective_dimension, self._horizon_or(round_number))

    def _theory_radius(self, round_number: int) -> float:
        noise = horizon_noise(
            dimension=self._size,
            horizon=self._horizon_or(round_number),
            ridge=self._ridge,
            kappa=self._kappa,
            failure=self.failure_probability,
        )
        beta = confidence_radius(norm_bound=self._norm, flip_budget=0, ridge=self._ridge, trust=math.inf, noise=noise)
        return beta / math.sqrt(self._kappa)
