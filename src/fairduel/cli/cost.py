"""``fairduel cost``: the cheapest campaign that the audit would not report."""

from typing import Annotated

import typer

from fairduel.cli import output
from fairduel.cli import recorded_votes as recorded
from fairduel.experiments.tuning import refuse_tuning_seeds
from fairduel.report.votes_tables import cost_table
from fairduel.votes.manipulation import Limits, cost_of_manipulation, searches

Item = Annotated[
    str | None, typer.Option(metavar="ITEM", help="Item that the campaign puts first.", show_default="the runner-up")
]
_LEAST_USEFUL = ("false votes", "doubted", "seeds", "accounts without audit")


def cost_command(
    votes: recorded.VotesFile,
    item: Item = None,
    voters: Annotated[int, typer.Option(min=1, metavar="N", help="Most new voters.")] = 100,
    votes_per_day: Annotated[int, typer.Option(min=1, metavar="N", help="Most votes of a voter per day.")] = 10,
    days: Annotated[int, typer.Option(min=1, metavar="N", help="Length of the campaign in days.")] = 7,
    runs: Annotated[int, typer.Option(min=1, metavar="N", help="Number of seeds; half must succeed.")] = 3,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="First seed for drawing the votes.")] = 0,
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
    """Find the cheapest manipulation that the audit would not notice.

    Searches for the fewest false accounts, within your limits, that put an
    item first without any new flag or report, and compares them with what
    it takes if nobody checks. Tighter limits make it more expensive. What
    is found is an upper bound: a cleverer campaign may be cheaper.

    Writes report.html, cost.csv, cost.json and the figure.
    """
    from fairduel.report.cost_page import cost_section  # noqa: PLC0415  # plotting is slow

    refuse_tuning_seeds(range(seed, seed + runs))
    columns = {"first": first, "second": second, "winner": winner, "voter": voter, "context": context}
    reading, folder = recorded.read_into(votes, "cost", out, where, strict=strict, **columns, time=time, weight=weight)
    limits = Limits(voters, votes_per_day, days)
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
    settings = {**recorded.file_settings(votes, reading), "item": cost.item, **cost.settings}
    recorded.claim_for(folder, "cost", votes, reading)
    recorded.write_csv(folder / "cost.csv", cost.to_frame())
    found = {"settings": settings, **cost.record()}
    title = f"Cost of manipulating {votes.name}"
    written = recorded.write_report(folder, "cost", title, reading, [cost_section(cost)], found)
    output.say(*cost.summary())
    if cost.voters_known:
        output.print_table(cost_table(cost), text=["campaign"], optional=_LEAST_USEFUL, file=folder / "cost.csv")
    output.say_report(written["report"], *recorded.problem_sentences(reading))
    return written
