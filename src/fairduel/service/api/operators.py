"""Routes for operators and observers."""

import asyncio
import gzip
import io
from collections.abc import AsyncIterator
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Path, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from fairduel.service.analysis.inputs import Subject
from fairduel.service.api import bodies, guard, jobs, replies, result_bodies
from fairduel.service.api.guard import call
from fairduel.service.commands import operating
from fairduel.service.events.lifecycle import ItemAdded
from fairduel.service.problems import Problem, not_found
from fairduel.service.service import Service
from fairduel.service.study.study import GoldDuels, NewStudy, Strict

router = APIRouter(prefix="/api", tags=["operators"])
Json = dict[str, Any]
_KEEP_ALIVE = 15.0  # seconds
_LEAST_PAUSE = 0.5  # seconds between two events
ExportFile = Annotated[str, Path(pattern="^(votes|duels|comments|voters|ranking|log|trl)[.](csv|jsonl|parquet)$")]


@router.get("/studies", response_model=bodies.ListedStudies)
async def list_studies(service: guard.Running, _: guard.Watcher) -> Json:
    """List all studies, newest first."""
    return await call(service, replies.list_studies)


@router.post("/studies", status_code=201, response_model=bodies.StudyReply)
async def create_study(service: guard.Running, holder: guard.Operator, body: NewStudy) -> Json:
    """Create a study."""
    return await call(service, lambda ledger: replies.study_reply(operating.create_study(ledger, body)), holder)


@router.get("/studies/{study}", response_model=bodies.StudyReply)
async def get_study(service: guard.Running, holder: guard.Viewer, study: str) -> Json:
    """Return a study with its items and settings; only operators see its known answers and what completion leads to."""
    found = await call(service, lambda ledger: replies.study_reply(operating.find_study(ledger, study)))
    return found if holder.scope == "operator" else found | dict.fromkeys(("completion_code", "completion_url", "gold"))


@router.patch("/studies/{study}", response_model=bodies.StudyReply)
async def change_study(service: guard.Running, holder: guard.Operator, study: str, body: bodies.SettingsChange) -> Json:
    """Change settings, or pause, open or close a study."""
    changes = body.model_dump(exclude_unset=True)
    reply = await call(
        service, lambda ledger: replies.study_reply(operating.change_study(ledger, study, changes)), holder
    )
    if "votes_per_voter" in changes:
        await jobs.update_cost(service, study)
    return reply


@router.patch("/studies/{study}/items/{number}", response_model=bodies.StudyReply)
async def change_item(
    service: guard.Running, holder: guard.Operator, study: str, number: int, body: bodies.ItemChange
) -> Json:
    """Change whether an item appears in new duels, its priority, or its minimum number of views."""
    changes = body.model_dump(exclude_unset=True)
    return await call(
        service, lambda ledger: replies.study_reply(operating.change_item(ledger, study, number, changes)), holder
    )


@router.post("/studies/{study}/items", status_code=201, response_model=bodies.StudyReply)
async def add_item(service: guard.Running, holder: guard.Operator, study: str, body: bodies.AddedItem) -> Json:
    """Add an item while people vote; the agent learns the recorded duels again, with it."""
    item = body.model_dump(exclude={"contents", "answer_features"})
    added = ItemAdded(item, body.contents, body.answer_features)
    await asyncio.wrap_future(service.add_item(study, added, holder.operator))
    return await call(service, lambda ledger: replies.study_reply(operating.find_study(ledger, study)))


@router.delete("/studies/{study}", status_code=204)
async def delete_study(service: guard.Running, holder: guard.Owner, study: str) -> None:
    """Delete a study with its votes and voters for good; only the hashes of its events stay in the log."""
    await call(service, lambda ledger: operating.delete_study(ledger, study), holder)
    await asyncio.wrap_future(service.delete(study))


@router.get("/studies/{study}/history", response_model=bodies.History)
async def get_history(service: guard.Running, _: guard.Operator, study: str) -> Json:
    """Return what operators did to a study, and when it opened or closed by itself, newest first."""
    return await call(service, lambda ledger: replies.history(ledger, study))


@router.put("/studies/{study}/gold", response_model=bodies.StudyReply)
async def change_gold(service: guard.Running, holder: guard.Operator, study: str, body: GoldDuels) -> Json:
    """Replace the known answers that test voters, and say how often voters get them."""
    return await call(service, lambda ledger: replies.study_reply(operating.change_gold(ledger, study, body)), holder)


@router.post("/studies/{study}/invitations", status_code=201, response_model=bodies.InvitationsReply)
async def invite(service: guard.Running, holder: guard.Operator, study: str, body: bodies.Invitations) -> Json:
    """Invite people or language models; each gets a key of their own, which is shown only here."""
    names: list[str | None] = list(body.names) if body.names is not None else [None] * (body.count or 0)
    kinds = {"are_models": body.kind == "model", "one_time": body.one_time}
    added = await call(service, lambda ledger: operating.invite(ledger, study, names, **kinds), holder)
    await jobs.update_cost(service, study)
    shown = {"kind": body.kind}
    return {"invitations": [each | shown | {"link": f"vote/{study}#{each['key']}"} for each in added]}


@router.post("/studies/{study}/participants", status_code=201, response_model=bodies.ParticipantsReply)
async def sign(service: guard.Running, _: guard.Operator, study: str, body: bodies.Participants) -> Json:
    """Return signed links for participants, and the key by which your own system can sign them."""
    found = await call(service, lambda ledger: operating.sign_participants(ledger, study, body.participants))
    for each in found["links"]:
        query = urlencode({"participant": each["participant"], "signature": each["signature"]})
        each["link"] = f"vote/{study}?{query}"
    return found


@router.post("/studies/{study}/observers", status_code=201, response_model=bodies.ObserverReply)
async def add_observer(
    service: guard.Running,
    holder: guard.Operator,
    study: str,
    body: bodies.Empty,  # noqa: ARG001
) -> Json:
    """Create a key that shows the results; it is shown only here."""
    key = await call(service, lambda ledger: operating.add_observer(ledger, study), holder)
    return {"key": key, "link": f"observe/{study}#{key}"}


@router.delete("/studies/{study}/observers", status_code=204)
async def revoke_observers(service: guard.Running, holder: guard.Operator, study: str) -> None:
    """Make all observer keys of a study invalid."""
    await call(service, lambda ledger: operating.revoke_observers(ledger, study), holder)


@router.get("/studies/{study}/results", response_model=result_bodies.ResultsReply)
async def get_results(service: guard.Running, _: guard.Viewer, study: str) -> Json:
    """Return the results."""
    stale, found = service.analyst.is_stale(study), service.analyst.latest(study)
    return await call(service, lambda ledger: replies.results_reply(ledger, study, found, stale=stale))


@router.get("/studies/{study}/voters", response_model=bodies.VotersReply)
async def get_voters(request: Request, service: guard.Running, _: guard.Operator, study: str) -> Response:
    """Return all voters with the evidence on them, most evidence first."""
    found = service.analyst.latest(study)
    rows = await call(service, lambda ledger: replies.voters(ledger, study, found))
    joined = {"votes": found.votes, "joins": replies.joins(rows), "opened": request.app.state.opened[study]}
    limit = (await call(service, lambda ledger: operating.find_study(ledger, study))).about.votes_per_voter
    reply = {"voters": rows, **joined, "funnel": replies.funnel(rows, limit)}
    return await asyncio.to_thread(_packed, request, bodies.VotersReply, reply)


def _packed(request: Request, body: type[BaseModel], reply: Json) -> Response:
    """Return a long reply, compressed if the caller can read that."""
    content, headers = body.model_validate(reply).model_dump_json().encode(), {"Vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        content, headers = gzip.compress(content, 5, mtime=0), headers | {"Content-Encoding": "gzip"}
    return Response(content, headers=headers, media_type="application/json")


@router.patch("/studies/{study}/voters/{voter}", response_model=bodies.VoterRow)
async def change_voter(
    service: guard.Running, holder: guard.Operator, study: str, voter: str, body: bodies.VoterChange
) -> Json:
    """Stop counting a voter's votes, or count them again; the votes are kept, and the learner is refolded."""
    if await call(
        service, lambda ledger: operating.set_voter_aside(ledger, study, voter, set_aside=body.set_aside), holder
    ):
        service.refold(study)
    found = service.analyst.latest(study)
    return await call(service, lambda ledger: replies.one_voter(ledger, study, voter, found))


@router.delete("/studies/{study}/voters/{voter}/personal", status_code=204)
async def erase_personal(service: guard.Running, holder: guard.Operator, study: str, voter: str) -> None:
    """Erase a voter's name, participant id and comments; their votes stay."""
    await call(service, lambda ledger: operating.erase_personal(ledger, study, voter), holder)
    await asyncio.to_thread(service.ledger.store.forget)


@router.delete("/studies/{study}/personal", status_code=204)
async def erase_all_personal(service: guard.Running, holder: guard.Operator, study: str) -> None:
    """Erase the names, participant ids, addresses and comments of all voters; their votes stay."""
    await call(service, lambda ledger: operating.erase_all_personal(ledger, study), holder)
    await asyncio.to_thread(service.ledger.store.forget)


@router.get("/studies/{study}/exports/{file}", response_class=StreamingResponse)
async def get_export(service: guard.Running, holder: guard.Reader, study: str, file: ExportFile) -> StreamingResponse:
    """Download a table as csv, jsonl or parquet; comments, voters, log and trl are for operators."""
    from fairduel.service.analysis import exports  # noqa: PLC0415  # slow: a server should be ready soon

    table: exports.Table
    form: exports.Format
    table, form = file.split(".")  # type: ignore[assignment]  # as the pattern says
    if table in {"comments", "voters", "log", "trl"} and holder.scope != "operator":
        raise not_found("table")
    found = service.analyst.latest(study)
    about = await call(service, lambda ledger: Subject.of(operating.find_study(ledger, study)))
    rows: list[Json] = []
    if table == "voters":
        rows = await call(service, lambda ledger: replies.voters(ledger, study, found))
    elif table == "trl":
        study_now = await call(service, lambda ledger: operating.find_study(ledger, study))
        rows = await asyncio.to_thread(_preferences, service, about, study_now.about)
    hidden = {"gold", "weight", "agent_weight"} if holder.scope != "operator" else set[str]()
    content = exports.export_study(service.ledger.store.engine, table, form, about, found, rows, hidden)
    headers = {"Content-Disposition": f'attachment; filename="{file}"'}
    return StreamingResponse(content, media_type=exports.MEDIA_TYPES[form], headers=headers)


def _preferences(service: Service, about: Subject, study: NewStudy) -> list[Json]:
    from fairduel.service.analysis import exports  # noqa: PLC0415  # slow: a server should be ready soon

    with service.ledger.store.engine.connect() as connection:
        return exports.preference_rows(connection, about, study)


@router.get("/studies/{study}/events", response_class=StreamingResponse)
async def get_events(request: Request, service: guard.Running, holder: guard.Viewer, study: str) -> StreamingResponse:
    """Announce changes of the study and its results, as server-sent events."""
    await call(service, lambda ledger: operating.find_study(ledger, study))
    streams: dict[str, int] = request.app.state.streams
    if streams.get(study, 0) >= request.app.state.limits.most_streams and holder.scope != "operator":
        raise Problem(429, "too-many-requests", "Too many pages watch this study; try again later.", 30)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_events(service, study, streams), media_type="text/event-stream", headers=headers)


async def _events(service: Service, study: str, streams: dict[str, int]) -> AsyncIterator[str]:
    loop, changed = asyncio.get_running_loop(), asyncio.Event()

    def tell(other: str | None) -> None:
        if other in {study, None}:
            loop.call_soon_threadsafe(changed.set)

    stop = service.watch(tell)
    streams[study] = streams.get(study, 0) + 1
    try:
        yield _changed(service, study)
        while not service.is_closed:
            try:
                await asyncio.wait_for(changed.wait(), _KEEP_ALIVE)
            except TimeoutError:
                yield ": keep-alive\n\n"
                continue
            changed.clear()
            if not service.is_closed:
                yield _changed(service, study)
                await asyncio.sleep(_LEAST_PAUSE)
    finally:
        stop()
        streams[study] -= 1


def _changed(service: Service, study: str) -> str:
    position, analysed = service.ledger.state.position, service.analyst.latest(study).position
    return f'event: changed\ndata: {{"position": {position}, "results_position": {analysed}}}\n\n'


class Address(Strict):
    """An address to show as a QR code."""

    text: Annotated[str, Field(min_length=1, max_length=1000)]


class Code(BaseModel):
    """A QR code as SVG."""

    svg: str


@router.post("/qr", response_model=Code)
def draw_code(_: guard.Operator, body: Address) -> dict[str, Any]:
    """Return the QR code of an address, which may contain a key: so it is not in a URL, which servers log."""
    import segno  # noqa: PLC0415  # only operators need it

    content = io.BytesIO()
    segno.make(body.text, error="m", micro=False).save(content, kind="svg", scale=8, border=3, xmldecl=False)
    return {"svg": content.getvalue().decode()}
