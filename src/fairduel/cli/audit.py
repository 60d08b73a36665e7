"""``fairduel audit``: unusual voters, and how fragile the result is."""

from pathlib import Path
from typing import Annotated

import typer

from fairduel.cli import output
from fairduel.cli import recorded_votes as recorded
from fairduel.report.text_table import TextTable
from fairduel.report.votes_tables import flagged_cells, fragility_cells, ranks_table
from fairduel.votes.auditing import Audit, audit, tops

Top = Annotated[int, typer.Option(min=1, metavar="N", help="Check what changes the top 1, 2, …, N.")]
_MAX_ROWS = 20
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
    where: recorded.Where = None,
    ties: recorded.Ties = recorded.TiesOption.HALF,
    level: recorded.Level = 0.05,
    voters_choose_duels: recorded.VotersChoose = False,
    top: Top = 5,
    strict: recorded.Strict = False,
    out: recorded.Out = None,
) -> output.Record:
    """Audit a vote file: unusual voters, fragile results.

    Flags voters whose votes show patterns that honest voting is unlikely to
    produce, with the evidence for each; ranks the items with and without
    them; looks for a stretch of votes that differs from the rest; and finds
    how few votes would change the leader if they were dropped or flipped.

    Writes report.html, voters.csv, flagged-rows.csv and audit.json. Nothing
    is deleted.
    """
    from fairduel.report.audit_page import audit_sections  # noqa: PLC0415  # plotting is slow

    columns = {"first": first, "second": second, "winner": winner, "voter": voter, "context": context}
    reading, folder = recorded.read_into(votes, "audit", out, where, strict=strict, **columns, time=time, weight=weight)
    steps = 3 + tops(reading.votes, ties=ties.value, top=top)
    with output.progress_bar("Audit", steps, unit="steps", on_stop=recorded.NO_REPORT) as done:
        found = audit(
            reading.votes, level=level, duels_assigned=not voters_choose_duels, ties=ties.value, top=top, progress=done
        )
    settings = {**recorded.file_settings(votes, reading), **found.settings}
    recorded.claim_for(folder, "audit", votes, reading)
    _write_voters(found, folder)
    written = recorded.write_report(
        folder,
        "audit",
        f"Audit of {votes.name}",
        reading,
        audit_sections(found),
        {"settings": settings, **found.record()},
    )
    output.say(*found.summary())
    _print_audit(found, folder)
    output.say_report(written["report"], *recorded.problem_sentences(reading), *found.advice())
    return written


def _write_voters(found: Audit, folder: Path) -> None:
    """Write voters.csv and flagged-rows.csv, or remove old ones if the file does not name its voters."""
    if found.evidence is None or found.voters is None:
        for name in ("voters.csv", "flagged-rows.csv"):
            (folder / name).unlink(missing_ok=True)
        return
    recorded.write_csv(folder / "voters.csv", found.voters)
    recorded.write_csv(folder / "flagged-rows.csv", found.evidence.flagged_rows(found.votes))


def _print_audit(found: Audit, folder: Path) -> None:
    if found.voters is not None and found.voters["flagged"].any():
        flagged = flagged_cells(found.voters)
        table = TextTable.of(flagged[:_MAX_ROWS], _VOTER_COLUMNS, "Flagged voters")
        output.print_table(table, text=["voter", "why"], optional=["agreement", "votes"], file=folder / "voters.csv")
        if len(flagged) > _MAX_ROWS:
            output.say(f"Only {_MAX_ROWS} of {len(flagged):,} flagged voters are shown (see {folder / 'voters.csv'}).")
    output.print_table(ranks_table(found, _MAX_ROWS), text=["item"], optional=["range by all votes", "range"])
    if len(found.votes.items) > _MAX_ROWS:
        output.say(f"Only the first {_MAX_ROWS} of {len(found.votes.items):,} items are shown (see the report).")
    title = "Votes that change the ranking" + (" (all votes, flagged voters included)" if found.someone_flagged else "")
    table = TextTable.of(map(fragility_cells, found.fragility), _FRAGILITY_COLUMNS, title)
    output.print_table(table, text=["what changes", "votes are"])
