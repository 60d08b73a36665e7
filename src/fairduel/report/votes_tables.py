"""Tables about recorded votes, as text: the page and the terminal show the same cells."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import polars as pl

from fairduel.votes.fragility import Fragility
from fairduel.votes.ranking import Standing
from fairduel.votes.voters import evidence_text

NOT_COMPARED = "not compared"
_STRESS_TITLES = {
    "size": "false votes",
    "voters": "liars",
    "rank_plain": "rank, plain",
    "rank_weighted": "rank, weights",
    "rank_set_aside": "rank, flagged set aside",
    "liars_flagged": "liars flagged",
    "others_flagged": "others flagged",
    "fake_votes_left": "false votes left",
}


@dataclass(frozen=True)
class TextTable:
    """A table: its first ``text`` columns are words, the others numbers that are written already."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    text: int = 1

    @classmethod
    def of(cls, cells: Iterable[Mapping[str, str]], columns: Sequence[str], caption: str = "", text: int = 1) -> Self:
        """A row for each of the ``cells``, which may have more columns than are wanted.

        >>> TextTable.of([{"item": "tea", "rank": "1", "score": "+0.3"}], ["rank", "item"]).rows
        [['1', 'tea']]
        """
        return cls(columns, [[row[name] for name in columns] for row in cells], caption, text)


def standing_cells(standing: Standing, *, digits: int) -> dict[str, str]:
    """One item of a ranking, its score and error with so many digits; the terminal has shorter titles."""
    return {
        "group": f"{standing.component}",
        "item": standing.item,
        "rank": f"{standing.rank}",
        "range": rank_range(standing),
        "score": f"{standing.score:+.{digits}f}",
        "beats the average": f"{standing.chance:.0%}",
        "best": f"{standing.best:.3f}",
        "votes": f"{standing.games:,.0f}",
        "won": f"{standing.win_rate:.0%}",
        **dict.fromkeys(("error", "± error"), f"{standing.error:.{digits}f}"),
        **dict.fromkeys(("weight", "mean weight"), f"{standing.mean_weight:.2f}"),
        **dict.fromkeys(("plain", "plain rank"), f"{standing.plain_rank}"),
    }


def rank_range(standing: Standing) -> str:
    """The interval of a rank.

    >>> from types import SimpleNamespace
    >>> rank_range(SimpleNamespace(rank_low=2, rank_high=3))
    '2–3'
    """
    low, high = standing.rank_low, standing.rank_high
    return f"{low}" if low == high else f"{low}–{high}"


def voter_cells(voter: Mapping[str, Any]) -> dict[str, str]:
    """One row of ``Audit.voters``."""
    known = voter["agreement"] is not None
    return {
        "voter": voter["voter"],
        "why": voter["why"] or "not flagged",
        "evidence": evidence_text(voter["log10_evidence"]),
        "votes": f"{voter['votes']:,}",
        "agreement": f"{voter['agreement']:.0%}" if known else "–",
        "95 % interval": f"{voter['agreement_low']:.0%}–{voter['agreement_high']:.0%}" if known else "–",
    }


def flagged_cells(voters: pl.DataFrame) -> list[dict[str, str]]:
    """The flagged voters of ``Audit.voters``, but for a crowd, of which one sentence says all."""
    alone = voters.filter(pl.col("flagged") & (pl.col("flagged_by") != "crowd"))
    return [voter_cells(row) for row in alone.to_dicts()]


def fragility_cells(result: Fragility) -> dict[str, str]:
    """How many votes change one thing."""
    found = "none found" if result.found is None else f"{result.found:,}"
    return {
        "what changes": result.what,
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
    """Every size of an attack, as :func:`fairduel.votes.stress.stress` found it."""
    titles = {name: title for name, title in _STRESS_TITLES.items() if name in frame.columns}
    rows = [[NOT_COMPARED if row[name] is None else f"{row[name]:,}" for name in titles] for row in frame.to_dicts()]
    return TextTable(list(titles.values()), rows)
