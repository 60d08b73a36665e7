"""What the server knows: a fold of the log, kept in memory for the thread that runs the commands."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from fairduel.service.gold import Compared, Gold, compared, is_doubtful
from fairduel.service.keys import Holder
from fairduel.service.learner import Learner
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
    model: str | None = None
    """The name of a language model; None for a person."""
    imported: bool = False
    """Whether they voted elsewhere; they have no key."""
    set_aside: bool = False
    issued: int = 0
    """Duels, not counting those that show an undone one again."""
    votes: int = 0
    skips: int = 0
    open: dict[str, OpenDuel] = field(default_factory=dict)
    seen: set[Compared] = field(default_factory=set)
    tests: set[Compared] = field(default_factory=set)
    """Pairs of the gold duels that the voter got."""
    last: LastAnswer | None = None


@dataclass(slots=True)
class StudyState:
    """A study and everyone in it."""

    study: str
    created: float
    about: NewStudy
    enabled: list[bool]
    shown: list[int]
    """Duels that the agent asked, by item."""
    learner: Learner
    priority: set[int] = field(default_factory=set)
    least_views: dict[int, int] = field(default_factory=dict)
    """Items that need another number of views than the study says."""
    gold: Gold = field(default_factory=Gold)
    voters: dict[str, Voter] = field(default_factory=dict)
    models: list[Voter] = field(default_factory=list)
    """The voters that are language models."""
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

    def is_apart(self, voter: Voter) -> bool:
        """Whether a voter is a language model whose votes are kept apart from people's."""
        return voter.model is not None and self.about.models == "apart"

    def is_learned(self, voter: Voter) -> bool:
        """Whether the agent learns new votes of a voter."""
        return not (voter.set_aside or self.is_apart(voter) or is_doubtful(*self.learner.tested(voter.voter)))

    def item_settings(self, item: int) -> dict[str, Any]:
        """Return what can be changed about an item."""
        views = self.least_views.get(item)
        return {"enabled": self.enabled[item], "priority": item in self.priority, "least_views": views}

    def lead(self) -> int | None:
        """Return the item to show in the next duel because it has priority: the least shown one, every other duel."""
        items = [item for item in self.priority if self.enabled[item]]
        if not items or sum(self.shown) % 4:
            return None
        return min(items, key=lambda item: (self.shown[item], item))

    def missing_views(self) -> dict[int, int]:
        """Return how many more views items need before the agent is free, by item."""
        usual, own = self.about.least_views, self.least_views
        if not usual and not own:
            return {}
        missing = {item: own.get(item, usual) - shown for item, shown in enumerate(self.shown) if self.enabled[item]}
        return {item: count for item, count in missing.items() if count > 0}


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
    body = event.body
    item = body["item"]
    study.enabled[item] = body["enabled"]
    if "priority" in body:
        (study.priority.add if body["priority"] else study.priority.discard)(item)
    if body.get("least_views") is not None:
        study.least_views[item] = body["least_views"]
    elif "least_views" in body:
        study.least_views.pop(item, None)


def _gold_changed(study: StudyState, event: Event) -> None:
    study.gold = Gold.from_body(event.body)


def _voter_joined(study: StudyState, event: Event) -> None:
    body = event.body
    voter = Voter(body["voter"], event.at, body.get("model"), body.get("imported", False))
    study.voters[voter.voter] = voter
    if voter.model is not None:
        study.models.append(voter)


def _voter_changed(study: StudyState, event: Event) -> None:
    study.voters[event.body["voter"]].set_aside = event.body["set_aside"]


def _duel_issued(study: StudyState, event: Event) -> None:
    body = event.body
    names = ("duel", "voter", "context", "first", "second", "first_is_left", "deadline")
    add_open(study, OpenDuel(**{name: body[name] for name in names}))
    voter, pair = study.voters[body["voter"]], compared(body["context"], body["first"], body["second"])
    if not study.about.repeat_pairs:
        voter.seen.add(pair)
    if body.get("gold"):
        voter.tests.add(pair)
    if body["repeats"] is None:
        voter.issued += 1
    if body["repeats"] is None and body["weight"] > 0.0:
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
    Kind.GOLD_CHANGED: _gold_changed,
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
