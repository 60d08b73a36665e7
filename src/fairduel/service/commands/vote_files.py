"""Read votes that were cast elsewhere, for a study; slow to import, because of polars."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from polars.exceptions import PolarsError

from fairduel.duel import Vector
from fairduel.errors import BadInputError
from fairduel.service.commands.imports import MOST_VOTES, CastVote, Import
from fairduel.service.study.study import NewStudy
from fairduel.votes.reading.fields import Columns, find_columns
from fairduel.votes.reading.file_readers import read_table
from fairduel.votes.reading.read import Reading, votes_of
from fairduel.votes.timing import LONGEST_ANSWER
from fairduel.words import cell_text, printable

_ROLES = ("first", "second", "winner", "voter", "context", "time")
_OWN = {*_ROLES, "kind", "seconds", "status", "set_aside"}
_FAR = 1e11  # seconds since 1970
_ANSWERS = {1.0: "left", 0.0: "right", 0.5: "tie"}


def read_import(path: Path, about: NewStudy) -> Import:
    """Read the votes of a file for a study: an export of this server, or any file that ``fairduel rank`` reads.

    Raises:
        BadInputError: The file cannot be read, has other items, or has too many votes.
    """
    if path.suffix.lower() == ".parquet":
        _check_rows(path)
    frame, first_row, *_ = read_table(path, list)
    found = find_columns(frame.columns, {}, path.name, complete=False) if about.contexts else {}
    columns: Columns = {"context": found.get("context")}
    where = dict[str, Any]()
    if set(frame.columns) >= _OWN:  # an export, whose duels may be unanswered, undone or gold
        columns, where = {**{role: role for role in _ROLES}, **columns, "weight": None}, {"status": "voted"}
        where |= {"gold": "false"} if "gold" in frame.columns else {}
    reading = votes_of(frame, columns=columns, where=where, strict=True, first_row=first_row, name=path.name)
    return _of_reading(reading, about, path.name)


def _check_rows(path: Path) -> None:
    try:
        rows = pl.scan_parquet(path).select(pl.len()).collect().item()
    except (PolarsError, OSError) as error:
        raise BadInputError(f"cannot read {path.name}: it is not Parquet, or damaged.") from error
    if rows > MOST_VOTES:
        raise _too_many(path.name, rows)


def _too_many(name: str, rows: int) -> BadInputError:
    return BadInputError(f"{name} has {rows:,} votes; one import can have at most {MOST_VOTES:,}.")


def _of_reading(reading: Reading, about: NewStudy, name: str) -> Import:
    votes, table = reading.votes, reading.table
    if len(votes) > MOST_VOTES:
        raise _too_many(name, len(votes))
    if (votes.weight != 1.0).any():
        raise BadInputError(f"{name} has weights, which a study cannot have; import one row per vote.")
    items = _places(votes.items, [item.name for item in about.items], "item", name)
    contexts = _places(votes.contexts, [each.name for each in about.contexts], "context", name)
    count = len(votes)
    if about.contexts and votes.context is None:
        raise BadInputError(f"{name} does not say in which context each vote was cast, but the study has contexts.")
    voters = [f"row {row}" for row in votes.row] if votes.voter is None else [votes.voters[v] for v in votes.voter]
    times = _timestamps(votes.time, count)
    seconds = _numbers(table, "seconds")
    found = [
        CastVote(
            items[votes.first[n]],
            items[votes.second[n]],
            _ANSWERS[float(votes.result[n])],
            voters[n],
            contexts[votes.context[n]] if votes.context is not None and about.contexts else None,
            times[n],
            seconds[n],
        )
        for n in range(count)
    ]
    for vote, row in zip(found, votes.row, strict=True):
        _check_answers(vote, about, f"{name}, row {row}")
    if not set(table.columns) >= _OWN:
        return Import(found, sides_known=votes.sides_known)
    return Import(found, _voters_with(table, "set_aside", "true", found), _voters_with(table, "kind", "model", found))


def _voters_with(table: pl.DataFrame, column: str, value: str, votes: Sequence[CastVote]) -> frozenset[str]:
    """Return the voters for whom a column of an export has this value."""
    said = table[column].cast(pl.String).str.to_lowercase().to_list()
    return frozenset(vote.voter for vote, each in zip(votes, said, strict=True) if each == value)


def _check_answers(vote: CastVote, about: NewStudy, place: str) -> None:
    if vote.context is not None:
        context = about.contexts[vote.context]
        for item in (vote.left, vote.right):
            if about.items[item].name not in context.contents:
                raise BadInputError(f"{place}: {about.items[item].name!r} has no answer in context {context.name!r}.")


def _places(names: Sequence[str], known: Sequence[str], kind: str, file: str) -> list[int]:
    """Return the place of each name among those of the study; a CSV may have an apostrophe before formulas."""
    place = {cell_text(name): number for number, name in enumerate(known)}
    place |= {name: number for number, name in enumerate(known)}
    if kind == "context" and not known:
        return []
    for name in names:
        if name not in place:
            raise BadInputError(f"{file} has votes on the {kind} {printable(name)!r}, which the study does not have.")
    return [place[name] for name in names]


def _timestamps(times: Vector | None, count: int) -> list[float | None]:
    """Return when votes were cast, if the times (n,) are seconds since 1970 rather than how long voters took.

    They are rounded to microseconds, as they are in a CSV export, so that the same votes are known in any form.
    """
    known = np.zeros(0) if times is None else times[np.isfinite(times)]
    if times is None or not ((known > LONGEST_ANSWER) & (known < _FAR)).all():
        return [None] * count
    return [round(float(each), 6) if math.isfinite(each) else None for each in times]


def _numbers(table: pl.DataFrame, name: str) -> list[float | None]:
    """Return a column of numbers ≥ 0, None where there is none."""
    if name not in table.columns or table[name].dtype.is_nested():
        return [None] * len(table)
    found = table[name].cast(pl.Float64, strict=False).to_list()
    return [each if each is not None and 0.0 <= each <= 1e6 else None for each in found]
