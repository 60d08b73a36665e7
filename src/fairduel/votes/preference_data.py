"""Turn cleaned votes into preference data: prompt, chosen and rejected, as TRL's trainers read them.

The texts come from the columns of the file: ``chosen`` and ``rejected``; ``conversation_a`` and ``conversation_b``; or
``response_a`` and ``response_b``, with the ``prompt``. A text may be a string, a list of messages (``role`` and
``content``), or a list of turns, also as JSON. Without such columns, the names of the items are the texts; without a
``prompt``, the context is the prompt.
"""

import itertools
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from fairduel.checks import at_least_zero
from fairduel.duel import Vector
from fairduel.votes.care import IGNORED
from fairduel.votes.cleaning import Cleaned
from fairduel.votes.results import Result
from fairduel.votes.votes import Codes, Indices, Votes
from fairduel.votes.words import counted_noun, listed

Text = str | list[dict[str, str]]
"""A text, or a conversation: messages with ``role`` and ``content``."""
_MESSAGES = pl.List(pl.Struct({"role": pl.String, "content": pl.String}))
_CHOSEN = {"chosen", "rejected"}
_SIDES = (("conversation_a", "conversation_b"), ("response_a", "response_b"))
_NO_TEXT, _SAME_TEXT = "without a text", "with the same text twice"


@dataclass(frozen=True, eq=False, repr=False)
class Preferences(Result):
    """Preferences for training, one per vote.

    Created by :func:`preferences`.

    Args:
        frame: One row per preference. ``prompt``, ``chosen``, ``rejected`` and ``margin`` are TRL's columns. Then
            ``weight``: how many votes the row counts after the audit; ``flagged``; ``votes_for`` and ``votes_against``:
            votes in this set with the same prompt and texts, for and against; ``chosen_model``, ``rejected_model``: the
            names of the two items; and ``row``: its row in the file.
        left_out: Number of votes left out, by reason.
    """

    frame: pl.DataFrame
    left_out: Mapping[str, int]

    def to_frame(self) -> pl.DataFrame:
        """Return one row per preference."""
        return self.frame

    def completions(self) -> pl.DataFrame:
        """Return two rows per preference: prompt, completion, and label (true if chosen), as for TRL's KTO.

        The columns weight, flagged and row follow.
        """
        rest = ("weight", "flagged", "row")
        good, bad = (
            self.frame.select("prompt", pl.col(name).alias("completion"), pl.lit(label).alias("label"), *rest)
            for name, label in (("chosen", True), ("rejected", False))
        )
        return pl.concat([good, bad]).sort("row", maintain_order=True)

    def _preview(self) -> pl.DataFrame:
        return self.frame.select("prompt", "chosen", "rejected", "margin", "weight", "votes_for", "votes_against")

    def brief(self) -> str:
        """Return how many votes are in the set, and how many are left out and why."""
        total = len(self.frame) + sum(self.left_out.values())
        out = listed([f"{count:,} {reason}" for reason, count in self.left_out.items()]) if self.left_out else "none"
        return f"{len(self.frame):,} of {counted_noun(total, 'vote')} are preferences; left out: {out}."


def preferences(cleaned: Cleaned, *, least_weight: float = IGNORED) -> Preferences:
    """Return a preference for each vote that has a winner and that the audit trusts.

    The **margin** is max(0, θ_chosen − θ_rejected), θ being the scores of the cleaned ranking in log-odds, and 0 for
    items that it does not compare. TRL's reward loss is −log σ(r_chosen − r_rejected − margin): rewards have to differ
    by more where the votes as a whole are clear. A vote against the ranking has margin 0 and still counts.

    Args:
        cleaned: The votes with their weights, from :func:`fairduel.votes.clean`.
        least_weight: Leave out votes that count less, relative to an average voter's. Trainers ignore the weight, so
            votes that hardly count would count fully. 0 keeps all votes with a winner, also those of flagged voters.

    Returns:
        The preferences, and what was left out.

    >>> from fairduel.votes.cleaning import clean
    >>> from fairduel.votes.reading import votes_of
    >>> from fairduel.votes.synthetic import arena
    >>> found = preferences(clean(votes_of(arena(seed=4)[0].to_frame())))
    >>> print(found.brief())
    3,868 of 4,713 votes are preferences; left out: 410 ties, 344 by flagged voters and 91 with a weight below 0.1.
    """
    at_least_zero("least_weight", least_weight)
    votes, left_out = cleaned.votes, dict[str, int]()
    kept = np.ones(len(votes), dtype=np.bool_)
    for reason, holds in {
        "ties": votes.is_tie,
        "by flagged voters": cleaned.flagged & (least_weight > 0.0),
        f"with a weight below {least_weight:g}": (cleaned.trust < least_weight) | (votes.weight == 0.0),
    }.items():
        left_out[reason] = int((kept & holds).sum())
        kept &= ~holds
    places = np.flatnonzero(kept)
    texts, reasons = _texts(cleaned, places)
    left_out |= Counter(reason for reason in reasons if reason)
    found = np.array([not reason for reason in reasons], dtype=np.bool_)
    frame = _frame(cleaned, places[found], texts.filter(found))
    return Preferences(frame, {reason: count for reason, count in left_out.items() if count})


def _frame(cleaned: Cleaned, places: Indices, texts: pl.DataFrame) -> pl.DataFrame:
    """Return the table of :class:`Preferences`, from the votes at ``places`` (m,) and their texts."""
    votes, counts = cleaned.votes, cleaned.votes.weight[places]
    won, lost = _won_and_lost(votes, places)
    scores, component = cleaned.ranking.scores, _components(cleaned)
    items = pl.Series(votes.items, dtype=pl.String)
    columns = {
        "margin": np.where(component[won] == component[lost], np.maximum(scores[won] - scores[lost], 0.0), 0.0),
        "weight": counts * cleaned.trust[places],
        "flagged": cleaned.flagged[places],
        **_agreement(texts, counts),
        "chosen_model": items.gather(won),
        "rejected_model": items.gather(lost),
        "row": votes.row[places],
    }
    return texts.hstack(pl.DataFrame(columns))


def _won_and_lost(votes: Votes, places: Indices) -> tuple[Codes, Codes]:
    """Return the winners and the losers of the votes at ``places`` (m,), both (m,)."""
    first_won = votes.result[places] == 1.0
    one, other = votes.first[places], votes.second[places]
    return np.where(first_won, one, other), np.where(first_won, other, one)


def _components(cleaned: Cleaned) -> Indices:
    """Return the component of each item in the cleaned ranking, shape (K,)."""
    found = {standing.item: standing.component for standing in cleaned.ranking.standings}
    return np.array([found[item] for item in cleaned.ranking.items], dtype=np.int64)


def _agreement(texts: pl.DataFrame, counts: Vector) -> dict[str, pl.Series]:
    """Return how many votes, each counted ``counts`` (m,) times, say the same on the same texts, and the opposite."""
    keys = texts.with_columns(json_column(column) for column in texts if column.dtype.is_nested())
    same, opposite = ["prompt", "chosen", "rejected"], ["prompt", "rejected", "chosen"]
    votes = keys.with_columns(votes=counts).group_by(same).agg(pl.sum("votes"))
    found = (
        keys.join(votes, left_on=left, right_on=same, how="left", maintain_order="left") for left in (same, opposite)
    )
    return dict(zip(("votes_for", "votes_against"), (each["votes"].fill_null(0.0) for each in found), strict=True))


def _texts(cleaned: Cleaned, places: Indices) -> tuple[pl.DataFrame, Sequence[str]]:
    """Return prompt, chosen and rejected of the votes at ``places`` (m,), and why any are missing, otherwise empty."""
    votes, table, roles = cleaned.votes, cleaned.reading.table, cleaned.reading.columns
    first_won = votes.result[places] == 1.0
    answers = [pair for pair in _SIDES if set(pair) <= set(table.columns)]
    if set(table.columns) >= _CHOSEN:
        pair = ("rejected", "chosen") if roles["first"] == "rejected" else ("chosen", "rejected")
        if not _CHOSEN & set(roles.values()):  # the items have names of their own, and the winner's text was chosen
            first_won = np.ones_like(first_won)
    elif answers:
        pair = answers[0][::-1] if roles["first"].lower().endswith("_b") else answers[0]
    else:
        return _names(cleaned, places), [""] * len(places)
    one, other = (_values(table[name][places]) for name in pair)
    prompts = _values(table["prompt"][places]) if "prompt" in table.columns else [None] * len(places)
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


def _names(cleaned: Cleaned, places: Indices) -> pl.DataFrame:
    """Return the names of the items as texts, and the prompt of the file, or the context, as the prompt."""
    votes, table = cleaned.votes, cleaned.reading.table
    items = pl.Series(votes.items, dtype=pl.String)
    won, lost = _won_and_lost(votes, places)
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
        texts = _Texts(_content(prompt), _content(winner), _content(loser))
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


def json_column(column: pl.Series) -> pl.Series:
    """Return a column of lists or objects as JSON text.

    >>> json_column(pl.Series([[{"role": "user"}], None])).to_list()
    ['[{"role": "user"}]', None]
    """
    texts = [
        None if value is None else json.dumps(value, ensure_ascii=False, default=str) for value in column.to_list()
    ]
    return pl.Series(column.name, texts, dtype=pl.String)
