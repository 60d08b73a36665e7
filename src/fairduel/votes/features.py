"""Features of items, or of items per context, from npz, Parquet or CSV files."""

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from zipfile import BadZipFile, ZipFile, ZipInfo

import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars.exceptions import PanicException, PolarsError

from fairduel.duel import Matrix
from fairduel.errors import BadInputError, unknown_name
from fairduel.votes.file_readers import check_unpacked, csv_layout, damage, read_text
from fairduel.votes.results import clipped
from fairduel.votes.votes import Indices, Votes

_DEFAULT_ARRAYS = ("features", "phi")
# What NumPy and zipfile raise for a damaged archive, besides OSError.
_NPZ_ERRORS = (
    *(ValueError, TypeError, LookupError, AttributeError, ArithmeticError, SyntaxError, RuntimeError, MemoryError),
    *(BadZipFile, EOFError, TokenError, struct.error, zlib.error),
)


@dataclass(frozen=True, eq=False, repr=False)
class Features:
    """Features of the items of some votes, scaled so that the longest feature vector has norm 1.

    Create them with :func:`read_features`.

    Args:
        values: Shape ``(K, d)``, or ``(contexts, K, d)`` if features depend on the context.
        factor: What the original features were divided by.
        source: Where the features come from, for the record.

    >>> features = Features(np.array([[1.0, 0.0], [0.0, 0.75]]), factor=4.0, source="features.csv")
    >>> features, features.average().shape
    (Features(2 × 2, from features.csv), (2, 2))
    """

    values: NDArray[np.float64]
    factor: float
    source: str

    def __repr__(self) -> str:
        return f"Features({' × '.join(map(str, self.values.shape))}, from {clipped(self.source)})"

    def of(self, votes: Votes, item: NDArray[np.int32]) -> Matrix:
        """Return the features of ``item`` (n,), one item per vote, in the vote's context, shape (n, d)."""
        if self.values.ndim == 2:
            return self.values[item]
        if votes.context is None:
            raise BadInputError("features per context need votes with a context: name the context column (--context).")
        return self.values[votes.context, item]

    def average(self) -> Matrix:
        """Return the features of the items, shape (K, d), averaged over the contexts that have them."""
        return self.values if self.values.ndim == 2 else np.nanmean(self.values, axis=0)


def read_features(path: Path | str, votes: Votes, *, array: str | None = None) -> Features:
    r"""Read the features of the items (and contexts) of ``votes``.

    Args:
        path: An ``.npz`` file with an array of shape ``(items, d)`` or ``(contexts, items, d)``, and the names of its
            rows in the arrays ``items`` and ``contexts`` (without them, item "7" is row 7). Or a ``.parquet`` or
            ``.csv`` file with a column ``item``, optionally ``context``, and one column per feature.
        votes: The votes whose items and contexts need features.
        array: Name of the array in an npz file. Default: ``features`` or ``phi``, or the only possible one.

    Returns:
        The features, in the order of ``votes.items`` and ``votes.contexts``.

    Raises:
        BadInputError: The file cannot be read, or lacks features of an item that was voted on.

    >>> import tempfile
    >>> votes = Votes.from_arrays(["tea", "milk"], first=[0], second=[1], result=[1])
    >>> path = Path(tempfile.mkdtemp()) / "features.csv"
    >>> _ = path.write_text("item,heat,fat\nmilk,0,3\ntea,4,0\n")
    >>> features = read_features(path, votes)
    >>> features.values.tolist(), features.factor
    ([[1.0, 0.0], [0.0, 0.75]], 4.0)
    """
    path = Path(path)
    try:
        if path.suffix.lower() == ".npz":
            values, source = _npz(path, votes, array)
        elif path.suffix.lower() in (".parquet", ".csv"):
            values, source = _table(path, votes)
        else:
            raise BadInputError(f"unsupported file type: {path.name} (features can be .npz, .parquet or .csv).")
    except (OSError, MemoryError, PanicException, PolarsError) as error:
        raise BadInputError(f"cannot read features from {path}: {damage(error)}.") from error
    return scaled(values, votes, source=source)


def scaled(values: NDArray[np.float64], votes: Votes, *, source: str = "an array") -> Features:
    """Scale features, shaped as in :class:`Features`, so that the longest vector has norm 1."""
    features = Features(np.asarray(values, dtype=np.float64), 1.0, source)
    shape = features.values.shape
    if len(shape) not in (2, 3) or shape[-2] != len(votes.items) or shape[-1] == 0:
        raise BadInputError(f"features must have shape ({len(votes.items)}, d) or (contexts, {len(votes.items)}, d).")
    if len(shape) == 3 and shape[0] != len(votes.contexts):
        raise BadInputError(f"features cover {shape[0]} contexts but the votes have {len(votes.contexts)}.")
    for item in (votes.first, votes.second):
        bad = ~np.isfinite(features.of(votes, item)).all(axis=1)
        if bad.any():
            vote = int(np.argmax(bad))
            raise BadInputError(f"{source} has no finite features for {_where(votes, vote, int(item[vote]))}.")
    factor = float(np.nanmax(np.linalg.norm(features.values, axis=-1)))
    if factor == 0.0:
        raise BadInputError(f"all features in {source} are 0.")
    return Features(features.values / factor, factor, source)


def _where(votes: Votes, vote: int, item: int) -> str:
    place = "" if votes.context is None else f" in the context {votes.contexts[votes.context[vote]]!r}"
    return f"the item {votes.items[item]!r}{place}"


def _npz(path: Path, votes: Votes, wanted: str | None) -> tuple[NDArray[np.float64], str]:
    try:
        with path.open("rb") as file, ZipFile(file) as archive:
            check_unpacked(sum(member.file_size for member in archive.infolist()), path)
            arrays = {member.filename.removesuffix(".npy"): _array(archive, member) for member in archive.infolist()}
    except BadInputError:
        raise
    except _NPZ_ERRORS as error:
        reason = damage(error)
        raise BadInputError(
            f"cannot read features from {path}: not an npz file of plain arrays, or {reason}."
        ) from error
    usable = [n for n, a in arrays.items() if a.ndim in (2, 3) and a.dtype.kind in "iuf"]
    name = wanted or next((n for n in _DEFAULT_ARRAYS if n in usable), usable[0] if len(usable) == 1 else None)
    if name is None:
        raise BadInputError(f"name the array of {path.name} with the features (--array): it has {', '.join(arrays)}.")
    if name not in usable:
        raise unknown_name("feature array", name, usable, where=f"in {path.name}")
    values = arrays[name].astype(np.float64)
    values = np.take(values, _rows("items", votes.items, arrays, values.shape[-2], path.name), axis=-2)
    if values.ndim == 3:
        values = values[_rows("contexts", votes.contexts, arrays, len(values), path.name)]
    return values, f"{path.name}, array {name}"


def _array(archive: ZipFile, member: ZipInfo) -> NDArray[np.generic]:
    with archive.open(member) as file:
        array: NDArray[np.generic] = np.lib.format.read_array(file, allow_pickle=False)
        file.read()  # the checksum is compared at the end
        return array


def _rows(kind: str, names: Sequence[str], arrays: dict[str, NDArray[np.generic]], count: int, file: str) -> Indices:
    """Return the row of each name: by the array of names, or by number."""
    if kind in arrays:
        listed = [str(name) for name in arrays[kind].ravel().tolist()]
        known = {name: place for place, name in enumerate(listed)}
        if len(known) < len(listed):
            raise BadInputError(f"the array {kind} of {file} contains a name twice.")
        missing = [name for name in names if known.get(name, count) >= count]
        if missing:
            raise BadInputError(f"{file} has no features for {missing[0]!r}: it is not in the array {kind}.")
        return np.array([known[name] for name in names], dtype=np.int64)
    if not all(name.isdecimal() and int(name) < count for name in names):
        raise BadInputError(f"{file} needs an array {kind} that names its {count} rows.")
    return np.array([int(name) for name in names], dtype=np.int64)


def _table(path: Path, votes: Votes) -> tuple[NDArray[np.float64], str]:
    guesses: tuple[str, ...] = ()
    if path.suffix.lower() == ".parquet":
        frame = pl.read_parquet(path)
    else:
        content, guesses = read_text(path)
        content, separator, _ = csv_layout(content, path.name)
        frame = pl.read_csv(content, infer_schema_length=None, separator=separator)
    if "item" not in frame.columns:
        raise BadInputError(f"{path.name} needs a column item; its columns are {', '.join(frame.columns)}.")
    keys = [name for name in ("context", "item") if name in frame.columns]
    numbers = frame.drop(keys)
    if not numbers.columns or not all(kind.is_numeric() for kind in numbers.dtypes):
        raise BadInputError(f"all columns of {path.name} except {' and '.join(keys)} must be numbers.")
    places = [_places(frame[key], votes.items if key == "item" else votes.contexts) for key in keys]
    shape = (*(len(votes.items if key == "item" else votes.contexts) for key in keys), len(numbers.columns))
    kept = np.logical_and.reduce([place >= 0 for place in places])
    index = tuple(place[kept] for place in places)
    if len(set(zip(*(place.tolist() for place in index), strict=True))) < int(kept.sum()):
        raise BadInputError(f"{path.name} has two rows for the same {' and '.join(keys)}.")
    values = np.full(shape, np.nan)
    values[index] = numbers.to_numpy()[kept]
    return values, "; ".join((path.name, *guesses))


def _places(column: pl.Series, names: Sequence[str]) -> Indices:
    """Return the index of each entry in ``names``, or −1."""
    known = {name: place for place, name in enumerate(names)}
    return np.array([known.get(str(name), -1) for name in column.cast(pl.String)], dtype=np.int64)
