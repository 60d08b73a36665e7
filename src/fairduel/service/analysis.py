"""What the recorded votes say: the ranking, how certain it is, and the evidence on voters, off the request path."""

import math
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
from scipy import special
from sqlalchemy import Connection, func, select

from fairduel.errors import FairduelError
from fairduel.service import models, schema
from fairduel.service.asking import asking
from fairduel.service.gold import GOLD_WEIGHT
from fairduel.service.subjects import Analysis, Subject
from fairduel.votes.auditing import Audit, audit
from fairduel.votes.certificates import certify
from fairduel.votes.ranking import Ranking
from fairduel.votes.stopping_rule import stopping
from fairduel.votes.votes import Votes
from fairduel.votes.words import counted_noun

_ALARM = 0.001  # p of the left/right balance
_MOST_BARS = 48
_WIDTHS = (1, 10, 60, 300, 900, 3600, 4 * 3600, 86_400, 7 * 86_400)  # seconds per bar of the activity
_RESULT = {"left": 1.0, "right": 0.0, "tie": 0.5}
_EVIDENCE = (
    "flagged",
    "why",
    "log10_evidence",
    "agreement",
    "agreement_low",
    "agreement_high",
    "target",
    "seconds_per_vote",
    "hasty",
)
Json = dict[str, Any]


def analyse(connection: Connection, subject: Subject, position: int) -> Analysis:
    """Rank the items of a study and gather the evidence on its voters, from all votes that count."""
    votes = recorded_votes(connection, subject)
    by_models = recorded_votes(connection, subject, apart=True) if subject.is_apart else None
    needed = len(subject.items)
    results: Json = {
        "needs": None,
        "sentence": "",
        "details": [],
        "advice": [],
        "basis": "all votes",
        "ranking": [],
        "everyone": [],
        "notes": [],
        "certificates": [],
        "stopping": [],
        "models": None,
        "activity": activity(np.zeros(0) if votes.time is None else votes.time),
        "balance": balance(int((votes.result == 1.0).sum()), int((votes.result == 0.0).sum())),
    }
    evidence: dict[str, Json] = {}
    ranking = None
    if len(votes) < needed:
        results["needs"] = f"The ranking starts at {counted_noun(needed, 'vote')}; there are {len(votes):,} so far."
    else:
        try:
            found = audit(votes, top=1)
        except FairduelError as error:
            results["needs"] = f"There is no ranking yet: {error}"
        else:
            results |= _findings(found)
            ranking = found.shown
            evidence = _evidence(found, subject)
    if by_models:
        results["models"] = models.apart(by_models, votes, results["ranking"])
    if subject.counts_models and subject.models:
        names = [subject.labels[voter] for voter in subject.models]
        results["details"] = [models.counted_sentence(votes, sorted(names)), *results["details"]]
    results["notes"] = [*results["notes"], *_gold_note(connection, subject)]
    results["asking"] = asking(connection, subject.study, subject.items, ranking)
    return Analysis(position, time.time(), len(votes), finite(results), finite(evidence))


class CountedVote(NamedTuple):
    """A vote as the duels' table has it."""

    voter: str
    context: int | None
    first: int
    second: int
    first_is_left: bool
    answer: str
    answered_at: float | None
    """None for an imported vote of an unknown time."""


def recorded_votes(
    connection: Connection, subject: Subject, others: Sequence[CountedVote] = (), *, apart: bool = False
) -> Votes:
    """Return the votes that count; the first item is the one shown on the left.

    Args:
        connection: Where to read.
        subject: The study.
        others: Votes to add at the end, by voters whom the subject has labels for.
        apart: Whether to return those of language models that are kept apart instead.
    """
    duels = schema.duels.c
    query = select(*(getattr(duels, name) for name in CountedVote._fields)).where(
        duels.study == subject.study, duels.status == "voted", duels.weight != GOLD_WEIGHT
    )
    voters = {voter: code for code, voter in enumerate(subject.labels) if voter not in subject.set_aside}
    if subject.is_apart:
        voters = {voter: code for voter, code in voters.items() if (voter in subject.models) == apart}
    rows = [row for row in (*connection.execute(query.order_by(duels.answered)), *others) if row.voter in voters]
    pairs = [(row.first, row.second) if row.first_is_left else (row.second, row.first) for row in rows]
    left, right = np.array(pairs, dtype=np.int32).reshape(-1, 2).T
    has_contexts = bool(subject.contexts)
    return Votes.from_arrays(
        subject.items,
        left,
        right,
        [_RESULT[row.answer] for row in rows],
        voter=[voters[row.voter] for row in rows],
        voters=list(subject.labels.values()),
        context=[row.context for row in rows] if has_contexts else None,
        contexts=subject.contexts if has_contexts else (),
        time=[row.answered_at for row in rows],
    )


def _gold_note(connection: Connection, subject: Subject) -> list[str]:
    """Say how many answers are not ranked because they were known."""
    duels = schema.duels.c
    gold = select(func.count()).where(
        duels.study == subject.study, duels.status == "voted", duels.weight == GOLD_WEIGHT
    )
    count = connection.execute(gold).scalar() or 0
    return [f"Not ranked: {counted_noun(count, 'answer')} to gold duels, whose winner is known."] if count else []


def _findings(found: Audit) -> Json:
    sentence, *details = found.summary()
    after = found.shown is not found.everyone
    return {
        "sentence": sentence,
        "details": details,
        "advice": [each.replace(" (flagged-rows.csv)", "") for each in found.advice()],  # a file of fairduel audit
        "basis": "after the audit" if after else "all votes",
        "ranking": _standings(found.shown),
        "everyone": _standings(found.everyone),
        "notes": [each.replace("like those in this file", "like those here") for each in found.shown.notes],
        "certificates": [
            {"item": each.item, "group": each.group, "rank": each.rank, "sentence": each.sentence, **each.numbers}
            for each in certify(found.votes, found.shown)
        ],
        "stopping": [
            {**asdict(each), "can_stop": each.can_stop, "sentence": each.sentence}
            for each in stopping(found.votes, found.shown)
        ],
    }


def _standings(ranking: Ranking) -> list[Json]:
    return [{name: value for name, value in row.items() if name != "plain_score"} for row in ranking.records()]


def _evidence(found: Audit, subject: Subject) -> dict[str, Json]:
    table = found.voters
    if table is None:
        return {}
    ids = {label: voter for voter, label in subject.labels.items()}
    tested = {ids[row["voter"]]: {name: row[name] for name in _EVIDENCE} for row in table.to_dicts()}
    return {voter: row for voter, row in tested.items() if not (subject.is_apart and voter in subject.models)}


def activity(times: "np.ndarray[Any, np.dtype[np.float64]]") -> list[Json]:
    """Count the votes per bar of equal width, from the first vote to the last, ``times`` (n,) in seconds.

    >>> [bar["votes"] for bar in activity(np.array([0.0, 0.5, 2.0]))]
    [2, 0, 1]
    """
    times = times[np.isfinite(times)]  # when imported votes were cast may be unknown, or earlier than those before them
    if len(times) == 0:
        return []
    first = float(times.min())
    span = float(times.max()) - first
    width = next((width for width in _WIDTHS if span / width < _MOST_BARS), math.ceil(span / _MOST_BARS))
    begin = math.floor(first / width)
    counts = np.bincount((times // width - begin).astype(np.int64))
    return [
        {"from": float((begin + bar) * width), "seconds": width, "votes": int(count)}
        for bar, count in enumerate(counts)
    ]


def balance(left: int, right: int) -> Json:
    """Compare how often the left and the right item won; sides are random, so both have the same chance.

    p is valid however often one looks: the reciprocal of the e-value ∫ qˡ(1 − q)ʳ dq / 2⁻ˡ⁻ʳ.

    >>> balance(40, 44)["alarm"], balance(90, 10)["alarm"]
    (False, True)
    """
    votes = left + right
    log_e = float(special.betaln(left + 1, right + 1)) + votes * math.log(2.0)
    p = min(1.0, math.exp(-log_e)) if votes else None
    alarm = p is not None and p < _ALARM
    shares = f"The left item won {left:,} of {votes:,} votes with a winner"
    sentence = (
        f"{shares}: more than chance explains, so some voters may favour a side."
        if alarm
        else f"{shares}; chance explains that."
    )
    return {"left": left, "right": right, "p": p, "alarm": alarm, "sentence": sentence if votes else "No votes yet."}


def finite(value: Any) -> Any:
    """Return JSON values with None for NaN and infinity, which JSON cannot hold."""
    if isinstance(value, dict):
        return {name: finite(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
