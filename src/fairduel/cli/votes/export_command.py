"""``fairduel export``: the cleaned ranking, and the votes with weight, flag and reason."""

from enum import StrEnum
from typing import Annotated

import typer

from fairduel.cli import output
from fairduel.cli.help import grouped
from fairduel.cli.votes import preference_data
from fairduel.cli.votes import recorded_votes as recorded
from fairduel.errors import BadInputError
from fairduel.votes.auditing.cleaning import clean
from fairduel.votes.auditing.reliability import IGNORED, MOST_WEIGHT
from fairduel.votes.exporting import Format, export
from fairduel.votes.reading.texts import check_texts
from fairduel.votes.verdict import headlines


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


@grouped()
def export_command(
    file: recorded.VoteFile,
    options: preference_data.PreferenceOptions,
    formats: Formats = [FormatOption.CSV],  # noqa: B006  # typer copies it
    least_weight: LeastWeight = IGNORED,
    ties: recorded.Ties = recorded.TiesOption.HALF,
    level: recorded.Level = 0.05,
    voters_choose_duels: recorded.VotersChoose = False,
    labels: preference_data.Labels = preference_data.LabelsOption.WEIGH,
    known: preference_data.Known = None,
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
    chosen: list[Format] = [each.value for each in formats]
    if options.expected(file):
        return preference_data.export_preference_file(file, options, chosen, labels=labels, level=level, known=known)
    if known is not None:
        raise BadInputError("--known needs preference data; fairduel audit uses known answers of a poll.")
    reading, folder = file.read("export")
    if {"trl", "kto"} & set(chosen):
        check_texts(reading)
    with output.progress_bar("Audit", 3, unit="steps", on_stop="nothing was exported.") as done:
        cleaned = clean(reading, ties=ties.value, level=level, duels_assigned=not voters_choose_duels, progress=done)
    recorded.claim_for(folder, "export", file.votes, reading)
    preference_data.remove_old(folder)
    exported = export(cleaned, folder, formats=chosen, least_weight=least_weight)
    summary = [*headlines(cleaned.ranking.verdicts), *cleaned.summary()]
    found = {
        "settings": {
            **recorded.file_settings(file.votes, reading),
            "ties": ties.value,
            "level": level,
            "duels_assigned": not voters_choose_duels,
            "formats": chosen,
            "least_weight": least_weight,
        },
        "summary": summary,
        "verdicts": [verdict.record() for verdict in cleaned.ranking.verdicts],
        "files": exported.files,
    }
    if exported.preferences is not None:
        summary.append(exported.preferences.brief())
        found["left_out"] = dict(exported.preferences.left_out)
    written = output.record(**found)
    output.write_record(folder / "export.json", written)
    output.say(*summary)
    preference_data.print_files(exported, folder, _CONTENTS)
    if problems := recorded.problem_sentences(reading):
        output.say("", *problems)
    return written
