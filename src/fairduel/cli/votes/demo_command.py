"""``fairduel demo``: a poll with liars, and the paper's Figure 1, on one page."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from fairduel.cli import output
from fairduel.cli.folders import claim
from fairduel.cli.output import PANEL, Record, say, typed_command
from fairduel.cli.research.options import CORES
from fairduel.cli.votes.preference_demo import preference_demo
from fairduel.cli.votes.recorded_votes import write_csv
from fairduel.experiments.experiment import Results, run_experiment
from fairduel.experiments.paper import figure1_in_short
from fairduel.report.votes.votes_tables import ranks_table
from fairduel.simulation import Store, count_missing
from fairduel.votes.attacking.liars import TACTICS, arena
from fairduel.votes.auditing.audit import Audit, audit
from fairduel.votes.auditing.voter_columns import VOTERS
from fairduel.votes.ranking.bradley_terry import fit_scores, wins
from fairduel.votes.reading.read import read_votes
from fairduel.votes.votes import Votes
from fairduel.words import listed

_LIARS = {"promote": 12, "inverters": 4, "one-side": 2}
_RUNS = 10
_MOST_ROWS = 5


def demo_command(
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the poll.")] = 0,
    opened: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in a browser, if run in a terminal.")
    ] = True,
    out: Annotated[Path, typer.Option(metavar="DIR", rich_help_panel=PANEL, help="Output folder.")] = Path(
        "results/demo"
    ),
    preferences: Annotated[
        bool, typer.Option("--preferences", help="Audit made-up preference data for reward models instead.")
    ] = False,
) -> Record:
    """Find the liars in a made-up poll, and compare RCDB with its rivals under attack.

    Writes one page, and the poll's votes to DIR/votes.csv, so that you can
    try the other commands on them. With --preferences, audits and exports
    made-up preference data (prompt, chosen, rejected).
    """
    if preferences:
        return preference_demo(seed, out)
    votes, liars, told = _poll(seed)
    claim(out, "demo")
    write_csv(out / "votes.csv", votes.to_frame())
    votes = read_votes(out / "votes.csv").votes  # the other commands say the same of this file
    say("", "A poll with liars", style="bold")
    say(*told)
    with output.progress_bar("Audit", 4, unit="steps", on_stop="no report was written.") as done:
        found = audit(votes, top=1, progress=done)
    say("", *found.headlines(), _judged(found, votes, liars))
    _print_poll(found, out)
    results = _figure1(out)
    verdict, *panels = results.conclusions
    say("", "An agent that chooses the duels, while an attacker flips answers (the paper's Figure 1)", style="bold")
    say(*panels, "", style="")
    found_in_all = [*found.headlines(), _judged(found, votes, liars), verdict]
    say(found_in_all[0], verdict, style="bold")
    page = _write(out, found, results, [*found_in_all, *told])
    output.say_report(page, f"Next: fairduel rank {out / 'votes.csv'}, or fairduel serve --demo for a live poll.")
    if opened:
        output.open_in_browser(page)
    return output.record(
        votes=str(out / "votes.csv"),
        liars=liars,
        conclusions=found_in_all,
        audit=found.record(),
        figure1=results.conclusions,
        report=str(page),
    )


def _poll(seed: int) -> tuple[Votes, dict[str, str], list[str]]:
    """Return the votes, each liar's tactic, and what we know: who lies, and whom honest voters like best.

    The promoters push the item that is third without them.
    """
    everyone, _ = arena(seed=seed, liars={})
    order = np.argsort(-fit_scores(wins(everyone)).scores)
    best, target = (everyone.items[place] for place in order[[0, 2]])
    votes, liars = arena(seed=seed, liars=_LIARS, target=target)
    kinds = [f"{count} vote {TACTICS[kind].how.format(item=target)}" for kind, count in _LIARS.items()]
    told = [
        f"{len(votes.voters)} made-up people cast {len(votes):,} votes on {len(votes.items)} trees.",
        f"{len(liars)} of them lie: {listed(kinds)}. If everybody were honest, {best} would be first.",
    ]
    return votes, liars, told


def _judged(found: Audit, votes: Votes, liars: dict[str, str]) -> str:
    flagged = set() if found.voters is None else set(found.voters.filter("flagged")["voter"])
    honest = len(votes.voters) - len(liars)
    caught, accused = len(flagged & set(liars)), len(flagged - set(liars))
    return f"The audit flags {caught} of {len(liars)} liars and {accused} of {honest} honest voters."


def _print_poll(found: Audit, folder: Path) -> None:
    if found.voters is not None:
        flagged = found.voters.filter("flagged").to_dicts()
        title = f"Flagged voters ({min(_MOST_ROWS, len(flagged))} of {len(flagged)})"
        output.print_columns(VOTERS, flagged[:_MOST_ROWS], title, file=folder / "report.html")
    output.print_table(ranks_table(found, _MOST_ROWS), text=["item"], optional=["own range by all votes", "own range"])


def _figure1(folder: Path) -> Results:
    experiment, store = figure1_in_short(), Store(folder)
    cells, seeds = [entry.cell for entry in experiment.entries], range(_RUNS)
    output.compile_first(cells)
    with output.progress_bar("Figure 1", count_missing(store, cells, seeds)) as progress:
        return run_experiment(experiment, store, seeds, jobs=CORES, progress=progress)


def _write(folder: Path, found: Audit, results: Results, conclusions: Sequence[str]) -> Path:
    from fairduel.report.page import Page, write_page  # noqa: PLC0415  # plotting is slow
    from fairduel.report.research.experiment_page import main_section  # noqa: PLC0415
    from fairduel.report.votes.audit_page import audit_sections  # noqa: PLC0415

    figure1 = main_section(results, results.conclusions)
    sections = [*audit_sections(found), figure1]
    page = Page("fairduel: find what people prefer, even when some of them lie", conclusions, sections, typed_command())
    return write_page(folder, page)
