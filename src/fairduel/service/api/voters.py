"""Routes for voters."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Request, Response

from fairduel.service import voting
from fairduel.service.api import bodies, guard, replies
from fairduel.service.api.calls import call
from fairduel.service.commands import check_receipt
from fairduel.service.keys import Holder

router = APIRouter(prefix="/api", tags=["voters"])
IdempotencyKey = Annotated[str, Header(alias="Idempotency-Key", pattern="^[!-~]{1,64}$")]
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
