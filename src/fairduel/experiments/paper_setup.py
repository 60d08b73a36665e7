"""The setup of the paper's experiments: T = 2000, d = 5, 32 actions, C = ⌈√T⌉ = 45."""

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
BUDGET_UNKNOWN: Mapping[str, Any] = {"known_budget": False}
"""Settings of an agent that is not told C."""
WARMUP = DIMENSION * ACTIONS
"""τ = d·K, the number of random duels with which Bengs et al. (2022) start CoLSTIM and MaxInP."""


@dataclass(frozen=True)
class Attack:
    """An attack with its settings: one panel of a figure."""

    panel: str
    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    budget: int = BUDGET
    """C: the maximum number of flips, which agents are told."""


GREEDY = Attack("greedy", "greedy")
RANDOM = Attack("random, p = 0.5", "random", {"probability": 0.5})
RARE_RANDOM = Attack("random, p = 0.1", "random", {"probability": 0.1})
"""The paper does not state p."""
ADVERSARIAL = Attack("adversarial", "adversarial")
MISLEADING = Attack("misleading, random target", "misleading", {"target": "random"})
NO_ATTACK = Attack("no attack", "none")

WEAK_ATTACKS = (GREEDY, RANDOM)
PAPER_ATTACKS = (*WEAK_ATTACKS, ADVERSARIAL, MISLEADING)
"""The four attacks of the paper's Figure 1."""
FIGURE1_PANELS = (GREEDY, RANDOM, RARE_RANDOM, ADVERSARIAL, MISLEADING, NO_ATTACK)
"""The paper's attacks, the random one at two rates, and no attack, which shows the price of robustness."""


def paper_cell(agent: str, attack: Attack, settings: Mapping[str, Any] | None = None, **changes: Any) -> Cell:
    """Return a cell of the paper's setup; ``changes`` override any field of :class:`Cell`."""
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
