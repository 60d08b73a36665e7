"""How the numerical code is compiled with Numba, and where the machine code is cached."""

import functools
import hashlib
import logging
import multiprocessing
import os
import stat
import sys
import tempfile
import time
import types
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import numba
from numba.core import event
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

if sys.platform != "win32":
    import fcntl

Function = TypeVar("Function", bound=Callable[..., object])
_PACKAGE = Path(__file__).parent.parent


def _is_main_process() -> bool:
    return multiprocessing.current_process().name == "MainProcess"


class _CompileNotice(event.Listener):
    """Logs one line when Numba starts to compile a fairduel function that is not in the cache."""

    is_due = _is_main_process()  # workers stay silent
    tell: Callable[[int], object] | None = None
    count = 0

    def on_start(self, event: Any) -> None:
        if not getattr(event.data["dispatcher"], "is_own", False):
            return
        self.count += 1
        if self.tell is not None:
            self.tell(self.count)
        elif self.is_due:
            self.is_due = False
            logging.getLogger("fairduel").warning(
                "fairduel is compiling its numerical code for this machine; this can take up to a minute; the result "
                "is cached"
            )

    def on_end(self, event: Any) -> None:
        """Do nothing; Numba requires the method."""


_compile_notice = _CompileNotice()
event.register("numba:compile", _compile_notice)  # type: ignore[no-untyped-call]


def skip_compile_notice() -> None:
    """Log no notice in this process, because the caller tells the user itself."""
    _compile_notice.is_due = False


@contextmanager
def telling(tell: Callable[[int], object]) -> Iterator[None]:
    """Call a function with the number of functions compiled so far, at each, instead of logging a notice."""
    _compile_notice.tell, _compile_notice.count = tell, 0
    try:
        yield
    finally:
        _compile_notice.tell, _compile_notice.is_due = None, False


this: Any = None
later: Any = None
place = 0
"""Stand-ins that a template of :func:`one_of` imports: it calls ``this`` if its arguments ask for number ``place``, and
``later`` otherwise."""


def compiled(function: Function) -> Function:
    """Compile ``function`` on its first call, and cache fairduel's own functions on disk.

    The code releases the GIL, so that runs can share one process. Floating-point operations keep their
    written order (no fast-math), because the same seed must give the same duels everywhere.
    """
    return cast("Function", _compile(function, is_own=_is_own(function), inline="never"))


def inlined(function: Function) -> Function:
    """Compile ``function`` as part of each compiled function that calls it, which takes less time to compile."""
    return cast("Function", _compile(function, is_own=_is_own(function), inline="always"))


def specialised(template: Function, **functions: Callable[..., object]) -> Function:
    """Compile ``template`` with its globals of these names replaced by these compiled ``functions``.

    One template serves many agents and attacks. If one of the functions is plain Python, so is the result.
    """
    return cast("Function", _filled(template, functions))


def one_of(template: Function, functions: Sequence[Callable[..., Any]]) -> Function:
    """Compile a function that calls the one of these compiled ``functions`` that its arguments ask for.

    The ``template`` takes the arguments of the functions, and calls ``this`` if they ask for number ``place``, else
    ``later``.
    """
    *others, chosen = functions
    for number, function in reversed(list(enumerate(others))):
        chosen = _filled(template, {"this": function, "later": chosen}, place=number)
    return cast("Function", chosen)


def _filled(template: Any, functions: Mapping[str, Callable[..., object]], **constants: int) -> Any:
    """Compile a template; its name, which keys the cache, identifies what was filled in."""
    parts = [f"{function.__module__}.{function.__qualname__}" for function in functions.values()]
    mark = hashlib.sha256(repr([parts, constants]).encode()).hexdigest()[:12]
    filled = types.FunctionType(template.__code__, {**template.__globals__, **functions, **constants})
    filled.__qualname__, filled.__module__ = f"{template.__qualname__}_{mark}", template.__module__
    if not all(isinstance(function, Dispatcher) for function in functions.values()):
        return filled
    return _compile(filled, is_own=all(map(_is_own, functions.values())), inline="always")


def _is_own(function: Any) -> bool:
    """Whether a function, and every function filled into it, is part of fairduel."""
    if hasattr(function, "is_own"):
        return bool(function.is_own)
    return _PACKAGE in Path(function.__code__.co_filename).parents


def _compile(function: Callable[..., object], *, is_own: bool, inline: Literal["never", "always"]) -> Any:
    # Numba only checks whether a function's own file changed, and would keep using outdated code of its callees. So
    # each version of the compiled sources has a cache folder of its own. The decorator reads the setting when it runs.
    config: Any = numba.config
    folder = _cache_folder()
    others, config.CACHE_DIR = config.CACHE_DIR, folder or config.CACHE_DIR
    try:
        keep = bool(folder) and is_own
        dispatcher: Any = numba.njit(cache=keep, nogil=True, error_model="numpy", inline=inline)(function)
    finally:
        config.CACHE_DIR = others
    dispatcher.is_own = is_own
    if keep and sys.platform != "win32":
        dispatcher.compile = functools.partial(_compile_alone, dispatcher, Path(folder) / "locks")
    return dispatcher


def _compile_alone(dispatcher: Any, locks: Path, signature: Any) -> Any:
    """Compile, or load what another process compiled meanwhile: those that start together compile a function once.

    Numba's cache may also mix up two files if two processes save versions of a function at the same time.
    """
    name = f"{dispatcher.py_func.__module__}.{dispatcher.py_func.__qualname__}"
    with global_compiler_lock, _lock_between_processes(locks, zlib.crc32(name.encode())):
        return Dispatcher.compile(dispatcher, signature)


@contextmanager
def _lock_between_processes(path: Path, place: int, *, patience: float = 60.0) -> Iterator[None]:
    """Hold one byte of a file; go on without it after ``patience`` seconds, as its owner may be suspended."""
    try:
        file = _opened(path, os.getpid())
        until = time.monotonic() + patience
        while not _locked(file, place) and time.monotonic() < until:
            time.sleep(0.02)
    except OSError:  # a folder that cannot be written to, or a file system without locks
        yield
        return
    try:
        yield
    finally:
        fcntl.lockf(file, fcntl.LOCK_UN, 1, place)


@functools.cache
def _opened(path: Path, process: int) -> int:  # noqa: ARG001  (a fork opens it anew)
    """A descriptor that stays open: closing any of a file's descriptors would give up all its locks."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _locked(file: int, place: int) -> bool:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
    except (BlockingIOError, PermissionError):
        return False
    return True


@functools.cache
def _cache_folder() -> str:
    """The folder for machine code: NUMBA_CACHE_DIR, else beside the package, else in the user's cache.

    If none is writable, warn and use a private temporary folder, or none ("").
    """
    given = os.environ.get("NUMBA_CACHE_DIR")
    bases = [Path(given)] if given else [_PACKAGE / "__pycache__", *_user_cache()]
    name = f"compiled-{_digest(_compiled_sources())[:16]}"
    for base in bases:
        if _can_write(base / name):
            return str(base / name)
    temporary = _private_temporary_folder()
    if _is_main_process():  # workers need not repeat it
        instead = f"uses {temporary} for now" if temporary else "will compile again in every process"
        warnings.warn(
            f"fairduel cannot write its compiled code to {' or '.join(map(str, bases))} and {instead}; set "
            "NUMBA_CACHE_DIR to a writable folder.",
            stacklevel=2,
        )
    return str(temporary / name) if temporary else ""


def _user_cache() -> list[Path]:
    given = os.environ.get("XDG_CACHE_HOME")
    try:
        return [(Path(given) if given else Path.home() / ".cache") / "fairduel"]
    except RuntimeError:  # no home directory
        return []


def _can_write(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


def _private_temporary_folder() -> Path | None:
    """A temporary folder that only this user can write to, since code found there is executed; or ``None``."""
    try:
        user = os.getuid() if sys.platform != "win32" else "user"  # Windows has one per user
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
    """Every file with a compiled function in it; these call only each other."""
    mark = f"from {__name__} import"
    users = [path for path in _PACKAGE.rglob("*.py") if mark in path.read_text(encoding="utf-8")]
    return [Path(__file__), *users]


def _digest(paths: list[Path]) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(paths))).hexdigest()
