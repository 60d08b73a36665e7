"""CoLSTIM (Bengs 2022, Algorithm 1)."""

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np

from fairduel.agents.contextual import ContextualAgent
from fairduel.agents.round import RADIUS, Plan
from fairduel.checks import positive
from fairduel.core.compiling import inlined
from fairduel.core.radius import colstim_mixing, colstim_radius, practical_radius
from fairduel.core.selection import View, perturbations, perturbed_pair
from fairduel.duel import Vector
from fairduel.errors import unknown_name

Coupling = Literal["paper", "vacdb"]


_MIXING, _THRESHOLD, _IS_PAPER, _IS_GAUSSIAN = range(RADIUS + 1, RADIUS + 5)


@inlined
def choose(plan: Plan, numbers: Vector, seen: View, rng: np.random.Generator) -> tuple[int, int]:
    """The leader under random perturbation, and its toughest rival."""
    count = seen.rewards.size
    own = (rng.random() < numbers[_MIXING]) == (numbers[_IS_PAPER] != 0.0)
    gaussian = numbers[_IS_GAUSSIAN] != 0.0
    draws = rng.standard_normal(count) if gaussian else rng.random(count)
    noise = perturbations(draws, own, gaussian, numbers[_THRESHOLD])
    return perturbed_pair(seen, numbers[RADIUS], noise, plan.self_duels, (rng.random(), rng.random()))


@dataclass(kw_only=True, eq=False)
class CoLSTIM(ContextualAgent):
    """Ask the leader under random perturbation, and its toughest rival.

    With probability p_t each action gets its own perturbation, otherwise all share one. The public
    code of VACDB has it the other way round; at d = 5 and T = 2000, where p_t = 1 throughout, the two
    are different algorithms, so both are here under a name.

    ``radius="practical"`` is c₁ = √(d log T), ``radius="theory"`` is that of Bengs 2022. Departures: Σ has a
    ridge, and the estimate is the exact MLE where Bengs used one stochastic gradient step a round.

    >>> agent = CoLSTIM(dimension=2, norm_bound=2.0, horizon=100, seed=0, coupling="vacdb")
    >>> agent.ask([[1.0, 0.0], [0.0, 1.0]]).weight
    1.0
    """

    title = "CoLSTIM"
    colour = "#E69F00"
    tuned_choices: ClassVar[dict[str, tuple[str, ...]]] = {"coupling": ("paper", "vacdb")}

    coupling: Coupling = "paper"
    """``"paper"``: own perturbations with probability p_t. ``"vacdb"``: shared ones with probability p_t."""
    threshold: float | None = None
    """Perturbations are clipped to ± this; ``None`` takes the radius."""

    _choose = staticmethod(choose)

    def __post_init__(self) -> None:
        if self.coupling not in get_args(Coupling):
            raise unknown_name("coupling", str(self.coupling), get_args(Coupling))
        self.threshold = None if self.threshold is None else positive("threshold", self.threshold)
        super().__post_init__()

    def _numbers_at(self, round_number: int) -> tuple[float, ...]:
        radius = self.radius_at(round_number)
        threshold = radius if self.threshold is None else self.threshold
        return radius, self.mixing_at(round_number), threshold, self.coupling == "paper", self.gaussian

    @property
    def gaussian(self) -> bool:
        """Whether perturbations are Gaussian, as belongs to the probit link; for other links they are Gumbel."""
        return self._link.name == "probit"

    def mixing_at(self, round_number: int) -> float:
        """p_t of round t."""
        return colstim_mixing(self.dimension, self._horizon_or(round_number), round_number - self.warmup)

    def _practical_radius(self, round_number: int) -> float:
        return practical_radius(self.dimension, self._horizon_or(round_number))

    def _theory_radius(self, round_number: int) -> float:
        return colstim_radius(self.dimension, self._horizon_or(round_number), self._kappa)
