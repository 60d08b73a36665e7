"""The process behind :mod:`fairduel.service.jobs`: one JSON object per line each way, until the server is gone."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from fairduel.core import compiling
from fairduel.errors import FairduelError
from fairduel.service.red_team import Plan, red_team
from fairduel.service.service import subject_of
from fairduel.service.store import load_state, reading
from fairduel.service.what_if import Allowed, Progress, cost, effect

Json = dict[str, Any]
_NICE = 10


def compute(folder: Path, request: Json, progress: Progress) -> Json:
    """Return the result of a job.

    Args:
        folder: Where the log is.
        request: ``study``, ``kind`` and ``wanted``, as :class:`~fairduel.service.jobs.Job` has them.
        progress: Called with the share that is done.
    """
    study, wanted = request["study"], request["wanted"]
    with reading(folder) as connection:
        if request["kind"] == "red-team":
            return red_team(connection, folder, study, Plan(**wanted), progress)
        subject = subject_of(load_state(connection).studies[study])
        if request["kind"] == "effect":
            return effect(connection, subject, wanted["voter"], progress)
        return cost(connection, subject, Allowed(**wanted), progress)


def main(folder: Path) -> None:
    """Answer requests from standard input on standard output."""
    os.nice(_NICE)
    compiling.skip_compile_notice()
    replies, sys.stdout = sys.stdout, sys.stderr

    def reply(**values: Any) -> None:
        replies.write(json.dumps(values) + "\n")
        replies.flush()

    for line in sys.stdin:
        try:
            reply(result=compute(folder, json.loads(line), lambda share: reply(progress=share)))
        except FairduelError as error:
            reply(problem=_sentence(str(error)))
        except Exception as error:  # noqa: BLE001  # the server logs it
            reply(
                problem="This could not be computed; the server's log says why.",
                error=f"{type(error).__name__}: {error}",
            )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
