"""What was found, in sentences and tables: conclusions first, and where the ranking loses."""

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import polars as pl

from benchmarks.decisions.adapter import STATES
from benchmarks.decisions.files import Bin, Row, Share, pooled
from benchmarks.decisions.files import summary as summary_of_files
from benchmarks.decisions.polls import LOOKS
from benchmarks.decisions.polls import summary as summary_of_polls
from benchmarks.decisions.populations import has_one_best, meets_conditions
from fairduel.experiments.sentences import listed_few
from fairduel.report.text_table import TextTable
from fairduel.stats import Mean, corrected
from fairduel.votes.verdict import CONFIDENCE

BEHIND = 0.01
"""How far in τ the ranking may be behind plain Bradley–Terry."""
CALIBRATED = 0.05
"""How far P(best) of the first item may be from the truth."""
WRONG = {"leads": 0.2, "won": 0.05}
"""How many items that are said to lead, or to have won, may be wrong."""
HELD = 0.8
"""How many forecasts of the number of votes have to hold, at every look."""
_CLOSE = "close scores"  # part of the names of kinds whose items are hardly different

Found = Mapping[str, Row]


class Findings(NamedTuple):
    """Everything that was measured."""

    kinds: Found
    """Summary of the files of each kind of population, all sizes together."""
    polls: Found
    """Summary of the studies of each poll."""
    bins: Mapping[str, list[Bin]]
    """Calibration of P(best) in files that meet all conditions and have one best item: ``all``, and those with
    ``close`` items."""

    @classmethod
    def of(cls, files: Mapping[str, pl.DataFrame], polls: Mapping[str, pl.DataFrame]) -> "Findings":
        """Summarise the frame of each kind of population, and of each poll."""
        met = {kind: frame for kind, frame in files.items() if meets_conditions(kind) and has_one_best(kind)}
        close = [frame for kind, frame in met.items() if _CLOSE in kind]
        return cls(
            {kind: summary_of_files(frame, corrected(files)) for kind, frame in files.items()},
            {name: summary_of_polls(frame) for name, frame in polls.items()},
            {
                name: pooled(pl.concat(chosen))
                for name, chosen in (("all", list(met.values())), ("close", close))
                if chosen
            },
        )


def _with_conditions(found: Found) -> dict[str, Row]:
    return {name: row for name, row in found.items() if meets_conditions(name)}


# ---------------------------------------------------------------------- conclusions


def conclusions(findings: Findings) -> list[str]:
    """State what holds and what does not, one subject per item.

    Only what meets the conditions of a ranking is judged. A share or a mean fails if its interval, corrected for the
    number of entries, excludes what is asked for.
    """
    kinds, polls = _with_conditions(findings.kinds), _with_conditions(findings.polls)
    found = [_coverage(kinds), _order(kinds), _calibration(kinds), _naming(kinds)] if kinds else []
    found += [_stops(polls), _forecasts(polls)] if polls else []
    broken = _broken(findings)
    return [*found, *([broken] if broken else [])]


def _below(found: Found, name: str, level: float) -> list[str]:
    """Return the entries whose share is clearly below ``level``."""
    return [kind for kind, row in found.items() if row[name].interval(corrected(found))[1] < level]


def _above(found: Found, name: str, level: float) -> list[str]:
    """Return the entries whose share is clearly above ``level``."""
    return [kind for kind, row in found.items() if row[name].interval(corrected(found))[0] > level]


def _coverage(kinds: Found) -> str:
    failed = _below(kinds, "covered", CONFIDENCE)
    lowest = min(kinds, key=lambda kind: kinds[kind]["covered"].value)
    text = f"Rank ranges: coverage is clearly below 95% in {len(failed)} of {len(kinds)} populations"
    if failed:
        text += f" ({listed_few(failed)})"
    return f"{text}. Lowest: {kinds[lowest]['covered']} ({lowest})."


def _order(kinds: Found) -> str:
    ordered = {kind: row["lead"] for kind, row in kinds.items() if not math.isnan(row["lead"].value)}
    behind = [kind for kind, lead in ordered.items() if lead.value < -BEHIND and lead.high < 0.0]
    if not ordered:
        return "Order: all items are equal."
    worst, best = (pick(ordered, key=lambda kind: ordered[kind].value) for pick in (min, max))
    where = f": {listed_few(behind)}" if behind else ""
    return (
        f"Order: more than {BEHIND:g} in τ behind plain Bradley–Terry in {len(behind)} of {len(ordered)} populations"
        f"{where}. Furthest behind: {_signed(ordered[worst])} ({worst}); furthest ahead: {_signed(ordered[best])} "
        f"({best})."
    )


def _calibration(kinds: Found) -> str:
    gaps = {kind: row["gap"] for kind, row in kinds.items() if has_one_best(kind)}
    if not gaps:
        return "P(best): no population has one best item."
    failed = [kind for kind, gap in gaps.items() if gap.low > CALIBRATED or gap.high < -CALIBRATED]
    worst = max(gaps, key=lambda kind: abs(gaps[kind].value))
    where = f": {listed_few(failed)}" if failed else ""
    return (
        f"P(best) of the first item is clearly more than {CALIBRATED:g} from the truth in {len(failed)} of "
        f"{len(gaps)} populations{where}. Furthest: {_signed(gaps[worst])} ({worst})."
    )


def _naming(kinds: Found) -> str:
    verdicts = sum(row["verdicts"] for row in kinds.values())
    parts = []
    for state, words in (("won", "have a winner"), ("leads", "a leader")):
        total, level = _total(row[state] for row in kinds.values()), WRONG[state]
        failed = _above(kinds, state, level)
        where = f"in {listed_few(failed)}" if failed else "nowhere"
        parts.append(
            f"{total.trials:,} {words}, {total.successes:,} of them a wrong one ({total}), clearly more than "
            f"{level:.0%} {where}"
        )
    ties = _total(row["tie"] for row in kinds.values())
    return (
        f"Verdicts: of {verdicts:,}, {'; '.join(parts)}. {ties.successes:,} of {ties.trials:,} ties leave out the best "
        "item."
    )


def _stops(polls: Found) -> str:
    false, stopped = (_total(row[name] for row in polls.values()) for name in ("false", "stopped"))
    failed = _above(polls, "false", WRONG["won"])
    where = f", clearly more than 5% in {listed_few(failed)}" if failed else ", clearly more than 5% in no poll"
    return (
        f"Stopping: {stopped.successes} of {stopped.trials:,} studies stop, and {false.successes} of them with a wrong "
        f"winner ({false} of all){where}."
    )


def _forecasts(polls: Found) -> str:
    looks = {
        f"{name} after {record['votes']:,} votes": record
        for name, row in polls.items()
        for record in row["looks"]
        if record["held"].trials
    }
    if not looks:
        return "Forecasts: none were made."
    total = _total(record["held"] for record in looks.values())
    short = [look for look, record in looks.items() if record["held"].value < HELD]
    clear = _below(looks, "held", HELD)
    where = f", clearly in {len(clear)} ({listed_few(clear)})" if clear else ", clearly in none"
    return (
        f"Forecasts: {total} of {total.trials:,} ranges include the time of stopping. Fewer than {HELD:.0%} do at "
        f"{len(short)} of {len(looks)} looks{where}."
    )


def _broken(findings: Findings) -> str:
    """Say what happens where a condition is not met."""
    kinds = {kind: row for kind, row in findings.kinds.items() if not meets_conditions(kind)}
    polls = {name: row for name, row in findings.polls.items() if not meets_conditions(name)}
    parts = []
    if kinds:
        failed = _below(kinds, "covered", CONFIDENCE)
        parts.append(f"coverage is clearly below 95% in {len(failed)} of {len(kinds)} populations")
        parts[-1] += f" ({listed_few(failed)})" if failed else ""
    if polls:
        false = _total(row["false"] for row in polls.values())
        parts.append(f"{false.successes} of {false.trials:,} studies stop with a wrong winner")
    return f"Where a condition of rankings is not met, {', and '.join(parts)}." if parts else ""


def _total(shares: Iterable[Share]) -> Share:
    successes, trials = zip(*shares, strict=True)
    return Share(sum(successes), sum(trials))


def _signed(value: Mean, digits: int = 3) -> str:
    if math.isnan(value.value):
        return "–"
    error = "" if math.isnan(value.error) else f" ± {value.error:.{digits}f}"
    return f"{value.value:+.{digits}f}{error}".replace("-", "−")


# ---------------------------------------------------------------------- tables


def ranking_table(findings: Findings) -> TextTable:
    """Return coverage and order of each kind of population."""
    columns = ["population", "files", "ranks covered", "width", "scores", "τ", "τ, plain", "difference"]
    rows = [
        [
            kind,
            f"{row['files']:,}",
            str(row["covered"]),
            f"{row['width'].value:.2f}",
            f"{row['scores'].value:.0%}",
            _number(row["tau"]),
            _number(row["tau_plain"]),
            _signed(row["lead"]),
        ]
        for kind, row in _in_order(findings.kinds)
    ]
    return TextTable(columns, rows, "Ranges and order")


def winner_table(findings: Findings) -> TextTable:
    """Return what is said of the winner in each kind of population."""
    columns = ["population", "first is best", "plain", "P(best) − truth", "Brier", *STATES, "wrong winner"]
    columns += ["wrong leader", "tie without the best", "rank 1 only, wrong"]
    rows = []
    for kind, row in _in_order(findings.kinds):
        states = [f"{row[state].trials / max(row['verdicts'], 1):.0%}" for state in STATES]
        rows.append(
            [
                kind,
                f"{row['first'].value:.0%}",
                f"{row['first_plain'].value:.0%}",
                _signed(row["gap"], 2),
                f"{row['brier'].value:.2f}",
                *states,
                *(_of(row[name]) for name in ("won", "leads", "tie", "wrong_claims")),
            ]
        )
    return TextTable(columns, rows, "Who is best")


def calibration_table(findings: Findings) -> TextTable:
    """Return how often items are best, by their P(best)."""
    columns = ["P(best)", *(f"{what}{name}" for name in ("", ", close items") for what in ("items", "said", "true"))]
    bins = [{found.low: found for found in findings.bins.get(name, [])} for name in ("all", "close")]
    rows = []
    for low in sorted(set(bins[0]) | set(bins[1])):
        cells = [f"{low:.1f} to {low + 0.1:.1f}"]
        for found in bins:
            some = found.get(low)
            cells += ["0", "–", "–"] if some is None else _bin_cells(some)
        rows.append(cells)
    return TextTable(columns, rows, "Calibration of P(best)")


def _bin_cells(found: Bin) -> list[str]:
    return [f"{found.items:,}", f"{found.said:.3f}", f"{found.best:.3f} ± {found.error:.3f}"]


def stopping_table(findings: Findings) -> TextTable:
    """Return when the studies of each poll stop."""
    columns = [
        "poll",
        "studies",
        "stopped",
        "wrong winner",
        "median votes",
        "forecasts that hold",
        "lowest",
        "at votes",
    ]
    rows = []
    for name, row in _in_order(findings.polls):
        looks = [record for record in row["looks"] if record["held"].trials]
        held = _total([record["held"] for record in looks]) if looks else Share(0, 0)
        lowest = min(looks, key=lambda record: record["held"].value) if looks else None
        rows.append(
            [
                name,
                f"{row['studies']}",
                f"{row['stopped'].value:.0%}",
                str(row["false"]),
                "–" if math.isinf(row["median"]) else f"{row['median']:,.0f}",
                _of(held),
                "–" if lowest is None else _of(lowest["held"]),
                "–" if lowest is None else f"{lowest['votes']:,}",
            ]
        )
    return TextTable(columns, rows, "Polls that are looked at again and again")


def looks_table(findings: Findings) -> TextTable:
    """Return what is said after a number of votes, in all polls that meet the conditions together."""
    columns = ["votes", "studies", *STATES, "wrong winner", "wrong leader", "tie without the best", "running"]
    columns += ["forecasts that hold", "without upper end", "median width"]
    polls, rows = _with_conditions(findings.polls), []
    for look in LOOKS:
        records = [record for row in polls.values() for record in row["looks"] if record["votes"] == look]
        if not records:
            continue
        totals = {name: _total([record[name] for record in records]) for name in (*STATES, "held")}
        count = sum(totals[state].trials for state in STATES)
        widths = [record["width"] for record in records if record["width"] is not None]
        rows.append(
            [
                f"{look:,}",
                f"{count:,}",
                *(f"{totals[state].trials / count:.0%}" for state in STATES),
                *(_of(totals[state]) for state in ("won", "leads", "tie")),
                f"{sum(record['running'] for record in records):,}",
                _of(totals["held"]),
                f"{sum(record['open'] for record in records):,}",
                f"{sorted(widths)[len(widths) // 2]:.1f}" if widths else "–",
            ]
        )
    return TextTable(columns, rows, "What is said at each look")


TABLES = {
    "ranking": ranking_table,
    "winner": winner_table,
    "calibration": calibration_table,
    "stopping": stopping_table,
    "looks": looks_table,
}
"""All tables, by the last part of their file's name."""


def _in_order(found: Found) -> list[tuple[str, Row]]:
    """Return what meets the conditions, then what does not."""
    return sorted(found.items(), key=lambda entry: not meets_conditions(entry[0]))


def _number(value: Mean) -> str:
    return "–" if math.isnan(value.value) else f"{value.value:.3f}".replace("-", "−")


def _of(found: Share) -> str:
    return f"{found.successes} of {found.trials:,}" if found.trials else "–"
