"""MaxMinLCB (Pásztor 2024): the most pessimistic rival of the most promising action."""

from dataclasses import dataclass

import numpy as np

from fairduel.agents.parts.contextual import ContextualAgent
from fairduel.agents.parts.round import Memory, Now, Plan
from fairduel.core.compiling import inlined
from fairduel.core.selection import View, maxmin_pair


@inlined
def maxmin(plan: Plan, now: Now, memory: Memory, seen: View, rng: np.random.Generator) -> tuple[int, int]:  # noqa: ARG001
    """argmax over a of the smallest σ(r_a − r_b) − β‖x_a − x_b‖, with the b that makes it smallest."""
    return maxmin_pair(seen, now.radius, plan.link, plan.self_duels, rng.random())


@dataclass(kw_only=True, eq=False)
class MaxMinLCB(ContextualAgent):
    """Ask the action that is safest to win, against the rival that it is least sure to beat.

    Pásztor 2024, with every outcome fully trusted::

        for t = 1 … T
            θ ← solution of λθ + Σ_{i<t} [σ(φ_iᵀθ) − o_i] φ_i = 0
            LCB(a, b) ← σ((x_a − x_b)ᵀθ) − β‖x_a − x_b‖_Σ⁻¹
            a ← argmax_a min_b LCB(a, b);  b ← argmin_b LCB(a, b)
            ask a against b; Σ ← Σ + φ_t φ_tᵀ

    The publication's kernel is the feature ``map``. Departures: an action may duel itself, as in the published
    experiments (LCB(a, a) = ½), unless ``self_duels=False``; λ serves Σ and θ.

    Args:
        radius: β. ``"practical"``: 1, as published. Or a number.
        ridge: λ; ``None`` uses ¼, as published.

    >>> agent = MaxMinLCB(dimension=2, norm_bound=2.0, horizon=100, seed=0, self_duels=False)
    >>> agent.ask([[1.0, 0.0], [0.0, 1.0]]).is_self_duel
    False
    """

    title = "MaxMinLCB"
    colour = "#AA4499"

    _rule = staticmethod(maxmin)

    def _default_ridge(self) -> float:
        return 0.25

    @property
    def _practical_scale(self) -> float:
        return 1.0

    def _practical_radius(self, round_number: int) -> float:  # noqa: ARG002
        return 1.0

    _theory_radius = _practical_radius
