"""Shared by the commands on recorded votes: options, reading, and sentences about the file."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
import typer

from fairduel.cli.folders import check_folder, claim, make_folder
from fairduel.cli.output import PANEL, Record, record, typed_command, write_record
from fairduel.errors import BadInputError
from fairduel.files import write_atomically
from fairduel.votes.exporting import csv_bytes
from fairduel.votes.file_readers import READERS, STDIN, supported
from fairduel.votes.reading import EMPTY_ROW, Reading, read_votes
from fairduel.votes.shapes import UNANSWERED

if TYPE_CHECKING:
    from fairduel.report.page import Section

NO_REPORT = "no report was written."
_SET_ASIDE = "set-aside.csv"


class TiesOption(StrEnum):
    """What a tie counts."""

    HALF = "half"
    DROP = "drop"


def _column(role: str) -> Any:
    return typer.Option(metavar="COLUMN", rich_help_panel="Columns", help=role, show_default="by name")


def _file(name: str) -> Path:
    return STDIN if name == "-" else Path(name)


VotesFile = Annotated[
    Path, typer.Argument(metavar="FILE", parser=_file, help=f"Vote file: {supported()}; or - for stdin.")
]
First = Annotated[str | None, _column("First item.")]
Second = Annotated[str | None, _column("Second item.")]
Winner = Annotated[str | None, _column("Winner.")]
Voter = Annotated[str | None, _column('Voter ("none" if there is none).')]
Context = Annotated[str | None, _column('Context, such as the prompt ("none" if there is none).')]
Time = Annotated[str | None, _column('Time of the vote ("none" if there is none).')]
Weight = Annotated[str | None, _column("How many votes the row stands for.")]
Where = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=VALUE",
        rich_help_panel="Columns",
        help="Keep only rows with this value; may be repeated, and COLUMN may be nested (a.b).",
        show_default=False,
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="Fail on unusable rows instead of skipping them.")]
Ties = Annotated[TiesOption, typer.Option(metavar="half|drop", help="Count a tie as half a win for each, or drop it.")]
Level = Annotated[
    float,
    typer.Option(min=0.0001, max=0.5, metavar="P", help="Largest chance of any flag if all voters are honest."),
]
VotersChoose = Annotated[
    bool,
    typer.Option(
        "--voters-choose-duels",
        help="Voters pick their own pairs, so seeing one item often is not evidence.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(metavar="DIR", rich_help_panel=PANEL, help="Output folder.", show_default="results/COMMAND/FILE"),
]


def default_folder(command: str, file: Path) -> Path:
    """Return the folder of a command's results on a file.

    >>> str(default_folder("rank", Path("data/v1.2.csv.gz")))
    'results/rank/v1.2'
    """
    endings = sorted(READERS, key=len, reverse=True)
    ending = next((ending for ending in endings if file.name.lower().endswith(ending)), "")
    return Path("results") / command / file.name[: len(file.name) - len(ending)]


def read_into(
    path: Path,
    command: str,
    out: Path | None,
    where: Sequence[str] | None = None,
    vote_features: Sequence[str] | None = None,
    style: bool = False,
    /,
    *,
    strict: bool,
    **columns: str | None,
) -> tuple[Reading, Path]:
    """Read votes; return them and the output folder, which is not touched unless most rows are unusable.

    ``out`` is None for the default folder. Each of the ``columns`` is a name, ``"none"`` if there is no such column, or
    None to find it. ``where`` are conditions COLUMN=VALUE.
    """
    named = {role: None if name == "none" else name for role, name in columns.items() if name is not None}
    conditions, features = _conditions(where or ()), vote_features or ()
    reading = read_votes(
        path,
        columns=named,
        where=conditions,
        vote_features=features,
        style=style,
        strict=strict,
        whole=command == "export",
    )
    folder = out or default_folder(command, path)
    check_folder(folder, command)
    refusal = _refusal(reading, path.name, folder / _SET_ASIDE)
    if refusal and len(reading.set_aside):
        make_folder(folder)
        _write_set_aside(folder, reading)
    if refusal:
        raise BadInputError(refusal)
    return reading, folder


def _conditions(where: Sequence[str]) -> dict[str, list[str]]:
    """Return the values wanted in each column; a row needs one of them.

    >>> _conditions(["language=English", "turn=1", "language=German"])
    {'language': ['English', 'German'], 'turn': ['1']}
    """
    conditions = dict[str, list[str]]()
    for condition in where:
        column, equals, value = condition.partition("=")
        if not equals or not column:
            raise BadInputError(f"--where {condition} must have the form COLUMN=VALUE.")
        conditions.setdefault(column, []).append(value)
    return conditions


def _refusal(reading: Reading, name: str, file: Path) -> str:
    """Say why the votes allow no result: there are none, most rows are unusable, or no vote counts."""
    unusable = {reason: count for reason, count in reading.problems.items() if reason not in (EMPTY_ROW, UNANSWERED)}
    lost, kept = sum(unusable.values()), len(reading.votes)
    why = "".join(f"; main reason: {reason} ({count:,})" for reason, count in list(unusable.items())[:1])
    if not kept:
        return f"{name} has no votes" + (f": all its rows are unusable (see {file}){why}." if lost else ".")
    if lost > kept:
        return (
            f"{name} has too few votes for a result: {lost:,} of {lost + kept:,} rows are unusable (see {file}){why}."
        )
    if not reading.votes.weight.any():
        return (
            f"no vote in {name} counts: its column {reading.columns['weight']!r} is 0 throughout (use --weight none)."
        )
    return ""


def claim_for(folder: Path, command: str, path: Path, reading: Reading) -> None:
    """Claim the output folder, and write unusable rows to its ``set-aside.csv`` or remove an old one."""
    claim(folder, command, path)
    _write_set_aside(folder, reading)


def _write_set_aside(folder: Path, reading: Reading) -> None:
    skipped = folder / _SET_ASIDE
    if len(reading.set_aside):
        write_csv(skipped, reading.set_aside)
    else:
        skipped.unlink(missing_ok=True)


def file_settings(path: Path, reading: Reading) -> dict[str, Any]:
    """What was read, for the record."""
    votes = reading.votes
    return {
        "file": str(path),
        "columns": dict(reading.columns),
        "where": dict(reading.where) or None,
        "rows": reading.rows,
        "rows_left_out": reading.left_out,
        "votes": len(votes),
        "items": len(votes.items),
        "voters": len(votes.voters) or None,
        "sides_known": votes.sides_known,
        "tied_votes": int(votes.is_tie.sum()),
        "both_bad": reading.both_bad,
        "set_aside": dict(reading.problems),
        "warnings": list(reading.warnings),
    }


def problem_sentences(reading: Reading) -> list[str]:
    """What a reader should know about the file."""
    sentences = list(reading.warnings)
    if reading.left_out:
        conditions = ", ".join(f"{column}={' or '.join(map(str, values))}" for column, values in reading.where.items())
        sentences.append(f"{reading.left_out:,} of {reading.rows:,} rows were left out (--where {conditions}).")
    if reading.problems:
        reasons = ", ".join(f"{reason} ({count:,})" for reason, count in reading.problems.items())
        sentences.append(
            f"{len(reading.set_aside):,} of {reading.rows:,} rows are unusable and were skipped (see {_SET_ASIDE}): "
            f"{reasons}."
        )
    return [sentence[0].upper() + sentence[1:] for sentence in sentences]


def write_report(
    folder: Path, name: str, title: str, reading: Reading, sections: Sequence["Section"], found: Record
) -> Record:
    """Write a record as NAME.json, and the page; return the record with the page's path."""
    from fairduel.report.votes_page import write_votes_report  # noqa: PLC0415  # plotting is slow

    written, page = record(**found), folder / "report.html"
    write_record(folder / f"{name}.json", written)
    write_votes_report(
        page,
        title=title,
        summary=[*found["summary"], *problem_sentences(reading)],
        sections=sections,
        settings=found["settings"],
        command=typed_command(),
    )
    return {**written, "report": str(page)}


def write_csv(path: Path, frame: pl.DataFrame) -> None:
    """Write a table as CSV, completely or not at all; text that a spreadsheet would run gets an apostrophe."""
    write_atomically(path, csv_bytes(frame))
