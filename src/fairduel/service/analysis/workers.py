"""Processes at low priority that analyse votes and run jobs, so that votes never wait: JSON lines over pipes."""

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from typing import NoReturn

from fairduel.core import compiling
from fairduel.errors import FairduelError
from fairduel.service.analysis.inputs import Subject
from fairduel.service.events.database import Location, location, reading, spelled
from fairduel.service.events.log import Json

Tell = Callable[[Json], None]
_NICE = 10
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"), "1")


# ---------------------------------------------------------------------------- in the server


class Worker:
    """A process that answers requests about a store; it starts when needed and exits with the server."""

    def __init__(self, where: Location) -> None:
        self._where = spelled(where)  # its password goes through a pipe that no one else reads
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._killed: list[subprocess.Popen[str]] = []
        self._is_closed = False

    def ask(
        self, request: Json, tell: Callable[[float], None] = lambda _: None, limit: float = threading.TIMEOUT_MAX
    ) -> Json | None:
        """Return the reply to a request, ``{"error": …}`` if that failed, or None if the process died or was killed.

        It calls ``tell`` with the share that is done, and kills the process after ``limit`` seconds.
        """
        process = self._started()
        if process is None:
            return None
        assert process.stdin is not None
        assert process.stdout is not None
        timer = threading.Timer(limit, process.kill)
        timer.daemon = True
        timer.start()
        try:
            with suppress(OSError, ValueError):  # it died, perhaps in the middle of a line
                process.stdin.write(json.dumps({"where": self._where} | request) + "\n")
                process.stdin.flush()
                for line in process.stdout:
                    reply: Json = json.loads(line)
                    if "progress" not in reply:
                        return reply
                    tell(reply["progress"])
            with self._lock:
                if self._process is process:
                    self._kill()
            return None
        finally:
            timer.cancel()
            self._bury()

    @property
    def is_running(self) -> bool:
        """Whether there is a process."""
        return self._process is not None

    def kill(self) -> None:
        """Kill the process, which only reads, if there is one; the next request gets another."""
        with self._lock:
            self._kill()

    def end(self) -> None:
        """Kill the process if there is one, and wait for that; not while another thread asks."""
        self.kill()
        self._bury()

    def close(self) -> None:
        """Kill the process, and do not start another."""
        with self._lock:
            self._is_closed = True
            self._kill()

    def _started(self) -> "subprocess.Popen[str] | None":
        with self._lock:
            if self._process is not None and self._process.poll() is not None:
                self._kill()  # it died meanwhile
            if self._process is None and not self._is_closed:
                self._process = subprocess.Popen(  # its own arguments
                    [sys.executable, "-P", "-m", "fairduel.service.analysis.workers"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    encoding="utf-8",
                    env=os.environ | _ONE_THREAD,
                    start_new_session=True,  # Ctrl-C is for this process, which then ends that one
                )
            return self._process

    def _kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            self._killed.append(process)

    def _bury(self) -> None:
        """Wait for the ends of the processes that were killed."""
        while self._killed:
            with suppress(OSError, ValueError):  # requests that it did not read are lost
                self._killed.pop().communicate()


# ---------------------------------------------------------------------------- in the process


def compute(request: Json, tell: Tell) -> Json:
    """Return the ``result`` of a request, or why there is none: the ``problem``, in a sentence.

    A request has ``where`` the store is, its ``kind`` and its settings: an analysis its ``subject`` and
    ``position``, a :class:`~fairduel.service.analysis.background.Job` its ``study`` and what is ``wanted``.
    Progress is told on the way.
    """
    try:
        return {"result": _result(request, lambda share: tell({"progress": share}))}
    except FairduelError as error:
        text = str(error)
        return {"problem": text[:1].upper() + text[1:]}


def _result(request: Json, progress: Callable[[float], None]) -> Json:
    # What only some requests need is slow to import.
    where, kind = location(request["where"]), request["kind"]
    with reading(where) as connection:
        if kind == "analysis":
            from fairduel.service.analysis.analyse import analyse  # noqa: PLC0415

            return asdict(analyse(connection, Subject.from_json(request["subject"]), request["position"]))
        study, wanted = request["study"], request["wanted"]
        if kind == "red-team":
            from fairduel.service.analysis.red_team import RedTeamPlan, red_team  # noqa: PLC0415

            return red_team(connection, where, study, RedTeamPlan(**wanted), progress)
        from fairduel.service.analysis.what_if import Allowed, cost, effect  # noqa: PLC0415
        from fairduel.service.events.database import load_state  # noqa: PLC0415

        subject = Subject.of(load_state(connection).studies[study])
        if kind == "effect":
            return effect(connection, subject, wanted["voter"], progress)
        return cost(connection, subject, Allowed(**wanted), progress)


def answer_requests(answer: Callable[[Json, Tell], Json]) -> NoReturn:
    """Answer requests at low priority; ``{"error": …}`` if that fails. The process exits with the server."""
    os.nice(_NICE)
    compiling.skip_compile_notice()
    replies, sys.stdout = sys.stdout, sys.stderr

    requests: queue.SimpleQueue[str] = queue.SimpleQueue()

    def read() -> None:
        for line in sys.stdin:
            requests.put(line)
        os._exit(0)  # a killed server is started again, and needs the processor

    def tell(message: Json) -> None:
        try:
            replies.write(json.dumps(message) + "\n")
            replies.flush()
        except BrokenPipeError:
            os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    while True:
        line = requests.get()
        try:
            reply = answer(json.loads(line), tell)
        except Exception as error:  # noqa: BLE001  # the server logs it
            reply = {"error": f"{type(error).__name__}: {error}"}
        tell(reply)


if __name__ == "__main__":
    answer_requests(compute)
