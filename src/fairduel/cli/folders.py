"""Output folders: each belongs to one command, and nothing in it is replaced silently."""

import json
import os
import shlex
from pathlib import Path

from fairduel.cli.output import notify, typed_command, warn, write_record
from fairduel.errors import BadInputError

_MARKER = "command.json"


def claim(folder: Path, command: str, file: Path | None = None) -> None:
    """Make the output folder of a command and mark it; refuse one with the results of another command.

    A report that other arguments made is replaced, with a notice on stderr, which ``--quiet`` does not silence if the
    report was about another ``file``. Folders from older versions have no mark and may be used by any command.
    """
    before = made_by(folder, command)
    typed, read = typed_command(), None if file is None else os.path.relpath(file)
    if before and _arguments(before["command"]) != _arguments(typed):
        say_so = warn if read and before.get("file", read) != read else notify
        say_so(f"Replacing the results of {before['command']!r} in {folder}.")
    elif not before and any(folder.glob("*.html")):
        notify(f"Replacing the report in {folder}.")
    make_folder(folder)
    write_record(folder / _MARKER, {"name": command, "command": typed} | ({"file": read} if read else {}))


def made_by(folder: Path, command: str) -> dict[str, str] | None:
    """Return the mark of a folder, if it has one; raise an error if it is another command's."""
    found = _read(folder / _MARKER)
    if found and found["name"] != command:
        raise BadInputError(f"{folder} holds the results of fairduel {found['name']}: choose another --out.")
    return found


def check_folder(folder: Path, command: str) -> None:
    """Raise an error if the command cannot write its results to a folder; change nothing."""
    made_by(folder, command)
    place = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not place.is_dir() or not os.access(place, os.W_OK):
        raise BadInputError(f"cannot write to {folder}: choose another --out.")


def make_folder(folder: Path) -> None:
    """Make a folder unless it exists."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInputError(f"cannot write to {folder}: {error.strerror}.") from error


def _read(marker: Path) -> dict[str, str] | None:
    try:
        found = json.loads(marker.read_bytes())
        return {name: str(found[name]) for name in ("name", "command", *({"file"} & set(found)))}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _arguments(command: str) -> list[str]:
    """The arguments that may change a report: not how it is printed, nor how many jobs made it.

    >>> _arguments("fairduel simulate --runs 3 --jobs 2 -q")
    ['fairduel', 'simulate', '--runs', '3']
    """
    kept: list[str] = []
    words = iter(shlex.split(command))
    for word in words:
        if word == "--jobs":
            next(words, None)
        elif word not in ("--json", "--quiet", "-q") and not word.startswith("--jobs="):
            kept.append(word)
    return kept
