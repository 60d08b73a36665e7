"""Options and small helps that several commands share."""

import json
import math
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from fairduel.adversaries import ATTACKS
from fairduel.core.compiling import skip_compile_notice
from fairduel.errors import BadInputError, FairduelError
from fairduel.experiments.tuning import refuse_tuning_seeds
from fairduel.files import write_atomically
from fairduel.simulation import Cell, compile_agents, versions
from fairduel.worlds import WORLDS

console = Console()

Runs = Annotated[int, typer.Option(min=1, help="How many runs, each with its own seed.")]
Seed = Annotated[int, typer.Option(min=0, help="The first seed; the others follow it.")]
Jobs = Annotated[int, typer.Option(min=1, help="How many runs at a time.", show_default="all cores")]
Out = Annotated[Path, typer.Option(help="Folder for all that is written; finished runs there are not run again.")]
CORES = os.cpu_count() or 1
OWN = "or your own as module:Name"
Attack = Annotated[str, typer.Option(help=f"{', '.join(ATTACKS)}, {OWN}.")]
Budget = Annotated[int, typer.Option(min=0, help="C: the most outcomes that the attack may flip.")]
Horizon = Annotated[int, typer.Option(min=1, help="T: how many rounds.")]
World = Annotated[str, typer.Option(help=f"{', '.join(WORLDS)}, {OWN}.")]
SetAttack = Annotated[list[str], typer.Option(help="A setting of the attack: --set-attack target=worst.")]
SetWorld = Annotated[list[str], typer.Option(help="A setting of the world: --set-world dimension=3.")]


def report_seeds(first: int, runs: int) -> range:
    """Return the seeds of a report, none of which is a tuning seed."""
    seeds = range(first, first + runs)
    refuse_tuning_seeds(seeds)
    return seeds


def typed_command() -> str:
    """The command line as it was typed, for the record."""
    return shlex.join(["fairduel", *sys.argv[1:]])


def write_record(path: Path, record: Mapping[str, Any]) -> None:
    """Write what was found, and what made it, as JSON; it has no infinite numbers, so these are null."""
    plain = _finite({"command": typed_command(), "versions": versions(), **record})
    text = json.dumps(plain, indent=1, ensure_ascii=False, allow_nan=False, default=str)
    write_atomically(path, (text + "\n").encode())


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _finite(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def parse_settings(pairs: Iterable[str]) -> dict[str, Any]:
    """Read settings given as name=value.

    >>> parse_settings(["radius=8", "design=kappa", "self_duels=false"])
    {'radius': 8, 'design': 'kappa', 'self_duels': False}
    """
    settings: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name.isidentifier():
            raise BadInputError(f"a setting is written name=value, not {pair!r}.")
        settings[name] = _value(text)
    return settings


def _value(text: str) -> Any:
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def compile_first(cells: Iterable[Cell]) -> None:
    """Let workers find the compiled code of all agents on disk; say so if that took long."""
    skip_compile_notice()
    began = time.monotonic()
    with console.status("Compiling the mathematics for this machine (only the first time) …"):
        compile_agents(cells)
    seconds = time.monotonic() - began
    if seconds > 5:
        console.print(f"Compiled for this machine in {seconds:.0f} s; the next time it is there.")


KEPT = "finished runs are kept, and the same command goes on from there."


class StoppedError(FairduelError):
    """Ctrl-C was pressed during long work."""

    def __init__(self, left: str) -> None:
        super().__init__(f"stopped: {left}")


@contextmanager
def progress_bar(
    what: str, total: int, *, unit: str = "runs", left_by_stop: str = KEPT
) -> Iterator[Callable[[int], None]]:
    """Show a bar with the time left while runs finish; yields the function to call with each number done."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(what, total=total)
        try:
            yield lambda done: progress.advance(task, done)
        except KeyboardInterrupt:
            raise StoppedError(left_by_stop) from None
