"""From a file to a table of text: CSV, JSON Lines or Parquet; broken lines keep their row, and say what is wrong.

A reader is a function of the path and of the columns that were named (as in :func:`fairduel.votes.reading.read_votes`).
It returns the table and the number of its first row, as an editor counts. ``READERS`` says which reads what.
"""

import codecs
import csv
import gzip
import io
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, cast

import polars as pl
from polars.exceptions import PolarsError

from fairduel.errors import BadInputError
from fairduel.votes.column_roles import find_columns

FAULT, LINE = "\x00fault", "\x00line"
"""Columns that a reader may add for lines that are no rows: what is wrong, and the line as it stands in the file."""
_NOT_UTF8 = "not UTF-8"
Columns = Mapping[str, str | None]
_LONGEST_VALUE = 100  # lines within quotes; beyond, a quote was never closed


def read_table(path: Path, columns: Columns) -> tuple[pl.DataFrame, int]:
    """Read a file by the reader of its ending."""
    read = next((reader for ending, reader in READERS.items() if path.name.lower().endswith(ending)), None)
    if read is None:
        raise BadInputError(f"{path.name} is none of the files that are read: {', '.join(READERS)}.")
    try:
        return read(path, columns)
    except (OSError, PolarsError, EOFError) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise BadInputError(f"cannot read {path}: {reason}.") from error


def read_csv(path: Path, _: Columns) -> tuple[pl.DataFrame, int]:
    """Read values between commas, semicolons or tabs, also compressed."""
    with _opened(path) as file:
        start = file.readline().removeprefix(codecs.BOM_UTF8)
        blank = 0
        while start and not start.strip():
            start, blank = file.readline(), blank + 1
    if not start:
        raise BadInputError(f"{path.name} is empty: it needs a header and votes.")
    header = start.decode(errors="replace")
    separator = max(",;\t", key=header.splitlines()[0].count)
    if "\r" not in header.removesuffix("\n").removesuffix("\r"):  # else carriage returns alone end the lines
        try:
            return pl.read_csv(path, infer_schema=False, separator=separator), blank + 2
        except PolarsError:
            pass
    return _careful_csv(path, separator, blank), blank + 2


def _opened(path: Path) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(path, "rb")) if path.name.lower().endswith(".gz") else path.open("rb")


def _careful_csv(path: Path, separator: str, blank: int) -> pl.DataFrame:
    """Read a CSV file with broken lines, one by one: too many values, quotes out of place, or bytes that are no UTF-8.

    ``blank`` lines come before the header.
    """
    with _opened(path) as raw, io.TextIOWrapper(raw, "utf-8-sig", errors="replace") as file:
        lines = file.readlines()[blank:]
    try:
        [header] = csv.reader(lines[:1], delimiter=separator, strict=True)
    except csv.Error as error:
        raise BadInputError(f"the header of {path.name} is broken: {error}.") from error
    width = len(header)
    if len(set(header)) < width:
        raise BadInputError(f"two columns of {path.name} have the same name.")
    rows, faults, broken = [], [], []
    for values, line in _records(lines[1:], separator, width):
        fault = _csv_fault(values, line, width)
        known = [] if values is None else values[:width]
        rows.append([*known, *[None] * (width - len(known))])
        faults.append(fault)
        broken.append(line if fault else None)
    columns = list(zip(*rows, strict=True)) or [()] * width
    table = dict(zip([*header, FAULT, LINE], [*columns, faults, broken], strict=True))
    return pl.DataFrame({name: pl.Series(column, dtype=pl.String) for name, column in table.items()})


def _records(lines: Sequence[str], separator: str, width: int) -> Iterator[tuple[list[str] | None, str]]:
    """Values of each record, and its text; a line whose quotes cannot be read is a record without values."""
    place = 0
    while place < len(lines):
        values, taken = _one_record(lines[place : place + _LONGEST_VALUE], separator, width)
        yield values, "".join(lines[place : place + taken]).rstrip("\n")
        place += taken


def _one_record(lines: Sequence[str], separator: str, width: int) -> tuple[list[str] | None, int]:
    """Values of the record at the start of the lines (None where there is none), and how many lines it takes."""
    if '"' not in lines[0]:
        return lines[0].rstrip("\n").split(separator) if lines[0].strip() else [], 1
    reader = csv.reader(lines, delimiter=separator, strict=True)
    try:
        values = next(reader)
    except csv.Error:
        return None, 1
    # a quote that swallows lines must be one that was meant to
    return (values, reader.line_num) if reader.line_num == 1 or len(values) == width else (None, 1)


def _csv_fault(values: Sequence[str] | None, line: str, width: int) -> str | None:
    if values is None:
        return "a quote is out of place"
    if len(values) > width:
        return "more values than columns"
    return _NOT_UTF8 if "\ufffd" in line else None


def read_json_lines(path: Path, columns: Columns) -> tuple[pl.DataFrame, int]:
    """Read one JSON object a line."""
    content = path.read_bytes().removeprefix(codecs.BOM_UTF8)
    names = _json_names(content)
    if not names:
        raise BadInputError(f'{path.name} is empty or no JSON Lines: each line is an object like {{"first": …}}.')
    wanted = list(find_columns(names, columns, path.name).values())
    try:
        frame = pl.read_ndjson(content, schema=dict.fromkeys(wanted, pl.String))
        if len(frame) == content.count(b"\n") + (not content.endswith(b"\n")):
            return frame, 1  # else some lines are empty, and rows would have wrong numbers
    except PolarsError:
        pass
    text = content.decode(errors="replace").removesuffix("\n")
    lines = pl.Series("line", [line.removesuffix("\r") for line in text.split("\n")], dtype=pl.String)
    whole = pl.col("line").str.json_path_match("$")
    is_object = whole.str.starts_with("{").fill_null(value=False)
    fault = pl.when(pl.col("line") == "").then(None).when(~is_object).then(pl.lit("not JSON"))
    fault = fault.when(whole.str.contains("\ufffd", literal=True)).then(pl.lit(_NOT_UTF8))
    values = [pl.col("line").str.json_path_match(f"$['{name}']").alias(name) for name in wanted]
    broken = pl.when(fault.is_not_null()).then(pl.col("line"))
    return lines.to_frame().select(*values, fault.alias(FAULT), broken.alias(LINE)), 1


def _json_names(content: bytes) -> list[str]:
    """The keys of all lines, in the order in which they come."""
    try:
        return pl.scan_ndjson(content, infer_schema_length=None).collect_schema().names()
    except PolarsError:
        return list(dict.fromkeys(itertools.chain.from_iterable(map(_keys, content.split(b"\n")))))


def _keys(line: bytes) -> Iterable[str]:
    try:
        record = json.loads(line)
    except ValueError:
        return ()
    return record if isinstance(record, dict) else ()


def read_parquet(path: Path, columns: Columns) -> tuple[pl.DataFrame, int]:
    """Read the columns that are needed, with their types."""
    names = list(pl.read_parquet_schema(path))
    return pl.read_parquet(path, columns=list(find_columns(names, columns, path.name).values())), 1


READERS: dict[str, Callable[[Path, Columns], tuple[pl.DataFrame, int]]] = {
    ".csv": read_csv,
    ".csv.gz": read_csv,
    ".tsv": read_csv,
    ".jsonl": read_json_lines,
    ".ndjson": read_json_lines,
    ".parquet": read_parquet,
}
"""The endings of the files that are read, in small letters, and the reader of each."""
