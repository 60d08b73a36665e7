"""What an audit or a stress test found, as sections of a page: words first, then figures and tables."""

from collections.abc import Callable

import polars as pl

from fairduel.report import votes_tables as tables
from fairduel.report.audit_figures import draw_both_ranks, draw_evidence, draw_fragility, draw_stress
from fairduel.report.page import Drawn
from fairduel.report.votes_page import Section
from fairduel.votes.audit import Audit
from fairduel.votes.ranking import Standing
from fairduel.votes.voters import LOG_10, Evidence, evidence_text

_MOST_ROWS = 60
_VOTER_COLUMNS = ("voter", "why", "evidence", "votes", "agreement", "95 % interval")
_FRAGILITY_COLUMNS = ("what changes", "out → in", "votes are", "found", "proven minimum", "share")
_CHALLENGER_COLUMNS = ("challenger", "votes to drop", "proven minimum", "share")


def advice_section(audit: Audit) -> Section:
    """What to do."""
    return Section("What to do", audit.advice())


def voters_section(audit: Audit) -> Section | None:
    """Whom to trust; None where nobody knows who voted."""
    if audit.evidence is None or audit.voters is None:
        return None
    flagged = tables.flagged_cells(audit.voters)
    explained = _voters_explained(audit, audit.evidence)
    if len(flagged) > _MOST_ROWS:
        explained.append(f"Only {_MOST_ROWS} of {len(flagged):,} flagged voters are shown: voters.csv has all.")
    if flagged:
        table = tables.TextTable.of(flagged[:_MOST_ROWS], _VOTER_COLUMNS, text=2)
    else:
        nearest = audit.voters.filter(~pl.col("flagged")).head(5).to_dicts()
        caption = "The five most suspicious among those who are not flagged"
        table = tables.TextTable.of(map(tables.voter_cells, nearest), _VOTER_COLUMNS, caption, text=2)
    alike = tables.TextTable(
        ("voter", "voter", "shared duels", "answered alike", "expected"),
        [[p["one"], p["other"], f"{p['shared']}", f"{p['same']}", f"{p['expected']:.0f}"] for p in audit.alike()],
        "Pairs whose votes are too alike",
        text=2,
    )
    caption = "Every voter: evidence of lying (left) and agreement with the others (right)."
    return Section(
        "Whom to trust",
        explained,
        [table, alike] if alike.rows else [table],
        [Drawn(caption, draw_evidence(audit.evidence))],
    )


def _voters_explained(audit: Audit, evidence: Evidence) -> list[str]:
    explained = [
        "Evidence of 1,000 means: were this voter honest, evidence this strong would turn up with a chance of at most "
        "1 in 1,000, however often one looks. Honest voters may be careless, and may like or dislike an item; how much "
        "people differ is measured on this file. Agreement: share of his votes that the ranking of all others expects.",
    ]
    if evidence.settings["duels_assigned"]:
        explained.append(
            "It counts as evidence if somebody meets one item far more often than others do and votes for it, because "
            "here the system is taken to choose who sees what. Where voters choose themselves, say "
            "--voters-choose-duels."
        )
    if chose := evidence.settings["voters_who_choose_their_duels"]:
        explained.append(
            f"{chose:,} voters meet one item so often that they seem to choose their duels. That alone is no lie, and "
            "flags nobody; but others are compared with a ranking made without them."
        )
    if audit.crowd and evidence.crowd is not None:
        explained.append(
            f"{audit.crowd} Evidence against the crowd: {evidence_text(evidence.crowd.log_evidence / LOG_10)}. Who of "
            "them lies cannot be told; voters.csv lists them all."
        )
    return explained


def ranking_section(audit: Audit) -> Section:
    """The ranking, with and without the flagged voters."""
    ranks, left = audit.ranks()[:_MOST_ROWS], audit.left_alone
    groups = max(new.component for new in audit.trusted.standings)
    explained = ["The ranges hold for all items together with 95 % confidence."]
    if groups > 1:
        explained.append(
            f"The items fall into {groups} groups that were never compared with each other: ranks are within a group."
        )
    rows = [
        [new.item, *([f"{new.component}"] if groups > 1 else []), *_rank_cells(new, compared=new.item not in left)]
        for _, new in ranks
    ]
    titles = ("item", "group") if groups > 1 else ("item",)
    if audit.evidence is None or not audit.evidence.flagged.any():
        return Section(
            "The ranking",
            ["Nobody is flagged, so there is one ranking.", *explained],
            [tables.TextTable((*titles, "rank", "range"), rows)],
        )
    rows = [[*row, *_rank_cells(old, compared=True)] for row, (old, _) in zip(rows, ranks, strict=True)]
    caption = "Where a line is long, the flagged voters moved the item that far."
    return Section(
        "The ranking with and without the flagged voters",
        explained,
        [tables.TextTable((*titles, "rank without them", "range", "rank by all votes", "range"), rows)],
        [Drawn(caption, draw_both_ranks(audit.everyone, audit.trusted))],
    )


def _rank_cells(standing: Standing, *, compared: bool) -> list[str]:
    return [f"{standing.rank}", tables.rank_range(standing)] if compared else [tables.NOT_COMPARED, "–"]


def fragility_section(audit: Audit) -> Section:
    """How few votes would change the ranking."""
    leader = audit.challengers[0].loses if audit.challengers else ""
    return Section(
        "How far to trust it",
        [
            "How many votes, well chosen, would change the ranking if they were dropped or had gone the other way? The "
            "fewer, the less a small cheat, or a small accident, would have needed. The sets that were found are "
            "checked by a new fit without them; audit.json lists their rows. That fewer than the second number cannot "
            "do it is proved.",
            "All votes count here, also those of flagged voters, and all alike (plain Bradley–Terry).",
        ],
        [
            tables.TextTable.of(map(tables.fragility_cells, audit.fragility), _FRAGILITY_COLUMNS, text=3),
            tables.TextTable.of(
                map(tables.fragility_cells, audit.challengers), _CHALLENGER_COLUMNS, f"Until it is above {leader}"
            ),
        ],
        [Drawn("Votes that change the leader, or who is among the first k.", draw_fragility(audit.fragility))],
    )


AUDIT_SECTIONS: list[Callable[[Audit], Section | None]] = [
    advice_section,
    voters_section,
    ranking_section,
    fragility_section,
]
"""The sections of the page of an audit, in their order."""


def audit_sections(audit: Audit) -> list[Section]:
    """All sections of the page that have something to say."""
    return [section for build in AUDIT_SECTIONS if (section := build(audit)) is not None]


def stress_section(frame: pl.DataFrame, *, attack: str) -> Section:
    """The rank of the target by the size of the attack, from the frame of :func:`fairduel.votes.stress.stress`."""
    return Section(
        "Rank of the target under attack",
        ["Where a line stays flat, the false votes achieve nothing; where it moves, they win."],
        [tables.stress_table(frame)],
        [Drawn(f"Attack: {attack}. Rank 1 is the best.", draw_stress(frame, attack=attack))],
    )
