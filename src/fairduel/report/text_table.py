"""A table of text, and its CSV and LaTeX files."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from fairduel.votes.columns import Columns, Output, Row, cells, shown
from fairduel.words import cell_text, printable, with_minus

_MATH = (
    *("pm", "times", "cdot", "surd", "infty", "leq", "geq", "to", "|", "in", "lceil", "rceil"),
    *("alpha", "beta", "gamma", "delta", "theta", "kappa", "lambda", "mu", "sigma", "varphi", "Sigma", "tilde{O}"),
)
_LATEX = str.maketrans(
    {character: f"\\{character}" for character in "&%$#_{}"}
    | {character: f"$\\{command}$" for character, command in zip("±×·√∞≤≥→‖∈⌈⌉αβγδθκλµσφΣÕ", _MATH, strict=True)}
    | {character: f"$^{digit}$" for digit, character in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\u00a0": "~"}
    | {"−": "$-$", "½": r"$\frac12$", "–": "--", "…": r"\ldots{}", "“": "``", "”": "''"}
)


@dataclass(frozen=True)
class TextTable:
    """A table whose cells are formatted text; its first ``text`` columns hold words, the others numbers."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""
    text: int = 1
    marked: int | None = None
    """The row to highlight."""
    tones: Mapping[str, str] = field(default_factory=dict)
    """Colours of cells by their text: "good", "bad", "unsure" or "soft"."""
    meanings: Mapping[str, str] = field(default_factory=dict)
    """What columns mean, for those who point at them."""

    @classmethod
    def of(cls, cells: Iterable[Mapping[str, str]], columns: Sequence[str], caption: str = "", text: int = 1) -> Self:
        """Build a table from one mapping per row; entries that are not in ``columns`` are ignored.

        >>> TextTable.of([{"item": "tea", "rank": "1", "score": "+0.3"}], ["rank", "item"]).rows
        [['1', 'tea']]
        """
        return cls(columns, [[row[name] for name in columns] for row in cells], caption, text)

    def __post_init__(self) -> None:
        rows = ([*row[: self.text], *map(with_minus, row[self.text :])] for row in self.rows)
        object.__setattr__(self, "rows", list(rows))

    def csv(self) -> str:
        """Return the table as CSV: hyphens for minus signs, and an apostrophe if a spreadsheet would run a cell."""
        written = io.StringIO()
        rows = ([*row[: self.text], *(cell.replace("−", "-") for cell in row[self.text :])] for row in self.rows)
        cells = ([cell_text(cell) for cell in row] for row in [self.columns, *rows])
        csv.writer(written, lineterminator="\n").writerows(cells)
        return written.getvalue()

    def latex(self) -> str:
        r"""Return the table as a LaTeX ``tabular`` that needs the package booktabs.

        >>> print(TextTable(["item", "won"], [["R&D_1", "50 %"]]).latex())
        % \usepackage{booktabs}
        \begin{tabular}{lr}
        \toprule
        item & won \\
        \midrule
        R\&D\_1 & 50 \% \\
        \bottomrule
        \end{tabular}
        <BLANKLINE>
        """
        header, *rows = (
            " & ".join(printable(cell).translate(_LATEX) for cell in row) for row in [self.columns, *self.rows]
        )
        alignment = "l" * self.text + "r" * (len(self.columns) - self.text)
        body = "".join(f"{row} \\\\\n" for row in rows)
        return (
            f"% \\usepackage{{booktabs}}\n\\begin{{tabular}}{{{alignment}}}\n\\toprule\n{header} \\\\\n\\midrule\n"
            f"{body}\\bottomrule\n\\end{{tabular}}\n"
        )

    def markdown(self) -> str:
        r"""Return the table as Markdown.

        >>> print(TextTable(["item", "won"], [["tea|mint", "50%"]]).markdown())
        | item | won |
        |---|--:|
        | tea\|mint | 50% |
        """
        rows = ([printable(cell).replace("|", r"\|") for cell in row] for row in [self.columns, *self.rows])
        header, *body = (f"| {' | '.join(row)} |" for row in rows)
        rule = "|" + "---|" * self.text + "--:|" * (len(self.columns) - self.text)
        return "\n".join([header, rule, *body])


def tabulate(
    columns: Columns[Any],
    rows: Sequence[Row],
    output: Output,
    caption: str = "",
    *,
    among: Sequence[Row] | None = None,
) -> TextTable:
    """Tabulate rows by their declared columns; ``among`` are the rows that decide which columns are shown."""
    chosen = shown(columns, among or rows, output)
    if output == "report":
        chosen.sort(key=lambda each: not each.words)
    return TextTable(
        [each.heading for each in chosen],
        list(cells(chosen, rows, output)),
        caption,
        text=max(1, sum(each.words for each in chosen)),
        meanings={each.heading: f"{each.meaning[0].upper()}{each.meaning[1:]}." for each in chosen},
    )
