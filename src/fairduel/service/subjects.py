"""What analyses and jobs are given and find; apart from how, which takes long to import."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

Json = dict[str, Any]
Attack = Literal["promote", "demote", "half-honest", "omnipresent", "inverters", "random votes"]
"""As in :func:`fairduel.votes.stress_tests.inject`, but on duels that the agent chooses."""
MOST_ACCOUNTS, MOST_VOTES_EACH = 100, 64
"""What a campaign may use if the study sets no limit."""


@dataclass(frozen=True)
class Subject:
    """What an analysis needs to know about a study."""

    study: str
    items: Sequence[str]
    contexts: Sequence[str]
    labels: dict[str, str]
    """What voters are called, by id."""
    set_aside: frozenset[str]
    models: frozenset[str] = frozenset()
    """The voters that are language models."""
    counts_models: bool = False
    """Whether language models are ranked with people."""

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


@dataclass(frozen=True)
class Analysis:
    """The results of a study at one position of the log."""

    position: int = 0
    computed: float | None = None
    votes: int = 0
    results: Json = field(default_factory=dict)
    evidence: dict[str, Json] = field(default_factory=dict)
    """Columns about each voter, by id."""
