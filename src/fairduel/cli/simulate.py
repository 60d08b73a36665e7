"""``fairduel simulate``: any agent, any attack, any world."""

from pathlib import Path
from typing import Annotated

import typer

from fairduel.adversaries import ATTACKS
from fairduel.agents import AGENTS, loaded_class
from fairduel.cli.options import CORES, Jobs, Out, Runs, Seed, console, parse_settings, report_seeds
from fairduel.cli.reproduce import run_and_report
from fairduel.experiments import Curves, Entry, Experiment
from fairduel.experiments.experiment import settings_text
from fairduel.simulation import Cell
from fairduel.worlds import WORLDS

_OWN = "or your own as module:Name"


def simulate(
    agent: Annotated[
        list[str],
        typer.Option(help=f"{', '.join(AGENTS)}, {_OWN}; give it again to compare.", show_default="rcdb"),
    ] = ["rcdb"],  # noqa: B006  # typer copies it
    attack: Annotated[str, typer.Option(help=f"{', '.join(ATTACKS)}, {_OWN}.")] = "greedy",
    budget: Annotated[int, typer.Option(min=0, help="C: the most outcomes that the attack may flip.")] = 45,
    horizon: Annotated[int, typer.Option(min=1, help="T: how many rounds.")] = 2000,
    world: Annotated[str, typer.Option(help=f"{', '.join(WORLDS)}, {_OWN}.")] = "hypercube",
    set_agent: Annotated[
        list[str], typer.Option("--set", help="A setting of the agents, as name=value: --set radius=theory.")
    ] = [],  # noqa: B006
    set_attack: Annotated[list[str], typer.Option(help="A setting of the attack: --set-attack target=worst.")] = [],  # noqa: B006
    set_world: Annotated[list[str], typer.Option(help="A setting of the world: --set-world dimension=3.")] = [],  # noqa: B006
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
    settings = parse_settings(set_agent)
    cells = [
        Cell(
            agent=name,
            attack=attack,
            budget=budget,
            horizon=horizon,
            world=world,
            agent_settings=settings,
            attack_settings=parse_settings(set_attack),
            world_settings=parse_settings(set_world),
        )
        for name in dict.fromkeys(agent)
    ]
    experiment = Experiment(
        name="regret",
        title=f"{attack} attack, C = {budget}, {horizon} rounds",
        question="What does each agent cost here?",
        entries=[
            Entry(cell, settings_text(settings) or "default", attack, is_reference=cell is cells[0]) for cell in cells
        ],
        views=[Curves("Cumulative regret; the band is ± one standard error over the runs.")],
    )
    for cell in cells:
        cell.check()
        kind = loaded_class(cell.agent)
        if kind is not None and kind.assumes:
            console.print(f"{kind.title} assumes {kind.assumes}.")
    run_and_report([experiment], out, report_seeds(seed, runs), jobs)
