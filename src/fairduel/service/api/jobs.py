"""Routes for jobs that compute for seconds: the red team, the cost of manipulation, and the effect of a voter."""

import contextlib
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, Field, model_validator

from fairduel.service.analysis.background import Job
from fairduel.service.analysis.inputs import MOST_ACCOUNTS, MOST_VOTES_EACH
from fairduel.service.api import guard
from fairduel.service.api.bodies import Empty
from fairduel.service.api.guard import call
from fairduel.service.commands.operating import find_study, find_voter
from fairduel.service.events.ledger import Ledger
from fairduel.service.problems import Problem, not_found
from fairduel.service.service import Service
from fairduel.service.study.study import Line, Number, Strict
from fairduel.votes.attacking.liars import TACTICS, TacticName

router = APIRouter(prefix="/api", tags=["operators"])
_MOST_SIMULATED = 5000  # votes


class RedTeam(Strict):
    """Simulated voters for a fork of the study; see :class:`fairduel.service.analysis.red_team.RedTeamPlan`."""

    attack: TacticName = "promote"
    item: Line | None = None
    liars: Annotated[Number, Field(ge=1, le=500)] = 10
    votes_each: Annotated[Number, Field(ge=1, le=1000)] = 20
    honest: Annotated[Number, Field(ge=0, le=500)] = 0
    seed: Annotated[Number, Field(ge=0, lt=2**31)] = 0

    @model_validator(mode="after")
    def _is_possible(self) -> "RedTeam":
        needs_item = TACTICS[self.attack].needs_item
        if (self.item is None) == needs_item:
            raise ValueError(f"the attack {self.attack!r} needs {'an' if needs_item else 'no'} item")
        if (self.liars + self.honest) * self.votes_each > _MOST_SIMULATED:
            raise ValueError(f"at most {_MOST_SIMULATED:,} votes can be simulated")
        return self


class CostLimits(Strict):
    """What campaigns may use; by default, what the study allows."""

    voters: Annotated[Number, Field(ge=1, le=MOST_ACCOUNTS)] | None = None
    votes_each: Annotated[Number, Field(ge=1, le=MOST_VOTES_EACH)] | None = None


class JobsReply(BaseModel):
    """The jobs of a study, newest first."""

    jobs: list[Job]


class TacticReply(BaseModel):
    """What simulated liars may do: they vote ``how``, where ``{item}`` stands for an item that the plan names."""

    name: str
    how: str
    needs_item: bool


class TacticsReply(BaseModel):
    """All tactics."""

    tactics: list[TacticReply]


@router.get("/tactics", response_model=TacticsReply)
async def list_tactics(_: guard.Operator) -> dict[str, list[dict[str, Any]]]:
    """List what simulated liars may do."""
    tactics = TACTICS.items()
    return {"tactics": [{"name": name, "how": each.how, "needs_item": each.needs_item} for name, each in tactics]}


@router.post("/studies/{study}/red-team", status_code=202)
async def start_red_team(service: guard.Running, _: guard.Operator, study: str, body: RedTeam) -> Job:
    """Let simulated liars vote in a fork of the study; nothing is written to the log."""
    position = await call(service, lambda ledger: _check_plan(ledger, study, body))
    return service.jobs.start(study, "red-team", body.model_dump(), position)


@router.post("/studies/{study}/cost", status_code=202)
async def start_cost(service: guard.Running, _: guard.Operator, study: str, body: CostLimits) -> Job:
    """Search for the cheapest campaign that makes the runner-up first within the study's limits, or given ones."""
    return await _search_cost(service, study, body)


async def update_cost(service: Service, study: str) -> None:
    """Search again after the study's limits changed, if an operator has asked before."""
    if any(job.kind == "cost" for job in service.jobs.of(study)):
        with contextlib.suppress(Problem):  # too many jobs are waiting
            await _search_cost(service, study, CostLimits())


async def _search_cost(service: Service, study: str, body: CostLimits) -> Job:
    from fairduel.service.analysis.what_if import allowed  # noqa: PLC0415  # slow: a server should be ready soon

    def limits(ledger: Ledger) -> tuple[dict[str, Any], int]:
        found = allowed(find_study(ledger, study), body.voters, body.votes_each)
        return asdict(found), ledger.state.position

    wanted, position = await call(service, limits)
    return service.jobs.start(study, "cost", wanted, position)


@router.post("/studies/{study}/voters/{voter}/effect", status_code=202)
async def start_effect(
    service: guard.Running,
    _: guard.Operator,
    study: str,
    voter: str,
    body: Empty,  # noqa: ARG001
) -> Job:
    """Compare the rankings with and without a voter, whether or not they are set aside; changes nothing."""

    def check(ledger: Ledger) -> int:
        find_voter(find_study(ledger, study), voter)
        return ledger.state.position

    return service.jobs.start(study, "effect", {"voter": voter}, await call(service, check))


@router.get("/studies/{study}/jobs", response_model=JobsReply)
async def list_jobs(service: guard.Running, _: guard.Operator, study: str) -> dict[str, list[Job]]:
    """List the jobs of a study that are still known, newest first."""
    await call(service, lambda ledger: find_study(ledger, study))
    return {"jobs": service.jobs.of(study)}


@router.get("/studies/{study}/jobs/{job}")
async def get_job(service: guard.Running, _: guard.Operator, study: str, job: str) -> Job:
    """Return a job, with its result once it is done."""
    return service.jobs.find(study, job)


def _check_plan(ledger: Ledger, study: str, body: RedTeam) -> int:
    """Refuse what the study does not allow; return the position of the log."""
    about = find_study(ledger, study).about
    if body.item is not None and body.item not in {item.name for item in about.items}:
        raise not_found("item")
    if about.votes_per_voter is not None and body.votes_each > about.votes_per_voter:
        raise Problem(422, "invalid", f"votes_each: this study allows {about.votes_per_voter} per voter.")
    return ledger.state.position
