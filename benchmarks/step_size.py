"""Choose η of the one-pass estimator on tuning seeds: ``python -m benchmarks.step_size`` (about eight minutes).

Compiled runs treat η as a constant, so this plays the plain loop, which looks it up in every round.
"""

import math
import warnings
from dataclasses import replace
from unittest.mock import patch

import numpy as np
from rich.console import Console
from rich.table import Table

from fairduel import LockInWarning
from fairduel.core import estimators
from fairduel.duel import Matrix, Vector
from fairduel.experiments.paper_setup import ADVERSARIAL, GREEDY, MISLEADING, NO_ATTACK, paper_cell
from fairduel.experiments.tuning import tuning_seeds
from fairduel.report.research.research_tables import error_text
from fairduel.simulation import Cell
from fairduel.simulation.play import play
from fairduel.stats import jackknife

ANALYSIS = 0.5 * math.log(2.0) + 2 * 2.0 + 1.0  # at B = 2
STEPS = (0.5, 1.0, 2.0, 3.0, 4.0, ANALYSIS, 8.0)
RUNS = 30
ONE_PASS = {"estimator": "one-pass"}


def problems() -> dict[str, Cell]:
    """Return both agents that the leaderboard lists with one-pass estimates, on seven scenarios."""
    cells = {}
    for agent in ("rcdb", "maxpairucb"):
        for attack in (NO_ATTACK, GREEDY, ADVERSARIAL, MISLEADING):
            cells[f"{agent}, {attack.panel}"] = paper_cell(agent, attack, ONE_PASS)
        greedy = cells[f"{agent}, greedy"]
        for norm in (1.0, 4.0):
            cells[f"{agent}, greedy, norm {norm:g}"] = replace(greedy, world_settings={"dimension": 5, "norm": norm})
        cells[f"{agent}, greedy, fresh actions"] = replace(greedy, world="fresh")
    return cells


def regret(cell: Cell, step: float, seed: int) -> float:
    """Return the regret of one run with this η."""
    agent, world, adversary, streams = cell.start(seed)
    with patch.object(estimators, "STEP", step):
        return float(play(agent, world, adversary, horizon=cell.horizon, labels=streams.labels).regret.sum())


def relative_regret(regrets: Matrix) -> Vector:
    """Return the geometric mean over problems, relative to the current η; (problems, η, seeds) → (η,)."""
    overall = np.exp(np.log(regrets.mean(axis=2)).mean(axis=0))
    return np.asarray(overall / overall[STEPS.index(estimators.STEP)])


def main() -> None:
    """Print mean regret by η and problem, and the geometric means over the problems with their errors."""
    warnings.simplefilter("ignore", LockInWarning)
    seeds = tuning_seeds(RUNS)
    regrets = np.array([[[regret(c, step, seed) for seed in seeds] for step in STEPS] for c in problems().values()])
    table = Table(title=f"Mean regret by η, seeds {seeds[0]:,} to {seeds[-1]:,}")
    table.add_column("problem")
    for step in STEPS:
        table.add_column(f"{step:.3g}", justify="right")
    for name, means in zip(problems(), regrets.mean(axis=2), strict=True):
        table.add_row(name, *(f"{mean:,.0f}" for mean in means))
    ratios = [jackknife(lambda runs, i=i: float(relative_regret(runs)[i]), regrets) for i in range(len(STEPS))]
    table.add_row("geometric mean, relative to the current η", *(error_text(ratio, digits=2) for ratio in ratios))
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
