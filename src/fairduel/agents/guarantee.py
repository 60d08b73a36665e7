"""What a publication promises of its algorithm."""

from typing import Literal, NamedTuple

Model = Literal[
    "K-armed bandits",
    "linear bandits",
    "linear contextual bandits",
    "K-armed dueling bandits",
    "contextual dueling bandits",
]
"""The settings of the paper's Table 1, in its order."""


class Guarantee(NamedTuple):
    """A row of Table 1, as published."""

    source: str
    model: Model
    adversary: Literal["weak", "weak only", "strong", "none"]
    """Who the bound covers: weak adversaries commit before they could see the action."""
    bound: str
    """On regret, without logarithms."""
    needs: str
    """What the algorithm must be told."""
    in_paper: bool = False
    """Whether the paper's Table 1 has it."""
