"""Columns of tables, each declared once: files, terminal, reports, the HTTP interface and live pages follow."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from numpy.typing import NDArray

Output = Literal["terminal", "report", "live"]
Row = Mapping[str, Any]
Values = Sequence[Any] | NDArray[Any]
Source = TypeVar("Source")
EVERYWHERE: tuple[Output, ...] = ("terminal", "report", "live")


@dataclass(frozen=True, kw_only=True)
class Column(Generic[Source]):
    """One column of a table about a ``Source``, such as a ranking."""

    name: str
    """In CSV, JSON and the HTTP interface."""
    meaning: str
    """One or two sentences for readers, without the final full stop of the last."""
    title: str = ""
    """Heading for people. Default: the name in words."""
    values: Callable[[Source], Values | None] | None = None
    """All its values, for files; None if it is only shown, or returns None if this source has none."""
    type: Any = float
    """Type of a value in the HTTP interface."""
    cell: Callable[[Row, Output], str] | None = None
    """How a row's record is shown; None if the column is only in files."""
    outputs: tuple[Output, ...] = EVERYWHERE
    """Where it is shown."""
    shown_if: Callable[[Sequence[Row]], bool] = bool
    """Whether it has anything to say about these records."""
    words: bool = False
    """Whether its cells are words rather than numbers."""
    optional: int = 0
    """The larger, the sooner a narrow terminal leaves it out; 0 for never."""

    @property
    def heading(self) -> str:
        """What readers see above the column."""
        return self.title or self.name.replace("_", " ")


Columns = Sequence[Column[Source]]


def frame_columns(columns: Columns[Source], source: Source) -> dict[str, Values]:
    """Return the values of each column that the source has, by name: the table as in CSV."""
    found = {each.name: each.values(source) for each in columns if each.values is not None}
    return {name: values for name, values in found.items() if values is not None}


def records(columns: Columns[Source], source: Source) -> list[dict[str, Any]]:
    """Return the same table by row: as in JSON."""
    found = frame_columns(columns, source)
    return [dict(zip(found, row, strict=True)) for row in zip(*found.values(), strict=True)]


def shown(columns: Columns[Any], rows: Sequence[Row], output: Output) -> list[Column[Any]]:
    """Return the columns that an output shows of these records."""
    return [each for each in columns if each.cell is not None and output in each.outputs and each.shown_if(rows)]


def cells(columns: Columns[Any], rows: Sequence[Row], output: Output) -> Iterator[list[str]]:
    """Yield the texts of each row, in the order of the columns."""
    for row in rows:
        yield [each.cell(row, output) for each in columns if each.cell is not None]


def shown_table(columns: Columns[Any], rows: Sequence[Row]) -> dict[str, Any]:
    """Return the table that live pages show, as JSON values: each column with its heading, and the texts by row."""
    chosen = sorted(shown(columns, rows, "live"), key=lambda each: not each.words)
    columns_json = [
        {"name": each.name, "heading": each.heading, "meaning": each.meaning, "words": each.words} for each in chosen
    ]
    return {"columns": columns_json, "rows": list(cells(chosen, rows, "live"))}


def explained(columns: Columns[Any]) -> str:
    """Explain the columns to readers by their headings and meanings; those of one meaning together.

    >>> explained([Column(name=name, meaning="how many it takes") for name in ("false_votes", "lying_voters")])
    'False votes, lying voters: how many it takes.'
    """
    headings = dict[str, list[str]]()
    for each in columns:
        headings.setdefault(each.meaning, []).append(each.heading)
    names = {meaning: ", ".join(found) for meaning, found in headings.items()}
    return " ".join(f"{name[0].upper()}{name[1:]}: {meaning}." for meaning, name in names.items())
