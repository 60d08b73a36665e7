"""The columns of a vote table: what each holds, who won by them, and the values inside of them.

A column holds plain values, or objects: as structs (Parquet, Arrow) or as JSON text (JSON, JSON Lines, CSV). Values
inside of objects have names with dots: ``conv_metadata.sum_assistant_a_tokens``. Names become codes: distinct texts,
sorted, and the index of each text among them. The winner is a word for a position, a sign, or an item's name.
"""

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fairduel.duel import Vector
from fairduel.errors import BadInputError, suggestion, unknown_name
from fairduel.votes.votes import Codes, Mask
from fairduel.words import listed as joined

WHOLE = re.compile(r"^(-?[0-9]+)\.0+$")
"""A whole number that a table has turned into 1.0."""
_MOST_VALUES = 5  # listed if none is the one asked for


def column_of(path: str, names: Sequence[str]) -> str | None:
    """Return the column that holds the values at ``path``: of that name, or of its start up to a dot.

    >>> column_of("meta.user.id", ["meta", "user"]), column_of("a.b", ["a", "a.b"]), column_of("user.id", ["meta"])
    ('meta', 'a.b', None)
    """
    parts = path.split(".")
    starts = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next((start for start in starts if start in names), None)


def field(frame: pl.DataFrame, path: str, file: str) -> pl.Series:
    """Return the values at ``path``, null where there are none.

    >>> field(pl.DataFrame({"meta": ['{"user": {"id": 7}}', None]}), "meta.user.id", "votes.csv").to_list()
    ['7', None]
    """
    column = column_of(path, frame.columns)
    if column is None:
        raise BadInputError(f"{file} has no column {path!r}{suggestion(path, frame.columns, 'its columns')}.")
    values = frame[column]
    for key in path[len(column) + 1 :].split(".") if len(path) > len(column) else ():
        if isinstance(values.dtype, pl.Struct) and key in values.struct.fields:
            values = values.struct.field(key)
        elif values.dtype == pl.String:
            values = values.str.json_path_match(f"$['{key}']")
        else:
            values = pl.Series([None] * len(values), dtype=pl.String)
    return values.alias(path)


def objects(column: pl.Series) -> list[Any]:
    """Return the values of a column as Python objects; JSON text that is broken stays text.

    >>> objects(pl.Series(['[{"a": 1}]', "[x", None, "7"]))
    [[{'a': 1}], '[x', None, '7']
    """
    if column.dtype != pl.String:
        return column.to_list()
    return [_parsed(text) if text and text[0] in "[{" else text for text in column]


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def numbers(column: pl.Series) -> Vector:
    """Return a column as numbers, with NaN where it holds none; an object of numbers counts as their sum.

    >>> numbers(pl.Series(['{"h1": 1, "h2": 2}', "4.5", "x", None])).tolist()
    [3.0, 4.5, nan, nan]
    """
    if isinstance(column.dtype, (pl.Categorical, pl.Enum)):
        column = column.cast(pl.String)
    if isinstance(column.dtype, pl.Struct) or (column.dtype == pl.String and column.str.starts_with("{").any()):
        return np.array([_sum(value) for value in objects(column)], dtype=np.float64)
    return column.cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy().astype(np.float64)


def _sum(value: Any) -> float:
    try:
        return float(sum(value.values()) if isinstance(value, dict) else value)
    except (TypeError, ValueError):
        return float("nan")


def kept_rows(frame: pl.DataFrame, where: Mapping[str, Any], file: str) -> Mask:
    """Return which rows have, in each column of ``where``, the given value, or one of a list of values, shape (n,).

    Values are compared as text, without regard to case; 1 and 1.0 are the same.

    >>> table = pl.DataFrame({"turn": [1, 2, 1], "anony": [True, True, False]})
    >>> kept_rows(table, {"turn": "1", "anony": True}, "votes.csv").tolist()
    [True, False, False]
    """
    kept = np.ones(len(frame), dtype=np.bool_)
    for path, value in where.items():
        wanted = [_plain(each) for each in values_of(value)]
        column = field(frame, path, file)
        if column.dtype.is_nested():
            raise BadInputError(f"{file}: column {path!r} holds {column.dtype}: name a value in it ({path}.NAME).")
        plain = column.cast(pl.String).str.strip_chars().str.replace(WHOLE.pattern, "${1}").str.to_lowercase()
        holds = plain.is_in(wanted).fill_null(value=False).to_numpy()
        if len(frame) and not holds.any():
            seen = _most_frequent(column.cast(pl.String))
            raise BadInputError(f"no row of {file} has {path} = {' or '.join(wanted)}: {seen}.")
        kept &= holds
    return kept


def _most_frequent(text: pl.Series) -> str:
    common = text.drop_nulls().value_counts(sort=True).head(_MOST_VALUES)[text.name].to_list()
    return f"its most frequent values are {', '.join(common)}" if common else "it has no values"


def values_of(value: Any) -> list[Any]:
    """Return the values of a condition, which may be one or several."""
    return list(value) if isinstance(value, (list, tuple, set)) else [value]


def _plain(value: Any) -> str:
    return WHOLE.sub(r"\1", str(value).strip()).lower()


def truth(column: pl.Series) -> pl.Series:
    """Return whether each value is 1 or true; null where it is missing.

    >>> truth(pl.Series(["1", "0.0", "True", None])).to_list()
    [True, False, True, None]
    """
    if column.dtype == pl.Boolean:
        return column
    text = column.cast(pl.String).str.strip_chars().str.to_lowercase()
    return text.str.contains(r"^(1(\.0+)?|true|yes)$")


def coded(text: pl.Series, names: pl.Series) -> Codes:
    """Return the index of each text in ``names``, or −1."""
    codes = text.cast(pl.Enum(names), strict=False).to_physical().cast(pl.Int32).fill_null(-1)
    return codes.to_numpy(writable=True)


def distinct(text: pl.Series) -> pl.Series:
    """Return the distinct texts, without blank ones."""
    names = text.unique().drop_nulls()
    return names.filter(names.str.strip_chars() != "")


def sorted_names(text: pl.Series) -> pl.Series:
    """Return the distinct texts, sorted: numerically if all are whole numbers, otherwise alphabetically."""
    names = distinct(text)
    numbers = names.cast(pl.Int64, strict=False)
    are_numbers = len(names) > 0 and (numbers.cast(pl.String) == names).fill_null(value=False).all()
    return names.gather(numbers.arg_sort()) if are_numbers else names.sort()


def item_codes(first: pl.Series, second: pl.Series) -> tuple[Codes, Codes, pl.Series]:
    """Return the codes (n,) of the first and the second item of each row, and the names of all items."""
    items = sorted_names(pl.concat([first.unique().alias("item"), second.unique().alias("item")]))
    return coded(first, items), coded(second, items), items


def keep_used(names: pl.Series, *codes: Codes) -> tuple[str, ...]:
    """Drop names that no vote uses, and renumber the ``codes`` (n,) in place."""
    used = np.zeros(len(names) + 1, dtype=bool)
    for part in codes:
        used[part] = True
    place = np.append(np.cumsum(used[:-1]) - 1, -1).astype(np.int32)  # −1 stays −1
    for part in codes:
        part[:] = place[part]
    return tuple(names.filter(pl.Series(used[:-1])).to_list())


def look_alikes(kind: str, names: pl.Series) -> list[str]:
    """Warn about names that look the same; they stay different."""
    odd = names.filter(
        (names.str.strip_chars() != names) | ~names.str.contains(r"^[\x00-\x7f]*$") | names.str.contains(WHOLE.pattern)
    )
    groups: dict[str, list[str]] = {}
    for name in odd:
        clean = unicodedata.normalize("NFC", name.strip())
        groups.setdefault(WHOLE.sub(r"\1", clean), []).append(name)
    plain = set(names.filter(names.is_in(list(groups)))) if groups else set()
    for clean, group in groups.items():
        if clean in plain and clean not in group:
            group.append(clean)
    same = [group for group in groups.values() if len(group) > 1]
    return [
        f"the {kind} {' and '.join(repr(name) for name in group)} differ only in spaces, accent encoding or a trailing "
        ".0; they are kept separate."
        for group in same
    ]


_A_AND_B = tuple((f"{kind}_a", f"{kind}_b") for kind in ("model", "item", "arm", "arg", "option"))
_LEFT_AND_RIGHT = (("left", "right"), ("links", "rechts"), ("gauche", "droite"), ("izquierda", "derecha"))
PAIRS = (("first", "second"), *_A_AND_B, *_LEFT_AND_RIGHT, ("a", "b"))
"""Names of the columns of the two items, which also name a winner by position."""
_TEXTS = ("response", "answer", "text", "completion", "generation", "output", "candidate", "summary", "image")
TEXT_PAIRS = tuple((f"{kind}{a}", f"{kind}{b}") for kind in _TEXTS for a, b in (("_a", "_b"), ("_1", "_2"), ("1", "2")))
"""Names of columns with the two answers, which are the items if nothing else is."""
_NAMES = {
    "winner": ("winner", "outcome", "result", "choice"),
    "voter": ("voter", "worker", "judge", "user", "annotator", "rater"),
    "context": ("context", "prompt", "question", "topic"),
    "time": ("time", "timestamp", "tstamp", "minute", "response_time"),
    "weight": ("weight",),
}
_LAST_CHOICES = {
    "voter": (
        *("judge_hash", "visitor_id", "session_hash", "evaluation_session_id", "session_identifier"),
        *("session_id", "session", "completed_by", "labeler", "labeler_id"),
    ),
    "context": ("item_id", "conversation_pair_id", "instruction"),
    "time": ("created_at", "response_time_(s)", "lead_time"),
}
"""Names that count only if there is no other, the best first."""
_REQUIRED = {"first": "the first item", "second": "the second item", "winner": "the winner"}
_MOST_LISTED = 30  # columns
ROLES = ("first", "second", *_NAMES)  # those of Roles
Columns = Mapping[str, str | None]
"""The column of each role, None if there is none."""


class Roles(TypedDict, total=False):
    """The column of each role, as arguments of a function."""

    first: str | None
    second: str | None
    winner: str | None
    voter: str | None
    context: str | None
    time: str | None
    weight: str | None


def find_columns(names: Sequence[str], given: Columns, file: str, *, complete: bool = True) -> dict[str, str]:
    """Map each role to one of the columns ``names``: as ``given``, otherwise by common names.

    Unless ``complete``, the items and the winner may be missing.

    >>> find_columns(["arm_a", "arm_b", "winner", "judge_id", "judge"], {}, "votes.csv")
    {'first': 'arm_a', 'second': 'arm_b', 'winner': 'winner', 'voter': 'judge_id'}
    """
    for role, column in given.items():
        if role not in ROLES:
            raise unknown_name("column role", role, ROLES)
        if column is not None and column not in names:
            raise BadInputError(f"{file} has no column {column!r}{suggestion(column, names, 'its columns')}.")
    plain = plain_names(names)
    shown = ", ".join(name if name.isprintable() else repr(name) for name in names[:_MOST_LISTED])
    more = f" and {len(names) - _MOST_LISTED:,} more" if len(names) > _MOST_LISTED else ""
    listed = f"the columns of {file} are {shown}{more}"
    found = {role: column for role, column in given.items() if column is not None}
    if not {"first", "second"} & set(given):
        found |= _common_pair(plain, listed)
    for role in set(_NAMES) - set(given):
        found |= _common_column(role, plain, listed)
    if complete and (missing := [role for role in _REQUIRED if role not in found]):
        what, options = joined([_REQUIRED[role] for role in missing]), joined([f"{role}=…" for role in missing])
        raise BadInputError(
            f"no column found for {what}: name {'it' if len(missing) == 1 else 'them'} with {options}; {listed}."
        )
    for role in found:
        if found[role] not in names:
            raise BadInputError(f"the {role} column could be {found[role]}: name it ({role}=…); {listed}.")
    if len(set(found.values())) < len(found):
        raise BadInputError(f"a column cannot have two roles: {', '.join(f'{r} = {c}' for r, c in found.items())}.")
    return {role: found[role] for role in ROLES if role in found}


def plain_names(names: Sequence[str]) -> dict[str, str]:
    """Columns by normalised name; two with the same normalised name become "Winner or winner".

    >>> plain_names(["Winner ID", "model-a"])
    {'winner_id': 'Winner ID', 'model_a': 'model-a'}
    """
    plain: dict[str, str] = {}
    for name in names:
        usual = name.strip().lower().replace(" ", "_").replace("-", "_")
        plain[usual] = f"{plain[usual]} or {name}" if usual in plain else name
    return plain


def _common_pair(plain: Mapping[str, str], listed: str) -> dict[str, str]:
    pairs = [pair for pair in PAIRS if set(pair) <= set(plain)]
    pairs = pairs or [pair for pair in TEXT_PAIRS if set(pair) <= set(plain)]
    if len(pairs) > 1:
        either = " or ".join(f"{plain[a]} and {plain[b]}" for a, b in pairs)
        raise BadInputError(f"the items could be {either}: name the columns (first=…, second=…); {listed}.")
    return {role: plain[name] for pair in pairs for role, name in zip(("first", "second"), pair, strict=True)}


def _common_column(role: str, plain: Mapping[str, str], listed: str) -> dict[str, str]:
    words = [word for word in _NAMES[role] if {word, f"{word}_id"} & set(plain)]
    if len(words) > 1:
        raise BadInputError(f"the {role} column could be {' or '.join(words)}: name it ({role}=…); {listed}.")
    if not words:
        last = next((name for name in _LAST_CHOICES.get(role, ()) if name in plain), None)
        return {role: plain[last]} if last else {}
    return {role: plain.get(f"{words[0]}_id") or plain[words[0]]}  # judge_id next to judge is the same person


FIRST_WORDS, SECOND_WORDS = zip(*PAIRS, ("1", "2"), strict=True)
"""Words for a winner by position, in upper or lower case."""
_TIE_WORDS = (
    *("tie", "draw", "equal", "both", "both good", "0.5", "no preference", "no difference", "equally good", "same"),
    *("undecided", "gleich", "unentschieden", "égalité", "igual", "empate"),
)
_BOTH_BAD_WORDS = ("both-bad", "both bad", "both_bad", "bothbad", "tie (bothbad)", "tie (both bad)", "neither")
UNKNOWN, FIRST, SECOND, TIE, BOTH_BAD = -1, 1, 0, 2, 3
"""Who won."""
MEANINGS = {"first": FIRST, "second": SECOND, "tie": TIE, "both-bad": BOTH_BAD}
"""What a word for a winner may be said to mean."""
_SIGNS = {"1": FIRST, "-1": SECOND, "0": TIE}
_STRAY = 0.05  # share of rows below which a spelling does not decide how the others are read


def read_winners(
    text: pl.Series,
    first: Codes,
    second: Codes,
    items: pl.Series,
    name: str,
    *,
    sides: tuple[str, str],
    meanings: Mapping[str, str],
) -> tuple[NDArray[np.int8], Mask]:
    """Return who won each row, and which rows name no winner.

    The winner is ``FIRST``, ``SECOND``, ``TIE``, ``BOTH_BAD`` or ``UNKNOWN``, read from a word or an item's name.
    ``sides`` are the names of the items' columns, which are words too. ``meanings`` are other words, and those that
    have another meaning here: each is one of ``MEANINGS``.
    """
    values = distinct(text)
    codes = coded(text, values)  # −1 (no winner) selects the last entry of the tables below
    words = {sides[0].lower(): FIRST, sides[1].lower(): SECOND}
    words |= dict.fromkeys(FIRST_WORDS, FIRST) | dict.fromkeys(SECOND_WORDS, SECOND)
    words |= dict.fromkeys(_TIE_WORDS, TIE) | dict.fromkeys(_BOTH_BAD_WORDS, BOTH_BAD)
    whole = values.str.strip_chars().str.replace(WHOLE.pattern, "${1}")
    plain = whole.str.to_lowercase()
    if _are_signs(plain, items):
        words |= _SIGNS
    for word, meaning in meanings.items():
        if meaning not in MEANINGS:
            raise unknown_name("meaning", meaning, MEANINGS, where=f"of the winner {word!r}")
        if word.strip().lower() not in set(plain):
            raise BadInputError(f"no winner in {name} is {word!r} (words=…); {_most_frequent(text)}.")
        words[word.strip().lower()] = MEANINGS[meaning]
    meant = plain.replace_strict(words, default=UNKNOWN, return_dtype=pl.Int8).to_numpy()
    item_of = coded(values, items)
    item_of = np.where((item_of < 0) & (whole != values.str.strip_chars()).to_numpy(), coded(whole, items), item_of)
    by_word: NDArray[np.int8] = np.append(meant, np.int8(UNKNOWN))[codes]
    item = np.append(item_of, np.int32(-1))[codes]
    by_name = np.where(item == first, FIRST, np.where(item == second, SECOND, UNKNOWN)).astype(np.int8)
    by_name[item < 0] = UNKNOWN
    zeros = np.append((plain == "0").to_numpy() & (meant == UNKNOWN), [False])[codes]
    unknown_zeros = (zeros & (by_name == UNKNOWN)).sum()
    if 2 * unknown_zeros > zeros.sum() and unknown_zeros >= _STRAY * (codes >= 0).sum():
        raise BadInputError(f"winner 0 in {name} could mean the first or the second item: write first or second.")
    _ensure_both_sides(text, by_word, by_name, name)
    # Items may be called a and b, or 1 and 2. Then winners are either all names or all positions: what fits more rows.
    named = (item >= 0) & (first != second)
    with_places = int((by_word[named] != UNKNOWN).sum())
    if with_places == 0:
        return np.maximum(by_word, by_name), codes < 0
    with_names = int((by_name[named] != UNKNOWN).sum())
    differ = ((by_word != by_name) & (by_word != UNKNOWN) & (by_name != UNKNOWN) & named).any()
    if differ and abs(with_places - with_names) <= _STRAY * max(with_places, with_names):
        raise BadInputError(
            f"winners in {name} could be positions or item names, with different results: write first or second."
        )
    return np.where(item < 0, by_word, by_word if with_places > with_names else by_name), codes < 0


def _are_signs(plain: pl.Series, items: pl.Series) -> bool:
    """Whether winners are 1 and −1, for first and second, with 0 for a tie, and no item has such a name."""
    found = set(plain)
    return {"1", "-1"} <= found and "2" not in found and not {"1", "-1", "0"} & set(items)


def _ensure_both_sides(text: pl.Series, by_word: NDArray[np.int8], by_name: NDArray[np.int8], name: str) -> None:
    """Raise an error if only one position ever wins because the other is written in an unknown way."""
    first, second = (int(np.count_nonzero(by_word == side)) for side in (FIRST, SECOND))
    if bool(first) == bool(second):
        return
    unknown = text.filter(pl.Series((by_word == UNKNOWN) & (by_name == UNKNOWN))).drop_nulls()
    for word, count in unknown.value_counts(sort=True).head(1).iter_rows():
        if count >= max(_STRAY * (first + second), 2):
            only = "first" if first else "second"
            raise BadInputError(
                f"all readable winners in {name} are the {only} item, but {count:,} rows say {word!r}: say what it "
                "means (words=…), or write first, second or tie."
            )
