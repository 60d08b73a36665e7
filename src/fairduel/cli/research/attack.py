"""``fairduel attack``: the worst attack on an agent that a search can find."""

import json
from pathlib import Path
from typing import Annotated

import typer

from fairduel.agents import AGENTS
from fairduel.cli import output
from fairduel.cli.folders import claim
from fairduel.cli.research import options
from fairduel.experiments.attack_search import (
    FINAL_RUNS,
    FINALISTS,
    HORIZONS,
    POPULATION,
    SCRIPTED,
    SEARCH_RUNS,
    check_attackable,
    count_search_runs,
    find_worst_attack,
)
from fairduel.files import write_atomically


def attack(
    agent: Annotated[
        str,
        typer.Argument(
            metavar="AGENT",
            autocompletion=lambda: list(AGENTS),
            help=f"{options.AGENT_NAMES} {options.SETTINGS}sceptic,robust=true.",
        ),
    ],
    budget: options.Budget = 45,
    horizon: options.Horizon = 2000,
    world: options.World = "hypercube",
    delay: options.Delay = "none",
    search: Annotated[int, typer.Option(min=1, metavar="N", help="About how many runs to search with.")] = 10_000,
    growth: Annotated[bool, typer.Option(help="Measure how regret grows with T, at C ~ √T.")] = True,
    runs: options.Runs = 50,
    seed: options.Seed = 0,
    jobs: options.Jobs = options.CORES,
    out: options.Out = Path("results/attack"),
) -> output.Record:
    """Search for the worst attack on an agent.

    The attack watches the agent: it may wait until the agent is nearly sure,
    choose which duels to flip, stop, and go on. CMA-ES chooses its settings
    on tuning seeds; the regret shown comes from runs that the search has not
    seen. No search proves that there is no worse attack.

    Your own agent shows neither its leader nor its doubts, unless it extends
    ContextualAgent; then conditions on these are taken to be met.

    Interrupt it at any time: rerunning resumes.

    Example:  fairduel attack rcdb --search 2000 --runs 20
    """
    seeds = options.report_seeds(seed, runs)
    problem = options.cell_of(agent, "none", world, delay, budget, horizon)
    check_attackable(problem)
    claim(out, "attack")
    output.compile_first([problem])
    horizons = HORIZONS if growth else ()
    searching = (count_search_runs(search) + 1) * POPULATION * SEARCH_RUNS + FINALISTS * FINAL_RUNS
    total = searching + (1 + len(SCRIPTED) + len(horizons)) * runs
    with output.progress_bar("Attack", total) as progress:
        found = find_worst_attack(
            problem,
            seeds,
            runs=search,
            jobs=jobs,
            horizons=horizons,
            path=out / "search.json",
            progress=progress,
        )
    path = out / "attack.json"
    write_atomically(path, (json.dumps(found.as_json(), indent=1, ensure_ascii=False) + "\n").encode())
    from fairduel.report.research.attack_page import attack_table, write_attack  # noqa: PLC0415  # plotting is slow

    page = write_attack(out, found, seeds, output.typed_command())
    output.say(*found.conclusions)
    output.print_table(attack_table(found), text=["attack"])
    output.say_report(page, f"Attack: {path}")
    return output.record(conclusions=found.conclusions, found=found.as_json(), report=str(page))
