"""What the server knows: a fold of the log, kept in memory for the thread that runs the commands."""

from collections import Counter
from dataclasses import dataclass, field

from fairduel.service.keys import Holder
from fairduel.service.learner import Compared, Learner, compared
from fairduel.service.log import GENESIS, Event, Kind
from fairduel.service.study import NewStudy


@dataclass(slots=True)
class OpenDuel:
    """A duel that can be answered."""

    duel: str
    voter: str
    context: int | None
    first: int
    second: int
    first_is_left: bool
    deadline: float

    def winner(self, answer: str) -> int | None:
        """Return the item that an answer prefers, or None for a tie or a skip."""
        if answer not in {"left", "right"}:
            return None
        return self.first if (answer == "left") == self.first_is_left else self.second


@dataclass(slots=True)
class LastAnswer:
    """A voter's last answer, while it can be undone."""

    duel: OpenDuel
    answer: str
    at: float


@dataclass(slots=True)
class Voter:
    """Someone who votes in a study."""

    voter: str
    joined: float
    imported: bool = False
    """Whether they voted elsewhere; they have no key."""
    set_aside: bool = False
    votes: int = 0
    skips: int = 0
    open: dict[str, OpenDuel] = field(default_factory=dict)
    seen: set[Compared] = field(default_factory=set)
    last: LastAnswer | None = None


@dataclass(slots=True)
class StudyState:
    """A study and everyone in it."""

    study: str
    created: float
    about: NewStudy
    enabled: list[bool]
    shown: list[int]
    learner: Learner
    voters: dict[str, Voter] = field(default_factory=dict)
    participants: dict[str, str] = field(default_factory=dict)
    """Voters by the id that a crowd platform gave them."""
    counts: Counter[str] = field(default_factory=Counter)
    """Duels by what became of them: voted, skipped, expired, undone."""
    imports: dict[str, int] = field(default_factory=dict)
    """Votes of each import, by the hash of its content."""
    refolded_without: frozenset[str] = frozenset()
    """The voters whose duels the learner left out when it was last refolded."""

    @property
    def set_aside(self) -> frozenset[str]:
        """The voters whose votes do not count."""
        return frozenset(voter.voter for voter in self.voters.values() if voter.set_aside)


class State:
    """Everything that commands decide by; only :meth:`apply` changes it."""

    def __init__(self) -> None:
        self.position, self.hash, self.at = 0, GENESIS, 0.0
        self.studies: dict[str, StudyState] = {}
        self.keys: dict[str, Holder] = {}

    def apply(self, event: Event, *, learn: bool = True) -> None:
        """Take in the next event; without ``learn``, the learner is left as it is."""
        self.position, self.hash, self.at = event.position, event.hash, event.at
        study = self.studies.get(event.study)
        if event.kind is Kind.STUDY_CREATED:
            self._create(event)
            study = self.studies[event.study]
        elif event.kind is Kind.KEY_ADDED:
            self.keys[event.body["key"]] = Holder(event.body["scope"], event.study, event.body.get("voter", ""))
        elif event.kind is Kind.KEYS_REVOKED:
            revoked = Holder(event.body["scope"], event.study)
            self.keys = {key: holder for key, holder in self.keys.items() if holder != revoked}
        elif study is not None:
            _APPLIERS.get(event.kind, _ignore)(study, event)
        if learn and study is not None:
            study.learner.fold(event)

    def _create(self, event: Event) -> None:
        about = NewStudy.model_validate(event.body)
        count = len(about.items)
        self.studies[event.study] = StudyState(
            event.study, event.at, about, enabled=[True] * count, shown=[0] * count, learner=Learner(about)
        )


def _ignore(study: StudyState, event: Event) -> None:
    """Some events say nothing about the present."""


def _study_changed(study: StudyState, event: Event) -> None:
    study.about = study.about.model_copy(update=event.body)


def _item_changed(study: StudyState, event: Event) -> None:
    study.enabled[event.body["item"]] = event.body["enabled"]


def _voter_joined(study: StudyState, event: Event) -> None:
    study.voters[event.body["voter"]] = Voter(event.body["voter"], event.at, event.body.get("imported", False))


def _voter_changed(study: StudyState, event: Event) -> None:
    study.voters[event.body["voter"]].set_aside = event.body["set_aside"]


def _duel_issued(study: StudyState, event: Event) -> None:
    body = event.body
    names = ("duel", "voter", "context", "first", "second", "first_is_left", "deadline")
    add_open(study, OpenDuel(**{name: body[name] for name in names}))
    if not study.about.repeat_pairs:
        study.voters[body["voter"]].seen.add(compared(body["context"], body["first"], body["second"]))
    if body["repeats"] is None:
        study.shown[body["first"]] += 1
        study.shown[body["second"]] += 1


def add_open(study: StudyState, duel: OpenDuel) -> None:
    """Add a duel that can be answered."""
    study.voters[duel.voter].open[duel.duel] = duel
    study.counts["open"] += 1


def _close(study: StudyState, event: Event, status: str) -> OpenDuel:
    study.counts["open"] -= 1
    study.counts[status] += 1
    return study.voters[event.body["voter"]].open.pop(event.body["duel"])


def _answered(study: StudyState, event: Event) -> None:
    voter, answer = study.voters[event.body["voter"]], event.body["answer"]
    duel = _close(study, event, "skipped" if answer == "skip" else "voted")
    voter.votes += answer != "skip"
    voter.skips += answer == "skip"
    voter.last = LastAnswer(duel, answer, event.at) if not event.body["final"] else None


def _undone(study: StudyState, event: Event) -> None:
    voter = study.voters[event.body["voter"]]
    assert voter.last is not None
    was_skip = voter.last.answer == "skip"
    voter.votes -= not was_skip
    voter.skips -= was_skip
    voter.last = None
    study.counts["skipped" if was_skip else "voted"] -= 1
    study.counts["undone"] += 1


def _settled(study: StudyState, event: Event) -> None:
    study.voters[event.body["voter"]].last = None


def _expired(study: StudyState, event: Event) -> None:
    _close(study, event, "expired")


def _imported(study: StudyState, event: Event) -> None:
    study.imports[event.body["digest"]] = event.body["votes"]


def _refolded(study: StudyState, event: Event) -> None:
    study.refolded_without = frozenset(event.body["without"])


_APPLIERS = {
    Kind.STUDY_CHANGED: _study_changed,
    Kind.ITEM_CHANGED: _item_changed,
    Kind.VOTER_JOINED: _voter_joined,
    Kind.VOTER_CHANGED: _voter_changed,
    Kind.DUEL_ISSUED: _duel_issued,
    Kind.ANSWERED: _answered,
    Kind.UNDONE: _undone,
    Kind.SETTLED: _settled,
    Kind.EXPIRED: _expired,
    Kind.REFOLDED: _refolded,
    Kind.IMPORTED: _imported,
}
