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


ATTACKS = (
    Attack("greedy", "greedy"),
    Attack("random, p = 0.5", "random", {"probability": 0.5}),
    Attack("random, p = 0.1", "random", {"probability": 0.1}),
    Attack("adversarial", "adversarial"),
    Attack("misleading, random target", "misleading", {"target": "random"}),
    Attack("no attack", "none"),
)
"""The paper's four attacks, the random one at two rates, and the price of robustness without any."""
GREEDY, NO_ATTACK = ATTACKS[0], ATTACKS[-1]
ADVERSARIAL, MISLEADING = ATTACKS[3], ATTACKS[4]


def paper_cell(agent: str, attack: Attack, settings: Mapping[str, Any] | None = None, **changes: Any) -> Cell:
    """Return a cell of the paper's set-up, with any field of :class:`Cell` changed."""
    fields: dict[str, Any] = {
        "agent": agent,
        "attack": attack.name,
        "attack_settings": attack.settings,
        "agent_settings": settings or {},
        "budget": BUDGET,
        "horizon": HORIZON,
        "world_settings": {"dimension": DIMENSION, "norm": 2.0},
    }
    return Cell(**(fields | changes))
