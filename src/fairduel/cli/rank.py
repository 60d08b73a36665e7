"""``fairduel rank``: a ranking of recorded votes, with its uncertainty."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fairduel.cli import output
from fairduel.cli import recorded_votes as recorded
from fairduel.report.text_table import TextTable
from fairduel.report.votes_tables import standing_cells
from fairduel.votes.features import read_features
from fairduel.votes.ranking import Ranking, rank, summarise

_MAX_ROWS = 100
_COLUMNS = ("rank", "range", "item", "score", "error", "best", "votes", "won", "weight", "plain")
_LEAST_USEFUL = ("weight", "plain", "won", "best", "votes", "error", "score")


class WeightsOption(StrEnum):
    """How votes are weighted."""

    FIXED_POINT = "fixed-point"
    SEQUENTIAL = "sequential"
    NONE = "none"


Weights = Annotated[
    WeightsOption,
    typer.Option(metavar="METHOD", help="How votes are weighted: fixed-point, sequential or none (all equal)."),
]
Lies = Annotated[
    float | None,
    typer.Option(min=0, metavar="N", help="Number of false votes to guard against.", show_default="√votes"),
]
FeaturesFile = Annotated[
    Path | None,
    typer.Option("--features", metavar="FILE", help="Item features: .npz, .parquet or .csv.", show_default=False),
]
Array = Annotated[
    str | None, typer.Option(metavar="NAME", help="Array of an .npz file to use.", show_default="features or phi")
]


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
    out: recorded.Out = None,
) -> output.Record:
    """Rank the items of a vote file, with confidence ranges.

    A vote names two items and the winner: first, second, tie or both-bad
    (or a/b, model_a/model_b, left/right, 1/2), or the winner's name.

    A vote counts less if little else is known about its two items, because
    a false vote does the most damage there. The rank ranges hold for all
    items together with 95% confidence.

    Writes report.html, ranking.csv, ranking.json and, if rows are unusable,
    set-aside.csv with each row and the reason.
    """
    from fairduel.report.votes_page import ranking_sections  # noqa: PLC0415  # plotting is slow

    columns = {"first": first, "second": second, "winner": winner, "voter": voter, "context": context}
    reading, folder = recorded.read_into(votes, "rank", out, strict=strict, **columns, time=time, weight=weight)
    table = None if features is None else read_features(features, reading.votes, array=array)
    ranking = rank(reading.votes, features=table, weights=weights.value, lies=lies, ties=ties.value)
    recorded.claim_for(folder, "rank", votes, reading)
    recorded.write_csv(folder / "ranking.csv", ranking.frame())
    settings = {**recorded.file_settings(votes, reading), **ranking.settings}
    summary = summarise(ranking)
    found = {"settings": settings, "summary": summary, "notes": ranking.notes, "ranking": ranking.records()}
    sections = ranking_sections(ranking, reading.votes)
    written = recorded.write_report(folder, "ranking", f"Ranking of {votes.name}", reading, sections, found)
    output.say(*summary)
    _print_ranking(ranking, folder / "ranking.csv")
    output.say_report(written["report"], *recorded.problem_sentences(reading), *ranking.notes)
    return written


def _print_ranking(ranking: Ranking, file: Path) -> None:
    groups = ("group",) if any(standing.component > 1 for standing in ranking.standings) else ()
    cells = (standing_cells(standing, digits=3) for standing in ranking.standings[:_MAX_ROWS])
    output.print_table(TextTable.of(cells, (*groups, *_COLUMNS)), text=["item"], optional=_LEAST_USEFUL, file=file)
    if len(ranking.standings) > _MAX_ROWS:
        output.say(f"Only the first {_MAX_ROWS} of {len(ranking.standings)} items are shown (see {file}).")
