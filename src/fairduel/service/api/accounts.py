"""Routes for signing in and out, and for owners: who operates the server."""

from typing import Any

from fastapi import APIRouter, Request, Response

from fairduel.service.api import bodies, guard
from fairduel.service.api.guard import call
from fairduel.service.api.limits import network
from fairduel.service.commands import team, voting
from fairduel.service.events.ledger import Ledger
from fairduel.service.keys import Holder, key_hash, signature, webhook_key
from fairduel.service.problems import Problem
from fairduel.service.service import Service
from fairduel.service.sign_in import LINK

router = APIRouter(prefix="/api", tags=["operators"])
Json = dict[str, Any]


@router.post("/session", response_model=bodies.Session)
async def open_session(request: Request, response: Response, service: guard.Running, body: bodies.KeyBody) -> Json:
    """Keep a key in a cookie; exchange an invitation, or a sign-in, that works once for a voter's key."""
    if body.key.startswith(LINK):
        study, account, email = service.sign_in.redeem(body.key, body.nonce, request.cookies.get(guard.ATTEMPT, ""))
        signed = signature(service.ledger.secret, study, account)
        who = voting.Newcomer(email, account, signed, body.nonce, network(guard.address(request)))
        voter, key = await call(service, lambda ledger: voting.join(ledger, study, who))
        found = Holder("voter", study, voter)
        guard.keep(request, response, found, key)
        return _session(service, found)
    holder = service.ledger.state.keys.get(key_hash(body.key))
    if holder is None:
        raise Problem(401, "no-key", "This key is not valid (any more).")
    found, key = holder, body.key
    if holder.scope == "invitation":
        found, key = await call(service, lambda ledger: voting.redeem(ledger, body.key, body.nonce))
    guard.keep(request, response, found, key)
    return _session(service, found)


@router.get("/session", response_model=bodies.Session)
async def get_session(service: guard.Running, holder: guard.Known) -> Json:
    """Say whose key the request came with."""
    return _session(service, holder)


@router.delete("/session", status_code=204)
async def close_session(request: Request, response: Response) -> None:
    """Sign out here: forget the operator's or observer's key."""
    root = request.scope.get("root_path", "").rstrip("/")
    response.delete_cookie(guard.SESSION, path=f"{root}/", httponly=True, samesite="strict")


def _session(service: Service, holder: Holder) -> Json:
    known = service.ledger.state.operators.get(holder.operator)
    about = {"operator": None, "name": None, "role": None} if known is None else team.shown_operator(known)
    return {"scope": holder.scope, "study": holder.study or None, **about}


@router.get("/operators", response_model=bodies.OperatorsReply)
async def list_operators(service: guard.Running, _: guard.Owner) -> Json:
    """List who operates this server."""
    found = await call(service, lambda ledger: [team.shown_operator(each) for each in team.present(ledger)])
    return {"operators": found}


@router.get("/webhook-key", response_model=bodies.WebhookKey)
async def get_webhook_key(service: guard.Running, _: guard.Owner) -> Json:
    """Return the key that signs webhooks."""
    return {"key": webhook_key(service.ledger.secret).decode()}


@router.post("/operators", status_code=201, response_model=bodies.NewKey)
async def add_operator(service: guard.Running, holder: guard.Owner, body: bodies.NewOperator) -> Json:
    """Add an operator or an observer of all studies; their key is shown only here."""
    return _with_link(await call(service, lambda ledger: team.add_operator(ledger, body.name, body.role), holder))


@router.post("/operators/{operator}/key", status_code=201, response_model=bodies.NewKey)
async def replace_key(
    service: guard.Running,
    holder: guard.Watcher,
    operator: str,
    body: bodies.Empty,  # noqa: ARG001
) -> Json:
    """Sign someone out everywhere: their old key stops working. Owners can do this to anyone, others to themselves."""

    def replace(ledger: Ledger) -> Json:
        caller = ledger.state.operators[holder.operator]
        if caller.role != "owner" and operator != holder.operator:
            raise guard.owners_only()
        return {"key": team.replace_key(ledger, operator)} | team.shown_operator(team.find_operator(ledger, operator))

    return _with_link(await call(service, replace, holder))


@router.delete("/operators/{operator}", status_code=204)
async def remove_operator(service: guard.Running, holder: guard.Owner, operator: str) -> None:
    """Let someone's key work no longer."""
    await call(service, lambda ledger: team.remove_operator(ledger, operator), holder)


def _with_link(added: Json) -> Json:
    return added | {"link": f"#{added['key']}"}
