"""What the commands on recorded votes share: options, reading, and what they say about the file."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

from fairduel.cli.folders import claim
from fairduel.cli.output import PANEL
from fairduel.files import write_atomically
from fairduel.votes.file_readers import READERS
from fairduel.votes.reading import Reading, read_votes

NO_REPORT = "no report was written."


class TiesOption(StrEnum):
    """What a tie counts."""

    HALF = "half"
    DROP = "drop"


def _column(role: str) -> Any:
    return typer.Option(metavar="COLUMN", rich_help_panel="Columns", help=role, show_default="by name")


VotesFile = Annotated[Path, typer.Argument(metavar="FILE", help=f"Vote file: {', '.join(READERS)}.")]
First = Annotated[str | None, _column("First item.")]
Second = Annotated[str | None, _column("Second item.")]
Winner = Annotated[str | None, _column("Winner.")]
Voter = Annotated[str | None, _column('Voter ("none" if there is none).')]
Context = Annotated[str | None, _column('Context, such as the prompt ("none" if there is none).')]
Time = Annotated[str | None, _column('Time of the vote ("none" if there is none).')]
Weight = Annotated[str | None, _column("How many votes the row stands for.")]
Strict = Annotated[bool, typer.Option("--strict", help="Fail on unusable rows instead of skipping them.")]
Ties = Annotated[TiesOption, typer.Option(metavar="half|drop", help="Count a tie as half a win for each, or drop it.")]
Level = Annotated[
    float,
    typer.Option(min=0.0001, max=0.5, metavar="P", help="Chance of flagging anybody if all voters are honest."),
]
VotersChoose = Annotated[
    bool,
    typer.Option(
        "--voters-choose-duels",
        help="Voters pick their own pairs, so meeting one item often is not evidence.",
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


def read_and_set_aside(path: Path, command: str, out: Path, *, strict: bool, **columns: str | None) -> Reading:
    """Read votes, claim the output folder, and write unusable rows to ``set-aside.csv`` or remove an old one.

    ``columns`` are options: a name, ``"none"`` if there is no such column, or None to find it.
    """
    named = {role: None if name == "none" else name for role, name in columns.items() if name is not None}
    reading = read_votes(path, columns=named, strict=strict)
    claim(out, command)
    skipped = out / "set-aside.csv"
    if len(reading.set_aside):
        write_csv(skipped, reading.set_aside)
    else:
        skipped.unlink(missing_ok=True)
    return reading


def file_settings(path: Path, reading: Reading) -> dict[str, Any]:
    """What was read, for the record."""
    votes = reading.votes
    return {
        "file": str(path),
        "columns": dict(reading.columns),
        "rows": reading.rows,
        "votes": len(votes),
        "items": len(votes.items),
        "voters": len(votes.voters) or None,
        "votes that are ties": int(votes.is_tie.sum()),
        "of them both bad": reading.both_bad,
        "set aside": dict(reading.problems),
        "warnings": list(reading.warnings),
    }


def problem_sentences(reading: Reading) -> list[str]:
    """What a reader should know about the file."""
    sentences = list(reading.warnings)
    if reading.problems:
        reasons = ", ".join(f"{reason} ({count:,})" for reason, count in reading.problems.items())
        sentences.append(
            f"{len(reading.set_aside):,} of {reading.rows:,} rows are unusable and were skipped (see set-aside.csv): "
            f"{reasons}."
        )
    return [sentence[0].upper() + sentence[1:] for sentence in sentences]


def write_csv(path: Path, frame: pl.DataFrame) -> None:
    """Write a table as CSV, completely or not at all."""
    write_atomically(path, frame.write_csv().encode())
