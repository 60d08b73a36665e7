"""A client in Python, which repeats requests until they are answered without anything counting twice."""

import random
import time
import uuid
from collections.abc import Sequence
from typing import Any, Self, TypeVar

import httpx
from pydantic import BaseModel

from fairduel.errors import FairduelError
from fairduel.service.api import bodies, result_bodies
from fairduel.service.problems import Problem
from fairduel.service.study import GoldDuels, NewStudy

Reply = TypeVar("Reply", bound=BaseModel)
_TRY_AGAIN = {429, 503}  # nothing was done
_LOST = {502, 504}  # a proxy got no answer, so it may have been done
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0  # seconds


class UnreachableError(FairduelError):
    """The server did not answer for as long as the client's patience lasted."""


class Client:
    """An operator's view of a server.

    A request is repeated if the server asks for that (429, 503), cannot be reached, or does not answer; after a lost
    answer only if repeating it changes nothing, as for everything that voters do.

    Args:
        url: Where the server is, with its subpath if any.
        key: The caller's key, if they have one.
        patience: Seconds after which to give up repeating a request.
        transport: How to send requests; by default over the network.

    >>> from fairduel.service.local import local_server
    >>> with local_server() as (url, key), Client(url, key) as client:
    ...     study = client.create_study(question="Which is better?", items=[{"name": "tea"}, {"name": "milk"}])
    ...     with client.join(study.study) as voter:
    ...         duel = voter.ask().duels[0]
    ...         voter.answer(duel.duel, "left").counted
    True
    """

    def __init__(
        self, url: str, key: str = "", *, patience: float = 30.0, transport: httpx.BaseTransport | None = None
    ) -> None:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._http = httpx.Client(base_url=url, headers=headers, timeout=10.0, transport=transport)
        self._url, self._patience, self._transport = url, patience, transport

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def create_study(self, **about: Any) -> bodies.StudyReply:
        """Create a study; the arguments are the fields of :class:`~fairduel.service.study.NewStudy`."""
        body = NewStudy.model_validate(about).model_dump()
        return self._send(bodies.StudyReply, "POST", "api/studies", body, safe=False)

    def clone(self, study: str, *, title: str | None = None, votes: bool = False) -> bodies.StudyReply:
        """Create a study with the settings and items of another one, perhaps with its votes."""
        body = {"title": title, "votes": votes}
        return self._send(bodies.StudyReply, "POST", f"api/studies/{study}/clone", body, safe=False)

    def study(self, study: str) -> bodies.StudyReply:
        """Return a study with its items and settings."""
        return self._send(bodies.StudyReply, "GET", f"api/studies/{study}")

    def results(self, study: str) -> result_bodies.Results:
        """Return what the votes say."""
        return self._send(result_bodies.Results, "GET", f"api/studies/{study}/results")

    def voters(self, study: str) -> list[bodies.VoterRow]:
        """Return all voters with the evidence on them."""
        return self._send(bodies.VotersReply, "GET", f"api/studies/{study}/voters").voters

    def set_aside(self, study: str, voter: str, *, set_aside: bool = True) -> bodies.VoterRow:
        """Stop counting a voter's votes, or count them again."""
        return self._send(bodies.VoterRow, "PATCH", f"api/studies/{study}/voters/{voter}", {"set_aside": set_aside})

    def invite(self, study: str, names: Sequence[str], *, kind: bodies.VoterKind = "person") -> list[bodies.Invitation]:
        """Invite people or language models by name; each gets a key of their own."""
        body = {"names": list(names), "kind": kind}
        path = f"api/studies/{study}/invitations"
        return self._send(bodies.InvitationsReply, "POST", path, body, safe=False).invitations

    def set_gold(self, study: str, answers: Sequence[dict[str, str]], **how_often: int) -> bodies.StudyReply:
        """Replace the known answers, each with ``winner``, ``loser`` and perhaps ``context``; ``first``, ``every``."""
        body = GoldDuels.model_validate({"answers": list(answers), **how_often}).model_dump()
        return self._send(bodies.StudyReply, "PUT", f"api/studies/{study}/gold", body)

    def change_item(self, study: str, number: int, **changes: Any) -> bodies.StudyReply:
        """Change ``enabled``, ``priority`` or ``least_views`` of an item."""
        return self._send(bodies.StudyReply, "PATCH", f"api/studies/{study}/items/{number}", changes)

    def join(self, study: str, *, name: str | None = None, participant: str | None = None) -> "VoterClient":
        """Add a voter to a study that everyone with the link can join."""
        body = {"name": name, "participant": participant}
        joined = self._send(bodies.Joined, "POST", f"api/studies/{study}/voters", body, safe=False)
        return self.voter(study, joined.key)

    def voter(self, study: str, key: str) -> "VoterClient":
        """Return the view of a voter who has a key."""
        return VoterClient(study, self._url, key, patience=self._patience, transport=self._transport)

    def _send(
        self,
        kind: type[Reply],
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        *,
        safe: bool = True,
        headers: dict[str, str] | None = None,
    ) -> Reply:
        """Send a request until it is answered; ``safe`` says that repeating it changes nothing."""
        give_up, pause = time.monotonic() + self._patience, _FIRST_PAUSE
        while True:
            wait = pause * random.uniform(0.5, 1.0)  # noqa: S311  # so that clients do not come back all at once
            try:
                response = self._http.request(method, path, json=body, headers=headers)
            except httpx.TransportError as error:
                was_sent = not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
                if (was_sent and not safe) or time.monotonic() + wait > give_up:
                    raise UnreachableError(f"{self._url} does not answer: {error}.") from error
            else:
                if response.is_success:
                    return kind.model_validate_json(response.content)
                wait = max(wait, float(response.headers.get("Retry-After", 0)))
                again = _TRY_AGAIN | _LOST if safe else _TRY_AGAIN
                if response.status_code not in again or time.monotonic() + wait > give_up:
                    raise _problem(response)
            time.sleep(wait)
            pause = min(2.0 * pause, _LONGEST_PAUSE)


class VoterClient(Client):
    """A voter's view of a study; see :class:`Client`."""

    def __init__(self, study: str, url: str, key: str, **settings: Any) -> None:
        super().__init__(url, key, **settings)
        self.key = key
        self._path = f"api/studies/{study}"

    def ask(self, count: int = 1) -> bodies.AskedReply:
        """Return the voter's open duels, with new ones until there are ``count``."""
        return self._send(bodies.AskedReply, "POST", f"{self._path}/duels", {"count": count})

    def answer(
        self,
        duel: str,
        answer: bodies.Answer,
        *,
        seconds: float | None = None,
        comment: str | None = None,
        next_duels: int = 0,
    ) -> bodies.AnsweredReply:
        """Answer a duel, once, however often the request has to be repeated; the reply may hold the next duels."""
        body = {"answer": answer, "seconds": seconds, "comment": comment, "next": next_duels}
        headers = {"Idempotency-Key": uuid.uuid4().hex}
        return self._send(bodies.AnsweredReply, "POST", f"{self._path}/duels/{duel}/answer", body, headers=headers)

    def undo(self, duel: str) -> bodies.UndoneReply:
        """Take back the voter's last answer; the same pair comes back as a new duel."""
        return self._send(bodies.UndoneReply, "POST", f"{self._path}/duels/{duel}/undo", {})

    def receipts(self) -> bodies.Receipts:
        """Return the proofs that the voter's answers are in the log."""
        return self._send(bodies.Receipts, "GET", f"{self._path}/receipt")


def _problem(response: httpx.Response) -> Problem:
    try:
        body = response.json()
        return Problem(response.status_code, body["code"], body["detail"], errors=body.get("errors", []))
    except (ValueError, LookupError, TypeError):
        return Problem(response.status_code, "invalid", f"The server answered {response.status_code}.")
