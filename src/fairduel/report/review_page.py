"""The sections of a review's page."""

import math
from collections.abc import Callable

from fairduel.report import review_tables as tables
from fairduel.report.cost_page import cost_section
from fairduel.report.figures import NARROW
from fairduel.report.page import Drawn, Section
from fairduel.report.review_figures import MAX_NEEDS, draw_needs, draw_position
from fairduel.report.text_table import TextTable
from fairduel.report.votes_page import ranking_section
from fairduel.votes.planning import NEXT_VOTES, POWER
from fairduel.votes.position import BAND
from fairduel.votes.reviewing import Review
from fairduel.votes.tie_models import TITLES
from fairduel.votes.words import counted_noun

_MAX_ROWS = 30
_MAX_DUELS = 10


def next_section(review: Review) -> Section | None:
    """Build the duels to ask next, or None if nothing is left to ask."""
    if not len(review.plan.duels):
        return None
    explained = (
        f"How to spend the next {NEXT_VOTES} votes to decide {review.plan.question}: each vote goes to the pair that "
        "reduces the uncertainty most. They are worth as much as "
        f"{counted_noun(round(review.plan.worth), 'vote')} spread as until now. Only the noise of single votes is "
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
        drawn = (draw_needs(needs, present["votes"], **size) for size in ({}, {"width": NARROW}))
        figure, narrow = drawn
        caption = f"Votes that separate each item from the next, best first ({POWER:.0%} power)."
        alt = f"Votes that separate each item from the next: {told}. Votes now: {present['votes']:,}."
        figures.append(Drawn(caption, figure, alt=alt, name="votes-needed", narrow=narrow))
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
        narrow=draw_position(position, width=NARROW),
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
