"""Many runs: in parallel, resumable, the same whatever the number of workers."""

import os
import signal
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

import joblib
from threadpoolctl import threadpool_limits

from fairduel.errors import LockInWarning
from fairduel.simulation.cell import Cell, Run
from fairduel.simulation.store import Store

_LONGEST_BATCH = 10


def run_cells(
    cells: Sequence[Cell],
    seeds: Sequence[int],
    store: Store,
    *,
    jobs: int = 1,
    progress: Callable[[int], None] = lambda _: None,
) -> int:
    """Run every cell for every seed that is not in the store yet; return how many runs that were.

    ``progress`` is called with the number of runs just finished. A cell is stored when its last seed
    is done; on Ctrl-C all finished runs are stored before the interrupt goes on.
    """
    missing: dict[str, list[int]] = {}
    by_key = {cell.key: cell for cell in cells}
    for key, cell in by_key.items():
        done = store.seeds(cell)
        missing[key] = [seed for seed in seeds if seed not in done]
    total = sum(map(len, missing.values()))
    batches = _batches(by_key, missing, jobs)
    waiting: dict[str, list[Run]] = defaultdict(list)
    try:
        # One BLAS thread: the last bits must not depend on how many cores a worker found.
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore", LockInWarning)  # each run records whether it locked in
            for key, runs in _outcomes(batches, jobs):
                waiting[key] += runs
                progress(len(runs))
                if len(waiting[key]) == len(missing[key]):
                    store.add(by_key[key], waiting.pop(key))
    except BaseException:
        for key, runs in waiting.items():
            store.add(by_key[key], runs)
        raise
    return total


def _batches(cells: dict[str, Cell], missing: dict[str, list[int]], jobs: int) -> list[tuple[str, Cell, list[int]]]:
    total = sum(map(len, missing.values()))
    size = max(1, min(_LONGEST_BATCH, total // (4 * jobs)))
    return [
        (key, cells[key], seeds[start : start + size])
        for key, seeds in missing.items()
        for start in range(0, len(seeds), size)
    ]


def _outcomes(batches: list[tuple[str, Cell, list[int]]], jobs: int) -> Iterator[tuple[str, list[Run]]]:
    """Run compiled batches in threads, which cost nothing to start; then the others in processes."""
    whole = {key: cell.runs_whole for key, cell, _ in batches}
    for in_threads in (True, False):
        calls = [
            joblib.delayed(_run_batch)(key, cell, seeds, os.getpid())
            for key, cell, seeds in batches
            if whole[key] is in_threads
        ]
        if calls:
            yield from joblib.Parallel(
                n_jobs=jobs,
                backend="threading" if in_threads else "loky",
                return_as="generator_unordered",
                batch_size=1,
            )(calls)


def _run_batch(key: str, cell: Cell, seeds: list[int], parent: int) -> tuple[str, list[Run]]:
    if os.getpid() != parent:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
        warnings.simplefilter("ignore", LockInWarning)
    return key, [cell.run(seed) for seed in seeds]
