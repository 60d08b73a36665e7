"""From a name to the thing: built-in ones by their own, a user's as ``module:Name``."""

import functools
import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from fairduel.errors import BadInputError, unknown_name

Made = TypeVar("Made")


def find(kind: str, name: str, known: Mapping[str, Callable[..., Made]]) -> Callable[..., Made]:
    """Return the built-in thing of this name, or the class that ``module:Name`` points to.

    >>> from fairduel.agents import AGENTS
    >>> find("agent", "rcdb", AGENTS).__name__
    'RCDB'
    """
    if name in known:
        return known[name]
    module_name, colon, attribute = name.partition(":")
    if not colon:
        raise unknown_name(kind, name, known)
    look_here()
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise BadInputError(f"cannot import the {kind} {name!r}: {error}.") from error
    found = getattr(module, attribute, None)
    if not callable(found):
        raise BadInputError(f"the module {module_name!r} has no class {attribute!r} to use as {kind}.")
    return found  # type: ignore[no-any-return]


def look_here() -> None:
    """Let modules in the current folder be imported."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)


def make(kind: str, maker: Callable[..., Made], chosen: Mapping[str, Any], offered: Mapping[str, Any]) -> Made:
    """Call ``maker`` with all that was chosen, and with those offered values that it has a parameter for.

    >>> make("point", complex, {"real": 1.0}, {"imag": 2.0, "colour": "red"})
    (1+2j)
    """
    parameters = _parameters(maker)
    takes_all = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    for name in chosen:
        if name not in parameters and not takes_all:
            raise unknown_name(f"setting of {kind} {maker.__qualname__}", name, parameters)
    fitting = {name: value for name, value in offered.items() if name in parameters or takes_all}
    try:
        return maker(**{**fitting, **chosen})
    except TypeError as error:
        raise BadInputError(f"cannot make the {kind} {maker.__qualname__}: {error}.") from error


@functools.cache
def _parameters(maker: Callable[..., object]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(maker).parameters
