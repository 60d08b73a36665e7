"""``fairduel cost``: the cheapest campaign that the audit would not report."""

from typing import Annotated

import typer

from fairduel.cli import output
from fairduel.cli.help import grouped
from fairduel.cli.votes import recorded_votes as recorded
from fairduel.experiments.tuning import refuse_tuning_seeds
from fairduel.report.votes.votes_tables import cost_table
from fairduel.votes.attacking.manipulation import CampaignLimits, cost_of_manipulation, searches

Item = Annotated[
    str | None, typer.Option(metavar="ITEM", help="Item that the campaign puts first.", show_default="the runner-up")
]
_LEAST_USEFUL = ("false votes", "doubted", "seeds", "accounts without audit")


@grouped()
def cost_command(
    file: recorded.VoteFile,
    item: Item = None,
    voters: Annotated[int, typer.Option(min=1, metavar="N", help="Maximum number of new voters.")] = 100,
    votes_per_day: Annotated[int, typer.Option(min=1, metavar="N", help="Maximum votes per voter per day.")] = 10,
    days: Annotated[int, typer.Option(min=1, metavar="N", help="Length of the campaign in days.")] = 7,
    runs: Annotated[int, typer.Option(min=1, metavar="N", help="Number of seeds; half must succeed.")] = 3,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="First seed for drawing the votes.")] = 0,
    ties: recorded.Ties = recorded.TiesOption.HALF,
    level: recorded.Level = 0.05,
    voters_choose_duels: recorded.VotersChoose = False,
) -> output.Record:
    """Find the cheapest manipulation that the audit would not report.

    Searches for the fewest false accounts, within your limits, that put an
    item first without any new flag or report, and compares them with what
    it takes if nobody checks. Tighter limits make it more expensive. What
    is found is an upper bound: a cleverer campaign may be cheaper. The
    audit may still warn that the winner is in doubt.

    Writes report.html, cost.csv and cost.json.
    """
    from fairduel.report.votes.cost_page import cost_section  # noqa: PLC0415  # plotting is slow

    refuse_tuning_seeds(range(seed, seed + runs))
    reading, folder = file.read("cost")
    limits = CampaignLimits(voters, votes_per_day, days)
    total = searches(reading.votes, limits)
    with output.progress_bar("Cost", total, unit="searches", on_stop=recorded.NO_REPORT) as done:
        cost = cost_of_manipulation(
            reading.votes,
            item,
            limits=limits,
            runs=runs,
            seed=seed,
            ties=ties.value,
            level=level,
            duels_assigned=not voters_choose_duels,
            progress=done,
        )
    settings = {**recorded.file_settings(file.votes, reading), "item": cost.item, **cost.settings}
    recorded.claim_for(folder, "cost", file.votes, reading)
    recorded.write_csv(folder / "cost.csv", cost.to_frame())
    found = {"settings": settings, **cost.record()}
    title = f"Cost of manipulating {file.votes.name}"
    written = recorded.write_report(folder, "cost", title, reading, [cost_section(cost)], found)
    output.say(*cost.summary())
    if cost.voters_known:
        output.print_table(cost_table(cost), text=["campaign"], optional=_LEAST_USEFUL, file=folder / "cost.csv")
    output.say_report(written["report"], *recorded.problem_sentences(reading))
    return written
