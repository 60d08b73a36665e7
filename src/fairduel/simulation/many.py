"""Many runs: in parallel, resumable, the same whatever runs them."""

import functools
import os
import platform
import signal
import threading
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Protocol

import joblib
from joblib.externals.loky.process_executor import TerminatedWorkerError
from threadpoolctl import threadpool_limits

from fairduel.errors import BadInputError, LockInWarning
from fairduel.simulation.cell import Cell, Run
from fairduel.simulation.store import ROUNDS_A_PART, Store

_LONGEST_BATCH = 10
_LIVES = 3
"""How many more workers are tried for the cell of a killed one; as many as Dask tries."""


@dataclass(frozen=True)
class Batch:
    """Some seeds of one cell, for one worker."""

    key: str
    """The cell's key, where the runs were asked for."""
    cell: Cell
    seeds: list[int]

    def run(self) -> list[Run]:
        """Run the seeds one after another."""
        return [self.cell.run(seed) for seed in self.seeds]


Finished = Generator[tuple[str, list[Run]], None, None]
"""The key and the runs of each batch that is done, in any order."""


class Workers(Protocol):
    """Who runs batches: this machine, or a cluster."""

    @property
    def count(self) -> int:
        """How many batches they run at a time."""

    def run(self, batches: Sequence[Batch]) -> Finished:
        """Run all batches; to close it early leaves the others undone."""


def run_cells(
    cells: Sequence[Cell],
    seeds: Sequence[int],
    store: Store,
    *,
    jobs: int = 1,
    workers: Workers | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> int:
    """Run every cell for every seed that is not in the store yet; return how many runs that were.

    They run on this machine, ``jobs`` at a time, or on the given workers. ``progress`` is called with the
    number of runs just finished. A cell is stored when its last seed is done, and a large one part by part; on Ctrl-C
    the runs of all finished batches are stored before the interrupt goes on.
    """
    workers = workers or Local(jobs)
    missing: dict[str, list[int]] = {}
    by_key = {cell.key: cell for cell in cells}
    for key, cell in by_key.items():
        done = store.seeds(cell)
        missing[key] = [seed for seed in dict.fromkeys(seeds) if seed not in done]
    left = {key: len(seeds) for key, seeds in missing.items()}
    waiting: dict[str, list[Run]] = defaultdict(list)
    try:
        # One BLAS thread: the last bits must not depend on how many cores a worker found.
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore", LockInWarning)  # each run records whether it locked in
            warnings.filterwarnings("ignore", ".* have been cancelled", UserWarning)  # joblib's word on an early end
            with closing(workers.run(_batches(by_key, missing, workers.count))) as finished:
                for key, runs in finished:
                    waiting[key] += runs
                    left[key] -= len(runs)
                    progress(len(runs))
                    if not left[key] or len(waiting[key]) * by_key[key].horizon >= ROUNDS_A_PART:
                        store.add(by_key[key], waiting.pop(key))
    except BaseException:
        for key, runs in waiting.items():
            store.add(by_key[key], runs)
        raise
    return sum(map(len, missing.values()))


def _batches(cells: dict[str, Cell], missing: dict[str, list[int]], count: int) -> list[Batch]:
    """Cut the runs into batches: compiled ones go several at a time, others alone, since Ctrl-C costs a batch."""
    total = sum(map(len, missing.values()))
    longest = max(1, min(_LONGEST_BATCH, total // (4 * count)))
    batches = []
    for key, seeds in missing.items():
        size = longest if seeds and cells[key].runs_whole else 1
        batches += [Batch(key, cells[key], seeds[start : start + size]) for start in range(0, len(seeds), size)]
    return batches


@dataclass(frozen=True)
class Local:
    """Threads and processes of this machine."""

    count: int

    def run(self, batches: Sequence[Batch]) -> Finished:
        """Run compiled batches in threads, which cost nothing to start; then the others in processes."""
        cells = {batch.key: batch.cell for batch in batches}
        compiled = {key for key, cell in cells.items() if cell.runs_whole}
        yield from self._threads([batch for batch in batches if batch.key in compiled])
        yield from self._processes([batch for batch in batches if batch.key not in compiled])

    def _threads(self, batches: Sequence[Batch]) -> Finished:
        for number, runs in self._parallel("threading", dict(enumerate(batches))):
            yield batches[number].key, runs

    def _processes(self, batches: Sequence[Batch]) -> Finished:
        """Run batches in processes; one that is killed takes its pool along, so then each cell gets its own pool."""
        left = dict(enumerate(batches))
        if (yield from self._pool(left)):
            return
        fatal: list[Batch] = []
        for key in dict.fromkeys(batch.key for batch in left.values()):
            of_cell = {number: batch for number, batch in left.items() if batch.key == key}
            for _ in range(_LIVES):
                if (yield from self._pool(of_cell)):
                    break
            fatal += of_cell.values()
        report_fatal(fatal)

    def _pool(self, left: dict[int, Batch]) -> Generator[tuple[str, list[Run]], None, bool]:
        """Take from ``left`` what gets done; return whether that was all."""
        try:
            for number, runs in self._parallel("loky", dict(left)):
                yield left.pop(number).key, runs
        except TerminatedWorkerError:
            return False
        return True

    def _parallel(self, backend: str, batches: dict[int, Batch]) -> Iterator[tuple[int, list[Run]]]:
        calls = [joblib.delayed(_run_local)(number, batch, os.getpid()) for number, batch in batches.items()]
        if calls:
            yield from joblib.Parallel(
                n_jobs=self.count, backend=backend, return_as="generator_unordered", batch_size=1
            )(calls)


def _run_local(number: int, batch: Batch, parent: int) -> tuple[int, list[Run]]:
    if os.getpid() == parent:
        return number, batch.run()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
    _end_with_parent()
    return number, run_elsewhere(batch)


@functools.cache
def _end_with_parent() -> None:
    """Let this process end once its parent has, also where that was killed and could not ask for it."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def run_elsewhere(batch: Batch) -> list[Run]:
    """Run a batch in a process of its own, under the conditions of the process that asked for it."""
    _check_code(batch)
    threadpool_limits(1)  # never taken back: another thread of this process may be in the middle of a run
    warnings.simplefilter("ignore", LockInWarning)
    return batch.run()


def report_fatal(batches: Sequence[Batch]) -> None:
    """Say which runs could not be made because every worker that tried them was killed."""
    if batches:
        cell = batches[0].cell
        raise BadInputError(
            f"{sum(len(batch.seeds) for batch in batches)} runs killed every worker that tried them, most likely for "
            f"want of memory, the first of {cell.agent} under {cell.attack}: all others are kept."
        )


def _check_code(batch: Batch) -> None:
    """Refuse to run other code, or on another table, than the key stands for."""
    cell = batch.cell
    if cell.key_with(cell.loaded_code) != batch.key:
        raise BadInputError(
            f"the code of {cell.agent}, {cell.attack} or {cell.world} that is loaded on {platform.node()} differs from "
            "the code here, or a library's version does: install the same there, and restart its workers."
        )
