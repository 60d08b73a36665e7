"""Text from files, made safe to show: names may hold control characters, terminal codes or formulas."""

import re

_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufffe\uffff\ud800-\udfff]")
FORMULA = r"^[=+\-@\t\r\n＝＋－＠]"
"""How a cell begins that a spreadsheet may run as a formula, unless it is a ``NUMBER``."""
_DIGITS = r"[+\-−]?\.?[0-9][0-9.,]*(?:[eE][+\-]?[0-9]+)?%?"
NUMBER = rf"^{_DIGITS}(?: \[{_DIGITS}, {_DIGITS}\]| ± {_DIGITS}| \(one run\))?$"
"""A number as tables show it, perhaps with its interval or error."""


def printable(text: str) -> str:
    r"""Return a text with its control characters, line breaks included, written as escapes.

    Also escaped is what hides or reverses text (bidirectional controls), and what no file can hold (surrogates).

    >>> print(printable("tea\x1b[31m\n"))
    tea\x1b[31m\n
    """
    return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def printable_lines(text: str) -> str:
    r"""Return a text as :func:`printable` does, but with its line breaks.

    >>> print(printable_lines("tea\a\nmilk"))
    tea\x07
    milk
    """
    return "\n".join(map(printable, text.split("\n")))


def cell_text(text: str) -> str:
    """Return the text of a CSV cell, with an apostrophe before anything that a spreadsheet would run as a formula.

    >>> [cell_text(text) for text in ("tea", "=cmd|' /C calc'!A0", "-2+3+cmd", "+0.64", "-3.1 [-4, +2]")]
    ['tea', "'=cmd|' /C calc'!A0", "'-2+3+cmd", '+0.64', '-3.1 [-4, +2]']
    """
    return f"'{text}" if re.search(FORMULA, text) and not re.fullmatch(NUMBER, text) else text
