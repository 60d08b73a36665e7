"""Tables of an experiment: one row per entry, every number with its error."""

import math
from typing import Any

import numpy as np

from fairduel.experiments.experiment import Lines, Results
from fairduel.stats import Mean, exponent, line

RECOMMENDATION_COLUMNS = ("best recommended", "loss", "regret", "flips")


def recommendation_cells(row: dict[str, Any]) -> list[str]:
    """Return an entry's label and the cells of ``RECOMMENDATION_COLUMNS`` from its row of the summary."""
    return [
        row["label"],
        share_text(row["recommended_best"]),
        error_text(row["recommendation_regret"], digits=3),
        error_text(row["regret"]),
        f"{row['flips']:.0f}",
    ]


def fits(results: Results, view: Lines) -> list[dict[str, Any]]:
    """Return the fit of each line of a view: slope and R², or an exponent, with errors."""
    rows = []
    for (panel, label), entries in results.lines.items():
        x = np.array([entry.x for entry in entries])
        regret = np.stack([results.regret(entry) for entry in entries], axis=1)  # (seeds, m)
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
            rows.append({"panel": panel, "label": label, "fit": f"exponent {error_text(grown, digits=2)}"})
    return rows


def error_text(value: Mean, digits: int = 0) -> str:
    """Format a mean with its standard error.

    >>> error_text(Mean(761.9, 16.4, 0.0, 0.0))
    '762 ± 16'
    """
    if math.isnan(value.value):
        return "–"
    if math.isnan(value.error):
        return f"{value.value:,.{digits}f} (one run)".replace("-", "−")
    return f"{value.value:,.{digits}f} ± {value.error:,.{digits}f}".replace("-", "−")


def difference_text(value: Mean) -> str:
    """Format a difference with its confidence interval.

    >>> difference_text(Mean(12.0, 2.0, 7.6, 16.4))
    '+12 [+8, +16]'
    >>> difference_text(Mean(-3.0, 2.0, -7.4, 1.4))
    '−3 [−7, +1]'
    """
    if math.isnan(value.error):
        return f"{value.value:+,.0f} (one run)".replace("-", "−")
    return f"{value.value:+,.0f} [{value.low:+,.0f}, {value.high:+,.0f}]".replace("-", "−")


def interval_text(value: Mean) -> str:
    """Format a value with its confidence interval.

    >>> interval_text(Mean(1.93, 0.3, 1.25, 2.61))
    '1.93 [1.25, 2.61]'
    """
    if math.isnan(value.value):
        return "–"
    interval = "(one run)" if math.isnan(value.low) else f"[{value.low:,.2f}, {value.high:,.2f}]"
    return f"{value.value:,.2f} {interval}".replace("-", "−")


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
