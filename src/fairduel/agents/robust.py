"""The tolerance for flips and the uncertainty weight that RCDB, RCDB-S and HCW share."""

import functools
import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

from fairduel.agents.contextual import ContextualAgent
from fairduel.checks import integer, positive
from fairduel.core.radius import confidence_radius, horizon_noise, practical_radius, rcdb_trust
from fairduel.errors import BadInputError, unknown_name

Design = Literal["plain", "kappa"]


@dataclass(kw_only=True, eq=False)
class FlipTolerant(ContextualAgent):
    """Base of agents that trust a duel less the less they know about it: w = min(1, α/‖φ‖).

    Args:
        flip_budget: C, how many outcomes may be flipped; ``None`` tolerates ⌈√T⌉ (Theorem unknown).
        trust: α; ``None`` uses the theorem's value, or √d/C.
    """

    assumes_if_untold: ClassVar[str] = "C = ⌈√T⌉"

    flip_budget: int | None = None
    trust: float | None = None

    def __post_init__(self) -> None:
        self.trust = None if self.trust is None else positive("trust", self.trust)
        self._flip_budget = self._resolved_budget()
        super().__post_init__()

    @functools.cached_property
    def _trust(self) -> float:
        return self._default_trust() if self.trust is None else self.trust

    def _default_trust(self) -> float:
        # On the plain design ‖φ‖ is √κ times as long, so Theorem main's α becomes √d/C.
        return rcdb_trust(self.dimension, self._flip_budget, self._design_slope)

    def _practical_radius(self, round_number: int) -> float:
        if self._flip_budget == 0:  # √d locks in when every outcome is fully trusted
            return practical_radius(self.dimension, self._horizon_or(round_number))
        return math.sqrt(self.dimension)

    def _resolved_budget(self) -> int:
        if self.flip_budget is not None:
            self.flip_budget = integer("flip_budget", self.flip_budget)
            return self.flip_budget
        if self.horizon is None:
            raise BadInputError("set flip_budget, or set horizon (T) to tolerate ⌈√T⌉ flips.")
        return math.ceil(math.sqrt(integer("horizon", self.horizon, least=1)))

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting, with defaults resolved."""
        return super().settings | {"flip_budget": self._flip_budget, "trust": self._trust}


@dataclass(kw_only=True, eq=False)
class RobustAgent(FlipTolerant):
    """Base of RCDB and RCDB-S, whose weights are in the norm of Σ⁻¹.

    The radius decides all other defaults: the theorem's values with a theorem's radius, the practical ones otherwise.

    Args:
        design: ``"kappa"``: Σ grows by w·κ·φφᵀ, as printed. ``"plain"``: by w·φφᵀ. ``None``: ``"kappa"`` with a
            theorem's radius, otherwise ``"plain"``.
    """

    design: Design | None = None

    def __post_init__(self) -> None:
        if self.design is not None and self.design not in get_args(Design):
            raise unknown_name("design", str(self.design), get_args(Design))
        self._design: Design = self.design or ("kappa" if self._by_theorem else "plain")
        super().__post_init__()

    @property
    def _by_theorem(self) -> bool:
        return self.radius in self._radius_names() and self.radius != "practical"

    @property
    def _design_slope(self) -> float:
        return self._kappa if self._design == "kappa" else 1.0

    @property
    def _stretch(self) -> float:
        """Ratio of ‖φ‖_Σ⁻¹ on the theorems' κ design to that on the agent's own design: 1 or 1/√κ.

        The plain Σ with ridge λ/κ in place of λ is Σ_κ/κ, so there ‖φ‖_Σ⁻¹ = √κ‖φ‖_Σκ⁻¹; the same weights then need √κ
        times the theorem's α, and the same set around θ has 1/√κ times its radius. With ridge λ the plain Σ lies below
        Σ_κ/κ: weights are smaller and sets larger than the theorem's, which keeps it true.
        """
        return math.sqrt(self._design_slope / self._kappa)

    @property
    def _theorem_trust(self) -> float:
        """α as the theorems mean it, on the κ design."""
        return self._trust * self._stretch

    def _horizon_noise(self, horizon: int, failure: float) -> float:
        return horizon_noise(
            dimension=self.dimension, horizon=horizon, ridge=self._ridge, kappa=self._kappa, failure=failure
        )

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

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting, with defaults resolved."""
        return super().settings | {"design": self._design}
