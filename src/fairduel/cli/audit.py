"""``fairduel audit``: how far to trust recorded votes, and whom not to."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from fairduel.cli.options import console, progress_bar, typed_command, write_record
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
from fairduel.files import write_atomically
from fairduel.votes.audit import Audit, audit, tops
from fairduel.votes.voters import crowd_sentence, evidence_text

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
    from fairduel.report.audit_page import audit_sections  # noqa: PLC0415  # plotting is slow
    from fairduel.report.votes_page import write_votes_report  # noqa: PLC0415  # plotting is slow

    roles = chosen_columns(
        first=first, second=second, winner=winner, voter=voter, context=context, time=time, weight=weight
    )
    reading = read_and_set_aside(votes, roles, strict=strict, out=out)
    steps = 2 + tops(reading.votes, ties=ties.value, top=top)
    with progress_bar("Audit", steps, unit="steps", left_by_stop=NOTHING_WRITTEN) as done:
        found = audit(
            reading.votes,
            level=level,
            duels_assigned=not voters_choose_duels,
            ties=ties.value,
            top=top,
            progress=done,
        )
    settings = {**file_settings(votes, reading), **audit_settings(found, ties)}
    write_audit(found, out, settings)
    page = out / "report.html"
    summary = [*found.summary(), *problem_sentences(reading)]
    write_votes_report(
        page,
        title=f"Audit of {votes.name}",
        summary=summary,
        sections=audit_sections(found),
        settings=settings,
        command=typed_command(),
    )
    print_audit(found)
    for sentence in (*summary, *found.advice()):
        console.print(sentence, soft_wrap=True, highlight=False, markup=False)
    console.print(f"Also at [bold]{page}[/bold]", soft_wrap=True)


def audit_settings(found: Audit, ties: TiesOption) -> dict[str, Any]:
    """What made the numbers."""
    ranking = {f"ranking: {name}": value for name, value in found.everyone.settings.items()}
    voters = {} if found.evidence is None else {f"voters: {n}": v for n, v in found.evidence.settings.items()}
    return {"ties": ties.value, **voters, **ranking}


def write_audit(found: Audit, out: Path, settings: dict[str, Any]) -> None:
    """Write voters.csv, flagged-rows.csv and audit.json; where nobody knows the voters, take away old ones."""
    if found.evidence is None:
        for name in ("voters.csv", "flagged-rows.csv"):
            (out / name).unlink(missing_ok=True)
    else:
        write_atomically(out / "voters.csv", found.evidence.frame(found.votes.items).write_csv().encode())
        flagged = found.evidence.flagged_votes(found.votes)
        cast_by = np.array(found.votes.voters)[found.votes.cast_by[flagged]]
        rows = pl.DataFrame({"row": found.votes.row[flagged], "voter": cast_by})
        write_atomically(out / "flagged-rows.csv", rows.write_csv().encode())
    write_record(out / "audit.json", {"settings": settings, **found.record()})


def print_audit(found: Audit) -> None:
    """Show flagged voters and fragility as tables."""
    if found.evidence is not None and found.evidence.flagged.any():
        frame = found.evidence.frame(found.votes.items)
        flagged = frame.filter(frame["flagged"] & (frame["flagged_by"] != "crowd"))
        if found.evidence.crowd is not None and found.evidence.crowd_flagged:
            sentence = f"A crowd is flagged. Each is {crowd_sentence(found.evidence.crowd, found.votes.items)}."
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
    for result in found.fragility:
        what = "the leader" if result.top == 1 else f"the top {result.top}"
        size = "none found" if result.found is None else f"{result.found:,}"
        table.add_row(what, result.how, size, f"{result.at_least:,}", f"{result.votes:,}")
    console.print(table)
