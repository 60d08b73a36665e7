"""Bodies of the results of a study."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from fairduel.service.api.bodies import Counts


class Certificate(BaseModel):
    """How many false votes, or lying voters, change a rank; see :class:`fairduel.votes.Certificate`."""

    item: str
    group: str
    rank: int
    votes_proven: int
    votes_found: int | None
    voters_proven: int | None
    voters_found: int | None
    rival: str
    sentence: str


class Stopping(BaseModel):
    """Whether the poll can stop; see :class:`fairduel.votes.Stopping`."""

    leader: str
    rival: str
    items: int
    votes: int
    false_votes: int
    evidence: float
    bar: float
    needed: int | None
    group: str
    can_stop: bool
    sentence: str


class Standing(BaseModel):
    """An item's place in the ranking; see :class:`fairduel.votes.ranking.Standing`."""

    item: str
    component: int
    group: str
    rank: int
    rank_low: int
    rank_high: int
    score: float
    error: float
    score_low: float
    score_high: float
    best: float
    best_error: float
    chance: float
    games: float
    wins: float
    win_rate: float | None
    mean_weight: float | None
    plain_rank: int


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
    agreement: list[ModelAgreement]


class Results(BaseModel):
    """What the votes say."""

    position: int
    computed: float | None
    stale: bool
    votes: int
    needs: str | None
    sentence: str
    details: list[str]
    advice: list[str]
    basis: Literal["all votes", "after the audit"]
    ranking: list[Standing]
    everyone: list[Standing]
    notes: list[str]
    certificates: list[Certificate]
    stopping: list[Stopping]
    models: ModelResults | None
    """Null unless language models voted and are kept apart."""
    activity: list[Bar]
    balance: Balance
    agent: AgentReply
    counts: Counts
