"""``fairduel rank``: a ranking of recorded votes, and how sure it is."""

from collections.abc import Mapping
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from fairduel.cli.options import console, typed_command, write_record
from fairduel.errors import BadInputError
from fairduel.files import write_atomically
from fairduel.votes.features import Features, read_features
from fairduel.votes.ranking import Ranking, rank, summarise
from fairduel.votes.reading import Reading, read_votes

_MOST_ROWS = 100


class TiesOption(StrEnum):
    """What a tie counts."""

    HALF = "half"
    DROP = "drop"


class WeightsOption(StrEnum):
    """How votes are weighed."""

    FIXED_POINT = "fixed-point"
    SEQUENTIAL = "sequential"
    NONE = "none"


VotesFile = Annotated[Path, typer.Argument(help="The votes: .csv, .csv.gz, .tsv, .jsonl or .parquet.", metavar="VOTES")]
First = Annotated[str | None, typer.Option(help="Column of the first item.", show_default="found by its name")]
Second = Annotated[str | None, typer.Option(help="Column of the second item.", show_default="found by its name")]
Winner = Annotated[str | None, typer.Option(help="Column of the winner.", show_default="found by its name")]
Voter = Annotated[str | None, typer.Option(help="Column of the voter; none: there is none.", show_default="by name")]
Context = Annotated[str | None, typer.Option(help="Column of the context; or none.", show_default="by name")]
Time = Annotated[str | None, typer.Option(help="Column of the time; or none.", show_default="by name")]
Weight = Annotated[str | None, typer.Option(help="Column of how often a vote counts.", show_default="by name")]
Strict = Annotated[bool, typer.Option("--strict", help="Stop where a row is no vote, instead of setting it aside.")]
Ties = Annotated[TiesOption, typer.Option(help="A tie is half a win for each, or is left out.")]
Weights = Annotated[WeightsOption, typer.Option(help="How votes are weighed; none: all alike.")]
Lies = Annotated[
    float | None, typer.Option(min=0, help="How many false votes to guard against.", show_default="√votes")
]
FeaturesFile = Annotated[
    Path | None, typer.Option("--features", help="Features of the items: .npz, .parquet or .csv.", show_default=False)
]
Array = Annotated[str | None, typer.Option(help="Which array of an .npz file.", show_default="features or phi")]


def rank_command(
    votes: VotesFile,
    first: First = None,
    second: Second = None,
    winner: Winner = None,
    voter: Voter = None,
    context: Context = None,
    time: Time = None,
    weight: Weight = None,
    features: FeaturesFile = None,
    array: Array = None,
    ties: Ties = TiesOption.HALF,
    weights: Weights = WeightsOption.FIXED_POINT,
    lies: Lies = None,
    strict: Strict = False,
    out: Annotated[Path, typer.Option(help="Folder for all that is written.")] = Path("results/rank"),
) -> None:
    """Rank the items of a file of votes, and say how sure that is.

    A vote names two items and which of them won: first, second, tie or
    both-bad (or a/b, model_a/model_b, left/right, 1/2), or the winner's name.

    A vote counts less where little else is known about its two items,
    because there a false one would change most. Ranks come with a range
    that holds for all items together with 95 % confidence.

    Writes ranking.csv, ranking.json, report.html and, where rows are no
    votes, set-aside.csv, with the row and the reason of each.
    """
    from fairduel.report.votes_page import ranking_sections, write_votes_report  # noqa: PLC0415  # plotting is slow

    roles = chosen_columns(
        first=first, second=second, winner=winner, voter=voter, context=context, time=time, weight=weight
    )
    reading = read_and_set_aside(votes, roles, strict=strict, out=out)
    table = features_for(features, array, reading)
    ranking = rank(reading.votes, features=table, weights=weights.value, lies=lies, ties=ties.value)
    write_atomically(out / "ranking.csv", ranking.frame().write_csv().encode())
    settings = {**file_settings(votes, reading), **ranking.settings}
    record = {
        "settings": settings,
        "summary": summarise(ranking),
        "notes": ranking.notes,
        "ranking": [asdict(standing) | {"win_rate": standing.win_rate} for standing in ranking.standings],
    }
    write_record(out / "ranking.json", record)
    page = out / "report.html"
    summary = [*summarise(ranking), *problem_sentences(reading)]
    write_votes_report(
        page,
        title=f"Ranking of {votes.name}",
        summary=summary,
        sections=ranking_sections(ranking, reading.votes, ties=ties.value),
        settings=settings,
        command=typed_command(),
    )
    print_ranking(ranking)
    for sentence in (*summary, *ranking.notes):
        console.print(sentence, soft_wrap=True, highlight=False, markup=False)
    console.print(f"Also at [bold]{page}[/bold]", soft_wrap=True)


def chosen_columns(**options: str | None) -> dict[str, str | None]:
    """Which columns were named; ``none`` says that there is none."""
    return {role: None if name == "none" else name for role, name in options.items() if name is not None}


def read_and_set_aside(path: Path, columns: Mapping[str, str | None], *, strict: bool, out: Path) -> Reading:
    """Read votes, and write what is none to ``set-aside.csv``, or take away an old one."""
    reading = read_votes(path, columns=columns, strict=strict)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInputError(f"cannot write to {out}: {error.strerror}.") from error
    kept = out / "set-aside.csv"
    if len(reading.set_aside):
        write_atomically(kept, reading.set_aside.write_csv().encode())
    else:
        kept.unlink(missing_ok=True)
    return reading


def features_for(path: Path | None, array: str | None, reading: Reading) -> Features | None:
    """Read the features, where there are any."""
    return None if path is None else read_features(path, reading.votes, array=array)


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


def print_ranking(ranking: Ranking) -> None:
    """Show the standings as a table."""
    table = Table(box=SIMPLE_HEAD)
    groups = len(list(ranking.components())) > 1
    for name in (["group"] if groups else []) + ["rank", "range", "item"]:
        table.add_column(name, justify="left" if name == "item" else "right")
    for name in ("score", "error", "best", "votes", "won", "weight", "plain"):
        table.add_column(name, justify="right")
    for s in ranking.standings[:_MOST_ROWS]:
        low_high = f"{s.rank_low}" if s.rank_low == s.rank_high else f"{s.rank_low}–{s.rank_high}"
        group = [str(s.component)] if groups else []
        numbers = [f"{s.score:+.3f}", f"{s.error:.3f}", f"{s.best:.3f}", f"{s.games:,.0f}", f"{s.win_rate:.0%}"]
        table.add_row(*group, str(s.rank), low_high, Text(s.item), *numbers, f"{s.mean_weight:.2f}", str(s.plain_rank))
    console.print(table)
    if len(ranking.standings) > _MOST_ROWS:
        console.print(f"Only the first {_MOST_ROWS} of {len(ranking.standings)} items are shown: ranking.csv has all.")
