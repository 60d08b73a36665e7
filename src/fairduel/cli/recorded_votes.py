"""What the commands about recorded votes share: their options, how votes are read, and how findings are shown."""

from collections.abc import Collection, Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from fairduel.cli.options import console
from fairduel.errors import BadInputError
from fairduel.files import write_atomically
from fairduel.report.text_table import TextTable
from fairduel.votes.file_readers import READERS
from fairduel.votes.reading import Reading, read_votes

NOTHING_WRITTEN = "nothing was written."


class TiesOption(StrEnum):
    """What a tie counts."""

    HALF = "half"
    DROP = "drop"


VotesFile = Annotated[Path, typer.Argument(help=f"The votes: {', '.join(READERS)}.", metavar="VOTES")]
First = Annotated[str | None, typer.Option(help="Column of the first item.", show_default="found by its name")]
Second = Annotated[str | None, typer.Option(help="Column of the second item.", show_default="found by its name")]
Winner = Annotated[str | None, typer.Option(help="Column of the winner.", show_default="found by its name")]
Voter = Annotated[str | None, typer.Option(help="Column of the voter; none: there is none.", show_default="by name")]
Context = Annotated[str | None, typer.Option(help="Column of the context; or none.", show_default="by name")]
Time = Annotated[str | None, typer.Option(help="Column of the time; or none.", show_default="by name")]
Weight = Annotated[str | None, typer.Option(help="Column of how often a vote counts.", show_default="by name")]
Strict = Annotated[bool, typer.Option("--strict", help="Stop where a row is no vote, instead of setting it aside.")]
Ties = Annotated[TiesOption, typer.Option(help="A tie is half a win for each, or is left out.")]
Level = Annotated[
    float, typer.Option(min=0.0001, max=0.5, help="Chance of any flag that is tolerated if all voters are honest.")
]
VotersChoose = Annotated[
    bool,
    typer.Option(
        "--voters-choose-duels", help="Voters choose what they vote on, so how often they meet an item is no evidence."
    ),
]
Out = Annotated[Path, typer.Option(help="Folder for all that is written.")]


def read_and_set_aside(path: Path, *, strict: bool, out: Path, **columns: str | None) -> Reading:
    """Read votes, and write rows that are none to ``set-aside.csv``, or remove an old one.

    ``columns`` are options: a name, ``"none"`` where there is no such column, or None to find it.
    """
    named = {role: None if name == "none" else name for role, name in columns.items() if name is not None}
    reading = read_votes(path, columns=named, strict=strict)
    make_folder(out)
    kept = out / "set-aside.csv"
    if len(reading.set_aside):
        write_csv(kept, reading.set_aside)
    else:
        kept.unlink(missing_ok=True)
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
            f"{len(reading.set_aside):,} of {reading.rows:,} rows are no votes and were set aside in set-aside.csv: "
            f"{reasons}."
        )
    return [sentence[0].upper() + sentence[1:] for sentence in sentences]


def make_folder(path: Path) -> None:
    """Make the output folder."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInputError(f"cannot write to {path}: {error.strerror}.") from error


def write_csv(path: Path, frame: pl.DataFrame) -> None:
    """Write a table as CSV, completely or not at all."""
    write_atomically(path, frame.write_csv().encode())


def print_table(table: TextTable, *, left: Collection[str] = ()) -> None:
    """Show a table; the columns in ``left`` are aligned left, the others right."""
    shown = Table(box=SIMPLE_HEAD, title=table.caption or None, title_justify="left", title_style="bold")
    for name in table.columns:
        shown.add_column(name, justify="left" if name in left else "right")
    for row in table.rows:
        shown.add_row(*map(Text, row))
    console.print(shown)


def print_sentences(sentences: Iterable[str], page: Path | None = None) -> None:
    """Show sentences as they are (names in them are not markup), and where the page is that has them too."""
    for sentence in sentences:
        console.print(sentence, soft_wrap=True, highlight=False, markup=False)
    if page is not None:
        console.print(f"Also at [bold]{page}[/bold]", soft_wrap=True)
