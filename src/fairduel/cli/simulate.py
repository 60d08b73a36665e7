"""``fairduel simulate``: any agent, any attack, any world."""

from pathlib import Path
from typing import Annotated

import typer

from fairduel.agents import AGENTS, loaded_class
from fairduel.cli.options import (
    CORES,
    OWN,
    Attack,
    Budget,
    Horizon,
    Jobs,
    Out,
    Runs,
    Seed,
    SetAttack,
    SetWorld,
    World,
    console,
    parse_settings,
    report_seeds,
)
from fairduel.cli.reproduce import run_and_report
from fairduel.experiments.experiment import comparison
from fairduel.simulation import Cell


def simulate(
    agent: Annotated[
        list[str],
        typer.Option(help=f"{', '.join(AGENTS)}, {OWN}; give it again to compare.", show_default="rcdb"),
    ] = ["rcdb"],  # noqa: B006  # typer copies it
    attack: Attack = "greedy",
    budget: Budget = 45,
    horizon: Horizon = 2000,
    world: World = "hypercube",
    set_agent: Annotated[
        list[str], typer.Option("--set", help="A setting of the agents, as name=value: --set radius=theory.")
    ] = [],  # noqa: B006
    set_attack: SetAttack = [],  # noqa: B006
    set_world: SetWorld = [],  # noqa: B006
    runs: Runs = 10,
    seed: Seed = 0,
    jobs: Jobs = CORES,
    out: Out = Path("results/simulate"),
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
            agent_settings=parse_settings(set_agent),
            attack_settings=parse_settings(set_attack),
            world_settings=parse_settings(set_world),
        )
        for name in dict.fromkeys(agent)
    ]
    for cell in cells:
        cell.check()
        kind = loaded_class(cell.agent)
        if kind is not None and kind.assumes:
            console.print(f"{kind.title} assumes {kind.assumes}.")
    run_and_report([comparison(cells)], out, report_seeds(seed, runs), jobs)
