"""MaxInP: Maximum Informative Pair (Saha 2021)."""

from dataclasses import dataclass

from fairduel.agents.contextual import ContextualAgent
from fairduel.core.radius import maxinp_radius, practical_radius
from fairduel.core.selection import informative_pair, informative_pair_by_gram
from fairduel.duel import Matrix


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

    def _choose(self, actions: Matrix) -> tuple[int, int]:
        radius, tie, gram = self.current_radius, self._rng.random(), self._information.gram
        if gram is not None:
            return informative_pair_by_gram(actions @ self._theta, gram, radius, self.self_duels, tie)
        return informative_pair(actions, self._theta, self._information.inverse, radius, self.self_duels, tie)

    def _practical_radius(self, round_number: int) -> float:
        return practical_radius(self.dimension, self._horizon_or(round_number))

    def _theory_radius(self, round_number: int) -> float:
        return maxinp_radius(self.dimension, self._horizon_or(round_number), self._kappa, self.failure_probability)
