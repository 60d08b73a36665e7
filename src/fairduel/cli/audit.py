"""``fairduel audit``: how far to trust recorded votes, and whom not to."""

from pathlib import Path
from typing import Annotated

import typer

from fairduel.cli.options import console, progress_bar, write_record
from fairduel.cli.recorded_votes import (
    NOTHING_WRITTEN,
    Context,
    First,
    Level,
    Out,
    Second,
    Strict,
    Ties,
    TiesOption,
    Time,
    Voter,
    VotersChoose,
    VotesFile,
    Weight,
    Winner,
    file_settings,
    print_sentence,
    print_table,
    problem_sentences,
    read_and_set_aside,
    write_csv,
    write_page,
)
from fairduel.report.votes_tables import TextTable, flagged_cells, fragility_cells
from fairduel.votes.audit import Audit, audit, tops

Top = Annotated[int, typer.Option(min=1, help="Look at the leader, the first 2, … up to so many.")]
_MOST_ROWS = 20
_VOTER_TITLES = ("voter", "votes", "agreement", "evidence", "why")
_FRAGILITY_TITLES = {
    "what": "what changes",
    "how": "votes are",
    "found": "so many do it",
    "at_least": "fewer than this cannot",
    "votes": "of",
}


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
    out: Out = Path("results/audit"),
) -> None:
    """Say how far a file of votes can be trusted, and whom not to.

    Flags voters whose votes no honest person would cast, with the evidence
    for each; ranks the items with and without them; and counts how few
    votes would change the leader, if dropped or flipped.

    Writes voters.csv, flagged-rows.csv, audit.json and report.html. Nothing
    is deleted.
    """
    from fairduel.report.audit_page import audit_sections  # noqa: PLC0415  # plotting is slow

    columns = {"first": first, "second": second, "winner": winner, "voter": voter, "context": context}
    reading = read_and_set_aside(votes, strict=strict, out=out, **columns, time=time, weight=weight)
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
    settings = {**file_settings(votes, reading), **found.settings}
    write_voters(found, out)
    write_record(out / "audit.json", {"settings": settings, **found.record()})
    print_audit(found)
    write_page(
        out / "report.html",
        title=f"Audit of {votes.name}",
        summary=[*found.summary(), *problem_sentences(reading)],
        sections=audit_sections(found),
        settings=settings,
        also=found.advice(),
    )


def write_voters(found: Audit, out: Path) -> None:
    """Write voters.csv and flagged-rows.csv; where nobody knows the voters, remove old ones."""
    if found.evidence is None or found.voters is None:
        for name in ("voters.csv", "flagged-rows.csv"):
            (out / name).unlink(missing_ok=True)
        return
    write_csv(out / "voters.csv", found.voters)
    write_csv(out / "flagged-rows.csv", found.evidence.flagged_rows(found.votes))


def print_audit(found: Audit) -> None:
    """Show flagged voters and fragility as tables."""
    if found.voters is not None and found.voters["flagged"].any():
        if found.crowd:
            print_sentence(found.crowd)
        flagged = flagged_cells(found.voters)
        titles = dict(zip(_VOTER_TITLES, _VOTER_TITLES, strict=True))
        print_table(TextTable.of(flagged[:_MOST_ROWS], titles, "Flagged voters"), left=["voter", "why"])
        if len(flagged) > _MOST_ROWS:
            console.print(f"Only {_MOST_ROWS} of {len(flagged):,} are shown: voters.csv has all.")
    cells = map(fragility_cells, found.fragility)
    table = TextTable.of(cells, _FRAGILITY_TITLES, "Votes that change the ranking")
    print_table(table, left=["what changes", "votes are"])
