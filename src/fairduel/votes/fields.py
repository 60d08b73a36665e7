"""Values in columns and, by names with dots, inside of them: ``conv_metadata.sum_assistant_a_tokens``.

A column holds plain values, or objects: as structs (Parquet, Arrow) or as JSON text (JSON, JSON Lines, CSV).
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from fairduel.duel import Vector
from fairduel.errors import BadInputError, suggestion
from fairduel.votes.votes import Mask

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
            common = column.cast(pl.String).drop_nulls().value_counts(sort=True).head(_MOST_VALUES)[path].to_list()
            seen = f"its most frequent values are {', '.join(common)}" if common else "it has no values"
            raise BadInputError(f"no row of {file} has {path} = {' or '.join(wanted)}: {seen}.")
        kept &= holds
    return kept


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
