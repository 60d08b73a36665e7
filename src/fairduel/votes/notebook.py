"""How results show themselves in a notebook: a line of text, or a sentence and the first rows of a table."""

from abc import ABC, abstractmethod
from html import escape
from typing import TYPE_CHECKING, Any

from fairduel.words import printable

if TYPE_CHECKING:
    import polars as pl

_MOST_ROWS = 20
_LONGEST_CELL = 150  # characters
_LONGEST_SENTENCE = 300


class Result(ABC):
    """What every result can do: become a table, and show itself briefly."""

    @abstractmethod
    def to_frame(self) -> "pl.DataFrame":
        """Return the result as a table."""

    @abstractmethod
    def brief(self) -> str:
        """Return what the result is, in one sentence or less."""

    def _preview(self) -> "pl.DataFrame":
        """Return the table to show the first rows of."""
        return self.to_frame()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({clipped(self.brief(), _LONGEST_SENTENCE)})"

    def _repr_html_(self) -> str:
        """Return the result as HTML, for notebooks."""
        frame = self._preview()
        head = "".join(f"<th>{_text(name)}</th>" for name in frame.columns)
        rows = "".join(
            f"<tr>{''.join(f'<td>{_text(value)}</td>' for value in row)}</tr>\n"
            for row in frame.head(_MOST_ROWS).iter_rows()
        )
        table = f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n" if rows else ""
        more = len(frame) - _MOST_ROWS
        rest = f"<p>… and {more:,} more rows</p>\n" if more > 0 else ""
        return f"<p>{_text(self.brief(), _LONGEST_SENTENCE)}</p>\n{table}{rest}"


def _text(value: Any, longest: int = _LONGEST_CELL) -> str:
    """Return a value as HTML text.

    >>> _text(0.123456), _text(12_000), _text(None), _text("<b>"), _text(True)
    ('0.123', '12,000', '', '&lt;b&gt;', 'yes')
    """
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    if isinstance(value, int):
        return f"{value:,}"
    return "" if value is None else escape(clipped(str(value), longest))


def clipped(text: str, longest: int = _LONGEST_CELL) -> str:
    """Return the start of a text that is too long, with its control characters as escapes.

    >>> clipped("strawberry", 6)
    'straw…'
    """
    text = printable(text[: longest + 1])
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
