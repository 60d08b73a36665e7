"""Output folders: each belongs to one command, and nothing in it is replaced silently."""

import json
import shlex
from pathlib import Path

from fairduel.cli.output import notify, typed_command, write_record
from fairduel.errors import BadInputError

_MARKER = "command.json"


def claim(folder: Path, command: str) -> None:
    """Make the output folder of a command and mark it; refuse one with the results of another command.

    A report that other arguments made is replaced, with a notice on stderr. Folders from older versions have no mark
    and may be used by any command.
    """
    before = _read(folder / _MARKER)
    typed = typed_command()
    if before and before["name"] != command:
        raise BadInputError(f"{folder} holds the results of fairduel {before['name']}: choose another --out.")
    if before and _arguments(before["command"]) != _arguments(typed):
        notify(f"Replacing the results of {before['command']!r} in {folder}.")
    elif not before and any(folder.glob("*.html")):
        notify(f"Replacing the report in {folder}.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInputError(f"cannot write to {folder}: {error.strerror}.") from error
    write_record(folder / _MARKER, {"name": command, "command": typed})


def _read(marker: Path) -> dict[str, str] | None:
    try:
        found = json.loads(marker.read_bytes())
        return {"name": str(found["name"]), "command": str(found["command"])}
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
