"""What people see in a text: how long it is, how it is laid out, how polite it is, and which words it has.

A statistic counts something in a text. Two texts differ in it by log(1 + one) − log(1 + other), so that the tenth list
item matters less than the first. The patterns of some statistics know English only; elsewhere they count nothing.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy import sparse

from fairduel.duel import Matrix


class Statistic(NamedTuple):
    """Something that people can count in a text."""

    name: str
    more: str
    """What somebody likes who prefers more of it."""
    less: str
    pattern: str
    """What is counted."""


_POLITE = (
    r"(?i)\b(?:please|thanks?|thank you|sorry|apologi[sz]e|welcome|glad|happy to help|appreciate|kindly|you're right"
    r"|great question)\b"
)
_DOUBT = r"(?i)\b(?:maybe|perhaps|might|probably|possibly|likely|i think|i believe|it seems|not sure|it depends)\b"
_REFUSAL = (
    r"(?i)\b(?:i can['’]t|i cannot|i am unable|i['’]m unable|i won['’]t|as an ai|i must decline|i['’]m not able)\b"
)


UNSPACED = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff"
"""Letters of languages without spaces between words (Thai, Japanese, Chinese), as in a regular expression."""
WORDS = rf"[{UNSPACED}]{{1,2}}|\w+(?:['’]\w+)*"
"""What counts as a word: there, two letters."""


def _usual(name: str, pattern: str, *, fewer: bool = True) -> Statistic:
    return Statistic(name, f"more {name}", f"{'fewer' if fewer else 'less'} {name}", pattern)


STATISTICS = (
    Statistic("length", "longer texts", "shorter texts", WORDS),
    _usual("sentences", r"[.!?…](?:\s|$)"),
    _usual("long words", r"\w{9,}"),
    _usual("paragraphs", r"\n\s*\n"),
    _usual("list items", r"(?m)^\s*(?:[-*•]|\d+[.)])\s"),
    _usual("headings and bold", r"(?m)^#{1,6}\s|\*\*[^*\n]+\*\*|__[^_\n]+__"),
    _usual("code", r"```|`[^`\n]+`", fewer=False),
    _usual("numbers", r"\d+"),
    _usual("questions", r"\?"),
    _usual("exclamation marks", r"!"),
    _usual("words in capitals", r"\b\p{Lu}{3,}\b"),
    _usual("links", r"https?://|www\."),
    _usual("quotation marks", r"[\"“”«»]"),
    _usual("politeness", _POLITE, fewer=False),
    _usual("words of doubt", _DOUBT),
    _usual("refusals", _REFUSAL),
    _usual("first person", r"\bI(?:['’]\w+)?\b|\b(?i:my|me|mine|we|our)\b", fewer=False),
)
"""The statistics, in the order of the columns of :func:`statistics_of`."""
MOST_WORDS = 300
_LEAST_SHARE, _MOST_SHARE = 0.002, 0.3  # of texts that have a word which is worth a look
_WORD = re.compile(rf"[{UNSPACED}]|\w+")
_NO_WORD = r"[^\p{L}\p{N}_]+"


def statistics_of(texts: pl.Series) -> Matrix:
    r"""Return log(1 + count) of each statistic of each text, shape (m, statistics), in single precision.

    >>> found = statistics_of(pl.Series(["Thanks! I think so.", "- one\n- two"]))
    >>> shown = dict(zip([each.name for each in STATISTICS], np.expm1(found).round().T.astype(int).tolist()))
    >>> shown["length"], shown["list items"], shown["politeness"], shown["words of doubt"]
    ([4, 2], [0, 2], [1, 0], [1, 0])
    """
    table = pl.DataFrame({"text": texts.cast(pl.String).fill_null("")})
    text = pl.col("text")
    counts = table.select(text.str.count_matches(each.pattern).alias(each.name) for each in STATISTICS)
    return np.asarray(np.log1p(counts.to_numpy().astype(np.float32)))


def choose_words(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the words that some texts have and most have not, at most 300, sorted.

    >>> choose_words(["tea or milk"] * 2 + ["water"] * 8)
    ('milk', 'or', 'tea')
    """
    counts = Counter(word for text in texts for word in set(_WORD.findall(text.lower())))
    least = max(2.0, _LEAST_SHARE * len(texts))
    usable = [(word, n) for word, n in counts.items() if least <= n <= _MOST_SHARE * len(texts) and len(word) > 1]
    return tuple(sorted(word for word, _ in sorted(usable, key=lambda pair: (-pair[1], pair[0]))[:MOST_WORDS]))


def has_words(texts: pl.Series, words: Sequence[str]) -> "sparse.csr_array[Any, tuple[int, int]]":
    """Return which of the words each text has, shape (m, words).

    >>> has_words(pl.Series(["Tea, or coffee", "steam"]), ["coffee", "tea"]).toarray().tolist()
    [[1.0, 1.0], [0.0, 0.0]]
    """
    if not words:
        return sparse.csr_array(np.zeros((len(texts), 0), np.float32))
    spaced = texts.cast(pl.String).fill_null("").str.to_lowercase().str.replace_all(_NO_WORD, " ")
    padded = pl.select(pl.concat_str(pl.lit(" "), spaced, pl.lit(" "))).to_series()
    found = padded.str.extract_many([f" {word} " for word in words], overlapping=True)
    rows = np.repeat(np.arange(len(texts)), found.list.len().fill_null(0).to_numpy())
    place = {f" {word} ": number for number, word in enumerate(words)}
    columns = found.explode().drop_nulls().replace_strict(place, return_dtype=pl.Int64).to_numpy()
    ones = sparse.coo_array((np.ones(len(rows), np.float32), (rows, columns)), shape=(len(texts), len(words)))
    table = ones.tocsr()  # repeated ones add up
    table.data[:] = 1.0
    return sparse.csr_array(table)
