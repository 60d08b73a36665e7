"""The twenty tests of the live service: small in the suite, at full size with ``make torture``."""

from dataclasses import dataclass

import pytest


def torture(number, title, *, small, full, unit):
    """Mark a test as one of the twenty; its fixture ``trial`` has the size."""
    return pytest.mark.torture(number=number, title=title, small=small, full=full, unit=unit)


@dataclass
class Trial:
    """One of the twenty tests while it runs.

    Args:
        size: How much to do.
        is_full: Whether this is the full size, at which also times are checked.
        found: What was measured; the test sets it at its end.
    """

    size: int
    is_full: bool
    found: str = ""
