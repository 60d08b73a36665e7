"""Errors and warnings. Every message says in one sentence what is wrong and what to do."""

import difflib
from collections.abc import Iterable


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


class DamageWarning(UserWarning):
    """A file of stored runs was damaged; its runs will be repeated."""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> BadInputError:
    """Return the error for an unknown name, suggesting the closest known one.

    >>> str(unknown_name("agent", "rcbd", ["rcdb", "maxinp"]))
    "unknown agent 'rcbd': did you mean 'rcdb'? Known: maxinp, rcdb."
    >>> str(unknown_name("agent", "oracle", ["rcdb", "maxinp"]))
    "unknown agent 'oracle'; known: maxinp, rcdb."
    """
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f": did you mean {near[0]!r}? Known" if near else "; known"
    return BadInputError(f"unknown {kind} {name!r}{hint}: {', '.join(names)}.")
