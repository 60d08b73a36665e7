"""Files that are written whole or not at all."""

import functools
import os
import stat
from pathlib import Path

from fairduel.errors import BadInputError


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a reader, or a crash, sees the old content or the new, never a part.

    A file that is there keeps its mode.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
        # Made with that mode, so that nobody reads what they must not before it is set.
        make = functools.partial(os.open, mode=0o666 if mode is None else mode)
        with open(temporary, "wb", opener=make) as file:
            if mode is not None:
                temporary.chmod(mode)  # which the umask may have narrowed
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise BadInputError(f"cannot write {path}: {error.strerror}.") from error
