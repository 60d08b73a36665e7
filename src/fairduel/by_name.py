"""Look up agents, attacks and worlds by name: built-in ones by their own, a user's as ``module:Name``."""

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
    """Return the built-in class of this name, or import the one that ``module:Name`` points to.

    >>> from fairduel.agents import AGENTS
    >>> find("agent", "rcdb", AGENTS).__name__
    'RCDB'
    """
    if name in known:
        return known[name]
    module_name, colon, attribute = name.partition(":")
    if not colon:
        raise unknown_name(kind, name, known)
    import_from_here()
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise BadInputError(f"cannot import {kind} {name!r}: {error}.") from error
    found = getattr(module, attribute, None)
    if not callable(found):
        raise BadInputError(f"module {module_name!r} has no class {attribute!r} to use as {kind}.")
    return found  # type: ignore[no-any-return]


def import_from_here() -> None:
    """Make modules in the current folder importable."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)


def make(kind: str, maker: Callable[..., Made], chosen: Mapping[str, Any], offered: Mapping[str, Any]) -> Made:
    """Call ``maker`` with every chosen setting and those offered values that it takes.

    >>> make("point", complex, {"real": 1.0}, {"imag": 2.0, "colour": "red"})
    (1+2j)
    """
    for name in chosen:
        if not takes(maker, name):
            raise unknown_name("setting", name, _parameters(maker), where=f"of {kind} {maker.__qualname__}")
    fitting = {name: value for name, value in offered.items() if takes(maker, name)}
    try:
        return maker(**{**fitting, **chosen})
    except TypeError as error:
        raise BadInputError(f"cannot create {kind} {maker.__qualname__}: {error}.") from error


def takes(maker: Callable[..., object], name: str) -> bool:
    """Whether ``maker`` accepts a keyword argument of this name.

    >>> takes(complex, "imag"), takes(complex, "colour")
    (True, False)
    """
    parameters = _parameters(maker)
    return name in parameters or any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())


@functools.cache
def _parameters(maker: Callable[..., object]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(maker).parameters
