"""``fairduel sweep``: a whole grid of cells, on this machine or on a cluster."""

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from fairduel.cli.options import CORES, Jobs, compile_first, console, progress_bar, report_seeds, typed_command
from fairduel.simulation import Store, count_missing, run_cells
from fairduel.simulation.cluster import Cluster
from fairduel.simulation.sweep import read_grid


def sweep(
    grid: Annotated[Path, typer.Argument(help="The TOML file that declares the grid.", metavar="GRID")],
    jobs: Jobs = CORES,
    dask: Annotated[
        str | None,
        typer.Option(help="Run on the workers of this Dask scheduler instead: --dask tcp://10.0.0.1:8786."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the results; finished runs there are not run again.", show_default="results/GRID's name"
        ),
    ] = None,
) -> None:
    r"""Run every combination that a TOML file declares.

    A list is a grid over its values. Every agent meets every attack in
    every world, with every horizon, budget and seed:

      runs = 100                   # seeds 0 to 99; seed = 100: 100 to 199
      horizon = 2000
      budget = [20, 45]            # or "sqrt": ⌈√T⌉, as in the paper
      \[\[agent]]
      name = ["rcdb", "rcdb-s"]
      \[\[agent]]
      name = "maxpairucb"
      radius = [2.0, 4.0, 8.0]
      \[\[attack]]
      name = "misleading"
      target = ["random", "worst"]
      \[\[world]]                    # without it: hypercube
      name = "hypercube"
      dimension = [3, 5]

    A finished run is in OUT/cells within a second. A sweep that was
    interrupted, killed or moved to another machine resumes where it was,
    and gives the same results wherever it runs. Look at them with
    fairduel results.
    """
    declared = read_grid(grid)
    seeds = report_seeds(declared.seeds.start, len(declared.seeds))
    folder = out or Path("results") / grid.stem
    cells = list(declared.cells.values())
    with Cluster(dask) if dask else nullcontext() as cluster:
        store = Store(folder)
        missing = count_missing(store, cells, seeds)
        declared.save(folder, typed_command())
        if missing and cluster is None:
            compile_first(cells)
        with progress_bar(grid.stem, missing) as progress:
            run_cells(cells, seeds, store, jobs=jobs, workers=cluster, progress=progress)
    example = "SELECT agent, attack, avg(regret) FROM runs GROUP BY ALL ORDER BY ALL"
    for line in (
        f"{len(cells)} cells of {len(seeds)} runs each are in {folder / 'cells'}",
        f'Ask them:   fairduel results query {folder} "{example}"',
        f"Draw them:  fairduel results plot {folder} --x budget",
    ):
        console.print(line, soft_wrap=True, highlight=False, markup=False)
