"""Table cells about recorded votes, shared by pages and terminal."""

import math
from collections.abc import Mapping
from typing import Any

import polars as pl

from fairduel.report.text_table import TextTable
from fairduel.votes.auditing import Audit
from fairduel.votes.certificates import Certificate
from fairduel.votes.fragile import Fragility
from fairduel.votes.influence import Explanation
from fairduel.votes.manipulation import Manipulation
from fairduel.votes.ranking import Ranking, Standing
from fairduel.votes.voters import evidence_text
from fairduel.votes.words import shortened

NOT_COMPARED = "not compared"
CERTIFIED = ("false votes", "lying voters")
"""Columns of certificates."""
_TITLE = 16  # characters of a name in a column's title
_STRESS_TITLES = {
    "size": "false votes",
    "voters": "liars",
    "rank_plain": "plain rank",
    "rank_weighted": "weighted rank",
    "rank_ours": "our rank",
    "rank_crowd_bt": "Crowd-BT",
    "rank_am_elo": "am-ELO",
    "rank_reliability": "reliability",
    "rank_spectral": "spectral",
    "liars_flagged": "liars flagged",
    "others_flagged": "others flagged",
    "fake_votes_left": "false votes left",
}
_COST_NUMBERS = {
    "accounts": "accounts",
    "votes": "votes",
    "false_votes": "false votes",
    "seeds_succeeded": "seeds",
    "seeds_doubted": "doubted",
    "accounts_without_audit": "accounts without audit",
}


def standing_cells(standing: Standing, *, digits: int) -> dict[str, str]:
    """Format one item of a ranking; some cells have a second, shorter title for the terminal."""
    return {
        "group": standing.group,
        "item": standing.item,
        "rank": f"{standing.rank}",
        "range": rank_range(standing),
        "score": f"{standing.score:+.{digits}f}",
        "beats the average": f"{standing.chance:.0%}",
        "best": f"{standing.best:.3f}",
        "votes": f"{standing.games:,.0f}",
        "won": f"{standing.win_rate:.0%}" if standing.games else "–",
        **dict.fromkeys(("error", "± error"), f"{standing.error:.{digits}f}"),
        **dict.fromkeys(("weight", "mean weight"), f"{standing.mean_weight:.2f}"),
        **dict.fromkeys(("plain", "plain rank"), f"{standing.plain_rank}"),
    }


def effects_table(ranking: Ranking) -> TextTable:
    """Tabulate how much the features per vote decide."""
    rows = [[each.feature, f"{each.coefficient:+.3f}", f"{each.error:.3f}"] for each in ranking.effects]
    return TextTable(["feature", "effect", "error"], rows, "Features per vote")


def certificate_cells(certificate: Certificate | None) -> dict[str, str]:
    """Format the bounds of a certificate, if there is one.

    >>> certificate_cells(Certificate("tea", "1", 1, 41, 29, 1, 1, "milk"))
    {'false votes': '29–41', 'lying voters': '1'}
    """
    if certificate is None:
        return dict.fromkeys(CERTIFIED, "–")
    votes = _bounds_text(certificate.votes_proven, certificate.votes_found)
    return dict(zip(CERTIFIED, (votes, _bounds_text(certificate.voters_proven, certificate.voters_found)), strict=True))


def _bounds_text(proven: int | None, found: int | None) -> str:
    if proven is None:
        return "–"
    if found is None:
        return f"≥ {proven:,}"
    return f"{proven:,}" if proven == found else f"{proven:,}–{found:,}"


def ranking_cells(ranking: Ranking, *, digits: int) -> list[dict[str, str]]:
    """Format all items of a ranking, with their certificates."""
    certificates = {certificate.item: certificate for certificate in ranking.certificates}
    return [
        standing_cells(standing, digits=digits) | certificate_cells(certificates.get(standing.item))
        for standing in ranking.standings
    ]


def certified_columns(ranking: Ranking) -> tuple[str, ...]:
    """Return the columns of certificates that have anything to say."""
    if any(certificate.voters_proven is not None for certificate in ranking.certificates):
        return CERTIFIED
    return CERTIFIED[:1] if ranking.certificates else ()


def certificates_explained(ranking: Ranking) -> str:
    """Explain the columns of certificates; empty if there are none."""
    columns = ", ".join(certified_columns(ranking)).capitalize()
    return columns and f"{columns}: how many it takes to change the rank, from the proven minimum to the fewest found."


def rank_range(standing: Standing) -> str:
    """Format the interval of a rank.

    >>> from types import SimpleNamespace
    >>> rank_range(SimpleNamespace(rank_low=2, rank_high=3))
    '2–3'
    """
    low, high = standing.rank_low, standing.rank_high
    return f"{low}" if low == high else f"{low}–{high}"


def voter_cells(voter: Mapping[str, Any]) -> dict[str, str]:
    """Format one row of ``Audit.voters``."""
    known = voter["agreement"] is not None
    return {
        "voter": voter["voter"],
        "why": voter["why"] or "not flagged",
        "evidence": evidence_text(voter["log10_evidence"]),
        "votes": f"{voter['votes']:,}",
        "agreement": f"{voter['agreement']:.0%}" if known else "–",
        "95% interval": f"{voter['agreement_low']:.0%}–{voter['agreement_high']:.0%}" if known else "–",
    }


def flagged_cells(voters: pl.DataFrame) -> list[dict[str, str]]:
    """Format the flagged voters of ``Audit.voters``."""
    individuals = voters.filter("flagged")
    return [voter_cells(row) for row in individuals.to_dicts()]


def ranks_table(audit: Audit, most: int) -> TextTable:
    """Tabulate the ``most`` best items, by all votes and after the audit; an item may have no rank then."""
    several = any(new.component > 1 for new in audit.shown.standings)
    columns = ["item", *(["group"] if several else []), "rank", "range"]
    if audit.someone_flagged:
        columns[-2:] = ["rank after the audit", "range", "rank by all votes", "range by all votes"]
    without = {} if audit.burst.without is None else {each.item: each.rank for each in audit.burst.without.standings}
    columns += ["rank without the stretch"] if without else []
    cells = []
    for old, new in audit.ranks()[:most]:
        left = new.item in audit.left_alone
        rank, ranks = (NOT_COMPARED, "–") if left else (f"{new.rank}", rank_range(new))
        cells.append(
            {
                "item": new.item,
                "group": new.group,
                **dict.fromkeys(("rank", "rank after the audit"), rank),
                "range": ranks,
                "rank by all votes": f"{old.rank}",
                "range by all votes": rank_range(old),
                "rank without the stretch": f"{without.get(new.item, '–')}",
            }
        )
    return TextTable.of(cells, columns, "Ranking")


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
    rows = [
        [NOT_COMPARED if row[name] is None else f"{round(row[name], 1):,}" for name in titles]
        for row in frame.to_dicts()
    ]
    return TextTable(list(titles.values()), rows)


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
            "gap falls by": _fall(each.falls_by),
        }
        for each in found.most_voters
    )
    columns = ("voter", "votes", for_it, "gap without", "gap falls by")
    return TextTable.of(cells, columns, "Voters who move the gap most")


def vote_influence_table(found: Explanation) -> TextTable:
    """Tabulate the kinds of votes that move the gap most."""
    cells = (
        {
            "vote": each.says,
            "rows": shortened([f"{row}" for row in each.rows]),
            "votes": f"{len(each.rows):,}",
            "gap falls by": _fall(each.falls_by),
            "by all of them": _fall(each.falls_by_all),
        }
        for each in found.most_votes
    )
    columns = ("vote", "rows", "votes", "gap falls by", "by all of them")
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


def _fall(falls_by: float) -> str:
    return NOT_COMPARED if math.isnan(falls_by) else f"{falls_by:+.4f}"
