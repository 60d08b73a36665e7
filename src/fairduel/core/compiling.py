"""How the hot mathematics is compiled: once, the same way everywhere."""

import functools
import hashlib
import multiprocessing
import os
import stat
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])
_PACKAGE = Path(__file__).parent.parent


def compiled(function: Function) -> Function:
    """Compile ``function`` at its first call and keep the machine code on disk.

    The code releases the GIL, so that runs can share one process. Floating-point operations keep their
    written order (no fast-math), because the same seed must give the same duels everywhere.
    """
    # Numba looks at a function's own file only, and would go on with old code of the functions that it calls:
    # so the cache has a folder for each state of the files with compiled code. The decorator reads it when it runs.
    config: Any = numba.config
    folder = _cache_folder()
    others, config.CACHE_DIR = config.CACHE_DIR, folder or config.CACHE_DIR
    try:
        return cast("Function", numba.njit(cache=bool(folder), nogil=True, error_model="numpy")(function))
    finally:
        config.CACHE_DIR = others


@functools.cache
def _cache_folder() -> str:
    """Where machine code is kept: where NUMBA_CACHE_DIR says, else beside the package, else in the user's cache.

    Where none of these can be written to, a warning says so, and it is a temporary folder of the user's, or none ("").
    """
    given = os.environ.get("NUMBA_CACHE_DIR")
    bases = [Path(given)] if given else [_PACKAGE / "__pycache__", *_user_cache()]
    name = f"compiled-{_digest(_compiled_sources())[:16]}"
    for base in bases:
        if _can_write(base / name):
            return str(base / name)
    temporary = _private_temporary_folder()
    if multiprocessing.current_process().name == "MainProcess":  # its workers need not say it again
        instead = f"is kept in {temporary} meanwhile" if temporary else "will not be kept"
        warnings.warn(
            f"fairduel's compiled code cannot be written to {' or '.join(map(str, bases))} and {instead}: set "
            "NUMBA_CACHE_DIR to a folder for it.",
            stacklevel=2,
        )
    return str(temporary / name) if temporary else ""


def _user_cache() -> list[Path]:
    given = os.environ.get("XDG_CACHE_HOME")
    try:
        return [(Path(given) if given else Path.home() / ".cache") / "fairduel"]
    except RuntimeError:  # this user has no home
        return []


def _can_write(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


def _private_temporary_folder() -> Path | None:
    """A folder that only this user can write to, since machine code found there is run; ``None`` if there is none."""
    try:
        user = os.getuid() if sys.platform != "win32" else "user"  # Windows has a temporary folder for each user
        folder = Path(tempfile.gettempdir()) / f"fairduel-{user}"
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    is_private = stat.S_ISDIR(found.st_mode) and (
        sys.platform == "win32" or (found.st_uid == os.getuid() and not stat.S_IMODE(found.st_mode) & 0o077)
    )
    return folder if is_private else None


def _compiled_sources() -> list[Path]:
    """Every file with a compiled function in it: these call each other, and nothing else."""
    mark = f"from {__name__} import compiled"
    return [path for path in _PACKAGE.rglob("*.py") if mark in path.read_text(encoding="utf-8")]


def _digest(paths: list[Path]) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(paths))).hexdigest()
