"""``fairduel rank``: a ranking of recorded votes, with its uncertainty."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fairduel.cli import output
from fairduel.cli.help import grouped
from fairduel.cli.votes import recorded_votes as recorded
from fairduel.errors import BadInputError
from fairduel.report.text_table import tabulate
from fairduel.report.votes.votes_tables import effects_table
from fairduel.votes.certifying.certificates import certified, with_certificates
from fairduel.votes.columns import explained, shown
from fairduel.votes.judging import ranking_after_audit
from fairduel.votes.ranking.rank import Ranking, rank, summarise
from fairduel.votes.ranking.standings import CERTIFIED, RANKING
from fairduel.votes.reading.features import read_features

_MAX_ROWS = 100


class WeightsOption(StrEnum):
    """How votes are weighted."""

    FIXED_POINT = "fixed-point"
    NONE = "none"


Audited = Annotated[bool, typer.Option("--audited", help="Count each vote by what an audit finds about its voter.")]
Markdown = Annotated[bool, typer.Option("--markdown", help="Print the ranking as Markdown, to paste somewhere.")]
Weights = Annotated[
    WeightsOption,
    typer.Option(
        metavar="METHOD",
        help="How votes are weighted: none (all equally), or fixed-point (less where little is known).",
    ),
]
Lies = Annotated[
    float | None,
    typer.Option(
        min=0,
        metavar="N",
        help="How many votes may be false: the verdict, and weights, allow for them.",
        show_default="0, and √votes in weights",
    ),
]
FeaturesFile = Annotated[
    Path | None,
    typer.Option("--features", metavar="FILE", help="Item features: .npz, .parquet or .csv.", show_default=False),
]
Array = Annotated[
    str | None, typer.Option(metavar="NAME", help="Array of an .npz file to use.", show_default="features or phi")
]
Map = Annotated[
    str | None,
    typer.Option(
        "--feature-map",
        metavar="MAP",
        help="Feature map of the item features, such as rbf: scores then need not be linear in them.",
        show_default=False,
    ),
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


@grouped()
def rank_command(
    file: recorded.VoteFile,
    features: FeaturesFile = None,
    array: Array = None,
    feature_map: Map = None,
    vote_feature: VoteFeature = None,
    style: Style = False,
    ties: recorded.Ties = recorded.TiesOption.HALF,
    weights: Weights = WeightsOption.NONE,
    lies: Lies = None,
    audited: Audited = False,
    markdown: Markdown = False,
) -> output.Record:
    """Rank the items of a vote file, with confidence ranges.

    A vote names two items and the winner: first, second, tie or both-bad
    (or a/b, model_a/model_b, left/right, 1/2), or the winner's name.

    The verdict says whether an item has won, leads, or is tied, or that it
    is too early to say. Own ranges hold for 95% of the items on average,
    joint ranges for all items together with 95% confidence.

    Writes report.html, ranking.csv, ranking.json and, if rows are unusable,
    set-aside.csv with each row and the reason.
    """
    from fairduel.report.votes.ranking_page import ranking_sections  # noqa: PLC0415  # plotting is slow

    reading, folder = file.read("rank", vote_feature or (), style=style)
    table = None if features is None else read_features(features, reading.votes, array=array)
    if feature_map is not None:
        if table is None:
            raise BadInputError("--feature-map needs --features.")
        table = table.mapped(feature_map)
    ranked = ranking_after_audit if audited else rank
    ranking = ranked(reading.votes, features=table, weights=weights.value, lies=lies, ties=ties.value)
    ranks = sum(map(len, certified(ranking)))
    with output.progress_bar("Certificates", ranks, unit="ranks", on_stop=recorded.NO_REPORT) as done:
        ranking = with_certificates(reading.votes, ranking, progress=done)
    recorded.claim_for(folder, "rank", file.votes, reading)
    recorded.write_findings(folder / "ranking.csv", ranking.to_frame())
    settings = {**recorded.file_settings(file.votes, reading), "audited": audited, **ranking.settings}
    summary = summarise(ranking)
    verdicts = [verdict.record() for verdict in ranking.verdicts]
    found = {"settings": settings, "summary": summary, "verdicts": verdicts, "notes": ranking.notes}
    found["ranking"] = ranking.records()
    found |= {"vote_features": [effect._asdict() for effect in ranking.effects]} if ranking.effects else {}
    sections = ranking_sections(ranking, reading.votes)
    written = recorded.write_report(folder, "ranking", f"Ranking of {file.votes.name}", reading, sections, found)
    output.say(*summary)
    if markdown:
        output.say("", *tabulate(RANKING, ranking.records(), "terminal").markdown().splitlines())
    else:
        _print_ranking(ranking, folder / "ranking.csv")
    if ranking.effects:
        output.print_table(effects_table(ranking), text=["feature"])
    output.say_report(written["report"], *recorded.problem_sentences(reading), *ranking.notes)
    return written


def _print_ranking(ranking: Ranking, file: Path) -> None:
    rows = ranking.records()
    columns = shown(RANKING, rows, "terminal")
    output.print_columns(RANKING, rows[:_MAX_ROWS], among=rows, file=file)
    if certificates := [each for each in columns if each.name in CERTIFIED]:
        output.say("", explained(certificates))
    if len(rows) > _MAX_ROWS:
        output.say(f"Only the first {_MAX_ROWS} of {len(rows):,} items are shown (see {file}).")
