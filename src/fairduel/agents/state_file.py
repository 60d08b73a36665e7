"""One file for an agent's state: JSON and arrays in an npz archive, never pickle, written whole or not at all."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from fairduel.errors import BadInputError
from fairduel.files import write_whole


def write_state(path: Path, state: dict[str, Any]) -> None:
    """Write a nested dictionary of JSON values and arrays to ``path``, replacing it in one move."""
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    plain = _split(state, "", arrays)
    arrays["json"] = np.array(json.dumps(plain))
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]  # numpy's stub reads ** as allow_pickle
    write_whole(path, buffer.getvalue())


def read_state(path: Path) -> dict[str, Any]:
    """Read what :func:`write_state` wrote."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        plain: dict[str, Any] = json.loads(str(arrays.pop("json")))
        if not isinstance(plain, dict):
            raise TypeError("its JSON is no dictionary")  # noqa: TRY301  # told below like all the rest
        for name, array in arrays.items():
            *folders, last = name.split("/")
            place = plain
            for folder in folders:
                place = place.setdefault(folder, {})
            place[last] = array
    except FileNotFoundError:
        raise BadInputError(f"there is no saved agent at {path}.") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, zipfile.BadZipFile) as error:
        raise BadInputError(f"{path} is not a saved agent, or it is torn: {error}.") from error
    return plain


def _split(value: dict[str, Any], prefix: str, arrays: dict[str, np.ndarray[Any, Any]]) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for name, item in value.items():
        if isinstance(item, np.ndarray):
            arrays[prefix + name] = item
        elif isinstance(item, dict):
            plain[name] = _split(item, f"{prefix}{name}/", arrays)
        else:
            plain[name] = item
    return plain
