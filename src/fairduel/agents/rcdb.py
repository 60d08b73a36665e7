"""RCDB: Robust Contextual Dueling Bandit (Algorithm 1)."""

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

from fairduel.agents.robust import RobustAgent
from fairduel.duel import Matrix, Vector
from fairduel.errors import unknown_name
from fairduel.radius import determinant_radius, practical_radius, rcdb_radius, rcdb_trust
from fairduel.selection import symmetric_pair

Design = Literal["plain", "kappa"]


@dataclass(kw_only=True, eq=False)
class RCDB(RobustAgent):
    """Learn from duels although up to C of their outcomes are flipped.

    Line 3 (Σ), line 4 (the MLE) and the order of the loop are the base class's; line 6 is
    :meth:`_choose`, line 8 (eq. weight) is :meth:`RobustAgent._weigh`.

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

    design: Design | None = None
    """``"kappa"``: Σ grows by w·κ·φφᵀ, as printed. ``"plain"``: by w·φφᵀ. ``None``: by the radius's preset."""

    def __post_init__(self) -> None:
        if self.design is not None and self.design not in get_args(Design):
            raise unknown_name("design", str(self.design), get_args(Design))
        by_theorem = self.radius in ("theory", "determinant")
        self._design: Design = self.design or ("kappa" if by_theorem else "plain")
        super().__post_init__()

    def _choose(self, actions: Matrix) -> tuple[int, int]:  # line 6
        return symmetric_pair(
            actions,
            self._theta,
            self._information.inverse,
            self.current_radius,
            self.self_duels,
            self._rng.random(),
        )

    def _slope(self, difference: Vector, width: float) -> float:  # noqa: ARG002  # line 3
        return self._kappa if self._design == "kappa" else 1.0

    def _default_trust(self) -> float:
        # On the plain design ‖φ‖ is √κ times as long, so Theorem main's α becomes √d/C.
        return rcdb_trust(self.dimension, self._flip_budget, self._kappa if self._design == "kappa" else 1.0)

    def _practical_radius(self) -> float:
        if self._flip_budget == 0:
            return practical_radius(self.dimension, self._horizon_or_round)
        return math.sqrt(self.dimension)

    def _theory_radius(self) -> float:
        # Lemma MLE speaks of the κ design. Since Σ_plain ≼ Σ_κ/κ, its set holds there with β/√κ, α√κ.
        to_plain = 1.0 if self._design == "kappa" else math.sqrt(self._kappa)
        shared = {
            "dimension": self.dimension,
            "norm_bound": self.norm_bound,
            "flip_budget": self._flip_budget,
            "ridge": self._ridge,
            "trust": self._trust / to_plain,
            "kappa": self._kappa,
            "failure": self.failure_probability,
        }
        if self.radius == "determinant":
            value = determinant_radius(**shared, log_determinant=self._information.log_determinant)
        else:
            value = rcdb_radius(**shared, horizon=self._horizon_or_round)
        return value / to_plain

    def _radius_names(self) -> tuple[str, ...]:
        return ("practical", "theory", "determinant")

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting as given, and the numbers that came of it."""
        return super().settings | {"design": self._design}
