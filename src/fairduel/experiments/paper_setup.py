"""The set-up of the paper's experiments: T = 2000, d = 5, 32 actions, C = ⌈√T⌉ = 45."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fairduel.simulation.cell import Cell

HORIZON = 2000
DIMENSION = 5
ACTIONS = 2**DIMENSION
BUDGET = math.ceil(math.sqrt(HORIZON))
BASELINES = ("maxpairucb", "maxinp", "colstim")
WARMUP = DIMENSION * ACTIONS
"""τ = d·K, the random start with which Bengs 2022 ran CoLSTIM and MaxInP."""


@dataclass(frozen=True)
class Attack:
    """An attack with its settings, as one panel of a figure."""

    panel: str
    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    budget: int = BUDGET
    """C: the flips that it may make, and that agents are told to expect."""


GREEDY = Attack("greedy", "greedy")
RANDOM = Attack("random, p = 0.5", "random", {"probability": 0.5})
RARE_RANDOM = Attack("random, p = 0.1", "random", {"probability": 0.1})
"""The paper does not say its p."""
ADVERSARIAL = Attack("adversarial", "adversarial")
MISLEADING = Attack("misleading, random target", "misleading", {"target": "random"})
NO_ATTACK = Attack("no attack", "none")

WEAK_ATTACKS = (GREEDY, RANDOM)
PAPER_ATTACKS = (*WEAK_ATTACKS, ADVERSARIAL, MISLEADING)
"""The four attacks of the paper's Figure 1."""
FIGURE1_PANELS = (GREEDY, RANDOM, RARE_RANDOM, ADVERSARIAL, MISLEADING, NO_ATTACK)
"""The same, the random one at two rates, and the price of robustness without any."""


def paper_cell(agent: str, attack: Attack, settings: Mapping[str, Any] | None = None, **changes: Any) -> Cell:
    """Return a cell of the paper's set-up, with any field of :class:`Cell` changed."""
    fields: dict[str, Any] = {
        "agent": agent,
        "attack": attack.name,
        "attack_settings": attack.settings,
        "agent_settings": settings or {},
        "budget": attack.budget,
        "horizon": HORIZON,
        "world_settings": {"dimension": DIMENSION, "norm": 2.0},
    }
    return Cell(**(fields | changes))
