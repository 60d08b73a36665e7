"""Who analyses changing studies: a thread and, for all but small studies, a process of its own at low priority.

An analysis computes for seconds. On a thread of the server it would compete with votes for Python's interpreter lock.
"""

import contextlib
import json
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import asdict

from fairduel.errors import FairduelError
from fairduel.service.locations import Location, location, reading
from fairduel.service.logs import log_failure
from fairduel.service.processes import Json, Tell, answer_requests, spelled, start_process
from fairduel.service.store import Store
from fairduel.service.subjects import Analysis, Subject

_FEW_VOTES = 300  # their analysis takes less time than starting a process
_REST = 3.0  # after an analysis, as a multiple of its time
_RETRY_AFTER = 10.0  # seconds after one that failed
_PATIENCE = 2.0  # seconds that an analysis here, which only reads but may be compiling, has to end


class HelperError(FairduelError):
    """An analysis failed in the other process."""


class Helper:
    """Another process that analyses the studies of a store; started when needed, and gone when this one is.

    Args:
        where: Where the log is.
    """

    def __init__(self, where: Location) -> None:
        self._where = spelled(where)
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        self._is_stopped = False

    def analyse(self, subject: Subject, position: int) -> Analysis:
        """Return :func:`~fairduel.service.analysis.analyse` of a study.

        Raises:
            HelperError: It failed, or the process died; the next call starts another one.
        """
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        line = ""
        with contextlib.suppress(OSError):
            request = {"where": self._where, "subject": subject.to_json(), "position": position}
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        if not line.endswith("\n"):
            self.end()
            raise HelperError("the process that analyses votes died.")
        reply = json.loads(line)
        if "error" in reply:
            raise HelperError(reply["error"])
        return Analysis(**reply)

    def stop(self) -> None:
        """Kill the process, which only reads, and start no other."""
        with self._lock:
            self._is_stopped = True
            if self._process is not None:
                self._process.kill()

    def end(self) -> None:
        """Kill the process if there is one, and wait for that."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with contextlib.suppress(OSError):  # what it did not read is lost
                process.communicate()

    def _started(self) -> "subprocess.Popen[str]":
        with self._lock:
            if self._is_stopped:
                raise HelperError("the server is stopping.")
            if self._process is None:
                self._process = start_process(__name__)
            return self._process


class Analyst:
    """A thread that keeps the analyses of changing studies up to date, each at most a quarter of the time.

    Args:
        store: Where to read votes.
        describe: Returns what an analysis of a study needs, the position of the log, and the number of votes.
        announce: Called with a study when its analysis is new.
    """

    def __init__(
        self, store: Store, describe: Callable[[str], tuple[Subject, int, int]], announce: Callable[[str], None]
    ) -> None:
        self._store, self._describe, self._announce = store, describe, announce
        self._helper = Helper(store.where)
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

    def close(self) -> None:
        """Stop; an analysis that takes long is given up."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._helper.stop()
        self._thread.join(_PATIENCE)
        self._helper.end()

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
                if not self._stopping:
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
            return self._helper.analyse(subject, position)
        from fairduel.service.analysis import analyse  # noqa: PLC0415  # slow: a server should be ready soon

        with self._store.engine.connect() as connection:
            return analyse(connection, subject, position)


def _answer(request: Json, _: Tell) -> Json:
    from fairduel.service.analysis import analyse  # noqa: PLC0415  # as above

    with reading(location(request["where"])) as connection:
        return asdict(analyse(connection, Subject.from_json(request["subject"]), request["position"]))


if __name__ == "__main__":
    answer_requests(_answer)
