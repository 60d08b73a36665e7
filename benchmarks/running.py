"""Run what is not stored yet, one seed after another, and keep it: interrupt at any time, and rerun to resume."""

import argparse
import csv
import functools
import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import polars as pl
from threadpoolctl import threadpool_limits

from fairduel.cli import output
from fairduel.errors import BadInputError
from fairduel.experiments.tuning import refuse_tuning_seeds
from fairduel.report.text_table import TextTable
from fairduel.simulation.fingerprint import code_digest
from fairduel.simulation.parallel import start_worker
from fairduel.simulation.storage import DamagedError, Parts

DOCS = Path(__file__).parents[1] / "docs" / "data"
_BATCH_SECONDS = 5.0
"""A batch starts no further seed after this long."""
_MOST_IN_A_BATCH = 25
_MOST_SEEDS = 10_000
"""A file holds at most this many seeds."""

Schema = Mapping[str, Any]


@dataclass(frozen=True)
class Work:
    """Something to measure with many seeds."""

    name: str
    measured: Callable[[int], list[dict[str, Any]]]
    """Returns at least one row for a seed; can be pickled."""
    schema: Schema
    """Columns of a row, ``seed`` among them."""
    modules: tuple[str, ...]
    """Modules outside the library that ``measured`` runs."""


def command_line(module: str, description: str, *, runs: int, unit: str) -> argparse.ArgumentParser:
    """Return the options that every study has."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description.split("\n\n")[1])
    parser.add_argument("--runs", type=int, default=runs, help=f"{unit} (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (default: 0)")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes (default: 1)")
    parser.add_argument("--quick", action="store_true", help="a few seeds of the smallest problems")
    name = module.rpartition(".")[2]
    parser.add_argument("--out", type=Path, default=Path("results") / name, help="folder (%(default)s)")
    parser.add_argument("--docs", action="store_true", help="also write the tables to docs/data/")
    return parser


def run_with_progress(
    works: Mapping[Any, Work], count: int, options: argparse.Namespace, *, title: str, unit: str
) -> dict[Any, pl.DataFrame]:
    """Run ``count`` seeds of each work as the command line says; return the rows by the works' keys."""
    chosen, kept = list(works.values()), options.out / "kept"
    seeds = range(options.seed, options.seed + count)
    left = sum(map(len, missing(chosen, kept, seeds).values()))
    with output.progress_bar(title, left, unit=unit) as progress:
        found = run(chosen, kept, seeds, jobs=options.jobs, progress=progress)
    return {key: found[work.name] for key, work in works.items()}


def write_table(table: TextTable, path: Path) -> None:
    """Write a table as CSV."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([table.columns, *table.rows])


def run(
    works: Sequence[Work],
    folder: Path,
    seeds: Sequence[int],
    *,
    jobs: int = 1,
    progress: Callable[[int], None] = lambda _: None,
) -> dict[str, pl.DataFrame]:
    """Return the rows of each work for all ``seeds``; rows in ``folder`` that the same code computed are reused.

    Args:
        works: What to measure.
        folder: Where rows are kept.
        seeds: Seeds of every work.
        jobs: Number of processes.
        progress: Called with the number of seeds just finished.

    Raises:
        BadInputError: A seed is reserved for tuning, or a file in ``folder`` is damaged.
    """
    refuse_tuning_seeds(seeds)
    kept = Parts(folder)
    by_name, left = {work.name: work for work in works}, missing(works, folder, seeds)
    while any(left.values()):
        for name, done, rows in _batches(by_name, left, jobs):
            work = by_name[name]
            kept.add(_key(work), pl.DataFrame(rows, dict(work.schema)), most_seeds=_MOST_SEEDS)
            progress(len(done))
        left = missing(works, folder, seeds)
    return {work.name: _stored(kept, work).filter(pl.col("seed").is_in(list(seeds))) for work in works}


def missing(works: Sequence[Work], folder: Path, seeds: Sequence[int]) -> dict[str, list[int]]:
    """Return the seeds of each work that are not stored yet."""
    kept = Parts(folder)
    done = {work.name: set(_stored(kept, work)["seed"]) for work in works}
    return {name: [seed for seed in seeds if seed not in found] for name, found in done.items()}


def _batches(
    works: Mapping[str, Work], left: Mapping[str, Sequence[int]], jobs: int
) -> Iterator[tuple[str, list[int], list[dict[str, Any]]]]:
    calls = [
        joblib.delayed(_run_batch)(works[name], seeds[start : start + _MOST_IN_A_BATCH])
        for name, seeds in left.items()
        for start in range(0, len(seeds), _MOST_IN_A_BATCH)
    ]
    own = {"initializer": start_worker, "initargs": (os.getpid(),)} if jobs > 1 else {}
    yield from joblib.Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1, **own)(calls)


def _run_batch(work: Work, seeds: Sequence[int]) -> tuple[str, list[int], list[dict[str, Any]]]:
    """Measure the first seeds, as many as time allows, so that finished ones are stored soon."""
    began, done, rows = time.monotonic(), list[int](), list[dict[str, Any]]()
    with threadpool_limits(1):
        for seed in seeds:
            if done and time.monotonic() - began > _BATCH_SECONDS:
                break
            rows += work.measured(seed)
            done.append(seed)
    return work.name, done, rows


def _stored(kept: Parts, work: Work) -> pl.DataFrame:
    try:
        found = kept.read(_key(work))
    except DamagedError as error:
        raise BadInputError(f"{error.path} is damaged: delete it and rerun.") from error
    return pl.DataFrame(schema=dict(work.schema)) if found is None else found


def _key(work: Work) -> str:
    """Name the code as well, so that results of different code are never mixed."""
    return hashlib.sha256(f"{work.name} {_digest(work.modules)}".encode()).hexdigest()[:24]


@functools.cache
def _digest(modules: tuple[str, ...]) -> str:
    return code_digest(modules)
