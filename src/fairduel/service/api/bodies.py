"""Bodies of requests and replies; those of results are in :mod:`~fairduel.service.api.result_bodies`."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, Field, model_validator

from fairduel.service.api.derived import TableRow, row_of
from fairduel.service.events.lifecycle import Reason
from fairduel.service.keys import Role, Scope
from fairduel.service.study.study import (
    Access,
    Content,
    Features,
    FirstSettings,
    GoldDuels,
    Item,
    Language,
    LeastViews,
    Line,
    Media,
    Number,
    Question,
    Settings,
    ShownSettings,
    State,
    Strict,
    Text,
)
from fairduel.votes.auditing.voter_columns import SERVED, VOTERS

Answer = Literal["left", "right", "tie", "skip"]
VoterKind = Literal["person", "model"]
_MOST_OPEN = 3  # duels that a voter may have open at a time


Nonce = Annotated[str, Field(pattern="^[!-~]{16,64}$")]


class WrongField(BaseModel):
    """A field of a body that is invalid, and why."""

    field: str
    problem: str


class Refusal(BaseModel):
    """Why a request was refused, as RFC 9457 describes it."""

    type: str
    title: str
    status: int
    code: str
    """The reason, for programs."""
    detail: str
    """The reason, for people."""
    errors: list[WrongField] = []


class Empty(Strict):
    """No fields."""


class KeyBody(Strict):
    """A key to keep in a cookie."""

    key: Annotated[str, Field(max_length=1000)]
    nonce: Nonce | None = None
    """For an invitation, or a sign-in, that works once: the same again get the same reply."""


class Work(Strict):
    """A challenge of the ballot, and the number that solves it."""

    challenge: Annotated[str, Field(max_length=200)]
    answer: Annotated[Number, Field(ge=0, lt=2**53)]


class SigningIn(Strict):
    """Who signs in: the address that gets a link, and its language; neither for OpenID Connect."""

    email: Annotated[str, Field(max_length=254)] | None = None
    language: Language = "en"
    work: Work | None = None


class SignInReply(BaseModel):
    """Where to sign in, or null if a link was sent."""

    location: str | None
    minutes: int
    """How long that works."""


class Joining(Strict):
    """A voter who came by the link."""

    name: Line | None = None
    participant: Line | None = None
    signature: Annotated[str, Field(max_length=64, pattern="^[0-9a-f]*$")] | None = None
    nonce: Nonce | None = None
    """Random characters that only this browser knows: the same again get the same voter and key."""
    work: Work | None = None


class Wanted(Strict):
    """How many open duels a voter wants to have."""

    count: Annotated[Number, Field(ge=1, le=_MOST_OPEN)] = 1


class Answering(Strict):
    """An answer to a duel."""

    answer: Answer
    seconds: Annotated[float, Field(ge=0, le=1e6)] | None = None
    comment: Annotated[Text, Field(max_length=2000)] | None = None
    next: Annotated[Number, Field(ge=0, le=_MOST_OPEN)] = 0
    """How many open duels the voter wants to have then; 0 to return none."""


class SettingsChange(Settings):
    """Settings to change; absent ones stay."""

    question: Question = ""


class ItemChange(Strict):
    """Settings of an item to change; absent ones stay."""

    enabled: bool = True
    priority: bool = False
    least_views: LeastViews | None = None
    """Minimum views before the agent chooses freely; null: the study's setting."""


class AddedItem(Item):
    """An item for a study that is already there; with contexts, its answers by their names, perhaps with features."""

    contents: dict[Line, Text] = Field(default_factory=dict)
    answer_features: dict[Line, Features] = Field(default_factory=dict)


class VoterChange(Strict):
    """Whether a voter's votes count."""

    set_aside: bool


class Invitations(Strict):
    """Voters to invite: a number of people, or the names of people or of language models."""

    kind: VoterKind = "person"

    count: Annotated[Number, Field(ge=1, le=1000)] | None = None
    names: Annotated[list[Line], Field(min_length=1, max_length=1000)] | None = None
    one_time: bool = False
    """Whether each link works in the first browser only that opens it."""

    @model_validator(mode="after")
    def _one_of_both(self) -> "Invitations":
        if (self.count is None) == (self.names is None):
            raise ValueError("give either count or names")
        if self.kind == "model" and (self.names is None or self.one_time):
            raise ValueError("language models need names, and keys that work more than once")
        return self


class Participants(Strict):
    """Participants who get signed links."""

    participants: Annotated[list[Line], Field(max_length=1000)]


class Session(BaseModel):
    """Whose key a request came with."""

    scope: Scope
    study: str | None
    """Null for operators and for observers of all studies."""
    operator: str | None
    name: str | None
    role: Role | None


class NewOperator(Strict):
    """Someone who may operate the server: with all rights, with those over studies, or as an observer of all."""

    name: Line
    role: Role = "operator"


class OperatorRow(BaseModel):
    """Someone who operates the server."""

    operator: str
    name: str
    role: Role
    added: float


class OperatorsReply(BaseModel):
    """Everyone who operates the server, the first owner first."""

    operators: list[OperatorRow]


class NewKey(OperatorRow):
    """A key of someone who operates the server; it is shown once."""

    key: str
    link: str


class WebhookKey(BaseModel):
    """The key of the HMAC that signs webhooks."""

    key: str


class Joined(BaseModel):
    """A new voter."""

    voter: str
    key: str


class Challenge(BaseModel):
    """What has to be solved to join: SHA-256 of ``challenge:answer`` must begin with that many zero bits."""

    challenge: str
    bits: int


class Ballot(ShownSettings):
    """What voters may know about a study."""

    study: str
    access: Access
    keep_email: bool
    joined: bool
    work: Challenge | None


class ShownContext(BaseModel):
    """What a duel is about."""

    name: str
    text: str | None
    html: str | None


class Shown(Media):
    """One side of a duel; ``html`` is the text if it is Markdown, safe to put into a page."""

    name: str | None
    text: str | None
    html: str | None


class ShownDuel(BaseModel):
    """A duel as its voter sees it."""

    duel: str
    deadline: float
    context: ShownContext | None
    left: Shown
    right: Shown


class Progress(BaseModel):
    """A voter's progress."""

    answered: int
    votes: int
    of: int | None
    done: bool
    completion_code: str | None
    completion_url: str | None
    """Where the voter is to go then."""


class AskedReply(BaseModel):
    """A voter's open duels."""

    duels: list[ShownDuel]
    progress: Progress


class AnsweredReply(BaseModel):
    """Whether an answer counts, and what is next."""

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


class Head(BaseModel):
    """The end of the log; an empty log has no receipt."""

    position: int
    receipt: str | None
    at: float


class Decision(BaseModel):
    """A group of items that has a winner, or else a tie."""

    group: str
    leader: str | None


class ListedStudy(BaseModel):
    """A study in the list of studies."""

    study: str
    title: str
    question: str
    state: State
    created: float
    items: int
    archived: bool
    decided: list[Decision]
    votes: int
    voters: int
    models: int
    """How many of the voters are language models."""
    model_votes: int


class ListedStudies(BaseModel):
    """All studies, newest first."""

    studies: list[ListedStudy]


class ShownItem(Content, ItemChange):
    """An item as operators see it."""

    number: int
    shown: int


class Counts(BaseModel):
    """Numbers of duels by outcome, where ``issued`` is the sum of the next five; of voters; and of language models."""

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


class ClosedByItself(BaseModel):
    """Why and when a study closed by itself."""

    reason: Reason
    at: float


class StudyReply(FirstSettings):
    """A study as operators see it."""

    study: str
    created: float
    items: list[ShownItem]
    contexts: list[dict[str, Any]]
    dimension: int | None
    gold: GoldDuels | None
    """Null for observers."""
    stopped: ClosedByItself | None
    """Why it closed by itself, if it did."""
    links: dict[str, str | None]
    """``vote``, and for crowd platforms the addresses to paste there: ``prolific`` and ``mturk``."""
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


class SignedLink(BaseModel):
    """A participant's signed link."""

    participant: str
    signature: str
    link: str


class ParticipantsReply(BaseModel):
    """The key that signs links, in hexadecimal digits, and some signed links."""

    key: str
    links: list[SignedLink]


class ObserverReply(BaseModel):
    """A key that shows the results; shown once."""

    key: str
    link: str


class _Voter(TableRow):
    """A voter and the evidence on them; null where unknown."""

    voter: str
    label: str
    kind: VoterKind
    name: str | None
    participant: str | None
    address: str | None
    """A pseudonym of the address that they joined from."""
    joined: float
    imported: bool
    votes: int
    skips: int
    set_aside: bool
    judged_by: str | None
    """The name of the operator who last set them aside, or counted them again."""
    judged_at: float | None
    learned: bool
    """Whether the agent learns new votes of this voter."""
    gold: str
    """How the voter answered gold duels, in words."""
    gold_right: int
    gold_of: int
    gold_low: float | None
    gold_high: float | None


if TYPE_CHECKING:
    VoterRow = _Voter
else:
    VoterRow = row_of("VoterRow", [each for each in VOTERS if each.name in SERVED], _Voter)


class Action(BaseModel):
    """What an operator did to a study, or the server by its settings (``by`` is null)."""

    position: int
    at: float
    by: str | None
    kind: str
    about: dict[str, Any]


class History(BaseModel):
    """What was done to a study, newest first."""

    actions: list[Action]


class Joins(BaseModel):
    """The voters who joined from one address."""

    address: str
    voters: int
    votes: int
    first: float
    last: float
    in_a_minute: int
    """The most that joined within one minute."""


class Funnel(BaseModel):
    """How far people came."""

    joined: int
    voted: int
    """Voted at least once."""
    finished: int | None
    """Cast all the votes that they may; null without a limit."""
    seconds_per_vote: float | None
    """The median over voters of theirs, which are medians too."""


class VotersReply(BaseModel):
    """All voters, most evidence first; and the addresses that several of them joined from."""

    voters: list[VoterRow]
    votes: int
    joins: list[Joins]
    opened: int
    """How often the voters' page was opened by a browser that had not joined, since the server started."""
    funnel: Funnel
