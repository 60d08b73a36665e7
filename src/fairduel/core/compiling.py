"""How the hot mathematics is compiled: once, the same way everywhere."""

import functools
import hashlib
import multiprocessing
import os
import stat
import sys
import tempfile
import types
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import numba
from numba.core.dispatcher import Dispatcher

Function = TypeVar("Function", bound=Callable[..., object])
_PACKAGE = Path(__file__).parent.parent


this: Any = None
later: Any = None
place = 0
"""What a template of :func:`one_of` imports: the function to call if number ``place`` is asked for, and otherwise."""


def compiled(function: Function) -> Function:
    """Compile ``function`` at its first call; machine code of fairduel's own functions is kept on disk.

    The code releases the GIL, so that runs can share one process. Floating-point operations keep their
    written order (no fast-math), because the same seed must give the same duels everywhere.
    """
    return cast("Function", _compile(function, is_own=_is_own(function), inline="never"))


def inlined(function: Function) -> Function:
    """The same for glue, which becomes part of the compiled functions that call it; that takes less time to compile."""
    return cast("Function", _compile(function, is_own=_is_own(function), inline="always"))


def specialised(template: Function, **functions: Callable[..., object]) -> Function:
    """Compile ``template`` with these compiled ``functions`` in place of the globals of these names.

    So one text serves many agents and attacks. If one of the functions is plain Python, so is the result.
    """
    return cast("Function", _filled(template, functions))


def one_of(template: Function, functions: Sequence[Callable[..., Any]]) -> Function:
    """Compile a function that calls the one of these compiled ``functions`` which its arguments ask for.

    The ``template`` has the arguments of the functions. It calls ``this`` if they ask for number ``place``, else
    ``later``.
    """
    *others, chosen = functions
    for number, function in reversed(list(enumerate(others))):
        chosen = _filled(template, {"this": function, "later": chosen}, place=number)
    return cast("Function", chosen)


def _filled(template: Any, functions: Mapping[str, Callable[..., object]], **constants: int) -> Any:
    """Compile a template; its name, under which machine code is kept, says what was filled in."""
    parts = [f"{function.__module__}.{function.__qualname__}" for function in functions.values()]
    mark = hashlib.sha256(repr([parts, constants]).encode()).hexdigest()[:12]
    filled = types.FunctionType(template.__code__, {**template.__globals__, **functions, **constants})
    filled.__qualname__, filled.__module__ = f"{template.__qualname__}_{mark}", template.__module__
    if not all(isinstance(function, Dispatcher) for function in functions.values()):
        return filled
    return _compile(filled, is_own=all(map(_is_own, functions.values())), inline="always")


def _is_own(function: Any) -> bool:
    """Whether a function is fairduel's, and so are those that were filled into it."""
    if hasattr(function, "is_own"):
        return bool(function.is_own)
    return _PACKAGE in Path(function.__code__.co_filename).parents


def _compile(function: Callable[..., object], *, is_own: bool, inline: Literal["never", "always"]) -> Any:
    # Numba looks at a function's own file only, and would go on with old code of the functions that it calls:
    # so the cache has a folder for each state of the files with compiled code. The decorator reads it when it runs.
    config: Any = numba.config
    folder = _cache_folder()
    others, config.CACHE_DIR = config.CACHE_DIR, folder or config.CACHE_DIR
    try:
        keep = bool(folder) and is_own
        dispatcher: Any = numba.njit(cache=keep, nogil=True, error_model="numpy", inline=inline)(function)
    finally:
        config.CACHE_DIR = others
    dispatcher.is_own = is_own
    return dispatcher


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
    mark = f"from {__name__} import"
    users = [path for path in _PACKAGE.rglob("*.py") if mark in path.read_text(encoding="utf-8")]
    return [Path(__file__), *users]


def _digest(paths: list[Path]) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(paths))).hexdigest()
