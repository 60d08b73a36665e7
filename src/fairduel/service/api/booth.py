"""Routes for voters."""

import json
import re
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request, Response
from fastapi.responses import RedirectResponse
from fastapi.routing import APIRoute

from fairduel.service.api import bodies, guard, replies
from fairduel.service.api.guard import call
from fairduel.service.api.limits import network
from fairduel.service.commands import voting
from fairduel.service.commands.operating import check_receipt, find_study
from fairduel.service.keys import Holder
from fairduel.service.problems import Problem
from fairduel.service.sign_in import MINUTES
from fairduel.service.work import new_challenge

router = APIRouter(prefix="/api", tags=["voters"])
_KEY = re.compile("^[!-~]{1,64}$")
IdempotencyKey = Annotated[str, Header(alias="Idempotency-Key", pattern=_KEY.pattern)]
Json = dict[str, Any]


@router.get("/studies/{study}/ballot", response_model=bodies.Ballot)
async def get_ballot(request: Request, service: guard.Running, study: str) -> Json:
    """Return what voters may know about a study."""
    joined = any(holder.scope == "voter" and holder.study == study for holder in guard.holders(request))
    found = await call(service, lambda ledger: replies.ballot(ledger, study, joined=joined))
    bits = found.pop("bits")
    request.app.state.opened[study] += not joined
    if joined or not bits:
        return found | {"work": None}
    return found | {"work": {"challenge": request.app.state.challenges.new(study, bits), "bits": bits}}


@router.post("/studies/{study}/voters", status_code=201, response_model=bodies.Joined)
async def join(request: Request, response: Response, service: guard.Running, study: str, body: bodies.Joining) -> Json:
    """Join a study by its link."""
    found = await call(service, lambda ledger: find_study(ledger, study))
    _check_work(request, study, found.about.proof_of_work, body.work)
    who = voting.Newcomer(body.name, body.participant, body.signature, body.nonce, network(guard.address(request)))
    voter, key = await call(service, lambda ledger: voting.join(ledger, study, who))
    guard.keep(request, response, Holder("voter", study, voter), key)
    return {"voter": voter, "key": key}


@router.post("/studies/{study}/sign-in", response_model=bodies.SignInReply)
async def sign_in(
    request: Request, response: Response, service: guard.Running, study: str, body: bodies.SigningIn
) -> Json:
    """Begin to sign in: return where, or send a link to an address; the reply is the same for every address."""
    about = (await call(service, lambda ledger: find_study(ledger, study))).about
    if about.state == "closed":
        raise Problem(409, "not-open", "This study is closed.")
    _check_work(request, study, about.proof_of_work, body.work)
    if body.email is not None:
        language = "en" if body.language == "auto" else body.language
        service.sign_in.mail(service.ledger.secret, study, about, body.email, language)
        return {"location": None, "minutes": MINUTES}
    attempt, location = await service.sign_in.begin(study, about)
    guard.keep_attempt(request, response, attempt)
    return {"location": location, "minutes": MINUTES}


@router.get("/sign-in", include_in_schema=False)
async def signed_in(
    request: Request, service: guard.Running, state: str = "", code: str = "", iss: str | None = None
) -> RedirectResponse:
    """Come back from the OpenID Connect provider, and go on to the study's page."""
    study, attempt = state.partition(".")[0], request.cookies.get(guard.ATTEMPT, "")
    about = (await call(service, lambda ledger: find_study(ledger, study))).about
    try:
        account = await service.sign_in.end(study, attempt, state, code, iss)
        link = service.sign_in.link(service.ledger.secret, study, about, account, attempt)
    except Problem as problem:
        failed = RedirectResponse(f"../vote/{study}?sign_in={problem.code}", 303)
        guard.keep_attempt(request, failed, None)
        return failed
    return RedirectResponse(f"../{link}", 303)


def _check_work(request: Request, study: str, bits: int, work: bodies.Work | None) -> None:
    """Refuse whoever has not solved a challenge of a study that asks for one."""
    if bits:
        if work is None:
            raise new_challenge()
        request.app.state.challenges.spend(study, bits, work.challenge, work.answer)


@router.post("/studies/{study}/duels", response_model=bodies.AskedReply)
async def ask(request: Request, study: str, body: bodies.Wanted) -> Json:
    """Return the voter's open duels, with new ones until there are ``count``; safe to repeat."""
    service, holder = guard.service_of(request), guard.voter(request, study)
    return await call(service, lambda ledger: voting.ask(ledger, holder, body.count))


@router.post("/studies/{study}/duels/{duel}/answer", response_model=bodies.AnsweredReply)
async def answer(request: Request, study: str, duel: str, body: bodies.Answering, key: IdempotencyKey) -> Json:
    """Answer a duel; the same answer with the same key gets the same reply and counts once."""
    service, holder = guard.service_of(request), guard.voter(request, study)
    given = voting.Given(duel, key, body.answer, body.seconds, body.comment)
    return await call(service, lambda ledger: voting.answer_and_ask(ledger, holder, given, body.next))


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


@router.get("/receipts/{receipt}", response_model=bodies.ReceiptCheck)
async def get_receipt(service: guard.Running, receipt: str) -> Json:
    """Say whether the answer of a receipt is in the log."""
    return await call(service, lambda ledger: check_receipt(ledger, receipt))


@router.get("/head", response_model=bodies.Head)
async def get_head(service: guard.Running) -> Json:
    """Return the receipt of the last event; where it is published, nobody can change the log up to it unnoticed."""
    return await call(service, replies.head)


NEED_KEY = {ask, answer, undo, get_receipts}
"""What only voters of the study may call."""
_OFTEN_CALLED = [
    (next(route for route in router.routes if isinstance(route, APIRoute) and route.endpoint == endpoint), body)
    for endpoint, body in ((answer, bodies.Answering), (ask, bodies.Wanted))
]


async def shortcut(request: Request, path: str, content: bytes) -> Response | None:
    """Reply to a valid request for duels, or with an answer, as FastAPI would, which takes longer than a vote does.

    Returns:
        None for every other request; FastAPI replies to those.
    """
    for route, model in _OFTEN_CALLED:
        found = route.path_regex.match(path)
        if found is None or request.method != "POST":
            continue
        try:
            given: Json = {"body": model.model_validate(json.loads(content))}
        except (ValueError, RecursionError):  # not JSON, not valid, or nested too deeply
            return None
        if route.endpoint == answer:
            given["key"] = request.headers.get("idempotency-key", "")
            if _KEY.match(given["key"]) is None:
                return None
        request.scope["route"] = route
        reply = await route.endpoint(request, **found.groupdict(), **given)
        return Response(route.response_model.model_validate(reply).model_dump_json(), media_type="application/json")
    return None
