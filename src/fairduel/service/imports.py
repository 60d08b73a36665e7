"""Votes that were cast elsewhere, as a starting point: read from a file, or from another study."""

import hashlib
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from polars.exceptions import PolarsError
from sqlalchemy import select

from fairduel.duel import Vector
from fairduel.errors import BadInputError
from fairduel.service import schema
from fairduel.service.asking import IMPORT_KEY
from fairduel.service.commands import MOST_VOTERS, change_item, create_study, find_study
from fairduel.service.gold import GOLD_WEIGHT
from fairduel.service.keys import first_is_left, new_id
from fairduel.service.learner import Proposal
from fairduel.service.ledger import Ledger
from fairduel.service.log import Kind, canonical
from fairduel.service.problems import Problem
from fairduel.service.state import StudyState
from fairduel.service.study import NewStudy
from fairduel.text import cell_text, printable
from fairduel.votes.column_roles import Columns, find_columns
from fairduel.votes.file_readers import read_table
from fairduel.votes.reading import Reading, votes_of
from fairduel.votes.timing import LONGEST_ANSWER

MOST_VOTES = 20_000
"""Votes of one import, which the server records in one go."""
MOST_BYTES = 20_000_000
ENDINGS = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet")
"""The files that are read from strangers; others may unpack to more than they seem."""
_ROLES = ("first", "second", "winner", "voter", "context", "time")
_OWN = {*_ROLES, "kind", "seconds", "status", "set_aside"}
_FAR = 1e11  # seconds since 1970
_NUMBERED = re.compile(r" \(voter \d+\)$")
_ANSWERS = {1.0: "left", 0.0: "right", 0.5: "tie"}


class CastVote(NamedTuple):
    """A vote that was cast elsewhere."""

    left: int
    right: int
    answer: str
    voter: str
    context: int | None
    cast_at: float | None
    """Seconds since 1970, if known."""
    seconds: float | None
    """How long the voter took, if known."""


class Import(NamedTuple):
    """Votes to import, in their order."""

    votes: list[CastVote]
    set_aside: frozenset[str] = frozenset()
    """Voters whose votes do not count."""
    models: frozenset[str] = frozenset()
    """Voters that are language models."""
    sides_known: bool = True

    @property
    def digest(self) -> str:
        """The hash of the content, whatever file it came in."""
        return hashlib.sha256(canonical([self.votes, sorted(self.set_aside), sorted(self.models)]).encode()).hexdigest()


def read_import(path: Path, about: NewStudy) -> Import:
    """Read the votes of a file for a study: an export of this server, or any file that ``fairduel rank`` reads.

    Args:
        path: The file.
        about: The study, whose items and contexts the file must name.

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
    """Return when votes were cast, if the times (n,) are seconds since 1970 rather than how long voters took."""
    known = np.zeros(0) if times is None else times[np.isfinite(times)]
    if times is None or not ((known > LONGEST_ANSWER) & (known < _FAR)).all():
        return [None] * count
    return [float(each) if math.isfinite(each) else None for each in times]


def _numbers(table: pl.DataFrame, name: str) -> list[float | None]:
    """Return a column of numbers ≥ 0, None where there is none."""
    if name not in table.columns or table[name].dtype.is_nested():
        return [None] * len(table)
    found = table[name].cast(pl.Float64, strict=False).to_list()
    return [each if each is not None and 0.0 <= each <= 1e6 else None for each in found]


def votes_of_study(ledger: Ledger, study: StudyState) -> Import:
    """Return the votes of a study, with "voter 1", "voter 2", … in place of names."""
    duels = schema.duels.c
    query = select(schema.duels).where(duels.study == study.study, duels.status == "voted", duels.weight != GOLD_WEIGHT)
    labels = {
        voter: f"voter {number}" if known.model is None else f"{known.model} (voter {number})"
        for number, (voter, known) in enumerate(study.voters.items(), start=1)
    }
    found = [
        CastVote(
            row.first if row.first_is_left else row.second,
            row.second if row.first_is_left else row.first,
            row.answer,
            labels[row.voter],
            row.context,
            row.answered_at,
            row.seconds,
        )
        for row in ledger.connection().execute(query.order_by(duels.answered))
    ]
    models = frozenset(labels[model.voter] for model in study.models)
    return Import(found, frozenset(labels[voter] for voter in study.set_aside), models)


def import_votes(ledger: Ledger, study: str, imported: Import) -> tuple[StudyState, bool]:
    """Record votes that were cast elsewhere, all or none; return the study, and whether the learner must be refolded.

    Each voter of the file becomes a voter of the study without a key, who is declared to be imported. Each vote becomes
    a duel that was given to the agent, and its answer.
    """
    found = find_study(ledger, study)
    _check_size(imported)
    votes, digest = imported.votes, imported.digest
    if digest in found.imports:
        raise Problem(409, "already-imported", "These votes are already in the study; nothing was changed.")
    names = dict.fromkeys(vote.voter for vote in votes)
    if len(found.voters) + len(names) > MOST_VOTERS:
        raise Problem(409, "too-many", "This study cannot have so many voters.")
    ids = {name: new_id() for name in names}
    for name, voter in ids.items():
        shown, is_model = printable(name)[:200], name in imported.models
        model = {"model": _NUMBERED.sub("", shown)} if is_model else {}
        told = {"name": None if is_model else shown}
        ledger.append(Kind.VOTER_JOINED, study, {"voter": voter, "imported": True, **model}, told)
        if name in imported.set_aside:
            ledger.append(Kind.VOTER_CHANGED, study, {"voter": voter, "set_aside": True})
    for number, vote in enumerate(votes):
        _record(ledger, found, ids[vote.voter], vote, f"{IMPORT_KEY}{number}", sides_known=imported.sides_known)
    ledger.append(Kind.IMPORTED, study, {"digest": digest, "votes": len(votes), "voters": len(names)})
    return found, bool(imported.set_aside)


def _check_size(imported: Import) -> None:
    if not 0 < len(imported.votes) <= MOST_VOTES:
        raise Problem(422, "invalid", f"1 to {MOST_VOTES:,} votes can be imported; these are {len(imported.votes):,}.")


def create_with_votes(ledger: Ledger, about: NewStudy, imported: Import | None) -> tuple[StudyState, bool]:
    """Create a study, perhaps with votes to begin with; see :func:`import_votes`."""
    if imported is None:
        return create_study(ledger, about), False
    _check_size(imported)
    return import_votes(ledger, create_study(ledger, about).study, imported)


def _record(ledger: Ledger, study: StudyState, voter: str, vote: CastVote, key: str, *, sides_known: bool) -> None:
    duel, now = new_id(), ledger.now()
    if study.is_apart(study.voters[voter]):
        proposal = Proposal(vote.context, vote.left, vote.right, weight=0.0, declined=False)
    else:
        proposal = study.learner.propose_given(vote.context, vote.left, vote.right)
    is_left, answer = proposal.first == vote.left, vote.answer
    if not sides_known and first_is_left(ledger.secret, voter, duel) != is_left:
        is_left, answer = not is_left, {"left": "right", "right": "left"}.get(answer, answer)
    body = proposal._asdict() | {
        "duel": duel,
        "voter": voter,
        "first_is_left": is_left,
        "repeats": None,
        "deadline": now + study.about.duel_seconds,
    }
    ledger.append(Kind.DUEL_ISSUED, study.study, body)
    here = study.voters[voter]
    winner = here.open[duel].winner(answer)
    progress = {"answered": here.votes + 1, "votes": here.votes + 1, "of": None, "done": False}
    ledger.append(
        Kind.ANSWERED,
        study.study,
        {
            "duel": duel,
            "voter": voter,
            "answer": answer,
            "winner": winner,
            "key": key,
            "seconds": vote.seconds,
            "settles": None,
            "final": True,
            "progress": progress,
            "cast_at": vote.cast_at,
        },
    )


def clone_study(ledger: Ledger, study: str, title: str | None, *, votes: bool) -> tuple[StudyState, bool]:
    """Create a study like another one, open and perhaps with its votes; see :func:`import_votes`."""
    found = find_study(ledger, study)
    name = title if title is not None else f"Copy of {found.about.title or found.about.question}"[:200]
    about = found.about.model_copy(update={"title": name, "state": "open"})
    made, refold = create_with_votes(ledger, about, votes_of_study(ledger, found) if votes else None)
    for item in range(len(found.enabled)):
        change_item(ledger, made.study, item, found.item_settings(item))
    if found.gold.answers:
        ledger.append(Kind.GOLD_CHANGED, made.study, found.gold.to_body())
    return made, refold
