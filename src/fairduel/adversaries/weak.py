"""Attacks that know the round only (appendix "Experiments", weak)."""

from dataclasses import dataclass

from fairduel.adversaries.base import WeakAdversary
from fairduel.errors import BadInputError


@dataclass(kw_only=True, eq=False)
class NoAttack(WeakAdversary):
    """Flips nothing, whatever its budget."""

    budget: int = 0

    def wants_flip(self, round_number: int) -> bool:  # noqa: ARG002
        """Never."""
        return False


@dataclass(kw_only=True, eq=False)
class Greedy(WeakAdversary):
    """Flips the first C rounds."""

    def wants_flip(self, round_number: int) -> bool:  # noqa: ARG002
        """Always: the budget ends it."""
        return True


@dataclass(kw_only=True, eq=False)
class Random(WeakAdversary):
    """Flips each round with the same probability until the budget is spent."""

    probability: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.probability < 1:
            raise BadInputError(f"the random attack's probability lies between 0 and 1, not {self.probability!r}.")

    def wants_flip(self, round_number: int) -> bool:  # noqa: ARG002
        """By a coin with this probability."""
        return self.rng.random() < self.probability
