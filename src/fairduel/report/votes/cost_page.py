"""The section and the figure on the cost of manipulation."""

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, NullLocator, StrMethodFormatter

from fairduel.report.drawing import STYLE, WIDTH
from fairduel.report.page import Drawn, Section
from fairduel.report.votes.votes_tables import cost_table
from fairduel.votes.attacking.manipulation import Manipulation

_AUDITED, _PLAIN, _SOFT = "#D55E00", "#0072B2", "#999999"
_TACTICS = {
    "head-to-head": "false wins of the item over the leader",
    "promote": "false wins of the item over opponents drawn as often as they occur",
    "demote": "false losses of the leader to such opponents",
    "mixed": "promote and demote by turns, each account half of either",
    "omnipresent": "false votes on duels without the item, chosen to lift it",
    "clones": "as promote, but all accounts cast the same votes",
}


def cost_section(cost: Manipulation) -> Section:
    """Build the cheapest campaigns found, by how many votes a voter may cast."""
    explained = [
        f"What would it take to put {cost.item} first in place of {cost.leader}? A campaign succeeds if the item leads "
        "the ranking by all votes (after the audit, if that reports somebody anyway), and the audit reports no voter, "
        "pair or crowd that it does not report without the campaign, with at least "
        f"{cost.settings['seeds_needed']} of {len(cost.settings['seeds'])} seeds.",
        "Each row has the fewest accounts found that succeed within a limit on votes per voter. Their other votes look "
        "honest. A lower limit demands more accounts; checking who signs up, so that there are fewer accounts, demands "
        "more votes of each. Doubted: the number of these seeds with which another item is first if votes count by how "
        "reliable their voters are, although the audit reports nobody new.",
    ]
    if not cost.voters_known:
        return Section("Cost of manipulation", cost.summary(), terms=_TACTICS)
    table = cost_table(cost)
    numbers = "; ".join(
        ", ".join(f"{n} {cell}" for n, cell in zip(table.columns, row, strict=True)) for row in table.rows
    )
    figure = Drawn(
        "Fewest false accounts that put the item first, by how many votes a voter may cast.",
        draw_cost(cost),
        alt=f"False accounts by votes allowed per voter. {numbers}.",
        name="cost",
    )
    return Section("Cost of manipulation", explained, [table], [figure], terms=_TACTICS)


def draw_cost(cost: Manipulation) -> Figure:
    """Draw the fewest accounts found against the votes allowed per voter, with and without the audit."""
    frame, most = cost.to_frame(), cost.limits.voters
    allowed = frame["most_votes_each"].to_list()
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 4.2), layout="constrained")
        axis = figure.subplots()
        axis.axhline(most, color=_SOFT, ls="--", lw=1, label=f"limit: {most:,} new voters")
        if cost.plain_votes:
            axis.plot(
                allowed, frame["accounts_without_audit"], "--D", color=_PLAIN, ms=5, mfc="none",
                label="no audit, plain Bradley–Terry",
            )  # fmt: skip
        axis.plot(allowed, frame["accounts"], "-o", color=_AUDITED, ms=6, lw=1.6, label="not reported by the audit")
        for found in cost.found:
            axis.annotate(
                f"{found.campaign.votes:,} votes",
                (found.campaign.votes_each, found.campaign.accounts),
                xytext=(5, 5),
                textcoords="offset points",
                ha="left",
                fontsize=8,
                color=_AUDITED,
            )
        missing = frame.filter(frame["accounts"].is_null())["most_votes_each"]
        axis.plot(missing, [most] * len(missing), "^", color=_AUDITED, ms=8, label="none found within the limit")
        axis.margins(x=0.08)
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xticks(allowed)
        axis.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axis.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axis.xaxis.set_minor_locator(NullLocator())
        axis.yaxis.set_minor_formatter(NullFormatter())
        axis.set_ylim(0.8, 2.0 * max(most, 1))
        axis.set_xlabel("votes allowed per voter")
        axis.set_ylabel("false accounts needed")
        figure.legend(loc="outside lower center", fontsize=9)
        return figure
