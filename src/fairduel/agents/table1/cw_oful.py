"""CW-OFUL: optimism with confidence-weighted least squares (He 2022)."""

import math
from dataclasses import dataclass
from typing import ClassVar

from fairduel.agents.parts.agent import Guarantee
from fairduel.agents.table1.shared import OptimisticAgent, resolved_budget
from fairduel.checks import positive
from fairduel.core.selection import uncertainty_weight


@dataclass(kw_only=True, eq=False)
class CWOFUL(OptimisticAgent):
    """Down-weight rewards of actions that little is known about; RCDB is this idea for duels.

    Confidence-weighted OFUL (He 2022), for a total corruption of C::

        for t = 1 … T
            θ ← Σ⁻¹b
            pull x = argmax xᵀθ + β‖x‖_Σ⁻¹;  w ← min(1, α/‖x‖_Σ⁻¹)
            reward r: Σ ← Σ + w·xxᵀ,  b ← b + w·r·x
        α = (R√d + √λ B)/C,  β = scale · [R√(d log((1 + T/λ)/δ)) + √λ B + αC]

    With C = 0 or ``trust=math.inf`` all weights are 1, β drops αC, and it is OFUL. Departures: the rule is
    that of the authors' code, which has λ = 1. We derived the constants: β is the self-normalised bound with det Σ ≤
    (λ + T)ᵈ, for d ≥ 2, and λ makes √λ B = R.

    Args:
        horizon: T; ``None`` uses the current round, which needs ``corruption_budget``.
        corruption_budget: C, a bound on the summed absolute corruptions; ``None`` tolerates √T.
        trust: α; ``None`` uses the theorem's.
        ridge: λ; ``None`` uses the theorem's R²/B².
        scale: Factor on β: ``"practical"`` is 1/4, ``"theory"`` is 1, or a number.

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

    assumes_by_default: ClassVar[str] = "C = √T"
    _resolved = ("corruption_budget", "trust")

    corruption_budget: float | None = None
    trust: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._corruption_budget = resolved_budget(self.corruption_budget, self.horizon)
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
        # With α = ∞ no αC bounds the effect of corruption, so β leaves it out.
        corruption = self._trust * self._corruption_budget if math.isfinite(self._trust) else 0.0
        return self.noise * noise + math.sqrt(self._ridge) * self.norm_bound + corruption
