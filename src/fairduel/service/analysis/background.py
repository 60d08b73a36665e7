"""Analyses that are kept up to date, and jobs for operators: both compute for seconds, in processes at low priority.

On a thread of the server an analysis would compete with votes for Python's interpreter lock; only small studies are
analysed there. A queue runs one job at a time. Jobs and their results are in memory only: after a restart, an operator
asks again.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from fairduel.errors import FairduelError
from fairduel.service.analysis.inputs import Analysis, Subject
from fairduel.service.analysis.workers import Worker
from fairduel.service.events.database import Location, VoteStore
from fairduel.service.events.log import Json
from fairduel.service.keys import new_id
from fairduel.service.problems import Problem, not_found
from fairduel.service.server_log import log, log_failure

Kind = Literal["red-team", "cost", "effect"]
State = Literal["waiting", "running", "done", "failed"]
_MOST_WAITING = 10
_MOST_KEPT = 30  # jobs, with their results
_LONGEST, _IDLE = 600.0, 120.0  # seconds that a job may take, and that the process waits for the next
_PATIENT: Kind = "cost"  # gives way to jobs that someone waits for


@dataclass
class Job:
    """Something to compute.

    Args:
        job: Its id.
        study: Id of the study.
        kind: What to compute.
        wanted: Its settings, as JSON values.
        position: The position of the log at the request.
        created: When it was requested, in seconds since 1970.
        state: Whether it waits, runs, is done or failed.
        progress: The share that is done.
        result: What was found, as JSON values.
        problem: Why it failed, in a sentence.
    """

    job: str
    study: str
    kind: Kind
    wanted: Json
    position: int
    created: float
    state: State = "waiting"
    progress: float = 0.0
    result: Json | None = None
    problem: str | None = None


class Jobs:
    """The jobs of a server; ``announce`` is called with a study when one of its jobs ends."""

    def __init__(self, where: Location, announce: Callable[[str], None]) -> None:
        self._worker, self._announce = Worker(where), announce
        self._jobs: dict[str, Job] = {}  # in the order in which they were asked for
        self._changed = threading.Condition()
        self._is_closing = False
        self._thread = threading.Thread(target=self._work, name="fairduel-jobs", daemon=True)
        self._thread.start()

    def start(self, study: str, kind: Kind, wanted: Json, position: int) -> Job:
        """Queue a job, or return the same one if it is known; a newer one for the same settings replaces an older."""
        with self._changed:
            same = [job for job in self._of(study) if (job.kind, job.wanted) == (kind, wanted)]
            for job in same:
                if job.state in {"waiting", "running"} or (job.state == "done" and job.position == position):
                    return job
            if sum(job.state == "waiting" for job in self._jobs.values()) >= _MOST_WAITING:
                raise Problem(429, "too-many-requests", "Too many jobs are waiting; try again later.", 10)
            for job in same:
                del self._jobs[job.job]
            job = Job(new_id(), study, kind, wanted, position, time.time())
            self._jobs[job.job] = job
            while len(self._jobs) > _MOST_KEPT:
                del self._jobs[next(name for name, old in self._jobs.items() if old.state in {"done", "failed"})]
            running = next((job for job in self._jobs.values() if job.state == "running"), None)
            if running is not None and running.kind == _PATIENT != kind:
                running.state = "waiting"
                self._worker.kill()
            self._changed.notify()
            return job

    def find(self, study: str, job: str) -> Job:
        """Return a job of a study."""
        found = self._jobs.get(job)
        if found is None or found.study != study:
            raise not_found("job")
        return found

    def of(self, study: str) -> list[Job]:
        """Return the jobs of a study, newest first."""
        with self._changed:
            return self._of(study)[::-1]

    def close(self) -> None:
        """Stop; unfinished jobs are dropped."""
        with self._changed:
            self._is_closing = True
            self._worker.close()
            self._changed.notify()
        self._thread.join()

    def _of(self, study: str) -> list[Job]:
        return [job for job in self._jobs.values() if job.study == study]

    # ------------------------------------------------------------------ the thread

    def _work(self) -> None:
        while (job := self._next()) is not None:
            reply = self._compute(job)
            if reply is not None and "error" in reply:
                log(logging.ERROR, "job failed", kind=job.kind, error=reply["error"])
            with self._changed:
                if reply is None and job.state == "waiting":
                    continue  # it gave way to another job
                reply = _STOPPED if reply is None else _FAILED if "error" in reply else reply
                job.result, job.problem = reply.get("result"), reply.get("problem")
                job.state, job.progress = "failed" if job.result is None else "done", 1.0
            self._announce(job.study)
        self._worker.end()

    def _next(self) -> Job | None:
        """Wait for the next job; None to stop."""
        with self._changed:
            while not self._is_closing:
                waiting = [job for job in self._jobs.values() if job.state == "waiting"]
                job = min(waiting, key=lambda job: job.kind == _PATIENT, default=None)
                if job is not None:
                    job.state, job.progress = "running", 0.0
                    return job
                if not self._changed.wait(_IDLE if self._worker.is_running else None):
                    self._worker.end()
            return None

    def _compute(self, job: Job) -> Json | None:
        request = {"study": job.study, "kind": job.kind, "wanted": job.wanted}
        return self._worker.ask(request, partial(setattr, job, "progress"), _LONGEST)


_FAILED: Json = {"problem": "This could not be computed; the server's log says why."}
_STOPPED: Json = {"problem": f"It was stopped, perhaps because it took more than {_LONGEST / 60:.0f} minutes."}


_FEW_VOTES = 300  # their analysis takes less time than starting a process
_REST = 3.0  # after an analysis, as a multiple of its time
_RETRY_AFTER = 10.0  # seconds after one that failed
_PATIENCE = 2.0  # seconds that an analysis here, which only reads but may be compiling, has to end


class Analyst:
    """A thread that keeps the analyses of changing studies up to date, each at most a quarter of the time.

    Args:
        describe: Returns what an analysis of a study needs, the position of the log, and the number of votes.
        announce: Called with a study when its analysis is new.
    """

    def __init__(
        self, store: VoteStore, describe: Callable[[str], tuple[Subject, int, int]], announce: Callable[[str], None]
    ) -> None:
        self._store, self._describe, self._announce = store, describe, announce
        self._worker = Worker(store.where)
        self._found: dict[str, Analysis] = {}
        self._due: dict[str, float] = {}
        self._rested: dict[str, float] = {}
        self._changed = threading.Condition()
        self._current: str | None = None
        self._stopping = False
        self._thread = threading.Thread(target=self._work, name="fairduel-analyst", daemon=True)
        self._thread.start()

    def latest(self, study: str) -> Analysis:
        """Return the last analysis of a study; an empty one if there is none yet."""
        return self._found.get(study, Analysis())

    def is_stale(self, study: str) -> bool:
        """Whether a study has changed since its last analysis."""
        return study in self._due or study == self._current or study not in self._found

    def want(self, study: str) -> None:
        """Say that a study has changed."""
        with self._changed:
            self._due.setdefault(study, self._rested.get(study, 0.0))
            self._changed.notify()

    def forget(self, study: str) -> None:
        """Drop the analysis of a study that was deleted."""
        with self._changed:
            self._due.pop(study, None)
            self._found.pop(study, None)

    def close(self) -> None:
        """Stop; a long analysis is dropped."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._worker.close()
        self._thread.join(_PATIENCE)
        self._worker.end()

    def _next(self) -> str | None:
        """Wait for the next study to analyse; None to stop."""
        with self._changed:
            while not self._stopping:
                study = min(self._due, key=self._due.__getitem__, default=None)
                wait = None if study is None else self._due[study] - time.monotonic()
                if study is not None and wait is not None and wait <= 0.0:
                    self._current = study
                    del self._due[study]
                    return study
                self._changed.wait(wait)
            return None

    def _work(self) -> None:
        while (study := self._next()) is not None:
            began = time.monotonic()
            rest = 1.0
            try:
                self._found[study] = self._analyse(study)
            except Exception as error:  # noqa: BLE001  # a study must not keep others from being analysed
                is_deleted = isinstance(error, Problem) and error.code == "not-found"
                if not self._stopping and not is_deleted:
                    log_failure("analysis failed", error)
                    rest = _RETRY_AFTER
            now = time.monotonic()
            self._rested[study] = now + max(rest, _REST * (now - began))
            if rest != 1.0:
                self.want(study)
            self._current = None
            self._announce(study)

    def _analyse(self, study: str) -> Analysis:
        subject, position, votes = self._describe(study)
        if votes > _FEW_VOTES:
            request = {"kind": "analysis", "subject": subject.to_json(), "position": position}
            reply = self._worker.ask(request) or {"error": "the process that analyses votes died."}
            if "result" not in reply:
                raise FairduelError(reply.get("problem") or reply["error"])
            return Analysis(**reply["result"])
        from fairduel.service.analysis.analyse import analyse  # noqa: PLC0415  # slow: a server should be ready soon

        with self._store.engine.connect() as connection:
            return analyse(connection, subject, position)
