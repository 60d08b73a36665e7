"""The sections and figures of an audit's and a stress test's page."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
import polars as pl
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, PercentFormatter, StrMethodFormatter

from fairduel.core.concluding import PARTS
from fairduel.report.drawing import STYLE, WIDTH
from fairduel.report.page import Drawn, Section
from fairduel.report.text_table import TextTable, tabulate
from fairduel.report.votes import votes_tables as tables
from fairduel.votes.attacking.stress import advise_on_stress
from fairduel.votes.auditing.audit import Audit
from fairduel.votes.auditing.bursts import BurstScan
from fairduel.votes.auditing.voter_columns import LOG_10, VOTERS, evidence_text
from fairduel.votes.auditing.voters import Evidence
from fairduel.votes.certifying.search import Fragility
from fairduel.votes.judging import why_unchanged
from fairduel.votes.ranking.rank import Ranking
from fairduel.words import shortened

if TYPE_CHECKING:
    from fairduel.votes.rewards.preference_audit import PreferenceAudit

MAX_ITEMS = 40
_FLAGGED, _HONEST, _SOFT = "#D55E00", "#0072B2", "#999999"
_SHAPES, _CAMPS = ("s", "^", "D", "v", "P"), ("#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#000000")
_MIN_POWER, _MAX_POWER = -3.0, 13.0  # evidence beyond these powers of ten is drawn at the edge
_LINES = {
    "rank_plain": ("plain Bradley–Terry", "#0072B2", "-"),
    "rank_weighted": ("with uncertainty weights", "#E69F00", "--"),
    "rank_ours": ("ours, after the audit", "#D55E00", "-"),
}
_MANY = 2000  # voters; more are dots of a picture, because one path for each would make a page of many megabytes
_MOST_LEVEL = 8  # labels of an axis; more are turned


def draw_evidence(evidence: Evidence) -> Figure:
    """Draw every voter's evidence and agreement against their number of votes, flagged voters and camps marked."""
    voted = evidence.decisive > 0
    flagged = evidence.flagged & voted
    camp = np.full(len(voted), -1) if evidence.camps is None else evidence.camps.of_voter
    names = [] if evidence.camps is None else [found.name for found in evidence.camps.found]
    kinds = [("o", _HONEST, voted & (camp < 0), "no camp")]
    kinds += [
        (_SHAPES[number % len(_SHAPES)], _CAMPS[number % len(_CAMPS)], voted & (camp == number), f"camp: {name}")
        for number, name in enumerate(names)
    ]
    power = np.clip(evidence.total / LOG_10, _MIN_POWER, _MAX_POWER)
    many = len(evidence.votes) > _MANY
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 7.0), layout="constrained")
        upper, lower = figure.subplots(2)
        for axis, height in ((upper, power), (lower, evidence.agreement)):
            for shape, colour, chosen, _ in kinds:
                axis.plot(evidence.votes[chosen], height[chosen], shape, color=colour, ms=5, alpha=0.6, rasterized=many)
            axis.plot(evidence.votes[flagged], height[flagged], "o", color=_FLAGGED, ms=9, mfc="none", rasterized=many)
            axis.set_xscale("log")
            _round_numbers(axis.xaxis)
            axis.set_xlabel("votes of the voter")
        needed = evidence.settings["needed_log10_evidence"]
        upper.axhline(needed, color=_SOFT, ls="--", lw=1)
        upper.annotate(
            "flagged above this line",
            (0.01, needed),
            xycoords=("axes fraction", "data"),
            ha="left",
            va="bottom",
            fontsize=8,
        )
        upper.set_ylim(_MIN_POWER - 0.5, _MAX_POWER + 0.8)
        upper.set_yticks([-3, 0, 3, 6, 9, 13], ["≤ 1/1000", "1", "10³", "10⁶", "10⁹", "≥ 10¹³"])
        upper.set_ylabel("evidence against honest voting")
        lower.axhline(0.5, color=_SOFT, ls="--", lw=1)
        lower.set_ylim(-0.03, 1.03)
        lower.yaxis.set_major_formatter(PercentFormatter(1.0))
        lower.set_ylabel("agreement with the other voters")
        figure.legend(
            handles=[
                mpl.lines.Line2D(
                    *([], []), marker="o", ls="", color=_FLAGGED, mfc="none", label=f"flagged ({int(flagged.sum()):,})"
                ),
                *(
                    mpl.lines.Line2D(
                        *([], []), marker=shape, ls="", color=colour, label=f"{name} ({int(chosen.sum()):,})"
                    )
                    for shape, colour, chosen, name in kinds
                ),
            ],
            loc="outside lower center",
            ncols=2,
            fontsize=9,
        )
        return figure


def draw_both_ranks(everyone: Ranking, trusted: Ranking) -> Figure:
    """Draw each item's rank by all votes and after the audit, ordered by the latter."""
    before = {standing.item: standing for standing in next(everyone.components())}
    shown = [standing for standing in next(trusted.components()) if standing.item in before][:MAX_ITEMS]
    heights = np.arange(len(shown))[::-1]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 1.4 + 0.24 * len(shown)), layout="constrained")
        axis = figure.subplots()
        old = np.array([before[standing.item].rank for standing in shown])
        new = np.array([standing.rank for standing in shown])
        axis.hlines(heights, old, new, color=_SOFT, lw=2)
        axis.plot(old, heights, "D", color=_HONEST, ms=6, mfc="none", label="all votes")
        axis.plot(new, heights, "o", color=_FLAGGED, ms=5, label="after the audit")
        axis.set_yticks(heights, [standing.item for standing in shown])
        axis.set_ylim(-0.8, len(shown) - 0.2)
        axis.grid(visible=False, axis="y")
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axis.set_xlabel("rank (1 is best)")
        figure.legend(loc="outside lower center", ncols=2, fontsize=9)
        return figure


def draw_burst(burst: BurstScan) -> Figure:
    """Draw by how much the results of each part of the file differ from the others on the same duels."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 2.8), layout="constrained")
        axis = figure.subplots()
        begin, end = (place / PARTS for place in burst.window)
        axis.axhline(0.0, color=_SOFT, lw=1)
        axis.axvspan(begin, end, color=_FLAGGED, alpha=0.15, lw=0)
        middle = (np.arange(PARTS) + 0.5) / PARTS
        inside = (middle > begin) & (middle < end)
        if burst.excess is not None and burst.error is not None:
            for chosen, colour in ((~inside, _HONEST), (inside, _FLAGGED)):
                axis.errorbar(
                    middle[chosen], burst.excess[chosen], 2.0 * burst.error[chosen], fmt="o", color=colour, ms=5, lw=1.2
                )
        axis.set_xlim(0.0, 1.0)
        axis.xaxis.set_major_formatter(PercentFormatter(1.0))
        axis.set_xlabel("votes in the order of " + ("their times" if burst.is_timed else "the file"))
        axis.set_ylabel(f"{'wins' if burst.item else 'agreement'} beyond\nexpected, per vote")
        return figure


def draw_stress(frame: pl.DataFrame, *, attack: str) -> Figure:
    """Draw the target's rank against the size of the attack."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 4.4), layout="constrained")
        axis = figure.subplots()
        for name, (label, colour, dash) in _LINES.items():
            if name in frame.columns:
                axis.plot(frame["size"], frame[name], dash, marker="o", ms=4, color=colour, lw=1.6, label=label)
        axis.invert_yaxis()
        axis.yaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axis.set_ylabel(f"rank of {frame['target'][0]} (1 is best)")
        axis.set_xlabel(f"false votes (attack: {attack})")
        figure.legend(loc="outside lower center", fontsize=9)
        return figure


def _round_numbers(axis: Axis) -> None:
    """Label a logarithmic axis with 1, 2, 5, 10, 20, …."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axis.set_minor_formatter(NullFormatter())


_MAX_ROWS = 60
_FRAGILITY_COLUMNS = ("what changes", "out → in", "votes are", "found", "proven minimum", "share")
_BURST_TITLE = "Did a stretch of votes differ?"
_AFTER = (
    "After the audit, flagged voters do not count, and the others by reliability: less if they vote against the rest, "
    "at random, or push an item. Honest minorities count less there, so publish both rankings."
)
_CHALLENGER_COLUMNS = ("challenger", "votes to drop", "proven minimum", "share")


def advice_section(audit: "Audit | PreferenceAudit") -> Section | None:
    """Build the advice, or None without any."""
    return Section("What to do", audit.advice()) if audit.advice() else None


def voters_section(audit: Audit) -> Section | None:
    """Build the evidence on voters, or None if the file does not say who voted."""
    if audit.evidence is None or audit.voters is None:
        return None
    alike = TextTable(
        ("voter", "voter", "shared duels", "same answers", "expected"),
        [[p["one"], p["other"], f"{p['shared']}", f"{p['same']}", f"{p['expected']:.0f}"] for p in audit.alike()],
        "Pairs of voters with nearly the same answers",
        text=2,
    )
    flagged = audit.voters.filter("flagged").head(10).iter_rows(named=True)
    named = [f"{row['voter']} {evidence_text(row['log10_evidence'])}" for row in flagged]
    camps = " ".join(audit.camps.sentences()) or "No camp is drawn."
    return evidence_section(
        audit.evidence,
        audit.voters,
        _voters_explained(audit, audit.evidence),
        "Every voter: evidence of unusual votes, and agreement with the other voters; camps have a shape of their own.",
        f"Evidence on flagged voters: {', '.join(named) or 'nobody is flagged'}. {camps}",
        [each for each in (alike, tables.camps_table(audit.camps)) if each.rows],
    )


def evidence_section(
    evidence: Evidence,
    voters: pl.DataFrame,
    explained: list[str],
    caption: str,
    told: str,
    groups: Sequence[TextTable] = (),
) -> Section:
    """Build the evidence on each voter: a table of those who are flagged or nearest to it, and a figure of all."""
    flagged = voters.filter("flagged")
    shown = flagged.head(_MAX_ROWS) if len(flagged) else voters.filter(~pl.col("flagged")).head(5)
    if len(flagged) > _MAX_ROWS:
        explained.append(f"Only {_MAX_ROWS} of {len(flagged):,} flagged voters are shown; voters.csv has all of them.")
    title = "Flagged voters" if len(flagged) else "The five voters with the most evidence; none is flagged"
    figure = Drawn(caption, draw_evidence(evidence), alt=f"Scatter plots of every voter. {told}", name="evidence")
    return Section("Voters", explained, [tabulate(VOTERS, shown.to_dicts(), "report", title), *groups], [figure])


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
            f"Voters who see one item so often that they may choose their own duels: {chose:,}. That is no reason to "
            "flag them, but others are judged by a ranking made without them."
        )
    explained += audit.camps.sentences()
    if audit.crowd and evidence.crowd is not None:
        explained.append(
            f"{audit.crowd} Evidence: {evidence_text(evidence.crowd.log_evidence / LOG_10)}. It is on the group, not "
            "on its members."
        )
    return explained


def both_rankings_section(audit: Audit) -> Section:
    """Build the ranking, before and after the audit."""
    table = tables.ranks_table(audit, _MAX_ROWS)
    groups = max(new.component for new in audit.shown.standings)
    explained = [
        "Own range: on average over the items, 95% of true ranks lie in it. Joint ranges are in the ranking's report."
    ]
    if groups > 1:
        explained.append(
            f"The items form {groups} groups that were never compared with each other: ranks are within a group."
        )
    if audit.shown is audit.everyone:
        return Section("Ranking", [*why_unchanged(audit.evidence), *explained], [table])
    shown = audit.ranks()[:_MAX_ROWS]
    moved = ", ".join(f"{new.item} from {old.rank} to {new.rank}" for old, new in shown if old.rank != new.rank)
    figure = Drawn(
        "The longer an item's line, the more its rank depends on how votes count.",
        draw_both_ranks(audit.everyone, audit.shown),
        alt=f"Ranks by all votes and after the audit. Moved: {moved or 'none'}.",
        name="ranks",
    )
    return Section("Ranking before and after the audit", [_AFTER, *explained], [table], [figure])


def burst_section(audit: Audit) -> Section:
    """Build the stretch of votes that differs most."""
    burst = audit.burst
    summary = audit.burst_summary()
    if burst.excess is None:
        return Section(_BURST_TITLE, summary)
    changed = [
        f"Items that clearly {verb} in the stretch: {shortened(items)}."
        for verb, items in (("gained", burst.gained), ("lost", burst.lost))
        if items
    ]
    explained = (
        "Every stretch of up to a quarter of the votes, in "
        + ("the order of their times" if burst.is_timed else "file order")
        + ", was compared with the other votes on the same duels. If voters and contexts differ but no stretch does, "
        f"one is found with a probability of at most {burst.level:.3g}. A few voters who are alone in a stretch cannot "
        "be told from a burst, so they are not reported here."
    )
    if not burst.found:
        return Section(_BURST_TITLE, [*summary, explained])
    what = f"Wins of {burst.item}" if burst.item else "Agreement with the ranking"
    caption = f"{what}, minus what the same duels give on average, per vote, in 20 equal parts (± 2 standard errors)."
    most = int(np.nanargmax(np.abs(burst.excess)))
    figure = Drawn(
        caption,
        draw_burst(burst),
        alt=f"{caption} Largest in part {most + 1}: {burst.excess[most]:+.2f}.",
        name="burst",
    )
    return Section(_BURST_TITLE, [*summary, *changed, explained], figures=[figure])


def fragility_section(audit: Audit) -> Section | None:
    """Build how few votes would change the ranking, or None if nobody examined that."""
    if not audit.fragility:
        return None
    leader = audit.challengers[0].loses if audit.challengers else ""
    challengers = [tables.fragility_cells(result) for result in audit.challengers]
    flagged = ", including those of flagged voters unless a table says otherwise" if audit.trusted_fragility else ""
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
            *([TextTable.of(challengers, _CHALLENGER_COLUMNS, f"To overtake {leader}")] if challengers else []),
        ],
    )


def _fragility_table(results: Sequence[Fragility], caption: str) -> list[TextTable]:
    """Tabulate the results, if there are any."""
    cells = map(tables.fragility_cells, results)
    return [TextTable.of(cells, _FRAGILITY_COLUMNS, caption, text=3)] if results else []


AUDIT_SECTIONS: list[Callable[[Audit], Section | None]] = [
    advice_section,
    voters_section,
    both_rankings_section,
    burst_section,
    fragility_section,
]
"""The sections of an audit's page, in order."""


def audit_sections(audit: Audit) -> list[Section]:
    """Build all sections of the page; those without content are left out."""
    return [section for build in AUDIT_SECTIONS if (section := build(audit)) is not None]


def stress_sections(frame: pl.DataFrame, *, attack: str) -> list[Section]:
    """Build what to do, and the target's rank by the size of the attack, from the frame of `fairduel.votes.stress`."""
    table = tables.stress_table(frame)
    ranks = "; ".join(
        ", ".join(f"{name} {cell}" for name, cell in zip(table.columns, row, strict=True)) for row in table.rows
    )
    figure = Drawn(
        f"Attack: {attack}. Rank 1 is the best.",
        draw_stress(frame, attack=attack),
        alt=f"Ranks: {ranks}.",
        name="stress",
    )
    explained = "Where a line is flat, the false votes achieve nothing; where it moves, they succeed."
    terms = {name: meaning for name, meaning in tables.STRESS_TERMS.items() if name in table.columns}
    return [
        Section("What to do", advise_on_stress(frame)),
        Section("Rank of the target under attack", [explained], [table], [figure], terms=terms),
    ]
