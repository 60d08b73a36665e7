"""Other processes that compute for the server, so that votes need not wait: one JSON object per line each way."""

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from fairduel.core import compiling
from fairduel.service.locations import Location

Json = dict[str, Any]
Tell = Callable[[Json], None]
_NICE = 10
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"), "1")


def start_process(module: str) -> "subprocess.Popen[str]":
    """Start a process that runs a module, which calls :func:`answer_requests`."""
    return subprocess.Popen(  # noqa: S603  # its own arguments
        [sys.executable, "-P", "-m", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        env=os.environ | _ONE_THREAD,
        start_new_session=True,  # Ctrl-C is for this process, which then ends that one
    )


def spelled(where: Location) -> str:
    """Return where a store is, with its password, because it goes through a pipe that no one else reads."""
    return str(where) if isinstance(where, Path) else where.render_as_string(hide_password=False)


def answer_requests(answer: Callable[[Json, Tell], Json]) -> NoReturn:
    """Answer requests at low priority; ``{"error": …}`` if that fails. When the server is gone, so is this process.

    Args:
        answer: Returns the reply to a request; it may tell other things before.
    """
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
