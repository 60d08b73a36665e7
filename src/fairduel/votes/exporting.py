"""Write cleaned votes, their ranking, and preference data to files."""

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import polars as pl

from fairduel.errors import BadInputError, unknown_name
from fairduel.files import write_atomically
from fairduel.text import FORMULA, NUMBER, cell_text
from fairduel.votes.care import IGNORED
from fairduel.votes.cleaning import Cleaned
from fairduel.votes.preference_data import Preferences, json_column, preferences

Format = Literal["csv", "parquet", "trl", "kto"]
FILES = ("ranking.csv", "votes.csv", "ranking.parquet", "votes.parquet", "trl.jsonl", "kto.jsonl")
"""All files that an export may write."""


@dataclass(frozen=True)
class Exported:
    """What an export has written."""

    files: Mapping[str, int]
    """Number of rows of each file."""
    preferences: Preferences | None
    """The preferences in ``trl.jsonl`` and ``kto.jsonl``, and what they leave out; None without these files."""


def export(
    cleaned: Cleaned, folder: Path | str, *, formats: Sequence[Format] = ("csv",), least_weight: float = IGNORED
) -> Exported:
    """Write cleaned votes to a folder, in each of the ``formats``.

    - ``"csv"`` and ``"parquet"``: ``ranking`` and ``votes`` (see :meth:`Cleaned.to_frame`). In CSV, text that a
      spreadsheet would run gets an apostrophe, and lists become JSON.
    - ``"trl"``: ``trl.jsonl``, preferences for TRL's reward and DPO trainers (see :func:`preferences`).
    - ``"kto"``: ``kto.jsonl``, the same for its KTO trainer.

    Args:
        cleaned: The votes with their weights, from :func:`fairduel.votes.clean`.
        folder: Where to write; it is made if need be.
        formats: Which files to write.
        least_weight: See :func:`preferences`.

    Returns:
        The files with their number of rows, and the preferences.

    Raises:
        BadInputError: There is no such format, or a file cannot be written.

    >>> import tempfile
    >>> from fairduel.votes.cleaning import clean
    >>> from fairduel.votes.reading import votes_of
    >>> from fairduel.votes.synthetic import arena
    >>> cleaned = clean(votes_of(arena(seed=4)[0].to_frame()))
    >>> export(cleaned, tempfile.mkdtemp(), formats=["parquet", "kto"]).files
    {'ranking.parquet': 12, 'votes.parquet': 4713, 'kto.jsonl': 7736}
    """
    for name in formats:
        if name not in get_args(Format):
            raise unknown_name("format", str(name), get_args(Format))
    found = preferences(cleaned, least_weight=least_weight) if {"trl", "kto"} & set(formats) else None
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInputError(f"cannot write to {folder}: {error.strerror}.") from error
    written: dict[str, int] = {}
    for file, frame in _tables(cleaned, found, formats).items():
        write_atomically(folder / file, _WRITERS[Path(file).suffix](frame))
        written[file] = len(frame)
    return Exported(written, found)


def _tables(cleaned: Cleaned, found: Preferences | None, formats: Sequence[Format]) -> dict[str, pl.DataFrame]:
    """Return the table of each file."""
    tables: dict[str, pl.DataFrame] = {}
    for name in ("csv", "parquet"):
        if name in formats:
            tables |= {f"ranking.{name}": cleaned.ranking.to_frame(), f"votes.{name}": cleaned.to_frame()}
    if found is not None:
        sets = {"trl": found.to_frame(), "kto": found.completions()}
        tables |= {f"{name}.jsonl": sets[name] for name in ("trl", "kto") if name in formats}
    return tables


def csv_bytes(frame: pl.DataFrame) -> bytes:
    r"""Return a table as CSV; text that a spreadsheet would run gets an apostrophe, and lists and objects become JSON.

    >>> csv_bytes(pl.DataFrame({"item": ["=1+1"], "messages": [[{"role": "user"}]]})).decode()
    'item,messages\n\'=1+1,"[{""role"": ""user""}]"\n'
    """
    flat = frame.with_columns(json_column(column) for column in frame if column.dtype.is_nested())
    text = pl.col(pl.String)
    runs = text.str.contains(FORMULA) & ~text.str.contains(NUMBER)
    safe = flat.with_columns(pl.when(runs).then(pl.lit("'") + text).otherwise(text).name.keep())
    return safe.rename(cell_text).write_csv().encode()


def _parquet_bytes(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


_WRITERS: dict[str, Callable[[pl.DataFrame], bytes]] = {
    ".csv": csv_bytes,
    ".parquet": _parquet_bytes,
    ".jsonl": lambda frame: frame.write_ndjson().encode(),
}
