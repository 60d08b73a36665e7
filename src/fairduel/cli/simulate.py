"""``fairduel simulate``: any agent, any attack, any world."""

from pathlib import Path
from typing import Annotated

import typer

from fairduel.agents import AGENTS, loaded_class
from fairduel.cli import options
from fairduel.cli.reproduce import run_and_report
from fairduel.experiments.experiment import comparison
from fairduel.simulation import Cell


def simulate(
    agent: Annotated[
        list[str],
        typer.Option(help=f"{', '.join(AGENTS)}, {options.OWN}; give it again to compare.", show_default="rcdb"),
    ] = ["rcdb"],  # noqa: B006  # typer copies it
    attack: options.Attack = "greedy",
    budget: options.Budget = 45,
    horizon: options.Horizon = 2000,
    world: options.World = "hypercube",
    set_agent: Annotated[
        list[str], typer.Option("--set", help="A setting of the agents, as name=value: --set radius=theory.")
    ] = [],  # noqa: B006
    set_attack: options.SetAttack = [],  # noqa: B006
    set_world: options.SetWorld = [],  # noqa: B006
    runs: options.Runs = 10,
    seed: options.Seed = 0,
    jobs: options.Jobs = options.CORES,
    out: options.Out = Path("results/simulate"),
) -> None:
    """Run one or more agents against an attack, and plot their regret.

    An agent of your own has  ask(actions)  → pair of indices  and
    tell(pair, outcome).  Its constructor is given those of dimension,
    norm_bound, link, horizon, flip_budget and seed that it names. An attack
    of your own derives from WeakAdversary or StrongAdversary of
    fairduel.adversaries and writes wants_flip.

    Example:  fairduel simulate --agent rcdb --agent colstim --attack misleading
    """
    cells = [
        Cell(
            agent=name,
            attack=attack,
            budget=budget,
            horizon=horizon,
            world=world,
            agent_settings=options.parse_settings(set_agent),
            attack_settings=options.parse_settings(set_attack),
            world_settings=options.parse_settings(set_world),
        )
        for name in dict.fromkeys(agent)
    ]
    for cell in cells:
        cell.check()
        kind = loaded_class(cell.agent)
        if kind is not None and kind.assumes:
            options.console.print(f"{kind.title} assumes {kind.assumes}.")
    run_and_report([comparison(cells)], out, options.report_seeds(seed, runs), jobs)
