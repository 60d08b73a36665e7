"""How many flips an agent tolerates, the trust α that follows, and whether κ is part of Σ."""

import functools
import math
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

from fairduel.agents.parts.contextual import ContextualAgent
from fairduel.checks import integer, literal, positive
from fairduel.core.radius import confidence_radius, horizon_noise, practical_radius, rcdb_trust
from fairduel.errors import BadInputError

Design = Literal["plain", "kappa"]
_PRE_TUNED = "pre-tuned"


class Constants(NamedTuple):
    """Constants found by search, in units that suit any d, B, C and T: those of ``radius="pre-tuned"``."""

    radius: float
    """β/√d."""
    clean_radius: float
    """β/√d if C = 0, where every outcome is fully trusted."""
    trust: float
    """α over its default."""
    ridge: float
    """λ over its default."""
    tolerance: float
    """Ĉ/√T, if C is unknown."""
    slope_radius: float = math.nan
    """β_t/√d of RCDB-S."""


@dataclass(kw_only=True, eq=False)
class FlipTolerant(ContextualAgent):
    """Base of agents that trust a duel less the less they know about it: w = min(1, α/‖φ‖).

    Args:
        flip_budget: C, how many outcomes may be flipped; ``None`` tolerates ⌈√T⌉ (Theorem 5.5).
        trust: α; ``None`` uses the theorem's value, or √d/C.
    """

    assumes_by_default: ClassVar[str] = "C = ⌈√T⌉"
    pre_tuned: ClassVar[Constants | None] = None
    """The constants of ``radius="pre-tuned"``, for agents that have been searched."""

    _resolved: ClassVar[tuple[str, ...]] = ("flip_budget", "trust")

    flip_budget: int | None = None
    trust: float | None = None

    def __post_init__(self) -> None:
        self.trust = None if self.trust is None else positive("trust", self.trust)
        self._flip_budget = self._resolved_budget()
        super().__post_init__()

    @property
    def _constants(self) -> Constants | None:
        """The searched constants, if the radius says that they apply."""
        return self.pre_tuned if self.radius == _PRE_TUNED else None

    @functools.cached_property
    def _trust(self) -> float:
        if self.trust is not None:
            return self.trust
        return self._default_trust() * (self._constants.trust if self._constants else 1.0)

    def _default_ridge(self) -> float:
        return super()._default_ridge() * (self._constants.ridge if self._constants else 1.0)

    def radius_at(self, round_number: int) -> float:
        """β of round t = 1, 2, …, including ``radius_scale``."""
        if self._constants is None:
            return super().radius_at(round_number)
        best = self._constants.radius if self._flip_budget else self._constants.clean_radius
        return self.radius_scale * best * math.sqrt(self._effective_dimension)

    def _radius_names(self) -> tuple[str, ...]:
        return (*super()._radius_names(), *([_PRE_TUNED] if self.pre_tuned else []))

    def _default_trust(self) -> float:
        # On the plain design ‖φ‖ is √κ times as long, so Theorem 5.3's α becomes √d/C.
        return rcdb_trust(self._effective_dimension, self._tolerated, self._design_slope)

    @property
    def _tolerated(self) -> float:
        """How many outcomes may be wrong: C."""
        return self._flip_budget

    def _practical_radius(self, round_number: int) -> float:
        if self._flip_budget == 0:  # √d locks in when every outcome is fully trusted
            return practical_radius(self._effective_dimension, self._horizon_or(round_number))
        return math.sqrt(self._effective_dimension)

    def _resolved_budget(self) -> float:
        if self.flip_budget is not None:
            self.flip_budget = integer("flip_budget", self.flip_budget)
            return self.flip_budget
        if self.horizon is None:
            raise BadInputError("set flip_budget, or set horizon (T) to tolerate ⌈√T⌉ flips.")
        root = math.sqrt(integer("horizon", self.horizon, least=1))
        return self._constants.tolerance * root if self._constants else math.ceil(root)


@dataclass(kw_only=True, eq=False)
class DesignedAgent(FlipTolerant):
    """Base of RCDB, RCDB-S and RCDP-UCB, in which κ is part of Σ or not.

    The radius decides all other defaults: the theorem's values with a theorem's radius, the practical ones otherwise.

    Args:
        design: ``"kappa"``: Σ grows by w·κ·φφᵀ, as printed. ``"plain"``: by w·φφᵀ. ``None``: ``"kappa"`` with a
            theorem's radius, otherwise ``"plain"``.
    """

    design: Design | None = None

    _resolved: ClassVar[tuple[str, ...]] = ("design",)

    def __post_init__(self) -> None:
        if self.design is not None:
            literal("design", self.design, Design)
        self._design: Design = self.design or ("kappa" if self._by_theorem else "plain")
        super().__post_init__()

    @property
    def _by_theorem(self) -> bool:
        return self.radius in self._radius_names() and self.radius not in ("practical", _PRE_TUNED)

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
            dimension=self._size, horizon=horizon, ridge=self._ridge, kappa=self._kappa, failure=failure
        )

    def _confidence_radius(self, noise: float) -> float:
        """Lemma 5.1's β, on the agent's design."""
        beta = confidence_radius(
            norm_bound=self._norm,
            flip_budget=self._tolerated,
            ridge=self._ridge,
            trust=self._theorem_trust,
            noise=noise,
        )
        return beta * self._stretch
