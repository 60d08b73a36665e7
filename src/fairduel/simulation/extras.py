"""Libraries that only some commands need."""

import importlib
from typing import Any

from fairduel.errors import BadInputError


def needed(module: str, *, extra: str) -> Any:
    """Import a library that comes with an extra, or say how to install it.

    >>> needed("math", extra="bench").sqrt(9.0)
    3.0
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise BadInputError(f"this needs {error.name}: install it with  pip install 'fairduel[{extra}]'") from error
