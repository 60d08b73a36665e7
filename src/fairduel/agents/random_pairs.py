"""Random pairs: the reference that every adaptive agent should beat."""

import sys
from dataclasses import dataclass
from typing import Any, ClassVar

from fairduel.agents.parts.contextual import ContextualAgent


@dataclass(kw_only=True, eq=False)
class RandomPairs(ContextualAgent):
    """Ask two random actions in every round, and recommend the best one by the estimate.

    A warm-up that never ends::

        for t = 1 … T
            (a, b) ← a pair of distinct actions, uniformly at random
            ask a against b
        θ ← solution of λθ + Σ_i [σ(φ_iᵀθ) − o_i] φ_i = 0

    It has no publication to depart from. Its regret grows linearly; its estimate is what an adaptive agent's should be
    compared with. The settings of the radius have no effect.

    Args:
        radius: No effect.
        ridge: λ; ``None`` uses 1/B².

    >>> agent = RandomPairs(dimension=2, norm_bound=2.0, seed=0)
    >>> agent.ask([[1.0, 0.0], [0.0, 1.0]]).is_self_duel
    False
    """

    title = "Random pairs"
    colour = "#999999"
    published_settings: ClassVar[dict[str, Any]] = {}

    @property
    def _random_rounds(self) -> int:
        return sys.maxsize

    def _practical_radius(self, round_number: int) -> float:  # noqa: ARG002
        return 0.0

    _theory_radius = _practical_radius
