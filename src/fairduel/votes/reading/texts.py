"""The texts behind votes: prompt, chosen and rejected, from whatever columns hold them.

The texts come from the columns of the file: ``chosen`` and ``rejected``; ``conversation_a`` and ``conversation_b``; or
``response_a`` and ``response_b`` (or ``answer_1`` and ``answer_2``, …), with the ``prompt``. A text may be a string, a
list of messages (``role`` and ``content``), or a list of turns, also as JSON. Without such columns, the names of the
items are the texts; without a ``prompt``, the ``context`` is the prompt.
"""

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from fairduel.errors import BadInputError
from fairduel.votes.reading.fields import TEXT_PAIRS
from fairduel.votes.reading.read import Reading
from fairduel.votes.reading.shapes import PROMPT_OF
from fairduel.votes.votes import Codes, Indices, Votes
from fairduel.words import printable

Text = str | list[dict[str, str]]
"""A text, or a conversation: messages with ``role`` and ``content``."""
_MESSAGES = pl.List(pl.Struct({"role": pl.String, "content": pl.String}))
_CHOSEN = {"chosen", "rejected"}
_SIDES = (("conversation_a", "conversation_b"), *TEXT_PAIRS)
_ID = re.compile(r"(?=.*\d)[\w.:/-]+")
_NO_TEXT, _SAME_TEXT = "without a text", "with the same text twice"


def won_and_lost(votes: Votes, places: Indices) -> tuple[Codes, Codes]:
    """Return the winners and the losers of the votes at ``places`` (m,), both (m,)."""
    first_won = votes.result[places] == 1.0
    one, other = votes.first[places], votes.second[places]
    return np.where(first_won, one, other), np.where(first_won, other, one)


def check_texts(reading: Reading) -> None:
    """Refuse a file without texts whose items are ids: words without spaces, each with a digit."""
    columns, items = set(reading.table.columns), reading.votes.items
    has_texts = columns >= _CHOSEN or any(set(pair) <= columns for pair in _SIDES)
    if not has_texts and all(_ID.fullmatch(item) for item in items):
        raise BadInputError(
            f"the items are ids such as “{printable(items[0])}”, not texts to train on: add their texts as columns "
            "chosen and rejected, or response_a and response_b, or give a table of ids and texts (names=…)."
        )


def texts_of(reading: Reading, places: Indices) -> tuple[pl.DataFrame, Sequence[str]]:
    """Return prompt, chosen and rejected of the votes at ``places`` (m,), and why any are missing, otherwise empty.

    Of a tie, the first text is returned as rejected.
    """
    votes, table, roles = reading.votes, reading.table, reading.columns
    first_won = votes.result[places] == 1.0
    answers = [pair for pair in _SIDES if set(pair) <= set(table.columns)]
    if set(table.columns) >= _CHOSEN:
        pair = ("rejected", "chosen") if roles["first"] == "rejected" else ("chosen", "rejected")
        if not _CHOSEN & set(roles.values()):  # the items have names of their own, and the winner's text was chosen
            first_won = np.ones_like(first_won)
    elif answers:
        pair = answers[0][::-1] if roles["first"].lower().endswith(("b", "2")) else answers[0]
    else:
        return _names(reading, places), [""] * len(places)
    one, other = (_values(table[name][places]) for name in pair)
    asked = next((name for name in ("prompt", f"chosen{PROMPT_OF}", "context") if name in table.columns), None)
    prompts = _values(table[asked][places]) if asked else [None] * len(places)
    found = [
        _split(prompt, *(texts if first else reversed(texts)))
        for first, prompt, *texts in zip(first_won, prompts, one, other, strict=True)
    ]
    is_list = any(isinstance(texts, _Texts) and isinstance(texts.chosen, list) for texts in found)
    columns = {
        name: pl.Series([getattr(texts, name, None) for texts in found], dtype=_MESSAGES if is_list else pl.String)
        for name in _Texts._fields
    }
    return pl.DataFrame(columns), ["" if isinstance(texts, _Texts) else texts for texts in found]


def _names(reading: Reading, places: Indices) -> pl.DataFrame:
    """Return the names of the items as texts, and the prompt of the file, or the context, as the prompt."""
    votes, table = reading.votes, reading.table
    items = pl.Series(votes.items, dtype=pl.String)
    won, lost = won_and_lost(votes, places)
    if "prompt" in table.columns and not table["prompt"].dtype.is_nested():
        prompts = table["prompt"][places].cast(pl.String).fill_null("")
    elif votes.context is not None:
        prompts = pl.Series(votes.contexts, dtype=pl.String).gather(votes.context[places])
    else:
        prompts = pl.Series([""] * len(places), dtype=pl.String)
    return pl.DataFrame({"prompt": prompts, "chosen": items.gather(won), "rejected": items.gather(lost)})


class _Texts(NamedTuple):
    prompt: Text
    chosen: Text
    rejected: Text


def _values(column: pl.Series) -> list[Any]:
    """Return the texts of a column; lists that are written as JSON throughout become lists."""
    values = column.to_list()
    try:
        read = [json.loads(value) if isinstance(value, str) else value for value in values]
    except ValueError:
        return values
    return read if all(value is None or isinstance(value, list) for value in read) else values


def _split(prompt: Any, winner: Any, loser: Any) -> _Texts | str:
    """Return the prompt and the two texts; of two conversations, what they have in common belongs to the prompt.

    >>> ask, tea, milk = ({"role": "user", "content": text} for text in ("?", "tea", "milk"))
    >>> _split(None, [ask, tea], [ask, milk]) == _Texts([ask], [tea], [milk])
    True
    >>> _split("?", "tea", "tea")
    'with the same text twice'
    """
    if winner is None or loser is None or isinstance(winner, list) != isinstance(loser, list):
        return _NO_TEXT
    if not isinstance(winner, list):
        texts = _Texts(
            "\n".join(message["content"] for message in _messages(prompt)), _content(winner), _content(loser)
        )
        return _SAME_TEXT if texts.chosen == texts.rejected else texts
    given, one, other = _messages(prompt), _messages(winner, prompt), _messages(loser, prompt)
    shared = [a for a, b in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))]
    if len(shared) == min(len(one), len(other)):
        return _SAME_TEXT if one and other else _NO_TEXT
    asked = shared if shared[: len(given)] == given else given + shared
    return _Texts(asked, one[len(shared) :], other[len(shared) :])


def _messages(turns: Any, questions: Any = None) -> list[dict[str, str]]:
    """Return a conversation as messages. Turns that are no messages answer the ``questions``, one each.

    >>> [message["content"] for message in _messages(["tea", "milk"], ["To drink?", "With it?"])]
    ['To drink?', 'tea', 'With it?', 'milk']
    """
    if isinstance(turns, str):
        return [{"role": "user", "content": turns}]
    if not isinstance(turns, list):
        return []
    if all(isinstance(turn, Mapping) for turn in turns):
        return [{"role": _content(turn.get("role")), "content": _content(turn.get("content"))} for turn in turns]
    asked = questions if isinstance(questions, list) else [questions] * bool(questions)
    return [
        {"role": role, "content": _content(text)}
        for pair in zip(asked, turns, strict=False)
        for role, text in zip(("user", "assistant"), pair, strict=True)
    ]


def _content(content: Any) -> str:
    """Return the text of a message; of one with several parts, that of its text parts."""
    if isinstance(content, list):
        return "\n".join(str(part["text"]) for part in content if isinstance(part, Mapping) and part.get("text"))
    return "" if content is None else str(content)
