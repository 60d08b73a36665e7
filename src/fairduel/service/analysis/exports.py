"""Tables to download: votes, duels, comments, voters, the ranking, and the log."""

import csv
import io
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Literal

import polars as pl
from sqlalchemy import Connection, Engine, select

from fairduel.service.analysis.analyse import recorded_votes
from fairduel.service.analysis.inputs import Analysis, Subject
from fairduel.service.events import schema
from fairduel.service.events.database import read_events
from fairduel.service.study.study import NewStudy
from fairduel.votes.auditing.cleaning import clean
from fairduel.votes.exporting import preferences
from fairduel.votes.reading.read import votes_of
from fairduel.words import cell_text

Table = Literal["votes", "duels", "comments", "voters", "ranking", "log", "trl"]
Format = Literal["csv", "jsonl", "parquet"]
MEDIA_TYPES: dict[Format, str] = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
}
_PAGE = 1000
_TIMES = {"time", "issued_at", "deadline", "joined"}
"""Columns with seconds since 1970; those of the log stay as they are hashed."""
_FROM_VOTERS = {"name", "participant", "comment"}
_LATER_FORMULA = re.compile(r"""([;\t\r\n][\s"]*)(?=[=+\-@＝＋－＠])""")
"""Where a cell with a formula begins for a spreadsheet that takes semicolons or tabs to separate cells, as some do."""
_WINNERS = {"left": "first", "right": "second", "tie": "tie"}
Row = Mapping[str, Any]


def export_study(
    engine: Engine,
    table: Table,
    form: Format,
    subject: Subject,
    found: Analysis,
    given: Iterable[Row],
    hidden: Collection[str] = (),
) -> Iterator[bytes]:
    """Yield a table as the bytes of a file; the log and all duels are never in memory at once, except for Parquet.

    ``given`` are the rows of the voters' table or of the preferences; columns in ``hidden`` are left out.
    """
    with engine.connect() as connection:
        if table in {"voters", "trl"}:
            rows: Iterator[Row] = iter(given)
        elif table == "ranking":
            rows = iter(found.results.get("ranking", []))
        elif table == "log":
            rows = _log_rows(connection, subject)
        elif table == "comments":
            rows = _comment_rows(connection, subject)
        else:
            rows = _duel_rows(connection, subject, only_votes=table == "votes")
        yield from _WRITERS[form]({name: row[name] for name in row if name not in hidden} for row in rows)


def preference_rows(connection: Connection, subject: Subject, about: NewStudy) -> list[dict[str, Any]]:
    """Return prompt, chosen and rejected of each vote that the audit trusts, as TRL's trainers read them.

    Raises:
        BadInputError: There are no votes yet.
    """
    texts = [each.text or each.name for each in about.items]
    names = [each.name for each in about.items]
    votes = recorded_votes(connection, subject)

    def answer(item: int, context: int | None) -> str:
        return texts[item] if context is None else about.contexts[context].contents[names[item]]

    contexts = [None] * len(votes) if votes.context is None else votes.context.tolist()
    prompts = [
        about.question if each is None else about.contexts[each].text or subject.contexts[each] for each in contexts
    ]
    frame = (
        votes.to_frame()
        .drop("time", strict=False)
        .with_columns(
            pl.Series("prompt", prompts, dtype=pl.String),
            pl.Series("response_a", map(answer, votes.first, contexts), dtype=pl.String),
            pl.Series("response_b", map(answer, votes.second, contexts), dtype=pl.String),
        )
    )
    roles = {role: role for role in ("first", "second", "winner", "voter")}
    reading = votes_of(frame, columns={**roles, "context": "context" if about.contexts else None})
    return preferences(clean(reading)).to_frame().drop("row").to_dicts()


def _duel_rows(connection: Connection, subject: Subject, *, only_votes: bool) -> Iterator[Row]:
    """Yield a study's duels in the order they were issued, or its votes in the order they were cast."""
    duels, after = schema.duels.c, 0
    order = duels.answered if only_votes else duels.issued
    statuses = ["voted"] if only_votes else ["open", "voted", "skipped", "expired", "undone"]
    while True:
        query = select(schema.duels).where(duels.study == subject.study, duels.status.in_(statuses), order > after)
        rows = connection.execute(query.order_by(order).limit(_PAGE)).all()
        for row in rows:
            yield _duel_row(row, subject)
        if len(rows) < _PAGE:
            return
        after = rows[-1]._mapping[order.name]  # noqa: SLF001  # its documented name


def _duel_row(row: Any, subject: Subject) -> Row:
    """Return a duel as a row; the first columns are those that ``fairduel rank`` reads."""
    left, right = (row.first, row.second) if row.first_is_left else (row.second, row.first)
    return {
        "first": subject.items[left],
        "second": subject.items[right],
        "winner": _WINNERS.get(row.answer),
        "voter": subject.labels[row.voter],
        "kind": "model" if row.voter in subject.models else "person",
        "context": None if row.context is None else subject.contexts[row.context],
        "time": row.answered_at,
        "seconds": row.seconds,
        "status": row.status,
        "set_aside": row.voter in subject.set_aside,
        "gold": row.gold,
        "weight": float(_is_ranked(row, subject)),
        "agent_weight": 0.0 if row.gold else row.weight,
        "issued_at": row.issued_at,
        "deadline": row.deadline,
        "duel": row.duel,
        "repeats": row.repeats,
        "issued": row.issued,
        "answered": row.answered,
    }


def _is_ranked(row: Any, subject: Subject) -> bool:
    """Whether a vote counts in the ranking of people's votes."""
    is_apart = subject.is_apart and row.voter in subject.models
    return not row.gold and row.voter not in subject.set_aside and not is_apart


def _comment_rows(connection: Connection, subject: Subject) -> Iterator[Row]:
    """Yield the comments in the order of the answers they came with."""
    personal, answers = schema.personal.c, schema.answers.c
    query = select(answers.duel, personal.voter, personal.text).join_from(
        schema.personal, schema.answers, personal.position == answers.position
    )
    mine = query.where(personal.study == subject.study, personal.field == "comment").order_by(personal.position)
    for row in connection.execute(mine):
        yield {"duel": row.duel, "voter": subject.labels[row.voter], "comment": row.text}


def _log_rows(connection: Connection, subject: Subject) -> Iterator[Row]:
    for event in read_events(connection, study=subject.study):
        yield event.row() | {"hash": event.hash.hex()}


def _csv(rows: Iterator[Row]) -> Iterator[bytes]:
    """Yield a table that Excel opens as it is: with a byte order mark, and with dates instead of seconds since 1970."""
    buffer = io.StringIO()
    buffer.write("\ufeff")
    writer = csv.writer(buffer)
    for number, row in enumerate(rows):
        if number == 0:
            writer.writerow(row)
        writer.writerow([_cell(name, value) for name, value in row.items()])
        if number % _PAGE == _PAGE - 1:
            yield buffer.getvalue().encode()
            buffer.seek(0)
            buffer.truncate()
    yield buffer.getvalue().encode()


def _cell(name: str, value: Any) -> Any:
    if name in _TIMES and isinstance(value, float):
        return datetime.fromtimestamp(round(value, 6), UTC).replace(tzinfo=None).isoformat(" ", "microseconds")
    if name in _FROM_VOTERS and isinstance(value, str):
        value = _LATER_FORMULA.sub(r"\1'", value)
    return cell_text(value) if isinstance(value, str) else value


def _json_lines(rows: Iterator[Row]) -> Iterator[bytes]:
    for row in rows:
        yield (json.dumps(dict(row), ensure_ascii=False, allow_nan=False) + "\n").encode()


def _parquet(rows: Iterator[Row]) -> Iterator[bytes]:
    buffer = io.BytesIO()
    pl.DataFrame(list(rows), infer_schema_length=None).write_parquet(buffer)
    yield buffer.getvalue()


_WRITERS: dict[Format, Callable[[Iterator[Row]], Iterator[bytes]]] = {
    "csv": _csv,
    "jsonl": _json_lines,
    "parquet": _parquet,
}
