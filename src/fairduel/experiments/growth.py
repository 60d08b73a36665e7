"""Growth of regret in the dimension d and in the horizon T, with fitted exponents."""

import math

from fairduel.experiments.experiment import Entry, Experiment, Lines
from fairduel.experiments.paper_setup import GREEDY, NO_ATTACK, paper_cell

DIMENSIONS = (2, 4, 8, 16)
HORIZONS = (250, 500, 1000, 2000, 4000, 8000)
COMPARED = ("rcdb", "rcdb-s", "maxpairucb")


def dimension() -> Experiment:
    """Declare growth in d, on fresh actions in every round."""
    entries = [
        Entry(
            paper_cell(agent, attack, world="fresh", world_settings={"dimension": d, "count": 32, "norm": 2.0}),
            "practical",
            attack.panel,
            x=float(d),
            is_reference=agent == "rcdb",
        )
        for attack in (NO_ATTACK, GREEDY)
        for d in DIMENSIONS
        for agent in COMPARED
    ]
    return Experiment(
        name="dimension",
        title="Growth in the dimension",
        question="How does regret grow with d, where Theorem main allows d?",
        entries=entries,
        views=[Lines("Final regret against d (log-log).", "dimension d", scale="log", fit="power")],
        notes=["32 fresh actions a round, uniform on the sphere; T = 2000, C = 45."],
    )


def horizon() -> Experiment:
    """Declare growth in T, with C = ⌈√T⌉ flips."""
    entries = [
        Entry(
            paper_cell(agent, attack, horizon=rounds, budget=math.ceil(math.sqrt(rounds))),
            "practical",
            attack.panel,
            x=float(rounds),
            is_reference=agent == "rcdb",
        )
        for attack in (NO_ATTACK, GREEDY)
        for rounds in HORIZONS
        for agent in COMPARED
    ]
    return Experiment(
        name="horizon",
        title="Growth in the horizon",
        question="How does regret grow with T when C = ⌈√T⌉, where Theorem main allows √T?",
        entries=entries,
        views=[Lines("Final regret against T (log-log).", "horizon T", scale="log", fit="power")],
        notes=["The paper's hypercube, d = 5. An exponent of ½ is √T; of 1, regret that never stops."],
    )
