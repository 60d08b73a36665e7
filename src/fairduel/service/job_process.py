"""The process behind :mod:`fairduel.service.jobs`."""

from typing import Any

from fairduel.errors import FairduelError
from fairduel.service.locations import location, reading
from fairduel.service.processes import Tell, answer_requests
from fairduel.service.red_team import Plan, red_team
from fairduel.service.service import subject_of
from fairduel.service.store import load_state
from fairduel.service.what_if import Allowed, cost, effect

Json = dict[str, Any]


def compute(request: Json, tell: Tell) -> Json:
    """Return the result of a job, or the problem with it.

    Args:
        request: ``where`` the store is; ``study``, ``kind`` and ``wanted`` of a :class:`~fairduel.service.jobs.Job`.
        tell: Called with the progress.
    """
    try:
        return {"result": _result(request, tell)}
    except FairduelError as error:
        text = str(error)
        return {"problem": text[:1].upper() + text[1:]}


def _result(request: Json, tell: Tell) -> Json:
    where, study, wanted = location(request["where"]), request["study"], request["wanted"]

    def progress(share: float) -> None:
        tell({"progress": share})

    with reading(where) as connection:
        if request["kind"] == "red-team":
            return red_team(connection, where, study, Plan(**wanted), progress)
        subject = subject_of(load_state(connection).studies[study])
        if request["kind"] == "effect":
            return effect(connection, subject, wanted["voter"], progress)
        return cost(connection, subject, Allowed(**wanted), progress)


if __name__ == "__main__":
    answer_requests(compute)
