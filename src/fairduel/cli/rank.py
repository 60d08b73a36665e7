"""``fairduel rank``: a ranking of recorded votes, with its uncertainty."""

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl
import typer

from fairduel.cli import output
from fairduel.cli import recorded_votes as recorded
from fairduel.duel import Vector
from fairduel.errors import BadInputError
from fairduel.report.page import Section
from fairduel.report.text_table import TextTable
from fairduel.report.votes_tables import (
    CERTIFIED,
    certificates_explained,
    certified_columns,
    effects_table,
    ranking_cells,
)
from fairduel.votes.care import trusted_weights
from fairduel.votes.certificates import certified, with_certificates
from fairduel.votes.features import read_features
from fairduel.votes.ranking import Ranking, rank, summarise
from fairduel.votes.reading import Reading
from fairduel.votes.rivals import RIVALS
from fairduel.votes.voters import audit_voters
from fairduel.votes.votes import Ties, Votes

_MAX_ROWS = 100
_COLUMNS = ("rank", "range", "item", "score", "error", "best", "votes", "won")
_WEIGHT_COLUMNS = ("weight", "plain")
_LEAST_USEFUL = (*_WEIGHT_COLUMNS, "won", "best", "votes", "error", *reversed(CERTIFIED), "score")
_NO_RANGES = "Rival models have no ranges or certificates: this is the order and the scores, without their uncertainty."


class ModelOption(StrEnum):
    """Which model ranks the items."""

    EVERYONE = "everyone"
    OURS = "ours"
    PLAIN = "plain"
    CROWD_BT = "crowd-bt"
    AM_ELO = "am-elo"
    RELIABILITY = "reliability"
    SPECTRAL = "spectral"


class WeightsOption(StrEnum):
    """How votes are weighted."""

    FIXED_POINT = "fixed-point"
    SEQUENTIAL = "sequential"
    NONE = "none"


Model = Annotated[
    ModelOption,
    typer.Option(
        metavar="MODEL",
        help="everyone (all voters count alike), ours (as the audit found), or plain, crowd-bt, am-elo, reliability, "
        "spectral.",
    ),
]
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
VoteFeature = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN or A:B",
        help="Fit a number per vote too, or (A − B)/(A + B) of two columns; may be repeated.",
        show_default=False,
    ),
]
Style = Annotated[
    bool,
    typer.Option("--style", help="Fit LMArena's length, header, list and bold counts (conv_metadata) too."),
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
    where: recorded.Where = None,
    features: FeaturesFile = None,
    array: Array = None,
    vote_feature: VoteFeature = None,
    style: Style = False,
    ties: recorded.Ties = recorded.TiesOption.HALF,
    weights: Weights = WeightsOption.FIXED_POINT,
    lies: Lies = None,
    model: Model = ModelOption.EVERYONE,
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

    rival = model not in (ModelOption.EVERYONE, ModelOption.OURS)
    for option, given in (("--features", features), ("--vote-feature", vote_feature), ("--style", style)):
        if rival and given:
            raise BadInputError(f"{option} needs --model everyone or ours: {model} knows only items.")
    columns = {"first": first, "second": second, "winner": winner, "voter": voter, "context": context}
    reading, folder = recorded.read_into(
        *(votes, "rank", out, where, vote_feature, style), strict=strict, **columns, time=time, weight=weight
    )
    if rival:
        return _rank_by_rival(reading, votes, folder, model, ties.value)
    table = None if features is None else read_features(features, reading.votes, array=array)
    trusted = _trusted(reading.votes, ties.value) if model is ModelOption.OURS else None
    ranking = rank(
        reading.votes, features=table, weights=weights.value, lies=lies, ties=ties.value, reliability=trusted
    )
    ranks = sum(map(len, certified(ranking)))
    with output.progress_bar("Certificates", ranks, unit="ranks", on_stop=recorded.NO_REPORT) as done:
        ranking = with_certificates(reading.votes, ranking, progress=done)
    recorded.claim_for(folder, "rank", votes, reading)
    recorded.write_csv(folder / "ranking.csv", ranking.to_frame())
    settings = {**recorded.file_settings(votes, reading), "model": model.value, **ranking.settings}
    summary = summarise(ranking)
    found = {"settings": settings, "summary": summary, "notes": ranking.notes, "ranking": ranking.records()}
    found |= {"vote_features": [effect._asdict() for effect in ranking.effects]} if ranking.effects else {}
    sections = ranking_sections(ranking, reading.votes)
    written = recorded.write_report(folder, "ranking", f"Ranking of {votes.name}", reading, sections, found)
    output.say(*summary)
    _print_ranking(ranking, folder / "ranking.csv")
    if ranking.effects:
        output.print_table(effects_table(ranking), text=["feature"])
    output.say_report(written["report"], *recorded.problem_sentences(reading), *ranking.notes)
    return written


def _trusted(votes: Votes, ties: Ties) -> Vector:
    """Return how much each vote counts after an audit, shape (n,)."""
    return trusted_weights(votes, audit_voters(votes), ties)


def _rank_by_rival(reading: Reading, file: Path, folder: Path, model: ModelOption, ties: Ties) -> output.Record:
    """Rank by a rival model: the order and the scores only."""
    items, component = np.array(reading.votes.items), reading.votes.components(ties)
    scores = RIVALS[model](reading.votes, ties)
    order = np.lexsort((-scores, component))
    start = np.searchsorted(component[order], component[order])
    columns = {"group": component[order] + 1, "rank": np.arange(len(items)) - start + 1, "item": items[order]}
    frame = pl.DataFrame({**columns, "score": scores[order]})
    recorded.claim_for(folder, "rank", file, reading)
    recorded.write_csv(folder / "ranking.csv", frame)
    groups = int(component.max()) + 1
    among = f"{len(items)} items" if groups == 1 else f"{(component == 0).sum()} items, the largest of {groups} groups,"
    summary = [f"{frame['item'][0]} is first of {among} by {model}.", _NO_RANGES]
    settings = {**recorded.file_settings(file, reading), "model": model.value, "ties": ties}
    found = {"settings": settings, "summary": summary, "ranking": frame.to_dicts()}
    shown = [
        {name: f"{row[name]:+.3f}" if name == "score" else str(row[name]) for name in row} for row in frame.to_dicts()
    ]
    table = TextTable.of(shown, (*(("group",) if groups > 1 else ()), "rank", "item", "score"), text=0)
    section = Section("Ranking", [_NO_RANGES], [table])
    written = recorded.write_report(folder, "ranking", f"Ranking of {file.name} by {model}", reading, [section], found)
    output.say(*summary)
    output.print_table(replace(table, rows=table.rows[:_MAX_ROWS]), text=["item"], file=folder / "ranking.csv")
    output.say_report(written["report"], *recorded.problem_sentences(reading))
    return written


def _print_ranking(ranking: Ranking, file: Path) -> None:
    groups = ("group",) if any(standing.component > 1 for standing in ranking.standings) else ()
    certificates = certified_columns(ranking)
    columns = (*groups, *_COLUMNS, *certificates, *_WEIGHT_COLUMNS)
    table = TextTable.of(ranking_cells(ranking, digits=3)[:_MAX_ROWS], columns)
    output.print_table(table, text=["item"], optional=_LEAST_USEFUL, file=file)
    if certificates:
        output.say("", certificates_explained(ranking))
    if len(ranking.standings) > _MAX_ROWS:
        output.say(f"Only the first {_MAX_ROWS} of {len(ranking.standings)} items are shown (see {file}).")
