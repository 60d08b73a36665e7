"""The sections and figures of a review's page."""

import math
from collections.abc import Callable, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from fairduel.report.drawing import STYLE, WIDTH
from fairduel.report.page import Drawn, Section
from fairduel.report.text_table import TextTable
from fairduel.report.votes import votes_tables as tables
from fairduel.report.votes.cost_page import cost_section
from fairduel.report.votes.ranking_page import ranking_section
from fairduel.report.votes.votes_tables import short_name
from fairduel.votes.reviewing.planning import NEXT_VOTES, POWER, Need
from fairduel.votes.reviewing.position import BAND, TITLES, Position
from fairduel.votes.reviewing.review import Review
from fairduel.words import counted_noun

MAX_NEEDS = 30
"""A figure of more neighbours would fill several screens."""
_SEPARATED, _NEEDED, _SOFT = "#0072B2", "#D55E00", "#999999"
_MAX_NAME = 24
_LEAST_REACH = 0.03  # of the axis of shares, on either side of ½


def draw_needs(needs: Sequence[Need], votes: int) -> Figure:
    """Draw the votes that separate each item from the next, best on top, next to the present number of votes."""
    shown = [need for need in needs[:MAX_NEEDS] if math.isfinite(need.votes)]
    heights = np.arange(len(shown))[::-1]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 1.5 + 0.24 * len(shown)), layout="constrained")
        axis = figure.subplots()
        for separated, colour, marker, label in (
            (False, _NEEDED, "o", "not separated yet"),
            (True, _SEPARATED, "s", "already separated"),
        ):
            chosen = [place for place, need in enumerate(shown) if need.separated is separated]
            if chosen:
                axis.plot([shown[place].votes for place in chosen], heights[chosen], marker, color=colour, label=label)
        axis.axvline(votes, color=_SOFT, lw=1.2, ls="--", label="votes now")
        axis.set_xscale("log")
        axis.set_yticks(heights, [f"{need.rank}. {short_name(need.item, _MAX_NAME)}" for need in shown])
        axis.set_ylim(-0.8, len(shown) - 0.2)
        axis.set_xlabel("votes that separate it from the next item")
        figure.legend(loc="outside lower center", ncols=2, fontsize=9)
        return figure


def draw_position(position: Position) -> Figure:
    """Draw the share of the item shown first, with its interval, over the band in which it is immaterial."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 1.5), layout="constrained")
        axis = figure.subplots()
        axis.axvspan(0.5 - BAND, 0.5 + BAND, color="#56B4E9", alpha=0.35, lw=0, label="immaterial")
        axis.axvline(0.5, color=_SOFT, lw=0.8)
        reach = [[position.share - position.low], [position.high - position.share]]
        axis.errorbar([position.share], [0.0], xerr=reach, fmt="o", color=_NEEDED, capsize=3, label="95% interval")
        axis.set_yticks([])
        axis.grid(visible=False, axis="y")
        widest = max(_LEAST_REACH, 1.15 * (position.high - 0.5), 1.15 * (0.5 - position.low))
        axis.set_xlim(0.5 - widest, 0.5 + widest)
        axis.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0 if widest > 0.06 else 1))
        axis.set_xlabel("share of the item shown first, if both are equal")
        figure.legend(loc="outside upper center", ncols=2, fontsize=9)
        return figure


_MAX_ROWS = 30
_MAX_DUELS = 10


def next_section(review: Review) -> Section | None:
    """Build the duels to ask next, or None if nothing is left to ask."""
    if not len(review.plan.duels):
        return None
    explained = (
        f"How to spend the next {NEXT_VOTES} votes to decide {review.plan.question}: each vote goes to the pair that "
        "reduces the uncertainty most. They are worth as much as "
        f"{counted_noun(round(review.plan.worth), 'vote')} collected as before. Only the noise of single votes is "
        "counted: if voters or contexts differ, ask new ones. next-duels.csv has all pairs."
    )
    return Section("What to ask next", [explained], [tables.duels_table(review, _MAX_DUELS)])


def needs_section(review: Review) -> Section | None:
    """Build the votes needed, or None without neighbours."""
    needs, present = review.plan.needs, review.plan.present
    if not needs:
        return None
    explained = [
        f"Votes in all (now {present['votes']:,}) that separate an item from the next one with probability "
        f"{POWER:.0%}, at the level that the ranking uses for all items together, if the estimated gap is right and "
        "new votes come from the same mixture of duels. The gap is uncertain, so this is a rough number; almost equal "
        "items need very many votes. More votes help only if voters and contexts grow in number, too: fewest "
        "voters (contexts) is what it takes at least, with any number of votes."
    ]
    if len(needs) > _MAX_ROWS:
        explained.append(f"Only the first {_MAX_ROWS} of {len(needs):,} are shown; votes-needed.csv has all of them.")
    finite = [need for need in needs[:MAX_NEEDS] if math.isfinite(need.votes)]
    figures = []
    if finite:
        told = ", ".join(f"{need.item} {need.votes:,.0f}" for need in finite[:10])
        caption = f"Votes that separate each item from the next, best first ({POWER:.0%} power)."
        alt = f"Votes that separate each item from the next: {told}. Votes now: {present['votes']:,}."
        figures.append(Drawn(caption, draw_needs(needs, present["votes"]), alt=alt, name="votes-needed"))
    return Section("Votes needed", explained, [tables.needs_table(review, _MAX_ROWS)], figures)


def position_section(review: Review) -> Section:
    """Build the advantage of being shown first."""
    position = review.position
    if position.verdict == "unknown":
        return Section("Position", [position.sentence])
    item, share = position.most_shown
    explained = [
        position.sentence,
        f"The advantage is fitted together with the scores; the raw share of the first item is "
        f"{position.raw_share:.1%}. From {0.5 - BAND:.0%} to {0.5 + BAND:.0%} it is called immaterial: that "
        "moves a score by at most 0.04, its standard error after 2,500 votes. The interval allows for "
        + (f"{position.groups:,} voters who may lean to one side." if position.has_voters else "independent votes."),
        f"Position hardly favours an item that is shown first half of the time. Farthest from that is {item}: first in "
        f"{share:.0%} of its votes.",
    ]
    moved = tables.moved_table(review, _MAX_ROWS)
    figure = Drawn(
        "The advantage of being shown first.",
        draw_position(position),
        alt=position.sentence,
        name="position",
    )
    return Section("Position", explained, [moved] if moved.rows else [], [figure])


def ties_section(review: Review) -> Section:
    """Build what ties change."""
    better = review.ties.better
    explained = [review.ties.sentence]
    if better is None:
        return Section("Ties", explained)
    explained.append(
        "Davidson's and Rao and Kupper's models give a tie its own probability, largest between equal items. "
        f"{TITLES[better.model]} fits these votes better (higher log-likelihood, as many parameters). The "
        "scores here are plain maximum likelihood, so that only the meaning of a tie differs; ties.csv has all ranks."
    )
    return Section("Ties", explained, [tables.ties_table(review)])


def cycles_section(review: Review) -> Section:
    """Build cycles found and predicted."""
    cycles = review.cycles
    if not cycles.triples:
        return Section("Cycles", [cycles.sentence])
    explained = [
        cycles.sentence,
        "A cycle: a majority prefers a to b, another b to c, another c to a. Few votes on a pair give some by chance; "
        f"the prediction comes from {cycles.simulations} files simulated from one score per item, on the same pairs.",
    ]
    if cycles.items < len(review.votes.items):
        explained.append(f"Only the {cycles.items:,} items with the most votes are counted.")
    if cycles.strongest is not None:
        one, two, three = cycles.strongest
        explained.append(f"The clearest cycle: {one} beats {two}, {two} beats {three}, {three} beats {one}.")
    return Section("Cycles", explained, [tables.cycles_table(cycles)])


def coverage_section(review: Review) -> Section:
    """Build what was compared, and how evenly."""
    found = review.coverage
    item, fewest = found.fewest
    rows = [
        ["votes that count", f"{found.votes:,.0f}"],
        ["pairs with votes", f"{found.pairs:,} of {found.possible_pairs:,}"],
        ["groups of items with votes between them", f"{found.groups:,}"],
        ["Gini index of votes per item", f"{found.gini_items:.2f}"],
        ["Gini index of votes per pair", f"{found.gini_pairs:.2f}"],
        [f"fewest votes of an item ({item})", f"{fewest:,.0f}"],
        ["median votes of an item", f"{found.median_votes:,.0f}"],
        *([f"design effect of {name}", f"{effect:.2f}"] for name, effect in found.design_effects.items()),
    ]
    explained = [
        found.sentence,
        "Gini index: 0 if votes are spread evenly, near 1 if few items or pairs have nearly all. Design effect: the "
        "factor by which shared tastes enlarge the variance of a difference between neighbours; errors grow by its "
        "square root.",
    ]
    return Section("Coverage", explained, [TextTable(("", "value"), rows, "Coverage")])


def ranks_section(review: Review) -> Section:
    """Build the ranking with certificates."""
    return ranking_section(review.ranking, review.votes)


def campaign_section(review: Review) -> Section | None:
    """Build the cheapest campaign found, or None if none was searched."""
    return None if review.cost is None else cost_section(review.cost)


REVIEW_SECTIONS: list[Callable[[Review], Section | None]] = [
    ranks_section,
    campaign_section,
    next_section,
    needs_section,
    position_section,
    ties_section,
    cycles_section,
    coverage_section,
]
"""The sections of a review's page, in order."""


def review_sections(review: Review) -> list[Section]:
    """Build all sections that have something to say."""
    return [section for build in REVIEW_SECTIONS if (section := build(review)) is not None]
