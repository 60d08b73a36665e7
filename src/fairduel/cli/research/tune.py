"""``fairduel tune``: the best settings of an agent under one attack, on tuning seeds."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from fairduel.agents import AGENTS
from fairduel.cli import output
from fairduel.cli.folders import claim
from fairduel.cli.research import options
from fairduel.errors import BadInputError
from fairduel.experiments.sentences import settings_text
from fairduel.experiments.tuning import (
    RADII,
    TUNING_RUNS,
    Tuned,
    grid,
    paper_problems,
    to_ship,
    trial_cells,
    tune_all,
    tuning_seeds,
)
from fairduel.files import write_atomically
from fairduel.report.text_table import TextTable
from fairduel.simulation import Store, count_missing


def tune(
    agent: Annotated[
        str,
        typer.Argument(
            metavar="AGENT",
            autocompletion=lambda: [*AGENTS, "all"],
            help=f"{options.AGENT_NAMES} {options.SETTINGS}rcdb,warmup=160; they stay fixed. "
            '"all" repeats every tuning that the experiments use.',
        ),
    ],
    attack: Annotated[str, typer.Option(**options.ATTACK_OPTION)] = "greedy",
    budget: options.Budget = 45,
    horizon: options.Horizon = 2000,
    world: options.World = "hypercube",
    delay: options.Delay = "none",
    grid_of: Annotated[
        list[str],
        typer.Option(
            "--grid",
            metavar="SETTING=VALUE,…",
            help="Values to try: --grid radius=2,4,8. Repeat for a second setting.",
            show_default="radius from 1/8 to 32",
        ),
    ] = [],  # noqa: B006
    runs: Annotated[int, typer.Option(min=2, metavar="N", help="Runs per grid point.")] = TUNING_RUNS,
    jobs: options.Jobs = options.CORES,
    out: options.Out = Path("results/tune"),
) -> output.Record:
    """Find an agent's best settings on a grid, using tuning seeds.

    Without --grid, tries radii from 1/8 to 32 (and, for CoLSTIM, both
    couplings). Tuning seeds start at 1,000,000, beyond those of any report.
    Writes every trial to DIR/tuned.json.

    Example:  fairduel tune maxpairucb --attack misleading --grid radius=2,4,8
    """
    if agent == "all":
        problems = paper_problems()
    else:
        cell = options.cell_of(agent, attack, world, delay, budget, horizon)
        problems = [(cell, _given_grid(grid_of) if grid_of else grid(cell.agent))]
    cells = trial_cells(problems)
    for trial in cells:
        trial.check()
    claim(out, "tune")
    store = Store(out)
    output.compile_first(cells)
    with output.progress_bar("Tuning", count_missing(store, cells, tuning_seeds(runs))) as progress:
        tunings = tune_all(problems, store, runs, jobs=jobs, progress=progress)
    path, found = out / "tuned.json", [tuned.as_json() for tuned in tunings]
    write_atomically(path, (json.dumps(found, indent=1) + "\n").encode())
    if agent == "all":
        write_atomically(out / "chosen.json", to_ship(tunings).encode())
    from fairduel.report.research.tune_page import write_tuning  # noqa: PLC0415  # plotting is slow

    page = write_tuning(out, tunings, output.typed_command())
    concluded = [tuned.conclusion for tuned in tunings]
    for sentence, tuning in zip(concluded, tunings, strict=True):
        output.say(sentence)
        _print_trials(tuning)
    output.say_report(page, f"Tuned settings: {path}")
    return output.record(conclusions=concluded, tunings=found, settings=str(path), report=str(page))


def _given_grid(texts: list[str]) -> list[dict[str, Any]]:
    """Every combination of the values given for each setting."""
    points: list[dict[str, Any]] = [{}]
    for text in texts:
        name, equals, values = text.partition("=")
        if not equals or not values or not name.isidentifier():
            example = f"radius={RADII[0]:g},{RADII[1]:g}"
            raise BadInputError(f"write a grid as SETTING=VALUE,VALUE, for example {example}; got {text!r}.")
        points = [point | {name: options.value_of(value)} for point in points for value in values.split(",")]
    return points


def _print_trials(tuned: Tuned) -> None:
    rows = [
        [
            settings_text(trial.settings) + (" (best)" if trial is tuned.winner else ""),
            f"{trial.mean:,.0f} ± {trial.standard_error:,.0f}",
        ]
        for trial in tuned.trials
    ]
    output.print_table(TextTable(("settings", "regret on tuning seeds"), rows), text=["settings"])
