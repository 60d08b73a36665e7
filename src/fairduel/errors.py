"""What fairduel raises: every message is one sentence that says what was wrong and what to do."""

import difflib
from collections.abc import Iterable


class FairduelError(Exception):
    """Base of every error that fairduel raises on purpose."""


class BadInputError(FairduelError, ValueError):
    """An argument, a feature matrix or a file is not usable; nothing was changed."""


class UnknownDuelError(FairduelError, LookupError):
    """A duel was told or cancelled that the agent does not wait for."""


class ConvergenceError(FairduelError, RuntimeError):
    """The maximum-likelihood estimate could not be certified by its gradient."""


class LockInWarning(UserWarning):
    """An agent duels one action against itself again and again, and so learns nothing more."""


class DamageWarning(UserWarning):
    """A file of stored runs was damaged; its runs are made again."""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> BadInputError:
    """Return the error for a name that nobody has, with the nearest known one.

    >>> str(unknown_name("agent", "rcbd", ["rcdb", "maxinp"]))
    "unknown agent 'rcbd': did you mean 'rcdb'? Known: maxinp, rcdb."
    """
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f" did you mean {near[0]!r}?" if near else ""
    return BadInputError(f"unknown {kind} {name!r}:{hint} Known: {', '.join(names)}.")
