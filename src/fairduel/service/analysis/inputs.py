"""The inputs and results of analyses and jobs, apart from their code, which is slow to import."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from fairduel.service.events.log import Json
from fairduel.service.events.state import StudyState

MOST_ACCOUNTS, MOST_VOTES_EACH = 100, 64
"""What a campaign may use if the study sets no limit."""


@dataclass(frozen=True)
class Subject:
    """What an analysis needs to know about a study."""

    study: str
    items: Sequence[str]
    contexts: Sequence[str]
    labels: dict[str, str]
    """The voters' names, by id."""
    set_aside: frozenset[str]
    models: frozenset[str] = frozenset()
    """The voters that are language models."""
    counts_models: bool = False
    """Whether language models are ranked with people."""
    false_votes: int = 0
    """How many of the votes that count may be false, as the verdict assumes."""
    votes_per_voter: int | None = None
    gold: Sequence[Sequence[int | None]] = ()
    """Known answers: context, both items and the better one."""

    @classmethod
    def of(cls, found: StudyState) -> Self:
        """Return what an analysis needs to know about a study, given its state."""
        return cls(
            study=found.study,
            items=[item.name for item in found.about.items],
            contexts=[context.name for context in found.about.contexts],
            labels=found.labels,
            set_aside=found.set_aside,
            models=frozenset(voter.voter for voter in found.models),
            counts_models=found.about.models == "counted",
            false_votes=found.about.false_votes,
            votes_per_voter=found.about.votes_per_voter,
            gold=[[*pair, winner] for pair, winner in found.gold.answers.items()],
        )

    @property
    def is_apart(self) -> bool:
        """Whether there are language models that are ranked apart from people."""
        return bool(self.models) and not self.counts_models

    def to_json(self) -> Json:
        """Return it as JSON values."""
        return vars(self) | {"set_aside": sorted(self.set_aside), "models": sorted(self.models)}

    @classmethod
    def from_json(cls, body: Json) -> Self:
        """Read it from JSON values."""
        return cls(**body | {"set_aside": frozenset(body["set_aside"]), "models": frozenset(body["models"])})


NO_RESULTS: Json = {
    "needs": "The votes are being analysed.",
    "basis": "all votes",
    "models": None,
    "table": {"columns": [], "rows": []},
    "balance": {"left": 0, "right": 0, "p": None, "alarm": False, "sentence": "No votes yet."},
    "asking": {"lately": 0, "pairs": [], "sentences": []},
    "beats": {"items": [], "wins": []},
    "activity": [],
    "course": [],
    **{name: [] for name in ("details", "advice", "ranking", "everyone", "notes", "certificates", "verdicts")},
}
"""The results of a study before any analysis."""


@dataclass(frozen=True)
class Analysis:
    """The results of a study at one position of the log."""

    position: int = 0
    computed: float | None = None
    votes: int = 0
    results: Json = field(default_factory=dict)
    evidence: dict[str, Json] = field(default_factory=dict)
    """Columns about each voter, by id."""
