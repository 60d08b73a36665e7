"""What RCDB and RCDB-S share: a tolerance for flips, and the uncertainty weight that comes of it."""

import functools
import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

from fairduel.agents.contextual import ContextualAgent
from fairduel.checks import integer, positive
from fairduel.core.radius import confidence_radius, rcdb_trust
from fairduel.errors import BadInputError, unknown_name

Design = Literal["plain", "kappa"]


@dataclass(kw_only=True, eq=False)
class RobustAgent(ContextualAgent):
    """An agent that trusts a duel less the less it knows about it: w = min(1, α/‖φ‖_Σ⁻¹).

    The radius decides what is not said otherwise: the theorem's values with one of the theorem's
    radii, the practical ones with any other.
    """

    flip_budget: int | None = None
    """C, how many outcomes may be flipped; ``None`` tolerates C̄ = ⌈√T⌉ (Theorem unknown)."""
    trust: float | None = None
    """α; ``None`` takes the theorem's, or √d/C."""
    design: Design | None = None
    """``"kappa"``: Σ grows by w·κ·φφᵀ, as printed. ``"plain"``: by w·φφᵀ. ``None``: κ with a theorem's radius."""

    def __post_init__(self) -> None:
        if self.design is not None and self.design not in get_args(Design):
            raise unknown_name("design", str(self.design), get_args(Design))
        self.trust = None if self.trust is None else positive("trust", self.trust)
        self._design: Design = self.design or ("kappa" if self._by_theorem else "plain")
        self._flip_budget = self._tolerance()
        super().__post_init__()

    @property
    def _by_theorem(self) -> bool:
        return self.radius in self._radius_names() and self.radius != "practical"

    @functools.cached_property
    def _trust(self) -> float:
        return self._default_trust() if self.trust is None else self.trust

    @property
    def _design_slope(self) -> float:
        return self._kappa if self._design == "kappa" else 1.0

    @property
    def _stretch(self) -> float:
        """How many times as long ‖φ‖_Σ⁻¹ is on the κ design of the theorems as on the agent's own: 1, or 1/√κ.

        The plain Σ with ridge λ/κ in place of λ is Σ_κ/κ, so that there ‖φ‖_Σ⁻¹ = √κ‖φ‖_Σκ⁻¹; the same weights then
        need √κ times the theorem's α, and the same set around θ has 1/√κ times its radius. With ridge λ the plain Σ
        lies below Σ_κ/κ: weights are smaller and sets larger than the theorem's, which keeps it true.
        """
        return math.sqrt(self._design_slope / self._kappa)

    @property
    def _theorem_trust(self) -> float:
        """α as the theorems mean it, on the κ design."""
        return self._trust * self._stretch

    def _confidence_radius(self, noise: float) -> float:
        """Lemma MLE's β, on the agent's design."""
        beta = confidence_radius(
            norm_bound=self.norm_bound,
            flip_budget=self._flip_budget,
            ridge=self._ridge,
            trust=self._theorem_trust,
            noise=noise,
        )
        return beta * self._stretch

    def _default_trust(self) -> float:
        # On the plain design ‖φ‖ is √κ times as long, so Theorem main's α becomes √d/C.
        return rcdb_trust(self.dimension, self._flip_budget, self._design_slope)

    def _tolerance(self) -> int:
        if self.flip_budget is not None:
            self.flip_budget = integer("flip_budget", self.flip_budget)
            return self.flip_budget
        if self.horizon is None:
            raise BadInputError(
                "flip_budget and horizon are both unknown: give the flip budget, or a horizon T to tolerate ⌈√T⌉."
            )
        return math.ceil(math.sqrt(integer("horizon", self.horizon, least=1)))

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting as given, and the numbers that came of it."""
        resolved = {"flip_budget": self._flip_budget, "trust": self._trust, "design": self._design}
        return super().settings | resolved
