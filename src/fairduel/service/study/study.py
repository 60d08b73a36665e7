"""What a study consists of, as an operator describes it, and the limits on it."""

import json
import math
import unicodedata
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from importlib import resources
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlencode

import numpy as np
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from fairduel.agents import AGENTS, Agent
from fairduel.by_name import make, takes
from fairduel.duel import Matrix, Vector
from fairduel.errors import BadInputError, unknown_name
from fairduel.features import as_map

MOST_ITEMS, MOST_CONTEXTS, MOST_GOLD = 1000, 2000, 1000
LONGEST_TEXT = 20_000
MOST_FEATURES = 256
_ALLOWANCE = 2.0
"""Regret (log-odds) that live studies treat as zero; chosen on seeds 0 to 19 of ``benchmarks.live_liars``."""
_MANY_ITEMS = 200
_HALF_RANGE = 2.0  # of scores with a standard deviation of about 1; linear ones have a parameter of length √d


@lru_cache
def catalogue(language: str) -> dict[str, Any]:
    """Return all texts of the voters' page in a language, by name.

    >>> catalogue("de")["skip"]
    'Überspringen'
    """
    file = resources.files("fairduel.service.pages") / "static" / "words" / f"{language}.json"
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def _shown(text: str) -> str:
    """Refuse control characters other than line breaks and tabs, and invisible ones that reverse text."""
    for character in text:
        if unicodedata.category(character) in {"Cc", "Cs"} and character not in "\n\t":
            raise ValueError("it contains a control character")
        if character in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069":
            raise ValueError("it contains a character that reverses text")
    return text


def _one_line(text: str) -> str:
    if text != text.strip() or "\n" in text or "\t" in text:
        raise ValueError("it must be one line that neither begins nor ends with a space")
    return text


def _seconds(time: object) -> object:
    """Return a date with a time and an offset as seconds since 1970; other values as they are."""
    if isinstance(time, str):
        try:
            time = datetime.fromisoformat(time)
        except ValueError:
            raise ValueError("it must be seconds since 1970, or a time such as 2030-05-31T18:00:00Z") from None
    if isinstance(time, datetime):
        if time.tzinfo is None:
            raise ValueError("it needs a time zone, as in 2030-05-31T18:00:00Z or 2030-05-31T18:00:00+02:00")
        return time.timestamp()
    return time


Text = Annotated[str, Field(max_length=LONGEST_TEXT), AfterValidator(_shown)]
Line = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_shown), AfterValidator(_one_line)]
Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Features = Annotated[list[Annotated[float, Field(ge=-1e6, le=1e6)]], Field(min_length=1, max_length=MOST_FEATURES)]
Format = Literal["text", "markdown"]
State = Literal["open", "paused", "closed"]
Access = Literal["link", "invitation", "participant", "platform", "openid", "email"]
"""Who may vote; with those of ``SIGN_INS``, people who sign in."""
SIGN_INS = {"openid": "FAIRDUEL_OIDC", "email": "FAIRDUEL_SMTP"}
"""What the environment of a server must name so that voters can sign in."""
Number = Annotated[int, Field(strict=True)]
Title = Annotated[str, Field(max_length=200), AfterValidator(_shown)]
Question = Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_shown)]
VotesPerVoter = Annotated[Number, Field(ge=1, le=100_000)] | None
LeastViews = Annotated[Number, Field(ge=0, le=100_000)]
Models = Literal["apart", "counted"]
Language = Literal["auto", "en", "de", "fr", "es", "ar", "zh"]
Platform = Literal["prolific", "mturk"]
Time = Annotated[float, BeforeValidator(_seconds), Field(ge=0, lt=1e11)]
Days = Annotated[Number, Field(ge=0, le=36_500)]
Origin = Annotated[str, Field(max_length=300, pattern=r"^https?://[a-z0-9.-]+(:[0-9]{1,5})?$")]
Domain = Annotated[str, Field(max_length=253, pattern="^[a-z0-9-]+([.][a-z0-9-]+)+$")]
WebAddress = Annotated[str, Field(max_length=1000, pattern=r"^https://[!-~]+$")]
AgentSettings = dict[str, bool | int | float | str | None]


class Strict(BaseModel):
    """A body without unknown fields, NaN or infinity."""

    model_config = ConfigDict(
        extra="forbid", allow_inf_nan=False, frozen=True, json_schema_serialization_defaults_required=True
    )


class Media(BaseModel):
    """The uploaded files of an item: one field for each of :data:`~fairduel.service.study.media.MEDIA`."""

    image: Hash | None = None
    audio: Hash | None = None


class Content(Media, Strict):
    """What voters see of an item: its image, audio and text, or its name if it has none of these."""

    name: Line
    text: Text | None = None
    format: Format | None = None
    """How its texts are written; None: the study's setting."""


class Item(Content):
    """Something to be ranked."""

    features: Features | None = None
    """Numbers by which the agent compares it with others."""


class Context(Strict):
    """Something that items are compared on, such as a prompt; ``contents`` has each candidate's answer by its name."""

    name: Line
    text: Text | None = None
    contents: dict[Line, Text]
    features: dict[Line, Features] | None = None
    """Numbers of each answer, in place of those of the items."""


class KnownAnswer(Strict):
    """A pair whose better item is known, in a context if the study has contexts."""

    winner: Line
    loser: Line
    context: Line | None = None


class GoldDuels(Strict):
    """Known answers that test voters: one among a voter's ``first`` duels, then one in ``every``."""

    answers: Annotated[list[KnownAnswer], Field(max_length=MOST_GOLD)] = []
    first: Annotated[Number, Field(ge=1, le=1000)] = 5
    every: Annotated[Number, Field(ge=2, le=1000)] = 10


class VoterPage(Strict):
    """How the pages of voters look and read."""

    host: Title = ""
    """Who asks."""
    logo: Hash | None = None
    """An uploaded image."""
    colour: Annotated[str, Field(pattern="^#[0-9a-f]{6}$")] | None = None
    consent: Text = ""
    """What voters agree to before they start; without it, nobody is asked to agree."""
    privacy: Text = ""
    """What is stored about voters, and what happens with it."""
    language: Language = "auto"
    """The language of the page; ``auto``: the browser's, or English."""
    words: dict[Line, Annotated[Text, Field(max_length=1000)]] = {}
    """Texts that replace those of the catalogue in ``service/pages/static/words``, by their names."""
    show_results: bool = False
    """Whether voters see the results once they have answered everything, or voting has ended."""

    @model_validator(mode="after")
    def _known_words(self) -> Self:
        unknown = sorted(set(self.words) - set(catalogue("en")))
        if unknown:
            raise unknown_name("text of the voters' page", unknown[0], sorted(catalogue("en")))
        return self


class ShownSettings(Strict):
    """What can be changed while people vote, and voters may know."""

    title: Title = ""
    question: Question
    instructions: Text = ""
    state: State = "open"
    votes_per_voter: VotesPerVoter = None
    ties: bool = True
    skips: bool = True
    comments: bool = False
    undo_seconds: Annotated[Number, Field(ge=0, le=3600)] = 60
    opens: Time | None = None
    """When a study that is paused until then opens by itself."""
    closes: Time | None = None
    """When it closes by itself."""
    page: VoterPage = VoterPage()


class Settings(ShownSettings):
    """What can be changed while people vote."""

    show_names: bool = False
    duel_seconds: Annotated[Number, Field(ge=1, le=30 * 86_400)] = 3600
    completion_code: Line | None = None
    completion_url: WebAddress | None = None
    """Where voters go when they are done; that of Prolific follows from the code."""
    stop_at_votes: Annotated[Number, Field(ge=1, le=10_000_000)] | None = None
    """Close when this many votes count."""
    stop_when_decided: bool = False
    """Close once every group of items has a winner."""
    keep_personal_days: Days | None = None
    """Days after closing until names, participant ids, addresses and comments are erased; None: never."""
    archived: bool = False
    """Whether it is out of the way: closed, and last in the list."""
    allowed_origins: Annotated[list[Origin], Field(max_length=20)] = []
    """Web sites that may show the voters' page in a frame, and call the interface for voters."""
    least_views: LeastViews = 0
    proof_of_work: Annotated[Number, Field(ge=0, le=24)] = 0
    """Bits of work that whoever joins has to do first; 18 take a browser about a second."""
    false_votes: Annotated[Number, Field(ge=0, le=1_000_000)] = 0
    """How many of the votes that count may be false, by the operator's judgement; the verdict allows for them."""


class FirstSettings(Settings):
    """These settings, and those that cannot be changed once a study is made."""

    format: Format = "text"
    access: Access = "link"
    platform: Platform | None = None
    """The crowd platform that voters come from; then ``access`` is "platform"."""
    repeat_pairs: bool = False
    models: Models = "apart"
    agent: Annotated[str, Field(max_length=100)] = "sceptic"
    agent_settings: AgentSettings = {}
    seed: Annotated[Number, Field(ge=0, lt=2**31)] = 0
    email_domains: Annotated[list[Domain], Field(max_length=50)] = []
    """Only addresses at these domains may sign in; empty: any account."""
    keep_email: bool = False
    """Whether operators see the addresses of voters who signed in, as their names."""


class NewStudy(FirstSettings):
    """A study as it is created."""

    items: Annotated[list[Item], Field(min_length=2, max_length=MOST_ITEMS)]
    contexts: Annotated[list[Context], Field(max_length=MOST_CONTEXTS)] = []
    gold: GoldDuels = GoldDuels()

    @model_validator(mode="before")
    @classmethod
    def _preset(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("platform") is not None:
            return {"access": "platform"} | values
        return values

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.platform is not None and self.access != "platform":
            raise ValueError('a crowd platform needs access = "platform"')
        names = [item.name for item in self.items]
        _unique("item", names)
        _unique("context", [context.name for context in self.contexts])
        for context in self.contexts:
            strangers = sorted(set(context.contents) - set(names))
            if strangers:
                raise ValueError(f"context {context.name!r} has an answer of {strangers[0]!r}, which is not an item")
            if len(context.contents) < 2:
                raise ValueError(f"context {context.name!r} has fewer than two answers to compare")
        self.numbered(self.gold)
        new_agent(self.agent, self.agent_settings, len(names), self.seed, known_features(self))
        return self

    @property
    def after_completion(self) -> str | None:
        """Where voters go when they are done."""
        if self.completion_url is None and self.platform == "prolific" and self.completion_code is not None:
            return f"https://app.prolific.com/submissions/complete?{urlencode({'cc': self.completion_code})}"
        return self.completion_url

    @property
    def dimension(self) -> int | None:
        """The number of features of an item, or of an answer; None without features."""
        tables = [found for found, _ in _feature_tables(self)]
        return len(tables[0][0]) if tables else None

    def numbered(self, gold: GoldDuels) -> list[tuple[int | None, int, int]]:
        """Return the context, the winner and the loser of each known answer by their numbers."""
        items = {item.name: number for number, item in enumerate(self.items)}
        contexts = {context.name: number for number, context in enumerate(self.contexts)}
        pairs = set[tuple[str | None, str, str]]()
        for known in gold.answers:
            place = f"the known answer {known.winner!r} before {known.loser!r}"
            if (known.context is None) == bool(contexts) or (contexts and known.context not in contexts):
                raise ValueError(f"{place} needs the name of a context" if contexts else f"{place} has no such context")
            there = items if known.context is None else self.contexts[contexts[known.context]].contents
            strangers = [name for name in (known.winner, known.loser) if name not in there]
            if strangers:
                raise ValueError(f"{place}: {strangers[0]!r} is not an item there")
            one, other = sorted((known.winner, known.loser))
            if one == other or (known.context, one, other) in pairs:
                raise ValueError(f"{place} must name two different items, and no pair twice")
            pairs.add((known.context, one, other))
        return [
            (None if known.context is None else contexts[known.context], items[known.winner], items[known.loser])
            for known in gold.answers
        ]


def _feature_tables(study: NewStudy) -> list[tuple[list[list[float]], list[int]]]:
    """Return the features that were given, and of which items they are: of all, or once per context; or nothing.

    Raises:
        ValueError: Some have features and some do not, or not equally many.
    """
    of_items = [item.features for item in study.items]
    given = [context.features for context in study.contexts if context.features is not None]
    if given and any(of_items):
        raise ValueError("give features to the items or to the answers in contexts, not to both")
    if given:
        place = {item.name: number for number, item in enumerate(study.items)}
        for context in study.contexts:
            if context.features is None or set(context.features) != set(context.contents):
                raise ValueError(f"context {context.name!r} needs features for exactly the items that have an answer")
        # In the order of the items: the log sorts names, so that of the answers may change at a restart.
        tables = [
            ([list(each[name]) for name in sorted(each, key=place.__getitem__)], sorted(place[name] for name in each))
            for each in given
        ]
    elif any(of_items):
        missing = next((item.name for item in study.items if item.features is None), None)
        if missing is not None:
            raise ValueError(f"item {missing!r} has no features, but others do")
        tables = [([list(each) for each in of_items if each is not None], list(range(len(study.items))))]
    else:
        return []
    if len({len(row) for rows, _ in tables for row in rows}) > 1:
        raise ValueError("all features must have the same length")
    if all(row == rows[0] for rows, _ in tables for row in rows):
        raise ValueError("all features are equal, so they say nothing")
    return tables


def features_of(study: NewStudy) -> list[dict[int, Vector]] | None:
    """Return the features of a study as its agent gets them: by item, once or per context; None without features.

    Only differences between items matter, so each table is centred; then all are scaled so that the longest row has
    length 1, as agents expect.

    >>> study = NewStudy(question="?", items=[{"name": "a", "features": [1.0]}, {"name": "b", "features": [5.0]}])
    >>> features_of(study)
    [{0: array([-1.]), 1: array([1.])}]
    """
    given = _feature_tables(study)
    if not given:
        return None
    centred = [(np.array(rows) - np.mean(rows, axis=0), items) for rows, items in given]
    longest = max(float(np.linalg.norm(rows, axis=1).max()) for rows, _ in centred)
    return [dict(zip(items, rows / longest, strict=True)) for rows, items in centred]


def known_features(study: NewStudy) -> Matrix | None:
    """Return the features of all items or answers, shape (n, d); None without features."""
    tables = features_of(study)
    return None if tables is None else np.array([row for table in tables for row in table.values()])


def _unique(kind: str, names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"there are two {kind}s named {twice!r}")


def settings_to_record(about: NewStudy) -> AgentSettings:
    """Return the agent's settings that a new study records: its own, and ours for live voting where it has none.

    Liars who push one item can reverse a close pair, but not how its items fare against all others; so Sceptic compares
    the leaders with others too. Without features, each of many items is a feature, and only a lazy estimate is quick.
    """
    if about.agent != "sceptic":
        return about.agent_settings
    is_large = about.dimension is None and len(about.items) > _MANY_ITEMS
    ours: AgentSettings = {"allowance": _ALLOWANCE} | ({"estimator": "lazy"} if is_large else {})
    return ours | about.agent_settings


def new_agent(
    name: str, settings: dict[str, Any], items: int, seed: int, features: Matrix | None = None
) -> Agent[Any, Any]:
    """Create a study's agent: one that learns from duels and never asks an item against itself.

    Args:
        name: Its name in ``AGENTS``.
        settings: Its settings that are not the default.
        items: The number of items.
        seed: Its seed.
        features: Those of all items, shape (n, d), to which a feature map is fitted; without any, each item is a
            feature of its own.

    >>> new_agent("rcdb", {"flip_budget": 20}, 12, seed=3).settings["self_duels"]
    False
    >>> new_agent("sceptic", {}, 12, seed=3, features=np.eye(12, 4)).settings["norm_bound"]
    2.0
    >>> new_agent("sceptic", {"map": "rbf(0.5)"}, 12, seed=3, features=np.eye(12, 4)).size
    5
    """
    usable = {known: kind for known, kind in AGENTS.items() if takes(kind, "items")}
    if name not in usable:
        raise unknown_name("agent", name, usable)
    fixed: dict[str, Any] = {"seed": seed, "self_duels": False}
    if features is None:
        fixed["items"] = items
        dimension = items
    else:
        dimension = fixed["dimension"] = features.shape[1]
        settings = {"norm_bound": _HALF_RANGE if settings.get("map") else math.sqrt(dimension)} | settings
    if set(settings) & set(fixed):
        raise BadInputError(f"the study sets {', '.join(sorted(fixed))} of its agent itself.")
    if features is not None and settings.get("map"):
        settings = settings | {"map": as_map(settings["map"]).fit(dimension, features)}
    agent = make("agent", usable[name], settings, fixed)
    agent.ask(np.eye(2, dimension))  # some settings only fail when they are used
    return make("agent", usable[name], settings, fixed)
