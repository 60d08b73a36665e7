"""A Python client that retries requests; nothing counts twice."""

import random
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

import httpx
from pydantic import BaseModel, TypeAdapter

from fairduel.errors import FairduelError
from fairduel.service.analysis.background import Job
from fairduel.service.api import bodies, jobs, result_bodies
from fairduel.service.keys import Role
from fairduel.service.problems import Problem
from fairduel.service.study.media import MEDIA
from fairduel.service.study.study import NewStudy
from fairduel.service.work import solve_challenge

Reply = TypeVar("Reply", bound=BaseModel)
_TRY_AGAIN = {429, 503}  # nothing was done
_LOST = {502, 504}  # a proxy got no answer, so it may have been done
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0  # seconds
_LONG, _POLL = 120.0, 0.5  # seconds that large requests may take, and between two looks at a job


class UnreachableError(FairduelError):
    """The server did not answer within the client's patience."""


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

    # ------------------------------------------------------------------ studies

    def create_study(self, **about: Any) -> bodies.StudyReply:
        """Create a study; the arguments are the fields of :class:`~fairduel.service.study.study.NewStudy`."""
        body = NewStudy.model_validate(about).model_dump()
        return self._send(bodies.StudyReply, "POST", "api/studies", body, safe=False)

    def create_from_file(self, file: str, text: str, **others: Any) -> bodies.StudyReply:
        """Create a study from the text of a TOML or CSV file; ``others`` are ``tables``, ``media`` and ``settings``."""
        return self._send(
            bodies.StudyReply, "POST", "api/study-files", {"file": file, "text": text} | others, safe=False
        )

    def clone(self, study: str, *, title: str | None = None, votes: bool = False) -> bodies.StudyReply:
        """Create a study with the settings and items of another one, perhaps with its votes."""
        body = {"title": title, "votes": votes}
        return self._send(bodies.StudyReply, "POST", f"api/studies/{study}/clone", body, safe=False)

    def studies(self) -> list[bodies.ListedStudy]:
        """Return all studies, newest first."""
        return self._send(bodies.ListedStudies, "GET", "api/studies").studies

    def study(self, study: str) -> bodies.StudyReply:
        """Return a study with its items and settings."""
        return self._send(bodies.StudyReply, "GET", f"api/studies/{study}")

    def change_study(self, study: str, **changes: Any) -> bodies.StudyReply:
        """Change settings of a study, such as ``state="closed"`` or ``closes="2030-05-31T18:00:00Z"``."""
        return self._send(bodies.StudyReply, "PATCH", f"api/studies/{study}", changes)

    def delete_study(self, study: str) -> None:
        """Delete a study with its votes and voters for good."""
        self._request("DELETE", f"api/studies/{study}")

    def history(self, study: str) -> list[bodies.Action]:
        """Return what operators did to a study, newest first."""
        return self._send(bodies.History, "GET", f"api/studies/{study}/history").actions

    def add_item(self, study: str, **item: Any) -> bodies.StudyReply:
        """Add an item while people vote; with contexts, ``contents`` has its answers by the contexts' names."""
        return self._send(bodies.StudyReply, "POST", f"api/studies/{study}/items", item, safe=False)

    def change_item(self, study: str, number: int, **changes: Any) -> bodies.StudyReply:
        """Change ``enabled``, ``priority`` or ``least_views`` of an item."""
        return self._send(bodies.StudyReply, "PATCH", f"api/studies/{study}/items/{number}", changes)

    def change_gold(self, study: str, **gold: Any) -> bodies.StudyReply:
        """Replace the known answers of a study; the arguments are the fields of ``GoldDuels``."""
        return self._send(bodies.StudyReply, "PUT", f"api/studies/{study}/gold", gold)

    def import_votes(self, study: str, path: Path) -> bodies.StudyReply:
        """Add the votes of a file, all or none."""
        reply = self._request(
            "POST",
            f"api/studies/{study}/import",
            content=path.read_bytes(),
            headers={"Content-Type": "application/octet-stream"},
            params={"name": path.name},
            timeout=_LONG,
        )
        return bodies.StudyReply.model_validate_json(reply.content)

    def upload(self, kind: str, content: bytes) -> str:
        """Store an ``image`` or ``audio`` for items, and return its id."""
        headers = {"Content-Type": f"{kind}/*"}
        reply = self._request("POST", f"api/{MEDIA[kind].route}", content=content, headers=headers, timeout=_LONG)
        return str(reply.json()[kind])

    def file(self, kind: str, digest: str) -> bytes:
        """Return an ``image`` or ``audio``."""
        return self._request("GET", f"api/{MEDIA[kind].route}/{digest}").content

    def small_image(self, digest: str) -> bytes:
        """Return an image at most 160 pixels wide and high, as WebP."""
        return self._request("GET", f"api/images/{digest}/small").content

    def qr_code(self, text: str) -> str:
        """Return the QR code of an address, as SVG."""
        return str(self._request("POST", "api/qr", json={"text": text}).json()["svg"])

    # ------------------------------------------------------------------ results

    def results(self, study: str) -> result_bodies.ResultsReply:
        """Return the results."""
        return self._send(result_bodies.ResultsReply, "GET", f"api/studies/{study}/results")

    def export(self, study: str, file: str) -> bytes:
        """Return a table, such as ``votes.csv``, ``ranking.jsonl`` or ``log.parquet``."""
        return self._request("GET", f"api/studies/{study}/exports/{file}", timeout=_LONG).content

    def tactics(self) -> list[jobs.TacticReply]:
        """Return what simulated liars may do."""
        return self._send(jobs.TacticsReply, "GET", "api/tactics").tactics

    def red_team(self, study: str, **plan: Any) -> Job:
        """Let simulated liars vote in a copy of the study; returns at once, see :meth:`wait`."""
        return self._job("POST", f"api/studies/{study}/red-team", plan)

    def cost(self, study: str, *, voters: int | None = None, votes_each: int | None = None) -> Job:
        """Search for the cheapest campaign that makes the runner-up first; returns at once, see :meth:`wait`."""
        return self._job("POST", f"api/studies/{study}/cost", {"voters": voters, "votes_each": votes_each})

    def effect(self, study: str, voter: str) -> Job:
        """Compare the rankings with and without a voter; returns at once, see :meth:`wait`."""
        return self._job("POST", f"api/studies/{study}/voters/{voter}/effect", {})

    def jobs(self, study: str) -> list[Job]:
        """Return the last jobs, newest first."""
        return self._send(jobs.JobsReply, "GET", f"api/studies/{study}/jobs").jobs

    def wait(self, job: Job, *, seconds: float = 600.0) -> Job:
        """Return a job once it is done or has failed."""
        give_up = time.monotonic() + seconds
        while job.state in {"waiting", "running"}:
            if time.monotonic() > give_up:
                raise UnreachableError(f"the job {job.job} is not done after {seconds:.0f} s.")
            time.sleep(_POLL)
            job = self._job("GET", f"api/studies/{job.study}/jobs/{job.job}")
        return job

    def _job(self, method: str, path: str, body: dict[str, Any] | None = None) -> Job:
        safe = method == "GET"
        return TypeAdapter(Job).validate_json(self._request(method, path, json=body, safe=safe).content)

    # ------------------------------------------------------------------ people

    def voters(self, study: str) -> list[bodies.VoterRow]:
        """Return all voters with the evidence on them."""
        return self._send(bodies.VotersReply, "GET", f"api/studies/{study}/voters").voters

    def set_aside(self, study: str, voter: str, *, set_aside: bool = True) -> bodies.VoterRow:
        """Stop counting a voter's votes, or count them again."""
        return self._send(bodies.VoterRow, "PATCH", f"api/studies/{study}/voters/{voter}", {"set_aside": set_aside})

    def erase_personal(self, study: str, voter: str | None = None) -> None:
        """Erase the name, participant id, address and comments of a voter, by default of all; the votes stay."""
        which = "" if voter is None else f"/voters/{voter}"
        self._request("DELETE", f"api/studies/{study}{which}/personal")

    def invite(
        self, study: str, names: Sequence[str], *, kind: bodies.VoterKind = "person", one_time: bool = False
    ) -> list[bodies.Invitation]:
        """Invite people or language models by name; each gets a key of their own, perhaps for one browser only."""
        body = {"names": list(names), "kind": kind, "one_time": one_time}
        path = f"api/studies/{study}/invitations"
        return self._send(bodies.InvitationsReply, "POST", path, body, safe=False).invitations

    def add_observer(self, study: str) -> bodies.ObserverReply:
        """Return a new key that shows the results of a study."""
        return self._send(bodies.ObserverReply, "POST", f"api/studies/{study}/observers", {}, safe=False)

    def revoke_observers(self, study: str) -> None:
        """Let the observers' keys of a study work no longer."""
        self._request("DELETE", f"api/studies/{study}/observers")

    def session(self) -> bodies.Session:
        """Return whose key this client has."""
        return self._send(bodies.Session, "GET", "api/session")

    def sign_in(self, key: str) -> bodies.Session:
        """Keep a key in a cookie; an invitation that works once becomes a voter's key."""
        return self._send(bodies.Session, "POST", "api/session", {"key": key, "nonce": uuid.uuid4().hex})

    def sign_out(self) -> None:
        """Forget the cookie of an operator or observer."""
        self._request("DELETE", "api/session")

    def operators(self) -> list[bodies.OperatorRow]:
        """Return who operates the server."""
        return self._send(bodies.OperatorsReply, "GET", "api/operators").operators

    def add_operator(self, name: str, role: Role = "operator") -> bodies.NewKey:
        """Add an operator, or an observer of all studies; their key is shown once."""
        return self._send(bodies.NewKey, "POST", "api/operators", {"name": name, "role": role}, safe=False)

    def replace_key(self, operator: str) -> bodies.NewKey:
        """Return a new key of an operator, who is signed out everywhere."""
        return self._send(bodies.NewKey, "POST", f"api/operators/{operator}/key", {}, safe=False)

    def remove_operator(self, operator: str) -> None:
        """Let an operator's key work no longer."""
        self._request("DELETE", f"api/operators/{operator}")

    def webhook_key(self) -> str:
        """Return the key that signs webhooks."""
        return self._send(bodies.WebhookKey, "GET", "api/webhook-key").key

    # ------------------------------------------------------------------ for everyone

    def ballot(self, study: str) -> bodies.Ballot:
        """Return what voters may know about a study."""
        return self._send(bodies.Ballot, "GET", f"api/studies/{study}/ballot")

    def head(self) -> bodies.Head:
        """Return the end of the log."""
        return self._send(bodies.Head, "GET", "api/head")

    def check_receipt(self, receipt: str) -> bodies.ReceiptCheck:
        """Say whether the answer of a receipt is in the log."""
        return self._send(bodies.ReceiptCheck, "GET", f"api/receipts/{receipt}")

    def send_link(self, study: str, email: str, language: str = "en") -> None:
        """Send someone a link by which they can vote, of a study whose voters sign in by e-mail."""
        self._send(bodies.SignInReply, "POST", f"api/studies/{study}/sign-in", {"email": email, "language": language})

    def redeem(self, study: str, invitation: str) -> "VoterClient":
        """Exchange an invitation that works once; the client that it returns keeps the voter's key in a cookie."""
        voter = self.voter(study, "")
        voter.sign_in(invitation)
        return voter

    def join(
        self, study: str, *, name: str | None = None, participant: str | None = None, signature: str | None = None
    ) -> "VoterClient":
        """Add a voter to a study that everyone with the link can join, or a participant with a signed link."""
        path = f"api/studies/{study}"
        body: dict[str, Any] = {"name": name, "participant": participant, "signature": signature}
        body["nonce"] = uuid.uuid4().hex  # so that it can be repeated
        try:
            joined = self._send(bodies.Joined, "POST", f"{path}/voters", body)
        except Problem as problem:
            if problem.code != "new-challenge":
                raise
            work = self._send(bodies.Ballot, "GET", f"{path}/ballot").work
            assert work is not None
            body["work"] = {"challenge": work.challenge, "answer": solve_challenge(work.challenge, work.bits)}
            joined = self._send(bodies.Joined, "POST", f"{path}/voters", body)
        return self.voter(study, joined.key)

    def sign(self, study: str, participants: Sequence[str]) -> bodies.ParticipantsReply:
        """Return signed links for participants, and the key that signs them."""
        body = {"participants": list(participants)}
        return self._send(bodies.ParticipantsReply, "POST", f"api/studies/{study}/participants", body)

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
        """Send a request and return the reply's body; see :meth:`_request`."""
        return kind.model_validate_json(self._request(method, path, json=body, safe=safe, headers=headers).content)

    def _request(self, method: str, path: str, *, safe: bool = True, **request: Any) -> httpx.Response:
        """Send a request, with retries; ``safe`` says that repeating it changes nothing."""
        give_up, pause = time.monotonic() + self._patience, _FIRST_PAUSE
        while True:
            wait = pause * random.uniform(0.5, 1.0)  # noqa: S311  # so that clients do not come back all at once
            try:
                response = self._http.request(method, path, **request)
            except httpx.TransportError as error:
                was_sent = not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
                if (was_sent and not safe) or time.monotonic() + wait > give_up:
                    raise UnreachableError(f"{self._url} does not answer: {error}.") from error
            else:
                if response.is_success:
                    return response
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
        """Answer a duel, once, even if the request has to be repeated; the reply may hold the next duels."""
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
