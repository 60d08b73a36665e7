"""What an audit found, as parts of a page: words first, then figures and tables."""

import numpy as np

from fairduel.report.audit_figures import draw_both_ranks, draw_evidence, draw_fragility
from fairduel.report.page import Drawn
from fairduel.report.votes_page import PageTable, Section, rank_range
from fairduel.votes.audit import Audit
from fairduel.votes.ranking import Standing
from fairduel.votes.voters import Evidence, crowd_sentence, evidence_text

_MOST_ROWS = 60


def audit_sections(audit: Audit) -> list[Section]:
    """What to do, whom to trust, the ranking with and without the others, and how far to trust it."""
    parts = [Section("What to do", audit.advice())]
    if audit.evidence is not None:
        parts.append(_voters_section(audit, audit.evidence))
    return [*parts, _ranking_section(audit), _fragility_section(audit)]


def _voters_section(audit: Audit, evidence: Evidence) -> Section:
    frame = evidence.frame(audit.votes.items)
    flagged = frame.filter(frame["flagged"] & (frame["flagged_by"] != "crowd"))
    shown = flagged if len(flagged) else frame.filter(~frame["flagged"]).head(5)
    rows = [
        [
            row["voter"],
            row["why"] or "not flagged",
            evidence_text(row["log10_evidence"] * np.log(10.0)),
            f"{row['votes']:,}",
            "–" if row["agreement"] is None else f"{row['agreement']:.0%}",
            "–" if row["agreement"] is None else f"{row['agreement_low']:.0%}–{row['agreement_high']:.0%}",
        ]
        for row in shown.head(_MOST_ROWS).to_dicts()
    ]
    columns = ("voter", "why", "evidence", "votes", "agreement", "95 % interval")
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
    if evidence.crowd is not None and evidence.crowd_flagged:
        explained.append(
            f"A crowd is flagged. Each is {crowd_sentence(evidence.crowd, audit.votes.items)}. Evidence against the "
            f"crowd: {evidence_text(evidence.crowd.log_evidence)}. Who of them lies cannot be told; voters.csv lists "
            "them all."
        )
    if len(flagged) > _MOST_ROWS:
        explained.append(f"Only {_MOST_ROWS} of {len(flagged):,} flagged voters are shown: voters.csv has all.")
    tables = [
        PageTable(columns, rows, "" if len(flagged) else "The five most suspicious among those who are not flagged", 2)
    ]
    if pairs := audit.alike():
        tables.append(
            PageTable(
                ("voter", "voter", "shared duels", "answered alike", "expected"),
                [[p["one"], p["other"], f"{p['shared']}", f"{p['same']}", f"{p['expected']:.0f}"] for p in pairs],
                "Pairs whose votes are too alike",
                text=2,
            )
        )
    return Section(
        "Whom to trust",
        explained,
        tables,
        [
            Drawn(
                "Every voter: evidence of lying (left) and agreement with the others (right).", draw_evidence(evidence)
            )
        ],
    )


def _ranking_section(audit: Audit) -> Section:
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
            [PageTable((*titles, "rank", "range"), rows)],
        )
    rows = [[*row, *_rank_cells(old, compared=True)] for row, (old, _) in zip(rows, ranks, strict=True)]
    return Section(
        "The ranking with and without the flagged voters",
        explained,
        [PageTable((*titles, "rank without them", "range", "rank by all votes", "range"), rows)],
        [
            Drawn(
                "Where a line is long, the flagged voters moved the item that far.",
                draw_both_ranks(audit.everyone, audit.trusted),
            )
        ],
    )


def _rank_cells(standing: Standing, *, compared: bool) -> list[str]:
    return [f"{standing.rank}", rank_range(standing)] if compared else ["not compared", "–"]


def _fragility_section(audit: Audit) -> Section:
    rows = [
        [
            "the leader" if result.top == 1 else f"the top {result.top}",
            f"{result.loses} → {result.gains}",
            result.how,
            "none found" if result.found is None else f"{result.found:,}",
            f"{result.at_least:,}",
            "–" if result.found is None else f"{result.found / result.votes:.2%}",
        ]
        for result in audit.fragility
    ]
    rivals = [
        [
            result.gains,
            "none found" if result.found is None else f"{result.found:,}",
            f"{result.at_least:,}",
            "–" if result.found is None else f"{result.found / result.votes:.2%}",
        ]
        for result in audit.challengers
    ]
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
            PageTable(
                ("what changes", "who for whom", "votes are", "so many do it", "fewer than this cannot", "share"),
                rows,
                text=3,
            ),
            PageTable(
                ("challenger", "votes to drop", "fewer than this cannot", "share"),
                rivals,
                f"Until it is above {leader}",
            ),
        ],
        [Drawn("Votes that change the leader, or who is among the first k.", draw_fragility(audit.fragility))],
    )
