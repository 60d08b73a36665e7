"""Names as codes: distinct texts, sorted, and the index of each text among them."""

import unicodedata

import numpy as np
import polars as pl

from fairduel.votes.fields import WHOLE
from fairduel.votes.votes import Codes


def coded(text: pl.Series, names: pl.Series) -> Codes:
    """Return the index of each text in ``names``, or −1."""
    codes = text.cast(pl.Enum(names), strict=False).to_physical().cast(pl.Int32).fill_null(-1)
    return codes.to_numpy(writable=True)


def distinct(text: pl.Series) -> pl.Series:
    """Return the distinct texts, without blank ones."""
    names = text.unique().drop_nulls()
    return names.filter(names.str.strip_chars() != "")


def sorted_names(text: pl.Series) -> pl.Series:
    """Return the distinct texts, sorted: numerically if all are whole numbers, otherwise alphabetically."""
    names = distinct(text)
    numbers = names.cast(pl.Int64, strict=False)
    are_numbers = len(names) > 0 and (numbers.cast(pl.String) == names).fill_null(value=False).all()
    return names.gather(numbers.arg_sort()) if are_numbers else names.sort()


def item_codes(first: pl.Series, second: pl.Series) -> tuple[Codes, Codes, pl.Series]:
    """Return the codes (n,) of the first and the second item of each row, and the names of all items."""
    items = sorted_names(pl.concat([first.unique().alias("item"), second.unique().alias("item")]))
    return coded(first, items), coded(second, items), items


def keep_used(names: pl.Series, *codes: Codes) -> tuple[str, ...]:
    """Drop names that no vote uses, and renumber the ``codes`` (n,) in place."""
    used = np.zeros(len(names) + 1, dtype=bool)
    for part in codes:
        used[part] = True
    place = np.append(np.cumsum(used[:-1]) - 1, -1).astype(np.int32)  # −1 stays −1
    for part in codes:
        part[:] = place[part]
    return tuple(names.filter(pl.Series(used[:-1])).to_list())


def look_alikes(kind: str, names: pl.Series) -> list[str]:
    """Warn about names that look the same; they stay different."""
    odd = names.filter(
        (names.str.strip_chars() != names) | ~names.str.contains(r"^[\x00-\x7f]*$") | names.str.contains(WHOLE.pattern)
    )
    groups: dict[str, list[str]] = {}
    for name in odd:
        clean = unicodedata.normalize("NFC", name.strip())
        groups.setdefault(WHOLE.sub(r"\1", clean), []).append(name)
    plain = set(names.filter(names.is_in(list(groups)))) if groups else set()
    for clean, group in groups.items():
        if clean in plain and clean not in group:
            group.append(clean)
    same = [group for group in groups.values() if len(group) > 1]
    return [
        f"the {kind} {' and '.join(repr(name) for name in group)} differ only in spaces, accent encoding or a trailing "
        ".0; they are kept separate."
        for group in same
    ]
