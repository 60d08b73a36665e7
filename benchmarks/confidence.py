"""How large a radius holds θ* in every round: ``python -m benchmarks.confidence`` (about two minutes on an idle core).

For RCDB, RCDB-S and Sceptic at their practical settings on the paper's problem, told C = 45: the share of runs in which
‖θ_t − θ*‖ ≤ cβ in every round, by c, in the norm in which the agent's widths are. Once without an attack, once under
an attack that knows θ* and the estimate: from some round on, it flips each outcome that would move the estimate towards
θ*, as far as its budget goes. Its first round is the worst of five for the agent, on other seeds.
"""

import argparse
import csv
import math
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from threadpoolctl import threadpool_limits

from fairduel import Outcome
from fairduel.agents import AGENTS
from fairduel.core.links import LOGISTIC
from fairduel.duel import Vector
from fairduel.experiments.paper_setup import BUDGET, NO_ATTACK, paper_cell
from fairduel.experiments.tuning import tuning_seeds
from fairduel.simulation import Cell
from fairduel.worlds import FixedWorld

WATCHED = ("rcdb", "rcdb-s", "sceptic")
STARTS = (1, 50, 150, 400, 1000)
TUNING_RUNS = 10
QUANTILES = (0.5, 0.95)


def ratios(cell: Cell, seed: int, start: int | None) -> Vector:
    """Return ‖θ_t − θ*‖/β in each round, shape (T,).

    Args:
        cell: The agent, its problem and its budget.
        seed: Seed of the run.
        start: First round of the attack; ``None`` for no attack.
    """
    agent, world, _, streams = cell.start(seed)
    assert isinstance(world, FixedWorld)
    assert world.parameter is not None
    player: Any = agent
    actions, truth = world.offer(1).actions, world.parameter
    found, left = np.empty(cell.horizon), BUDGET if start else 0
    for t in range(cell.horizon):
        error = player.estimate - truth
        found[t] = math.sqrt(error @ player.steering.matrix @ error) / player.current_radius
        duel = player.ask(actions)
        push = float(error @ duel.difference)  # the side of the first action is the side of the error if positive
        first_wins = streams.labels.random() < LOGISTIC.probability(duel.difference @ truth)
        if left and start and t + 1 >= start and push and first_wins != (push > 0):
            first_wins, left = not first_wins, left - 1
        player.tell(duel, Outcome.FIRST if first_wins else Outcome.SECOND)
    return found


def worst_start(cell: Cell) -> int:
    """Return the start of the attack that makes the largest ratio of a run largest on average, on tuning seeds."""
    seeds = tuning_seeds(TUNING_RUNS)
    return max(STARTS, key=lambda start: float(np.mean([ratios(cell, seed, start).max() for seed in seeds])))


def main() -> None:
    """Write the radii that would have been enough, and draw the coverage."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--out", type=Path, default=Path("results/confidence"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    rows = []
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    for name in WATCHED:
        cell = paper_cell(name, NO_ATTACK)
        start = worst_start(cell)
        for panel, attacked in zip(panels, (None, start), strict=True):
            runs = np.array([ratios(cell, seed, attacked) for seed in range(given.runs)])
            largest, last = np.sort(runs.max(axis=1)), runs[:, -1]
            words = "none" if attacked is None else f"from round {attacked} on"
            needed = [f"{np.quantile(each, share):.2f}" for each in (largest, last) for share in QUANTILES]
            rows.append(
                [AGENTS[name].title, words, f"{np.mean(largest <= 1.0):.0%}", f"{np.mean(last <= 1.0):.0%}", *needed]
            )
            print(*rows[-1], sep=", ", flush=True)
            shares = np.arange(1, given.runs + 1) / given.runs
            panel.step(largest, shares, where="post", label=AGENTS[name].title, color=AGENTS[name].colour)
    for panel, title in zip(panels, ("No attack", f"{BUDGET} flips away from θ*"), strict=True):
        panel.axvline(1.0, color="0.6", linewidth=0.8)
        panel.set(xscale="log", xlabel="c, as a multiple of the practical radius", title=title)
    panels[0].set_ylabel("runs with ‖θ_t − θ*‖ ≤ cβ in every round")
    panels[0].legend(frameon=False)
    figure.savefig(given.out / "confidence.png", dpi=150)
    with (given.out / "confidence.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        every = ["every round: median", "95%"]
        table.writerow(["agent", "flips", "covered in every round", "in the last", *every, "last round: median", "95%"])
        table.writerows(rows)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
