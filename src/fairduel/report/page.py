"""One self-contained HTML page per report; on request, its figures and tables are files beside it too.

A page says where it comes from: command, date, versions and git commit.
"""

import base64
import functools
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape
from matplotlib.figure import Figure

from fairduel.files import versions, write_atomically
from fairduel.report.drawing import image
from fairduel.report.text_table import TextTable
from fairduel.words import printable_lines

_ROOT = Path(__file__).parents[3]
_WIDE = 8.8  # inches; narrower figures have their explanations beside them
_MOST_SHOWN = 4  # conclusions; readers have to open the others
_FIGURE_FILES: tuple[Literal["svg", "png", "pdf"], ...] = ("svg", "png", "pdf")
_with_files = ContextVar("_with_files", default=False)


def provenance(command: str, seeds: Sequence[int] = ()) -> dict[str, str]:
    """Return how a report was made, as text by name."""
    packages = dict(versions())
    found = {
        "Command": command,
        "Date": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "fairduel": packages.pop("fairduel"),
    }
    if commit := _commit(_ROOT):
        found["Git commit"] = commit
    if seeds:
        found["Runs"] = runs_text(seeds)
    found["Software"] = ", ".join(f"{name} {version}" for name, version in packages.items())
    return found


def runs_text(seeds: Sequence[int]) -> str:
    """Return the number of runs and their seeds.

    >>> runs_text(range(10)), runs_text([3])
    ('10 runs (seeds 0–9)', '1 run (seed 3)')
    """
    if len(seeds) == 1:
        return f"1 run (seed {seeds[0]:,})"
    return f"{len(seeds):,} runs (seeds {min(seeds):,}–{max(seeds):,})"


def _commit(root: Path) -> str:
    """Return the commit that the package runs from; empty unless ``root`` is a git checkout."""
    if not (root / ".git").exists():  # a worktree has a file there
        return ""
    try:
        commit = _git(root, "rev-parse", "--short=10", "HEAD")
        changed = _git(root, "status", "--porcelain", "--", "src")
    except (OSError, subprocess.SubprocessError):
        return ""
    return f"{commit} with uncommitted changes" if changed else commit


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()  # noqa: S603


_OPTION = re.compile(r"(?<!\S)(--[a-z]+(?:-[a-z]+)+)")
_DARK_ORANGE = (
    "<style>@media screen and (prefers-color-scheme: dark) {"
    '[style*="stroke: #e69f00"] {stroke: #5a5200 !important} [style*="fill: #e69f00"] {fill: #5a5200 !important}'
    "}</style>"
)


@dataclass(frozen=True)
class Drawn:
    """A figure with its caption."""

    caption: str
    figure: Figure
    alt: str = ""
    """What the figure shows, for those who cannot see it; if empty, the caption is used."""
    name: str = ""
    """Its file name without suffix; if empty, it is named after its section."""
    narrow: Figure | None = None
    """The same figure for phones."""

    @functools.cached_property
    def svg(self) -> bytes:
        """The figure as an SVG file."""
        return image(self.figure, "svg")

    @property
    def is_wide(self) -> bool:
        """Whether it needs the whole width of a page."""
        return bool(self.figure.get_figwidth() > _WIDE)

    @property
    def uri(self) -> str:
        """The figure as a data URI."""
        return _data_uri(self.svg)

    @property
    def narrow_uri(self) -> str:
        """The figure for phones as a data URI; empty without one."""
        return _data_uri(image(self.narrow, "svg")) if self.narrow else ""


@dataclass(frozen=True)
class Section:
    """A part of a page with its own heading."""

    title: str
    paragraphs: Sequence[str] = ()
    tables: Sequence[TextTable] = ()
    figures: Sequence[Drawn] = ()
    conclusions: Sequence[str] = ()
    terms: Mapping[str, str] = field(default_factory=dict)
    """Names with their values or explanations."""
    name: str = ""
    """Prefix of its table files, on pages whose sections have tables of the same name."""
    folded: bool = False
    """Whether readers have to open it."""


@dataclass(frozen=True)
class Page:
    """A report: its conclusions, its sections, and the command and seeds that made it."""

    title: str
    conclusions: Sequence[str]
    sections: Sequence[Section]
    command: str
    question: str = ""
    seeds: Sequence[int] = ()


@contextmanager
def with_files() -> Iterator[None]:
    """Make :func:`write_page` write the figures (SVG, PNG, PDF) and tables (CSV, LaTeX) of its pages as files too."""
    before = _with_files.set(True)
    try:
        yield
    finally:
        _with_files.reset(before)


def write_page(folder: Path, page: Page) -> Path:
    """Write ``report.html`` to ``folder`` and return its path; remove the files of figures and tables before it."""
    figures = [(folder / f"{name}.{kind}", kind, drawn) for name, drawn in _figures(page) for kind in _FIGURE_FILES]
    for old in (*folder.glob("table-*.csv"), *folder.glob("table-*.tex"), *(path for path, *_ in figures)):
        old.unlink(missing_ok=True)
    if _with_files.get():
        for path, kind, drawn in figures:
            write_atomically(path, drawn.svg if kind == "svg" else image(drawn.figure, kind))
        for name, table in _tables(page):
            write_atomically(folder / f"{name}.csv", table.csv().encode())
            write_atomically(folder / f"{name}.tex", table.latex().encode())
    environment = Environment(
        loader=PackageLoader("fairduel.report"),
        autoescape=select_autoescape(),
        undefined=StrictUndefined,
        finalize=lambda value: printable_lines(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"slug": slug, "prose": prose}
    html = environment.get_template("page.html").render(
        page=page,
        runs=runs_text(page.seeds) if page.seeds else "",
        made=provenance(page.command, page.seeds),
        most_shown=_MOST_SHOWN,
    )
    path = folder / "report.html"
    write_atomically(path, html.encode())
    return path


def _figures(page: Page) -> Iterator[tuple[str, Drawn]]:
    for section in page.sections:
        for drawn in section.figures:
            yield drawn.name or slug(section.title), drawn


def _tables(page: Page) -> Iterator[tuple[str, TextTable]]:
    taken: set[str] = set()
    for section in page.sections:
        for table in section.tables:
            name = "-".join(filter(None, ["table", section.name, slug(table.caption or section.title)]))
            unique = next(n for n in (name, *(f"{name}-{i}" for i in range(2, 1000))) if n not in taken)
            taken.add(unique)
            yield unique, table


def slug(text: str) -> str:
    """Return the text as part of a file name or link.

    >>> slug("Who beat whom?"), slug("C = 45, greedy")
    ('who-beat-whom', 'c-45-greedy')
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60].strip("-") or "section"


def prose(text: str) -> Markup:
    """Return a sentence as HTML in which options do not break after their hyphens.

    >>> print(prose("Tea & cake? Rerun with --voters-choose-duels."))
    Tea &amp; cake? Rerun with <span class="word">--voters-choose-duels</span>.
    """
    return Markup(_OPTION.sub(r'<span class="word">\1</span>', str(escape(printable_lines(text)))))  # noqa: S704


def _data_uri(svg: bytes) -> str:
    """Return an SVG file as a data URI, with an orange that stays one when dark pages invert it."""
    svg = svg.replace(b"</metadata>", b"</metadata>" + _DARK_ORANGE.encode(), 1)
    return "data:image/svg+xml;base64," + base64.b64encode(svg).decode()
