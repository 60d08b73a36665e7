"""The two words of every comparison: a duel that was asked, and its outcome."""

from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]  # (d,) or (K,)
Matrix = NDArray[np.float64]  # (d, d), (K, d), …


class Outcome(Enum):
    """Who won a duel."""

    FIRST = "first"
    SECOND = "second"

    @property
    def flipped(self) -> "Outcome":
        """The other outcome.

        >>> Outcome.FIRST.flipped
        <Outcome.SECOND: 'second'>
        """
        return Outcome.SECOND if self is Outcome.FIRST else Outcome.FIRST


@dataclass(frozen=True, slots=True)
class Duel:
    """One comparison that an agent asked, with what it knew at that moment.

    Keep it and hand it back to :meth:`fairduel.agents.Agent.tell`, at any time and in any order.
    """

    number: int
    """Running number among the duels of its agent, from 0."""
    first: int
    """Index of the first action."""
    second: int
    """Index of the second action; equal to ``first`` in a self-duel."""
    difference: Vector = field(repr=False, compare=False)
    """φ = x_first − x_second, shape (d,)."""
    weight: float
    """w of eq. (weight), frozen when the duel was asked."""
    width: float
    """‖φ‖ in the norm of Σ⁻¹ when the duel was asked."""
    slope: float
    """How much the duel informs: κ, 1, or v_t of RCDB-S."""

    @property
    def is_self_duel(self) -> bool:
        """Whether one action was asked against itself, which carries no information."""
        return self.first == self.second
