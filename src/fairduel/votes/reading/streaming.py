"""Parquet files with more votes than fit into memory: equal rows are counted while the file streams by."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from fairduel.votes.reading.fields import Columns, find_columns
from fairduel.votes.reading.file_readers import damage_said
from fairduel.votes.reading.shapes import shape_of
from fairduel.words import listed

MOST_IN_MEMORY = 20_000_000
"""Rows of a Parquet file up to which every vote is read, with its voter, context and time."""
_AT_ONCE = 5_000_000  # rows
_COUNT = "times"


def is_streamed(path: Path, given: Columns) -> bool:
    """Whether a file has too many votes to read, in the plain shape, so that equal rows are counted instead."""
    if not path.name.lower().endswith(".parquet") or not path.is_file():
        return False
    with damage_said(str(path)):
        names = list(pl.read_parquet_schema(path))
        rows = int(pl.scan_parquet(path).select(pl.len()).collect().item())
    if rows <= MOST_IN_MEMORY or shape_of(names, given, path.name) is not None:
        return False
    return "weight" not in find_columns(names, given, path.name)


def counted_rows(path: Path, given: Columns) -> tuple[pl.DataFrame, Columns, Sequence[str]]:
    """Count how often each duel ended how; return a table with the count as weight, its columns, and what is left out.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "votes.parquet"
    >>> table = pl.DataFrame({"left": ["tea", "tea"], "right": ["milk", "milk"], "winner": ["tea", "tea"]})
    >>> table.write_parquet(path)
    >>> found, columns, _ = counted_rows(path, {})
    >>> found.rows(), columns["weight"]
    ([('tea', 'milk', 'tea', 2.0)], 'times')
    """
    found = find_columns(list(pl.read_parquet_schema(path)), given, path.name)
    keys = [found[role] for role in ("first", "second", "winner")]
    columns: dict[str, str | None] = dict(zip(("first", "second", "winner"), keys, strict=True))
    name = _COUNT
    while name in keys:
        name += "_"
    table = pl.scan_parquet(path).select(keys)
    frame = pl.DataFrame()
    for start in range(0, int(table.select(pl.len()).collect().item()), _AT_ONCE):
        part = table.slice(start, _AT_ONCE).group_by(keys).agg(pl.len().cast(pl.Float64).alias(name)).collect()
        frame = pl.concat([frame, part]).group_by(keys).agg(pl.col(name).sum()) if len(frame) else part
    frame = frame.sort(keys)
    lost = [f"{role}s" for role in ("voter", "context", "time") if role in found]
    rows = int(frame[name].sum())
    left = f": {listed(lost)} are left out" if lost else ""
    unchecked = ", so no voter can be checked" if "voters" in lost else ""
    said = f"the {rows:,} rows are too many to read one by one, so equal duels were counted together{left}{unchecked}."
    return frame, {**columns, "weight": name, "voter": None, "context": None, "time": None}, [said]
