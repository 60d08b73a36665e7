"""The sections of an explanation's page."""

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from fairduel.report.drawing import STYLE, WIDTH
from fairduel.report.page import Drawn, Section
from fairduel.report.votes.votes_tables import parts_table, short_name, vote_influence_table, voter_influence_table
from fairduel.votes.certifying.explain import Explanation

_MAX_ROWS = 60
_MAX_BARS = 12
_FOR, _AGAINST, _TOTAL = "#0072B2", "#D55E00", "#999999"


def explain_sections(found: Explanation) -> list[Section]:
    """Build the page: where the gap comes from, then the voters and votes that move it most."""
    parts = ", ".join(f"{each.item} {each.share:+.2f}" for each in found.through[:_MAX_BARS])
    figure = Drawn(
        f"Parts of the gap between {found.above} and {found.below}, in log-odds.",
        draw_parts(found),
        alt=f"Direct duels {found.direct:+.2f}, {parts or 'no other items'}; together {found.gap:+.2f}.",
        name="parts",
    )
    evidence = Section(
        "Where the gap comes from",
        [
            "Every vote has a share of the gap, and the shares add up to it. Direct: votes between the two. Through "
            "another item: votes that compare it with one of them; a vote between two other items counts half for "
            "each. Through an item, the upper one gains if it did better against that item than the lower one did, "
            "given all other votes. ± is one standard error.",
        ],
        [parts_table(found, _MAX_ROWS)],
        [figure],
    )
    voters, votes = voter_influence_table(found), vote_influence_table(found)
    sections = [evidence]
    if voters.rows:
        sections.append(
            Section(
                "Voters",
                ["The gap without each voter, by a refit with the same weights. Influence is no sign of dishonesty."],
                [voters],
            )
        )
    return [
        *sections,
        Section(
            "Votes",
            [
                "The gap without one such vote, and without all of them, by refits. Votes with the same answer and "
                "weight have the same influence; influence.csv lists every vote.",
            ],
            [votes],
        ),
    ]


def draw_parts(found: Explanation) -> Figure:
    """Draw the parts of the gap as bars, direct duels first and the total last."""
    shown, rest = found.through[:_MAX_BARS], found.through[_MAX_BARS:]
    bars = [("direct duels", found.direct), *((f"through {each.item}", each.share) for each in shown)]
    if rest:
        bars.append((f"through {len(rest)} other items", sum(each.share for each in rest)))
    names, values = zip(*bars, strict=True)
    heights = np.arange(len(bars) + 1)[::-1]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 1.2 + 0.28 * len(heights)), layout="constrained")
        axis = figure.subplots()
        colours = [*(_FOR if value >= 0.0 else _AGAINST for value in values), _TOTAL]
        axis.barh(heights, [*values, found.gap], color=colours, height=0.65)
        axis.errorbar(found.gap, 0.0, xerr=found.error, color="black", capsize=3, lw=1.2)
        axis.axvline(0.0, color=_TOTAL, lw=0.8)
        axis.set_yticks(heights, [*map(short_name, names), "gap ± error"])
        axis.grid(visible=False, axis="y")
        axis.set_xlabel(f"for {short_name(found.above)}, in log-odds")
        return figure
