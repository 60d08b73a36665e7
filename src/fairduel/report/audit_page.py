"""The sections of an audit's and a stress test's page."""

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from fairduel.report import votes_tables as tables
from fairduel.report.audit_figures import draw_both_ranks, draw_burst, draw_evidence, draw_fragility, draw_stress
from fairduel.report.figures import NARROW
from fairduel.report.page import Drawn, Section
from fairduel.report.text_table import TextTable
from fairduel.votes.auditing import Audit
from fairduel.votes.fragile import Fragility
from fairduel.votes.voters import LOG_10, Evidence, evidence_text
from fairduel.votes.words import shortened

_MAX_ROWS = 60
_VOTER_COLUMNS = ("voter", "why", "evidence", "votes", "agreement", "95% interval")
_FRAGILITY_COLUMNS = ("what changes", "out → in", "votes are", "found", "proven minimum", "share")
_BURST_TITLE = "Did a stretch of votes differ?"
_CHALLENGER_COLUMNS = ("challenger", "votes to drop", "proven minimum", "share")


def advice_section(audit: Audit) -> Section:
    """Build the advice."""
    return Section("What to do", audit.advice())


def voters_section(audit: Audit) -> Section | None:
    """Build the evidence on voters, or None if the file does not say who voted."""
    if audit.evidence is None or audit.voters is None:
        return None
    flagged = tables.flagged_cells(audit.voters)
    explained = _voters_explained(audit, audit.evidence)
    if len(flagged) > _MAX_ROWS:
        explained.append(f"Only {_MAX_ROWS} of {len(flagged):,} flagged voters are shown; voters.csv has all of them.")
    if flagged:
        table = TextTable.of(flagged[:_MAX_ROWS], _VOTER_COLUMNS, "Flagged voters", text=2)
    else:
        nearest = audit.voters.filter(~pl.col("flagged")).head(5).to_dicts()
        caption = "The five voters with the most evidence; none is flagged"
        cells = [tables.voter_cells(voter) for voter in nearest]
        useless = {"why"} | ({"evidence"} if all(row["evidence"] == "none" for row in cells) else set())
        columns = [name for name in _VOTER_COLUMNS if name not in useless]
        table = TextTable.of(cells, columns, caption)
    alike = TextTable(
        ("voter", "voter", "shared duels", "same answers", "expected"),
        [[p["one"], p["other"], f"{p['shared']}", f"{p['same']}", f"{p['expected']:.0f}"] for p in audit.alike()],
        "Pairs of voters with nearly the same answers",
        text=2,
    )
    figure = Drawn(
        "Every voter: evidence of unusual votes, and agreement with the other voters.",
        draw_evidence(audit.evidence),
        alt="Scatter plots of every voter. Evidence on flagged voters: "
        + (", ".join(f"{row['voter']} {row['evidence']}" for row in flagged[:10]) or "nobody is flagged")
        + ".",
        name="evidence",
        narrow=draw_evidence(audit.evidence, columns=1),
    )
    return Section("Voters", explained, [table, alike] if alike.rows else [table], [figure])


def _voters_explained(audit: Audit, evidence: Evidence) -> list[str]:
    explained = [
        "Evidence of 1,000 means: an honest voter would reach evidence this strong with a probability of at most "
        "1 in 1,000, no matter how often you check. Honest voters may be careless, and may like or dislike an item; "
        "how much people differ is estimated from this file. Agreement: the share of the voter's votes predicted "
        "by everyone else.",
    ]
    if evidence.settings["duels_assigned"]:
        explained.append(
            "Seeing one item far more often than others do at the same time and in the same context, and voting for "
            "it, counts as evidence, because the system is assumed to choose who sees what. If voters choose their "
            "duels, use --voters-choose-duels."
        )
    if chose := evidence.settings["voters_who_choose_their_duels"]:
        explained.append(
            f"Voters who see one item so often that they seem to choose their duels: {chose:,}. That alone "
            "flags nobody, but other voters are compared with a ranking made without them."
        )
    if audit.crowd and evidence.crowd is not None:
        explained.append(
            f"{audit.crowd} Evidence: {evidence_text(evidence.crowd.log_evidence / LOG_10)}. It is on the group, not "
            "on its members."
        )
    return explained


def ranking_section(audit: Audit) -> Section:
    """Build the ranking, before and after the audit."""
    table = tables.ranks_table(audit, _MAX_ROWS)
    groups = max(new.component for new in audit.shown.standings)
    explained = ["The ranges hold for all items together with 95% confidence."]
    if groups > 1:
        explained.append(
            f"The items form {groups} groups that were never compared with each other: ranks are within a group."
        )
    if not audit.someone_flagged:
        one = ["Nobody is flagged, so there is one ranking."] if audit.burst.without is None else []
        return Section("Ranking", [*one, *explained], [table])
    shown = audit.ranks()[:_MAX_ROWS]
    moved = ", ".join(f"{new.item} from {old.rank} to {new.rank}" for old, new in shown if old.rank != new.rank)
    figure = Drawn(
        "The longer an item's line, the further the flagged voters moved it.",
        draw_both_ranks(audit.everyone, audit.shown),
        alt=f"Ranks by all votes and without the flagged voters. Moved: {moved or 'none'}.",
        name="ranks",
        narrow=draw_both_ranks(audit.everyone, audit.shown, width=NARROW),
    )
    return Section("Ranking with and without the flagged voters", explained, [table], [figure])


def burst_section(audit: Audit) -> Section:
    """Build the stretch of votes that differs most."""
    burst = audit.burst
    summary = audit.burst_summary()
    if burst.excess is None or burst.error is None:
        return Section(_BURST_TITLE, summary)
    changed = [
        f"Items that clearly {verb} in the stretch: {shortened(items)}."
        for verb, items in (("gained", burst.gained), ("lost", burst.lost))
        if items and burst.found
    ]
    explained = (
        "Every stretch of up to a quarter of the votes, in "
        + ("the order of their times" if burst.is_timed else "file order")
        + ", was compared with the other votes on the same duels. If voters and contexts differ but no stretch does, "
        f"one is found with a probability of at most {burst.level:.3g}. A few voters who are alone in a stretch cannot "
        "be told from a burst, so they are not reported here."
    )
    what = f"Wins of {burst.item}" if burst.item else "Agreement with the ranking"
    caption = f"{what}, minus what the same duels give on average, per vote, in 20 equal parts (± 2 standard errors)."
    most = int(np.nanargmax(np.abs(burst.excess)))
    figure = Drawn(
        caption,
        draw_burst(burst),
        alt=f"{caption} Largest in part {most + 1}: {burst.excess[most]:+.2f}.",
        name="burst",
        narrow=draw_burst(burst, width=NARROW),
    )
    return Section(_BURST_TITLE, [*summary, *changed, explained], figures=[figure])


def fragility_section(audit: Audit) -> Section:
    """Build how few votes would change the ranking."""
    leader = audit.challengers[0].loses if audit.challengers else ""
    flagged = ", including those of flagged voters unless a table says otherwise" if audit.trusted_fragility else ""
    figure = Drawn(
        "Votes needed to change the leader, or the set of the top k items.",
        draw_fragility(audit.fragility),
        alt=" ".join(result.sentence for result in audit.fragility),
        name="fragility",
        narrow=draw_fragility(audit.fragility, width=NARROW),
    )
    return Section(
        "How fragile is the result?",
        [
            "How many well-chosen votes would change the ranking if they were dropped or flipped? The fewer, the more "
            "easily a small fraud or accident could have changed it. Found: the smallest set found, confirmed by a "
            "refit; audit.json lists its rows. Proven minimum: no smaller set can change it.",
            f"Votes have the weights that they have in the ranking{flagged}.",
        ],
        [
            *_fragility_table(audit.trusted_fragility, "After the audit"),
            *_fragility_table(audit.fragility, "All votes"),
            TextTable.of(map(tables.fragility_cells, audit.challengers), _CHALLENGER_COLUMNS, f"To overtake {leader}"),
        ],
        [figure],
    )


def _fragility_table(results: Sequence[Fragility], caption: str) -> list[TextTable]:
    """Tabulate the results, if there are any."""
    cells = map(tables.fragility_cells, results)
    return [TextTable.of(cells, _FRAGILITY_COLUMNS, caption, text=3)] if results else []


AUDIT_SECTIONS: list[Callable[[Audit], Section | None]] = [
    advice_section,
    voters_section,
    ranking_section,
    burst_section,
    fragility_section,
]
"""The sections of an audit's page, in order."""


def audit_sections(audit: Audit) -> list[Section]:
    """Build all sections of the page; those without content are left out."""
    return [section for build in AUDIT_SECTIONS if (section := build(audit)) is not None]


def stress_section(frame: pl.DataFrame, *, attack: str) -> Section:
    """Build the target's rank by the size of the attack, from the frame of :func:`fairduel.votes.stress`."""
    table = tables.stress_table(frame)
    ranks = "; ".join(
        ", ".join(f"{name} {cell}" for name, cell in zip(table.columns, row, strict=True)) for row in table.rows
    )
    figure = Drawn(
        f"Attack: {attack}. Rank 1 is the best.",
        draw_stress(frame, attack=attack),
        alt=f"Ranks: {ranks}.",
        name="stress",
        narrow=draw_stress(frame, attack=attack, width=NARROW),
    )
    explained = "Where a line is flat, the false votes achieve nothing; where it moves, they succeed."
    return Section("Rank of the target under attack", [explained], [table], [figure])
