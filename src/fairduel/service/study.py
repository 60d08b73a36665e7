"""What a study consists of, as an operator describes it, and the limits on it."""

import math
import unicodedata
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from fairduel.agents import AGENTS, Agent
from fairduel.agents.by_name import make, takes
from fairduel.agents.sceptic import without_doubt
from fairduel.errors import BadInputError, unknown_name

MOST_ITEMS, MOST_CONTEXTS = 1000, 2000
LONGEST_TEXT = 20_000


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
        raise ValueError("it must be one line without spaces at its ends")
    return text


Text = Annotated[str, Field(max_length=LONGEST_TEXT), AfterValidator(_shown)]
Line = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_shown), AfterValidator(_one_line)]
State = Literal["open", "paused", "closed"]
Access = Literal["link", "invitation", "participant"]
Number = Annotated[int, Field(strict=True)]
Title = Annotated[str, Field(max_length=200), AfterValidator(_shown)]
Question = Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_shown)]
VotesPerVoter = Annotated[Number, Field(ge=1, le=100_000)] | None
UndoSeconds = Annotated[Number, Field(ge=0, le=3600)]
DuelSeconds = Annotated[Number, Field(ge=1, le=30 * 86_400)]


class Strict(BaseModel):
    """A body without unknown fields, NaN or infinity."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, frozen=True)


class Item(Strict):
    """Something to be ranked; voters see its image, else its text, else its name."""

    name: Line
    text: Text | None = None
    image: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None


class Context(Strict):
    """Something that items are compared on, such as a prompt; ``contents`` has each candidate's answer by its name."""

    name: Line
    text: Text | None = None
    contents: dict[Line, Text]


class Settings(Strict):
    """What can be changed while people vote."""

    title: Title = ""
    question: Question
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


class NewStudy(Settings):
    """A study as it is created."""

    items: Annotated[list[Item], Field(min_length=2, max_length=MOST_ITEMS)]
    contexts: Annotated[list[Context], Field(max_length=MOST_CONTEXTS)] = []
    access: Access = "link"
    repeat_pairs: bool = False
    agent: Annotated[str, Field(max_length=100)] = "sceptic"
    agent_settings: dict[str, bool | int | float | str | None] = {}
    seed: Annotated[Number, Field(ge=0, lt=2**31)] = 0

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [item.name for item in self.items]
        _unique("item", names)
        _unique("context", [context.name for context in self.contexts])
        for context in self.contexts:
            strangers = sorted(set(context.contents) - set(names))
            if strangers:
                raise ValueError(f"context {context.name!r} has an answer of {strangers[0]!r}, which is not an item")
            if len(context.contents) < 2:
                raise ValueError(f"context {context.name!r} has fewer than two answers to compare")
        new_agent(self.agent, self.agent_settings, len(names), self.seed)
        return self


def _unique(kind: str, names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"there are two {kind}s named {twice!r}")


def new_agent(name: str, settings: dict[str, Any], items: int, seed: int) -> Agent[Any, Any]:
    """Create a study's agent: one that learns from duels, needs no features and never asks an item against itself.

    >>> new_agent("rcdb", {"flip_budget": 20}, 12, seed=3).settings["self_duels"]
    False
    """
    usable = {known: kind for known, kind in AGENTS.items() if takes(kind, "items")}
    if name not in usable:
        raise unknown_name("agent", name, usable)
    fixed = {"items": items, "seed": seed, "self_duels": False}
    if set(settings) & set(fixed):
        raise BadInputError(f"the study sets {', '.join(sorted(fixed))} of its agent itself.")
    if name == "sceptic":  # the log of an older study must lead to the same duels
        bound = settings.get("norm_bound")
        is_given = isinstance(bound, (int, float)) and bound > 0
        settings = without_doubt(bound if is_given else math.sqrt(items)) | settings
    agent = make("agent", usable[name], settings, fixed)
    agent.ask(np.eye(items)[:2])  # some settings only fail when they are used
    return make("agent", usable[name], settings, fixed)
