"""What RCDB and RCDB-S share: a tolerance for flips, and the uncertainty weight that comes of it."""

import math
from dataclasses import dataclass
from typing import Any

from fairduel.agents.base import Agent
from fairduel.duel import Duel, Vector
from fairduel.errors import BadInputError
from fairduel.selection import uncertainty_weight


@dataclass(kw_only=True, eq=False)
class RobustAgent(Agent):
    """An agent that trusts a duel less the less it knows about it: w = min(1, α/‖φ‖_Σ⁻¹)."""

    flip_budget: int | None = None
    """C, how many outcomes may be flipped; ``None`` tolerates C̄ = ⌈√T⌉ (Theorem unknown)."""
    trust: float | None = None
    """α; ``None`` takes it from the flip budget."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._flip_budget = self._tolerance()
        if self.trust is not None and not self.trust > 0:
            raise BadInputError(f"trust must be a positive number, not {self.trust!r}.")
        self._trust = self._default_trust() if self.trust is None else self.trust

    def _default_trust(self) -> float:
        """α for this flip budget."""
        raise NotImplementedError

    def _slope(self, difference: Vector, width: float) -> float:
        """How much a duel with this difference and width informs."""
        raise NotImplementedError

    def _weigh(self, first: int, second: int, difference: Vector) -> Duel:
        width = self._information.width(difference)
        weight = uncertainty_weight(self._trust, width)
        return Duel(
            self._asked, first, second, difference, weight, width, slope=self._slope(difference, width)
        )

    def _tolerance(self) -> int:
        if self.flip_budget is not None:
            if not (isinstance(self.flip_budget, int) and self.flip_budget >= 0):
                raise BadInputError(f"flip_budget must be a whole number ≥ 0, not {self.flip_budget!r}.")
            return self.flip_budget
        if self.horizon is None:
            raise BadInputError(
                "flip_budget and horizon are both unknown: give the flip budget, or a horizon T to tolerate ⌈√T⌉."
            )
        return math.ceil(math.sqrt(self.horizon))

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting as given, and the numbers that came of it."""
        return super().settings | {"flip_budget": self._flip_budget, "trust": self._trust}
