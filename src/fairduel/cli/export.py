"""``fairduel export``: the cleaned ranking, and the votes with weight, flag and reason."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fairduel.cli import output
from fairduel.cli import recorded_votes as recorded
from fairduel.report.text_table import TextTable
from fairduel.votes.care import IGNORED, MOST_WEIGHT
from fairduel.votes.cleaning import clean
from fairduel.votes.exporting import FILES, Format, export
from fairduel.votes.ranking import verdicts


class FormatOption(StrEnum):
    """What to write."""

    CSV = "csv"
    PARQUET = "parquet"
    TRL = "trl"
    KTO = "kto"


Formats = Annotated[
    list[FormatOption],
    typer.Option("--format", metavar="FORMAT", help="csv, parquet, trl or kto; may be repeated."),
]
LeastWeight = Annotated[
    float,
    typer.Option(
        min=0.0, max=MOST_WEIGHT, metavar="W", help="Leave votes with less weight out of trl and kto (0 keeps all)."
    ),
]
_CONTENTS = {
    "ranking": "the ranking after the audit",
    "votes": "all votes, with weight, flagged and reason",
    "trl": "prompt, chosen, rejected, margin",
    "kto": "prompt, completion, label",
}


def export_command(
    votes: recorded.VotesFile,
    formats: Formats = [FormatOption.CSV],  # noqa: B006  # typer copies it
    least_weight: LeastWeight = IGNORED,
    first: recorded.First = None,
    second: recorded.Second = None,
    winner: recorded.Winner = None,
    voter: recorded.Voter = None,
    context: recorded.Context = None,
    time: recorded.Time = None,
    weight: recorded.Weight = None,
    where: recorded.Where = None,
    ties: recorded.Ties = recorded.TiesOption.HALF,
    level: recorded.Level = 0.05,
    voters_choose_duels: recorded.VotersChoose = False,
    strict: recorded.Strict = False,
    out: recorded.Out = None,
) -> output.Record:
    """Export the votes and the ranking, cleaned by the audit.

    [bold]csv[/bold], [bold]parquet[/bold]  ranking, and all votes with weight, flagged and reason
    [bold]trl[/bold]           preferences for TRL: prompt, chosen, rejected, margin
    [bold]kto[/bold]           the same for KTO: prompt, completion, label

    A vote's weight is what it counts after the audit: 0 if its voter is
    flagged. Nothing is deleted from votes.csv; trl and kto leave out ties,
    flagged voters, and votes that hardly count.
    Also writes export.json.
    """
    columns = {"first": first, "second": second, "winner": winner, "voter": voter, "context": context}
    reading, folder = recorded.read_into(
        votes, "export", out, where, strict=strict, **columns, time=time, weight=weight
    )
    with output.progress_bar("Audit", 2, unit="steps", on_stop="nothing was exported.") as done:
        cleaned = clean(reading, ties=ties.value, level=level, duels_assigned=not voters_choose_duels, progress=done)
    recorded.claim_for(folder, "export", votes, reading)
    for old in FILES:
        (folder / old).unlink(missing_ok=True)
    chosen: list[Format] = [each.value for each in formats]
    exported = export(cleaned, folder, formats=chosen, least_weight=least_weight)
    summary = [*verdicts(cleaned.ranking), *cleaned.summary()]
    found = {
        "settings": {
            **recorded.file_settings(votes, reading),
            "ties": ties.value,
            "level": level,
            "duels_assigned": not voters_choose_duels,
            "formats": chosen,
            "least_weight": least_weight,
        },
        "summary": summary,
        "files": exported.files,
    }
    if exported.preferences is not None:
        summary.append(exported.preferences.brief())
        found["left_out"] = dict(exported.preferences.left_out)
    written = output.record(**found)
    output.write_record(folder / "export.json", written)
    output.say(*summary)
    cells = [
        {"file": str(folder / file), "rows": f"{rows:,}", "contents": _CONTENTS[Path(file).stem]}
        for file, rows in exported.files.items()
    ]
    output.print_table(TextTable.of(cells, ("file", "rows", "contents")), text=["file", "contents"])
    if problems := recorded.problem_sentences(reading):
        output.say("", *problems)
    return written
