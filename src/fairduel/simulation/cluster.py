"""Run batches on a Dask cluster."""

import importlib
import logging
import re
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from types import TracebackType
from typing import Any, Self

from fairduel.checks import needs_extra
from fairduel.errors import BadInputError, FairduelError
from fairduel.simulation.cell import Run, versions
from fairduel.simulation.parallel import Batch, Finished, report_fatal, run_elsewhere

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
                runs = future.result()
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
        last_seen = time.monotonic()
        while not finished.is_empty():
            if finished.has_ready():
                yield next(finished)
                last_seen = time.monotonic()
            elif time.monotonic() - last_seen > _NO_WORKER_TIMEOUT:
                raise BadInputError(
                    f"the Dask scheduler at {self.address} has had no workers for {_NO_WORKER_TIMEOUT:g} s; "
                    "finished runs are saved; rerun to resume."
                )
            else:
                time.sleep(0.05)
                if self._has_workers():
                    last_seen = time.monotonic()

    def _has_workers(self) -> bool:
        try:
            return bool(self._client.nthreads())
        except OSError:  # the scheduler is lost; its futures will report it
            return False


def _run_remote(batch: Batch, here: dict[str, str]) -> list[Run]:
    if versions() != here:
        raise BadInputError(f"the worker has versions {versions()}, but the client has {here}.")
    return run_elsewhere(batch)
