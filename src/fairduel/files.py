"""Atomic file writes."""

import functools
import os
import stat
from pathlib import Path

from fairduel.errors import BadInputError


def write_atomically(path: Path, content: bytes | memoryview) -> None:
    """Write a file so that a reader or a crash never sees a part of the new content.

    An existing file keeps its mode.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
        # Created with that mode, so that it is never readable by others in between.
        make = functools.partial(os.open, mode=0o666 if mode is None else mode)
        with open(temporary, "wb", opener=make) as file:
            if mode is not None:
                temporary.chmod(mode)  # the umask may have narrowed it
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise BadInputError(f"cannot write {path}: {error.strerror}.") from error
