"""How the hot mathematics is compiled: once, the same way everywhere."""

from collections.abc import Callable
from typing import TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function) -> Function:
    """Compile ``function`` at its first call and keep the machine code on disk.

    The code releases the GIL, so that runs can share one process. Floating-point operations keep their
    written order (no fast-math), because the same seed must give the same duels everywhere.
    """
    return cast("Function", numba.njit(cache=True, nogil=True, error_model="numpy")(function))
