"""Read CSV, JSON, JSON Lines, Excel and Parquet files into tables; broken lines keep their row, with what is wrong.

A reader takes the path, and a function that says which of the file's columns are needed. It returns the table, the
number of its first row, as a text editor counts, and a sentence about anything that it had to assume. Values of JSON
are text; objects and lists are JSON text (see :mod:`fairduel.votes.reading.fields`). ``READERS`` maps file extensions
to readers.
"""

import codecs
import csv
import io
import itertools
import json
import re
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import BadZipFile, ZipFile

import polars as pl
from polars.exceptions import PanicException, PolarsError

from fairduel.checks import needs_extra
from fairduel.errors import BadInputError
from fairduel.votes.reading import ballots
from fairduel.votes.reading.records import FAULT, HALF_A_CHARACTER, LINE, Wanted, readable, records_table
from fairduel.words import shortened

_NOT_UTF8 = "not UTF-8"
STDIN = Path("/dev/stdin")
"""Stands for standard input."""
Read = tuple[pl.DataFrame, int, *tuple[str, ...]]
_LONGEST_VALUE = 100  # lines within quotes; if longer, a closing quote is missing
UNPACKED_BYTES, UNPACKED_RATIO = 2**28, 100
"""A compressed file may unpack to the larger of these many bytes and this many times its size."""
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32-le",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_UTF8_SEQUENCE = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_DAMAGE = (UnicodeError, json.JSONDecodeError, BadZipFile, zlib.error)
_SEPARATOR_LINE = re.compile(rb'"?sep=([,;\t|])"?\r?\n?', re.IGNORECASE)  # Excel's own first line
_JSON_START = 2**16  # bytes in which to look for keys that a line has twice
_LONE_SURROGATE = re.compile(
    rb"\\u[dD][89abAB]..(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..)\\u[dD][c-fC-F]"
)  # may also match an escaped backslash


def read_table(path: Path, wanted: Wanted) -> Read:
    """Read a file with the reader for its extension, or standard input with the reader for its content."""
    if path == STDIN:
        content = sys.stdin.buffer.read()
        with TemporaryDirectory() as folder:
            copy = Path(folder) / f"stdin{_ending(content)}"
            copy.write_bytes(content)
            return _read(copy, wanted, "stdin")
    return _read(path, wanted, str(path))


def _read(path: Path, wanted: Wanted, shown: str) -> Read:
    read = next((reader for ending, reader in READERS.items() if path.name.lower().endswith(ending)), None)
    if path.is_dir():
        inside = sorted(file.name for file in path.iterdir() if file.name.lower().endswith(tuple(READERS)))
        which = f"name one of its files: {shortened(inside)}" if inside else f"no file in it is {supported()}"
        raise BadInputError(f"{shown} is a folder; {which}.")
    if read is None:
        raise BadInputError(f"unsupported file type: {path.name} (votes can be {supported()}).")
    with damage_said(shown):
        return read(path, wanted)


@contextmanager
def damage_said(shown: str) -> Iterator[None]:
    """Say in one sentence that the file ``shown`` cannot be read, whatever a reader raises."""
    try:
        yield
    except (*_DAMAGE, OSError, EOFError, MemoryError, PanicException, PolarsError) as error:
        raise BadInputError(f"cannot read {shown}: {damage(error)}.") from error


def supported() -> str:
    """List the supported file extensions."""
    kinds = ", ".join(ending for ending in READERS if not ending.endswith(".gz"))
    return f"{kinds}; text also as .gz"


def _ending(content: bytes) -> str:
    """Guess the file extension of content without a name."""
    if content.startswith(b"\x1f\x8b"):
        start = b""
        with suppress(zlib.error):  # the reader will say so
            start = zlib.decompressobj(wbits=31).decompress(content, _JSON_START)
        return ".csv.gz" if start.startswith(b"\x1f\x8b") else f"{_ending(start)}.gz"
    start = content.lstrip(codecs.BOM_UTF8 + codecs.BOM_UTF16_LE + b"\0 \t\r\n")
    known = {b"PAR1": ".parquet", b"PK\3\4": ".xlsx", b"[": ".json", b"{": ".json"}
    return next((ending for sign, ending in known.items() if start.startswith(sign)), ".csv")


def damage(error: BaseException) -> str:
    """Say why a file cannot be read, and what to do.

    >>> damage(FileNotFoundError(2, "No such file or directory")), damage(EOFError())
    ('No such file or directory', 'it is damaged (EOFError); copy or export it again')
    """
    reason = str(error).strip().split("\n")[0].rstrip(".") or type(error).__name__
    return getattr(error, "strerror", None) or f"it is damaged ({reason}); copy or export it again"


def check_unpacked(size: int, path: Path) -> None:
    """Refuse a compressed file whose content has an implausible ``size`` in bytes."""
    packed = path.stat().st_size
    if size > max(UNPACKED_BYTES, UNPACKED_RATIO * packed):
        raise BadInputError(
            f"{path.name} unpacks to more than {UNPACKED_RATIO} times its size, as hardly any votes do: check where it "
            "is from, and store it uncompressed (as .csv or by np.savez) if you trust it."
        )


def read_text(path: Path) -> tuple[bytes, tuple[str, ...]]:
    """Return the text of a file, gzipped or not, in UTF-8; and a sentence about its encoding if that was a guess.

    Without a byte order mark, text that is not valid UTF-8 is taken to be Windows-1252, as Excel writes it. Where some
    of it clearly is UTF-8, it stays as it is, and the readers set the broken lines aside.
    """
    content = _unpacked(path) if path.name.lower().endswith(".gz") else path.read_bytes()
    marked = next((name for mark, name in _MARKS.items() if content.startswith(mark)), None)
    if wide := marked or _unmarked_utf16(content):
        try:
            text = content.decode(wide, "surrogatepass").removeprefix("\ufeff")
        except UnicodeDecodeError:
            name = wide[:6].upper()
            raise BadInputError(f"{path.name} looks like {name} but is damaged: save it again as UTF-8.") from None
        guess = f"{path.name} has no byte order mark and was read as UTF-16; save it as UTF-8 if names look wrong."
        return text.encode("utf-8", "surrogatepass"), () if marked else (guess,)
    content = content.removeprefix(codecs.BOM_UTF8)
    if content.isascii() or _decodes(content, "utf-8"):
        return content, ()
    broken = content.decode(errors="replace").count("\ufffd")
    if 20 * len(_UTF8_SEQUENCE.findall(content)) > broken or not _decodes(content, "cp1252"):
        return content, ()
    guess = f"{path.name} is not UTF-8 and was read as Windows-1252; save it as UTF-8 if names look wrong."
    return content.decode("cp1252").encode(), (guess,)


def _unpacked(path: Path) -> bytes:
    """Return the content of a gzip file, which may have several members, after checking its size as it grows."""
    packed, parts, size = path.read_bytes(), [], 0
    while packed.strip(b"\0"):  # some writers pad with zeros
        member = zlib.decompressobj(wbits=31)
        while not member.eof:
            parts.append(member.decompress(packed, UNPACKED_BYTES))
            packed = member.unconsumed_tail
            if not parts[-1] and not packed and not member.eof:
                raise EOFError("unexpected end of file")
            size += len(parts[-1])
            check_unpacked(size, path)
        packed = member.unused_data
    return b"".join(parts) if len(parts) != 1 else parts[0]


def _unmarked_utf16(content: bytes) -> str | None:
    """Recognise UTF-16 by a header in ASCII, every other byte of which is 0."""
    start = content[:32]
    zeros = [part.count(0) / max(len(part), 1) for part in (start[::2], start[1::2])]
    return {(0.0, 1.0): "utf-16-le", (1.0, 0.0): "utf-16-be"}.get((zeros[0], zeros[1]))


def _decodes(content: bytes, encoding: str) -> bool:
    try:
        content.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def read_csv(path: Path, _: Wanted) -> Read:
    """Read values separated by commas, semicolons or tabs, gzipped or not."""
    content, guesses = read_text(path)
    content, separator, above = csv_layout(content, path.name)
    head = content[: content.find(b"\n") + 1] or content
    if b"\r" not in head.removesuffix(b"\n").removesuffix(b"\r"):  # otherwise lines end in carriage returns only
        try:
            return pl.read_csv(content, infer_schema=False, separator=separator), above + 2, *guesses
        except PolarsError:
            pass
    return _careful_csv(content, separator, path.name), above + 2, *guesses


def read_preflib(path: Path, _: Wanted) -> Read:
    """Read the ballots of a file of PrefLib as votes, gzipped or not."""
    content, guesses = read_text(path)
    return ballots.preflib_votes(content.decode(errors="replace"), path.name), 1, *guesses


def csv_layout(content: bytes, name: str) -> tuple[bytes, str, int]:
    """Return CSV text from its header on, its separator, and the number of lines above the header."""
    place, above, separator = 0, 0, ""
    while place < len(content):
        line = content[place : content.find(b"\n", place) + 1] or content[place:]
        said = _SEPARATOR_LINE.fullmatch(line)
        if line.strip() and not said:
            break
        place, above, separator = place + len(line), above + 1, said[1].decode() if said else separator
    else:
        raise BadInputError(f"{name} is empty: it needs a header line and rows.")
    header = next(filter(None, line.decode(errors="replace").splitlines()), "")
    separator = separator or max(",;\t", key=header.count)
    try:
        names = next(csv.reader([header], delimiter=separator), [])
    except csv.Error as error:
        raise BadInputError(f"the header of {name} is broken ({error}): it must name the columns.") from error
    if twice := _repeated(filter(str.strip, names)):
        raise BadInputError(f"{name} has two columns named {twice!r}: rename or remove one.")
    return content[place:] if place else content, separator, above


def _repeated(names: Iterable[str]) -> str | None:
    return next((name for name, count in Counter(names).items() if count > 1), None)


def _careful_csv(content: bytes, separator: str, name: str) -> pl.DataFrame:
    """Read CSV text line by line: some lines have too many values, misplaced quotes or invalid UTF-8."""
    lines = io.TextIOWrapper(io.BytesIO(content), "utf-8", errors="surrogateescape").readlines()
    try:
        [header] = csv.reader(lines[:1], delimiter=separator, strict=True)
    except csv.Error as error:
        raise BadInputError(f"the header of {name} is broken ({error}): correct its quotes.") from error
    width = len(header)
    rows, faults, broken = [], [], []
    for values, line in _records(lines[1:], separator, width):
        fault = _csv_fault(values, line, width)
        known = [] if values is None else values[:width]
        rows.append([*map(readable, known), *[None] * (width - len(known))])
        faults.append(fault)
        broken.append(readable(line) if fault else None)
    columns = list(zip(*rows, strict=True)) or [()] * width
    unique = [f"column {place}" if not name.strip() else name for place, name in enumerate(map(readable, header))]
    table = dict(zip([*unique, FAULT, LINE], [*columns, faults, broken], strict=True))
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
    if any(value.strip() for value in values[width:]):
        return "more values than columns"
    return _NOT_UTF8 if not line.isascii() and readable(line) != line else None


def read_json_lines(path: Path, wanted: Wanted) -> Read:
    """Read one JSON object per line."""
    content, guesses = read_text(path)
    return json_lines(content, path.name, wanted), 1, *guesses


def json_lines(content: bytes, name: str, wanted: Wanted) -> pl.DataFrame:
    """Return the table of some lines in UTF-8, of the file with this name."""
    names = _json_names(content, name)
    if not names:
        raise BadInputError(f'{name} is empty or not JSON Lines: each line must be an object like {{"first": …}}.')
    columns = wanted(names)
    lone = b"\\u" in content and _LONE_SURROGATE.search(content)
    try:
        frame = pl.read_ndjson(content, schema=dict.fromkeys(columns, pl.String))
        if not lone and len(frame) == content.count(b"\n") + (not content.endswith(b"\n")):
            return frame  # otherwise some lines are empty, and row numbers would be wrong
    except PolarsError:
        pass
    text = content.decode(errors="surrogateescape").removesuffix("\n")
    original = [line.removesuffix("\r") for line in text.split("\n")]
    lines = pl.Series("line", map(readable, original), dtype=pl.String)
    not_text = pl.Series([_json_fault(line) for line in original], dtype=pl.String)
    is_object = pl.col("line").str.json_path_match("$").str.starts_with("{").fill_null(value=False)
    fault = pl.when(pl.col("line") == "").then(None).when(not_text.is_not_null()).then(not_text)
    fault = fault.when(~is_object).then(pl.lit("not JSON"))
    values = [pl.col("line").str.json_path_match(f"$['{column}']").alias(column) for column in columns]
    broken = pl.when(fault.is_not_null()).then(pl.col("line"))
    return lines.to_frame().select(*values, fault.alias(FAULT), broken.alias(LINE))


def _json_fault(line: str) -> str | None:
    if not line.isascii() and readable(line) != line:
        return _NOT_UTF8
    if "\\u" not in line or not _LONE_SURROGATE.search(line.encode()):
        return None
    try:
        json.dumps(json.loads(line), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return HALF_A_CHARACTER
    except (ValueError, RecursionError):
        pass
    return None


def _json_names(content: bytes, file: str) -> list[str]:
    """Return the keys of all lines, in order of appearance."""
    start = content[:_JSON_START].split(b"\n")
    for keys in map(_keys, start):
        if twice := _repeated(keys):
            raise BadInputError(f"{file} has two values named {twice!r} in one line: rename or remove one.")
    try:
        return pl.scan_ndjson(content, infer_schema_length=None).collect_schema().names()
    except PolarsError:
        return list(dict.fromkeys(itertools.chain.from_iterable(map(_keys, content.split(b"\n")))))


def _keys(line: bytes) -> Sequence[str]:
    """Return the keys of an object, none if the line is anything else."""
    try:
        found = json.loads(line, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        return ()
    return [key for key, _ in found] if isinstance(found, _Pairs) else ()


class _Pairs(list[tuple[str, object]]):
    """The keys and values of a JSON object, in which keys may repeat."""


def read_json(path: Path, wanted: Wanted) -> Read:
    """Read a list of JSON objects, an object with one such list, or JSON Lines under another name."""
    content, guesses = read_text(path)
    try:
        found = json.loads(content, object_pairs_hook=_object)
    except _RepeatedKeyError as error:
        raise BadInputError(
            f"{path.name} has two values named {str(error)!r} in one object: rename or remove one."
        ) from error
    except RecursionError as error:
        raise BadInputError(f"cannot read {path.name}: its values are nested too deeply.") from error
    except json.JSONDecodeError:
        if content.strip() and not any(map(_keys, content.split(b"\n"))):
            raise
        return read_json_lines(path, wanted)
    if isinstance(found, dict):
        lists = {name: value for name, value in found.items() if isinstance(value, list)}
        if len(lists) > 1:
            raise BadInputError(f"{path.name} has several lists ({', '.join(lists)}): save the one with the votes.")
        found = next(iter(lists.values()), found)
    return records_table(found if isinstance(found, list) else [found], wanted, path.name), 1, *guesses


class _RepeatedKeyError(ValueError):
    """A JSON object has a key twice."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _RepeatedKeyError(_repeated(key for key, _ in pairs))
    return found


def read_excel(path: Path, _: Wanted) -> Read:
    """Read the first sheet of an Excel file, as text."""
    with needs_extra("excel"):
        import fastexcel  # noqa: PLC0415  # an optional dependency
    with ZipFile(path) as archive:
        check_unpacked(sum(member.file_size for member in archive.infolist()), path)
    try:
        book = fastexcel.read_excel(path)
        sheet = book.load_sheet(0, header_row=None, skip_rows=0, dtypes="string").to_polars()
    except fastexcel.FastExcelError as error:
        raise BadInputError(f"cannot read {path.name}: {damage(error)}.") from error
    filled = sheet.select(pl.any_horizontal(pl.all().is_not_null())).to_series().arg_true()
    if not len(filled):
        raise BadInputError(f"{path.name} is empty: it needs a header and rows.")
    header = [name if name is None else str(name) for name in sheet.row(int(filled[0]))]
    if twice := _repeated(name for name in header if name and name.strip()):
        raise BadInputError(f"{path.name} has two columns named {twice!r}: rename or remove one.")
    names = [name or f"column {place}" for place, name in enumerate(header)]
    others = f"{path.name} has {len(book.sheet_names)} sheets; only the first, {book.sheet_names[0]}, was read."
    above = int(filled[0]) + 1
    frame = sheet[above:].rename(dict(zip(sheet.columns, names, strict=True)))
    return frame, above + 1, *([others] if len(book.sheet_names) > 1 else [])


def read_parquet(path: Path, wanted: Wanted) -> Read:
    """Read the needed columns, with their types."""
    columns = wanted(list(pl.read_parquet_schema(path)))
    check_unpacked(8 * len(columns) * int(pl.scan_parquet(path).select(pl.len()).collect().item()), path)
    return pl.read_parquet(path, columns=columns), 1


_TEXT_READERS = {
    ".csv": read_csv,
    ".tsv": read_csv,
    ".txt": read_csv,
    ".json": read_json,
    ".jsonl": read_json_lines,
    ".ndjson": read_json_lines,
    **dict.fromkeys((".soc", ".soi", ".toc", ".toi"), read_preflib),
}
READERS: dict[str, Callable[[Path, Wanted], Read]] = {
    **_TEXT_READERS,
    **{f"{ending}.gz": reader for ending, reader in _TEXT_READERS.items()},
    ".xlsx": read_excel,
    ".parquet": read_parquet,
}
"""The reader for each supported file extension (lower case)."""
