"""``fairduel audit``: how far to trust recorded votes, and whom not to."""

from pathlib import Path
from typing import Annotated

import typer

from fairduel.cli import recorded_votes as recorded
from fairduel.cli.options import console, progress_bar, typed_command, write_record
from fairduel.report.text_table import TextTable
from fairduel.report.votes_tables import flagged_cells, fragility_cells
from fairduel.votes.audit import Audit, audit, tops

Top = Annotated[int, typer.Option(min=1, help="Look at the leader, the first 2, … up to so many.")]
_MOST_ROWS = 20
_VOTER_COLUMNS = ("voter", "votes", "agreement", "evidence", "why")
_FRAGILITY_COLUMNS = ("what changes", "votes are", "found", "proven minimum", "of")


def audit_command(
    votes: recorded.VotesFile,
    first: recorded.First = None,
    second: recorded.Second = None,
    winner: recorded.Winner = None,
    voter: recorded.Voter = None,
    context: recorded.Context = None,
    time: recorded.Time = None,
    weight: recorded.Weight = None,
    ties: recorded.Ties = recorded.TiesOption.HALF,
    level: recorded.Level = 0.05,
    voters_choose_duels: recorded.VotersChoose = False,
    top: Top = 5,
    strict: recorded.Strict = False,
    out: recorded.Out = Path("results/audit"),
) -> None:
    """Say how far a file of votes can be trusted, and whom not to.

    Flags voters whose votes no honest person would cast, with the evidence
    for each; ranks the items with and without them; and counts how few
    votes would change the leader, if dropped or flipped.

    Writes voters.csv, flagged-rows.csv, audit.json and report.html. Nothing
    is deleted.
    """
    from fairduel.report.audit_page import audit_sections  # noqa: PLC0415  # plotting is slow
    from fairduel.report.votes_page import write_votes_report  # noqa: PLC0415

    columns = {"first": first, "second": second, "winner": winner, "voter": voter, "context": context}
    reading = recorded.read_and_set_aside(votes, strict=strict, out=out, **columns, time=time, weight=weight)
    steps = 2 + tops(reading.votes, ties=ties.value, top=top)
    with progress_bar("Audit", steps, unit="steps", left_by_stop=recorded.NOTHING_WRITTEN) as done:
        found = audit(
            reading.votes, level=level, duels_assigned=not voters_choose_duels, ties=ties.value, top=top, progress=done
        )
    settings = {**recorded.file_settings(votes, reading), **found.settings}
    write_voters(found, out)
    write_record(out / "audit.json", {"settings": settings, **found.record()})
    page = out / "report.html"
    summary = [*found.summary(), *recorded.problem_sentences(reading)]
    write_votes_report(
        page,
        title=f"Audit of {votes.name}",
        summary=summary,
        sections=audit_sections(found),
        settings=settings,
        command=typed_command(),
    )
    print_audit(found)
    recorded.print_sentences([*summary, *found.advice()], page)


def write_voters(found: Audit, out: Path) -> None:
    """Write voters.csv and flagged-rows.csv; where nobody knows the voters, remove old ones."""
    if found.evidence is None or found.voters is None:
        for name in ("voters.csv", "flagged-rows.csv"):
            (out / name).unlink(missing_ok=True)
        return
    recorded.write_csv(out / "voters.csv", found.voters)
    recorded.write_csv(out / "flagged-rows.csv", found.evidence.flagged_rows(found.votes))


def print_audit(found: Audit) -> None:
    """Show flagged voters and fragility as tables."""
    if found.voters is not None and found.voters["flagged"].any():
        if found.crowd:
            recorded.print_sentences([found.crowd])
        flagged = flagged_cells(found.voters)
        table = TextTable.of(flagged[:_MOST_ROWS], _VOTER_COLUMNS, "Flagged voters")
        recorded.print_table(table, left=["voter", "why"])
        if len(flagged) > _MOST_ROWS:
            console.print(f"Only {_MOST_ROWS} of {len(flagged):,} are shown: voters.csv has all.")
    table = TextTable.of(map(fragility_cells, found.fragility), _FRAGILITY_COLUMNS, "Votes that change the ranking")
    recorded.print_table(table, left=["what changes", "votes are"])
