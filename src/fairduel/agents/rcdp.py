"""RCDP-UCB (Oh 2026): robust to corruption and to delays."""

from dataclasses import dataclass
from typing import ClassVar

from fairduel.agents.parts.agent import Guarantee
from fairduel.agents.parts.flip_tolerance import Design, DesignedAgent
from fairduel.agents.parts.rules import greedy_and_rival
from fairduel.checks import at_least_zero
from fairduel.core.radius import rcdb_trust


@dataclass(kw_only=True, eq=False)
class RCDP(DesignedAgent):
    """Ask the greedy action against its toughest rival, and trust a duel less the less is known about it.

    Oh 2026, with V for Σ; late outcomes count towards α as flipped ones do::

        α ← √d/(C + D)
        for t = 1 … T
            θ ← solution of λθ + Σ_{arrived i<t} w_i [σ(φ_iᵀθ) − o_i] φ_i = 0
            a ← argmax x_iᵀθ
            b ← argmax (x_i − x_a)ᵀθ + c‖x_i − x_a‖_V⁻¹
            w_t ← min(1, α/‖φ_t‖_V⁻¹)
            ask a against b; V ← V + κ w_t φ_t φ_tᵀ

    Where features are seen only after serving, :meth:`serve` moves the weight and V to them.

    Departures: ties are broken at random, and the sides of a duel are random. The theory radius is ours.

    Args:
        flip_budget: C, how many outcomes may be flipped; ``None`` tolerates ⌈√T⌉ and needs ``horizon``.
        delay: D = max(√Λ, μ), where Λ is the sum of all delays and μ their mean; a simulation provides it.
        trust: α; ``None`` uses √d/(C + D).
        design: ``"kappa"``: V grows by κwφφᵀ, as published. ``"plain"``: by wφφᵀ.
        kappa: κ; ``None`` uses the largest slope of the link, which is the ¼ of the author's experiments.
        radius: c. ``"practical"``: 0.1, as in the author's experiments. ``"theory"``: twice Lemma 5.1's β, with C + D
            for C. Or a number.
        ridge: λ; ``None`` uses 1, as in the author's experiments.

    >>> agent = RCDP(dimension=4, norm_bound=2.0, flip_budget=5, delay=15.0, horizon=100)
    >>> agent.settings["trust"]
    0.1
    """

    title = "RCDP-UCB"
    colour = "#117733"
    guarantee = Guarantee("Oh 2026", "contextual dueling bandits", "strong", "Õ(d√T + dC + dD)", needs="B, T, C, D")
    published_settings: ClassVar[dict[str, str]] = {}

    delay: float = 0.0
    design: Design | None = "kappa"

    _rule = staticmethod(greedy_and_rival)

    def __post_init__(self) -> None:
        self.delay = at_least_zero("delay", self.delay)
        super().__post_init__()

    @property
    def _tolerated(self) -> float:
        """How many outcomes may be wrong or missing: C + D."""
        return self._flip_budget + self.delay

    def _default_trust(self) -> float:
        return rcdb_trust(self._effective_dimension, self._tolerated, kappa=1.0)

    def _default_kappa(self) -> float:
        return float(self._link.slope(0.0))

    def _default_ridge(self) -> float:
        return 1.0

    def _practical_radius(self, round_number: int) -> float:  # noqa: ARG002
        return 0.1

    def _theory_radius(self, round_number: int) -> float:
        noise = self._horizon_noise(self._horizon_or(round_number), self.failure_probability)
        return 2.0 * self._confidence_radius(noise)
