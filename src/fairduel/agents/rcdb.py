"""RCDB: Robust Contextual Dueling Bandit (Algorithm 1)."""

from dataclasses import dataclass

from fairduel.agents.parts.agent import Guarantee
from fairduel.agents.parts.belief import LinearBelief
from fairduel.agents.parts.flip_tolerance import Constants, DesignedAgent
from fairduel.agents.parts.round import RunPlan
from fairduel.agents.parts.rules import by_uncertainty, symmetric
from fairduel.core.radius import determinant_noise
from fairduel.errors import BadInputError


@dataclass(kw_only=True, eq=False)
class RCDB(DesignedAgent):
    """Down-weight duels that little is known about, so that C flipped outcomes move the estimate by at most αC.

    Algorithm 1 of the paper, with s = κ as printed or s = 1 (``design``)::

        for t = 1 … T                                                     line 2
            Σ ← λI + Σ_{i<t} w_i s φ_i φ_iᵀ                               line 3
            θ ← solution of λθ + Σ_{i<t} w_i [σ(φ_iᵀθ) − o_i] φ_i = 0     line 4
            (a, b) ← argmax (x_a + x_b)ᵀθ + β‖x_a − x_b‖_Σ⁻¹              line 6
            ask a against b; the outcome o_t may be flipped               line 7
            w_t ← min(1, α/‖φ_t‖_Σ⁻¹)                                     line 8

    Departures from the paper: the practical radius and the plain design are ours, chosen on the paper's own problem.
    With C = 0 every weight is 1 and the term αC is dropped. The estimate is unconstrained unless ``constrained``.

    Args:
        flip_budget: C, how many outcomes may be flipped; ``None`` tolerates ⌈√T⌉ and needs ``horizon``.
        radius: β. ``"practical"``: √d, or √(d log T) if C = 0. ``"theory"``: √λ B + αC + √(d log((1 + 2T/λ)/δ)/κ) of
            Lemma 5.1. ``"determinant"``: the same before its determinant is bounded, about half as long; needs the κ
            design. ``"pre-tuned"``: constants found by search, which also change α, λ and the assumed C. Or a number.
        trust: α; ``None`` uses √d/C, or √d/(C√κ) on the κ design.
        design: ``"plain"``: Σ grows by w·φφᵀ. ``"kappa"``: by w·κ·φφᵀ. ``None``: ``"kappa"`` with a theorem's radius.
        ridge: λ; ``None`` uses 1/B².

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

    pre_tuned = Constants(radius=0.107, clean_radius=2.0, trust=0.185, ridge=0.648, tolerance=0.975)

    _belief_kind = LinearBelief  # Σ, line 3; θ, line 4
    _rule = staticmethod(symmetric)  # line 6
    _trust_rule = staticmethod(by_uncertainty)  # line 8

    def __post_init__(self) -> None:
        if self.radius == "determinant" and self.design == "plain":
            raise BadInputError("radius='determinant' requires design='kappa'.")
        super().__post_init__()

    def _theory_radius(self, round_number: int) -> float:
        """β of line 6, by Lemma 5.1."""
        if self.radius != "determinant":
            return self._confidence_radius(
                self._horizon_noise(self._horizon_or(round_number), self.failure_probability)
            )
        noise = determinant_noise(
            dimension=self._size,
            log_determinant=self._linear.information.log_determinant,
            ridge=self._ridge,
            kappa=self._kappa,
            failure=self.failure_probability,
        )
        return self._confidence_radius(noise)

    def plan_run(self, horizon: int) -> RunPlan | None:
        """Return what a compiled run needs; ``None`` for a radius by det Σ, which cannot be planned."""
        return None if self.radius == "determinant" else super().plan_run(horizon)

    def _radius_names(self) -> tuple[str, ...]:
        return (*super()._radius_names(), "determinant")
