"""Tables of a review, shared by its page and the terminal."""

import math

from fairduel.report.text_table import TextTable
from fairduel.votes.cycles import Cycles
from fairduel.votes.planning import NEXT_VOTES, Need, rough
from fairduel.votes.reviewing import Review
from fairduel.votes.tie_models import TITLES, TieRule

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
    columns = ("a tie is", "leader", "ranks that change", "largest change", "parameter", "log-likelihood")
    return TextTable.of(map(_rule_cells, review.ties.rules), columns, "What a tie means", text=2)


def _rule_cells(rule: TieRule) -> dict[str, str]:
    name = "ν" if rule.model == "davidson" else "θ"
    return {
        "a tie is": TITLES[rule.model],
        "leader": rule.leader,
        "ranks that change": f"{rule.moved:,}",
        "largest change": f"{rule.largest_move:,} ({rule.mover})" if rule.mover else "–",
        "parameter": "–" if math.isnan(rule.parameter) else f"{name} = {rule.parameter:.2f}",
        "log-likelihood": "–" if math.isnan(rule.log_likelihood) else f"{rule.log_likelihood:,.1f}".replace("-", "−"),
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
