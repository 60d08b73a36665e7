"""How the hot mathematics is compiled: once, the same way everywhere."""

import functools
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])
_PACKAGE = Path(__file__).parent


def compiled(function: Function) -> Function:
    """Compile ``function`` at its first call and keep the machine code on disk.

    The code releases the GIL, so that runs can share one process. Floating-point operations keep their
    written order (no fast-math), because the same seed must give the same duels everywhere.
    """
    # Numba looks at a function's own file only, and would go on with old code of the functions that it calls:
    # so the cache has a folder for each state of the files with compiled code. The decorator reads it when it runs.
    config: Any = numba.config
    others, config.CACHE_DIR = config.CACHE_DIR, _cache_folder()
    try:
        return cast("Function", numba.njit(cache=True, nogil=True, error_model="numpy")(function))
    finally:
        config.CACHE_DIR = others


@functools.cache
def _cache_folder() -> str:
    """Beside the package where that can be written, else in the user's cache; or where NUMBA_CACHE_DIR says."""
    given = os.environ.get("NUMBA_CACHE_DIR")
    beside = _PACKAGE / "__pycache__"
    if given:
        base = Path(given)
    elif os.access(beside if beside.exists() else _PACKAGE, os.W_OK):
        base = beside
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fairduel"
    return str(base / f"compiled-{_digest(_compiled_sources())[:16]}")


def _compiled_sources() -> list[Path]:
    """Every file with a compiled function in it: these call each other, and nothing else."""
    mark = f"from {__name__} import compiled"
    return [path for path in _PACKAGE.rglob("*.py") if mark in path.read_text(encoding="utf-8")]


def _digest(paths: list[Path]) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(paths))).hexdigest()
