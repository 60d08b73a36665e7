"""What commands print: findings on stdout, progress and notices on stderr, or one JSON object."""

import functools
import inspect
import json
import math
import os
import re
import shlex
import sys
import textwrap
import time
import webbrowser
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from fairduel.core.compiling import skip_compile_notice
from fairduel.errors import FairduelError
from fairduel.files import versions, write_atomically
from fairduel.report.text_table import TextTable, tabulate
from fairduel.votes.columns import Columns, Row, shown
from fairduel.words import printable

if TYPE_CHECKING:
    from fairduel.simulation import Cell

console = Console()
notices = Console(stderr=True)

Record = dict[str, Any]
PANEL = "Output"
_Json = Annotated[bool, typer.Option("--json", rich_help_panel=PANEL, help="Print one JSON object and nothing else.")]
_Figures = Annotated[
    bool,
    typer.Option(
        "--figures",
        rich_help_panel=PANEL,
        help="Write the page's figures (SVG, PNG, PDF) and tables (CSV, LaTeX) as files, too.",
    ),
]
_Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", rich_help_panel=PANEL, help="Print nothing but errors and warnings.")
]
# What a terminal may obey and JSON leaves as it is, and surrogates, which cannot be written.
_NOT_IN_JSON = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_PASSWORD = re.compile(r"(\bpostgres\w*(?:\+\w+)?://)[^?]*@|([?&]password=)[^&]*")
_UNBOUNDED = 100_000
_TEXT_WIDTH = 32
"""A column of words may be wrapped to this width."""
_TITLE_WIDTH = 9
"""A column's title may be wrapped to this width."""


def reporting(command: Callable[..., Record], *, writes_page: bool = False) -> Callable[..., None]:
    """Add ``--json``, ``--quiet`` and, if it writes a page, ``--figures`` to a command that returns what it found."""

    @functools.wraps(command)
    def run(*, as_json: bool, quiet: bool, figures: bool = False, **arguments: Any) -> None:
        console.quiet, notices.quiet = as_json or quiet, quiet
        skip_compile_notice()  # compile_first has its own
        with _files_beside_pages() if figures else nullcontext():
            found = command(**arguments)
        if as_json:
            typer.echo(_json(found))
        if failed := found.get("failed"):
            raise FailedError(" ".join(failed))

    extra: dict[str, Any] = ({"figures": _Figures} if writes_page else {}) | {"as_json": _Json, "quiet": _Quiet}
    signature = inspect.signature(command)
    added = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=extra[n]) for n in extra]
    run.__signature__ = signature.replace(parameters=[*signature.parameters.values(), *added])  # type: ignore[attr-defined]
    run.__annotations__ = {**command.__annotations__, **extra}
    return run


def _files_beside_pages() -> AbstractContextManager[None]:
    from fairduel.report.page import with_files  # noqa: PLC0415  # plotting is slow

    return with_files()


def typed_command() -> str:
    """The command line as typed, for the record, without passwords of databases."""
    return shlex.join(["fairduel", *(_PASSWORD.sub(r"\1\2…", word) for word in sys.argv[1:])])


def record(**found: Any) -> Record:
    """Return the findings with the command and the versions that made them; NaN and infinity become null."""
    plain: Record = _finite({"command": typed_command(), "versions": versions(), **found})
    return plain


def write_record(path: Path, found: Mapping[str, Any]) -> None:
    """Write a record as JSON."""
    write_atomically(path, (_json(found) + "\n").encode())


def _json(found: Mapping[str, Any]) -> str:
    text = json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False, default=str)
    return _NOT_IN_JSON.sub(lambda character: f"\\u{ord(character[0]):04x}", text)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _finite(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def say(*sentences: str, style: str = "") -> None:
    """Print sentences literally, wrapped between words in a terminal."""
    for sentence in sentences:
        _say(console, sentence, style)


def notify(sentence: str) -> None:
    """Print a sentence on stderr."""
    _say(notices, sentence)


def warn(sentence: str) -> None:
    """Print a sentence on stderr, even with ``--quiet``."""
    _say(Console(stderr=True), sentence)


def notify_assumptions(cells: Iterable["Cell"]) -> None:
    """Say on stderr what agents take for granted, such as a flip budget that they are not told."""
    for sentence in dict.fromkeys(sentence for cell in cells for sentence in cell.assumptions):
        notify(sentence)


def say_report(path: Path | str, *closing: str) -> None:
    """End with some sentences, if any, and where the report is."""
    if closing:
        say("", *closing)
    say("")
    console.print(Text.assemble("Report: ", (printable(str(path)), "bold")), soft_wrap=True, highlight=False)


def is_looked_at() -> bool:
    """Whether someone sits at this terminal, and has more than a browser for terminals."""
    has_windows = sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return sys.stdout.isatty() and bool(has_windows)


def open_in_browser(page: Path) -> None:
    """Show a page to someone at a terminal."""
    if is_looked_at() and not console.quiet:
        webbrowser.open(page.resolve().as_uri())


def _say(to: Console, sentence: str, style: str = "") -> None:
    sentence = printable(sentence)
    text = _folded(sentence, to.width) if to.is_terminal else sentence
    to.print(Text(text, style), soft_wrap=True, highlight=False)


def _folded(text: str, width: int) -> str:
    """Wrap between words only: rich would break long ones, such as paths."""
    return textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)


def print_columns(
    columns: Columns[Any],
    rows: Sequence[Row],
    caption: str = "",
    *,
    among: Sequence[Row] | None = None,
    file: Path | str = "the report",
) -> None:
    """Print rows by their declared columns, as :func:`print_table` does; ``among`` as in :func:`tabulate`."""
    chosen = sorted(shown(columns, among or rows, "terminal"), key=lambda each: -each.optional)
    print_table(
        tabulate(columns, rows, "terminal", caption, among=among),
        text=[each.heading for each in chosen if each.words],
        optional=[each.heading for each in chosen if each.optional],
        file=file,
    )


def print_table(
    table: TextTable, *, text: Collection[str] = (), optional: Sequence[str] = (), file: Path | str = "the report"
) -> None:
    """Print a table in full, or without some ``optional`` columns if the terminal is too narrow for them.

    Args:
        table: Its rows; a row of one cell is a heading.
        text: Columns of words, aligned left and wrapped if need be; the others are numbers.
        optional: Columns to leave out, the least useful first.
        file: Where to find these columns.
    """
    columns, *rows = ([printable(cell) for cell in row] for row in (table.columns, *table.rows))
    table = replace(table, columns=columns, rows=rows)
    width = console.width if console.is_terminal else _UNBOUNDED
    titles, dropped = _layout(table, width, text, optional)
    shown = [place for place, name in enumerate(table.columns) if name not in dropped]
    grid = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in (table.columns[place] for place in shown):
        is_text = name in text
        grid.add_column(
            Text(titles[name]), justify="left" if is_text else "right", no_wrap=not is_text, overflow="fold"
        )
    for row in table.rows:
        if len(row) == 1:
            grid.add_row(Text(row[0], "bold"))
        else:
            grid.add_row(*(Text(row[place]) for place in shown))
    say("", *([table.caption] if table.caption else []), style="bold")
    to = console if console.is_terminal else Console(file=console.file, width=width, quiet=console.quiet)
    to.print(grid)
    if dropped:
        say(f"Terminal too narrow to show: {', '.join(dropped)} (see {file}).")


def _layout(
    table: TextTable, width: int, text: Collection[str], optional: Sequence[str]
) -> tuple[dict[str, str], list[str]]:
    """The titles, folded if that helps the table to fit, and the optional columns that still have to go."""
    rows = [row for row in table.rows if len(row) > 1]
    cells = {name: max([cell_len(row[place]) for row in rows], default=0) for place, name in enumerate(table.columns)}
    cells |= {name: min(cells[name], _TEXT_WIDTH) for name in text if name in cells}
    titles = {name: name for name in table.columns}
    if _width(titles, cells) > width:
        titles = {name: _folded(name, max(cells[name], _TITLE_WIDTH)) for name in table.columns}
    dropped: list[str] = []
    for name in optional:
        if _width(titles, cells) <= width:
            break
        if titles.pop(name, None) is not None:
            dropped.append(name)
    return titles, dropped


def _width(titles: Mapping[str, str], cells: Mapping[str, int]) -> int:
    """The width of a table with these titles over cells of this width."""
    widths = [max(cells[name], *map(cell_len, title.split("\n"))) for name, title in titles.items()]
    return sum(widths) + 3 * (len(widths) - 1)


def print_records(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows one below another, one line per value."""
    longest = max(map(len, columns), default=0)
    for number, row in enumerate(rows, start=1):
        say("", f"Row {number}", style="bold")
        for name, value in zip(columns, row, strict=True):
            say(f"{name:{longest}}  {value}")


def fits_terminal(table: TextTable, text: Collection[str]) -> bool:
    """Whether all columns of a table fit into the terminal."""
    return not console.is_terminal or not _layout(table, console.width, text, table.columns)[1]


def compile_first(cells: Iterable["Cell"]) -> None:
    """Compile the agents before workers start, so that they find the code on disk."""
    from fairduel.simulation import compile_agents  # noqa: PLC0415  # as above

    began = time.monotonic()
    with notices.status("Preparing (compiles on first use) …"):
        compile_agents(cells)
    seconds = time.monotonic() - began
    if seconds > 5:
        notify(f"Compiled in {seconds:.0f} s (cached).")


class StoppedError(FairduelError):
    """Ctrl-C was pressed during long work."""

    exit_code = 130

    def __init__(self, state: str) -> None:
        super().__init__(f"stopped: {state}")


class FailedError(FairduelError):
    """The command found what ``--fail-on`` names."""

    exit_code = 1


RUNS_SAVED = "finished runs are saved; rerun to resume."


@contextmanager
def progress_bar(
    what: str, total: int, *, unit: str = "runs", on_stop: str = RUNS_SAVED
) -> Iterator[Callable[[int], None]]:
    """Show a bar with the time left, if there is anything to do; yields the function to call with each number done.

    ``on_stop`` tells the user what Ctrl-C leaves behind.
    """
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    progress = Progress(*columns, console=notices)
    task = progress.add_task(what, total=total)
    with progress if total and notices.is_terminal else nullcontext():  # a disabled bar of rich 13.7 prints a newline
        try:
            yield lambda done: progress.advance(task, done)
        except KeyboardInterrupt:
            raise StoppedError(on_stop) from None
