"""One self-contained HTML page per report, with its figures and tables as separate files beside it."""

import base64
import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from matplotlib.figure import Figure

from fairduel.files import write_atomically
from fairduel.report.figures import image
from fairduel.report.provenance import provenance, runs_text
from fairduel.report.text_table import TextTable
from fairduel.text import printable_lines

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


def write_page(folder: Path, page: Page) -> Path:
    """Write ``report.html``, its figures (PNG, SVG, PDF) and its tables (CSV, LaTeX) to ``folder``; return the page."""
    for name, drawn in _figure_names(page.sections):
        write_atomically(folder / f"{name}.svg", drawn.svg)
        for kind in ("png", "pdf"):
            write_atomically(folder / f"{name}.{kind}", image(drawn.figure, kind))
    for old in (*folder.glob("table-*.csv"), *folder.glob("table-*.tex")):
        old.unlink()
    for name, table in _table_names(page.sections):
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
    environment.filters["slug"] = slug
    html = environment.get_template("page.html").render(
        page=page,
        runs=runs_text(page.seeds) if page.seeds else "",
        made=provenance(page.command, page.seeds),
    )
    path = folder / "report.html"
    write_atomically(path, html.encode())
    return path


def _figure_names(sections: Sequence[Section]) -> Iterator[tuple[str, Drawn]]:
    for section in sections:
        for drawn in section.figures:
            yield drawn.name or slug(section.title), drawn


def _table_names(sections: Sequence[Section]) -> Iterator[tuple[str, TextTable]]:
    taken: set[str] = set()
    for section in sections:
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


def _data_uri(svg: bytes) -> str:
    """Return an SVG file as a data URI, with an orange that stays one when dark pages invert it."""
    svg = svg.replace(b"</metadata>", b"</metadata>" + _DARK_ORANGE.encode(), 1)
    return "data:image/svg+xml;base64," + base64.b64encode(svg).decode()
