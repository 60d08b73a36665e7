"""Save an agent's state to one file: JSON and arrays in an npz archive, written atomically, never pickled."""

import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from fairduel.errors import BadInputError
from fairduel.files import write_atomically

FORMAT = 1
"""The format of saved agents."""
_SEAL = b"sha256:"  # with the digest of all bytes before it, this is the archive's comment and ends the file
_DIGEST_LENGTH = 64


def write_state(path: Path, state: dict[str, Any]) -> None:
    """Write a nested dictionary of JSON values and arrays to ``path`` atomically."""
    write_atomically(path, pack_state(state))


def pack_state(state: dict[str, Any]) -> memoryview:
    """Return a nested dictionary of JSON values and arrays as the bytes of a file."""
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    plain = _split(state, "", arrays)
    arrays["json"] = np.array(json.dumps(plain))
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]  # numpy's stub reads ** as allow_pickle
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.comment = _SEAL + bytes(_DIGEST_LENGTH)
    content = buffer.getbuffer()  # not copied: a million votes take many megabytes
    content[-_DIGEST_LENGTH:] = _digest(content[:-_DIGEST_LENGTH])
    return content


def read_state(path: Path) -> dict[str, Any]:
    """Read what :func:`write_state` wrote; raise if a single bit has changed."""
    try:
        file = path.read_bytes()
    except FileNotFoundError:
        raise BadInputError(f"no saved agent at {path}.") from None
    except OSError as error:
        raise BadInputError(f"cannot read {path}: {error.strerror}.") from error
    return unpack_state(file, str(path))


def unpack_state(file: bytes, source: str) -> dict[str, Any]:
    """Return what :func:`pack_state` was given; raise, naming its source, if a single bit has changed."""
    try:
        content, digest = file[:-_DIGEST_LENGTH], file[-_DIGEST_LENGTH:]
        if not content.endswith(_SEAL):
            raise ValueError("its checksum is missing")  # noqa: TRY301  # reported below, like all others
        if digest != _digest(content):
            raise ValueError("its checksum is wrong")  # noqa: TRY301
        with np.load(io.BytesIO(file), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        plain: dict[str, Any] = json.loads(str(arrays.pop("json")))
        for name, array in arrays.items():
            *folders, last = name.split("/")
            place = plain
            for folder in folders:
                place = place.setdefault(folder, {})
            place[last] = array
    except Exception as error:  # zipfile and numpy raise many types
        raise BadInputError(f"{source} is corrupt or not a saved agent: {error}.") from error
    return plain


def check_format(state: dict[str, Any]) -> None:
    """Raise an error unless the state is of the format that this version writes."""
    version = state.get("version")
    if type(version) is not int or version != FORMAT:
        raise BadInputError(
            f"this version of fairduel reads format {FORMAT}, not {version!r}; load the agent with the version that "
            "saved it."
        )


def same_state(one: Any, other: Any) -> bool:
    """Whether two states are equal bit by bit: nested dictionaries, lists and tuples of JSON values and arrays."""
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(same_state(one[k], other[k]) for k in one)
    if isinstance(one, (list, tuple)):
        return isinstance(other, (list, tuple)) and len(one) == len(other) and all(map(same_state, one, other))
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        arrays = np.asarray(one), np.asarray(other)
        return arrays[0].shape == arrays[1].shape and arrays[0].tobytes() == arrays[1].tobytes()
    return bool(one == other or (one != one and other != other))  # noqa: PLR0124  # NaN


def _digest(content: bytes | memoryview) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


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
