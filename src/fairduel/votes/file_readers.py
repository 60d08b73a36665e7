"""Read CSV, JSON Lines and Parquet files into tables; broken lines keep their row, with what is wrong.

A reader takes the path and the named columns (see :func:`fairduel.votes.read_votes`). It returns the table and the
number of its first row, as a text editor counts. ``READERS`` maps file extensions to readers.
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
"""Columns that a reader may add for broken lines: what is wrong, and the original line."""
_NOT_UTF8 = "not UTF-8"
Columns = Mapping[str, str | None]
_LONGEST_VALUE = 100  # lines within quotes; if longer, a closing quote is missing


def read_table(path: Path, columns: Columns) -> tuple[pl.DataFrame, int]:
    """Read a file with the reader for its extension."""
    read = next((reader for ending, reader in READERS.items() if path.name.lower().endswith(ending)), None)
    if read is None:
        raise BadInputError(f"unsupported file type: {path.name} (votes can be {', '.join(READERS)}).")
    try:
        return read(path, columns)
    except (OSError, PolarsError, EOFError) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise BadInputError(f"cannot read {path}: {reason}.") from error


def read_csv(path: Path, _: Columns) -> tuple[pl.DataFrame, int]:
    """Read values separated by commas, semicolons or tabs, gzipped or not."""
    with _opened(path) as file:
        start = file.readline().removeprefix(codecs.BOM_UTF8)
        blank = 0
        while start and not start.strip():
            start, blank = file.readline(), blank + 1
    if not start:
        raise BadInputError(f"{path.name} is empty: it needs a header line and votes.")
    header = start.decode(errors="replace")
    separator = max(",;\t", key=header.splitlines()[0].count)
    if "\r" not in header.removesuffix("\n").removesuffix("\r"):  # otherwise lines end in carriage returns only
        try:
            return pl.read_csv(path, infer_schema=False, separator=separator), blank + 2
        except PolarsError:
            pass
    return _careful_csv(path, separator, blank), blank + 2


def _opened(path: Path) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(path, "rb")) if path.name.lower().endswith(".gz") else path.open("rb")


def _careful_csv(path: Path, separator: str, blank: int) -> pl.DataFrame:
    """Read a CSV file line by line: some lines have too many values, misplaced quotes or invalid UTF-8.

    ``blank`` lines precede the header.
    """
    with _opened(path) as raw, io.TextIOWrapper(raw, "utf-8-sig", errors="replace") as file:
        lines = file.readlines()[blank:]
    try:
        [header] = csv.reader(lines[:1], delimiter=separator, strict=True)
    except csv.Error as error:
        raise BadInputError(f"the header of {path.name} is broken: {error}.") from error
    width = len(header)
    if len(set(header)) < width:
        raise BadInputError(f"{path.name} has two columns with the same name: rename one.")
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
    """Yield the values and the text of each record; a line with unreadable quotes has no values."""
    place = 0
    while place < len(lines):
        values, taken = _one_record(lines[place : place + _LONGEST_VALUE], separator, width)
        yield values, "".join(lines[place : place + taken]).rstrip("\n")
        place += taken


def _one_record(lines: Sequence[str], separator: str, width: int) -> tuple[list[str] | None, int]:
    """Return the values of the first record, or None if it is unreadable, and the number of its lines."""
    if '"' not in lines[0]:
        return lines[0].rstrip("\n").split(separator) if lines[0].strip() else [], 1
    reader = csv.reader(lines, delimiter=separator, strict=True)
    try:
        values = next(reader)
    except csv.Error:
        return None, 1
    # a quoted value that spans lines is accepted only if the record then has the right width
    return (values, reader.line_num) if reader.line_num == 1 or len(values) == width else (None, 1)


def _csv_fault(values: Sequence[str] | None, line: str, width: int) -> str | None:
    if values is None:
        return "misplaced quote"
    if len(values) > width:
        return "more values than columns"
    return _NOT_UTF8 if "\ufffd" in line else None


def read_json_lines(path: Path, columns: Columns) -> tuple[pl.DataFrame, int]:
    """Read one JSON object per line."""
    content = path.read_bytes().removeprefix(codecs.BOM_UTF8)
    names = _json_names(content)
    if not names:
        raise BadInputError(f'{path.name} is empty or not JSON Lines: each line must be an object like {{"first": …}}.')
    wanted = list(find_columns(names, columns, path.name).values())
    try:
        frame = pl.read_ndjson(content, schema=dict.fromkeys(wanted, pl.String))
        if len(frame) == content.count(b"\n") + (not content.endswith(b"\n")):
            return frame, 1  # otherwise some lines are empty, and row numbers would be wrong
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
    """Return the keys of all lines, in order of appearance."""
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
    """Read the needed columns, with their types."""
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
"""The reader for each supported file extension (lower case)."""
