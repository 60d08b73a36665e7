"""Shared by the commands on recorded votes: options, reading, and sentences about the file."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import polars as pl
import polars.selectors as cs
import typer

from fairduel.cli.folders import check_folder, claim, make_folder
from fairduel.cli.output import PANEL, Record, print_columns, record, say, typed_command, write_record
from fairduel.errors import BadInputError
from fairduel.files import write_atomically
from fairduel.votes.auditing.voter_columns import VOTERS
from fairduel.votes.exporting import csv_bytes
from fairduel.votes.reading.fields import Roles
from fairduel.votes.reading.file_readers import READERS, STDIN, supported
from fairduel.votes.reading.read import FromFile, Reading, read_votes
from fairduel.words import as_options

if TYPE_CHECKING:
    from fairduel.report.page import Section

NO_REPORT = "no report was written."
_SET_ASIDE = "set-aside.csv"
_MAX_ROWS = 20
_ROLES = ("first", "second", "winner", "voter", "context", "time", "weight")


class TiesOption(StrEnum):
    """What a tie counts."""

    HALF = "half"
    DROP = "drop"


def _column(told: str, metavar: str = "COLUMN", show_default: str | bool = "by name") -> Any:
    return typer.Option(metavar=metavar, rich_help_panel="Columns", help=told, show_default=show_default)


def _file(name: str) -> Path:
    return STDIN if name == "-" else Path(name)


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


def default_folder(command: str, file: Path) -> Path:
    """Return the folder of a command's results on a file.

    >>> str(default_folder("rank", Path("data/v1.2.csv.gz")))
    'results/rank/v1.2'
    """
    endings = sorted(READERS, key=len, reverse=True)
    ending = next((ending for ending in endings if file.name.lower().endswith(ending)), "")
    return Path("results") / command / file.name[: len(file.name) - len(ending)]


@dataclass(frozen=True)
class VoteFile:
    """A vote file and how to read it; each field is an argument or option of every command that reads votes."""

    votes: Annotated[
        Path, typer.Argument(metavar="FILE", parser=_file, help=f"Vote file: {supported()}; or - for stdin.")
    ]
    first: Annotated[str | None, _column("First item.")] = None
    second: Annotated[str | None, _column("Second item.")] = None
    winner: Annotated[str | None, _column("Winner.")] = None
    voter: Annotated[str | None, _column('Voter ("none" if there is none).')] = None
    context: Annotated[str | None, _column('Context, such as the prompt ("none" if there is none).')] = None
    time: Annotated[str | None, _column('Time of the vote ("none" if there is none).')] = None
    weight: Annotated[str | None, _column("How many votes the row stands for.")] = None
    where: Annotated[
        list[str] | None,
        _column(
            "Keep only rows with this value; may be repeated, and COLUMN may be nested (a.b).",
            "COLUMN=VALUE",
            show_default=False,
        ),
    ] = None
    map: Annotated[
        list[str] | None,
        _column(
            "What a word for a winner means: first, second, tie or both-bad; may be repeated.",
            "WORD=MEANING",
            show_default=False,
        ),
    ] = None
    tie: Annotated[
        list[str] | None,
        _column("A word that means a tie; may be repeated.", "WORD", show_default=False),
    ] = None
    names: Annotated[
        Path | None,
        _column("Names of the items: a table with a column of ids and one of names.", "FILE", show_default=False),
    ] = None
    strict: Annotated[bool, typer.Option("--strict", help="Fail on unusable rows instead of skipping them.")] = False
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", rich_help_panel=PANEL, help="Output folder.", show_default="results/COMMAND/FILE"),
    ] = None

    @property
    def choices(self) -> dict[str, Any]:
        """The columns, the rows and the words that the user chose."""
        given = {role: getattr(self, role) for role in _ROLES}
        return {
            "columns": {role: None if name == "none" else name for role, name in given.items() if name is not None},
            "where": _conditions(self.where or ()),
            "words": _meanings(self.map or (), self.tie or ()),
            "strict": self.strict,
        }

    def read(self, command: str, vote_features: Sequence[str] = (), *, style: bool = False) -> tuple[Reading, Path]:
        """Return the votes and the output folder, which is not touched unless most rows are unusable."""
        whole, choices = command == "export", self.choices
        columns = cast("Roles", choices.pop("columns"))
        reading = read_votes(
            self.votes,
            **choices,
            names=self.names,
            vote_features=vote_features,
            style=style,
            whole=whole,
            **columns,
        )
        if not whole:  # the others need no more than the votes
            reading = replace(reading, table=reading.table.clear())
        folder = self.out or default_folder(command, self.votes)
        check_folder(folder, command)
        refusal = reading.refusal(see=str(folder / _SET_ASIDE))
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


def _meanings(pairs: Sequence[str], ties: Sequence[str]) -> dict[str, str]:
    """Return what words for winners mean.

    >>> _meanings(["left one=first"], ["gleich"])
    {'gleich': 'tie', 'left one': 'first'}
    """
    meanings = dict.fromkeys(ties, "tie")
    for pair in pairs:
        word, equals, meaning = pair.rpartition("=")
        if not equals or not word:
            raise BadInputError(f"--map {pair} must have the form WORD=MEANING, such as gleich=tie.")
        meanings[word] = meaning
    return meanings


def claim_for(folder: Path, command: str, path: Path, reading: FromFile) -> None:
    """Claim the output folder, and write unusable rows to its ``set-aside.csv`` or remove an old one."""
    claim(folder, command, path)
    _write_set_aside(folder, reading)


def _write_set_aside(folder: Path, reading: FromFile) -> None:
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


def problem_sentences(reading: FromFile) -> list[str]:
    """What a reader should know about the file."""
    return [as_options(sentence) for sentence in reading.notes(see=_SET_ASIDE)]


def write_report(
    folder: Path,
    name: str,
    title: str,
    reading: FromFile,
    sections: Sequence["Section"],
    found: Record,
    first: Sequence[str] = (),
) -> Record:
    """Write a record as NAME.json, and the page; return the record with the page's path.

    The page begins with those sentences of the summary that come ``first``.
    """
    from fairduel.report.votes.ranking_page import write_votes_report  # noqa: PLC0415  # plotting is slow

    written = record(**found)
    write_record(folder / f"{name}.json", written)
    page = write_votes_report(
        folder,
        title=title,
        summary=[*dict.fromkeys([*first, *found["summary"]]), *problem_sentences(reading)],
        sections=sections,
        settings=found["settings"],
        command=typed_command(),
    )
    return {**written, "report": str(page)}


def write_findings(path: Path, frame: pl.DataFrame) -> None:
    """Write numbers that were computed as CSV, with as many digits as anybody needs."""
    write_csv(path, frame.with_columns(cs.float().round_sig_figs(8)))


def write_voters(folder: Path, voters: pl.DataFrame | None, flagged_rows: pl.DataFrame | None) -> None:
    """Write voters.csv and flagged-rows.csv, or remove old ones if the file does not name its voters."""
    if voters is None or flagged_rows is None:
        for name in ("voters.csv", "flagged-rows.csv"):
            (folder / name).unlink(missing_ok=True)
        return
    write_findings(folder / "voters.csv", voters)
    write_csv(folder / "flagged-rows.csv", flagged_rows)


def print_flagged(voters: pl.DataFrame | None, folder: Path) -> None:
    """Print who is flagged, if anybody is."""
    flagged = [] if voters is None else voters.filter("flagged").to_dicts()
    if flagged:
        print_columns(VOTERS, flagged[:_MAX_ROWS], "Flagged voters", file=folder / "voters.csv")
    if len(flagged) > _MAX_ROWS:
        say(f"Only {_MAX_ROWS} of {len(flagged):,} flagged voters are shown (see {folder / 'voters.csv'}).")


def write_csv(path: Path, frame: pl.DataFrame) -> None:
    """Write a table as CSV, completely or not at all; text that a spreadsheet would run gets an apostrophe."""
    write_atomically(path, csv_bytes(frame))
