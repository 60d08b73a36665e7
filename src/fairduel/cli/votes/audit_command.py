"""``fairduel audit``: unusual voters, and how fragile the result is."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fairduel.cli import output
from fairduel.cli.help import grouped
from fairduel.cli.votes import preference_data
from fairduel.cli.votes import recorded_votes as recorded
from fairduel.errors import BadInputError
from fairduel.report.text_table import TextTable
from fairduel.report.votes.votes_tables import camps_table, fragility_cells, ranks_table
from fairduel.votes.auditing.audit import Audit, audit, tops
from fairduel.votes.auditing.known_answers import split_known
from fairduel.votes.reading.read import read_votes
from fairduel.words import counted_noun

Top = Annotated[int, typer.Option(min=1, metavar="N", help="Check what changes the top 1, 2, …, N.")]
Known = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        show_default=False,
        help="Vote file of known answers: one row per duel, for the better item. Voters who fail them can be flagged.",
    ),
]
_MAX_ROWS = 20
_FRAGILE = 0.01  # share of the votes


class FailReason(StrEnum):
    """Why ``--fail-on`` ends the command with exit code 1."""

    FLAG = "flag"
    FRAGILE = "fragile"
    UNDECIDED = "undecided"


FailOn = Annotated[
    list[FailReason] | None,
    typer.Option(
        metavar="REASON",
        help="Exit with code 1 if a voter is flagged (flag), fewer than 1% of the votes change first place (fragile), "
        "or nobody leads (undecided); may be repeated.",
        show_default=False,
    ),
]
_FRAGILITY_COLUMNS = ("what changes", "votes are", "found", "proven minimum", "of")


@grouped()
def audit_command(
    file: recorded.VoteFile,
    options: preference_data.PreferenceOptions,
    ties: recorded.Ties = recorded.TiesOption.HALF,
    level: recorded.Level = 0.05,
    voters_choose_duels: recorded.VotersChoose = False,
    top: Top = 5,
    known: Known = None,
    fail_on: FailOn = None,
) -> output.Record:
    """Audit a vote file: unusual voters, fragile results.

    Flags voters whose votes show patterns that honest voting is unlikely to
    produce, with the evidence for each; ranks the items with and without
    them; shows camps of voters; looks for a stretch of votes that differs
    from the rest; and finds how few votes would change first place if they
    were dropped or flipped.

    Preference data (prompt, chosen, rejected) is audited by what the texts
    are like: who votes against the rest, what they prefer, which labels are
    probably wrong, and what that costs a reward model.

    Writes report.html, voters.csv, flagged-rows.csv and audit.json. Nothing
    is deleted.
    """
    if options.expected(file):
        if FailReason.FRAGILE in (fail_on or ()):
            raise BadInputError("--fail-on fragile is about the leader of a poll; preference data has none.")
        written = preference_data.audit_preference_file(file, options, level=level, known=known)
        found_out = {FailReason.FLAG: bool(written.get("flagged")), FailReason.UNDECIDED: written["undecided"]}
        failed = [f"{written['summary'][0]} (--fail-on {each.value})" for each in fail_on or () if found_out[each]]
        return {**written, "failed": failed}
    from fairduel.report.votes.audit_page import audit_sections  # noqa: PLC0415  # plotting is slow

    reading, folder = file.read("audit")
    votes, answers = (reading.votes, None) if known is None else split_known(reading.votes, read_votes(known).votes)
    steps = 3 + tops(votes, ties=ties.value, top=top)
    with output.progress_bar("Audit", steps, unit="steps", on_stop=recorded.NO_REPORT) as done:
        found = audit(
            votes,
            level=level,
            duels_assigned=not voters_choose_duels,
            ties=ties.value,
            top=top,
            known=answers,
            progress=done,
        )
    settings = {**recorded.file_settings(file.votes, reading), **found.settings}
    settings |= {} if known is None else {"known_answers": str(known)}
    recorded.claim_for(folder, "audit", file.votes, reading)
    flagged_rows = None if found.evidence is None else found.evidence.flagged_rows(found.votes)
    recorded.write_voters(folder, found.voters, flagged_rows)
    written = recorded.write_report(
        folder,
        "audit",
        f"Audit of {file.votes.name}",
        reading,
        audit_sections(found),
        {"settings": settings, **found.record()},
        first=found.in_short(),
    )
    output.say(*found.summary())
    _print_audit(found, folder)
    output.say_report(written["report"], *recorded.problem_sentences(reading), *found.advice())
    return {**written, "failed": [said for reason in fail_on or () for said in _failures(reason, found)]}


def _failures(reason: FailReason, found: Audit) -> list[str]:
    """Say why a result is not to be relied on, if it is so for this reason."""
    if reason is FailReason.FLAG:
        count = 0 if found.voters is None else int(found.voters["flagged"].sum())
        return [f"{counted_noun(count, 'voter')} flagged (--fail-on flag)."] if count else []
    if reason is FailReason.UNDECIDED:
        return [f"{verdict.headline} (--fail-on undecided)" for verdict in found.verdicts if verdict.leader is None]
    leaders = [each for each in found.trusted_fragility or found.fragility if each.top == 1]
    few = [each for each in leaders if each.found is not None and each.found < _FRAGILE * each.votes]
    return [f"{each.sentence} (--fail-on fragile)" for each in few[:1]]


def _print_audit(found: Audit, folder: Path) -> None:
    recorded.print_flagged(found.voters, folder)
    if found.camps.found:
        output.print_table(camps_table(found.camps), text=["camp", "their order"], optional=["the rest predict"])
    output.print_table(ranks_table(found, _MAX_ROWS), text=["item"], optional=["own range by all votes", "own range"])
    if len(found.votes.items) > _MAX_ROWS:
        output.say(f"Only the first {_MAX_ROWS} of {len(found.votes.items):,} items are shown (see the report).")
    title = "Votes that change the ranking" + (
        " (all votes, each counted fully)" if found.shown is not found.everyone else ""
    )
    if found.fragility:
        table = TextTable.of(map(fragility_cells, found.fragility), _FRAGILITY_COLUMNS, title)
        output.print_table(table, text=["what changes", "votes are"])
