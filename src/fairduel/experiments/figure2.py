"""Figure 2: regret against the number of flips."""

from fairduel.experiments.experiment import Entry, Experiment, Lines
from fairduel.experiments.paper_setup import BASELINES, BUDGET, GREEDY, paper_cell
from fairduel.experiments.tuning import published, tuning_problem

BUDGETS = tuple(range(20, 201, 20))


def figure2() -> Experiment:
    """Declare Figure 2."""
    entries = []
    for budget in BUDGETS:
        for agent in ("rcdb", "rcdb-s"):
            cell = paper_cell(agent, GREEDY, budget=budget)
            is_reference = agent == "rcdb"
            entries.append(Entry(cell, "practical", GREEDY.panel, x=float(budget), is_reference=is_reference))
        for agent in BASELINES:
            tuning = published(tuning_problem(agent, GREEDY, warmup=0))
            cell = paper_cell(agent, GREEDY, tuning.winner.settings, budget=budget)
            entries.append(Entry(cell, f"tuned at C = {BUDGET}", GREEDY.panel, tuning=tuning, x=float(budget)))
    return Experiment(
        name="figure2",
        title="Figure 2: regret against the number of flips",
        question="Does regret grow linearly in the number of flips C, and which agent is lowest?",
        entries=entries,
        views=[
            Lines(
                "Final regret against C; the curves are fitted powers of C, with 95% intervals of their exponents.",
                "flips C",
                fit="line",
            )
        ],
        notes=[f"The baselines keep the settings tuned for C = {BUDGET}; RCDB and RCDB-S are told each C."],
    )
