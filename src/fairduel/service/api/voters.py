"""Routes for voters."""

import json
import re
from collections.abc import MutableMapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Request, Response
from fastapi.routing import APIRoute

from fairduel.service import voting
from fairduel.service.api import bodies, guard, replies
from fairduel.service.api.calls import call
from fairduel.service.commands import check_receipt
from fairduel.service.keys import Holder

router = APIRouter(prefix="/api", tags=["voters"])
_KEY = re.compile("^[!-~]{1,64}$")
IdempotencyKey = Annotated[str, Header(alias="Idempotency-Key", pattern=_KEY.pattern)]
Json = dict[str, Any]


@router.get("/studies/{study}/ballot", response_model=bodies.Ballot, dependencies=[Depends(guard.anyone)])
async def get_ballot(request: Request, service: guard.Running, study: str) -> Json:
    """Return what voters may know about a study."""
    joined = any(holder.scope == "voter" and holder.study == study for holder in guard.holders(request))
    return await call(service, lambda ledger: replies.ballot(ledger, study, joined=joined))


@router.post(
    "/studies/{study}/voters", status_code=201, response_model=bodies.Joined, dependencies=[Depends(guard.newcomer)]
)
async def join(request: Request, response: Response, service: guard.Running, study: str, body: bodies.Joining) -> Json:
    """Join a study by its link."""
    voter, key = await call(service, lambda ledger: voting.join(ledger, study, body.name, body.participant))
    guard.keep(request, response, Holder("voter", study, voter), key)
    return {"voter": voter, "key": key}


@router.post("/studies/{study}/duels", response_model=bodies.AskedReply)
async def ask(request: Request, study: str, body: bodies.Wanted) -> Json:
    """Return the voter's open duels, with new ones until there are ``count``; safe to repeat."""
    service, holder = guard.service_of(request), guard.voter(request, study)
    return await call(service, lambda ledger: voting.ask(ledger, holder, body.count))


@router.post("/studies/{study}/duels/{duel}/answer", response_model=bodies.AnsweredReply)
async def answer(request: Request, study: str, duel: str, body: bodies.Answering, key: IdempotencyKey) -> Json:
    """Answer a duel; the same answer with the same key gets the same reply and counts once."""
    service, holder = guard.service_of(request), guard.voter(request, study)
    return await call(
        service,
        lambda ledger: voting.answer_and_ask(
            ledger, holder, duel, key, body.answer, body.seconds, body.comment, body.next
        ),
    )


@router.post("/studies/{study}/duels/{duel}/undo", response_model=bodies.UndoneReply)
async def undo(request: Request, study: str, duel: str, body: bodies.Empty) -> Json:  # noqa: ARG001
    """Take back the voter's last answer; the same pair comes back as a new duel."""
    service, holder = guard.service_of(request), guard.voter(request, study)
    return await call(service, lambda ledger: voting.undo(ledger, holder, duel))


@router.get("/studies/{study}/receipt", response_model=bodies.Receipts)
async def get_receipts(request: Request, study: str) -> Json:
    """Return the proofs that the voter's answers are in the log."""
    service, holder = guard.service_of(request), guard.voter(request, study)
    return await call(service, lambda ledger: replies.receipts(ledger, holder))


@router.get("/receipts/{receipt}", response_model=bodies.ReceiptCheck, dependencies=[Depends(guard.anyone)])
async def get_receipt(service: guard.Running, receipt: str) -> Json:
    """Say whether the answer of a receipt is in the log."""
    return await call(service, lambda ledger: check_receipt(ledger, receipt))


_OFTEN_CALLED = [
    (next(route for route in router.routes if isinstance(route, APIRoute) and route.endpoint == endpoint), body)
    for endpoint, body in ((answer, bodies.Answering), (ask, bodies.Wanted))
]


async def shortcut(scope: MutableMapping[str, Any], content: bytes) -> Response | None:
    """Reply to a valid request for duels, or with an answer, as FastAPI would, which takes longer than a vote does.

    Returns:
        None for every other request; FastAPI replies to those.
    """
    path = scope["path"].removeprefix(scope.get("root_path", ""))
    for route, model in _OFTEN_CALLED:
        found = route.path_regex.match(path)
        if found is None or scope["method"] != "POST":
            continue
        request = Request(scope)
        try:
            given: Json = {"body": model.model_validate(json.loads(content))}
        except (ValueError, RecursionError):  # not JSON, not valid, or nested too deeply
            return None
        if route.endpoint == answer:
            given["key"] = request.headers.get("idempotency-key", "")
            if _KEY.match(given["key"]) is None:
                return None
        scope["route"] = route
        reply = await route.endpoint(request, **found.groupdict(), **given)
        return Response(route.response_model.model_validate(reply).model_dump_json(), media_type="application/json")
    return None
