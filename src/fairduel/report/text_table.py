"""A table of text, and its CSV and LaTeX files."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from fairduel.text import cell_text, printable

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

    @classmethod
    def of(cls, cells: Iterable[Mapping[str, str]], columns: Sequence[str], caption: str = "", text: int = 1) -> Self:
        """Build a table from one mapping per row; entries that are not in ``columns`` are ignored.

        >>> TextTable.of([{"item": "tea", "rank": "1", "score": "+0.3"}], ["rank", "item"]).rows
        [['1', 'tea']]
        """
        return cls(columns, [[row[name] for name in columns] for row in cells], caption, text)

    def csv(self) -> str:
        """Return the table as CSV, its cells as shown, or with an apostrophe if a spreadsheet would run them."""
        written = io.StringIO()
        rows = ([cell_text(cell) for cell in row] for row in [self.columns, *self.rows])
        csv.writer(written, lineterminator="\n").writerows(rows)
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
