"""Memory that is freed but still counts."""

import ctypes
import sys

_MANY = 100_000  # votes; the arrays of fewer are small


def give_back(votes: int) -> None:
    """Return freed memory to the system before the next stage of work on this many votes.

    The C library on Linux keeps what lies between live arrays: hundreds of megabytes after a fit of a million votes.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" and votes > _MANY else None
    if trim is not None:
        trim(0)
