"""Tables of an experiment: one row per entry, every number with its error."""

import json
import math
from typing import Any

import numpy as np
import polars as pl

from fairduel.experiments import Entry, Lines
from fairduel.experiments.inference import Mean, exponent, line, mean, paired_difference, share
from fairduel.experiments.results import Results


def summary(results: Results) -> list[dict[str, Any]]:
    """Return one row per entry: regret, difference from the reference, and diagnostics."""
    return [_summary_row(results, entry) for entry in results.experiment.entries]


def _summary_row(results: Results, entry: Entry) -> dict[str, Any]:
    runs = results.of(entry)
    reference = _reference(results, entry)
    difference = None
    if reference is not None and reference is not entry:
        difference = paired_difference(runs["regret"].to_numpy(), results.of(reference)["regret"].to_numpy())
    return {
        "panel": entry.panel,
        "x": entry.x,
        "label": entry.label,
        "tuned": entry.tuned,
        "runs": len(runs),
        "regret": mean(runs["regret"].to_numpy()),
        "weak_regret": mean(runs["weak_regret"].to_numpy()),
        "is_reference": entry.is_reference,
        "difference": difference,
        "locked_in": float(runs["locked_in"].cast(pl.Float64).mean()),  # type: ignore[arg-type]
        "self_duels": float(runs["self_duel_share"].mean()),  # type: ignore[arg-type]
        "norm_exceeded": float(runs["norm_exceeded_share"].mean()),  # type: ignore[arg-type]
        "mean_slope": float(runs["mean_slope"].mean()),  # type: ignore[arg-type]
        "recommended_best": recommended_best(results, entry),
        "recommendation_regret": mean(runs["recommendation_regret"].to_numpy()),
        "flips": float(runs["flips"].mean()),  # type: ignore[arg-type]
        "seconds": float(runs["seconds"].mean()),  # type: ignore[arg-type]
        "settings": json.loads(runs["agent_settings"][0]),
    }


def recommended_best(results: Results, entry: Entry) -> Mean:
    """Return the share of runs that recommend a best action; where actions change, the mean over runs."""
    found = results.of(entry)["recommended_best"].to_numpy()
    return share(int(found.sum()), len(found)) if np.isin(found, (0.0, 1.0)).all() else mean(found)


RECOMMENDATION_COLUMNS = ("best recommended", "loss", "regret", "flips")


def recommendation_cells(row: dict[str, Any]) -> list[str]:
    """Return an entry's label and the cells of ``RECOMMENDATION_COLUMNS`` from its row of :func:`summary`."""
    return [
        row["label"],
        share_text(row["recommended_best"]),
        with_error(row["recommendation_regret"], digits=3),
        with_error(row["regret"]),
        f"{row['flips']:.0f}",
    ]


def _reference(results: Results, entry: Entry) -> Entry | None:
    candidates = [e for e in results.experiment.entries if e.is_reference and e.panel == entry.panel]
    same_x = [e for e in candidates if e.x == entry.x]
    if same_x:
        return same_x[0]
    return candidates[0] if len(candidates) == 1 else None


def fits(results: Results, view: Lines) -> list[dict[str, Any]]:
    """Return the fit of each line of a view: slope and R², or an exponent, with errors."""
    rows = []
    for (panel, label), entries in lines_of(results).items():
        x = np.array([entry.x for entry in entries])
        regret = np.stack([results.of(entry)["regret"].to_numpy() for entry in entries], axis=1)  # (seeds, m)
        if view.fit == "line":
            fitted = line(x, regret.mean(axis=0))
            text = f"slope {fitted.slope:.2f} ± {fitted.slope_error:.2f}, R² = {fitted.r_squared:.4f}"
            power = exponent(x, regret)
            if not math.isnan(power.value):
                text += f", exponent {power.value:.2f}"
            if not math.isnan(power.low):
                text += f" [{power.low:.2f}, {power.high:.2f}]"
            rows.append({"panel": panel, "label": label, "fit": text.replace("-", "−")})
        elif view.fit == "power" and (regret > 0).all():
            grown = exponent(x, regret)
            rows.append({"panel": panel, "label": label, "fit": f"exponent {with_error(grown, digits=2)}"})
    return rows


def lines_of(results: Results) -> dict[tuple[str, str], list[Entry]]:
    """Group the entries of each line: same panel and label, ascending x."""
    lines: dict[tuple[str, str], list[Entry]] = {}
    several = len({entry.label for entry in results.experiment.entries}) > 1
    one_agent = len({entry.cell.agent for entry in results.experiment.entries}) == 1
    for entry in results.experiment.entries:
        label = entry.cell.agent if several and one_agent else entry.label
        lines.setdefault((entry.panel, label), []).append(entry)
    return {key: sorted(entries, key=lambda e: e.x or 0.0) for key, entries in lines.items()}


def with_error(value: Mean, digits: int = 0) -> str:
    """Format a mean with its standard error.

    >>> with_error(Mean(761.9, 16.4, 0.0, 0.0))
    '762 ± 16'
    """
    if math.isnan(value.value):
        return "–"
    if math.isnan(value.error):
        return f"{value.value:,.{digits}f} (one run)".replace("-", "−")
    return f"{value.value:,.{digits}f} ± {value.error:,.{digits}f}".replace("-", "−")


def with_interval(value: Mean) -> str:
    """Format a difference with its confidence interval.

    >>> with_interval(Mean(12.0, 2.0, 7.6, 16.4))
    '+12 [+8, +16]'
    >>> with_interval(Mean(-3.0, 2.0, -7.4, 1.4))
    '−3 [−7, +1]'
    """
    if math.isnan(value.error):
        return f"{value.value:+,.0f} (one run)".replace("-", "−")
    return f"{value.value:+,.0f} [{value.low:+,.0f}, {value.high:+,.0f}]".replace("-", "−")


def interval_text(value: Mean, digits: int = 2) -> str:
    """Format a value with its confidence interval.

    >>> interval_text(Mean(1.93, 0.3, 1.25, 2.61))
    '1.93 [1.25, 2.61]'
    """
    if math.isnan(value.value):
        return "–"
    interval = "(one run)" if math.isnan(value.low) else f"[{value.low:,.{digits}f}, {value.high:,.{digits}f}]"
    return f"{value.value:,.{digits}f} {interval}".replace("-", "−")


def share_text(value: Mean) -> str:
    """Format a share with its confidence interval, cut off at 0 and 1.

    >>> share_text(Mean(0.98, 0.02, 0.93, 1.03))
    '98% [93%, 100%]'
    """
    if math.isnan(value.value):
        return "–"
    if math.isnan(value.low):
        return f"{value.value:.0%} (one run)"
    return f"{value.value:.0%} [{max(value.low, 0.0):.0%}, {min(value.high, 1.0):.0%}]"
