"""The columns of a table of voters and the evidence on them."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from fairduel.votes.columns import Column, Columns, Output, Row

if TYPE_CHECKING:
    from fairduel.votes.auditing.voters import Evidence

LOG_10 = math.log(10.0)
KINDS = ("inverts", "one side", "taste", "campaign", "group")
"""The kinds of evidence, each of which has a column."""
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def evidence_text(log10_evidence: float) -> str:
    """Write E for readers.

    >>> evidence_text(math.log10(1234.0)), evidence_text(26.1), evidence_text(-1.3)
    ('1,234', '10²⁶', 'none')
    """
    if log10_evidence < 0.0:
        return "none"
    if log10_evidence >= 6.0:
        return "10" + f"{log10_evidence:.0f}".translate(_SUPERSCRIPTS)
    return f"{10.0**log10_evidence:,.0f}"


def _of_kind(kind: str) -> Column["Evidence"]:
    """Return the column of one kind of evidence; there is none if the votes cannot show it."""

    def values(evidence: "Evidence") -> Any:
        log = evidence.log_evidence.get(kind)
        return None if log is None else log / LOG_10

    return Column(name=f"log10_{kind.replace(' ', '_')}", meaning=f"log10 of the evidence “{kind}”", values=values)


def _share(row: Row, _: Output) -> str:
    return "–" if row["agreement"] is None else f"{row['agreement']:.0%}"


def _interval(row: Row, _: Output) -> str:
    return "–" if row["agreement"] is None else f"{row['agreement_low']:.0%}–{row['agreement_high']:.0%}"


def _targets(evidence: "Evidence") -> list[str | None]:
    return [evidence.items[item] if item >= 0 else None for item in evidence.target]


def _camps(evidence: "Evidence") -> list[str | None] | None:
    camps = evidence.camps
    if camps is None:
        return None
    return [camps.found[number].name if number >= 0 else None for number in camps.of_voter]


def _known(place: int) -> Callable[["Evidence"], Any]:
    return lambda evidence: evidence.known[:, place] if evidence.known.any() else None


def _some_evidence(rows: Sequence[Row]) -> bool:
    return any(row["log10_evidence"] >= 0.0 for row in rows)


def _flagged(rows: Sequence[Row]) -> bool:
    return any(row["why"] for row in rows)


def _values(name: str) -> Callable[["Evidence"], Any]:
    return lambda evidence: getattr(evidence, name)


VOTERS: Columns["Evidence"] = [
    Column(
        name="voter",
        meaning="the voter's name",
        type=str,
        values=_values("voters"),
        cell=lambda row, _: str(row["voter"]),
        words=True,
    ),
    Column(name="flagged", meaning="whether the voter is flagged", type=bool | None, values=_values("flagged")),
    Column(
        name="votes",
        meaning="the number of votes, ties included",
        type=int,
        values=_values("votes"),
        cell=lambda row, _: f"{row['votes']:,}",
        optional=1,
    ),
    Column(name="decisive", meaning="the number of votes with a winner", type=int, values=_values("decisive")),
    Column(
        name="agreement",
        meaning="the share of the voter's votes with a winner that everyone else predicts",
        type=float | None,
        values=_values("agreement"),
        cell=_share,
        optional=2,
    ),
    Column(
        name="interval",
        title="95% interval",
        meaning="the 95% interval of the agreement",
        cell=_interval,
        outputs=("report",),
    ),
    Column(
        name="agreement_low",
        meaning="the lower end of the 95% interval of the agreement",
        type=float | None,
        values=lambda evidence: evidence.agreement_interval[:, 0],
    ),
    Column(
        name="agreement_high",
        meaning="the upper end of that interval",
        type=float | None,
        values=lambda evidence: evidence.agreement_interval[:, 1],
    ),
    Column(
        name="log10_evidence",
        title="evidence",
        meaning="how unusual the votes are: an honest voter reaches n with a probability of at most 1 in n",
        type=float | None,
        values=lambda evidence: evidence.total / LOG_10,
        cell=lambda row, _: evidence_text(row["log10_evidence"]),
        shown_if=_some_evidence,
    ),
    *map(_of_kind, KINDS),
    Column(name="known_right", meaning="how many duels with a known answer the voter got right", values=_known(0)),
    Column(name="known_of", meaning="how many duels with a known answer the voter answered", values=_known(1)),
    Column(
        name="camp",
        meaning="the camp that the voter most likely belongs to, if any; it describes votes and accuses nobody",
        type=str | None,
        values=_camps,
        cell=lambda row, _: row["camp"] or "–",
        shown_if=lambda rows: any(row.get("camp") for row in rows),
        words=True,
        optional=3,
    ),
    Column(
        name="camp_probability",
        meaning="the probability that the voter belongs to any camp",
        type=float | None,
        values=lambda evidence: None if evidence.camps is None else evidence.camps.membership,
    ),
    Column(name="target", meaning="the item that the voter pushes most", type=str | None, values=_targets),
    Column(
        name="seconds_per_vote",
        meaning="the median of the seconds per vote within a visit",
        type=float | None,
        values=_values("seconds"),
    ),
    Column(
        name="hasty",
        meaning="whether the voter takes less than a fifth of the usual time per vote",
        type=bool | None,
        values=_values("hasty"),
    ),
    Column(
        name="why",
        meaning="why the voter is flagged",
        type=str,
        values=_values("why"),
        cell=lambda row, _: row["why"] or "not flagged",
        shown_if=_flagged,
        words=True,
    ),
]
"""The columns of voters."""
SERVED = (
    *("flagged", "why", "log10_evidence", "agreement", "agreement_low", "agreement_high", "target"),
    *("seconds_per_vote", "hasty", "camp", "camp_probability"),
)
"""Columns that the live service shows its operators."""
