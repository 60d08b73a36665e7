"""Many runs: in parallel, resumable, the same whatever runs them."""

import os
import platform
import signal
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Protocol, Self

import joblib
from joblib.externals.loky.process_executor import TerminatedWorkerError
from threadpoolctl import threadpool_limits

from fairduel.errors import BadInputError, DamageWarning, LockInWarning
from fairduel.simulation.cell import Cell, Run
from fairduel.simulation.storage import ROUNDS_A_PART, Storage, missing_seeds

_SAVE_EVERY = 0.5
"""Seconds between two times that finished runs are stored."""
_LONGEST_BATCH = 10
_BATCH_SECONDS = 0.5
"""After so long a batch begins no further run."""
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
        """Run the seeds one after another, as far as time allows: a finished run must not wait long to be stored."""
        began = time.monotonic()
        runs: list[Run] = []
        while len(runs) < len(self.seeds) and (not runs or time.monotonic() - began < _BATCH_SECONDS):
            runs.append(self.cell.run(self.seeds[len(runs)]))
        return runs


Finished = Generator[tuple[str, list[Run]], None, None]
"""The key and the runs of each batch that is done, in any order."""


class Workers(Protocol):
    """Who runs batches: this machine, or a cluster."""

    @property
    def count(self) -> int:
        """How many batches they run at a time."""

    def run(self, batches: Sequence[Batch]) -> Finished:
        """Run the first seed of every batch, and of its others those that it has time for.

        To close it early leaves batches undone.
        """


def run_cells(
    cells: Sequence[Cell],
    seeds: Sequence[int],
    store: Storage,
    *,
    jobs: int = 1,
    workers: Workers | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> int:
    """Run every cell for every seed that is not in the store yet; return how many runs that were.

    They run on this machine, ``jobs`` at a time, or on the given workers. ``progress`` is called with the
    number of runs just finished. Each run is stored within about a second, so that a kill costs no more than that and
    the runs in progress; on Ctrl-C all finished ones are stored before the interrupt goes on. Damaged files in the
    store are removed with a warning, and their runs made again.
    """
    workers = workers or Local(jobs)
    by_key = {cell.key: cell for cell in cells}
    for cell in by_key.values():
        for path in store.tidy(cell):
            warnings.warn(f"{path} is damaged: its runs of {cell.agent} are repeated.", DamageWarning, stacklevel=2)
    missing = missing_seeds(store, by_key.values(), seeds)
    count = sum(map(len, missing.values()))
    batches = _batches(by_key, missing, longest=max(1, min(_LONGEST_BATCH, count // (4 * workers.count))))
    # One BLAS thread: the last bits must not depend on how many cores a worker found.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", LockInWarning)  # each run records whether it locked in
        warnings.filterwarnings("ignore", ".* have been cancelled", UserWarning)  # joblib's word on an early end
        while batches:
            with closing(workers.run(batches)) as finished, _Saver(store, by_key, missing) as saver:
                for key, runs in finished:
                    saver.add(key, runs)
                    progress(len(runs))
                    made = {run.seed for run in runs}
                    missing[key] = [seed for seed in missing[key] if seed not in made]
            batches = _batches(by_key, missing, longest=1)
    return count


def compile_agents(cells: Iterable[Cell]) -> None:
    """Play a few rounds of each agent, so that its compiled code is on disk before workers look for it."""
    for cell in {cell.agent: cell for cell in cells}.values():
        replace(cell, horizon=3).run(seed=0)


class _Saver:
    """Stores finished runs from a thread of its own, since those who make them may be busy for long."""

    def __init__(self, store: Storage, cells: Mapping[str, Cell], missing: Mapping[str, Sequence[int]]) -> None:
        self._store, self._cells = store, cells
        self._left = {key: len(seeds) for key, seeds in missing.items()}
        self._waiting: dict[str, list[Run]] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._save_now_and_then, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._save()

    def add(self, key: str, runs: Sequence[Run]) -> None:
        """Keep runs until they are stored, which is soon; at once if they fill a part."""
        if self._failure is not None:
            raise self._failure
        with self._lock:
            self._waiting[key] = [*self._waiting.get(key, []), *runs]  # at once: an interrupt may come at any time
            self._left[key] -= len(runs)
        if len(self._waiting.get(key, ())) * self._cells[key].horizon >= ROUNDS_A_PART:
            self._save()

    def _save_now_and_then(self) -> None:
        while not self._ended.wait(_SAVE_EVERY):
            try:
                self._save()
            except Exception as error:  # noqa: BLE001  # the main thread raises it
                self._failure = error
                return

    def _save(self) -> None:
        with self._lock:
            for key in list(self._waiting):
                self._store.add(self._cells[key], self._waiting[key], complete=not self._left[key])
                del self._waiting[key]


def _batches(cells: Mapping[str, Cell], missing: Mapping[str, list[int]], longest: int) -> list[Batch]:
    """Cut the runs into batches: compiled ones go several at a time, others alone."""
    batches = []
    for key, seeds in missing.items():
        size = longest if longest > 1 and seeds and cells[key].is_compiled else 1
        batches += [Batch(key, cells[key], seeds[start : start + size]) for start in range(0, len(seeds), size)]
    return batches


@dataclass(frozen=True)
class Local:
    """Threads and processes of this machine."""

    count: int

    def run(self, batches: Sequence[Batch]) -> Finished:
        """Run compiled batches in threads, which cost nothing to start; then the others in processes."""
        cells = {batch.key: batch.cell for batch in batches}
        compiled = {key for key, cell in cells.items() if cell.is_compiled}
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
        own = {"initializer": _start_worker, "initargs": (os.getpid(),)} if backend == "loky" else {}
        if calls:
            yield from joblib.Parallel(
                n_jobs=self.count, backend=backend, return_as="generator_unordered", batch_size=1, **own
            )(calls)


def _run_local(number: int, batch: Batch, parent: int) -> tuple[int, list[Run]]:
    if os.getpid() != parent:
        return number, run_elsewhere(batch)
    _check_code(batch)
    return number, batch.run()


def _start_worker(parent: int) -> None:
    """Let this process end once its parent has, also where that was killed and could not ask for it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
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
            f"{cell.agent}, {cell.attack} or {cell.world} on {platform.node()} would run other code than was asked "
            "for, or with another version of a library: install the same there, and restart its processes."
        )
