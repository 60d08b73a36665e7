"""Run many cells in parallel, here or on a Dask cluster; resumable, with the same results wherever they run."""

import importlib
import logging
import os
import platform
import re
import signal
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import closing
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Protocol, Self, cast

import joblib
from joblib.externals.loky.process_executor import TerminatedWorkerError
from threadpoolctl import threadpool_limits

from fairduel.checks import needs_extra
from fairduel.errors import BadInputError, DamageWarning, FairduelError, LockInWarning
from fairduel.files import versions
from fairduel.simulation.cell import Cell, Run
from fairduel.simulation.storage import MAX_ROUNDS_PER_PART, Storage, missing_seeds

_SAVE_INTERVAL = 0.5
"""Seconds between saves of finished runs."""
_MAX_BATCH = 10
_BATCH_SECONDS = 0.5
"""A batch starts no further run after this long."""
_MAX_RETRIES = 3
"""How many new pools to try for a cell whose worker was killed; Dask's own default."""


@dataclass(frozen=True)
class Batch:
    """Some seeds of one cell, for one worker."""

    key: str
    """The cell's key in the process that requested the runs."""
    cell: Cell
    seeds: list[int]

    def run(self) -> list[Run]:
        """Run the first seeds in turn, as many as time allows, so that finished runs are stored soon."""
        began = time.monotonic()
        runs: list[Run] = []
        while len(runs) < len(self.seeds) and (not runs or time.monotonic() - began < _BATCH_SECONDS):
            runs.append(self.cell.run(self.seeds[len(runs)]))
        return runs


Finished = Generator[tuple[str, list[Run]], None, None]
"""The key and the runs of each finished batch, in any order."""


class Workers(Protocol):
    """Runs batches: this machine or a cluster."""

    @property
    def count(self) -> int:
        """How many batches they run at a time."""

    def run(self, batches: Sequence[Batch]) -> Finished:
        """Run the first seed of every batch, and as many of the others as time allows.

        Closing the generator early leaves batches undone.
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
    """Run every cell with every seed that is not stored yet.

    Each run is stored within about a second, so a kill loses little more than the runs in progress. On Ctrl-C all
    finished runs are stored before the interrupt propagates. Damaged files in the store are removed with a
    :class:`~fairduel.errors.DamageWarning` and their runs repeated.

    Args:
        cells: What to run.
        seeds: The seeds of every cell.
        store: Where finished runs are kept.
        jobs: How many runs at a time on this machine.
        workers: Runs the batches instead of this machine, such as a cluster.
        progress: Called with the number of runs just finished.

    Returns:
        The number of runs that were missing and have been run.
    """
    workers = workers or Local(jobs)
    by_key = {cell.key: cell for cell in cells}
    for cell in by_key.values():
        for path in store.tidy(cell):
            warnings.warn(f"{path} is damaged; repeating its runs of {cell.agent}.", DamageWarning, stacklevel=2)
    missing = missing_seeds(store, by_key.values(), seeds)
    count = sum(map(len, missing.values()))
    batches = _batches(by_key, missing, longest=max(1, min(_MAX_BATCH, count // (4 * workers.count))))
    # One BLAS thread, so that the last bits do not depend on a worker's number of cores.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", LockInWarning)  # each run records whether it locked in
        warnings.filterwarnings("ignore", ".* have been cancelled", UserWarning)  # joblib, if closed early
        while batches:
            with closing(workers.run(batches)) as finished, _Saver(store, by_key, missing) as saver:
                for key, runs in finished:
                    saver.add(key, runs)
                    progress(len(runs))
                    done = {run.seed for run in runs}
                    missing[key] = [seed for seed in missing[key] if seed not in done]
            batches = _batches(by_key, missing, longest=1)
    return count


def compile_agents(cells: Iterable[Cell]) -> None:
    """Play a few rounds of each agent, so that workers find its compiled code in the cache."""
    for cell in {cell.agent: cell for cell in cells}.values():
        replace(cell, horizon=3).run(seed=0)


class _Saver:
    """Stores finished runs from its own thread, because the next run may take long to finish."""

    def __init__(self, store: Storage, cells: Mapping[str, Cell], missing: Mapping[str, Sequence[int]]) -> None:
        self._store, self._cells = store, cells
        self._left = {key: len(seeds) for key, seeds in missing.items()}
        self._waiting: dict[str, list[Run]] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._save_periodically, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._save()

    def add(self, key: str, runs: Sequence[Run]) -> None:
        """Queue runs for the next save; save at once if they fill a part."""
        if self._failure is not None:
            raise self._failure
        with self._lock:
            self._waiting[key] = [*self._waiting.get(key, []), *runs]  # one assignment: an interrupt may come any time
            self._left[key] -= len(runs)
        if len(self._waiting.get(key, ())) * self._cells[key].horizon >= MAX_ROUNDS_PER_PART:
            self._save()

    def _save_periodically(self) -> None:
        while not self._ended.wait(_SAVE_INTERVAL):
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
    """Split the runs into batches: compiled runs several at a time, others alone."""
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
        """Run compiled batches in threads, which start instantly; then the others in processes."""
        compiled = [batch for batch in batches if batch.cell.is_compiled]
        for number, runs in self._parallel("threading", dict(enumerate(compiled))):
            yield compiled[number].key, runs
        yield from self._processes([batch for batch in batches if not batch.cell.is_compiled])

    def _processes(self, batches: Sequence[Batch]) -> Finished:
        """Run batches in processes; a killed process breaks its pool, so then every cell gets its own pool."""
        left = dict(enumerate(batches))
        if (yield from self._pool(left)):
            return
        fatal: list[Batch] = []
        for key in dict.fromkeys(batch.key for batch in left.values()):
            of_cell = {number: batch for number, batch in left.items() if batch.key == key}
            for _ in range(_MAX_RETRIES):
                if (yield from self._pool(of_cell)):
                    break
            fatal += of_cell.values()
        report_fatal(fatal)

    def _pool(self, left: dict[int, Batch]) -> Generator[tuple[str, list[Run]], None, bool]:
        """Remove finished batches from ``left``; return whether all finished."""
        try:
            for number, runs in self._parallel("loky", dict(left)):
                yield left.pop(number).key, runs
        except TerminatedWorkerError:
            return False
        return True

    def _parallel(self, backend: str, batches: dict[int, Batch]) -> Iterator[tuple[int, list[Run]]]:
        calls = [joblib.delayed(_run_local)(number, batch, os.getpid()) for number, batch in batches.items()]
        own = {"initializer": start_worker, "initargs": (os.getpid(),)} if backend == "loky" else {}
        if calls:
            yield from joblib.Parallel(
                n_jobs=self.count, backend=backend, return_as="generator_unordered", batch_size=1, **own
            )(calls)


def _run_local(number: int, batch: Batch, parent: int) -> tuple[int, list[Run]]:
    if os.getpid() != parent:
        return number, run_elsewhere(batch)
    _check_code(batch)
    return number, batch.run()


def start_worker(parent: int) -> None:
    """Exit when the parent process is gone, even if it was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def run_elsewhere(batch: Batch) -> list[Run]:
    """Run a batch in another process, under the same conditions as in the requesting one."""
    _check_code(batch)
    threadpool_limits(1)  # never undone: another thread of this process may be mid-run
    warnings.simplefilter("ignore", LockInWarning)
    return batch.run()


def report_fatal(batches: Sequence[Batch]) -> None:
    """Raise if some batches crashed every worker that tried them."""
    if batches:
        cell = batches[0].cell
        raise BadInputError(
            f"{sum(len(batch.seeds) for batch in batches)} runs crashed every worker (out of memory?), the first of "
            f"{cell.agent} under {cell.attack}; all other runs are saved."
        )


def _check_code(batch: Batch) -> None:
    """Raise if this process would run different code or data than the key stands for."""
    cell = batch.cell
    if cell.key_with(cell.loaded_code) != batch.key:
        raise BadInputError(
            f"the code of {cell.agent}, {cell.attack} or {cell.world} on {platform.node()} (or of a library) differs "
            "from the local code; install the same version there and restart its processes."
        )


_CONNECT_TIMEOUT = 5.0
"""Seconds to wait for the scheduler, and for its first worker."""
_NO_WORKER_TIMEOUT = 120.0
"""Seconds without any worker before giving up."""

_IMPORT = f"import {__name__}"


class Cluster:
    """The workers of a Dask scheduler, as a context manager; leaving it cancels unfinished batches.

    Args:
        address: Address of the scheduler, such as ``tcp://10.0.0.1:8786``.
    """

    def __init__(self, address: str) -> None:
        if not re.fullmatch(r"(tcp|tls)://\S+:\d+", address):
            raise BadInputError(f"a Dask scheduler's address looks like tcp://10.0.0.1:8786, not {address!r}.")
        self.address = address
        with needs_extra("cluster"):
            self._dask: Any = importlib.import_module("distributed")
        for name in ("distributed", "distributed.client"):
            logging.getLogger(name).setLevel(logging.CRITICAL)  # we report what is lost in one sentence
        try:
            self._client = self._dask.Client(address, timeout=_CONNECT_TIMEOUT, set_as_default=False)
        except Exception as error:  # anything may answer there, so Dask may raise anything
            raise BadInputError(
                f"no Dask scheduler answers at {address}; use the address that  dask scheduler  prints."
            ) from error

    def __enter__(self) -> Self:
        try:
            self._check()
        except BadInputError:
            self._client.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._client.close()

    @property
    def count(self) -> int:
        """How many batches the current workers run at a time."""
        threads: dict[str, int] = self._client.nthreads()
        return max(1, sum(threads.values()))

    def _check(self) -> None:
        """Find missing workers and packages now; a worker that cannot unpickle its task would die."""
        try:
            self._client.wait_for_workers(1, timeout=_CONNECT_TIMEOUT)
            self._client.run_on_scheduler(exec, _IMPORT)
            self._client.run(exec, _IMPORT)
        except TimeoutError as error:
            raise BadInputError(
                f"the Dask scheduler at {self.address} has no workers; start one with  dask worker {self.address}"
            ) from error
        except ImportError as error:
            raise BadInputError(
                f"the Dask scheduler at {self.address} or one of its workers lacks {error.name}; "
                "install the same fairduel there with  pip install 'fairduel[bench,cluster]'"
            ) from error

    def run(self, batches: Sequence[Batch]) -> Finished:
        """Run all batches; a lost worker's batches move to another; those that crash every worker are reported."""
        futures = self._client.map(_run_remote, batches, here=versions(), pure=False)
        batch_of = {future.key: batch for future, batch in zip(futures, batches, strict=True)}
        finished = self._dask.as_completed(futures, loop=self._client.loop)
        del futures  # so that the cluster can drop each result once it has arrived
        fatal = []
        for future in self._arriving(finished):
            batch = batch_of[future.key]
            try:
                runs = self._fetched(future)
            except self._dask.KilledWorker:
                fatal.append(batch)
                continue
            except (CancelledError, self._dask.comm.CommClosedError) as error:
                raise BadInputError(
                    f"lost the Dask scheduler at {self.address}; finished runs are saved; rerun to resume."
                ) from error
            except FairduelError as error:
                raise BadInputError(f"a worker of {self.address} failed: {error}") from error
            yield batch.key, runs
        report_fatal(fatal)

    def _arriving(self, finished: Any) -> Iterator[Any]:
        """Yield futures as Dask completes them, while there are workers."""
        patience = _Patience(self)
        while not finished.is_empty():
            if finished.has_ready():
                yield next(finished)
                patience = _Patience(self)
            else:
                time.sleep(0.05)
                patience.check()

    def _fetched(self, future: Any) -> list[Run]:
        """Fetch a finished future; if its worker is lost before it sent the result, another one computes it again."""
        patience = _Patience(self)
        while True:
            try:
                return cast("list[Run]", future.result(timeout=0.5))
            except TimeoutError:
                if future.status == "error":
                    raise
                patience.check()

    def has_workers(self) -> bool:
        """Whether the scheduler has any workers now."""
        try:
            return bool(self._client.nthreads())
        except OSError:  # the scheduler is lost; its futures will report it
            return False


class _Patience:
    """Waits for a cluster without workers, but not for ever."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._last_seen = time.monotonic()

    def check(self) -> None:
        if self._cluster.has_workers():
            self._last_seen = time.monotonic()
        elif time.monotonic() - self._last_seen > _NO_WORKER_TIMEOUT:
            raise BadInputError(
                f"the Dask scheduler at {self._cluster.address} has had no workers for {_NO_WORKER_TIMEOUT:g} s; "
                "finished runs are saved; rerun to resume."
            )


def _run_remote(batch: Batch, here: dict[str, str]) -> list[Run]:
    if versions() != here:
        raise BadInputError(f"the worker has versions {versions()}, but the client has {here}.")
    return run_elsewhere(batch)
