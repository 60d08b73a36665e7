"""Run a declared experiment and collect its results."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from fairduel.experiments.experiment import Entry, Experiment
from fairduel.experiments.tuning import refuse_tuning_seeds
from fairduel.simulation import Storage, run_cells


@dataclass(frozen=True)
class Results:
    """An experiment with the runs of all its entries.

    The column ``entry`` of both frames is the position in ``experiment.entries``.
    """

    experiment: Experiment
    seeds: list[int]
    runs: pl.DataFrame
    """One row per run, by entry and seed: final values, settings, diagnostics."""
    traces: pl.DataFrame
    """One row per run and round, by entry, seed and round: cumulative regrets, duel, flip, weight, width, slope."""

    def of(self, entry: Entry) -> pl.DataFrame:
        """Return the runs of one entry, ordered by seed."""
        return self.runs.filter(pl.col("entry") == self.experiment.entries.index(entry))


def run_experiment(
    experiment: Experiment,
    store: Storage,
    seeds: Sequence[int],
    *,
    jobs: int = 1,
    progress: Callable[[int], None] = lambda _: None,
) -> Results:
    """Run what is missing of an experiment and collect all of its results.

    Args:
        experiment: The experiment.
        store: Where finished runs are kept.
        seeds: One run per entry and seed; all below the tuning seeds.
        jobs: Number of runs at a time.
        progress: Called with the number of runs just finished.
    """
    refuse_tuning_seeds(seeds)
    run_cells([entry.cell for entry in experiment.entries], seeds, store, jobs=jobs, progress=progress)
    runs, traces = [], []
    for index, entry in enumerate(experiment.entries):
        names = {
            "experiment": experiment.name,
            "entry": index,
            "agent": entry.cell.agent,
            "setting": entry.full_setting,
            "tuned": entry.tuned,
            "panel": entry.panel,
            "attack": entry.cell.attack,
            "budget": entry.cell.budget,
            "delay": entry.cell.delay,
        }
        literals = [pl.lit(value).alias(name) for name, value in names.items()]
        runs.append(store.records(entry.cell, seeds).with_columns(*literals, pl.lit(entry.x, pl.Float64).alias("x")))
        traces.append(store.traces(entry.cell, seeds).with_columns(*literals))
    first = list(names)
    return Results(
        experiment,
        list(seeds),
        pl.concat(runs, how="diagonal").select(*first, pl.exclude(first)),
        pl.concat(traces).select(*first, "seed", "round", pl.exclude([*first, "seed", "round"])),
    )
