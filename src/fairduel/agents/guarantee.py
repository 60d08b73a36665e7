"""The published guarantee of an algorithm."""

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
    """The adversary that the bound covers; a weak one commits before it can see the action."""
    bound: str
    """The regret bound, without logarithms."""
    needs: str
    """What the algorithm must be told."""
    in_paper: bool = False
    """Whether it is in the paper's Table 1."""
