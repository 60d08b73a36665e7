"""Recorded votes as arrays: which items were compared, which won, and who voted."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse import csgraph

from fairduel.checks import needs_extra
from fairduel.duel import Matrix, Vector
from fairduel.errors import BadInputError, unknown_name
from fairduel.votes.notebook import Result
from fairduel.words import counted_noun

if TYPE_CHECKING:
    import polars as pl

Codes = NDArray[np.int32]
Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]
Ties = Literal["half", "drop"]
"""How ties count: ``"half"`` a win for each item, or ``"drop"``."""
MOST_WEIGHT, MOST_VOTES = 1e9, 1e12
"""The largest weight of a vote, and the largest sum of all weights."""
_MOST_ROWS = 20_000_000  # after writing out the weights


@dataclass(frozen=True, eq=False, repr=False)
class Votes(Result):
    """``n`` recorded votes between ``K`` items, in file order.

    Create votes with :meth:`from_arrays`, which validates its input, or with :func:`fairduel.votes.read_votes`.

    Args:
        items: Names of the ``K`` items.
        first: Index in ``items`` of the item shown first, shape ``(n,)``.
        second: Index in ``items`` of the other item, shape ``(n,)``.
        result: 1 where the first item won, 0 where the second won, 0.5 for a tie, shape ``(n,)``.
        weight: How many times each vote counts, shape ``(n,)``.
        row: Row number in the file, shape ``(n,)``. As in a text editor, the first vote below a header is row 2.
        voter: Index in ``voters`` of who voted, shape ``(n,)``; None if unknown.
        voters: Names of the voters.
        context: Index in ``contexts`` of what the items were compared on (a prompt, say), shape ``(n,)``; None if
            there are no contexts.
        contexts: Names of the contexts.
        time: Seconds as recorded (a timestamp or a response time), shape ``(n,)``; NaN where unknown.
        features: Numbers that may also have decided a vote, such as by how much the first answer is longer, shape
            ``(n, p)``; positive numbers are in favour of the first item. None if there are none.
        feature_names: Names of these ``p`` numbers.
        sides_known: Whether ``first`` is the item that was shown first. Otherwise a vote for one side means nothing.

    >>> votes = Votes.from_arrays(["tea", "milk"], first=[0, 1], second=[1, 0], result=[1, 0.5])
    >>> votes, votes.is_tie.tolist()
    (Votes(2 votes, 2 items), [False, True])
    """

    items: tuple[str, ...]
    first: Codes
    second: Codes
    result: Vector
    weight: Vector
    row: Indices
    voter: Codes | None = None
    voters: tuple[str, ...] = ()
    context: Codes | None = None
    contexts: tuple[str, ...] = ()
    time: Vector | None = None
    features: Matrix | None = None
    feature_names: tuple[str, ...] = ()
    sides_known: bool = True

    @classmethod
    def from_arrays(
        cls,
        items: Sequence[str],
        first: ArrayLike,
        second: ArrayLike,
        result: ArrayLike,
        *,
        weight: ArrayLike | None = None,
        row: ArrayLike | None = None,
        voter: ArrayLike | None = None,
        voters: Sequence[str] = (),
        context: ArrayLike | None = None,
        contexts: Sequence[str] = (),
        time: ArrayLike | None = None,
        features: ArrayLike | None = None,
        feature_names: Sequence[str] = (),
        sides_known: bool = True,
    ) -> Self:
        """Create votes from arrays of indices, after checking them.

        Args:
            items: See :class:`Votes`, as for all other arguments; names must be unique.
            first: Shape ``(n,)``.
            second: Shape ``(n,)``; must differ from ``first``.
            result: 1, 0 or 0.5, shape ``(n,)``.
            weight: Numbers ≥ 0, shape ``(n,)``. Default: 1 each.
            row: Shape ``(n,)``. Default: 2, 3, ….
            voter: Shape ``(n,)``.
            voters: Unique names.
            context: Shape ``(n,)``.
            contexts: Unique names.
            time: Shape ``(n,)``.
            features: Finite numbers, shape ``(n, p)``.
            feature_names: ``p`` unique names.
            sides_known: Whether ``first`` was shown first.

        Returns:
            The votes.

        Raises:
            BadInputError: An array has the wrong shape or an invalid value.

        >>> votes = Votes.from_arrays(["tea", "milk"], first=[0, 1], second=[1, 0], result=[1, 0.5])
        >>> len(votes), votes.row.tolist()
        (2, [2, 3])
        """
        names = _names("item", items)
        outcomes = _floats("result", result)
        count = len(outcomes)
        one, other = _codes("first", first, count, len(names)), _codes("second", second, count, len(names))
        if not np.isin(outcomes, (0.0, 0.5, 1.0)).all():
            raise BadInputError("every result must be 1 (first won), 0 (second won) or 0.5 (tie).")
        if (one == other).any():
            raise BadInputError(f"vote {int(np.argmax(one == other))} compares an item with itself.")
        weights = np.ones(count) if weight is None else _floats("weight", weight, count)
        if not (np.isfinite(weights) & (weights >= 0.0)).all():
            raise BadInputError("every weight must be a number ≥ 0.")
        check_weights(weights, "the votes")
        people, places = _names("voter", voters), _names("context", contexts)
        return cls(
            items=names,
            first=one,
            second=other,
            result=outcomes,
            weight=weights,
            row=np.arange(2, count + 2) if row is None else np.asarray(row, dtype=np.int64),
            voter=None if voter is None else _codes("voter", voter, count, len(people)),
            voters=people,
            context=None if context is None else _codes("context", context, count, len(places)),
            contexts=places,
            time=None if time is None else _floats("time", time, count),
            features=None if features is None else _table("features", features, count, len(feature_names)),
            feature_names=_names("feature", feature_names),
            sides_known=sides_known,
        )

    def __len__(self) -> int:
        return len(self.result)

    def to_frame(self) -> "pl.DataFrame":
        """Return one row per vote: first, second, winner (first, second or tie), and whatever else is known.

        >>> Votes.from_arrays(["tea", "milk"], [0, 1], [1, 0], [1, 0.5]).to_frame().rows()
        [('tea', 'milk', 'first'), ('milk', 'tea', 'tie')]
        """
        with needs_extra("votes"):
            import polars as pl  # noqa: PLC0415  # agents need votes, but not polars
        items = pl.Series(self.items, dtype=pl.String)
        columns = {
            "first": items.gather(self.first),
            "second": items.gather(self.second),
            "winner": pl.Series(["second", "tie", "first"]).gather((2 * self.result).astype(np.int64)),
        }
        for name, codes, names in (("voter", self.voter, self.voters), ("context", self.context, self.contexts)):
            if codes is not None:
                columns[name] = pl.Series(names, dtype=pl.String).gather(codes)
        if self.time is not None:
            columns["time"] = pl.Series(self.time).fill_nan(None)
        if (self.weight != 1.0).any():
            columns["weight"] = pl.Series(self.weight)
        return pl.DataFrame(columns)

    def brief(self) -> str:
        """Return how many votes, items, voters and contexts there are."""
        counts = {"vote": len(self), "item": len(self.items), "voter": len(self.voters), "context": len(self.contexts)}
        return ", ".join(
            counted_noun(count, noun) for noun, count in counts.items() if count or noun in ("vote", "item")
        )

    def select(self, chosen: Mask) -> Self:
        """Keep only the votes where ``chosen`` (n,) is true; item, voter and context indices stay the same."""
        kept = np.asarray(chosen)
        if kept.shape != (len(self),) or kept.dtype != np.bool_:
            raise BadInputError(f"a selection needs one boolean for each of the {len(self)} votes.")
        arrays: dict[str, Any] = {n: each[kept] for n, each in vars(self).items() if isinstance(each, np.ndarray)}
        return replace(self, **arrays)

    def without(self, left_out: Mask) -> Self:
        """Drop the votes where ``left_out`` (n,) is true."""
        return self.select(~np.asarray(left_out))

    def without_features(self) -> Self:
        """Drop the features per vote, for what counts votes between items only."""
        return self if self.features is None else replace(self, features=None, feature_names=())

    def reweighted(self, factor: Vector) -> Self:
        """Multiply the weights by ``factor`` (n,), and drop votes with factor 0; the same object if all factors are 1.

        >>> Votes.from_arrays("ab", [0, 1], [1, 0], [1, 0.5], weight=[2, 3]).reweighted(np.array([0, 0.5])).weight
        array([1.5])
        """
        if (factor == 1.0).all():
            return self
        return replace(self, weight=self.weight * factor).select(factor > 0.0)

    def written_out(self) -> Self:
        """Write each vote of weight w as ⌈w⌉ votes of weight w/⌈w⌉, in place; votes of weight 0 disappear.

        >>> votes = Votes.from_arrays("ab", [0, 1], [1, 0], [1, 0.5], weight=[2, 0.5]).written_out()
        >>> votes.row.tolist(), votes.weight.tolist()
        ([2, 2, 3], [1.0, 1.0, 0.5])
        """
        if (self.weight == 1.0).all():
            return self
        copies = np.ceil(self.weight)
        if copies.sum() > _MOST_ROWS:
            raise BadInputError(
                f"the weights stand for {copies.sum():,.0f} votes, and at most {_MOST_ROWS:,} can be audited: "
                "divide all weights by a common factor."
            )
        times = copies.astype(np.int64)
        arrays = {n: np.repeat(each, times, axis=0) for n, each in vars(self).items() if isinstance(each, np.ndarray)}
        arrays["weight"] = arrays["weight"] / np.repeat(copies, times)
        written: dict[str, Any] = arrays
        return replace(self, **written)

    @property
    def is_tie(self) -> Mask:
        """Which votes are ties, shape (n,)."""
        return np.asarray(self.result == 0.5)

    @property
    def cast_by(self) -> Codes:
        """``voter`` (n,); an error if the file has no voter column."""
        if self.voter is None:
            raise BadInputError("the votes do not say who voted: name the voter column (voter=…).")
        return self.voter

    def counts(self, ties: Ties) -> Vector:
        """Return how many times each vote counts, shape (n,): its weight, or 0 for a dropped tie.

        >>> Votes.from_arrays("ab", [0, 0], [1, 1], [1, 0.5]).counts("drop").tolist()
        [1.0, 0.0]
        """
        return counted(self.weight, self.result, ties)

    def components(self, ties: Ties = "half") -> Codes:
        """Return the component of the comparison graph that each item belongs to, shape (K,).

        No chain of votes connects items in different components, so they cannot be ranked against each other.
        Components are numbered by size, starting with 0 for the largest.

        >>> Votes.from_arrays("abcde", first=[0, 1], second=[4, 3], result=[1, 1]).components().tolist()
        [0, 1, 2, 1, 0]
        """
        used = self.counts(ties) > 0.0
        labels = connected(self.first[used], self.second[used], len(self.items))
        by_size = np.argsort(-np.bincount(labels), kind="stable")
        return np.argsort(by_size).astype(np.int32)[labels]


def counted(weight: Vector, result: Vector, ties: Ties) -> Vector:
    """Return how many times votes with this weight and result, both (n,), count; see :meth:`Votes.counts`."""
    if ties not in get_args(Ties):
        raise unknown_name("treatment of ties", str(ties), get_args(Ties))
    return weight if ties == "half" else weight * (result != 0.5)


def ensure_some_count(counts: Vector) -> None:
    """Raise an error with the reason if all of ``counts`` (n,), how many times each vote counts, are 0."""
    if len(counts) == 0:
        raise BadInputError("there are no votes: the table is empty, or Reading.problems says why no row is usable.")
    if not counts.any():
        raise BadInputError(
            "no vote counts: all have weight 0 or are dropped ties; leave the weights out (weight=None), or count "
            "ties as half a win (ties='half')."
        )


def check_weights(weight: Vector, where: str) -> None:
    """Raise an error if a weight (n,), or their sum, is too large to be a number of votes."""
    for what, number, most in (
        ("a weight of", weight.max(initial=0.0), MOST_WEIGHT),
        ("weights that add up to", weight.sum(), MOST_VOTES),
    ):
        if number > most:
            raise BadInputError(
                f"{where} have {what} {number:.3g}, above {most:.0e}: a weight is how many times the vote counts, so "
                "divide all weights by the same number, or leave them out (weight=None)."
            )


def connected(one: Indices | Codes, other: Indices | Codes, count: int) -> Codes:
    """Label the connected components of the graph of ``count`` items with these edges (r,)."""
    graph = sparse.coo_array((np.ones(len(one)), (one, other)), shape=(count, count))
    return np.asarray(csgraph.connected_components(graph.tocsr(), directed=False)[1])


def distinct_duels(
    first: Indices | Codes, second: Indices | Codes, count: int, context: Indices | Codes | None = None
) -> tuple[Indices, Indices, Indices, Indices, Mask]:
    """Find the distinct duels among n duels between ``count`` items: unordered pairs, per context if given.

    Returns the context, lower item and higher item of each distinct duel, all (r,); then, for each of the n duels,
    its distinct duel and whether its first item is the higher one, both (n,).

    >>> [each.tolist() for each in distinct_duels(np.array([2, 0]), np.array([0, 2]), 3)]
    [[0], [0], [2], [0, 0], [True, False]]
    """
    where = np.zeros(len(first), np.int64) if context is None else context.astype(np.int64)
    keys = (where * count + np.minimum(first, second)) * count + np.maximum(first, second)
    keys, row = np.unique(keys, return_inverse=True)
    return keys // count**2, keys // count % count, keys % count, row, first > second


def pair_sums(one: Indices | Codes, other: Indices | Codes, count: int, values: NDArray[Any] | None = None) -> Matrix:
    """Sum the ``values`` (n,) of each ordered pair of ``count`` items, shape (count, count), as :func:`sums` does."""
    return sums(one.astype(np.int64) * count + other, count * count, values).reshape(count, count)


def sums(place: Indices | Codes, count: int, values: NDArray[Any] | None = None) -> Vector:
    """Sum the ``values`` (n,) at each of ``count`` indices; without values, count the entries.

    >>> sums(np.array([0, 2, 2]), 3).tolist()
    [1.0, 0.0, 2.0]
    """
    return np.bincount(place, values, count).astype(np.float64, copy=False)


def _names(kind: str, names: Sequence[str]) -> tuple[str, ...]:
    result = tuple(str(name) for name in names)
    if len(set(result)) < len(result):
        raise BadInputError(f"{kind} names must be unique.")
    return result


def _codes(name: str, values: ArrayLike, count: int, known: int) -> Codes:
    codes = np.asarray(values)
    if codes.size == 0:
        codes = codes.astype(np.int32)
    if codes.shape != (count,) or not np.issubdtype(codes.dtype, np.integer):
        raise BadInputError(f"{name} must be {count} whole numbers, one per vote.")
    if count and not 0 <= codes.min() <= codes.max() < known:
        raise BadInputError(f"{name} must be between 0 and {known - 1}, the index of a name.")
    return codes.astype(np.int32)


def _floats(name: str, values: Any, count: int | None = None) -> Vector:
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.empty((0, 0))
    if numbers.ndim != 1 or (count is not None and len(numbers) != count):
        raise BadInputError(f"{name} must be numbers, one per vote.")
    return numbers


def _table(name: str, values: Any, count: int, width: int) -> Matrix:
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if numbers.shape != (count, width) or not np.isfinite(numbers).all():
        raise BadInputError(f"{name} must be finite numbers of shape ({count}, {width}): one row per vote, with names.")
    return numbers
