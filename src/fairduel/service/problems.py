"""Requests that are refused, as RFC 9457 describes them."""

from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from fairduel.errors import FairduelError


@dataclass
class Problem(FairduelError):  # noqa: N818  # as the RFC calls it
    """A request that is refused; nothing was changed.

    Args:
        status: HTTP status.
        code: Stable name of the reason, for programs.
        detail: One sentence for people.
        retry_after: Seconds after which the same request may succeed.
        errors: Which fields of the body are invalid, and why.

    >>> Problem(404, "not-found", "There is no such study.").body()["title"]
    'Not Found'
    """

    status: int
    code: str
    detail: str
    retry_after: int | None = None
    errors: list[dict[str, str]] = field(default_factory=list)

    def __str__(self) -> str:
        return self.detail

    def body(self) -> dict[str, Any]:
        """Return the body of the response."""
        found: dict[str, Any] = {
            "type": "about:blank",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "code": self.code,
            "detail": self.detail,
        }
        return found | ({"errors": self.errors} if self.errors else {})


def not_found(what: str) -> Problem:
    """Return the refusal of an unknown id, which is also that of an id that belongs to someone else."""
    return Problem(404, "not-found", f"There is no such {what}.")


def overloaded() -> Problem:
    """Return the refusal of a request while the server is overloaded."""
    return Problem(503, "overloaded", "The server has too much to do; try again in a second.", 1)


def storage_failed() -> Problem:
    """Return the refusal of a request whose events could not be stored."""
    return Problem(503, "storage", "The server cannot write to its disk; nothing was recorded. Try again.", 2)


def unconfirmed() -> Problem:
    """Return the reply to a request that may or may not have been recorded: repeat it only if that changes nothing."""
    return Problem(502, "unconfirmed", "The connection was lost before this was confirmed. Votes can be repeated.", 1)


def nobody_leads() -> Problem:
    """Return the refusal of a request while no server leads."""
    return Problem(503, "no-leader", "Another server is taking over; nothing was recorded. Try again.", 1)
