"""``fairduel sweep``: a grid of cells, on this machine or on a cluster."""

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from fairduel.cli import options, output
from fairduel.cli.folders import claim
from fairduel.simulation import Store, count_missing, run_cells
from fairduel.simulation.cluster import Cluster
from fairduel.simulation.sweep import read_grid


def sweep(
    grid: Annotated[Path, typer.Argument(metavar="GRID", help="TOML file that declares the grid.")],
    jobs: options.Jobs = options.CORES,
    dask: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Run on a Dask cluster: --dask tcp://10.0.0.1:8786.", show_default=False),
    ] = None,
    out: Annotated[Path | None, typer.Option(**options.OUT_OPTION, show_default="results/GRID")] = None,
) -> output.Record:
    r"""Run every combination that a TOML file declares.

    A list is a grid over its values. Every agent meets every attack in
    every world, with every horizon, budget and seed:

      runs = 100                   # seeds 0 to 99; with seed = 100: 100 to 199
      horizon = 2000
      budget = [20, 45]            # C, or "sqrt": ⌈√T⌉, as in the paper
      known_budget = \[true, false] # are agents told C? also per \[\[agent]]
      \[\[agent]]
      name = ["rcdb", "rcdb-s"]
      \[\[agent]]
      name = "maxpairucb"
      radius = [2.0, 4.0, 8.0]
      \[\[attack]]
      name = "misleading"
      target = ["random", "worst"]
      \[\[world]]                    # default: hypercube
      name = "hypercube"
      dimension = [3, 5]
      \[\[delay]]                    # default: none
      name = ["none", "stochastic"]

    Each finished run is saved within a second. A sweep that was interrupted,
    killed or moved to another machine resumes when you rerun it, with the
    same results. Query or plot them with  fairduel results.
    """
    declared = read_grid(grid)
    seeds = options.report_seeds(declared.seeds.start, len(declared.seeds))
    folder = out or Path("results") / grid.stem
    cells = list(declared.cells.values())
    with Cluster(dask) if dask else nullcontext() as cluster:
        claim(folder, "sweep")
        store = Store(folder)
        missing = count_missing(store, cells, seeds)
        declared.save(folder, output.typed_command())
        output.notify_assumptions(cells)
        if missing and cluster is None:
            output.compile_first(cells)
        with output.progress_bar(grid.stem, missing) as progress:
            run_cells(cells, seeds, store, jobs=jobs, workers=cluster, progress=progress)
    example = "SELECT agent, attack, avg(regret) FROM runs GROUP BY ALL ORDER BY ALL"
    output.say(
        f"Finished {len(cells)} cells of {len(seeds)} runs each ({missing} new), in {folder / 'cells'}.",
        f'Query them: fairduel results query {folder} "{example}"',
        f"Plot them: fairduel results plot {folder} --x budget",
    )
    return output.record(folder=str(folder), cells=len(cells), runs_per_cell=len(seeds), new_runs=missing)
