"""Pieces of the sentences in which results are stated."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from fairduel.agents import loaded_class
from fairduel.stats import Mean
from fairduel.words import listed

_MOST_NAMES = 4
"""A sentence lists at most this many names; the rest are counted."""


def with_error(value: Mean) -> str:
    """A mean ± its standard error, without decimals."""
    error = "" if math.isnan(value.error) else f" ± {value.error:,.0f}"
    return f"{value.value:,.0f}{error}".replace("-", "−")


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


def listed_few(names: Sequence[str]) -> str:
    """Names in a sentence, the last of many only counted."""
    if len(names) > _MOST_NAMES:
        names = [*names[: _MOST_NAMES - 1], f"{len(names) - _MOST_NAMES + 1} others"]
    return listed(names)


def title_of(agent: str) -> str:
    """Return an agent's display name; if its class has none or is not loaded, the name on the command line.

    >>> title_of("fgts"), title_of("mine:Agent")
    ('FGTS.CDB', 'mine:Agent')
    """
    kind = loaded_class(agent)
    return agent if kind is None else kind.title


def settings_text(settings: Mapping[str, Any]) -> str:
    """Return settings in words.

    >>> settings_text({"radius": 8.0, "warmup": 160})
    'radius 8, warmup 160'
    >>> settings_text({"robust": True})
    'robust'
    """
    texts = {name: f"{value:g}" if isinstance(value, float) else str(value) for name, value in settings.items()}
    return ", ".join(
        name.replace("_", " ") + ("" if settings[name] is True else f" {text}") for name, text in texts.items()
    )
