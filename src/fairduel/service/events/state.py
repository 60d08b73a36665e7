"""What the server knows: a fold of the log, kept in memory for the thread that runs the commands."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from fairduel.service.events.log import GENESIS, Event
from fairduel.service.keys import Holder, Role
from fairduel.service.study.gold import Compared, Gold, is_doubtful
from fairduel.service.study.learner import Learner
from fairduel.service.study.study import NewStudy


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
    weight: float
    repeats: str | None
    gold: bool

    @classmethod
    def of(cls, found: Any) -> Self:
        """Return it from its event, or from its row in table ``duels``."""
        return cls(*(getattr(found, name) for name in cls.__match_args__))

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
class Operator:
    """Someone who may operate the server, or look at all its studies."""

    operator: str
    name: str
    role: Role
    added: float
    is_removed: bool = False


class Stopped(NamedTuple):
    """Why and when a study closed by itself."""

    reason: str
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
    judged_by: str = ""
    """The operator who last set them aside or counted them again, and when."""
    judged_at: float = 0.0
    has_key: bool = False
    issued: int = 0
    """Duels, not counting those that show an undone one again."""
    votes: int = 0
    skips: int = 0
    open: dict[str, OpenDuel] = field(default_factory=dict)
    seen: set[Compared] = field(default_factory=set)
    tests: set[Compared] = field(default_factory=set)
    """Pairs of the gold duels that the voter got."""
    last: LastAnswer | None = None

    def count(self, answer: str, by: int) -> str:
        """Count an answer, or take it back; return the name under which the study counts it."""
        if answer == "skip":
            self.skips += by
            return "skipped"
        self.votes += by
        return "voted"


@dataclass(slots=True)
class StudyState:
    """A study and everyone in it."""

    study: str
    created: float
    about: NewStudy
    learner: Learner
    enabled: list[bool] = field(init=False)
    shown: list[int] = field(init=False)
    """Duels that the agent asked, by item."""
    priority: set[int] = field(default_factory=set)
    least_views: dict[int, int] = field(default_factory=dict)
    """Items with a minimum number of views of their own."""
    gold: Gold = field(default_factory=Gold)
    voters: dict[str, Voter] = field(default_factory=dict)
    models: list[Voter] = field(default_factory=list)
    """The voters that are language models."""
    participants: dict[str, str] = field(default_factory=dict)
    """Voters by the id that a crowd platform gave them."""
    counts: Counter[str] = field(default_factory=Counter)
    """Numbers of duels by outcome: voted, skipped, expired, undone."""
    imports: dict[str, int] = field(default_factory=dict)
    """Votes of each import, by the hash of its content."""
    refolded_without: frozenset[str] = frozenset()
    """The voters whose duels the learner left out when it was last refolded."""
    since: float = field(init=False)
    """When the study got the state that it has."""
    stopped: Stopped | None = None
    """Why it closed by itself, if it did."""
    erased_at: float = 0.0
    """When the personal data of all voters were last erased."""
    decided: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    """The last verdict on each group that was recorded: a tie or a winner and who, or neither."""

    def __post_init__(self) -> None:
        count = len(self.about.items)
        self.enabled, self.shown, self.since = [True] * count, [0] * count, self.created

    def enter(self, at: float) -> None:
        """Note when the state of the study changed."""
        self.since, self.stopped = at, None

    def open(self, duel: OpenDuel) -> None:
        """Add a duel that can be answered."""
        self.voters[duel.voter].open[duel.duel] = duel
        self.counts["open"] += 1

    def close(self, voter: str, duel: str, status: str) -> OpenDuel:
        """Remove a duel that can no longer be answered, and count it under its new status."""
        self.counts["open"] -= 1
        self.counts[status] += 1
        return self.voters[voter].open.pop(duel)

    @property
    def set_aside(self) -> frozenset[str]:
        """The voters whose votes do not count."""
        return frozenset(voter.voter for voter in self.voters.values() if voter.set_aside)

    @property
    def labels(self) -> dict[str, str]:
        """What analyses call the voters, by id."""
        return {
            voter: f"voter {number}" if known.model is None else f"{known.model} (voter {number})"
            for number, (voter, known) in enumerate(self.voters.items(), start=1)
        }

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
        self.operators: dict[str, Operator] = {}
        self.deleted: set[str] = set()

    def apply(self, event: Event[Any], *, learn: bool = True) -> None:
        """Take in the next event; without ``learn``, the learner is left as it is."""
        self.position, self.hash, self.at = event.position, event.hash, event.at
        event.body.apply(self, event)
        if learn and event.study in self.studies:
            self.studies[event.study].learner.fold(event)
