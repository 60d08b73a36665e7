"""Bodies of the results of a study."""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, Field

from fairduel.service.api.bodies import Counts
from fairduel.service.api.derived import body_of, row_of
from fairduel.votes import verdict
from fairduel.votes.ranking import standings

State = verdict.State

if TYPE_CHECKING:  # what the bodies are derived from
    from fairduel.votes.ranking.standings import Certificate, Standing
    from fairduel.votes.verdict import Verdict
else:
    Certificate = body_of(standings.Certificate, standings.CERTIFICATE)
    Standing = row_of("Standing", standings.RANKING)
    Verdict = body_of(verdict.Verdict, verdict.VERDICT)


class ShownColumn(BaseModel):
    """A column as it is shown to people; ``words`` are aligned left."""

    name: str
    heading: str
    meaning: str
    words: bool


class ShownTable(BaseModel):
    """A table as it is shown to people: texts in the order of the columns."""

    columns: list[ShownColumn]
    rows: list[list[str]]


class Balance(BaseModel):
    """How often each side won."""

    left: int
    right: int
    p: float | None
    alarm: bool
    sentence: str


class Bar(BaseModel):
    """Votes in a stretch of time."""

    from_: Annotated[float, Field(alias="from")]
    seconds: int
    votes: int


class AskedPair(BaseModel):
    """How often two items were compared lately, and whether their order is settled; null without a ranking."""

    one: str
    other: str
    duels: int
    settled: bool | None


class AgentReply(BaseModel):
    """What the agent has asked; ``pairs`` and ``sentences`` are about its last duels, which are ``lately`` many."""

    name: str
    asked: int
    open: int
    sentence: str
    lately: int
    pairs: list[AskedPair]
    sentences: list[str]


class ModelAgreement(BaseModel):
    """How often a language model's votes agree with people's ranking."""

    voter: str
    agreed: int
    of: int
    low: float | None
    high: float | None
    sentence: str


class ModelResults(BaseModel):
    """What language models voted, apart from people."""

    votes: int
    voters: int
    sentence: str
    ranking: list[Standing]
    table: ShownTable
    """The ranking in words."""
    agreement: list[ModelAgreement]


class CoursePoint(BaseModel):
    """The verdict on the largest group by its first votes, with the weights that votes have today."""

    votes: int
    best: dict[str, float]
    """The probability of being the best of each of the items most likely to be."""
    evidence: float
    bar: float
    state: State


class Beats(BaseModel):
    """How often each of the highest-ranked items won against each other; a tie is half a win for both."""

    items: list[str]
    wins: list[list[float]]


class ResultsReply(BaseModel):
    """What the votes say."""

    position: int
    computed: float | None
    stale: bool
    votes: int
    needs: str | None
    details: list[str]
    advice: list[str]
    basis: Literal["all votes", "after the audit"]
    ranking: list[Standing]
    table: ShownTable
    """The ranking in words."""
    everyone: list[Standing]
    notes: list[str]
    certificates: list[Certificate]
    verdicts: list[Verdict]
    models: ModelResults | None
    """Null unless language models voted and are kept apart."""
    activity: list[Bar]
    course: list[CoursePoint]
    """How the verdict came about; the last point is the verdict."""
    beats: Beats
    balance: Balance
    agent: AgentReply
    counts: Counts
