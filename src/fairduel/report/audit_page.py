"""What an audit found, as parts of a page: words first, then figures and tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairduel.report.audit_figures import draw_both_ranks, draw_evidence, draw_fragility
from fairduel.report.page import Drawn
from fairduel.report.votes_page import PageTable, Section, rank_range
from fairduel.votes.fragility import Fragility
from fairduel.votes.ranking import Ranking
from fairduel.votes.voters import Evidence, crowd_sentence
from fairduel.votes.votes import Votes

_MOST_ROWS = 60
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_FRAGILE = 0.01  # share of the votes: less is within the reach of one determined person


@dataclass(frozen=True, eq=False)
class Audit:
    """Everything that an audit found."""

    votes: Votes
    everyone: Ranking
    trusted: Ranking
    """Without the votes of flagged voters; the same where nobody is flagged."""
    evidence: Evidence | None
    """None where the file does not say who voted."""
    fragility: Sequence[Fragility]
    """Of all votes: the leader, the top 2, …"""
    challengers: Sequence[Fragility]
    trusted_fragility: Sequence[Fragility]
    """Of the leader, without the votes of flagged voters; empty where nobody is flagged."""

    def summary(self) -> list[str]:
        """The findings in a few sentences."""
        fragile = [f"All votes: {result.sentence}" for result in self.fragility[:2]]
        fragile += [f"Without the flagged voters: {result.sentence}" for result in self.trusted_fragility]
        return [*_voter_summary(self), *_leader_summary(self), *fragile]

    def advice(self) -> list[str]:
        """What to do now."""
        return _advice(self)

    def sections(self) -> list[Section]:
        """The parts of the page."""
        parts = [Section("What to do", self.advice())]
        if self.evidence is not None:
            parts.append(_voters_section(self, self.evidence))
        parts += [_ranking_section(self), _fragility_section(self)]
        return parts

    def record(self) -> dict[str, Any]:
        """The findings as plain values, for JSON."""
        found: dict[str, Any] = {"summary": self.summary(), "advice": self.advice()}
        if self.evidence is not None:
            frame = self.evidence.frame(self.votes.items)
            found["flagged"] = frame.filter(frame["flagged"]).to_dicts()
            found["alike"] = _pairs(self)
        for name in ("fragility", "challengers", "trusted_fragility"):
            results: Sequence[Fragility] = getattr(self, name)
            found[name] = [{**vars(result), "sentence": result.sentence} for result in results]
        found["ranks"] = [
            {"item": item, "all_votes": before, "without_flagged": after} for item, before, after, *_ in _ranks(self)
        ]
        return found


def evidence_text(log_evidence: float) -> str:
    """E as people read it.

    >>> evidence_text(np.log(1234.0)), evidence_text(60.0), evidence_text(-3.0)
    ('1,234', '10²⁶', 'none')
    """
    power = log_evidence / np.log(10.0)
    if power < 0.0:
        return "none"
    return "10" + f"{power:.0f}".translate(_RAISED) if power >= 6.0 else f"{np.exp(log_evidence):,.0f}"


def _voter_summary(audit: Audit) -> list[str]:
    evidence = audit.evidence
    if evidence is None:
        return ["The file does not say who voted, so no voter could be checked."]
    flagged = evidence.flagged_votes(audit.votes)
    level = evidence.settings["level"]
    if not flagged.any():
        return [
            f"No voter is flagged: none of {evidence.settings['voters_tested']:,} gives enough evidence of lying "
            f"(level {level:.0%})."
        ]
    return [
        f"{int(evidence.flagged.sum()):,} of {evidence.settings['voters_tested']:,} voters are flagged; they cast "
        f"{int(flagged.sum()):,} of {len(audit.votes):,} votes. If all voters were honest, the chance of any flag "
        f"would be at most {level:.0%}."
    ]


def _leader_summary(audit: Audit) -> list[str]:
    if audit.evidence is None or not audit.evidence.flagged.any():
        return []
    before, after = (next(ranking.components())[0].item for ranking in (audit.everyone, audit.trusted))
    moved = [(item, old, new) for item, old, new, *_ in _ranks(audit) if old != new]
    most = max(moved, key=lambda row: abs(row[1] - row[2]), default=None)
    leads = f"Without them {after} leads, not {before}." if before != after else f"Without them {after} still leads."
    if most is None:
        return [f"{leads} No rank changes."]
    return [f"{leads} {len(moved)} items change rank; the most is {most[0]}, from {most[1]} to {most[2]}."]


def _advice(audit: Audit) -> list[str]:
    advice = []
    evidence = audit.evidence
    if evidence is None:
        advice.append("Record who votes (a pseudonym is enough): without it nobody can be told from a liar.")
    elif evidence.flagged.any():
        advice.append(
            "Look at the flagged voters and at why they are flagged. Use the ranking without them unless you can "
            "explain their votes. flagged-rows.csv lists the rows of their votes; nothing was deleted."
        )
        if evidence.crowd_flagged:
            advice.append(
                "Many voters with few votes push the same item. Nobody can tell which of them lie: ask for a login, or "
                "limit votes by address, before you trust new votes on that item."
            )
    results = audit.trusted_fragility or [result for result in audit.fragility if result.top == 1]
    leader = min((result for result in results if result.found), key=lambda result: result.found or 0, default=None)
    if leader is not None and leader.found is not None:
        share = leader.found / leader.votes
        if share < _FRAGILE:
            advice.append(
                f"Do not announce {leader.loses} as the winner: {leader.found:,} of {leader.votes:,} votes "
                f"({share:.2%}) would make {leader.gains} the leader. Call them tied, or collect more votes between "
                "the two."
            )
        else:
            advice.append(
                f"{leader.loses} leads safely against few false votes: it takes {leader.found:,} of {leader.votes:,} "
                f"({share:.1%}) to put {leader.gains} in front."
            )
    return advice


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
    if pairs := _pairs(audit):
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


def _pairs(audit: Audit) -> list[dict[str, Any]]:
    if audit.evidence is None:
        return []
    pairs, names = audit.evidence.pairs, audit.evidence.voters
    return [
        {
            "one": names[pairs.one[place]],
            "other": names[pairs.other[place]],
            "shared": int(pairs.shared[place]),
            "same": int(pairs.same[place]),
            "expected": float(pairs.expected[place]),
        }
        for place in np.flatnonzero(pairs.flagged)
    ]


def _ranks(audit: Audit) -> list[tuple[str, int, int, str, str]]:
    """Item, rank by all votes, rank without the flagged, and both ranges, in the order of the latter rank."""
    before: Mapping[str, Any] = {standing.item: standing for standing in audit.everyone.standings}
    return [
        (after.item, before[after.item].rank, after.rank, rank_range(before[after.item]), rank_range(after))
        for after in audit.trusted.standings
    ]


def _ranking_section(audit: Audit) -> Section:
    ranks = _ranks(audit)
    if audit.evidence is None or not audit.evidence.flagged.any():
        rows = [[item, f"{rank}", ranges] for item, rank, _, ranges, _ in ranks[:_MOST_ROWS]]
        return Section(
            "The ranking",
            [
                "Nobody is flagged, so there is one ranking. "
                "The range holds for all items together with 95 % confidence."
            ],
            [PageTable(("item", "rank", "range"), rows)],
        )
    rows = [[item, f"{new}", r_new, f"{old}", r_old] for item, old, new, r_old, r_new in ranks[:_MOST_ROWS]]
    return Section(
        "The ranking with and without the flagged voters",
        ["The ranges hold for all items together with 95 % confidence."],
        [PageTable(("item", "rank without them", "range", "rank by all votes", "range"), rows)],
        [
            Drawn(
                "Where a line is long, the flagged voters moved the item that far.",
                draw_both_ranks(audit.everyone, audit.trusted),
            )
        ],
    )


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
