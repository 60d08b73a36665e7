"""Small pieces of English for sentences about votes."""

from collections.abc import Sequence

_MOST_LISTED = 5  # names; one more is listed rather than counted


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
