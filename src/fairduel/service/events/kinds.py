"""The kinds of events: what each holds, and what it changes in the state, the tables and the learner.

``change`` says what becomes of the state (``apply``: of the whole server's), ``write`` of the tables and ``learn`` of
the learner. Whatever an event changes follows from the event and from those before it.
"""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

from fairduel.service.events.lifecycle import Deleted
from fairduel.service.events.log import (
    ABSENT,
    KINDS,
    Absent,
    Body,
    DamagedLogError,
    Event,
    Json,
    is_deleted,
    recorded,
)
from fairduel.service.events.schema import Changes
from fairduel.service.events.state import LastAnswer, OpenDuel, State, StudyState, Voter
from fairduel.service.keys import Holder, Scope
from fairduel.service.study.gold import Gold, compared, known_answers
from fairduel.service.study.learner import Learner, Proposal
from fairduel.service.study.study import NewStudy, Settings

_UNANSWERED = dict.fromkeys(("answer", "answered", "answered_at", "seconds")) | {"status": "open", "settled": False}


# ---------------------------------------------------------------------------- studies, keys and voters


@dataclass(frozen=True, slots=True)
class _Settings(Body):
    settings: Json

    @classmethod
    def read(cls, values: Json) -> Self:
        return cls(values)

    def written(self) -> Json:
        return self.settings


@recorded("study created")
class StudyCreated(_Settings):
    """A study began, with everything but its known answers."""

    def apply(self, state: State, event: Event[Any]) -> None:
        about = NewStudy.model_validate(self.settings)
        state.studies[event.study] = StudyState(event.study, event.at, about, Learner(about))


@recorded("study changed")
class StudyChanged(_Settings):
    """Some settings changed."""

    def change(self, study: StudyState, event: Event[Any]) -> None:
        valid = Settings.model_validate({"question": study.about.question} | self.settings)
        study.about = study.about.model_copy(update={name: getattr(valid, name) for name in self.settings})
        if "state" in self.settings:
            study.enter(event.at)

    def notice(self, study: StudyState | None, by: str) -> str:
        return f"{by} changed it to {self.settings['state']}." if "state" in self.settings else ""


@recorded("item changed")
class ItemChanged(Body):
    """An item appears in new duels, or does so no longer; or its priority or its minimum number of views changed."""

    item: int
    enabled: bool
    priority: bool | None = None
    least_views: int | Absent | None = ABSENT

    def change(self, study: StudyState, event: Event[Any]) -> None:
        study.enabled[self.item] = self.enabled
        if self.priority is not None:
            (study.priority.add if self.priority else study.priority.discard)(self.item)
        if self.least_views is None:
            study.least_views.pop(self.item, None)
        elif self.least_views is not ABSENT:
            study.least_views[self.item] = self.least_views

    def learn(self, learner: Learner) -> None:
        learner.enabled[self.item] = self.enabled


@recorded("known answers changed")
class GoldChanged(Body):
    """Other answers are known, each a context, the winner and the loser; or voters get them more or less often."""

    answers: Sequence[Sequence[Any]]
    first: int
    every: int

    @classmethod
    def of(cls, gold: Gold) -> Self:
        """Return the event after which these answers are known."""
        answers = [[context, winner, one + other - winner] for (context, one, other), winner in gold.answers.items()]
        return cls(answers, gold.first, gold.every)

    @property
    def gold(self) -> Gold:
        """What is known afterwards."""
        return Gold(known_answers(self.answers), self.first, self.every)

    def change(self, study: StudyState, event: Event[Any]) -> None:
        study.gold = self.gold

    def learn(self, learner: Learner) -> None:
        learner.know(known_answers(self.answers))


@recorded("key added")
class KeyAdded(Body):
    """A key exists, of which only the hash is known."""

    scope: Scope
    key: str
    voter: str | None = None
    operator: str | None = None

    def apply(self, state: State, event: Event[Any]) -> None:
        holder = Holder(self.scope, event.study, self.voter or "", self.operator or "", since=event.position)
        state.keys[self.key] = holder
        if self.scope == "voter":
            state.studies[event.study].voters[self.voter or ""].has_key = True


@recorded("keys revoked")
class KeysRevoked(Body):
    """The keys of an operator, or of the observers of a study, work no longer."""

    scope: Scope
    operator: str | None = None

    def apply(self, state: State, event: Event[Any]) -> None:
        revoked = Holder(self.scope, event.study, operator=self.operator or "")
        state.keys = {key: holder for key, holder in state.keys.items() if holder != revoked}


@recorded("voter joined")
class VoterJoined(Body):
    """Someone votes in the study: a person, or the language model of that name; perhaps they voted elsewhere."""

    voter: str
    model: str | None = None
    imported: bool = False
    name: str | None = None
    """Salted hash of the name."""
    participant: str | None = None
    """Salted hash of the id that a crowd platform gave."""
    address: str | None = None
    """Salted hash of the pseudonym of the address they joined from."""

    def change(self, study: StudyState, event: Event[Any]) -> None:
        study.voters[self.voter] = voter = Voter(self.voter, event.at, self.model, self.imported)
        if voter.model is not None:
            study.models.append(voter)


@recorded("voter changed")
class VoterChanged(Body):
    """A voter's votes count no longer, or again."""

    voter: str
    set_aside: bool

    def change(self, study: StudyState, event: Event[Any]) -> None:
        voter = study.voters[self.voter]
        voter.set_aside, voter.judged_by, voter.judged_at = self.set_aside, event.by, event.at

    def learn(self, learner: Learner) -> None:
        (learner.set_aside.add if self.set_aside else learner.set_aside.discard)(self.voter)


@recorded("personal data erased")
class PersonalErased(Body):
    """Names, participant ids, addresses and comments are gone, of one voter or of all; they were never in the log."""

    voter: str | None = None

    def change(self, study: StudyState, event: Event[Any]) -> None:
        gone = self.voter
        study.participants = {name: voter for name, voter in study.participants.items() if gone not in {None, voter}}
        if gone is None:
            study.erased_at = event.at


@recorded("learner refolded")
class Refolded(Body):
    """A new learner took over that got the recorded pairs, but not those of some voters."""

    without: Sequence[str]

    def change(self, study: StudyState, event: Event[Any]) -> None:
        study.refolded_without = frozenset(self.without)


@recorded("votes imported")
class Imported(Body):
    """Votes that were cast elsewhere have been recorded."""

    digest: str
    votes: int
    voters: int

    def change(self, study: StudyState, event: Event[Any]) -> None:
        study.imports[self.digest] = self.votes


# ---------------------------------------------------------------------------- duels


class _AboutDuel(Body):
    __slots__ = ()
    about_duel = True


@recorded("duel issued")
class DuelIssued(_AboutDuel):
    """A pair was shown to a voter."""

    duel: str
    voter: str
    context: int | None
    first: int
    second: int
    first_is_left: bool
    weight: float
    """What the agent says the duel counts; 0 if the agent did not ask it. Of a gold duel it says nothing."""
    declined: bool
    """Whether another pair took the place of the agent's choice."""
    repeats: str | None
    """The undone duel whose pair it shows again."""
    deadline: float
    given: bool | None = None
    """Whether the pair was given to the agent instead of chosen by it."""
    gold: bool = False
    """Whether the answer is known."""

    @classmethod
    def of(
        cls, pair: Proposal, duel: str, voter: str, *, first_is_left: bool, deadline: float, gold: bool = False
    ) -> Self:
        """Return the event after which a pair is shown to a voter for the first time."""
        return cls(
            duel, voter, first_is_left=first_is_left, repeats=None, deadline=deadline, gold=gold, **pair._asdict()
        )

    def change(self, study: StudyState, event: Event[Any]) -> None:
        study.open(OpenDuel.of(self))
        voter, pair = study.voters[self.voter], compared(self.context, self.first, self.second)
        if not study.about.repeat_pairs:
            voter.seen.add(pair)
        if self.gold:
            voter.tests.add(pair)
        if self.repeats is None:
            voter.issued += 1
            if self.weight > 0.0:
                study.shown[self.first] += 1
                study.shown[self.second] += 1

    def write(self, changes: Changes, event: Event[Any]) -> None:
        issued = {"study": event.study, "issued": event.position, "issued_at": event.at}
        fields = {name: getattr(self, name) for name in OpenDuel.__match_args__}
        changes.duels[self.duel] = fields | issued | _UNANSWERED

    def learn(self, learner: Learner) -> None:
        if self.repeats is not None:
            learner.repeat(self.repeats, self.duel)
        elif self.gold:
            learner.test(self.duel, compared(self.context, self.first, self.second))
        elif self.weight > 0.0:
            asked = Proposal(self.context, self.first, self.second, self.weight, self.declined, bool(self.given))
            learner.ask(self.duel, asked)

    def is_left_out(self, without: Collection[str]) -> bool:
        """Whether the learner never asked it; known answers go on telling who is honest."""
        return self.voter in without and not self.gold


@recorded("answered")
class Answered(_AboutDuel):
    """A duel got the answer that counts."""

    duel: str
    voter: str
    answer: str
    winner: int | None
    key: str
    seconds: float | None
    """How long the voter took, as the voter's browser measured it."""
    settles: str | None
    """The voter's duel before, whose answer can no longer be undone."""
    final: bool
    """Whether the answer cannot be undone."""
    progress: Json
    cast_at: float | Absent | None = ABSENT
    """When an imported vote was cast, if known."""
    comment: str | None = None
    """Salted hash of the comment."""

    @property
    def is_skip(self) -> bool:
        return self.answer == "skip"

    @property
    def _status(self) -> str:
        return "skipped" if self.is_skip else "voted"

    def change(self, study: StudyState, event: Event[Any]) -> None:
        duel, voter = study.close(self.voter, self.duel, self._status), study.voters[self.voter]
        voter.count(self.answer, 1)
        voter.last = None if self.final else LastAnswer(duel, self.answer, event.at)

    def write(self, changes: Changes, event: Event[Any]) -> None:
        changes.add_answer(event.position, self.duel, self.key)
        if self.settles is not None:
            changes.update(self.settles, settled=True)
        changes.update(
            self.duel,
            status=self._status,
            answer=self.answer,
            answered=event.position,
            answered_at=event.at if self.cast_at is ABSENT else self.cast_at,
            seconds=self.seconds,
            settled=self.final,
        )

    def learn(self, learner: Learner) -> None:
        learner.settle(self.voter)
        learner.hold(self.voter, self.duel, self.winner, is_vote=not self.is_skip)
        if self.final:
            learner.settle(self.voter)


@recorded("answer refused")
class Refused(_AboutDuel):
    """An answer came too late, or to a duel that had another one; it does not count."""

    duel: str
    voter: str
    answer: str
    key: str
    seconds: float | None
    reason: Literal["late", "repeated"]
    progress: Json

    def write(self, changes: Changes, event: Event[Any]) -> None:
        changes.add_answer(event.position, self.duel, self.key)


@dataclass(frozen=True, slots=True)
class _DuelOf(_AboutDuel):
    duel: str
    voter: str


@recorded("answer undone")
class Undone(_DuelOf):
    """A voter took back the last answer."""

    def change(self, study: StudyState, event: Event[Any]) -> None:
        voter = study.voters[self.voter]
        assert voter.last is not None
        study.counts[voter.count(voter.last.answer, -1)] -= 1
        study.counts["undone"] += 1
        voter.last = None

    def write(self, changes: Changes, event: Event[Any]) -> None:
        changes.update(self.duel, status="undone", settled=True)

    def learn(self, learner: Learner) -> None:
        learner.forget_answer(self.voter)


@recorded("answer settled")
class Settled(_DuelOf):
    """The time is over in which an answer can be undone."""

    def change(self, study: StudyState, event: Event[Any]) -> None:
        study.voters[self.voter].last = None

    def write(self, changes: Changes, event: Event[Any]) -> None:
        changes.update(self.duel, settled=True)

    def learn(self, learner: Learner) -> None:
        learner.settle(self.voter)


@recorded("duel expired")
class Expired(_DuelOf):
    """A duel was not answered in time."""

    def change(self, study: StudyState, event: Event[Any]) -> None:
        study.close(self.voter, self.duel, "expired")

    def write(self, changes: Changes, event: Event[Any]) -> None:
        changes.update(self.duel, status="expired")

    def learn(self, learner: Learner) -> None:
        learner.cancel(self.duel)


def read_event(position: int, study: str, kind: str, at: float, text: str, digest: bytes) -> Event[Any]:
    """Rebuild an event from its row, without checking its hash."""
    if is_deleted(text):
        return Event(position, study, at, Deleted(kind), text, digest)
    try:
        values = json.loads(text)
        by = values.pop("by", "")
        return Event(position, study, at, KINDS[kind].read(values), text, digest, by)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DamagedLogError(f"event {position} of the log is damaged: {error}.") from error
