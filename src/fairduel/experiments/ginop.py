"""GINOP's world: random vertices of a hypercube, with and without flips."""

from collections.abc import Mapping
from typing import Any

from fairduel.experiments.experiment import Curves, Entry, Experiment
from fairduel.experiments.paper_setup import ADVERSARIAL, BUDGET, GREEDY, UNTOLD, Attack, paper_cell

ACTIONS = 30
NORM = 2.0
COMPARED: tuple[tuple[str, str, Mapping[str, Any]], ...] = (
    *(
        (agent, "practical", {})
        for agent in ("rcdb", "ginop", "hcw", "maxpairucb", "maxinp", "colstim", "random-pairs")
    ),
    *((agent, "C unknown", UNTOLD) for agent in ("sceptic", "rcdb", "hcw")),
)
"""Each agent, its setting in words, and its settings."""
NOBODY = Attack("no attack", "none", budget=0)
PANELS = ((10, NOBODY), (10, GREEDY), (10, ADVERSARIAL), (15, NOBODY), (20, NOBODY))
"""d and attack of each panel."""


def ginop() -> Experiment:
    """Declare the comparison in GINOP's world."""
    entries = [
        Entry(
            paper_cell(agent, attack, settings, world_settings={"dimension": d, "count": ACTIONS, "norm": NORM}),
            words,
            f"{attack.panel}, d = {d}",
            is_reference=(agent, words) == ("rcdb", "practical"),
        )
        for d, attack in PANELS
        for agent, words, settings in COMPARED
    ]
    return Experiment(
        name="ginop",
        title="GINOP's world: 30 random vertices of a hypercube",
        question="How much regret does each agent have in the world of the GINOP paper, and if outcomes are flipped?",
        entries=entries,
        views=[Curves("Cumulative regret (mean ± one standard error).")],
        notes=[
            "The world is that of Ben Yahmed 2026: d = 10, 15 and 20, 30 random actions of a hypercube, ‖θ*‖ = 2, "
            "T = 2000. We read 'random actions' as vertices, scaled to norm 1. The published numbers are not available "
            "to us, so there is nothing to compare these with; the attacks are ours.",
            f"All agents use their practical settings, untuned. RCDB and HCW are told C: {BUDGET}, or 0 where nobody "
            "attacks; RCDB is then MaxPairUCB. 'C unknown': RCDB and HCW assume ⌈√T⌉, Sceptic 2√T.",
        ],
    )
