"""``fairduel audit``: how far to trust recorded votes, and whom not to."""

import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from fairduel.cli.options import console, progress_bar, typed_command
from fairduel.cli.rank import (
    Context,
    First,
    Second,
    Strict,
    Ties,
    TiesOption,
    Time,
    Voter,
    VotesFile,
    Weight,
    Winner,
    chosen_columns,
    file_settings,
    problem_sentences,
    read_and_set_aside,
)
from fairduel.files import write_whole
from fairduel.report.audit_page import Audit, evidence_text
from fairduel.simulation import versions
from fairduel.votes.campaign import voter_of
from fairduel.votes.fragility import challengers, fragility
from fairduel.votes.ranking import rank
from fairduel.votes.voters import audit_voters, crowd_sentence
from fairduel.votes.votes import Votes

Level = Annotated[
    float, typer.Option(min=0.0001, max=0.5, help="Chance of any flag that is tolerated if all voters are honest.")
]
VotersChoose = Annotated[
    bool,
    typer.Option(
        "--voters-choose-duels",
        help="Voters choose what they vote on, so how often they meet an item is no evidence.",
    ),
]
Top = Annotated[int, typer.Option(min=1, help="Look at the leader, the first 2, … up to so many.")]
NOTHING_WRITTEN = "nothing was written."
_MOST_ROWS = 20


def audit_command(
    votes: VotesFile,
    first: First = None,
    second: Second = None,
    winner: Winner = None,
    voter: Voter = None,
    context: Context = None,
    time: Time = None,
    weight: Weight = None,
    ties: Ties = TiesOption.HALF,
    level: Level = 0.05,
    voters_choose_duels: VotersChoose = False,
    top: Top = 5,
    strict: Strict = False,
    out: Annotated[Path, typer.Option(help="Folder for all that is written.")] = Path("results/audit"),
) -> None:
    """Say how far a file of votes can be trusted, and whom not to.

    Flags voters whose votes no honest person would cast, with the evidence
    for each; ranks the items with and without them; and counts how few
    votes would change the leader, if dropped or flipped.

    Writes voters.csv, flagged-rows.csv, audit.json and report.html. Nothing
    is deleted.
    """
    from fairduel.report.votes_page import write_votes_report  # noqa: PLC0415  # plotting is slow

    roles = chosen_columns(
        first=first, second=second, winner=winner, voter=voter, context=context, time=time, weight=weight
    )
    reading = read_and_set_aside(votes, roles, strict=strict, out=out)
    audit = run_audit(reading.votes, ties=ties, level=level, voters_choose_duels=voters_choose_duels, top=top)
    settings = {**file_settings(votes, reading), **audit_settings(audit, ties)}
    write_audit(audit, out, settings)
    page = out / "report.html"
    summary = [*audit.summary(), *problem_sentences(reading)]
    write_votes_report(
        page,
        title=f"Audit of {votes.name}",
        summary=summary,
        sections=audit.sections(),
        settings=settings,
        command=typed_command(),
    )
    print_audit(audit)
    for sentence in (*summary, *audit.advice()):
        console.print(sentence, soft_wrap=True, highlight=False, markup=False)
    console.print(f"Also at [bold]{page}[/bold]", soft_wrap=True)


def run_audit(votes: Votes, *, ties: TiesOption, level: float, voters_choose_duels: bool, top: int) -> Audit:
    """Do all the work, with a progress bar."""
    counted = votes.select((votes.weight > 0.0) & ((votes.result != 0.5) | (ties == TiesOption.HALF)))
    most = max(1, min(top, int((counted.components() == 0).sum()) - 1))
    with progress_bar("Audit", most + 4, unit="steps", left_by_stop=NOTHING_WRITTEN) as done:
        everyone = rank(votes, ties=ties.value)
        done(1)
        evidence, trusted, without = None, everyone, []
        if votes.voter is not None:
            evidence = audit_voters(votes, level=level, duels_assigned=not voters_choose_duels)
            done(1)
            flagged = evidence.flagged_votes(votes)
            if flagged.any() and not flagged.all():
                trusted = rank(votes.without(flagged), ties=ties.value)
                without = fragility(votes.without(flagged), ties=ties.value)
        done(1)
        results = []
        for size in range(1, most + 1):
            results += fragility(votes, top=size, ties=ties.value)
            done(1)
        rivals = challengers(votes, ties=ties.value)
        done(1)
    return Audit(votes, everyone, trusted, evidence, results, rivals, without)


def audit_settings(audit: Audit, ties: TiesOption) -> dict[str, Any]:
    """What made the numbers."""
    ranking = {f"ranking: {name}": value for name, value in audit.everyone.settings.items()}
    voters = {} if audit.evidence is None else {f"voters: {n}": v for n, v in audit.evidence.settings.items()}
    return {"ties": ties.value, **voters, **ranking}


def write_audit(audit: Audit, out: Path, settings: dict[str, Any]) -> None:
    """Write voters.csv, flagged-rows.csv and audit.json."""
    if audit.evidence is not None:
        write_whole(out / "voters.csv", audit.evidence.frame(audit.votes.items).write_csv().encode())
        flagged = audit.evidence.flagged_votes(audit.votes)
        cast_by = np.array(audit.votes.voters)[voter_of(audit.votes)[flagged]]
        rows = pl.DataFrame({"row": audit.votes.row[flagged], "voter": cast_by})
        write_whole(out / "flagged-rows.csv", rows.write_csv().encode())
    record = {"command": typed_command(), "versions": versions(), "settings": settings, **audit.record()}
    write_whole(out / "audit.json", (json.dumps(record, indent=1, ensure_ascii=False, default=str) + "\n").encode())


def print_audit(audit: Audit) -> None:
    """Show flagged voters and fragility as tables."""
    if audit.evidence is not None and audit.evidence.flagged.any():
        frame = audit.evidence.frame(audit.votes.items)
        flagged = frame.filter(frame["flagged"] & (frame["flagged_by"] != "crowd"))
        if audit.evidence.crowd is not None and audit.evidence.crowd_flagged:
            sentence = f"A crowd is flagged. Each is {crowd_sentence(audit.evidence.crowd, audit.votes.items)}."
            console.print(sentence, soft_wrap=True, highlight=False, markup=False)
        table = Table(box=SIMPLE_HEAD, title="Flagged voters", title_justify="left", title_style="bold")
        table.add_column("voter")
        for name in ("votes", "agreement", "evidence"):
            table.add_column(name, justify="right")
        table.add_column("why")
        for row in flagged.head(_MOST_ROWS).to_dicts():
            agreement = "–" if row["agreement"] is None else f"{row['agreement']:.0%}"
            numbers = f"{row['votes']:,}", agreement, evidence_text(row["log10_evidence"] * np.log(10.0))
            table.add_row(Text(row["voter"]), *numbers, Text(row["why"]))
        console.print(table)
        if len(flagged) > _MOST_ROWS:
            console.print(f"Only {_MOST_ROWS} of {len(flagged):,} are shown: voters.csv has all.")
    table = Table(box=SIMPLE_HEAD, title="Votes that change the ranking", title_justify="left", title_style="bold")
    for name in ("what changes", "votes are"):
        table.add_column(name)
    for name in ("so many do it", "fewer than this cannot", "of"):
        table.add_column(name, justify="right")
    for result in audit.fragility:
        what = "the leader" if result.top == 1 else f"the top {result.top}"
        found = "none found" if result.found is None else f"{result.found:,}"
        table.add_row(what, result.how, found, f"{result.at_least:,}", f"{result.votes:,}")
    console.print(table)
