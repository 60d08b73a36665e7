"""What people pass as votes: votes, what was read from a file, or the file or table itself."""

import functools
import warnings
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from fairduel.checks import needs_extra
from fairduel.errors import BadInputError, SuspectInputWarning
from fairduel.votes.votes import Votes

_Rest = ParamSpec("_Rest")
_Found = TypeVar("_Found")


def takes_votes(function: Callable[Concatenate[Votes, _Rest], _Found]) -> Callable[Concatenate[Any, _Rest], _Found]:
    """Let a function of votes also take a :class:`Reading`, a path, or a table, as :func:`read_votes` does.

    >>> @takes_votes
    ... def ties(votes: Votes) -> int:
    ...     return int(votes.is_tie.sum())
    >>> ties([{"first": "tea", "second": "milk", "winner": "tie"}])
    1
    """

    @functools.wraps(function)
    def of_anything(votes: Any, *others: _Rest.args, **settings: _Rest.kwargs) -> _Found:
        return function(as_votes(votes), *others, **settings)

    return of_anything  # type: ignore[return-value]  # votes may also be named


def as_votes(source: Any) -> Votes:
    """Return votes as they are, those of a reading, or those read from a file or table.

    A warning says what was guessed and which rows were unusable. If these are more than the votes, there is no result.
    """
    if isinstance(source, Votes):
        return source
    with needs_extra("votes"):
        from fairduel.votes.reading.read import Reading, read_votes  # noqa: PLC0415  # needs polars

    reading = source if isinstance(source, Reading) else read_votes(source)
    if refusal := reading.refusal():
        raise BadInputError(refusal)
    if reading is not source:  # otherwise they have seen what was read
        for sentence in reading.notes():
            warnings.warn(sentence, SuspectInputWarning, stacklevel=3)
    return reading.votes
