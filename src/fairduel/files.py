"""Files: written completely or not at all, with the versions that made them."""

import contextlib
import functools
import os
import platform
import secrets
import stat
from pathlib import Path

import fairduel
from fairduel.errors import BadInputError


def write_atomically(path: Path, content: bytes | memoryview) -> None:
    """Write a file so that neither a reader nor a crash ever sees a part of the new content.

    Any number of threads and processes may write the same file; the last one wins. An existing file keeps its mode, and
    a link stays a link to the file.
    """
    if not path.name:
        raise BadInputError(f"cannot write {path}: it is a folder; name a file in it.")
    try:
        path = path.resolve() if path.is_symlink() else path
        temporary = path.with_name(f".{secrets.token_hex(6)}.part")
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
        # Created with that mode, so that it is never readable by others in between.
        make = functools.partial(os.open, mode=0o666 if mode is None else mode)
        try:
            with open(temporary, "xb", opener=make) as file:
                if mode is not None:
                    temporary.chmod(mode)  # the umask may have narrowed it
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
    except OSError as error:
        raise BadInputError(f"cannot write {path}: {error.strerror}.") from error


@functools.cache
def versions() -> dict[str, str]:
    """Return the versions that results depend on."""
    import numba  # noqa: PLC0415  # slow, as is NumPy
    import numpy as np  # noqa: PLC0415

    return {
        "fairduel": fairduel.__version__,
        "numpy": np.__version__,
        "numba": numba.__version__,
        "python": platform.python_version(),
    }
