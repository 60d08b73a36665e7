"""CW-OFUL: optimism with confidence-weighted least squares (He 2022)."""

import math
from dataclasses import dataclass
from typing import Any

from fairduel.agents.guarantee import Guarantee
from fairduel.agents.linear_reward import OptimisticAgent, tolerated
from fairduel.checks import positive
from fairduel.core.selection import uncertainty_weight


@dataclass(kw_only=True, eq=False)
class CWOFUL(OptimisticAgent):
    """Learn from rewards although they are corrupted by C in all: trust a reward less the less its action is known.

    w = min(1, α/‖x‖_Σ⁻¹) with α = (R√d + √λB)/C, β = R√(d log((1 + T/λ)/δ)) + √λB + αC, and the theorem's λ = R²/B².
    RCDB has this weight from here. With C = 0, or ``trust=math.inf``, all weights are 1 and it is OFUL. The rule was
    checked in the authors' code, which has λ = 1; the constants of β are uncertain. ``scale`` is a factor on β, 1/4
    where it is practical.

    >>> agent = CWOFUL(dimension=2, norm_bound=1.0, noise=0.1, corruption_budget=5, horizon=100, seed=0)
    >>> actions = [[1.0, 0.0], [0.0, 1.0], [-0.6, 0.8]]
    >>> for _ in range(100):
    ...     pull = agent.ask(actions)
    ...     agent.tell(pull, [0.9, 0.1, -0.4][pull.action])
    >>> agent.recommend(actions)
    0
    """

    title = "CW-OFUL"
    guarantee = Guarantee(
        "He 2022", "linear contextual bandits", "strong", "Õ(d√T + dC)", needs="B, R, T, C", in_paper=True
    )

    _practical_scale = 1 / 4

    corruption_budget: float | None = None
    """C, a bound on the sum of all corruptions' sizes; ``None`` tolerates √T."""
    trust: float | None = None
    """α; ``None`` takes the theorem's."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._corruption_budget = tolerated(self.corruption_budget, self.horizon)
        root = self.noise * math.sqrt(self.dimension) + math.sqrt(self._ridge) * self.norm_bound
        if self.trust is None:
            self._trust = root / self._corruption_budget if self._corruption_budget else math.inf
        else:
            self._trust = self.trust = math.inf if self.trust == math.inf else positive("trust", self.trust)

    def _default_ridge(self) -> float:
        return (self.noise / self.norm_bound) ** 2  # the theorem's

    def _weight(self, width: float) -> float:
        return uncertainty_weight(self._trust, width)

    def _radius(self, round_number: int) -> float:
        horizon = self._horizon_or(round_number)
        noise = math.sqrt(self.dimension * math.log((1 + horizon / self._ridge) / self.failure_probability))
        # All weights are 1 with α = ∞: then no αC bounds what corruption does, and β leaves it out.
        corruption = self._trust * self._corruption_budget if math.isfinite(self._trust) else 0.0
        return self.noise * noise + math.sqrt(self._ridge) * self.norm_bound + corruption

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting as given, and the numbers that came of it."""
        return super().settings | {"corruption_budget": self._corruption_budget, "trust": self._trust}
