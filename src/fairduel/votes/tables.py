"""From a file to a table of text: CSV, JSON Lines or Parquet; broken lines keep their row, and say what is wrong."""

import csv
import gzip
import io
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, cast

import polars as pl
from polars.exceptions import PolarsError

from fairduel.errors import BadInputError
from fairduel.votes.columns import find_columns

FAULT = "\x00fault"
"""A column for lines that are no rows, with one of the sentences below."""
TOO_MANY, NOT_UTF8, NOT_JSON = "more values than columns", "not UTF-8", "not JSON"
_SUFFIXES = (".csv", ".csv.gz", ".tsv", ".jsonl", ".ndjson", ".parquet")
_NEWLINES_AT_ONCE = 1 << 24


def read_table(path: Path, columns: Mapping[str, str | None]) -> tuple[pl.DataFrame, int]:
    """Read the table in a file, and the number of its first row as an editor counts; ``columns`` as in read_votes."""
    suffix = next((ending for ending in _SUFFIXES if path.name.lower().endswith(ending)), None)
    if suffix is None:
        raise BadInputError(f"{path.name} is none of the files that are read: {', '.join(_SUFFIXES)}.")
    try:
        if suffix == ".parquet":
            return _parquet(path, columns), 1
        if suffix in (".jsonl", ".ndjson"):
            return _json_lines(path, columns), 1
        return _csv(path), 2
    except (OSError, PolarsError, EOFError) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise BadInputError(f"cannot read {path}: {reason}.") from error


def _csv(path: Path) -> pl.DataFrame:
    with _opened(path) as file:
        header = file.readline().decode(errors="replace").lstrip("\ufeff")
    if not header:
        raise BadInputError(f"{path.name} is empty: it needs a header and votes.")
    separator = max(",;\t", key=header.count)
    try:
        return pl.read_csv(path, infer_schema=False, separator=separator)
    except PolarsError:
        return _careful_csv(path, separator)


def _opened(path: Path) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(path, "rb")) if path.name.lower().endswith(".gz") else path.open("rb")


def _careful_csv(path: Path, separator: str) -> pl.DataFrame:
    """Read a CSV file with broken lines, one by one: too many values, or bytes that are no UTF-8."""
    with _opened(path) as raw, io.TextIOWrapper(raw, "utf-8-sig", errors="replace", newline="") as file:
        lines = csv.reader(file, delimiter=separator, strict=True)
        try:
            header, *rows = lines
        except csv.Error as error:
            raise BadInputError(f"{path.name} is no CSV file from line {lines.line_num} on: {error}.") from error
    width = len(header)
    if len(set(header)) < width:
        raise BadInputError(f"two columns of {path.name} have the same name.")
    faults = [_csv_fault(row, width) for row in rows]
    values = list(zip(*((*row[:width], *[None] * (width - len(row))) for row in rows), strict=True)) or [()] * width
    table = {name: pl.Series(column, dtype=pl.String) for name, column in zip(header, values, strict=True)}
    return pl.DataFrame({**table, FAULT: pl.Series(faults, dtype=pl.String)})


def _csv_fault(row: Sequence[str], width: int) -> str | None:
    if len(row) > width:
        return TOO_MANY
    return NOT_UTF8 if any("\ufffd" in value for value in row) else None


def _json_lines(path: Path, columns: Mapping[str, str | None]) -> pl.DataFrame:
    with path.open("rb") as file:
        start = b"".join(itertools.islice(file, 1000))
    names = list(dict.fromkeys(key for line in start.splitlines() for key in _keys(line)))
    if not names:
        raise BadInputError(f'{path.name} is empty or no JSON Lines: each line is an object like {{"first": …}}.')
    wanted = list(find_columns(names, columns, path.name).values())
    try:
        frame = pl.read_ndjson(path, schema=dict.fromkeys(wanted, pl.String))
        if len(frame) == _lines(path):  # else some are empty, and rows would have wrong numbers
            return frame
    except PolarsError:
        pass
    lines = pl.Series(path.read_text(encoding="utf-8", errors="replace").splitlines(), dtype=pl.String).alias("line")
    whole = pl.col("line").str.json_path_match("$")
    fault = pl.when(pl.col("line") == "").then(None).when(whole.is_null()).then(pl.lit(NOT_JSON))
    return lines.to_frame().select(
        *(pl.col("line").str.json_path_match(f"$['{name}']").alias(name) for name in wanted),
        fault.when(whole.str.contains("\ufffd", literal=True)).then(pl.lit(NOT_UTF8)).alias(FAULT),
    )


def _keys(line: bytes) -> Iterable[str]:
    try:
        record = json.loads(line)
    except ValueError:
        return ()
    return record if isinstance(record, dict) else ()


def _lines(path: Path) -> int:
    count, last = 0, b"\n"
    with path.open("rb") as file:
        while chunk := file.read(_NEWLINES_AT_ONCE):
            count, last = count + chunk.count(b"\n"), chunk[-1:]
    return count + (last != b"\n")


def _parquet(path: Path, columns: Mapping[str, str | None]) -> pl.DataFrame:
    names = list(pl.read_parquet_schema(path))
    return pl.read_parquet(path, columns=list(find_columns(names, columns, path.name).values()))
