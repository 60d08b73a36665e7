"""``fairduel explain``: why one item ranks above another."""

from typing import Annotated

import typer

from fairduel.cli import output
from fairduel.cli.help import grouped
from fairduel.cli.votes import recorded_votes as recorded
from fairduel.report.votes.votes_tables import parts_table, vote_influence_table, voter_influence_table
from fairduel.votes.certifying.explain import STEPS, explain

Above = Annotated[
    str | None, typer.Argument(metavar="[ITEM]", help="One item (default: the leader).", show_default=False)
]
Below = Annotated[
    str | None, typer.Argument(metavar="[ITEM]", help="The other (default: the next item).", show_default=False)
]
_MAX_ROWS = 10


@grouped(time="none")
def explain_command(
    file: recorded.VoteFile,
    above: Above = None,
    below: Below = None,
    ties: recorded.Ties = recorded.TiesOption.HALF,
) -> output.Record:
    """Explain why one item ranks above another.

    Splits the gap between two items of the ranking into what their direct
    duels say and what votes with each other item say, and names the votes
    and voters that move it most, with what the gap would be without them.

    Writes report.html, explain.json and influence.csv (every vote's share).
    """
    from fairduel.report.votes.explain_page import explain_sections  # noqa: PLC0415  # plotting is slow

    reading, folder = file.read("explain")
    with output.progress_bar("Explain", STEPS, unit="refits", on_stop=recorded.NO_REPORT) as done:
        found = explain(reading.votes, above, below, ties=ties.value, progress=done)
    recorded.claim_for(folder, "explain", file.votes, reading)
    recorded.write_csv(folder / "influence.csv", found.influence)
    settings = {**recorded.file_settings(file.votes, reading), "ties": ties.value, **found.settings}
    written = recorded.write_report(
        folder,
        "explain",
        f"Why {found.above} is above {found.below} in {file.votes.name}",
        reading,
        explain_sections(found),
        {"settings": settings, **found.record()},
    )
    output.say(*found.summary())
    output.print_table(parts_table(found, _MAX_ROWS), text=["evidence"])
    for table in (voter_influence_table(found), vote_influence_table(found)):
        if table.rows:
            output.print_table(table, text=table.columns[: table.text], optional=["votes", "rows"])
    output.say_report(written["report"], *recorded.problem_sentences(reading))
    return written
