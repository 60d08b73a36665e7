"""MaxInP: Maximum Informative Pair (Saha 2021)."""

from dataclasses import dataclass

from fairduel.agents.parts.contextual import ContextualAgent
from fairduel.agents.parts.rules import most_informative
from fairduel.core.radius import maxinp_radius, practical_radius


@dataclass(kw_only=True, eq=False)
class MaxInP(ContextualAgent):
    """Among the actions that may still be best, ask the pair whose difference is least known.

    Saha 2021, with every outcome fully trusted::

        for t = 1 … T
            θ ← solution of λθ + Σ_{i<t} [σ(φ_iᵀθ) − o_i] φ_i = 0
            S ← {i : (x_i − x_j)ᵀθ + η‖x_i − x_j‖_Σ⁻¹ > 0 for all j ≠ i}
            (a, b) ← the pair of S with the largest ‖x_a − x_b‖_Σ⁻¹
            ask a against b; Σ ← Σ + φ_t φ_tᵀ

    If S has one action, it duels itself; if none, the action with the largest x_iᵀθ does. With ``self_duels=False`` it
    meets its toughest rival instead, argmax (x_i − x_a)ᵀθ + η‖x_i − x_a‖_Σ⁻¹.

    Departures: a ridge makes Σ invertible, so no warm-up is needed; Bengs 2022 starts with d·K random duels
    (``warmup``). The constants of the theory radius come from secondary sources.

    Args:
        radius: η. ``"practical"``: √(d log T), as in the experiments of Bengs 2022. ``"theory"``:
            (1/2κ)√((d/2) log(1 + 2T/d) + log(1/δ)). Or a number.
        ridge: λ; ``None`` uses 1/B².

    >>> agent = MaxInP(dimension=2, norm_bound=2.0, horizon=100, seed=0, warmup=10)
    >>> agent.ask([[1.0, 0.0], [0.0, 1.0]]).is_self_duel
    False
    """

    title = "MaxInP"
    colour = "#009E73"

    _rule = staticmethod(most_informative)

    def _practical_radius(self, round_number: int) -> float:
        return practical_radius(self._effective_dimension, self._horizon_or(round_number))

    def _theory_radius(self, round_number: int) -> float:
        return maxinp_radius(self._size, self._horizon_or(round_number), self._kappa, self.failure_probability)
