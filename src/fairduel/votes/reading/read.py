"""Turn a table into votes; unusable rows are set aside, each with the reason."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars.exceptions import PolarsError

from fairduel.duel import Vector
from fairduel.errors import BadInputError
from fairduel.votes.notebook import Result
from fairduel.votes.reading.features import STYLE, scaled_features, vote_features_of
from fairduel.votes.reading.fields import (
    BOTH_BAD,
    PAIRS,
    UNKNOWN,
    Columns,
    Roles,
    coded,
    column_of,
    find_columns,
    item_codes,
    keep_used,
    kept_rows,
    look_alikes,
    numbers,
    plain_names,
    read_winners,
    sorted_names,
    truth,
    values_of,
)
from fairduel.votes.reading.fields import field as field_of
from fairduel.votes.reading.file_readers import STDIN, damage_said, read_table
from fairduel.votes.reading.item_names import named, read_names
from fairduel.votes.reading.records import FAULT, LINE, table_in_memory
from fairduel.votes.reading.shapes import ROW, UNANSWERED, Shaped, columns_of, shape_of
from fairduel.votes.reading.streaming import counted_rows, is_streamed
from fairduel.votes.votes import Codes, Indices, Mask, Votes, check_weights
from fairduel.words import shortened

EMPTY_ROW = "empty row"
"""The reason why a row without any value is set aside."""
UNKNOWN_WINNER = "unknown winner"
"""How the reason begins why a row with a winner is set aside; the word follows."""
_MOST_WORDS = 3  # unknown winners that are named
_USUAL_FILTERS = ("anony", "dedup_tag.sampled")  # columns by which LMArena's own ranking leaves rows out


class FromFile(Result):
    """A result that remembers what in its file was guessed, left out or unusable."""

    warnings: tuple[str, ...]
    left_out: int
    rows: int
    where: Mapping[str, list[Any]]
    problems: Mapping[str, int]
    set_aside: pl.DataFrame

    def notes(self, see: str = "Reading.set_aside") -> list[str]:
        """Return sentences about what was guessed, left out or unusable; ``see`` is where the unusable rows are."""
        sentences = list(self.warnings)
        if self.left_out:
            conditions = ", ".join(f"{column} = {' or '.join(map(str, given))}" for column, given in self.where.items())
            sentences.append(
                f"{self.left_out:,} of {self.rows:,} rows were left out: only those with {conditions} stay."
            )
        if self.problems:
            reasons = ", ".join(f"{reason} ({count:,})" for reason, count in self.problems.items())
            sentences.append(
                f"{len(self.set_aside):,} of {self.rows:,} rows are unusable and were skipped (see {see}): {reasons}."
            )
        if strange := [reason for reason in self.problems if reason.startswith(UNKNOWN_WINNER)]:
            word = strange[0].removeprefix(UNKNOWN_WINNER).strip(" '\"")
            sentences.append(
                f"say what {word!r} means with words=…, for example {word}=tie: first, second, tie or both-bad."
            )
        return [sentence[0].upper() + sentence[1:] for sentence in sentences]


@dataclass(frozen=True, eq=False, repr=False)
class Reading(FromFile):
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
        left_out: Number of rows left out by ``where``; they are not in ``set_aside``.
        where: The values that ``where`` asked for, by column.
        table: The row of each vote as it is in the file, shape ``(n, …)``, with the columns that were read.
        name: The name of the file.

    >>> table = pl.DataFrame({"left": ["tea", "tea"], "right": ["milk", "milk"], "winner": ["tea", "cola"]})
    >>> reading = votes_of(table)
    >>> reading, dict(reading.problems)
    (Reading(1 vote, 2 items; 1 of 2 rows set aside), {"unknown winner 'cola'": 1})
    """

    votes: Votes
    problems: Mapping[str, int]
    set_aside: pl.DataFrame
    rows: int
    columns: Mapping[str, str]
    both_bad: int
    warnings: tuple[str, ...]
    table: pl.DataFrame
    left_out: int = 0
    where: Mapping[str, list[Any]] = field(default_factory=dict)
    name: str = "the table"

    def to_frame(self) -> pl.DataFrame:
        """Return the row number of each vote and the columns that were read."""
        return pl.DataFrame({"row": self.votes.row}).hstack(renamed(self.table, "row"))

    def brief(self) -> str:
        """Return how many votes there are, and how many rows are unusable."""
        lost = f"; {len(self.set_aside):,} of {self.rows:,} rows set aside" if len(self.set_aside) else ""
        return self.votes.brief() + lost

    def refusal(self, see: str = "Reading.set_aside") -> str:
        """Say why the votes allow no result: there are none, most rows are unusable, or no vote counts; or nothing.

        ``see`` is where the unusable rows are.
        """
        unusable = {reason: count for reason, count in self.problems.items() if reason not in (EMPTY_ROW, UNANSWERED)}
        lost, kept = sum(unusable.values()), len(self.votes)
        why = "".join(f"; main reason: {reason} ({count:,})" for reason, count in list(unusable.items())[:1])
        if not kept:
            return f"{self.name} has no votes" + (f": all its rows are unusable (see {see}){why}." if lost else ".")
        if lost > kept:
            return (
                f"{self.name} has too few votes for a result: {lost:,} of {lost + kept:,} rows are unusable "
                f"(see {see}){why}."
            )
        if not self.votes.weight.any():
            return f"no vote in {self.name} counts: column {self.columns['weight']!r} is 0 throughout (weight=None)."
        return ""


def read_votes(
    source: Any,
    *,
    where: Mapping[str, Any] | None = None,
    vote_features: Sequence[str] = (),
    style: bool = False,
    strict: bool = False,
    whole: bool = False,
    words: Mapping[str, str] | None = None,
    names: Mapping[str, str] | str | os.PathLike[str] | None = None,
    **columns: Unpack[Roles],
) -> Reading:
    r"""Read votes from a file or a table.

    Args:
        source: The path of a CSV, TSV, JSON, JSON Lines (all also gzipped), Excel or Parquet file, or ``"-"`` for
            standard input. Or a table of pandas, polars, Arrow or Hugging Face datasets, or a list of dicts. The winner
            is first, second, tie or both-bad (or a/b, model_a/model_b, left/right, 1/2, 1/-1), or the winning item's
            name; tables of other tools are known by their columns (:mod:`fairduel.votes.reading.shapes`). Text is UTF-8
            or UTF-16, otherwise Windows-1252 with a warning. Of a Parquet file with more than 20 million rows, equal
            duels are counted together, without voters, contexts and times.
        where: Keep only rows with these values, such as ``{"language": "English"}``; a list means any of them.
        vote_features: Columns with a number for each vote that may also have decided it (positive: in favour of the
            first item), or two columns ``"A:B"`` with numbers of the two items, which become (A − B)/(A + B). Each is
            divided by its root mean square.
        style: Also use LMArena's counts of tokens, headers, lists and bold text in ``conv_metadata``.
        strict: Raise an error if any row is unusable, instead of setting it aside.
        whole: Read all columns of the file, not only those that are needed, to :func:`export` them.
        words: What unusual words for a winner mean: ``first``, ``second``, ``tie`` or ``both-bad``.
        names: Names of the items by their ids in the file, or a file with a column of ids and one of names.
        columns: The column of each role: ``first``, ``second``, ``winner``, ``voter``, ``context``, ``time``,
            ``weight``. Others are found by common names; None means that there is no such column. A name with dots is
            a value inside of a column.

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
    given: Columns = dict(columns)  # type: ignore[arg-type]
    filters = where or {}
    features = {**{spec: spec for spec in vote_features}, **(STYLE if style else {})}
    paths = [*filters, *(path for spec in features.values() for path in (spec, *spec.split(":")))]
    settings: dict[str, Any] = {"columns": given, "where": filters, "vote_features": features, "strict": strict}
    settings |= {"words": words, "names": names if names is None or isinstance(names, Mapping) else read_names(names)}
    path = None if not isinstance(source, (str, os.PathLike)) else STDIN if str(source) == "-" else Path(source)
    file = "the list" if path is None else path.name

    def wanted(names: Sequence[str]) -> list[str]:
        return list(names) if whole else _needed(names, given, paths, file)

    if path is None:
        frame = table_in_memory(source, wanted)
        return votes_of(frame, **settings, first_row=0)
    if not (whole or filters or features) and is_streamed(path, given):
        with damage_said(str(path)):
            frame, found, guesses = counted_rows(path, given)
        reading = votes_of(frame, **settings | {"columns": found}, first_row=1, name=path.name)
        return replace(reading, warnings=(*guesses, *reading.warnings), rows=int(frame[str(found["weight"])].sum()))
    frame, first_row, *guesses = read_table(path, wanted)
    reading = votes_of(frame, **settings, first_row=first_row, name=path.name)
    return replace(reading, warnings=(*guesses, *reading.warnings))


def _needed(names: Sequence[str], given: Columns, paths: Sequence[str], file: str) -> list[str]:
    """Return the columns to read: those with a role, and those that hold the values at ``paths``."""
    known = [*names, *_inside(given, names)]
    shape = shape_of(known, given, file)
    if shape is None:
        used = list(find_columns(known, given, file).values())
    else:
        here = {role: path for role, path in given.items() if path is None or path in known}
        used = [*columns_of(shape, names), *find_columns(known, here, file, complete=False).values()]
    found = (column_of(path, names) for path in (*used, *paths, *_USUAL_FILTERS))
    return list(dict.fromkeys(name for name in found if name))


def _inside(given: Columns, names: Sequence[str]) -> list[str]:
    """Return the given paths that lead into a column."""
    paths = (path for path in given.values() if path and path not in names)
    return [path for path in dict.fromkeys(paths) if column_of(path, names)]


def votes_of(
    frame: pl.DataFrame,
    *,
    columns: Columns | None = None,
    where: Mapping[str, Any] | None = None,
    vote_features: Mapping[str, str] | None = None,
    strict: bool = False,
    words: Mapping[str, str] | None = None,
    names: Mapping[str, str] | None = None,
    first_row: int = 2,
    name: str = "the table",
) -> Reading:
    """Turn a table in memory into votes; see :func:`read_votes`.

    >>> table = pl.DataFrame({"left": ["tea", "milk"], "right": ["milk", "tea"], "winner": ["tea", "tea"]})
    >>> votes_of(table).votes.result.tolist()
    [1.0, 0.0]
    """
    hints = _filter_hints(frame, where or {}, name)
    frame, left_out = _filtered(frame, where or {}, name)
    frame, roles, sides_known, guesses = _shaped(frame, columns or {}, name)
    found = find_columns([c for c in frame.columns if c not in (FAULT, LINE, ROW)], {**roles, **(columns or {})}, name)
    warnings = [*hints, *guesses, *_pair_guess(found, roles)]
    frame = frame.with_columns([_plain_column(frame[column], role, name) for role, column in found.items()])
    first, second, items = item_codes(frame[found["first"]].cast(pl.String), frame[found["second"]].cast(pl.String))
    sides = found["first"], found["second"]
    said = frame[found["winner"]].cast(pl.String)
    winner, no_winner = read_winners(said, first, second, items, name, sides=sides, meanings=words or {})
    weight = numbers(frame[found["weight"]]) if "weight" in found else np.ones(len(frame))
    features = vote_features_of(frame, vote_features or {}, name)
    faults, reasons = _faults(frame, first, second, winner, said, no_winner, weight, features)
    good = np.flatnonzero(faults == 0) if faults.any() else slice(None)
    rows = first_row + (frame[ROW].to_numpy().astype(np.int64) if ROW in frame.columns else np.arange(len(frame)))
    set_aside = _set_aside(frame, faults, reasons, rows)
    problems = dict(set_aside["reason"].value_counts(sort=True).iter_rows())
    if strict and problems:
        raise BadInputError(_strict_sentence(name, problems, set_aside))
    warnings += look_alikes("items", items)
    first, second, winner, weight = first[good], second[good], winner[good], weight[good]
    check_weights(weight, f"the votes in {name}")
    used = keep_used(items, first, second) if problems else tuple(items.to_list())
    if lost := sorted(set(items) - set(used)) if len(used) < len(items) and used else []:
        them = "occurs only in unusable rows and is" if len(lost) == 1 else "occur only in unusable rows and are"
        warnings.append(f"{shortened(lost)} {them} not ranked.")
    row = rows[good]
    voter, voters = _voters(frame[found["voter"]], good, row, warnings) if "voter" in found else (None, ())
    context, contexts = _contexts(frame[found["context"]], good) if "context" in found else (None, ())
    if len(contexts) == len(row) > 1 and "context" not in (columns or {}):
        context, contexts = None, ()
        warnings.append(f"every vote has its own {found.pop('context')}, so it is not used as the context.")
    if names:
        used = named(used, names, warnings)
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
        features=scaled_features({n: values[good] for n, values in features.items()}, name) if features else None,
        feature_names=tuple(features),
        sides_known=sides_known,
    )
    return Reading(
        votes,
        problems,
        set_aside,
        rows=len(frame) + left_out,
        columns=found,
        both_bad=int((winner == BOTH_BAD).sum()),
        warnings=tuple(warnings),
        table=frame.drop(FAULT, LINE, ROW, strict=False)[good],
        left_out=left_out,
        where={path: values_of(value) for path, value in (where or {}).items()},
        name=name,
    )


def _filter_hints(frame: pl.DataFrame, where: Mapping[str, Any], name: str) -> list[str]:
    """Say if the file has a column by which its authors leave rows out."""
    hints = []
    for path in _USUAL_FILTERS:
        if path in where or column_of(path, frame.columns) is None:
            continue
        false = int((~truth(field_of(frame, path, name))).sum() or 0)
        if false:
            hints.append(
                f"{false:,} of {len(frame):,} rows have {path} = false; LMArena's own ranking leaves them out: do so "
                f"by {path} = true (where=…)."
            )
    return hints


def _filtered(frame: pl.DataFrame, where: Mapping[str, Any], name: str) -> tuple[pl.DataFrame, int]:
    """Keep the rows that ``where`` asks for, and broken ones; return them, and the number of others."""
    if not where:
        return frame, 0
    kept = kept_rows(frame, where, name)
    if FAULT in frame.columns:
        kept = kept | frame[FAULT].is_not_null().to_numpy()
    return frame.with_row_index(ROW).filter(kept), int((~kept).sum())


def _shaped(frame: pl.DataFrame, given: Columns, name: str) -> Shaped:
    """Return a table that names two items and a winner, if its shape is known."""
    frame = frame.with_columns([field_of(frame, path, name) for path in _inside(given, frame.columns)])
    names = [column for column in frame.columns if column not in (FAULT, LINE, ROW)]
    shape = shape_of(names, given, name)
    return Shaped(frame, {}) if shape is None else shape.convert(frame, plain_names(names))


def _pair_guess(found: Mapping[str, str], roles: Columns) -> list[str]:
    """Say if the items are taken from columns that hold texts rather than names."""
    pair = found["first"], found["second"]
    if "first" in roles or tuple(plain_names(pair)) in PAIRS:
        return []
    return [f"the items were read from the columns {pair[0]} and {pair[1]}."]


def _plain_column(column: pl.Series, role: str, name: str) -> pl.Series:
    """Return a column of plain values: names stored as bytes become text, lists and objects are refused."""
    kind, wanted = column.dtype, "numbers" if role in ("time", "weight") else "names"
    with suppress(PolarsError):  # bytes that are not UTF-8
        if kind == pl.Binary and wanted == "names":
            return column.cast(pl.String)
        if not kind.is_nested() and kind not in (pl.Binary, pl.Object):
            return column
    raise BadInputError(f"{name}: column {column.name!r} holds {kind}, not {wanted}: store it as text.")


def _faults(
    frame: pl.DataFrame,
    first: Codes,
    second: Codes,
    winner: NDArray[np.int8],
    said: pl.Series,
    no_winner: Mask,
    weight: Vector,
    features: Mapping[str, Vector],
) -> tuple[Codes, list[str]]:
    """Return the index of the reason why each row is unusable, 0 if it is usable, shape (n,); and the reasons."""
    broken = frame[FAULT] if FAULT in frame.columns else pl.Series([], dtype=pl.String)
    unknown = said.set(pl.Series(winner != UNKNOWN), None)
    words = unknown.drop_nulls().value_counts(sort=True).head(_MOST_WORDS)[said.name].to_list()
    conditions = {
        **{reason: broken.eq_missing(reason).to_numpy() for reason in broken.unique().drop_nulls()},
        EMPTY_ROW: (first < 0) & (second < 0) & no_winner,
        "no first item": first < 0,
        "no second item": second < 0,
        "no winner": no_winner,
        **{f"{UNKNOWN_WINNER} {word!r}": unknown.eq_missing(word).to_numpy() for word in words},
        UNKNOWN_WINNER: winner == UNKNOWN,
        "item compared with itself": first == second,
        "weight is not a number ≥ 0": ~(np.isfinite(weight) & (weight >= 0.0)),
        **{f"{feature} is not a number": ~np.isfinite(values) for feature, values in features.items()},
    }
    faults = np.zeros(len(frame), dtype=np.int32)
    reasons = ["", *conditions]
    for reason, holds in reversed(conditions.items()):  # the first reason that applies wins
        faults[holds] = reasons.index(reason)
    return faults, reasons


def _set_aside(frame: pl.DataFrame, faults: Codes, reasons: Sequence[str], rows: Indices) -> pl.DataFrame:
    places = np.flatnonzero(faults)
    values = renamed(frame.drop(FAULT, LINE, ROW, strict=False)[places], "row", "reason", "line")
    row = pl.Series("row", rows[places], dtype=pl.Int64)
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


def _voters(
    column: pl.Series, good: Indices | slice, row: Indices, warnings: list[str]
) -> tuple[Codes | None, tuple[str, ...]]:
    """Return who cast the good votes; every vote without a voter gets its own."""
    text = column.cast(pl.String)
    names = sorted_names(text)
    warnings += look_alikes("voters", names)
    codes = coded(text, names)[good]
    people = keep_used(names, codes)
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
    names = sorted_names(text)
    codes = coded(text, names)[good]
    places = keep_used(names, codes)
    if (codes >= 0).all():
        return codes, places
    return np.where(codes < 0, np.int32(len(places)), codes), (*places, "(none)")


def _dates(column: pl.Series) -> pl.Series:
    """Read dates: those of ISO 8601, or as forms and spreadsheets write them; the column itself if it has none.

    Whether 5/11/2023 is in May or November is decided by the order that reads more of them, and, if both read all, by
    the one in which time passes.

    >>> _dates(pl.Series(["5/11/2023 22:17:02", "14/11/2023 9:00:00"])).dt.month().to_list()
    [11, 11]
    """
    with suppress(PolarsError):  # none of them is a date
        return column.str.to_datetime(strict=False, time_unit="us")
    text = column.str.strip_chars().str.replace(r"^(\d+)[.-](\d+)[.-](\d{4})", "${1}/${2}/${3}")
    forms = [f"{day} {hour}" for day in ("%m/%d/%Y", "%d/%m/%Y") for hour in ("%H:%M:%S", "%H:%M")]
    read = [text.str.to_datetime(form, strict=False, time_unit="us") for form in forms]
    best = max(read, key=lambda dates: (len(dates) - dates.null_count(), dates.drop_nulls().is_sorted()))
    return column if best.null_count() == len(best) else best


def _seconds(column: pl.Series, warnings: list[str]) -> Vector:
    """Return times in seconds: numbers as they are (or minutes, if so named), dates since 1970, hours since 0:00."""
    if column.dtype == pl.String and not np.isfinite(numbers(column)).any():
        column = _dates(column)
    if column.dtype in (pl.Duration, pl.Time):
        seconds = numbers(column.cast(pl.Duration("us")).dt.total_microseconds()) / 1e6
    elif column.dtype.is_temporal():
        seconds = numbers(column.cast(pl.Datetime("us")).dt.timestamp("us")) / 1e6
    else:
        seconds = numbers(column) * (60.0 if "minute" in column.name.lower() else 1.0)
    unknown = int((~np.isfinite(seconds)).sum())
    if unknown:
        warnings.append(f"{unknown:,} rows have no readable time.")
    return seconds
