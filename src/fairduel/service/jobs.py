"""Jobs for operators that compute for seconds: a queue, and another process at low priority that does one at a time.

Jobs and their results are in memory only: after a restart, an operator asks again.
"""

import contextlib
import json
import logging
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from fairduel.service.keys import new_id
from fairduel.service.locations import Location
from fairduel.service.logs import log
from fairduel.service.problems import Problem, not_found
from fairduel.service.processes import Json, spelled, start_process

Kind = Literal["red-team", "cost", "effect"]
State = Literal["waiting", "running", "done", "failed"]
_MOST_WAITING = 10
_MOST_KEPT = 30  # jobs, with their results
_LONGEST, _IDLE = 600.0, 120.0  # seconds that a job may take, and that the process waits for the next
_PATIENT: Kind = "cost"  # gives way to the others, which someone waits for


@dataclass
class Job:
    """Something to compute.

    Args:
        job: Its id.
        study: Id of the study.
        kind: What to compute.
        wanted: With which settings, as JSON values.
        position: Of the log, when it was asked for.
        created: When it was asked for, in seconds since 1970.
        state: How far it is.
        progress: Share that is done.
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
    """The jobs of a server.

    Args:
        where: Where the log is.
        announce: Called with a study when one of its jobs ends.
    """

    def __init__(self, where: Location, announce: Callable[[str], None]) -> None:
        self._where, self._announce = spelled(where), announce
        self._jobs: dict[str, Job] = {}  # in the order in which they were asked for
        self._changed = threading.Condition()
        self._process: subprocess.Popen[str] | None = None
        self._killed: list[subprocess.Popen[str]] = []
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
            running = self._running()
            if running is not None and running.kind == _PATIENT != kind:
                running.state = "waiting"
                self._kill()
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
        """Stop; what is not done is given up."""
        with self._changed:
            self._is_closing = True
            self._kill()
            self._changed.notify()
        self._thread.join()

    def _of(self, study: str) -> list[Job]:
        return [job for job in self._jobs.values() if job.study == study]

    def _running(self) -> Job | None:
        return next((job for job in self._jobs.values() if job.state == "running"), None)

    # ------------------------------------------------------------------ the thread

    def _work(self) -> None:
        while (job := self._next()) is not None:
            reply = self._compute(job)
            self._bury()
            if reply is not None and "error" in reply:
                log(logging.ERROR, "job failed", kind=job.kind, error=reply["error"])
            with self._changed:
                if reply is None and job.state == "waiting":
                    continue  # it gave way to another job
                reply = _STOPPED if reply is None else _FAILED if "error" in reply else reply
                job.result, job.problem = reply.get("result"), reply.get("problem")
                job.state, job.progress = "failed" if job.result is None else "done", 1.0
            self._announce(job.study)
        self._bury()

    def _next(self) -> Job | None:
        """Wait for the next job; None to stop."""
        with self._changed:
            while not self._is_closing:
                waiting = [job for job in self._jobs.values() if job.state == "waiting"]
                job = min(waiting, key=lambda job: job.kind == _PATIENT, default=None)
                if job is not None:
                    job.state, job.progress = "running", 0.0
                    return job
                if not self._changed.wait(_IDLE if self._process is not None else None):
                    self._kill()
                    self._bury()
            return None

    def _compute(self, job: Job) -> Json | None:
        """Return the reply of the other process, or None if it died or was killed."""
        with self._changed:
            if self._is_closing:
                return None
            process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        limit = threading.Timer(_LONGEST, process.kill)
        limit.start()
        request = {"where": self._where, "study": job.study, "kind": job.kind, "wanted": job.wanted}
        with contextlib.suppress(OSError, ValueError):  # it died, perhaps in the middle of a line
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            for line in process.stdout:
                reply: Json = json.loads(line)
                if "progress" not in reply:
                    limit.cancel()
                    return reply
                job.progress = reply["progress"]
        limit.cancel()
        with self._changed:
            if self._process is process:
                self._kill()
        return None

    def _started(self) -> "subprocess.Popen[str]":
        if self._process is not None and self._process.poll() is not None:
            self._kill()  # it died meanwhile
        if self._process is None:
            self._process = start_process("fairduel.service.job_process")
        return self._process

    def _kill(self) -> None:
        """Kill the process, if there is one; the next job gets another."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            self._killed.append(process)

    def _bury(self) -> None:
        """Wait for the ends of the processes that were killed."""
        while self._killed:
            with contextlib.suppress(OSError, ValueError):  # what it did not read is lost
                self._killed.pop().communicate()


_FAILED: Json = {"problem": "This could not be computed; the server's log says why."}
_STOPPED: Json = {"problem": f"It was stopped, perhaps because it took more than {_LONGEST / 60:.0f} minutes."}
