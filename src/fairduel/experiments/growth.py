"""How regret grows with the dimension d and the horizon T, with fitted exponents."""

import math
from collections.abc import Mapping
from typing import Any

from fairduel.experiments.experiment import Entry, Experiment, Lines
from fairduel.experiments.paper_setup import GREEDY, NO_ATTACK, paper_cell

DIMENSIONS = (2, 4, 8, 16)
HORIZONS = (250, 500, 1000, 2000, 4000, 8000)
COMPARED = ("rcdb", "rcdb-s", "maxpairucb")


def dimension() -> Experiment:
    """Declare growth in d, with fresh actions in every round."""
    fresh = {"count": 32, "norm": 2.0}
    worlds = {float(d): {"world": "fresh", "world_settings": {"dimension": d, **fresh}} for d in DIMENSIONS}
    return Experiment(
        name="dimension",
        title="Growth with the dimension",
        question="Does regret grow at most linearly in d, as Theorem main allows?",
        entries=_entries(worlds),
        views=[Lines("Final regret against d (log-log).", "dimension d", scale="log", fit="power")],
        notes=["32 fresh actions per round, uniform on the sphere; T = 2000, C = 45."],
    )


def horizon() -> Experiment:
    """Declare growth in T, with C = ⌈√T⌉ flips."""
    horizons = {float(rounds): {"horizon": rounds, "budget": math.ceil(math.sqrt(rounds))} for rounds in HORIZONS}
    return Experiment(
        name="horizon",
        title="Growth with the horizon",
        question="Does regret grow like √T when C = ⌈√T⌉, as Theorem main allows up to logarithms?",
        entries=_entries(horizons),
        views=[Lines("Final regret against T (log-log).", "horizon T", scale="log", fit="power")],
        notes=["The paper's hypercube, d = 5. An exponent of ½ means √T; of 1, that regret never stops growing."],
    )


def _entries(changes: Mapping[float, Mapping[str, Any]]) -> list[Entry]:
    """One entry per attack, x and agent; ``changes`` are those to the paper's setup, by x."""
    return [
        Entry(paper_cell(agent, attack, **changed), "practical", attack.panel, x=x, is_reference=agent == "rcdb")
        for attack in (NO_ATTACK, GREEDY)
        for x, changed in changes.items()
        for agent in COMPARED
    ]
