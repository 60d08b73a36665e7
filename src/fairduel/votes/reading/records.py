"""Tables that are already in memory: lists of records, and data frames of any library."""

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl
from polars.exceptions import PolarsError

from fairduel.errors import BadInputError

FAULT, LINE = "\x00fault", "\x00line"
"""Columns that a reader may add for broken lines: what is wrong, and the original line."""
HALF_A_CHARACTER = "half a character (lone surrogate)"
Wanted = Callable[[Sequence[str]], list[str]]
"""Given the names of all columns, returns those that are needed."""


def records_table(records: Sequence[Any], wanted: Wanted, name: str) -> pl.DataFrame:
    """Return one row per record; objects and lists in it become JSON text, and what is not an object is a fault.

    >>> records_table([{"first": "tea", "more": {"n": 1}}], list, "votes.json").rows()
    [('tea', '{"n": 1}')]
    """
    objects = [record if isinstance(record, Mapping) else {} for record in records]
    names = list(dict.fromkeys(itertools.chain.from_iterable(objects)))
    if not names or not all(isinstance(name, str) for name in names):
        raise BadInputError(f'{name} holds no votes: it needs a list of objects like {{"first": …}}.')
    columns = wanted(names)
    rows = [[_json_text(record.get(name)) for name in columns] for record in objects]
    faults = [_fault(record, row) for record, row in zip(records, rows, strict=True)]
    kept = [row if fault is None else [None] * len(columns) for row, fault in zip(rows, faults, strict=True)]
    table: dict[str, Sequence[str | None]] = dict(zip(columns, zip(*kept, strict=True), strict=True))
    if any(faults):
        table[FAULT] = faults
        lines = (readable(_dumped(record)) for record in records)
        table[LINE] = [line if fault else None for line, fault in zip(lines, faults, strict=True)]
    return pl.DataFrame({column: pl.Series(values, dtype=pl.String) for column, values in table.items()})


def _json_text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else _dumped(value)


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _fault(record: Any, row: Sequence[str | None]) -> str | None:
    if not isinstance(record, Mapping):
        return "not an object"
    return HALF_A_CHARACTER if any(value and readable(value) != value for value in row) else None


def readable(text: str) -> str:
    """Return a text with a question mark for each invalid byte."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def table_in_memory(table: Any, wanted: Wanted) -> pl.DataFrame:
    """Return a table of polars, pandas, Arrow or Hugging Face, or a list of mappings, as a polars table.

    >>> table_in_memory([{"first": "tea", "second": "milk", "winner": "first"}], list).shape
    (1, 3)
    """
    if table is None or isinstance(table, (list, tuple)):
        return records_table(table or (), wanted, "the list")
    try:
        if isinstance(table, pl.LazyFrame):
            return table.collect()
        if hasattr(table, "to_polars"):  # Hugging Face: a selection of rows is not in its Arrow table
            return pl.DataFrame(table.to_polars())
        return pl.DataFrame(table)
    except ModuleNotFoundError as error:
        raise BadInputError(f"cannot read votes from {type(table).__name__}: install {error.name}.") from error
    except (TypeError, ValueError, PolarsError) as error:
        raise BadInputError(
            f"cannot read votes from {type(table).__name__}: pass a path, one table (of pandas, polars, Arrow or "
            "Hugging Face datasets) or a list of dicts."
        ) from error
