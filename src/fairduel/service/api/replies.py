"""Replies that are put together from the state and the last analysis."""

from bisect import bisect_right
from collections.abc import Sequence
from operator import itemgetter
from statistics import median
from typing import Any

from sqlalchemy import select

from fairduel.service.analysis.inputs import NO_RESULTS, Analysis
from fairduel.service.commands.operating import find_study, find_voter, links
from fairduel.service.commands.team import name_of
from fairduel.service.events import schema
from fairduel.service.events.kinds import Answered, KeyAdded, Refolded, StudyCreated, VoterJoined, read_event
from fairduel.service.events.ledger import Ledger
from fairduel.service.events.log import KINDS
from fairduel.service.events.state import StudyState
from fairduel.service.keys import Holder
from fairduel.service.study.gold import tested
from fairduel.service.study.study import ShownSettings
from fairduel.votes.auditing.voter_columns import SERVED
from fairduel.words import counted_noun

Json = dict[str, Any]


def ballot(ledger: Ledger, study: str, *, joined: bool) -> Json:
    """Return what voters may know about a study."""
    about = find_study(ledger, study).about
    shown = about.model_dump(include={*ShownSettings.model_fields, "access", "keep_email"})
    return shown | {"study": study, "joined": joined, "bits": about.proof_of_work}


def counts(study: StudyState) -> Json:
    """Return the numbers of the study's duels by outcome."""
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
        "stopped": None if study.stopped is None else study.stopped._asdict(),
        "links": links(study),
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
            "archived": study.about.archived,
            "decided": [
                {"group": group, "leader": leader} for group, (state, leader) in study.decided.items() if state
            ],
            "items": len(study.about.items),
            "votes": study.counts["voted"],
            "voters": len(study.voters),
            **_models(study),
        }
        for study in reversed(ledger.state.studies.values())
    ]
    return {"studies": sorted(studies, key=itemgetter("archived"))}


def results_reply(ledger: Ledger, study: str, found: Analysis, *, stale: bool) -> Json:
    """Return the last analysis, with what is known without one."""
    here = find_study(ledger, study)
    waiting, name = here.counts["open"], here.learner.agent.title
    given = sum(voter.votes for voter in here.voters.values() if voter.imported and not here.is_apart(voter))
    asked = sum(here.shown) // 2 - given
    known = found.results or NO_RESULTS
    return known | {
        "advice": [*known["advice"], *_saturated(here)] if known["advice"] else [],
        "position": ledger.state.position,
        "computed": found.computed,
        "stale": stale,
        "votes": found.votes,
        "agent": {
            "name": name,
            "asked": asked,
            "open": waiting,
            "sentence": f"{name} has asked {counted_noun(asked, 'duel')}; {waiting:,} are waiting for an answer."
            + (f" It also learned from {counted_noun(given, 'imported vote')}." if given else ""),
            **known["asking"],
        },
        "counts": counts(here),
    }


def voters(ledger: Ledger, study: str, found: Analysis) -> list[Json]:
    """Return all voters with the evidence on them, most evidence first."""
    here = find_study(ledger, study)
    labels = here.labels
    personal = schema.personal.c
    query = select(personal.voter, personal.field, personal.text).where(
        personal.study == study, personal.field.in_(["name", "participant", "address"])
    )
    known: dict[tuple[str, str], str] = {(row.voter, row.field): row.text for row in ledger.connection().execute(query)}
    rows = [
        {
            "voter": voter.voter,
            "label": labels[voter.voter],
            "kind": "person" if voter.model is None else "model",
            "name": known.get((voter.voter, "name"), voter.model),
            "participant": known.get((voter.voter, "participant")),
            "address": known.get((voter.voter, "address")),
            "joined": voter.joined,
            "imported": voter.imported,
            "votes": voter.votes,
            "skips": voter.skips,
            "set_aside": voter.set_aside,
            "judged_by": name_of(ledger, voter.judged_by),
            "judged_at": voter.judged_at or None,
            "learned": here.is_learned(voter),
            **tested(*here.learner.tested(voter.voter)),
            **dict.fromkeys(SERVED),
            "why": "",
            **found.evidence.get(voter.voter, {}),
        }
        for voter in here.voters.values()
    ]
    return sorted(rows, key=_by_evidence)


def _by_evidence(row: Json) -> tuple[bool, bool, float, int]:
    evidence = row["log10_evidence"]
    return not row["set_aside"], not row["flagged"], -evidence if evidence is not None else 0.0, -row["votes"]


def joins(rows: list[Json]) -> list[Json]:
    """Return the addresses from which several voters joined, the most voters first."""
    found: dict[str, list[Json]] = {}
    for row in sorted(rows, key=itemgetter("joined")):
        if row["address"] is not None:
            found.setdefault(row["address"], []).append(row)
    shared = [
        {
            "address": address,
            "voters": len(group),
            "votes": sum(row["votes"] for row in group),
            "first": group[0]["joined"],
            "last": group[-1]["joined"],
            "in_a_minute": max(
                bisect_right(group, row["joined"] + 60.0, key=itemgetter("joined")) - place
                for place, row in enumerate(group)
            ),
        }
        for address, group in found.items()
        if len(group) > 1
    ]
    return sorted(shared, key=lambda each: -each["voters"])


def funnel(rows: Sequence[Json], limit: int | None) -> Json:
    """Return how far the people among the voters came who vote here, and how long they take.

    >>> rows = [{"votes": n, "seconds_per_vote": 2.0 * n, "kind": "person", "imported": False} for n in (1, 3)]
    >>> funnel(rows, 3)
    {'joined': 2, 'voted': 2, 'finished': 1, 'seconds_per_vote': 4.0}
    """
    people = [row for row in rows if row["kind"] == "person" and not row["imported"]]
    seconds = [row["seconds_per_vote"] for row in people if row["seconds_per_vote"] is not None]
    return {
        "joined": len(people),
        "voted": sum(row["votes"] > 0 for row in people),
        "finished": None if limit is None else sum(row["votes"] >= limit for row in people),
        "seconds_per_vote": median(seconds) if seconds else None,
    }


def _saturated(study: StudyState) -> list[str]:
    """Say that nobody who is here can be asked more, if so: advice to ask more needs others then."""
    about, people = study.about, [voter for voter in study.voters.values() if not (voter.imported or voter.set_aside)]
    limit = about.votes_per_voter
    may_vote = [voter for voter in people if limit is None or voter.votes < limit]
    if about.state != "open" or not people:
        return []
    if not may_vote:
        return [f"All {len(people):,} voters have used their {limit:,} votes: you need new voters, or a higher limit."]
    if not about.repeat_pairs and all(study.learner.is_exhausted(voter.seen) for voter in may_vote):
        return [
            "Your voters have compared all pairs already, and nobody gets a pair twice: you need new voters, or a "
            "study that repeats pairs."
        ]
    return []


def one_voter(ledger: Ledger, study: str, voter: str, found: Analysis) -> Json:
    """Return one voter with the evidence on them."""
    find_voter(find_study(ledger, study), voter)
    return next(row for row in voters(ledger, study, found) if row["voter"] == voter)


_NOT_ACTIONS = {VoterJoined.kind, Refolded.kind, KeyAdded.kind}
_MOST_ACTIONS = 500


def history(ledger: Ledger, study: str) -> Json:
    """Return what operators, or the server by the study's settings, did to a study, newest first."""
    find_study(ledger, study)
    kinds = [name for name, kind in KINDS.items() if not kind.about_duel and name not in _NOT_ACTIONS]
    query = select(schema.events).where(schema.events.c.kind.in_(kinds), schema.events.c.study == study)
    rows = ledger.connection().execute(query.order_by(schema.events.c.position.desc()).limit(_MOST_ACTIONS))
    actions = [
        {
            "position": event.position,
            "at": event.at,
            "by": name_of(ledger, event.by),
            "kind": event.body.kind,
            "about": {} if isinstance(event.body, StudyCreated) else event.body.written(),
        }
        for event in (read_event(*row) for row in rows)
    ]
    return {"actions": actions}


def head(ledger: Ledger) -> Json:
    """Return the end of the log."""
    state = ledger.state
    receipt = f"{state.position}-{state.hash.hex()}" if state.position else None
    return {"position": state.position, "receipt": receipt, "at": state.at}


def receipts(ledger: Ledger, holder: Holder) -> Json:
    """Return the proofs that the answers are in the log that a voter gave since they have this key."""
    events, answers, duels = schema.events, schema.answers, schema.duels.c
    query = (
        select(events, duels.status)
        .join(answers, answers.c.position == events.c.position)
        .join(schema.duels, duels.duel == answers.c.duel)
        .where(duels.study == holder.study, duels.voter == holder.voter, events.c.position > holder.since)
        .order_by(events.c.position)
    )
    found = [(read_event(*row), status) for *row, status in ledger.connection().execute(query)]
    return {
        "study": holder.study,
        "voter": holder.voter,
        "answers": [
            {
                "duel": event.body.duel,
                "answer": event.body.answer,
                "counted": isinstance(event.body, Answered) and status == "voted",
                "receipt": event.receipt,
            }
            for event, status in found
        ],
        "head": head(ledger)["receipt"],
    }
