"""Turn a table into votes; unusable rows are set aside, each with the reason."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars.exceptions import PolarsError

from fairduel.duel import Vector
from fairduel.errors import BadInputError
from fairduel.votes.column_roles import PAIRS, find_columns
from fairduel.votes.file_readers import FAULT, LINE, Columns, read_table
from fairduel.votes.results import Result
from fairduel.votes.votes import Codes, Indices, Mask, Votes, check_weights
from fairduel.votes.words import shortened

FIRST_WORDS, SECOND_WORDS = zip(*PAIRS, ("1", "2"), strict=True)
"""Words for a winner by position, in upper or lower case."""
_TIE_WORDS = ("tie", "draw", "equal", "both", "both good", "0.5")
_BOTH_BAD_WORDS = ("both-bad", "both bad", "both_bad", "bothbad", "tie (bothbad)", "tie (both bad)", "neither")
EMPTY_ROW = "empty row"
"""The reason why a row without any value is set aside."""
_UNKNOWN, _FIRST, _SECOND, _TIE, _BOTH_BAD = -1, 1, 0, 2, 3
_SIGNS = {"1": _FIRST, "-1": _SECOND, "0": _TIE}
_WHOLE = re.compile(r"^(-?[0-9]+)\.0+$")  # a whole number that a table has turned into 1.0
_STRAY = 0.05  # share of rows below which a spelling does not decide how the others are read


@dataclass(frozen=True, eq=False, repr=False)
class Reading(Result):
    """The contents of a vote file: the votes, and the rows that could not be used.

    Created by :func:`read_votes`.

    Args:
        votes: The usable votes.
        problems: Number of rows set aside for each reason, most frequent first.
        set_aside: The rows set aside: ``row``, ``reason``, the original values, and the ``line`` if it has no values.
        rows: Number of rows in the file, without the header.
        columns: The column used for each role (``first``, ``second``, ``winner``, …).
        both_bad: Number of ties marked "both bad".
        warnings: One sentence about each thing that was read but may not mean what it seems to.
        table: The row of each vote as it is in the file, shape ``(n, …)``, with the columns that were read.

    >>> table = pl.DataFrame({"left": ["tea", "tea"], "right": ["milk", "milk"], "winner": ["tea", "cola"]})
    >>> reading = votes_of(table)
    >>> reading, dict(reading.problems)
    (Reading(1 vote, 2 items; 1 of 2 rows set aside), {'unknown winner': 1})
    """

    votes: Votes
    problems: Mapping[str, int]
    set_aside: pl.DataFrame
    rows: int
    columns: Mapping[str, str]
    both_bad: int
    warnings: tuple[str, ...]
    table: pl.DataFrame

    def to_frame(self) -> pl.DataFrame:
        """Return the row number of each vote and the columns that were read."""
        return pl.DataFrame({"row": self.votes.row}).hstack(renamed(self.table, "row"))

    def brief(self) -> str:
        """Return how many votes there are, and how many rows are unusable."""
        lost = f"; {len(self.set_aside):,} of {self.rows:,} rows set aside" if len(self.set_aside) else ""
        return self.votes.brief() + lost


def read_votes(
    path: Path | str | Any, *, columns: Columns | None = None, strict: bool = False, whole: bool = False
) -> Reading:
    r"""Read votes from a CSV, JSON Lines or Parquet file, or from a data frame.

    Args:
        path: A ``.csv``, ``.csv.gz``, ``.tsv``, ``.jsonl``, ``.ndjson`` or ``.parquet`` file. The winner is first,
            second, tie or both-bad (or a/b, model_a/model_b, left/right, 1/2, 1/-1), or the winning item's name. Text
            is UTF-8 or UTF-16, otherwise Windows-1252 with a warning. Or a data frame of polars, pandas or Arrow.
        columns: Column names by role: ``first``, ``second``, ``winner``, ``voter``, ``context``, ``time``, ``weight``.
            Roles not listed are found by common column names; None means that there is no such column.
        strict: Raise an error if any row is unusable, instead of setting it aside.
        whole: Read all columns of the file, not only those that are needed, to :func:`export` them.

    Returns:
        The votes, and the rows set aside with the reason for each.

    Raises:
        BadInputError: The file cannot be read, or its columns or winners are ambiguous.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "votes.csv"
    >>> _ = path.write_text("model_a,model_b,winner,user\ntea,milk,a,Ann\nmilk,tea,tie,Bob\ntea,,b,Eve\n")
    >>> reading = read_votes(path)
    >>> reading.votes.items, len(reading.votes), dict(reading.problems)
    (('milk', 'tea'), 2, {'no second item': 1})
    >>> reading.set_aside["row"].to_list()
    [4]
    """
    if not isinstance(path, (Path, str)):
        return votes_of(pl.DataFrame(path), columns=columns, strict=strict, first_row=0)
    path, given = Path(path), columns or {}
    name = path.name
    frame, first_row, *guesses = read_table(
        path, list if whole else lambda names: list(find_columns(names, given, name).values())
    )
    reading = votes_of(frame, columns=columns, strict=strict, first_row=first_row, name=path.name)
    return replace(reading, warnings=(*guesses, *reading.warnings))


def votes_of(
    frame: pl.DataFrame,
    *,
    columns: Columns | None = None,
    strict: bool = False,
    first_row: int = 2,
    name: str = "the table",
) -> Reading:
    """Turn a table in memory into votes; see :func:`read_votes`.

    >>> table = pl.DataFrame({"left": ["tea", "milk"], "right": ["milk", "tea"], "winner": ["tea", "tea"]})
    >>> votes_of(table).votes.result.tolist()
    [1.0, 0.0]
    """
    found = find_columns([column for column in frame.columns if column not in (FAULT, LINE)], columns or {}, name)
    warnings: list[str] = []
    frame = frame.with_columns([_plain_column(frame[column], role, name) for role, column in found.items()])
    first, second, items = _item_codes(frame[found["first"]].cast(pl.String), frame[found["second"]].cast(pl.String))
    winner, no_winner = _read_winners(frame[found["winner"]].cast(pl.String), first, second, items, name)
    weight = _numbers(frame[found["weight"]]) if "weight" in found else np.ones(len(frame))
    faults, reasons = _faults(frame, first, second, winner, no_winner, weight)
    good = np.flatnonzero(faults == 0) if faults.any() else slice(None)
    set_aside = _set_aside(frame, faults, reasons, first_row)
    problems = dict(set_aside["reason"].value_counts(sort=True).iter_rows())
    if strict and problems:
        raise BadInputError(_strict_sentence(name, problems, set_aside))
    warnings += _look_alikes("items", items)
    first, second, winner, weight = first[good], second[good], winner[good], weight[good]
    check_weights(weight, f"the votes in {name}")
    used = _used(items, first, second) if problems else tuple(items.to_list())
    if lost := sorted(set(items) - set(used)) if len(used) < len(items) and used else []:
        them = "occurs only in unusable rows and is" if len(lost) == 1 else "occur only in unusable rows and are"
        warnings.append(f"{shortened(lost)} {them} not ranked.")
    row = np.arange(first_row, len(frame) + first_row)[good]
    voter, voters = _voters(frame[found["voter"]], good, row, warnings) if "voter" in found else (None, ())
    context, contexts = _contexts(frame[found["context"]], good) if "context" in found else (None, ())
    votes = Votes(
        items=used,
        first=first,
        second=second,
        result=np.array([0.0, 1.0, 0.5, 0.5])[winner],
        weight=weight,
        row=row,
        voter=voter,
        voters=voters,
        context=context,
        contexts=contexts,
        time=_seconds(frame[found["time"]], warnings)[good] if "time" in found else None,
    )
    both_bad, told = int((winner == _BOTH_BAD).sum()), tuple(warnings)
    table = frame.drop(FAULT, LINE, strict=False)[good]
    return Reading(votes, problems, set_aside, len(frame), found, both_bad=both_bad, warnings=told, table=table)


def _plain_column(column: pl.Series, role: str, name: str) -> pl.Series:
    """Return a column of plain values: names stored as bytes become text, lists and objects are refused."""
    kind, wanted = column.dtype, "numbers" if role in ("time", "weight") else "names"
    with suppress(PolarsError):  # bytes that are not UTF-8
        if kind == pl.Binary and wanted == "names":
            return column.cast(pl.String)
        if not kind.is_nested() and kind not in (pl.Binary, pl.Object):
            return column
    raise BadInputError(f"{name}: column {column.name!r} holds {kind}, not {wanted}: store it as text.")


def _coded(text: pl.Series, names: pl.Series) -> Codes:
    """Return the index of each text in ``names``, or −1."""
    codes = text.cast(pl.Enum(names), strict=False).to_physical().cast(pl.Int32).fill_null(-1)
    return codes.to_numpy(writable=True)


def _names(text: pl.Series) -> pl.Series:
    """Return the distinct texts, without blank ones."""
    names = text.unique().drop_nulls()
    return names.filter(names.str.strip_chars() != "")


def _sorted_names(text: pl.Series) -> pl.Series:
    """Return the distinct texts, sorted: numerically if all are whole numbers, otherwise alphabetically."""
    names = _names(text)
    numbers = names.cast(pl.Int64, strict=False)
    are_numbers = len(names) > 0 and (numbers.cast(pl.String) == names).fill_null(value=False).all()
    return names.gather(numbers.arg_sort()) if are_numbers else names.sort()


def _item_codes(first: pl.Series, second: pl.Series) -> tuple[Codes, Codes, pl.Series]:
    items = _sorted_names(pl.concat([first.unique().alias("item"), second.unique().alias("item")]))
    return _coded(first, items), _coded(second, items), items


def _read_winners(
    text: pl.Series, first: Codes, second: Codes, items: pl.Series, name: str
) -> tuple[NDArray[np.int8], Mask]:
    """Return who won each row, and which rows name no winner.

    The winner is ``_FIRST``, ``_SECOND``, ``_TIE``, ``_BOTH_BAD`` or ``_UNKNOWN``, read from a word or an item's name.
    """
    values = _names(text)
    codes = _coded(text, values)  # −1 (no winner) selects the last entry of the tables below
    words = dict.fromkeys(FIRST_WORDS, _FIRST) | dict.fromkeys(SECOND_WORDS, _SECOND)
    words |= dict.fromkeys(_TIE_WORDS, _TIE) | dict.fromkeys(_BOTH_BAD_WORDS, _BOTH_BAD)
    whole = values.str.strip_chars().str.replace(_WHOLE.pattern, "${1}")
    plain = whole.str.to_lowercase()
    if _are_signs(plain, items):
        words |= _SIGNS
    meant = plain.replace_strict(words, default=_UNKNOWN, return_dtype=pl.Int8).to_numpy()
    item_of = _coded(values, items)
    item_of = np.where((item_of < 0) & (whole != values.str.strip_chars()).to_numpy(), _coded(whole, items), item_of)
    by_word: NDArray[np.int8] = np.append(meant, np.int8(_UNKNOWN))[codes]
    item = np.append(item_of, np.int32(-1))[codes]
    by_name = np.where(item == first, _FIRST, np.where(item == second, _SECOND, _UNKNOWN)).astype(np.int8)
    by_name[item < 0] = _UNKNOWN
    zeros = np.append((plain == "0").to_numpy() & (meant == _UNKNOWN), [False])[codes]
    unknown_zeros = (zeros & (by_name == _UNKNOWN)).sum()
    if 2 * unknown_zeros > zeros.sum() and unknown_zeros >= _STRAY * (codes >= 0).sum():
        raise BadInputError(f"winner 0 in {name} could mean the first or the second item: write first or second.")
    _ensure_both_sides(text, by_word, by_name, name)
    # Items may be called a and b, or 1 and 2. Then winners are either all names or all positions: what fits more rows.
    named = (item >= 0) & (first != second)
    with_places = int((by_word[named] != _UNKNOWN).sum())
    if with_places == 0:
        return np.maximum(by_word, by_name), codes < 0
    with_names = int((by_name[named] != _UNKNOWN).sum())
    differ = ((by_word != by_name) & (by_word != _UNKNOWN) & (by_name != _UNKNOWN) & named).any()
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
    first, second = (int(np.count_nonzero(by_word == side)) for side in (_FIRST, _SECOND))
    if bool(first) == bool(second):
        return
    unknown = text.filter(pl.Series((by_word == _UNKNOWN) & (by_name == _UNKNOWN))).drop_nulls()
    for word, count in unknown.value_counts(sort=True).head(1).iter_rows():
        if count >= max(_STRAY * (first + second), 2):
            only = "first" if first else "second"
            raise BadInputError(
                f"all readable winners in {name} are the {only} item, but {count:,} rows say {word!r}: write first, "
                "second or tie."
            )


def _faults(
    frame: pl.DataFrame, first: Codes, second: Codes, winner: NDArray[np.int8], no_winner: Mask, weight: Vector
) -> tuple[Codes, list[str]]:
    """Return the index of the reason why each row is unusable, 0 if it is usable, shape (n,); and the reasons."""
    said = frame[FAULT] if FAULT in frame.columns else pl.Series([], dtype=pl.String)
    conditions = {
        **{reason: said.eq_missing(reason).to_numpy() for reason in said.unique().drop_nulls()},
        EMPTY_ROW: (first < 0) & (second < 0) & no_winner,
        "no first item": first < 0,
        "no second item": second < 0,
        "no winner": no_winner,
        "unknown winner": winner == _UNKNOWN,
        "item compared with itself": first == second,
        "weight is not a number ≥ 0": ~(np.isfinite(weight) & (weight >= 0.0)),
    }
    faults = np.zeros(len(frame), dtype=np.int32)
    reasons = ["", *conditions]
    for reason, holds in reversed(conditions.items()):  # the first reason that applies wins
        faults[holds] = reasons.index(reason)
    return faults, reasons


def _set_aside(frame: pl.DataFrame, faults: Codes, reasons: Sequence[str], first_row: int) -> pl.DataFrame:
    places = np.flatnonzero(faults)
    values = renamed(frame.drop(FAULT, LINE, strict=False)[places], "row", "reason", "line")
    row = pl.Series("row", places + first_row, dtype=pl.Int64)
    reason = pl.Series("reason", [reasons[fault] for fault in faults[places]], dtype=pl.String)
    broken = [frame[LINE][places].alias("line")] if LINE in frame.columns else []
    return pl.DataFrame([row, reason]).hstack(values).hstack(broken)


def renamed(table: pl.DataFrame, *taken: str) -> pl.DataFrame:
    """Rename the columns of a file whose names are ``taken`` by ours.

    >>> renamed(pl.DataFrame({"row": [1], "item": ["tea"]}), "row").columns
    ['row (column)', 'item']
    """
    for name in set(taken) & set(table.columns):
        other = name
        while other in table.columns or other in taken:
            other += " (column)"
        table = table.rename({name: other})
    return table


def _strict_sentence(name: str, problems: Mapping[str, int], set_aside: pl.DataFrame) -> str:
    counts = ", ".join(f"{reason} ({count})" for reason, count in problems.items())
    row, reason = set_aside["row"][0], set_aside["reason"][0]
    return f"{name}: row {row} is unusable ({reason}); unusable rows in all: {len(set_aside)} ({counts})."


def _used(names: pl.Series, *codes: Codes) -> tuple[str, ...]:
    """Drop names that no vote uses, and renumber the ``codes`` (n,) in place."""
    used = np.zeros(len(names) + 1, dtype=bool)
    for part in codes:
        used[part] = True
    place = np.append(np.cumsum(used[:-1]) - 1, -1).astype(np.int32)  # −1 stays −1
    for part in codes:
        part[:] = place[part]
    return tuple(names.filter(pl.Series(used[:-1])).to_list())


def _voters(
    column: pl.Series, good: Indices | slice, row: Indices, warnings: list[str]
) -> tuple[Codes | None, tuple[str, ...]]:
    """Return who cast the good votes; every vote without a voter gets its own."""
    text = column.cast(pl.String)
    names = _sorted_names(text)
    warnings += _look_alikes("voters", names)
    codes = _coded(text, names)[good]
    people = _used(names, codes)
    nobody = np.flatnonzero(codes < 0)
    if len(nobody) == len(codes):
        warnings.append(f"the voter column {column.name} is empty, so voters are unknown.")
        return None, ()
    if len(nobody):
        warnings.append(f"{len(nobody):,} votes name no voter; each is treated as a separate voter.")
        codes[nobody] = len(people) + np.arange(len(nobody))
    return codes, (*people, *(f"(row {number})" for number in row[nobody]))


def _contexts(column: pl.Series, good: Indices | slice) -> tuple[Codes, tuple[str, ...]]:
    text = column.cast(pl.String)
    names = _sorted_names(text)
    codes = _coded(text, names)[good]
    places = _used(names, codes)
    if (codes >= 0).all():
        return codes, places
    return np.where(codes < 0, np.int32(len(places)), codes), (*places, "(none)")


def _numbers(column: pl.Series) -> Vector:
    """Return the column as numbers, with NaN where it holds none."""
    if isinstance(column.dtype, (pl.Categorical, pl.Enum)):
        column = column.cast(pl.String)
    return column.cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy().astype(np.float64)


def _seconds(column: pl.Series, warnings: list[str]) -> Vector:
    """Return times in seconds: numbers as they are (or minutes, if so named), dates since 1970, hours since 0:00."""
    if column.dtype == pl.String and not np.isfinite(_numbers(column)).any():
        with suppress(PolarsError):  # none of them is a date
            column = column.str.to_datetime(strict=False, time_unit="us")
    if column.dtype in (pl.Duration, pl.Time):
        seconds = _numbers(column.cast(pl.Duration("us")).dt.total_microseconds()) / 1e6
    elif column.dtype.is_temporal():
        seconds = _numbers(column.cast(pl.Datetime("us")).dt.timestamp("us")) / 1e6
    else:
        seconds = _numbers(column) * (60.0 if "minute" in column.name.lower() else 1.0)
    unknown = int((~np.isfinite(seconds)).sum())
    if unknown:
        warnings.append(f"{unknown:,} rows have no readable time.")
    return seconds


def _look_alikes(kind: str, names: pl.Series) -> list[str]:
    """Warn about names that look the same; they stay different."""
    odd = names.filter(
        (names.str.strip_chars() != names) | ~names.str.contains(r"^[\x00-\x7f]*$") | names.str.contains(_WHOLE.pattern)
    )
    groups: dict[str, list[str]] = {}
    for name in odd:
        clean = unicodedata.normalize("NFC", name.strip())
        groups.setdefault(_WHOLE.sub(r"\1", clean), []).append(name)
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
