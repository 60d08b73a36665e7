"""``fairduel simulate``: any agents, any attacks, any world."""

import itertools
from pathlib import Path
from typing import Annotated

import typer

from fairduel.agents import AGENTS
from fairduel.cli import options
from fairduel.cli.output import Record, notify_assumptions
from fairduel.cli.reproduce import run_and_report
from fairduel.experiments.experiment import comparison


def simulate(
    agent: Annotated[
        list[str],
        typer.Option(
            metavar="AGENT",
            autocompletion=lambda: list(AGENTS),
            help=f"{options.AGENT_NAMES} {options.SETTINGS}rcdb,radius=8. Repeat to compare.",
            show_default="rcdb",
        ),
    ] = ["rcdb"],  # noqa: B006  # typer copies it
    attack: Annotated[list[str], typer.Option(**options.ATTACK_OPTION, show_default="greedy")] = ["greedy"],  # noqa: B006
    budget: options.Budget = 45,
    horizon: options.Horizon = 2000,
    world: options.World = "hypercube",
    delay: options.Delay = "none",
    runs: options.Runs = 10,
    seed: options.Seed = 0,
    jobs: options.Jobs = options.CORES,
    out: options.Out = Path("results/simulate"),
) -> Record:
    """Run agents against attacks and plot their regret.

    Every agent meets every attack. The first agent is the reference.

    Your own agent needs ask(actions), which returns a pair of indices, and
    tell(pair, outcome). Its constructor may name dimension, norm_bound,
    link, arms, horizon, flip_budget, delay and seed to receive them. Your
    own attack extends WeakAdversary or StrongAdversary of
    fairduel.adversaries and implements wants_flip; your own delay extends
    Delay of fairduel.delays.

    Examples:
      fairduel simulate --agent rcdb --agent colstim --attack misleading
      fairduel simulate --agent rcdb,radius=2 --agent rcdb,radius=theory
      fairduel simulate --attack greedy --attack random,probability=0.1
      fairduel simulate --agent rcdb --agent rcdp --delay fixed,rounds=50
    """
    pairs = itertools.product(dict.fromkeys(attack), dict.fromkeys(agent))
    cells = [options.cell_of(player, attacker, world, delay, budget, horizon) for attacker, player in pairs]
    for cell in cells:
        cell.check()
    notify_assumptions(cells)
    return run_and_report([comparison(cells)], "simulate", out, options.report_seeds(seed, runs), jobs)
