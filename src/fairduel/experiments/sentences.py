"""Pieces of the sentences in which results are stated."""

import math
from collections.abc import Sequence

from fairduel.experiments.inference import Mean

MOST_NAMES = 4
"""A sentence lists at most this many names; the rest are counted."""


def with_error(value: Mean, digits: int = 0) -> str:
    """A mean ± its standard error."""
    error = "" if math.isnan(value.error) else f" ± {value.error:,.{digits}f}"
    return f"{value.value:,.{digits}f}{error}".replace("-", "−")


def with_interval(value: Mean) -> str:
    """A mean and its interval, with two decimals."""
    interval = "" if math.isnan(value.low) else f" [{value.low:.2f}, {value.high:.2f}]"
    return f"{value.value:.2f}{interval}".replace("-", "−")


def whole(value: Mean) -> str:
    """A mean and its interval, without decimals."""
    interval = "" if math.isnan(value.low) else f" [{value.low:,.0f}, {value.high:,.0f}]"
    return f"{value.value:,.0f}{interval}".replace("-", "−")


def capitalized(text: str) -> str:
    """The text with its first letter in upper case, and the rest as it is."""
    return text[:1].upper() + text[1:]


def listed(names: Sequence[str]) -> str:
    """Names in a sentence, the last of many only counted."""
    if len(names) > MOST_NAMES:
        names = [*names[: MOST_NAMES - 1], f"{len(names) - MOST_NAMES + 1} others"]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def count_runs(count: int) -> str:
    """How many runs."""
    return "1 run" if count == 1 else f"{count} runs"
