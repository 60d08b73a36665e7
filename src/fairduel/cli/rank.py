"""``fairduel rank``: a ranking of recorded votes, and how sure it is."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fairduel.cli import recorded_votes as recorded
from fairduel.cli.options import console, typed_command, write_record
from fairduel.report.text_table import TextTable
from fairduel.report.votes_tables import standing_cells
from fairduel.votes.features import read_features
from fairduel.votes.ranking import Ranking, rank, summarise

_MOST_ROWS = 100
_COLUMNS = ("rank", "range", "item", "score", "error", "best", "votes", "won", "weight", "plain")


class WeightsOption(StrEnum):
    """How votes are weighed."""

    FIXED_POINT = "fixed-point"
    SEQUENTIAL = "sequential"
    NONE = "none"


Weights = Annotated[WeightsOption, typer.Option(help="How votes are weighed; none: all alike.")]
Lies = Annotated[
    float | None, typer.Option(min=0, help="How many false votes to guard against.", show_default="√votes")
]
FeaturesFile = Annotated[
    Path | None, typer.Option("--features", help="Features of the items: .npz, .parquet or .csv.", show_default=False)
]
Array = Annotated[str | None, typer.Option(help="Which array of an .npz file.", show_default="features or phi")]


def rank_command(
    votes: recorded.VotesFile,
    first: recorded.First = None,
    second: recorded.Second = None,
    winner: recorded.Winner = None,
    voter: recorded.Voter = None,
    context: recorded.Context = None,
    time: recorded.Time = None,
    weight: recorded.Weight = None,
    features: FeaturesFile = None,
    array: Array = None,
    ties: recorded.Ties = recorded.TiesOption.HALF,
    weights: Weights = WeightsOption.FIXED_POINT,
    lies: Lies = None,
    strict: recorded.Strict = False,
    out: recorded.Out = Path("results/rank"),
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

    columns = {"first": first, "second": second, "winner": winner, "voter": voter, "context": context}
    reading = recorded.read_and_set_aside(votes, strict=strict, out=out, **columns, time=time, weight=weight)
    table = None if features is None else read_features(features, reading.votes, array=array)
    ranking = rank(reading.votes, features=table, weights=weights.value, lies=lies, ties=ties.value)
    recorded.write_csv(out / "ranking.csv", ranking.frame())
    settings = {**recorded.file_settings(votes, reading), **ranking.settings}
    record = {"summary": summarise(ranking), "notes": ranking.notes, "ranking": ranking.records()}
    write_record(out / "ranking.json", {"settings": settings, **record})
    page = out / "report.html"
    summary = [*summarise(ranking), *recorded.problem_sentences(reading)]
    write_votes_report(
        page,
        title=f"Ranking of {votes.name}",
        summary=summary,
        sections=ranking_sections(ranking, reading.votes),
        settings=settings,
        command=typed_command(),
    )
    print_ranking(ranking)
    recorded.print_sentences([*summary, *ranking.notes], page)


def print_ranking(ranking: Ranking) -> None:
    """Show the standings as a table."""
    several = any(standing.component > 1 for standing in ranking.standings)
    cells = (standing_cells(standing, digits=3) for standing in ranking.standings[:_MOST_ROWS])
    recorded.print_table(TextTable.of(cells, ("group", *_COLUMNS) if several else _COLUMNS), left=["item"])
    if len(ranking.standings) > _MOST_ROWS:
        console.print(f"Only the first {_MOST_ROWS} of {len(ranking.standings)} items are shown: ranking.csv has all.")
