"""Choose η of the one-pass estimates on tuning seeds: ``python -m benchmarks.step_size``, about eight minutes.

η is a constant of compiled runs, so this plays the plain loop, which looks it up in every round.
"""

import math
import warnings
from dataclasses import replace
from unittest.mock import patch

import numpy as np
from rich.console import Console
from rich.table import Table

from fairduel import LockInWarning
from fairduel.agents import contextual
from fairduel.experiments.paper_setup import ADVERSARIAL, GREEDY, MISLEADING, NO_ATTACK, paper_cell
from fairduel.experiments.tuning import tuning_seeds
from fairduel.simulation import Cell
from fairduel.simulation.play import play

ANALYSIS = 0.5 * math.log(2.0) + 2 * 2.0 + 1.0  # at B = 2
STEPS = (0.5, 1.0, 2.0, 3.0, 4.0, ANALYSIS, 8.0)
RUNS = 30
ONE_PASS = {"estimator": "one-pass"}


def problems() -> dict[str, Cell]:
    """Both agents that the leaderboard shows with one-pass estimates, on seven scenarios."""
    cells = {}
    for agent in ("rcdb", "maxpairucb"):
        for attack in (NO_ATTACK, GREEDY, ADVERSARIAL, MISLEADING):
            cells[f"{agent}, {attack.panel}"] = paper_cell(agent, attack, ONE_PASS)
        greedy = cells[f"{agent}, greedy"]
        for norm in (1.0, 4.0):
            cells[f"{agent}, greedy, norm {norm:g}"] = replace(greedy, world_settings={"dimension": 5, "norm": norm})
        cells[f"{agent}, greedy, fresh actions"] = replace(greedy, world="fresh")
    return cells


def regret(cell: Cell, step: float) -> float:
    """Mean regret over the tuning seeds with this η."""
    totals = []
    for seed in tuning_seeds(RUNS):
        agent, world, adversary, streams = cell.start(seed)
        with patch.object(contextual, "STEP", step):
            totals.append(play(agent, world, adversary, horizon=cell.horizon, labels=streams.labels).regret.sum())
    return float(np.mean(totals))


def main() -> None:
    """Print mean regret by η and problem, and the geometric mean over the problems."""
    warnings.simplefilter("ignore", LockInWarning)
    measured = {name: [regret(cell, step) for step in STEPS] for name, cell in problems().items()}
    seeds = tuning_seeds(RUNS)
    table = Table(title=f"Mean regret by η, seeds {seeds[0]:,} to {seeds[-1]:,}")
    table.add_column("problem")
    for step in STEPS:
        table.add_column(f"{step:.3g}", justify="right")
    for name, means in measured.items():
        table.add_row(name, *(f"{mean:,.0f}" for mean in means))
    overall = np.exp(np.log(np.array(list(measured.values()))).mean(axis=0))
    table.add_row("geometric mean", *(f"{mean:,.0f}" for mean in overall))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
