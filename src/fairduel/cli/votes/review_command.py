"""``fairduel review``: how well the votes were collected, and what to ask next."""

from typing import Annotated

import typer

from fairduel.cli import output
from fairduel.cli.help import grouped
from fairduel.cli.votes import recorded_votes as recorded
from fairduel.report.votes.votes_tables import duels_table, needs_table, ties_table
from fairduel.votes.attacking.manipulation import CampaignLimits
from fairduel.votes.reviewing.review import Review, review, steps

_MAX_ROWS = 10
_LEAST_USEFUL = (
    "fewest contexts",
    "fewest voters",
    "± error",
    "gap",
    "contexts needed",
    "voters needed",
    "separated",
)
Cost = Annotated[
    bool,
    typer.Option("--cost", help="Also search for the cheapest campaign that the audit would not report (takes long)."),
]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the simulations.")]


@grouped()
def review_command(
    file: recorded.VoteFile,
    ties: recorded.Ties = recorded.TiesOption.HALF,
    cost: Cost = False,
    seed: Seed = 0,
) -> output.Record:
    """Review how votes were collected, and what to ask next.

    How many false votes, or lying voters, change each rank; position bias;
    whether the meaning of a tie, or position, changes the order; cycles
    against what one score per item predicts; coverage; the votes and voters
    needed to separate neighbours; and the most useful duels to ask next.

    Writes report.html, votes-needed.csv, next-duels.csv, ties.csv and
    review.json.
    """
    from fairduel.report.votes.review_page import review_sections  # noqa: PLC0415  # plotting is slow

    reading, folder = file.read("review")
    limits = CampaignLimits() if cost else None
    with output.progress_bar("Review", steps(reading.votes, limits), unit="steps", on_stop=recorded.NO_REPORT) as done:
        found = review(reading.votes, ties=ties.value, limits=limits, seed=seed, progress=done)
    recorded.claim_for(folder, "review", file.votes, reading)
    recorded.write_csv(folder / "votes-needed.csv", found.to_frame())
    recorded.write_csv(folder / "next-duels.csv", found.plan.duels)
    recorded.write_csv(folder / "ties.csv", found.tie_ranks_frame())
    record = found.record()
    record["settings"] = {**recorded.file_settings(file.votes, reading), **found.settings}
    written = recorded.write_report(
        folder, "review", f"Review of {file.votes.name}", reading, review_sections(found), record
    )
    output.say(*record["summary"])
    _print_review(found, str(folder))
    output.say_report(written["report"], *recorded.problem_sentences(reading))
    return written


def _print_review(found: Review, folder: str) -> None:
    items = ["item", "next item", "ask", "against", "a tie is", "highest score", "largest change"]
    needs = needs_table(found, _MAX_ROWS)
    if needs.rows:
        output.print_table(needs, text=items, optional=_LEAST_USEFUL, file=f"{folder}/votes-needed.csv")
    if len(found.plan.needs) > _MAX_ROWS:
        output.say(
            f"Only the first {_MAX_ROWS} of {len(found.plan.needs):,} are shown (see {folder}/votes-needed.csv)."
        )
    if len(found.plan.duels):
        output.print_table(duels_table(found, _MAX_ROWS), text=items, file=f"{folder}/next-duels.csv")
    if found.ties.rules:
        output.print_table(ties_table(found), text=items, optional=["parameter", "log-likelihood"])
