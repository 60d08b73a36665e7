"""How figures look, and figures as files."""

import functools
import html
import io
import unicodedata
import warnings
from collections.abc import Callable
from typing import Any, Literal

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator

from fairduel.words import printable_lines

# Fonts with glyphs that matplotlib's own lacks, where they are installed; those with bitmaps only cannot be drawn.
_WORLD_FONTS = (
    *("Noto Sans CJK SC", "Noto Sans CJK JP", "Source Han Sans SC", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei"),
    *("PingFang SC", "Hiragino Sans", "Microsoft YaHei", "Yu Gothic", "Malgun Gothic", "Arial Unicode MS"),
    *("Noto Sans Devanagari", "Noto Sans Thai", "Noto Sans Bengali", "Noto Sans Tamil"),
    *("Noto Emoji", "Segoe UI Emoji", "Segoe UI Symbol", "Symbola", "Unifont"),
)
_INSTALLED = {font.name for font in fontManager.ttflist}
WIDTH = 5.0
"""The width of a figure that fits beside its explanation and can be read on a phone, in inches."""
STYLE: dict[Any, Any] = {
    "font.family": ["sans-serif", *(name for name in _WORLD_FONTS if name in _INSTALLED)],
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "axes.titlesize": 11,
    "legend.frameon": False,
    "svg.hashsalt": "fairduel",
    "pdf.fonttype": 42,  # TrueType fonts, so that text in a PDF can be selected and edited
    "text.parse_math": False,  # names may contain dollar signs
}


def image(figure: Figure, kind: Literal["png", "svg", "pdf"]) -> bytes:
    """Return the figure as an image file; the same figure always gives the same bytes.

    An SVG file holds characters that no installed font has as text, which browsers draw with fonts of their own.
    """
    _rewrite(figure, printable_lines)
    stand_ins: dict[str, str] = {}
    if kind == "svg":
        _rewrite(figure, functools.partial(_stand_in, stand_ins=stand_ins))
    date = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    buffer = io.BytesIO()
    style = {**STYLE, "svg.fonttype": "none" if stand_ins else "path"}
    with mpl.rc_context(style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph .* missing from", UserWarning)
        figure.savefig(buffer, format=kind, dpi=150, bbox_inches="tight", metadata=date)
    figure.set_layout_engine("none")  # the next image reuses this layout, which is slow to compute
    if not stand_ins:
        return buffer.getvalue()
    _rewrite(figure, lambda line: stand_ins.get(line, line))
    drawn, escape = buffer.getvalue().decode(), functools.partial(html.escape, quote=False)
    for stand_in, line in stand_ins.items():
        drawn = drawn.replace(f">{escape(stand_in)}<", f">{escape(line)}<")
    return drawn.encode()


def _rewrite(figure: Figure, change: Callable[[str], str]) -> None:
    """Change the texts of a figure, the labels of its ticks included."""
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if isinstance(axis.get_major_locator(), FixedLocator):
                labels = [label.get_text() for label in axis.get_ticklabels()]
                changed = [change(label) for label in labels]
                if changed != labels:
                    axis.set_ticklabels(changed)
    for text in figure.findobj(Text):
        if isinstance(text, Text) and change(text.get_text()) != text.get_text():
            text.set_text(change(text.get_text()))


def _stand_in(line: str, stand_ins: dict[str, str]) -> str:
    """Return a line that is as wide as browsers will draw it, and unique: the missing glyphs are dashes of 1 em."""
    if line.isascii() or line in stand_ins or not (missing := set(map(ord, line)) - _glyphs()):
        return line
    known = next((stand_in for stand_in, original in stand_ins.items() if original == line), None)
    dashes = "".join(_dash(character) if ord(character) in missing else character for character in line)
    stand_in = known or dashes + "\u200b" * (len(stand_ins) + 1)  # of width 0
    stand_ins[stand_in] = line
    return stand_in


def _dash(character: str) -> str:
    return "" if unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Mn") else "—"


@functools.cache
def _glyphs() -> frozenset[int]:
    """The characters that the fonts of ``STYLE`` have."""
    files = [findfont(FontProperties(family=[name])) for name in STYLE["font.family"]]
    return frozenset(code for file in files for code in get_font(file).get_charmap()) | {ord("\n")}
