"""CoLSTIM (Bengs 2022, Algorithm 1)."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from fairduel.agents.parts.contextual import ContextualAgent
from fairduel.agents.parts.round import Now
from fairduel.agents.parts.rules import perturbed_leader
from fairduel.checks import literal, positive
from fairduel.core.radius import colstim_mixing, colstim_radius, practical_radius

Coupling = Literal["paper", "vacdb"]


@dataclass(kw_only=True, eq=False)
class CoLSTIM(ContextualAgent):
    """Ask the leader under randomly perturbed rewards, and its toughest rival.

    Bengs 2022, Algorithm 1, with every outcome fully trusted::

        for t = 1 … T
            θ ← solution of λθ + Σ_{i<t} [σ(φ_iᵀθ) − o_i] φ_i = 0
            with probability p_t = min(1, d log(dT)/√(t − τ)) draw ε_i for each action, otherwise one for all
            clip every ε_i to ±C_th
            a ← argmax x_iᵀθ + ε_i‖x_i‖_Σ⁻¹
            b ← argmax (x_i − x_a)ᵀθ + c₁‖x_i − x_a‖_Σ⁻¹
            ask a against b; Σ ← Σ + φ_t φ_tᵀ

    The perturbations are Gumbel, or Gaussian for the probit link. Departures: Σ has a ridge, so that no warm-up is
    needed (Bengs starts with τ = d·K random duels: ``warmup``), and the estimate is the exact MLE instead of one
    stochastic gradient step per round.

    Args:
        radius: c₁. ``"practical"``: √(d log T). ``"theory"``: (1/2κ)√(d log(T/d) + 2 log T). Or a number.
        threshold: C_th; ``None`` uses the radius.
        coupling: ``"paper"``: separate perturbations with probability p_t. ``"vacdb"``: one shared perturbation with
            probability p_t, as in the public code of VACDB. At d = 5 and T = 2000, p_t = 1 throughout, so these are
            different algorithms.
        ridge: λ; ``None`` uses 1/B². Bengs has none.

    >>> agent = CoLSTIM(dimension=2, norm_bound=2.0, horizon=100, seed=0, coupling="vacdb")
    >>> agent.ask([[1.0, 0.0], [0.0, 1.0]]).weight
    1.0
    """

    title = "CoLSTIM"
    colour = "#E69F00"
    tuned_choices: ClassVar[dict[str, tuple[str, ...]]] = {"coupling": ("paper", "vacdb")}

    coupling: Coupling = "paper"
    threshold: float | None = None

    _rule = staticmethod(perturbed_leader)

    def __post_init__(self) -> None:
        literal("coupling", self.coupling, Coupling)
        self.threshold = None if self.threshold is None else positive("threshold", self.threshold)
        super().__post_init__()

    def _now_at(self, round_number: int) -> Now:
        radius = self.radius_at(round_number)
        return Now(
            radius,
            mixing=self.mixing_at(round_number),
            is_mixing_separate=self.coupling == "paper",
            threshold=radius if self.threshold is None else self.threshold,
            is_gaussian=self.gaussian,
        )

    @property
    def gaussian(self) -> bool:
        """Whether perturbations are Gaussian (probit link) rather than Gumbel (all others)."""
        return self._link.name == "probit"

    def mixing_at(self, round_number: int) -> float:
        """Return p_t of round t."""
        return colstim_mixing(self._effective_dimension, self._horizon_or(round_number), round_number - self.warmup)

    def _practical_radius(self, round_number: int) -> float:
        return practical_radius(self._effective_dimension, self._horizon_or(round_number))

    def _theory_radius(self, round_number: int) -> float:
        return colstim_radius(self._size, self._horizon_or(round_number), self._kappa)
