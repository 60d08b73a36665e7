"""What voters do: join, get duels, answer them, and undo their last answer."""

from typing import Any

from sqlalchemy import func, select

from fairduel.service import schema
from fairduel.service.commands import add_key, add_voter, find_study, find_voter
from fairduel.service.gold import GOLD_WEIGHT, Compared, is_gold_turn, keyed_number
from fairduel.service.keys import Holder, first_is_left, new_id
from fairduel.service.learner import Proposal
from fairduel.service.ledger import Ledger
from fairduel.service.log import Event, Kind, read_event
from fairduel.service.markdown import rendered
from fairduel.service.problems import Problem, not_found
from fairduel.service.state import OpenDuel, StudyState, Voter
from fairduel.service.study import Format

MOST_OPEN = 3
"""Duels that a voter may have open at a time."""
_MOST_REFUSED = 10  # answers to one duel that are kept although it was answered
Reply = dict[str, Any]


def join(ledger: Ledger, study: str, name: str | None, participant: str | None) -> tuple[str, str]:
    """Add a voter who came by the link; return their id and key."""
    found = find_study(ledger, study)
    if found.about.state == "closed":
        raise _not_open(found)
    if found.about.access == "invitation":
        raise Problem(409, "not-invited", "This study is by invitation: open the link that you were sent.")
    if (participant is not None) != (found.about.access == "participant"):
        raise Problem(409, "not-invited", "Open the link that your crowd platform shows; it names the participant.")
    if participant in found.participants:
        voter = found.participants[participant]
        return voter, add_key(ledger, Holder("voter", study, voter))
    return add_voter(ledger, found, name, participant)


def ask(ledger: Ledger, holder: Holder, count: int) -> Reply:
    """Return a voter's open duels, with new ones until there are ``count``."""
    study, voter = _place(ledger, holder)
    now = ledger.now()
    for duel in [duel for duel in voter.open.values() if duel.deadline <= now]:
        _expire(ledger, study, duel)
    if study.about.state == "open":
        while len(voter.open) < count and _may_have_another(study, voter) and _issue(ledger, study, voter):
            pass
    return {"duels": [shown_duel(study, duel) for duel in voter.open.values()], "progress": _progress(study, voter)}


def answer(
    ledger: Ledger, holder: Holder, duel: str, key: str, given: str, seconds: float | None, comment: str | None
) -> Reply | Problem:
    """Record an answer to a duel, at most once."""
    study, voter = _place(ledger, holder)
    found = voter.open.get(duel)
    if found is None:
        return _answered_before(ledger, study, voter, duel, key, given, seconds)
    about = study.about
    if about.state == "closed":
        raise _not_open(study)
    if (given == "tie" and not about.ties) or (given == "skip" and not about.skips):
        raise Problem(422, "invalid", f"This study does not allow a {given}.")
    if comment is not None and not about.comments:
        raise Problem(422, "invalid", "This study does not take comments.")
    if found.deadline <= ledger.now():
        _expire(ledger, study, found)
        return _refused(ledger, study, voter, duel, key, given, seconds, "late")
    is_vote = given != "skip"
    votes, answered = voter.votes + is_vote, voter.votes + voter.skips + 1
    others = [each for each in voter.open if each != duel]
    body = {
        "duel": duel,
        "voter": voter.voter,
        "answer": given,
        "winner": found.winner(given),
        "key": key,
        "seconds": seconds,
        "settles": None if voter.last is None else voter.last.duel.duel,
        "final": about.undo_seconds == 0,
        "progress": {
            "answered": answered,
            "votes": votes,
            "of": about.votes_per_voter,
            "done": _is_done(study, voter, votes, open_duels=len(others)),
        },
    }
    return _reply(study, ledger.append(Kind.ANSWERED, study.study, body, {"comment": comment}))


def answer_and_ask(
    ledger: Ledger,
    holder: Holder,
    duel: str,
    key: str,
    given: str,
    seconds: float | None,
    comment: str | None,
    count: int,
) -> Reply | Problem:
    """Record an answer, and return the voter's open duels with it, with new ones until there are ``count``."""
    reply = answer(ledger, holder, duel, key, given, seconds, comment)
    if isinstance(reply, Problem):
        return reply
    return reply | {"duels": ask(ledger, holder, count)["duels"] if count else []}


def undo(ledger: Ledger, holder: Holder, duel: str) -> Reply:
    """Take back a voter's last answer and show the same pair again, as a new duel."""
    study, voter = _place(ledger, holder)
    last = voter.last
    if last is None or last.duel.duel != duel:
        again = next((each for each in voter.open.values() if _repeats(ledger, each.duel) == duel), None)
        if again is None:
            raise _cannot_undo(ledger, voter, duel)
    else:
        now = ledger.now()
        if now > last.at + study.about.undo_seconds or study.about.state == "closed":
            raise _cannot_undo(ledger, voter, duel)
        ledger.append(Kind.UNDONE, study.study, {"duel": duel, "voter": voter.voter})
        old = last.duel
        new, weight = new_id(), _weight(ledger, duel)
        body = {
            "duel": new,
            "voter": voter.voter,
            "context": old.context,
            "first": old.first,
            "second": old.second,
            "first_is_left": old.first_is_left,
            "weight": weight,
            "declined": False,
            "repeats": duel,
            "deadline": now + study.about.duel_seconds,
        }
        ledger.append(Kind.DUEL_ISSUED, study.study, body | _gold_mark(weight))
        again = voter.open[new]
    return {"duel": shown_duel(study, again), "progress": _progress(study, voter)}


def sweep(ledger: Ledger) -> None:
    """Append what time brings about: duels expire, and answers can no longer be undone."""
    now = ledger.now()
    for study in ledger.state.studies.values():
        undo_seconds = study.about.undo_seconds
        for voter in study.voters.values():
            if voter.open:
                for duel in [duel for duel in voter.open.values() if duel.deadline <= now]:
                    _expire(ledger, study, duel)
            last = voter.last
            if last is not None and now > last.at + undo_seconds:
                ledger.append(Kind.SETTLED, study.study, {"duel": last.duel.duel, "voter": voter.voter})


def shown_duel(study: StudyState, duel: OpenDuel) -> Reply:
    """Return a duel as its voter sees it."""
    left, right = (duel.first, duel.second) if duel.first_is_left else (duel.second, duel.first)
    context = None if duel.context is None else study.about.contexts[duel.context]
    return {
        "duel": duel.duel,
        "deadline": duel.deadline,
        "context": None
        if context is None
        else {"name": context.name, "text": context.text, "html": _html(context.text, study.about.format)},
        "left": _shown_item(study, left, duel.context),
        "right": _shown_item(study, right, duel.context),
    }


def _shown_item(study: StudyState, item: int, context: int | None) -> Reply:
    about, found = study.about, study.about.items[item]
    name = found.name if about.show_names else None
    text = found.text if context is None else about.contexts[context].contents[found.name]
    if text is None and found.image is None and found.audio is None:
        return {"name": name, "text": found.name, "html": None, "image": None, "audio": None}
    image, audio = (found.image, found.audio) if context is None else (None, None)
    html = _html(text, found.format or about.format)
    return {"name": name, "text": text, "html": html, "image": image, "audio": audio}


def _html(text: str | None, written: Format) -> str | None:
    return rendered(text) if text is not None and written == "markdown" else None


def _place(ledger: Ledger, holder: Holder) -> tuple[StudyState, Voter]:
    study = find_study(ledger, holder.study)
    return study, find_voter(study, holder.voter)


def _not_open(study: StudyState) -> Problem:
    return Problem(409, "not-open", f"This study is {study.about.state}.")


def _may_have_another(study: StudyState, voter: Voter) -> bool:
    limit = study.about.votes_per_voter
    return limit is None or voter.votes + len(voter.open) < limit


def _issue(ledger: Ledger, study: StudyState, voter: Voter) -> bool:
    gold = _gold_pair(ledger, study, voter)
    proposal = _propose(ledger, study, voter) if gold is None else Proposal(*gold, GOLD_WEIGHT, declined=False)
    if proposal is None:
        return False
    duel = new_id()
    body = (
        proposal._asdict()
        | _gold_mark(proposal.weight)
        | {
            "duel": duel,
            "voter": voter.voter,
            "first_is_left": first_is_left(ledger.secret, voter.voter, duel),
            "repeats": None,
            "deadline": ledger.now() + study.about.duel_seconds,
        }
    )
    ledger.append(Kind.DUEL_ISSUED, study.study, body)
    return True


def _gold_pair(ledger: Ledger, study: StudyState, voter: Voter) -> Compared | None:
    """Return the pair of the voter's next duel if it is to be gold and a known answer is left."""
    gold, number = study.gold, voter.issued
    if not gold.answers or not is_gold_turn(ledger.secret, voter.voter, number, first=gold.first, every=gold.every):
        return None
    enabled, tried = study.enabled, voter.tests | voter.seen
    left = [pair for pair in gold.answers if pair not in tried and enabled[pair[1]] and enabled[pair[2]]]
    return left[keyed_number(ledger.secret, f"which\n{voter.voter}\n{number}") % len(left)] if left else None


def _gold_mark(weight: float) -> Reply:
    """Return the field that marks a gold duel in the log."""
    return {"gold": True} if weight == GOLD_WEIGHT else {}


def _propose(ledger: Ledger, study: StudyState, voter: Voter) -> Proposal | None:
    """Choose a pair: for items that need more views, with an item that has priority, or as the agent wants."""
    learner, seen = study.learner, voter.seen
    if study.is_apart(voter):
        pair = learner.random_pair(seen, keyed_number(ledger.secret, f"pair\n{voter.voter}\n{voter.issued}"))
        return None if pair is None else Proposal(*pair, weight=0.0, declined=False)
    missing = study.missing_views()
    short = learner.propose_short(seen, study.shown, missing) if missing else None
    return short or learner.propose(seen, study.shown, study.lead())


def _expire(ledger: Ledger, study: StudyState, duel: OpenDuel) -> None:
    ledger.append(Kind.EXPIRED, study.study, {"duel": duel.duel, "voter": duel.voter})


def _is_done(study: StudyState, voter: Voter, votes: int, open_duels: int) -> bool:
    limit = study.about.votes_per_voter
    if limit is not None and votes >= limit:
        return True
    return open_duels == 0 and not study.about.repeat_pairs and study.learner.is_exhausted(voter.seen)


def _progress(study: StudyState, voter: Voter) -> Reply:
    done = _is_done(study, voter, voter.votes, len(voter.open))
    return {
        "answered": voter.votes + voter.skips,
        "votes": voter.votes,
        "of": study.about.votes_per_voter,
        "done": done,
        "completion_code": study.about.completion_code if done else None,
    }


def _reply(study: StudyState, event: Event) -> Reply:
    """Return the reply to an answer, which follows from its event, so that a retry gets the same."""
    body = event.body
    code = study.about.completion_code if body["progress"]["done"] else None
    return {
        "duel": body["duel"],
        "answer": body["answer"],
        "counted": event.kind is Kind.ANSWERED,
        "reason": None if event.kind is Kind.ANSWERED else body["reason"],
        "receipt": event.receipt,
        "progress": body["progress"] | {"completion_code": code},
    }


def _answered_before(
    ledger: Ledger, study: StudyState, voter: Voter, duel: str, key: str, given: str, seconds: float | None
) -> Reply | Problem:
    """Reply to an answer to a duel that is not open: a retry, a second answer, or a late one."""
    connection, events, answers, duels = ledger.connection(), schema.events, schema.answers, schema.duels.c
    found = select(duels.status).where(duels.duel == duel, duels.study == study.study, duels.voter == voter.voter)
    status = connection.execute(found).scalar()
    if status is None:
        raise not_found("duel")
    query = select(events).join(answers, answers.c.position == events.c.position)
    row = connection.execute(query.where(answers.c.duel == duel, answers.c.key == key)).one_or_none()
    if row is not None:
        event = read_event(*row)
        if event.body["answer"] != given:
            raise Problem(422, "key-reused", "This Idempotency-Key was used for another answer; use a new one.")
        if event.kind is Kind.REFUSED and event.body["reason"] == "repeated":
            raise _already_answered()
        return _reply(study, event)
    if status == "expired":
        return _refused(ledger, study, voter, duel, key, given, seconds, "late")
    kept = connection.execute(select(func.count()).select_from(answers).where(answers.c.duel == duel)).scalar() or 0
    if kept <= _MOST_REFUSED:
        _refused(ledger, study, voter, duel, key, given, seconds, "repeated")
    return _already_answered()


def _already_answered() -> Problem:
    return Problem(409, "already-answered", "This duel was already answered; the first answer counts.")


def _refused(
    ledger: Ledger,
    study: StudyState,
    voter: Voter,
    duel: str,
    key: str,
    given: str,
    seconds: float | None,
    reason: str,
) -> Reply:
    """Keep an answer that does not count."""
    progress = _progress(study, voter)
    del progress["completion_code"]  # not for the log
    body = {"duel": duel, "voter": voter.voter, "answer": given, "key": key, "seconds": seconds, "reason": reason}
    return _reply(study, ledger.append(Kind.REFUSED, study.study, body | {"progress": progress}))


def _repeats(ledger: Ledger, duel: str) -> str | None:
    query = select(schema.duels.c.repeats).where(schema.duels.c.duel == duel)
    return ledger.connection().execute(query).scalar()


def _weight(ledger: Ledger, duel: str) -> float:
    query = select(schema.duels.c.weight).where(schema.duels.c.duel == duel)
    return float(ledger.connection().execute(query).scalar_one())


def _cannot_undo(ledger: Ledger, voter: Voter, duel: str) -> Problem:
    duels = schema.duels.c
    known = select(duels.duel).where(duels.duel == duel, duels.voter == voter.voter)
    if ledger.connection().execute(known).scalar() is None:
        return not_found("duel")
    return Problem(409, "cannot-undo", "Only your last answer can be undone, and only for a short time.")
