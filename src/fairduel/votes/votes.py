"""A file of votes, as arrays: who met whom, who won, and who said so."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse import csgraph

from fairduel.duel import Vector
from fairduel.errors import BadInputError, unknown_name

Codes = NDArray[np.int32]
Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]
Ties = Literal["half", "drop"]
"""A tie is half a win for each, or is left out."""


@dataclass(frozen=True, eq=False)
class Votes:
    """n recorded votes between K items, in the order of their file.

    Make them with :meth:`from_arrays`, which checks, or read them with :func:`fairduel.votes.reading.read_votes`.
    """

    items: tuple[str, ...]
    """Names of the K items."""
    first: Codes
    """Place in ``items`` of the item shown first, shape (n,)."""
    second: Codes
    """Place in ``items`` of the other one, shape (n,)."""
    result: Vector
    """1 where the first won, 0 where the second won, ½ for a tie, shape (n,)."""
    weight: Vector
    """How often each vote counts, shape (n,)."""
    row: Indices
    """Row of the file, shape (n,): the first vote under a header is row 2, as an editor shows it."""
    voter: Codes | None = None
    """Place in ``voters`` of who voted, shape (n,)."""
    voters: tuple[str, ...] = ()
    context: Codes | None = None
    """Place in ``contexts`` of what the two were compared on, shape (n,)."""
    contexts: tuple[str, ...] = ()
    time: Vector | None = None
    """Seconds, as the file has them (an hour of the day, a response time), shape (n,); NaN where unknown."""

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
    ) -> Self:
        """Check arrays of codes and make votes of them; shapes as in the class.

        >>> votes = Votes.from_arrays(["tea", "milk"], first=[0, 1], second=[1, 0], result=[1, 0.5])
        >>> len(votes), votes.row.tolist()
        (2, [2, 3])
        """
        names = _names("item", items)
        outcomes = _floats("result", result)
        count = len(outcomes)
        one, other = _codes("first", first, count, len(names)), _codes("second", second, count, len(names))
        if not np.isin(outcomes, (0.0, 0.5, 1.0)).all():
            raise BadInputError("a result is 1 (the first won), 0 (the second won) or 0.5 (a tie).")
        if (one == other).any():
            raise BadInputError(f"vote {int(np.argmax(one == other))} sets an item against itself.")
        weights = np.ones(count) if weight is None else _floats("weight", weight, count)
        if not (np.isfinite(weights) & (weights >= 0.0)).all():
            raise BadInputError("every weight must be a number ≥ 0.")
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
        )

    def __len__(self) -> int:
        return len(self.result)

    def select(self, chosen: Mask) -> Self:
        """Only the votes where ``chosen`` (n,) is true, in their order; items, voters and contexts keep their codes."""
        kept = np.asarray(chosen)
        if kept.shape != (len(self),) or kept.dtype != np.bool_:
            raise BadInputError(f"votes are selected by one true or false for each of the {len(self)} votes.")
        arrays: dict[str, Any] = {n: each[kept] for n, each in vars(self).items() if isinstance(each, np.ndarray)}
        return replace(self, **arrays)

    def without(self, left_out: Mask) -> Self:
        """All votes but those where ``left_out`` (n,) is true."""
        return self.select(~np.asarray(left_out))

    @property
    def is_tie(self) -> Mask:
        """Which votes have no winner, shape (n,)."""
        return tied(self.result)

    @property
    def cast_by(self) -> Codes:
        """``voter``, which must be known."""
        if self.voter is None:
            raise BadInputError("the votes do not say who voted: name the column of the voter (--voter).")
        return self.voter

    def counts(self, ties: Ties) -> Vector:
        """How often each vote counts, shape (n,): its weight, but 0 for a tie that is dropped.

        >>> Votes.from_arrays("ab", [0, 0], [1, 1], [1, 0.5]).counts("drop").tolist()
        [1.0, 0.0]
        """
        return counted(self.weight, self.result, ties)

    def components(self, ties: Ties = "half") -> Codes:
        """Number of each item's component of the comparison graph of the votes that count, shape (K,).

        Items of two components never met, not even through others: nothing says which is better. Component 0
        holds most items, and so on.

        >>> Votes.from_arrays("abcde", first=[0, 1], second=[4, 3], result=[1, 1]).components().tolist()
        [0, 1, 2, 1, 0]
        """
        used = self.counts(ties) > 0.0
        labels = linked(self.first[used], self.second[used], len(self.items))
        by_size = np.argsort(-np.bincount(labels), kind="stable")
        rank = np.empty(len(by_size), dtype=np.int32)
        rank[by_size] = np.arange(len(by_size))
        return rank[labels]


def tied(result: Vector) -> Mask:
    """Which of the results (n,) are ties."""
    return np.asarray(result == 0.5)


def counted(weight: Vector, result: Vector, ties: Ties) -> Vector:
    """How often votes of a weight and a result, both (n,), count: as :meth:`Votes.counts`."""
    if ties not in get_args(Ties):
        raise unknown_name("treatment of ties", str(ties), get_args(Ties))
    return weight if ties == "half" else weight * ~tied(result)


def linked(one: Indices | Codes, other: Indices | Codes, count: int) -> Codes:
    """Label of each of ``count`` items, which those share that these pairs (r,) link, perhaps through others."""
    graph = sparse.coo_array((np.ones(len(one)), (one, other)), shape=(count, count))
    return np.asarray(csgraph.connected_components(graph.tocsr(), directed=False)[1])


def distinct_duels(
    first: Indices | Codes, second: Indices | Codes, count: int, context: Indices | Codes | None = None
) -> tuple[Indices, Indices, Indices, Indices, Mask]:
    """Each two of ``count`` items that met, once in each context: context, lower and higher code, all (r,).

    Then, for each of the n duels, which of these it is, and whether its first item has the higher code, both (n,).

    >>> [each.tolist() for each in distinct_duels(np.array([2, 0]), np.array([0, 2]), 3)]
    [[0], [0], [2], [0, 0], [True, False]]
    """
    where = np.zeros(len(first), np.int64) if context is None else context.astype(np.int64)
    keys = (where * count + np.minimum(first, second)) * count + np.maximum(first, second)
    keys, row = np.unique(keys, return_inverse=True)
    return keys // count**2, keys // count % count, keys % count, row, first > second


def sums(place: Indices | Codes, count: int, values: NDArray[Any] | None = None) -> Vector:
    """Sum of ``values`` (n,), or number of entries, at each of ``count`` places.

    >>> sums(np.array([0, 2, 2]), 3).tolist()
    [1.0, 0.0, 2.0]
    """
    return np.bincount(place, values, count).astype(np.float64)


def _names(kind: str, names: Sequence[str]) -> tuple[str, ...]:
    result = tuple(str(name) for name in names)
    if len(set(result)) < len(result):
        raise BadInputError(f"two {kind}s have the same name.")
    return result


def _codes(name: str, values: ArrayLike, count: int, known: int) -> Codes:
    codes = np.asarray(values)
    if codes.size == 0:
        codes = codes.astype(np.int32)
    if codes.shape != (count,) or not np.issubdtype(codes.dtype, np.integer):
        raise BadInputError(f"{name} must be whole numbers, one for each of the {count} votes.")
    if count and not 0 <= codes.min() <= codes.max() < known:
        raise BadInputError(f"{name} must be from 0 to {known - 1}, the place of a name.")
    return codes.astype(np.int32)


def _floats(name: str, values: Any, count: int | None = None) -> Vector:
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.empty((0, 0))
    if numbers.ndim != 1 or (count is not None and len(numbers) != count):
        raise BadInputError(f"{name} must be numbers, one for each vote.")
    return numbers
