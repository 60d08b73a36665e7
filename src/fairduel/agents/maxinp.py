"""MaxInP: Maximum Informative Pair (Saha 2021)."""

from dataclasses import dataclass

import numpy as np

from fairduel.agents.contextual import ContextualAgent
from fairduel.agents.round import RADIUS, Plan
from fairduel.core.compiling import inlined
from fairduel.core.radius import maxinp_radius, practical_radius
from fairduel.core.selection import View, informative_pair
from fairduel.duel import Vector


@inlined
def choose(plan: Plan, numbers: Vector, seen: View, rng: np.random.Generator) -> tuple[int, int]:
    """The most informative pair of promising actions."""
    return informative_pair(seen, numbers[RADIUS], plan.self_duels, rng.random())


@dataclass(kw_only=True, eq=False)
class MaxInP(ContextualAgent):
    """Among the actions that may still be best, ask the pair about which least is known.

    ``radius="practical"`` is η = √(d log T), as in the experiments of Bengs 2022, who also start with d·K
    random duels: pass ``warmup`` for that. ``radius="theory"`` is Saha's η.

    >>> agent = MaxInP(dimension=2, norm_bound=2.0, horizon=100, seed=0, warmup=10)
    >>> agent.ask([[1.0, 0.0], [0.0, 1.0]]).is_self_duel
    False
    """

    title = "MaxInP"
    colour = "#009E73"

    _choose = staticmethod(choose)

    def _practical_radius(self, round_number: int) -> float:
        return practical_radius(self.dimension, self._horizon_or(round_number))

    def _theory_radius(self, round_number: int) -> float:
        return maxinp_radius(self.dimension, self._horizon_or(round_number), self._kappa, self.failure_probability)
