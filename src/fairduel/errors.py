"""Errors and warnings. Every message says in one sentence what is wrong and what to do."""

import difflib
from collections.abc import Iterable, Sequence

_MOST_LISTED = 30  # names


class FairduelError(Exception):
    """Base class of all fairduel errors."""


class BadInputError(FairduelError, ValueError):
    """An argument, feature matrix or file is invalid; nothing was changed."""


class UnknownDuelError(FairduelError, LookupError):
    """A duel was told or cancelled that the agent is not waiting for."""


class ConvergenceError(FairduelError, RuntimeError):
    """The maximum-likelihood estimate did not converge."""


class LockInWarning(UserWarning):
    """An agent keeps dueling an action against itself and so learns nothing."""


class SuspectInputWarning(UserWarning):
    """An input is valid but looks as if something else was meant."""


class DamageWarning(UserWarning):
    """A file of stored runs was damaged; its runs will be repeated."""


def unknown_name(kind: str, name: str, known: Iterable[str], where: str = "") -> BadInputError:
    """Return the error for an unknown name, suggesting the closest known one; ``where`` follows the name.

    >>> str(unknown_name("agent", "rcbd", ["rcdb", "maxinp"]))
    "unknown agent 'rcbd': did you mean 'rcdb'? Known: maxinp, rcdb."
    >>> str(unknown_name("agent", "oracle", ["rcdb", "maxinp"]))
    "unknown agent 'oracle'; known: maxinp, rcdb."
    >>> str(unknown_name("key", "rums", ["runs", "seed"], where="in the grid"))
    "unknown key 'rums' in the grid: did you mean 'runs'? Known: runs, seed."
    """
    place = f" {where}" if where else ""
    return BadInputError(f"unknown {kind} {name!r}{place}{suggestion(name, sorted(known), 'known')}.")


def suggestion(name: str, names: Sequence[str], title: str) -> str:
    """Suggest the closest of the ``names``, and list them under a title.

    >>> suggestion("vote", ["winner", "voter"], "its columns")
    ": did you mean 'voter'? Its columns: winner, voter"
    >>> suggestion("x", [f"item{number}" for number in range(99)], "known")[-26:]
    'item28, item29 and 69 more'
    """
    near = difflib.get_close_matches(name, names, cutoff=0.6)
    near.sort(key=lambda other: sorted(other) != sorted(name))  # swapped letters first: rcbd is rcdb, not rcdp
    before = f": did you mean {near[0]!r}? {title[0].upper()}{title[1:]}" if near else f"; {title}"
    more = f" and {len(names) - _MOST_LISTED:,} more" if len(names) > _MOST_LISTED else ""
    return f"{before}: {', '.join(names[:_MOST_LISTED])}{more}"
