"""Read CSV, JSON Lines and Parquet files into tables; broken lines keep their row, with what is wrong.

A reader takes the path, and a function that says which of the file's columns are needed. It returns the table, the
number of its first row, as a text editor counts, and a sentence about anything that it had to assume. ``READERS`` maps
file extensions to readers.
"""

import codecs
import csv
import io
import itertools
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import polars as pl
from polars.exceptions import PanicException, PolarsError

from fairduel.errors import BadInputError

FAULT, LINE = "\x00fault", "\x00line"
"""Columns that a reader may add for broken lines: what is wrong, and the original line."""
_NOT_UTF8 = "not UTF-8"
Columns = Mapping[str, str | None]
Wanted = Callable[[Sequence[str]], list[str]]
"""Given the names of all columns, returns those that are needed."""
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
_SEPARATOR_LINE = re.compile(rb'"?sep=([,;\t|])"?\r?\n?', re.IGNORECASE)  # Excel's own first line
_JSON_START = 2**16  # bytes in which to look for keys that a line has twice
_LONE_SURROGATE = re.compile(
    rb"\\u[dD][89abAB]..(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..)\\u[dD][c-fC-F]"
)  # may also match an escaped backslash


def read_table(path: Path, wanted: Wanted) -> Read:
    """Read a file with the reader for its extension."""
    read = next((reader for ending, reader in READERS.items() if path.name.lower().endswith(ending)), None)
    if read is None:
        raise BadInputError(f"unsupported file type: {path.name} (votes can be {', '.join(READERS)}).")
    try:
        return read(path, wanted)
    except (OSError, EOFError, MemoryError, zlib.error, PanicException, PolarsError) as error:
        raise BadInputError(f"cannot read {path}: {damage(error)}.") from error


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
        rows.append([*map(_readable, known), *[None] * (width - len(known))])
        faults.append(fault)
        broken.append(_readable(line) if fault else None)
    columns = list(zip(*rows, strict=True)) or [()] * width
    unique = [f"column {place}" if not name.strip() else name for place, name in enumerate(map(_readable, header))]
    table = dict(zip([*unique, FAULT, LINE], [*columns, faults, broken], strict=True))
    return pl.DataFrame({name: pl.Series(column, dtype=pl.String) for name, column in table.items()})


def _readable(text: str) -> str:
    """Return a text with a question mark for each invalid byte."""
    return text if text.isascii() else text.encode(errors="replace").decode()


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
    return _NOT_UTF8 if not line.isascii() and _readable(line) != line else None


def read_json_lines(path: Path, wanted: Wanted) -> Read:
    """Read one JSON object per line."""
    content, guesses = read_text(path)
    names = _json_names(content, path.name)
    if not names:
        raise BadInputError(f'{path.name} is empty or not JSON Lines: each line must be an object like {{"first": …}}.')
    columns = wanted(names)
    lone = b"\\u" in content and _LONE_SURROGATE.search(content)
    try:
        frame = pl.read_ndjson(content, schema=dict.fromkeys(columns, pl.String))
        if not lone and len(frame) == content.count(b"\n") + (not content.endswith(b"\n")):
            return frame, 1, *guesses  # otherwise some lines are empty, and row numbers would be wrong
    except PolarsError:
        pass
    text = content.decode(errors="surrogateescape").removesuffix("\n")
    original = [line.removesuffix("\r") for line in text.split("\n")]
    lines = pl.Series("line", map(_readable, original), dtype=pl.String)
    not_text = pl.Series([_json_fault(line) for line in original], dtype=pl.String)
    is_object = pl.col("line").str.json_path_match("$").str.starts_with("{").fill_null(value=False)
    fault = pl.when(pl.col("line") == "").then(None).when(not_text.is_not_null()).then(not_text)
    fault = fault.when(~is_object).then(pl.lit("not JSON"))
    values = [pl.col("line").str.json_path_match(f"$['{name}']").alias(name) for name in columns]
    broken = pl.when(fault.is_not_null()).then(pl.col("line"))
    return lines.to_frame().select(*values, fault.alias(FAULT), broken.alias(LINE)), 1, *guesses


def _json_fault(line: str) -> str | None:
    if not line.isascii() and _readable(line) != line:
        return _NOT_UTF8
    if "\\u" not in line or not _LONE_SURROGATE.search(line.encode()):
        return None
    try:
        json.dumps(json.loads(line), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return "half a character (lone surrogate)"
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


def read_parquet(path: Path, wanted: Wanted) -> Read:
    """Read the needed columns, with their types."""
    columns = wanted(list(pl.read_parquet_schema(path)))
    check_unpacked(8 * len(columns) * int(pl.scan_parquet(path).select(pl.len()).collect().item()), path)
    return pl.read_parquet(path, columns=columns), 1


READERS: dict[str, Callable[[Path, Wanted], Read]] = {
    ".csv": read_csv,
    ".csv.gz": read_csv,
    ".tsv": read_csv,
    ".jsonl": read_json_lines,
    ".ndjson": read_json_lines,
    ".parquet": read_parquet,
}
"""The reader for each supported file extension (lower case)."""
