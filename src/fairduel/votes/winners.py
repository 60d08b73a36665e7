"""Who won each vote: from a word for a position, a sign, or the name of an item."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fairduel.errors import BadInputError
from fairduel.votes.column_roles import PAIRS
from fairduel.votes.fields import WHOLE
from fairduel.votes.names import coded, distinct
from fairduel.votes.votes import Codes, Mask

FIRST_WORDS, SECOND_WORDS = zip(*PAIRS, ("1", "2"), strict=True)
"""Words for a winner by position, in upper or lower case."""
_TIE_WORDS = ("tie", "draw", "equal", "both", "both good", "0.5")
_BOTH_BAD_WORDS = ("both-bad", "both bad", "both_bad", "bothbad", "tie (bothbad)", "tie (both bad)", "neither")
UNKNOWN, FIRST, SECOND, TIE, BOTH_BAD = -1, 1, 0, 2, 3
"""Who won."""
_SIGNS = {"1": FIRST, "-1": SECOND, "0": TIE}
_STRAY = 0.05  # share of rows below which a spelling does not decide how the others are read


def read_winners(
    text: pl.Series, first: Codes, second: Codes, items: pl.Series, name: str, *, sides: tuple[str, str]
) -> tuple[NDArray[np.int8], Mask]:
    """Return who won each row, and which rows name no winner.

    The winner is ``FIRST``, ``SECOND``, ``TIE``, ``BOTH_BAD`` or ``UNKNOWN``, read from a word or an item's name.
    ``sides`` are the names of the items' columns, which are words too.
    """
    values = distinct(text)
    codes = coded(text, values)  # −1 (no winner) selects the last entry of the tables below
    words = {sides[0].lower(): FIRST, sides[1].lower(): SECOND}
    words |= dict.fromkeys(FIRST_WORDS, FIRST) | dict.fromkeys(SECOND_WORDS, SECOND)
    words |= dict.fromkeys(_TIE_WORDS, TIE) | dict.fromkeys(_BOTH_BAD_WORDS, BOTH_BAD)
    whole = values.str.strip_chars().str.replace(WHOLE.pattern, "${1}")
    plain = whole.str.to_lowercase()
    if _are_signs(plain, items):
        words |= _SIGNS
    meant = plain.replace_strict(words, default=UNKNOWN, return_dtype=pl.Int8).to_numpy()
    item_of = coded(values, items)
    item_of = np.where((item_of < 0) & (whole != values.str.strip_chars()).to_numpy(), coded(whole, items), item_of)
    by_word: NDArray[np.int8] = np.append(meant, np.int8(UNKNOWN))[codes]
    item = np.append(item_of, np.int32(-1))[codes]
    by_name = np.where(item == first, FIRST, np.where(item == second, SECOND, UNKNOWN)).astype(np.int8)
    by_name[item < 0] = UNKNOWN
    zeros = np.append((plain == "0").to_numpy() & (meant == UNKNOWN), [False])[codes]
    unknown_zeros = (zeros & (by_name == UNKNOWN)).sum()
    if 2 * unknown_zeros > zeros.sum() and unknown_zeros >= _STRAY * (codes >= 0).sum():
        raise BadInputError(f"winner 0 in {name} could mean the first or the second item: write first or second.")
    _ensure_both_sides(text, by_word, by_name, name)
    # Items may be called a and b, or 1 and 2. Then winners are either all names or all positions: what fits more rows.
    named = (item >= 0) & (first != second)
    with_places = int((by_word[named] != UNKNOWN).sum())
    if with_places == 0:
        return np.maximum(by_word, by_name), codes < 0
    with_names = int((by_name[named] != UNKNOWN).sum())
    differ = ((by_word != by_name) & (by_word != UNKNOWN) & (by_name != UNKNOWN) & named).any()
    if differ and abs(with_places - with_names) <= _STRAY * max(with_places, with_names):
        raise BadInputError(
            f"winners in {name} could be positions or item names, with different results: write first or second."
        )
    return np.where(item < 0, by_word, by_word if with_places > with_names else by_name), codes < 0


def _are_signs(plain: pl.Series, items: pl.Series) -> bool:
    """Whether winners are 1 and −1, for first and second, with 0 for a tie, and no item has such a name."""
    found = set(plain)
    return {"1", "-1"} <= found and "2" not in found and not {"1", "-1", "0"} & set(items)


def _ensure_both_sides(text: pl.Series, by_word: NDArray[np.int8], by_name: NDArray[np.int8], name: str) -> None:
    """Raise an error if only one position ever wins because the other is written in an unknown way."""
    first, second = (int(np.count_nonzero(by_word == side)) for side in (FIRST, SECOND))
    if bool(first) == bool(second):
        return
    unknown = text.filter(pl.Series((by_word == UNKNOWN) & (by_name == UNKNOWN))).drop_nulls()
    for word, count in unknown.value_counts(sort=True).head(1).iter_rows():
        if count >= max(_STRAY * (first + second), 2):
            only = "first" if first else "second"
            raise BadInputError(
                f"all readable winners in {name} are the {only} item, but {count:,} rows say {word!r}: write first, "
                "second or tie."
            )
