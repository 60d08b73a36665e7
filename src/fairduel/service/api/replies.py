"""Replies that are put together from the state and the last analysis."""

from typing import Any

from sqlalchemy import select

from fairduel.service import schema
from fairduel.service.commands import find_study, find_voter
from fairduel.service.gold import tested
from fairduel.service.keys import Holder
from fairduel.service.ledger import Ledger
from fairduel.service.log import Kind, read_event
from fairduel.service.service import subject
from fairduel.service.state import StudyState
from fairduel.service.subjects import Analysis

Json = dict[str, Any]
_BALLOT = (
    "title",
    "question",
    "instructions",
    "state",
    "access",
    "ties",
    "skips",
    "comments",
    "undo_seconds",
    "votes_per_voter",
)
_UNKNOWN = dict.fromkeys(
    (
        "flagged",
        "log10_evidence",
        "agreement",
        "agreement_low",
        "agreement_high",
        "target",
        "seconds_per_vote",
        "hasty",
    )
)


def ballot(ledger: Ledger, study: str, *, joined: bool) -> Json:
    """Return what voters may know about a study."""
    about = find_study(ledger, study).about
    return {name: getattr(about, name) for name in _BALLOT} | {"study": study, "joined": joined}


def counts(study: StudyState) -> Json:
    """Return the study's duels by what became of them."""
    kinds = {"votes": "voted", "skips": "skipped", "expired": "expired", "undone": "undone", "open": "open"}
    numbers = {name: study.counts[kind] for name, kind in kinds.items()}
    others = {"voters": len(study.voters), **_models(study), "imported": sum(study.imports.values())}
    return {"issued": sum(numbers.values()), **numbers, **others}


def _models(study: StudyState) -> Json:
    """Return how many of the voters and of the votes are language models'."""
    return {"models": len(study.models), "model_votes": sum(voter.votes for voter in study.models)}


def study_reply(study: StudyState) -> Json:
    """Return a study as operators see it."""
    items = [
        {
            "number": number,
            **item.model_dump(exclude={"features"}),
            **study.item_settings(number),
            "shown": study.shown[number],
        }
        for number, item in enumerate(study.about.items)
    ]
    about = study.about.model_dump(exclude={"items": True, "contexts": {"__all__": {"features"}}})
    return about | {
        "dimension": study.learner.dimension,
        "study": study.study,
        "created": study.created,
        "items": items,
        "gold": _gold(study),
        "links": {"vote": f"vote/{study.study}"},
        "counts": counts(study),
    }


def _gold(study: StudyState) -> Json:
    """Return the known answers by their names."""
    about, gold = study.about, study.gold
    answers = [
        {
            "winner": about.items[winner].name,
            "loser": about.items[one if winner == other else other].name,
            "context": None if context is None else about.contexts[context].name,
        }
        for (context, one, other), winner in gold.answers.items()
    ]
    return {"answers": answers, "first": gold.first, "every": gold.every}


def list_studies(ledger: Ledger) -> Json:
    """Return all studies, newest first."""
    studies = [
        {
            "study": study.study,
            "title": study.about.title,
            "question": study.about.question,
            "state": study.about.state,
            "created": study.created,
            "items": len(study.about.items),
            "votes": study.counts["voted"],
            "voters": len(study.voters),
            **_models(study),
        }
        for study in ledger.state.studies.values()
    ]
    return {"studies": studies[::-1]}


def results(ledger: Ledger, study: str, found: Analysis, *, stale: bool) -> Json:
    """Return the last analysis, with what is known without one."""
    here = find_study(ledger, study)
    asked, waiting, name = here.learner.agent.asked, here.counts["open"], here.learner.agent.title
    empty: Json = {
        "needs": "The votes are being analysed.",
        "sentence": "",
        "basis": "all votes",
        "models": None,
        "balance": {"left": 0, "right": 0, "p": None, "alarm": False, "sentence": "No votes yet."},
        "asking": {"lately": 0, "pairs": [], "sentences": []},
        **{
            name: []
            for name in ("details", "advice", "ranking", "everyone", "notes", "certificates", "stopping", "activity")
        },
    }
    known = found.results or empty
    return known | {
        "position": ledger.state.position,
        "computed": found.computed,
        "stale": stale,
        "votes": found.votes,
        "agent": {
            "name": name,
            "asked": asked,
            "open": waiting,
            "sentence": f"{name} has asked {asked:,} duels; {waiting:,} are waiting for an answer.",
            **known["asking"],
        },
        "counts": counts(here),
    }


def voters(ledger: Ledger, study: str, found: Analysis) -> list[Json]:
    """Return all voters with the evidence on them, most evidence first."""
    here = find_study(ledger, study)
    labels = subject(ledger, study).labels
    personal = schema.personal.c
    query = select(personal.voter, personal.field, personal.text).where(
        personal.study == study, personal.field.in_(["name", "participant"])
    )
    known: dict[tuple[str, str], str] = {(row.voter, row.field): row.text for row in ledger.connection().execute(query)}
    rows = [
        {
            "voter": voter.voter,
            "label": labels[voter.voter],
            "kind": "person" if voter.model is None else "model",
            "name": known.get((voter.voter, "name"), voter.model),
            "participant": known.get((voter.voter, "participant")),
            "joined": voter.joined,
            "imported": voter.imported,
            "votes": voter.votes,
            "skips": voter.skips,
            "set_aside": voter.set_aside,
            "learned": here.is_learned(voter),
            **tested(*here.learner.tested(voter.voter)),
            "why": "",
            **_UNKNOWN,
            **found.evidence.get(voter.voter, {}),
        }
        for voter in here.voters.values()
    ]
    return sorted(rows, key=_by_evidence)


def _by_evidence(row: Json) -> tuple[bool, bool, float, int]:
    evidence = row["log10_evidence"]
    return not row["set_aside"], not row["flagged"], -evidence if evidence is not None else 0.0, -row["votes"]


def one_voter(ledger: Ledger, study: str, voter: str, found: Analysis) -> Json:
    """Return one voter with the evidence on them."""
    find_voter(find_study(ledger, study), voter)
    return next(row for row in voters(ledger, study, found) if row["voter"] == voter)


def receipts(ledger: Ledger, holder: Holder) -> Json:
    """Return the proofs that a voter's answers are in the log."""
    events, answers, duels = schema.events, schema.answers, schema.duels.c
    query = (
        select(events, duels.status)
        .join(answers, answers.c.position == events.c.position)
        .join(schema.duels, duels.duel == answers.c.duel)
        .where(duels.study == holder.study, duels.voter == holder.voter)
        .order_by(events.c.position)
    )
    found = [(read_event(*row), status) for *row, status in ledger.connection().execute(query)]
    state = ledger.state
    return {
        "study": holder.study,
        "voter": holder.voter,
        "answers": [
            {
                "duel": event.body["duel"],
                "answer": event.body["answer"],
                "counted": event.kind is Kind.ANSWERED and status == "voted",
                "receipt": event.receipt,
            }
            for event, status in found
        ],
        "head": f"{state.position}-{state.hash.hex()}",
    }
