"""What the recorded votes say: the ranking, how certain it is, and the evidence on voters, off the request path."""

import math
import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy import special
from sqlalchemy import Connection, exists, func, select

from fairduel.errors import FairduelError
from fairduel.service.analysis import language_models
from fairduel.service.analysis.charts import beats, course
from fairduel.service.analysis.inputs import NO_RESULTS, Analysis, Subject
from fairduel.service.commands.imports import IMPORT_KEY
from fairduel.service.events import schema
from fairduel.service.events.log import Json
from fairduel.service.study.gold import Compared, compared
from fairduel.votes.auditing.audit import Audit, audit
from fairduel.votes.auditing.known_answers import KnownAnswers, RightAnswers
from fairduel.votes.auditing.voter_columns import SERVED
from fairduel.votes.certifying.certificates import certify
from fairduel.votes.columns import shown_table
from fairduel.votes.ranking.rank import Ranking
from fairduel.votes.ranking.standings import RANKING
from fairduel.votes.votes import Votes
from fairduel.words import counted_noun, listed, shortened

_ALARM = 0.001  # p of the left/right balance
_NOTABLE = 0.05  # p from which the balance is called usual
_MOST_BARS = 48
_WIDTHS = (1, 10, 60, 300, 900, 3600, 4 * 3600, 86_400, 7 * 86_400)  # seconds per bar of the activity
_LATELY = 50  # duels
_MOST_SHOWN, _MOST_NAMED = 8, 3  # pairs
_FILES = re.compile(r" \([a-z-]+\.csv\)")  # that fairduel audit writes
_RESULT = {"left": 1.0, "right": 0.0, "tie": 0.5}


def analyse(connection: Connection, subject: Subject, position: int) -> Analysis:
    """Rank the items of a study and gather the evidence on its voters, from all votes that count."""
    votes = recorded_votes(connection, subject)
    by_models = recorded_votes(connection, subject, apart=True) if subject.is_apart else None
    needed = len(subject.items)
    results = NO_RESULTS | {
        "needs": None,
        "table": shown_table(RANKING, []),
        "activity": activity(np.zeros(0) if votes.time is None else votes.time),
        "balance": balance(int((votes.result == 1.0).sum()), int((votes.result == 0.0).sum())),
    }
    evidence: dict[str, Json] = {}
    ranking = None
    if len(votes) < needed:
        results["needs"] = f"The ranking starts at {counted_noun(needed, 'vote')}; there are {len(votes):,} so far."
    else:
        try:
            found = audit(
                votes,
                top=1,
                lies=subject.false_votes,
                votes_per_voter=subject.votes_per_voter,
                known=answered_gold(connection, subject),
            )
        except FairduelError as error:
            results["needs"] = f"There is no ranking yet: {error}"
        else:
            results |= _findings(found)
            results |= {"course": course(found), "beats": beats(found)}
            ranking = found.shown
            evidence = _evidence(found, subject)
    if by_models:
        results["models"] = language_models.apart(by_models, votes, results["ranking"])
    if subject.counts_models and subject.models:
        names = [subject.labels[voter] for voter in subject.models]
        results["details"] = [language_models.counted_sentence(votes, sorted(names)), *results["details"]]
    results["notes"] = [*results["notes"], *_gold_note(connection, subject)]
    results["asking"] = last_asked(connection, subject.study, subject.items, ranking)
    return Analysis(position, time.time(), len(votes), without_infinities(results), without_infinities(evidence))


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

    ``others`` are added at the end; with ``apart``, the votes are those of language models kept apart instead.
    """
    duels = schema.duels.c
    query = select(*(getattr(duels, name) for name in CountedVote._fields)).where(
        duels.study == subject.study, duels.status == "voted", ~duels.gold
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


def answered_gold(connection: Connection, subject: Subject) -> KnownAnswers:
    """Return how voters answered gold duels whose better item is still known; the last answer to a pair counts."""
    duels = schema.duels.c
    better = {compared(*pair): winner for *pair, winner in subject.gold}  # type: ignore[arg-type]
    columns = duels.voter, duels.context, duels.first, duels.second, duels.first_is_left, duels.answer
    query = select(*columns).where(duels.study == subject.study, duels.status == "voted", duels.gold)
    right = dict[str, dict[Compared, bool]]()
    for voter, context, first, second, first_is_left, answer in connection.execute(query.order_by(duels.answered)):
        pair = compared(context, first, second)
        if pair in better and answer != "tie" and voter in subject.labels:
            won = first if (answer == "left") == first_is_left else second
            right.setdefault(subject.labels[voter], {})[pair] = won == better[pair]
    return {voter: RightAnswers(sum(found.values()), len(found)) for voter, found in right.items()}


def _gold_note(connection: Connection, subject: Subject) -> list[str]:
    """Say how many answers are not ranked because they were known."""
    duels = schema.duels.c
    gold = select(func.count()).where(duels.study == subject.study, duels.status == "voted", duels.gold)
    count = connection.execute(gold).scalar() or 0
    return [f"Not ranked: {counted_noun(count, 'answer')} to gold duels, whose winner is known."] if count else []


def _findings(found: Audit) -> Json:
    after = found.shown is not found.everyone
    shown = replace(found.shown, certificates=certify(found.votes, found.shown))
    said = {sentence for verdict in found.verdicts for sentence in (verdict.headline, *verdict.details)}
    return {
        "verdicts": [verdict.record() for verdict in found.verdicts],
        "details": [sentence for sentence in found.summary() if sentence not in said],
        "advice": [_FILES.sub("", each) for each in found.advice()],
        "basis": "after the audit" if after else "all votes",
        "ranking": shown.records(),
        "table": shown_table(RANKING, shown.records()),
        "everyone": found.everyone.records(),
        "notes": list(found.shown.notes),
        "certificates": [each.record() for each in shown.certificates],
    }


def _evidence(found: Audit, subject: Subject) -> dict[str, Json]:
    table = found.voters
    if table is None:
        return {}
    ids = {label: voter for voter, label in subject.labels.items()}
    tested = {ids[row["voter"]]: {name: row[name] for name in SERVED} for row in table.to_dicts()}
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
    if alarm:
        sentence = f"{shares}: more than chance explains, so some voters may favour a side."
    elif p is not None and p < _NOTABLE:
        sentence = f"{shares}, which is unusual, but not rare enough for a warning (p = {p:.1g}; it takes {_ALARM})."
    else:
        sentence = f"{shares}, as is usual by chance."
    return {"left": left, "right": right, "p": p, "alarm": alarm, "sentence": sentence if votes else "No votes yet."}


def without_infinities(value: Any) -> Any:
    """Return JSON values with None for NaN and infinity, which JSON cannot hold."""
    if isinstance(value, dict):
        return {name: without_infinities(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [without_infinities(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


# ---------------------------------------------------------------------------- what the agent asks


def last_asked(connection: Connection, study: str, items: Sequence[str], ranking: Ranking | None) -> Json:
    """Describe the pairs of the last duels that the agent chose.

    Returns:
        JSON values: ``lately`` (how many duels), ``pairs`` (the most frequent, each with its ``duels`` and whether its
        order is ``settled``; null if unknown) and ``sentences``.
    """
    duels, answers = schema.duels.c, schema.answers.c
    imported = exists().where(answers.duel == duels.duel, answers.key.startswith(IMPORT_KEY))
    query = select(duels.first, duels.second).where(
        duels.study == study,
        duels.repeats.is_(None),
        duels.weight > 0.0,  # neither gold duels nor those of language models that are kept apart
        ~imported,
    )
    rows = connection.execute(query.order_by(duels.issued.desc()).limit(_LATELY)).all()
    pairs = Counter(tuple(sorted((items[row.first], items[row.second]))) for row in rows)
    common = sorted(pairs.items(), key=lambda entry: (-entry[1], entry[0]))
    shown = [
        {
            "one": one,
            "other": other,
            "duels": count,
            "settled": None if ranking is None else ranking.tells_apart(one, other),
        }
        for (one, other), count in common[:_MOST_SHOWN]
    ]
    return {"lately": len(rows), "pairs": shown, "sentences": _on_asking(common, len(rows), ranking)}


def _on_asking(common: list[tuple[tuple[str, ...], int]], total: int, ranking: Ranking | None) -> list[str]:
    if not total:
        return []
    named = [f"{count} compared {' with '.join(pair)}" for pair, count in common[:_MOST_NAMED]]
    sentences = [f"Of the last {counted_noun(total, 'duel')}, {listed(named)}."]
    if ranking is None:
        return sentences
    verdict = ranking.verdicts[0]
    if verdict.leader is not None:
        with_leader = sum(count for pair, count in common if verdict.leader in pair)
        return [*sentences, f"{with_leader} of them compared {verdict.leader} with other items."]
    among = sum(count for pair, count in common if set(pair) <= set(verdict.items))
    open_order = sum(count for pair, count in common if not ranking.tells_apart(*pair))
    likely = f"items that may be the best ({shortened(verdict.items)})"
    open_pairs = "items whose order is not settled: more votes help most there"
    return [*sentences, f"{among} of them were between {likely}, and {open_order} between {open_pairs}."]
