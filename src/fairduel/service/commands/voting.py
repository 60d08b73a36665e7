"""What voters do: join, get duels, answer them, and undo their last answer."""

import hmac
from collections.abc import Sequence
from typing import Literal, NamedTuple

from sqlalchemy import func, select

from fairduel.service.commands.operating import add_key, add_voter, erase_all_personal, find_study, find_voter
from fairduel.service.events import schema
from fairduel.service.events.kinds import Answered, DuelIssued, Expired, Refused, Settled, Undone, read_event
from fairduel.service.events.ledger import Ledger
from fairduel.service.events.lifecycle import Decided, StudyOpened, StudyStopped
from fairduel.service.events.log import Event, Json
from fairduel.service.events.state import OpenDuel, StudyState, Voter
from fairduel.service.keys import Holder, derived_key, first_is_left, key_hash, new_id, signature
from fairduel.service.problems import Problem, not_found
from fairduel.service.study.gold import Compared, is_gold_turn, keyed_number
from fairduel.service.study.learner import Proposal
from fairduel.service.study.media import MEDIA, rendered
from fairduel.service.study.study import SIGN_INS, Format

_MOST_REFUSED = 10  # answers to one duel that are kept although it was answered


class Newcomer(NamedTuple):
    """Who wants to join by a link."""

    name: str | None = None
    participant: str | None = None
    signature: str | None = None
    """What the operator's link says to prove who the participant is."""
    nonce: str | None = None
    """Random characters that only this browser knows; the same again get the same voter and key."""
    address: str | None = None


def join(ledger: Ledger, study: str, who: Newcomer) -> tuple[str, str]:
    """Add a voter who came by the link; return their id and key."""
    found = find_study(ledger, study)
    access = found.about.access
    if found.about.state == "closed":
        raise _not_open(found)
    if access == "invitation":
        raise Problem(409, "not-invited", "This study is by invitation: open the link that you were sent.")
    if access in SIGN_INS and who.participant is None:
        raise Problem(409, "not-invited", "This study is for people who sign in.")
    if (who.participant is not None) != (access in {"participant", "platform", *SIGN_INS}):
        raise Problem(409, "not-invited", "Open the link that you were sent, or that your crowd platform shows.")
    if access not in {"link", "platform"}:
        right = signature(ledger.secret, study, who.participant or "")
        if not hmac.compare_digest(right, who.signature or ""):
            raise Problem(409, "not-invited", "This link is not signed; open the link that you were sent.")
    key, again = _derived(ledger, study, who.participant or "", who.nonce)
    if again is not None:
        return again.voter, key or ""
    if who.participant in found.participants:
        if access == "platform":
            raise Problem(409, "already-joined", "You have joined in another browser; please go on there.")
        voter = found.participants[who.participant]
        return voter, add_key(ledger, Holder("voter", study, voter), key)
    return add_voter(ledger, found, who.name, who.participant, address=who.address, key=key)


def redeem(ledger: Ledger, invitation: str, nonce: str | None) -> tuple[Holder, str]:
    """Exchange an invitation that works once for a voter's key."""
    invited = ledger.state.keys[key_hash(invitation)]
    key, again = _derived(ledger, invited.study, invitation, nonce)
    if again is not None:
        return again, key or ""
    if find_voter(find_study(ledger, invited.study), invited.voter).has_key:
        raise Problem(409, "already-joined", "This invitation was already used; go on in the browser that opened it.")
    holder = Holder("voter", invited.study, invited.voter)
    return holder, add_key(ledger, holder, key)


def _derived(ledger: Ledger, study: str, who: str, nonce: str | None) -> tuple[str | None, Holder | None]:
    """Return the key that follows from a nonce, and who holds it already: then this is a repeated request."""
    key = None if nonce is None else derived_key(ledger.secret, study, who, nonce)
    return key, None if key is None else ledger.state.keys.get(key_hash(key))


def ask(ledger: Ledger, holder: Holder, count: int) -> Json:
    """Return a voter's open duels, with new ones until there are ``count``."""
    study, voter = _place(ledger, holder)
    now = ledger.now()
    for duel in [duel for duel in voter.open.values() if duel.deadline <= now]:
        _expire(ledger, study, duel)
    if study.about.state == "open":
        while len(voter.open) < count and _may_have_another(study, voter) and _issue(ledger, study, voter):
            pass
    return {"duels": [shown_duel(study, duel) for duel in voter.open.values()], "progress": _progress(study, voter)}


class Given(NamedTuple):
    """What a voter answers."""

    duel: str
    key: str
    """The same key again means that it is the same answer."""
    answer: str
    seconds: float | None = None
    comment: str | None = None


def answer(ledger: Ledger, holder: Holder, given: Given) -> Json | Problem:
    """Record an answer to a duel, at most once."""
    study, voter = _place(ledger, holder)
    found = voter.open.get(given.duel)
    if found is None:
        return _answered_before(ledger, study, voter, given)
    about = study.about
    if about.state != "open":
        raise _not_open(study)
    if (given.answer == "tie" and not about.ties) or (given.answer == "skip" and not about.skips):
        raise Problem(422, "invalid", f"This study does not allow a {given.answer}.")
    if given.comment is not None and not about.comments:
        raise Problem(422, "invalid", "This study does not take comments.")
    if found.deadline <= ledger.now():
        _expire(ledger, study, found)
        return _refused(ledger, study, voter, given, "late")
    is_vote = given.answer != "skip"
    votes, answered = voter.votes + is_vote, voter.votes + voter.skips + 1
    others = [each for each in voter.open if each != given.duel]
    body = Answered(
        given.duel,
        voter.voter,
        given.answer,
        found.winner(given.answer),
        given.key,
        given.seconds,
        settles=None if voter.last is None else voter.last.duel.duel,
        final=about.undo_seconds == 0,
        progress={
            "answered": answered,
            "votes": votes,
            "of": about.votes_per_voter,
            "done": _is_done(study, voter, votes, open_duels=len(others)),
        },
    )
    if given.comment is None:
        recorded = ledger.append(study.study, body)
    else:
        recorded = ledger.append_personal(study.study, body, comment=given.comment)
    if about.stop_at_votes is not None and study.counts["voted"] >= about.stop_at_votes:
        ledger.append(study.study, StudyStopped("votes"))
    return _reply(study, recorded)


def answer_and_ask(ledger: Ledger, holder: Holder, given: Given, count: int) -> Json | Problem:
    """Record an answer, and return the voter's open duels with it, with new ones until there are ``count``."""
    reply = answer(ledger, holder, given)
    if isinstance(reply, Problem):
        return reply
    return reply | {"duels": ask(ledger, holder, count)["duels"] if count else []}


def undo(ledger: Ledger, holder: Holder, duel: str) -> Json:
    """Take back a voter's last answer and show the same pair again, as a new duel."""
    study, voter = _place(ledger, holder)
    last = voter.last
    if last is None or last.duel.duel != duel:
        again = next((each for each in voter.open.values() if each.repeats == duel), None)
        if again is None:
            raise _cannot_undo(ledger, voter, duel)
    else:
        now = ledger.now()
        if now > last.at + study.about.undo_seconds or study.about.state != "open":
            raise _cannot_undo(ledger, voter, duel)
        old, new = last.duel, new_id()
        ledger.append(study.study, Undone(duel, voter.voter))
        repeated = DuelIssued(
            new,
            voter.voter,
            old.context,
            old.first,
            old.second,
            old.first_is_left,
            old.weight,
            declined=False,
            repeats=duel,
            deadline=now + study.about.duel_seconds,
            gold=old.gold,
        )
        ledger.append(study.study, repeated)
        again = voter.open[new]
    return {"duel": shown_duel(study, again), "progress": _progress(study, voter)}


def sweep(ledger: Ledger) -> None:
    """Append what is due: studies open and close, duels expire, answers can no longer be undone, names are erased."""
    now = ledger.now()
    for study in ledger.state.studies.values():
        _keep_times(ledger, study, now)
        undo_seconds = study.about.undo_seconds
        for voter in study.voters.values():
            if voter.open:
                for duel in [duel for duel in voter.open.values() if duel.deadline <= now]:
                    _expire(ledger, study, duel)
            last = voter.last
            if last is not None and now > last.at + undo_seconds:
                ledger.append(study.study, Settled(last.duel.duel, voter.voter))


def stop_decided(ledger: Ledger, study: str, verdicts: Sequence[Json]) -> None:
    """Record the verdicts that changed, and close a study that is to stop once all are certain."""
    found = find_study(ledger, study)
    for each in verdicts:
        body = Decided(each["group"], each["state"], each["leader"], each["headline"], each["votes"])
        if found.decided.get(body.group, ("", None)) != body.verdict:
            ledger.append(study, body)
    if found.about.stop_when_decided and found.about.state == "open" and all(each["can_stop"] for each in verdicts):
        ledger.append(study, StudyStopped("verdict"))


def _keep_times(ledger: Ledger, study: StudyState, now: float) -> None:
    about = study.about
    if about.opens is not None and about.opens <= now:
        ledger.append(study.study, StudyOpened())
    if about.closes is not None and about.closes <= now:
        ledger.append(study.study, StudyStopped("time"))
    about, days = study.about, study.about.keep_personal_days
    is_due = about.state == "closed" and days is not None and study.since + days * 86_400 <= now
    if is_due and study.erased_at < study.since:
        erase_all_personal(ledger, study.study)


def shown_duel(study: StudyState, duel: OpenDuel) -> Json:
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


def _shown_item(study: StudyState, item: int, context: int | None) -> Json:
    about, found = study.about, study.about.items[item]
    name = found.name if about.show_names else None
    text = found.text if context is None else about.contexts[context].contents[found.name]
    media = {kind: getattr(found, kind) for kind in MEDIA}
    if text is None and not any(media.values()):
        return {"name": name, "text": found.name, "html": None, **media}
    html = _html(text, found.format or about.format)
    return {"name": name, "text": text, "html": html, **(media if context is None else dict.fromkeys(MEDIA))}


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
    proposal = _propose(ledger, study, voter) if gold is None else Proposal(*gold, weight=0.0, declined=False)
    if proposal is None:
        return False
    duel = new_id()
    body = DuelIssued.of(
        proposal,
        duel,
        voter.voter,
        first_is_left=first_is_left(ledger.secret, voter.voter, duel),
        deadline=ledger.now() + study.about.duel_seconds,
        gold=gold is not None,
    )
    ledger.append(study.study, body)
    return True


def _gold_pair(ledger: Ledger, study: StudyState, voter: Voter) -> Compared | None:
    """Return the pair of the voter's next duel if it is to be gold and a known answer is left."""
    gold, number = study.gold, voter.issued
    if not gold.answers or not is_gold_turn(ledger.secret, voter.voter, number, first=gold.first, every=gold.every):
        return None
    enabled, tried = study.enabled, voter.tests | voter.seen
    left = [pair for pair in gold.answers if pair not in tried and enabled[pair[1]] and enabled[pair[2]]]
    return left[keyed_number(ledger.secret, f"which\n{voter.voter}\n{number}") % len(left)] if left else None


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
    ledger.append(study.study, Expired(duel.duel, duel.voter))


def _is_done(study: StudyState, voter: Voter, votes: int, open_duels: int) -> bool:
    limit = study.about.votes_per_voter
    if limit is not None and votes >= limit:
        return True
    return open_duels == 0 and not study.about.repeat_pairs and study.learner.is_exhausted(voter.seen)


def ensure_results_shown(ledger: Ledger, holder: Holder) -> None:
    """Refuse to show results to a voter who may not see them (yet)."""
    study, voter = _place(ledger, holder)
    is_over = study.about.state == "closed" or _is_done(study, voter, voter.votes, len(voter.open))
    if not (study.about.page.show_results and is_over):
        raise not_found("study")


def _progress(study: StudyState, voter: Voter) -> Json:
    done = _is_done(study, voter, voter.votes, len(voter.open))
    return {
        "answered": voter.votes + voter.skips,
        "votes": voter.votes,
        "of": study.about.votes_per_voter,
        "done": done,
        **_after(study, done=done),
    }


def _after(study: StudyState, *, done: bool) -> Json:
    """Return what a voter gets in the end."""
    about = study.about
    return {
        "completion_code": about.completion_code if done else None,
        "completion_url": about.after_completion if done else None,
    }


def _reply(study: StudyState, event: Event[Answered] | Event[Refused]) -> Json:
    """Return the reply to an answer, which follows from its event, so that a retry gets the same."""
    body = event.body
    return {
        "duel": body.duel,
        "answer": body.answer,
        "counted": isinstance(body, Answered),
        "reason": None if isinstance(body, Answered) else body.reason,
        "receipt": event.receipt,
        "progress": body.progress | _after(study, done=body.progress["done"]),
    }


def _answered_before(ledger: Ledger, study: StudyState, voter: Voter, given: Given) -> Json | Problem:
    """Json to an answer to a duel that is not open: a retry, a second answer, or a late one."""
    connection, events, answers, duels = ledger.connection(), schema.events, schema.answers, schema.duels.c
    found = select(duels.status).where(duels.duel == given.duel, duels.study == study.study, duels.voter == voter.voter)
    status = connection.execute(found).scalar()
    if status is None:
        raise not_found("duel")
    query = select(events).join(answers, answers.c.position == events.c.position)
    row = connection.execute(query.where(answers.c.duel == given.duel, answers.c.key == given.key)).one_or_none()
    if row is not None:
        event = read_event(*row)
        if event.body.answer != given.answer:
            raise Problem(422, "key-reused", "This Idempotency-Key was used for another answer; use a new one.")
        if isinstance(event.body, Refused) and event.body.reason == "repeated":
            raise _already_answered()
        return _reply(study, event)
    if status == "expired":
        return _refused(ledger, study, voter, given, "late")
    kept = select(func.count()).select_from(answers).where(answers.c.duel == given.duel)
    if connection.execute(kept).scalar_one() <= _MOST_REFUSED:
        _refused(ledger, study, voter, given, "repeated")
    return _already_answered()


def _already_answered() -> Problem:
    return Problem(409, "already-answered", "This duel was already answered; the first answer counts.")


def _refused(
    ledger: Ledger, study: StudyState, voter: Voter, given: Given, reason: Literal["late", "repeated"]
) -> Json:
    """Keep an answer that does not count."""
    progress = _progress(study, voter)
    del progress["completion_code"], progress["completion_url"]  # not for the log
    body = Refused(given.duel, voter.voter, given.answer, given.key, given.seconds, reason, progress)
    return _reply(study, ledger.append(study.study, body))


def _cannot_undo(ledger: Ledger, voter: Voter, duel: str) -> Problem:
    duels = schema.duels.c
    known = select(duels.duel).where(duels.duel == duel, duels.voter == voter.voter)
    if ledger.connection().execute(known).scalar() is None:
        return not_found("duel")
    return Problem(409, "cannot-undo", "Only your last answer can be undone, and only for a short time.")
