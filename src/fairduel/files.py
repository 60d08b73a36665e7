"""Files that are written whole or not at all."""

import os
from pathlib import Path

from fairduel.errors import BadInputError


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that a reader, or a crash, sees the old content or the new, never a part."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise BadInputError(f"cannot write {path}: {error.strerror}.") from error
