"""Validation of settings: return a plain Python value, or raise :class:`BadInputError`."""

import math
import operator
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, get_args

import numpy as np

from fairduel.errors import BadInputError, unknown_name


def integer(name: str, value: Any, least: int = 0) -> int:
    """Return ``value`` as an int of at least ``least``.

    >>> integer("horizon", 3, least=1)
    3
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least or isinstance(value, bool):
        raise BadInputError(f"{name} must be a whole number ≥ {least}, not {value!r}.")
    return number


def positive(name: str, value: Any) -> float:
    """Return ``value`` as a finite float above 0, whose square is one too.

    >>> positive("ridge", 1)
    1.0
    """
    number = _float(value)
    if not (0 < number < math.inf and 0 < number * number < math.inf):
        raise BadInputError(f"{name} must be a positive number, not {value!r}.")
    return number


def at_least_zero(name: str, value: Any) -> float:
    """Return ``value`` as a finite float of at least 0."""
    number = _float(value)
    if not 0 <= number < math.inf:
        raise BadInputError(f"{name} must be a number ≥ 0, not {value!r}.")
    return number


def finite(name: str, value: Any) -> float:
    """Return ``value`` as a finite float."""
    number = _float(value)
    if not math.isfinite(number):
        raise BadInputError(f"{name} must be a finite number, not {value!r}.")
    return number


def fraction(name: str, value: Any) -> float:
    """Return ``value`` as a float strictly between 0 and 1.

    >>> fraction("failure_probability", 0.05)
    0.05
    """
    number = _float(value)
    if not 0 < number < 1:
        raise BadInputError(f"{name} must be between 0 and 1, not {value!r}.")
    return number


def share(name: str, value: Any) -> float:
    """Return ``value`` as a float from 0 to 1.

    >>> share("pace", 1)
    1.0
    """
    number = _float(value)
    if not 0 <= number <= 1:
        raise BadInputError(f"{name} must be a number from 0 to 1, not {value!r}.")
    return number


def number_or_name(name: str, value: Any, names: Iterable[str]) -> float | str:
    """Return ``value`` as a finite float of at least 0, or unchanged if it is one of the ``names``.

    >>> [number_or_name("radius", value, ("practical", "theory")) for value in (1, "theory")]
    [1.0, 'theory']
    """
    if not isinstance(value, str):
        return at_least_zero(name, value)
    if value not in names:
        raise unknown_name(name, value, [*names, "a number"])
    return value


def literal(name: str, value: Any, kind: Any) -> None:
    """Raise unless ``value`` is one of those of a ``Literal``.

    >>> from typing import Literal
    >>> literal("order", "backwards", Literal["mixed", "in-turn"])
    Traceback (most recent call last):
    fairduel.errors.BadInputError: unknown order 'backwards'; known: in-turn, mixed.
    """
    if value not in get_args(kind):
        raise unknown_name(name, str(value), get_args(kind))


def boolean(name: str, value: Any) -> bool:
    """Return a Python or NumPy bool as a bool; reject text and numbers.

    >>> boolean("self_duels", np.bool_(False))
    False
    """
    if not isinstance(value, (bool, np.bool_)):
        raise BadInputError(f"{name} must be true or false, not {value!r}.")
    return bool(value)


def ensure(condition: object, problem: str) -> None:
    """Raise an error about a saved agent unless the condition holds."""
    if not condition:
        raise BadInputError(f"{problem}.")


@contextmanager
def needs_extra(extra: str) -> Iterator[None]:
    """Explain how to install an optional dependency whose import fails in this block.

    >>> with needs_extra("votes"):
    ...     import no_such_library
    Traceback (most recent call last):
    fairduel.errors.BadInputError: this needs no_such_library: install it with  pip install 'fairduel[votes]'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise BadInputError(f"this needs {error.name}: install it with  pip install 'fairduel[{extra}]'") from error


def _float(value: Any) -> float:
    try:
        return math.nan if isinstance(value, (str, bytes, bool)) else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
