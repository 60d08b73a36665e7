"""MaxPairUCB (Di 2023): RCDB's loop with every duel trusted fully."""

import math
from dataclasses import dataclass

from fairduel.agents.contextual import ContextualAgent
from fairduel.core.radius import confidence_radius, horizon_noise, practical_radius


@dataclass(kw_only=True, eq=False)
class MaxPairUCB(ContextualAgent):
    """Ask the pair with the largest estimated rewards plus uncertainty; weigh all outcomes alike.

    ``radius="practical"`` is √(d log T). ``radius="theory"`` is Lemma MLE's β at C = 0, divided by √κ because
    Σ here is not scaled by κ.

    >>> agent = MaxPairUCB(dimension=2, norm_bound=2.0, horizon=100, seed=0)
    >>> agent.ask([[1.0, 0.0], [0.0, 1.0]]).weight
    1.0
    """

    title = "MaxPairUCB"
    colour = "#0072B2"

    def _practical_radius(self, round_number: int) -> float:
        return practical_radius(self.dimension, self._horizon_or(round_number))

    def _theory_radius(self, round_number: int) -> float:
        noise = horizon_noise(
            dimension=self.dimension,
            horizon=self._horizon_or(round_number),
            ridge=self._ridge,
            kappa=self._kappa,
            failure=self.failure_probability,
        )
        beta = confidence_radius(
            norm_bound=self.norm_bound, flip_budget=0, ridge=self._ridge, trust=math.inf, noise=noise
        )
        return beta / math.sqrt(self._kappa)
