"""``fairduel tune``: the best settings of an agent under one attack, on tuning seeds."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from fairduel.agents import AGENTS
from fairduel.cli import options
from fairduel.errors import BadInputError
from fairduel.experiments.experiment import settings_text
from fairduel.experiments.tuning import (
    RADII,
    TUNING_RUNS,
    Tuned,
    grid,
    paper_problems,
    trial_cells,
    tune_all,
    tuning_seeds,
)
from fairduel.files import write_atomically
from fairduel.simulation import Cell, Store, count_missing


def tune(
    agent: Annotated[
        str, typer.Argument(help=f"{', '.join(AGENTS)}, {options.OWN}; all: every one that the experiments use.")
    ],
    attack: options.Attack = "greedy",
    budget: options.Budget = 45,
    horizon: options.Horizon = 2000,
    world: options.World = "hypercube",
    grid_of: Annotated[
        list[str],
        typer.Option(
            "--grid", help="Values to try, as name=value,value: --grid radius=2,4,8. Again for a second name."
        ),
    ] = [],  # noqa: B006
    set_agent: Annotated[list[str], typer.Option("--set", help="A setting of the agent that stays, name=value.")] = [],  # noqa: B006
    set_attack: options.SetAttack = [],  # noqa: B006
    set_world: options.SetWorld = [],  # noqa: B006
    runs: Annotated[int, typer.Option(min=2, help="Runs for each point of the grid.")] = TUNING_RUNS,
    jobs: options.Jobs = options.CORES,
    out: options.Out = Path("results/tune"),
) -> None:
    """Try a grid of settings on tuning seeds, and write the winner.

    Without --grid, radii from 1/8 to 32 are tried (and, for CoLSTIM, both
    couplings). Tuning seeds start at 1,000,000, where no report does.
    OUT/tuned.json then has every trial and the winner.

    [bold]fairduel tune all[/bold] makes every tuning that the experiments use.
    """
    if agent == "all":
        problems = paper_problems()
    else:
        cell = Cell(
            agent=agent,
            attack=attack,
            budget=budget,
            horizon=horizon,
            world=world,
            agent_settings=options.parse_settings(set_agent),
            attack_settings=options.parse_settings(set_attack),
            world_settings=options.parse_settings(set_world),
        )
        problems = [(cell, _given_grid(grid_of) if grid_of else grid(agent))]
    cells = trial_cells(problems)
    for trial in cells:
        trial.check()
    store = Store(out)
    options.compile_first(cells)
    with options.progress_bar("Tuning", count_missing(store, cells, tuning_seeds(runs))) as progress:
        tunings = tune_all(problems, store, runs, jobs=jobs, progress=progress)
    for tuned in tunings:
        _print(tuned)
    path = out / "tuned.json"
    write_atomically(path, (json.dumps([tuned.as_json() for tuned in tunings], indent=1) + "\n").encode())
    from fairduel.report.tune_page import write_tuning  # noqa: PLC0415  # matplotlib loads only where it draws

    page = write_tuning(out, tunings, options.typed_command())
    options.console.print(f"\nTuned settings: [bold]{path}[/bold]\nReport: [bold]{page}[/bold]", soft_wrap=True)


def _given_grid(texts: list[str]) -> list[dict[str, Any]]:
    """Every combination of the values given for each name."""
    points: list[dict[str, Any]] = [{}]
    for text in texts:
        name, equals, values = text.partition("=")
        if not equals or not values:
            raise BadInputError(
                f"a grid is written name=value,value, like radius={RADII[0]:g},{RADII[1]:g}, not {text!r}."
            )
        points = [
            point | options.parse_settings([f"{name}={value}"]) for point in points for value in values.split(",")
        ]
    return points


def _print(tuned: Tuned) -> None:
    problem = tuned.problem
    fixed = settings_text(problem["agent_settings"] | problem["attack_settings"])
    table = Table(
        title=f"{problem['agent']} under {problem['attack']}, C = {problem['budget']}"
        + (f" ({fixed})" if fixed else ""),
        title_justify="left",
        title_style="bold",
    )
    table.add_column("settings")
    table.add_column("regret on tuning seeds", justify="right")
    for trial in tuned.trials:
        mark = "  ← best" if trial is tuned.winner else ""
        table.add_row(settings_text(trial.settings), f"{trial.mean:,.0f} ± {trial.standard_error:,.0f}{mark}")
    options.console.print(table)
    if tuned.at_edge:
        options.console.print("The best value is the grid's smallest or largest: a wider --grid may find a better one.")
