"""Bodies of requests and replies; those of results are in :mod:`~fairduel.service.api.result_bodies`."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, model_validator

from fairduel.service.keys import Scope
from fairduel.service.study import (
    Access,
    DuelSeconds,
    Format,
    GoldDuels,
    LeastViews,
    Line,
    Models,
    Number,
    Question,
    Settings,
    State,
    Strict,
    Text,
    Title,
    UndoSeconds,
    VotesPerVoter,
)

Answer = Literal["left", "right", "tie", "skip"]
VoterKind = Literal["person", "model"]


class Empty(Strict):
    """No fields."""


class KeyBody(Strict):
    """A key to keep in a cookie."""

    key: Annotated[str, Field(max_length=100)]


class Joining(Strict):
    """A voter who came by the link."""

    name: Line | None = None
    participant: Line | None = None


class Wanted(Strict):
    """How many open duels a voter wants to have."""

    count: Annotated[Number, Field(ge=1, le=3)] = 1


class Answering(Strict):
    """An answer to a duel."""

    answer: Answer
    seconds: Annotated[float, Field(ge=0, le=1e6)] | None = None
    comment: Annotated[Text, Field(max_length=2000)] | None = None
    next: Annotated[Number, Field(ge=0, le=3)] = 0
    """How many open duels the voter wants to have then; 0 to return none."""


class SettingsChange(Strict):
    """Settings to change; those that are absent stay."""

    title: Title = ""
    question: Question = ""
    instructions: Text = ""
    state: State = "open"
    votes_per_voter: VotesPerVoter = None
    ties: bool = True
    skips: bool = True
    comments: bool = False
    show_names: bool = False
    undo_seconds: UndoSeconds = 60
    duel_seconds: DuelSeconds = 3600
    completion_code: Line | None = None
    least_views: LeastViews = 0


class ItemChange(Strict):
    """What to change about an item; what is absent stays."""

    enabled: bool = True
    priority: bool = False
    least_views: LeastViews | None = None
    """How often it is shown before the agent is free; null for as often as the study says."""


class VoterChange(Strict):
    """Whether a voter's votes count."""

    set_aside: bool


class Invitations(Strict):
    """Voters to invite: so many people, or people or language models with these names."""

    kind: VoterKind = "person"

    count: Annotated[Number, Field(ge=1, le=1000)] | None = None
    names: Annotated[list[Line], Field(min_length=1, max_length=1000)] | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> "Invitations":
        if (self.count is None) == (self.names is None):
            raise ValueError("give either count or names")
        if self.kind == "model" and self.names is None:
            raise ValueError("language models need names")
        return self


class Session(BaseModel):
    """Whose key a request came with."""

    scope: Scope
    study: str | None


class Joined(BaseModel):
    """A new voter."""

    voter: str
    key: str


class Ballot(BaseModel):
    """What voters may know about a study."""

    study: str
    title: str
    question: str
    instructions: str
    state: State
    access: Access
    ties: bool
    skips: bool
    comments: bool
    undo_seconds: int
    votes_per_voter: int | None
    joined: bool


class ShownContext(BaseModel):
    """What a duel is about."""

    name: str
    text: str | None
    html: str | None


class Shown(BaseModel):
    """One side of a duel; ``html`` is the text if it is Markdown, safe to put into a page."""

    name: str | None
    text: str | None
    html: str | None
    image: str | None
    audio: str | None


class ShownDuel(BaseModel):
    """A duel as its voter sees it."""

    duel: str
    deadline: float
    context: ShownContext | None
    left: Shown
    right: Shown


class Progress(BaseModel):
    """How far a voter is."""

    answered: int
    votes: int
    of: int | None
    done: bool
    completion_code: str | None


class AskedReply(BaseModel):
    """A voter's open duels."""

    duels: list[ShownDuel]
    progress: Progress


class AnsweredReply(BaseModel):
    """What became of an answer."""

    duel: str
    answer: Answer
    counted: bool
    reason: str | None
    receipt: str
    progress: Progress
    duels: list[ShownDuel]


class UndoneReply(BaseModel):
    """The pair of an undone answer, to be answered again."""

    duel: ShownDuel
    progress: Progress


class ReceiptLine(BaseModel):
    """An answer and the proof that it is in the log."""

    duel: str
    answer: Answer
    counted: bool
    receipt: str


class Receipts(BaseModel):
    """All answers of a voter."""

    study: str
    voter: str
    answers: list[ReceiptLine]
    head: str


class ReceiptCheck(BaseModel):
    """Whether a receipt's event is in the log."""

    valid: bool
    position: int | None


class ListedStudy(BaseModel):
    """A study in the list of studies."""

    study: str
    title: str
    question: str
    state: State
    created: float
    items: int
    votes: int
    voters: int
    models: int
    """How many of the voters are language models."""
    model_votes: int


class ListedStudies(BaseModel):
    """All studies, newest first."""

    studies: list[ListedStudy]


class ShownItem(BaseModel):
    """An item as operators see it."""

    number: int
    name: str
    text: str | None
    image: str | None
    audio: str | None
    format: Format | None
    enabled: bool
    priority: bool
    least_views: int | None
    shown: int


class Counts(BaseModel):
    """Duels by what became of them, ``issued`` being the sum of the next five; voters; and how many are models."""

    issued: int
    votes: int
    skips: int
    expired: int
    undone: int
    open: int
    voters: int
    imported: int
    """Votes that were cast elsewhere; ``votes`` has them too."""
    models: int
    model_votes: int


class StudyReply(Settings):
    """A study as operators see it."""

    study: str
    created: float
    items: list[ShownItem]
    contexts: list[dict[str, Any]]
    access: Access
    format: Format
    dimension: int | None
    repeat_pairs: bool
    models: Models
    gold: GoldDuels | None
    """Null for observers."""
    agent: str
    agent_settings: dict[str, Any]
    seed: int
    links: dict[str, str | None]
    counts: Counts


class Invitation(BaseModel):
    """An invited voter; the key is shown once."""

    voter: str
    kind: VoterKind
    name: str | None
    key: str
    link: str


class InvitationsReply(BaseModel):
    """The invited voters."""

    invitations: list[Invitation]


class ObserverReply(BaseModel):
    """A key that shows the results; shown once."""

    key: str
    link: str


class VoterRow(BaseModel):
    """A voter and the evidence on them; null where unknown."""

    voter: str
    label: str
    kind: VoterKind
    name: str | None
    participant: str | None
    joined: float
    imported: bool
    votes: int
    skips: int
    set_aside: bool
    learned: bool
    """Whether the agent learns new votes of this voter."""
    gold: str
    """How the voter answered gold duels, in words."""
    gold_right: int
    gold_of: int
    gold_low: float | None
    gold_high: float | None
    flagged: bool | None
    why: str
    log10_evidence: float | None
    agreement: float | None
    agreement_low: float | None
    agreement_high: float | None
    target: str | None
    seconds_per_vote: float | None
    hasty: bool | None


class VotersReply(BaseModel):
    """All voters, most evidence first."""

    voters: list[VoterRow]
    votes: int
