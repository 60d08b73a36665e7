"""Table cells about recorded votes, shared by pages and terminal."""

import math
from typing import Any

import polars as pl

from fairduel.report.text_table import TextTable
from fairduel.votes.attacking.manipulation import Manipulation
from fairduel.votes.auditing.audit import Audit
from fairduel.votes.auditing.camps import Camps
from fairduel.votes.certifying.explain import Explanation
from fairduel.votes.certifying.search import Fragility
from fairduel.votes.ranking.rank import Ranking
from fairduel.votes.ranking.standings import rank_range
from fairduel.votes.reviewing.cycles import Cycles
from fairduel.votes.reviewing.planning import NEXT_VOTES, Need
from fairduel.votes.reviewing.position import TITLES, TieRule
from fairduel.votes.reviewing.review import Review
from fairduel.words import rough, shortened

NOT_COMPARED = "not compared"
_TITLE = 16  # characters of a name in a column's title
_STRESS_TITLES = {
    "size": "false votes",
    "voters": "liars",
    "rank_plain": "plain rank",
    "rank_weighted": "weighted rank",
    "rank_ours": "our rank",
    "liars_flagged": "liars flagged",
    "others_flagged": "others flagged",
    "fake_votes_left": "false votes left",
}
STRESS_TERMS = {
    "plain rank": "by plain Bradley–Terry, where every vote counts fully",
    "weighted rank": "votes on items about which little is known count less",
    "our rank": "after the audit: flagged voters do not count, and others by reliability",
    "others flagged": "voters in the file who are flagged only because of the attack",
    "false votes left": "what the false votes still count after the audit",
}
"""What the columns of a stress test mean."""
_COST_NUMBERS = {
    "accounts": "accounts",
    "votes": "votes",
    "false_votes": "false votes",
    "seeds_succeeded": "seeds",
    "seeds_doubted": "doubted",
    "accounts_without_audit": "accounts without audit",
}


def effects_table(ranking: Ranking) -> TextTable:
    """Tabulate how much the features per vote decide."""
    rows = [[each.feature, f"{each.coefficient:+.3f}", f"{each.error:.3f}"] for each in ranking.effects]
    return TextTable(["feature", "effect", "error"], rows, "Features per vote")


def ranks_table(audit: Audit, most: int) -> TextTable:
    """Tabulate the ``most`` best items, by all votes and after the audit; an item may have no rank then."""
    several = any(new.component > 1 for new in audit.shown.standings)
    columns = ["item", *(["group"] if several else []), "rank", "own range"]
    if audit.shown is not audit.everyone:
        columns[-2:] = ["rank after the audit", "own range", "rank by all votes", "own range by all votes"]
    without = {} if audit.burst.without is None else {each.item: each.rank for each in audit.burst.without.standings}
    columns += ["rank without the stretch"] if without else []
    cells = []
    for old, new in audit.ranks()[:most]:
        left = new.item in audit.left_alone
        rank, ranks = (NOT_COMPARED, "–") if left else (f"{new.rank}", rank_range(new.own_low, new.own_high))
        cells.append(
            {
                "item": new.item,
                "group": new.group,
                **dict.fromkeys(("rank", "rank after the audit"), rank),
                "own range": ranks,
                "rank by all votes": f"{old.rank}",
                "own range by all votes": rank_range(old.own_low, old.own_high),
                "rank without the stretch": f"{without.get(new.item, '–')}",
            }
        )
    return TextTable.of(cells, columns, "Ranking")


def camps_table(camps: Camps) -> TextTable:
    """Tabulate the camps, with the order of those that have one."""
    rows = [
        [
            camp.name,
            shortened(camp.order) if camp.order else "–",
            f"{camp.size:,}",
            rank_range(*camp.interval),
            f"{camp.agreement:.0%}",
        ]
        for camp in camps.found
    ]
    return TextTable(["camp", "their order", "voters", "95% interval", "the rest predict"], rows, "Camps", text=2)


def fragility_cells(result: Fragility) -> dict[str, str]:
    """Format how many votes change the leader or the top k."""
    found = "none found" if result.found is None else f"{result.found:,}"
    return {
        "what changes": f"{result.what} of group {result.group}" if result.group else result.what,
        "out → in": f"{result.loses} → {result.gains}",
        "challenger": result.gains,
        "votes are": result.how,
        "found": found,
        "votes to drop": found,
        "proven minimum": f"{result.at_least:,}",
        "of": f"{result.votes:,}",
        "share": "–" if result.found is None else f"{result.found / result.votes:.2%}",
    }


def stress_table(frame: pl.DataFrame) -> TextTable:
    """Tabulate the frame of :func:`fairduel.votes.stress`, one row per attack size."""
    titles = {name: title for name, title in _STRESS_TITLES.items() if name in frame.columns}
    rows = [[_stressed(row, name) for name in titles] for row in frame.to_dicts()]
    return TextTable(list(titles.values()), rows)


def _stressed(row: dict[str, Any], name: str) -> str:
    """Return a median over the runs, with the extremes in brackets if they differ."""
    typical, best, worst = (
        NOT_COMPARED if value is None else f"{round(value, 1):,}"
        for value in (row[name], row.get(f"{name}_best", row[name]), row.get(f"{name}_worst", row[name]))
    )
    return typical if best == worst else f"{typical} ({best}–{worst})"


def cost_table(cost: Manipulation) -> TextTable:
    """Tabulate the cheapest campaigns found, one row per limit on the votes of a voter."""
    rows = [
        [
            f"{row['most_votes_each']:,}",
            row["tactic"] or "none found",
            *("–" if row[name] is None else f"{row[name]:,}" for name in _COST_NUMBERS),
        ]
        for row in cost.to_frame().to_dicts()
    ]
    return TextTable(["votes allowed per voter", "campaign", *_COST_NUMBERS.values()], rows, text=2)


def parts_table(found: Explanation, most: int) -> TextTable:
    """Tabulate the parts of a gap: direct duels, then the ``most`` other items with the largest shares."""
    won = [f"{short_name(name, _TITLE)} won" for name in (found.above, found.below)]
    cells = [
        {
            "evidence": "direct duels",
            "share": f"{found.direct:+.3f}",
            won[0]: _of(found.won, found.votes),
            won[1]: _of(found.votes - found.won, found.votes),
        }
    ]
    cells += [
        {
            "evidence": f"through {each.item}",
            "share": f"{each.share:+.3f}",
            won[0]: _of(each.above_won, each.above_votes),
            won[1]: _of(each.below_won, each.below_votes),
        }
        for each in found.through[:most]
    ]
    left = found.through[most:]
    rest = {won[0]: "", won[1]: ""}
    if left:
        name = f"through {len(left):,} other item{'s' if len(left) > 1 else ''}"
        cells.append({"evidence": name, "share": f"{sum(each.share for each in left):+.3f}", **rest})
    cells.append({"evidence": "gap", "share": f"{found.gap:+.3f}", **rest})
    return TextTable.of(cells, ("evidence", "share", *won), "Where the gap comes from")


def voter_influence_table(found: Explanation) -> TextTable:
    """Tabulate the voters who move the gap most."""
    for_it = f"for {short_name(found.above, _TITLE)}, directly"
    cells = (
        {
            "voter": each.voter,
            "votes": f"{each.votes:,}",
            for_it: _of(each.above_won, each.direct_votes),
            "gap without": _left(found, each.falls_by),
            "gap changes by": _change(each.falls_by),
        }
        for each in found.most_voters
    )
    columns = ("voter", "votes", for_it, "gap without", "gap changes by")
    return TextTable.of(cells, columns, "Voters who move the gap most")


def vote_influence_table(found: Explanation) -> TextTable:
    """Tabulate the kinds of votes that move the gap most."""
    cells = (
        {
            "vote": each.says,
            "rows": shortened([f"{row}" for row in each.rows]),
            "votes": f"{len(each.rows):,}",
            "gap changes by": _change(each.falls_by),
            "by all of them": _change(each.falls_by_all),
        }
        for each in found.most_votes
    )
    columns = ("vote", "rows", "votes", "gap changes by", "by all of them")
    return TextTable.of(cells, columns, "Votes that move the gap most", text=2)


def short_name(name: str, most: int = 32) -> str:
    """Shorten a name for a figure or a title.

    >>> short_name("Alder"), short_name("Willow", 4)
    ('Alder', 'Wil…')
    """
    return name if len(name) <= most else name[: most - 1] + "…"


def _of(won: float, votes: float) -> str:
    return f"{won:,.6g} of {votes:,.6g}" if votes else "–"


def _left(found: Explanation, falls_by: float) -> str:
    return NOT_COMPARED if math.isnan(falls_by) else f"{found.gap - falls_by:+.3f}"


def _change(falls_by: float) -> str:
    return NOT_COMPARED if math.isnan(falls_by) else f"{-falls_by:+.4f}"


OUT_OF_REACH = "out of reach"


def needs_table(review: Review, most: int) -> TextTable:
    """Tabulate what separates the ``most`` best pairs of neighbours."""
    needs = review.plan.needs[:most]
    several = len({need.group for need in review.plan.needs}) > 1
    known = [name for name in ("voters", "contexts") if any(not math.isnan(getattr(n, name)) for n in needs)]
    columns = [
        "item",
        "next item",
        *(["group"] if several else []),
        "rank",
        "gap",
        "± error",
        "separated",
        "votes needed",
    ]
    columns += [column for name in known for column in (f"{name} needed", f"fewest {name}")]
    cells = (_need_cells(need) for need in needs)
    return TextTable.of(cells, columns, "Votes needed to separate neighbours", text=2)


def _need_cells(need: Need) -> dict[str, str]:
    numbers = {
        "votes needed": need.votes,
        "voters needed": need.voters,
        "fewest voters": need.fewest_voters,
        "contexts needed": need.contexts,
        "fewest contexts": need.fewest_contexts,
    }
    return {
        "group": need.group,
        "rank": f"{need.rank}",
        "item": need.item,
        "next item": need.next_item,
        "gap": f"{need.gap:.3f}",
        "± error": f"{need.error:.3f}",
        "separated": "yes" if need.separated else "no",
        **{name: "–" if need.separated else _number(value) for name, value in numbers.items()},
    }


def _number(value: float) -> str:
    return OUT_OF_REACH if math.isinf(value) else "–" if math.isnan(value) else rough(value)


def duels_table(review: Review, most: int) -> TextTable:
    """Tabulate the ``most`` useful duels to ask next."""
    rows = [[row[0], row[1], f"{row[2]}", f"{row[3]:,}"] for row in review.plan.duels.head(most).rows()]
    columns = ("ask", "against", f"of the next {NEXT_VOTES} votes", "votes now")
    return TextTable(columns, rows, "Duels to ask next", text=2)


def ties_table(review: Review) -> TextTable:
    """Tabulate the treatments of ties."""
    columns = ("a tie is", "highest score", "ranks that change", "largest change", "parameter", "log-likelihood")
    return TextTable.of(map(_rule_cells, review.ties.rules), columns, "What a tie means", text=2)


def _rule_cells(rule: TieRule) -> dict[str, str]:
    name = "ν" if rule.model == "davidson" else "θ"
    return {
        "a tie is": TITLES[rule.model],
        "highest score": rule.leader,
        "ranks that change": f"{rule.moved:,}",
        "largest change": f"{rule.largest_move:,} ({rule.mover})" if rule.mover else "–",
        "parameter": "–" if math.isnan(rule.parameter) else f"{name} = {rule.parameter:.2f}",
        "log-likelihood": "–" if math.isnan(rule.log_likelihood) else f"{rule.log_likelihood:,.1f}",
    }


def cycles_table(cycles: Cycles) -> TextTable:
    """Tabulate cycles found and predicted."""
    return TextTable(
        ("", "cycles", "share of triples"),
        [
            ["found", f"{cycles.found:,}", f"{cycles.found / cycles.triples:.2%}"],
            ["predicted", f"{cycles.predicted:,.0f}", f"{cycles.predicted / cycles.triples:.2%}"],
            [
                "predicted, 95% interval",
                f"{cycles.low:,.0f}–{cycles.high:,.0f}",
                f"{cycles.low / cycles.triples:.2%}–{cycles.high / cycles.triples:.2%}",
            ],
        ],
        "Cycles",
    )


def moved_table(review: Review, most: int) -> TextTable:
    """Tabulate the ranks that change if position is fitted."""
    rows = [[item, f"{before}", f"{after}"] for item, before, after in review.position.moved[:most]]
    return TextTable(("item", "rank", "rank without position"), rows, "Ranks that position changes")
