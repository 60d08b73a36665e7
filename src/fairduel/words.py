"""Small pieces of English for sentences about votes, and text from files made safe to show.

Names in files may hold control characters, terminal codes or formulas.
"""

import re
from collections.abc import Sequence

_ARGUMENT = re.compile(r"([( ])([a-z][a-z_]*)=(…|(?:None|'[a-z-]+')(?=\)))")
_OTHERWISE = {"words": "map"}  # an option with another name than its argument
_MOST_LISTED = 5  # names; one more is listed rather than counted


def as_options(sentence: str) -> str:
    """Spell the Python arguments of a sentence, ``(name=value)`` or ``name=…``, as options of the command line.

    >>> as_options("name it with winner=…, or leave weights out (weight=None)")
    'name it with --winner, or leave weights out (--weight none)'
    """

    def option(found: re.Match[str]) -> str:
        before, name, value = found.groups()
        given = "" if value == "…" else " " + value.strip("'").lower()
        return f"{before}--{_OTHERWISE.get(name, name).replace('_', '-')}{given}"

    return _ARGUMENT.sub(option, sentence)


def ordinal(number: int) -> str:
    """Write a rank as an ordinal number.

    >>> [ordinal(number) for number in (1, 2, 3, 4, 11, 22, 113)]
    ['1st', '2nd', '3rd', '4th', '11th', '22nd', '113th']
    """
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def listed(names: Sequence[str]) -> str:
    """Join names as in a sentence.

    >>> listed(["tea"]), listed(["tea", "milk", "juice"])
    ('tea', 'tea, milk and juice')
    """
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def shortened(names: Sequence[str]) -> str:
    """Join names as in a sentence, counting those after the fifth.

    >>> shortened("abcdef"), shortened("abcdefg")
    ('a, b, c, d, e and f', 'a, b, c, d, e and 2 more')
    """
    return listed(
        names if len(names) <= _MOST_LISTED + 1 else [*names[:_MOST_LISTED], f"{len(names) - _MOST_LISTED} more"]
    )


def counted_noun(count: int, noun: str) -> str:
    """Write a number with its noun.

    >>> counted_noun(1, "voter"), counted_noun(1200, "voter")
    ('1 voter', '1,200 voters')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def rough(number: float) -> str:
    """Write a number to three digits, because it is not known better.

    >>> rough(1234567.0), rough(12.0)
    ('1,230,000', '12')
    """
    return f"{float(f'{number:.3g}'):,.0f}"


_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff\ud800-\udfff]")
FORMULA = r"^[=+\-@\t\r\n＝＋－＠]"
"""How a cell begins that a spreadsheet may run as a formula, unless it is a ``NUMBER``."""
_DIGITS = r"[+\-−]?\.?[0-9][0-9.,]*(?:[eE][+\-]?[0-9]+)?%?"
NUMBER = rf"^{_DIGITS}(?: \[{_DIGITS}, {_DIGITS}\]| ± {_DIGITS}| \(one run\))?$"
"""A number as tables show it, perhaps with its interval or error."""


def with_minus(text: str) -> str:
    """Write the minus signs of a text that is a number, perhaps with its interval or error, as such.

    >>> [with_minus(text) for text in ("-3.1 [-4, +2]", "voter-7", "-")]
    ['−3.1 [−4, +2]', 'voter-7', '-']
    """
    return text.replace("-", "−") if re.fullmatch(NUMBER, text) else text


def printable(text: str) -> str:
    r"""Return a text with its control characters, line breaks included, written as escapes.

    Also escaped is what hides or reverses text (bidirectional controls, byte order marks), and what no file can hold
    (surrogates).

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
