"""RCDB: Robust Contextual Dueling Bandit (Algorithm 1)."""

import math
from dataclasses import dataclass

from fairduel.agents.guarantee import Guarantee
from fairduel.agents.robust import RobustAgent
from fairduel.agents.round import RunPlan
from fairduel.core.radius import determinant_noise, horizon_noise, practical_radius
from fairduel.errors import BadInputError


@dataclass(kw_only=True, eq=False)
class RCDB(RobustAgent):
    """Learn from duels although up to C of their outcomes are flipped.

    Everything but the radius and α is what all agents with features share (:mod:`~fairduel.agents.round`): the order of
    the loop is ``ask_step``, line 6 ``choose``, line 8 (eq. weight) ``weigh``, line 3 (Σ) ``commit_step``; line 4 (the
    MLE) is the estimator.

    ``radius="theory"`` is Theorem main: κ design, λ = 1/B², α = √d/(C√κ), β of Lemma MLE;
    ``radius="determinant"`` is the same with β before its determinant is bounded. ``radius="practical"``,
    the default, is plain design, λ = 1/B², α = √d/C and β = √d, or √(d log T) where C = 0, because there
    √d locks in.

    >>> import numpy as np
    >>> from fairduel import Outcome
    >>> agent = RCDB(dimension=2, norm_bound=2.0, flip_budget=5, horizon=100, seed=0)
    >>> actions = np.array([[1.0, 0.0], [0.0, 1.0], [-0.6, 0.8]])
    >>> for _ in range(100):
    ...     duel = agent.ask(actions)
    ...     agent.tell(duel, Outcome.FIRST if duel.first < duel.second else Outcome.SECOND)
    >>> agent.recommend(actions)
    0
    """

    title = "RCDB"
    colour = "#D55E00"
    guarantee = Guarantee(
        "the paper", "contextual dueling bandits", "strong", "Õ(d√T + dC)", needs="B, T, C", in_paper=True
    )

    def __post_init__(self) -> None:
        if self.radius == "determinant" and self.design == "plain":
            raise BadInputError("radius='determinant' speaks of det Σ on the κ design: leave design out, or 'kappa'.")
        super().__post_init__()

    def _practical_radius(self, round_number: int) -> float:
        if self._flip_budget == 0:
            return practical_radius(self.dimension, self._horizon_or(round_number))
        return math.sqrt(self.dimension)

    def _theory_radius(self, round_number: int) -> float:
        if self.radius == "determinant":
            noise = determinant_noise(
                dimension=self.dimension,
                log_determinant=self._information.log_determinant,
                ridge=self._ridge,
                kappa=self._kappa,
                failure=self.failure_probability,
            )
        else:
            noise = horizon_noise(
                dimension=self.dimension,
                horizon=self._horizon_or(round_number),
                ridge=self._ridge,
                kappa=self._kappa,
                failure=self.failure_probability,
            )
        return self._confidence_radius(noise)

    def plan_run(self, horizon: int) -> RunPlan | None:
        """What a compiled run needs; a radius by det Σ cannot be planned."""
        return None if self.radius == "determinant" else super().plan_run(horizon)

    def _radius_names(self) -> tuple[str, ...]:
        return ("practical", "theory", "determinant")
