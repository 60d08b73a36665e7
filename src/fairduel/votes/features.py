"""Features of items, or of items in a context, from npz, Parquet or CSV, brought into the order of the votes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars.exceptions import PolarsError

from fairduel.duel import Matrix
from fairduel.errors import BadInputError, unknown_name
from fairduel.votes.votes import Indices, Votes

_USUAL = ("features", "phi")


@dataclass(frozen=True, eq=False)
class Features:
    """Features with the longest of norm 1."""

    values: NDArray[np.float64]
    """Shape (K, d), or (contexts, K, d) where an item's features differ from context to context."""
    factor: float
    """What they were divided by."""
    source: str
    """Where they come from."""

    def differences(self, votes: Votes) -> Matrix:
        """φ = x_first − x_second of each vote, shape (n, d)."""
        return self.of(votes, votes.first) - self.of(votes, votes.second)

    def of(self, votes: Votes, item: NDArray[np.int32]) -> Matrix:
        """The features of the ``item`` (n,) of each vote, in its context, shape (n, d)."""
        if self.values.ndim == 2:
            return self.values[item]
        if votes.context is None:
            raise BadInputError("features for each context need votes that name their context.")
        return self.values[votes.context, item]

    def average(self) -> Matrix:
        """Features of the items, shape (K, d): where they differ, the mean over the contexts that have them."""
        return self.values if self.values.ndim == 2 else np.nanmean(self.values, axis=0)


def read_features(path: Path | str, votes: Votes, *, array: str | None = None) -> Features:
    r"""Read the features of the items (and contexts) of ``votes``.

    An npz file holds an array (items, d) or (contexts, items, d), called ``array`` (or ``features`` or ``phi``), with
    the names of its rows in arrays ``items`` and ``contexts``; without these, an item called 7 is row 7. A Parquet or
    CSV file has a column ``item``, perhaps one ``context``, and one for each feature.

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
            values, source = _table(path, votes), path.name
        else:
            raise BadInputError(f"features are read from .npz, .parquet or .csv, and {path.name} is none of them.")
    except (OSError, BadZipFile, EOFError, PolarsError) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise BadInputError(f"cannot read features from {path}: {reason}.") from error
    return scaled(values, votes, source=source)


def scaled(values: NDArray[np.float64], votes: Votes, *, source: str = "an array") -> Features:
    """Divide features, shaped as in :class:`Features`, by one number, so that the longest has norm 1."""
    features = Features(np.asarray(values, dtype=np.float64), 1.0, source)
    shape = features.values.shape
    if len(shape) not in (2, 3) or shape[-2] != len(votes.items) or shape[-1] == 0:
        raise BadInputError(f"features must have shape ({len(votes.items)}, d) or (contexts, {len(votes.items)}, d).")
    if len(shape) == 3 and shape[0] != len(votes.contexts):
        raise BadInputError(f"features are for {shape[0]} contexts, and the votes have {len(votes.contexts)}.")
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
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except ValueError as error:
        raise BadInputError(f"{path.name} is no npz file of plain arrays: {error}.") from error
    usable = [n for n, a in arrays.items() if a.ndim in (2, 3) and a.dtype.kind in "iuf"]
    name = wanted or next((n for n in _USUAL if n in usable), usable[0] if len(usable) == 1 else None)
    if name is None:
        raise BadInputError(f"say which array of {path.name} holds the features: it has {', '.join(arrays)}.")
    if name not in usable:
        raise unknown_name(f"array of features in {path.name}", name, usable)
    values = arrays[name].astype(np.float64)
    values = np.take(values, _rows("items", votes.items, arrays, values.shape[-2], path.name), axis=-2)
    if values.ndim == 3:
        values = values[_rows("contexts", votes.contexts, arrays, len(values), path.name)]
    return values, f"{path.name}, array {name}"


def _rows(kind: str, names: Sequence[str], arrays: dict[str, NDArray[np.generic]], count: int, file: str) -> Indices:
    """Row of each name: by the array of names, or by number."""
    if kind in arrays:
        listed = [str(name) for name in arrays[kind].ravel().tolist()]
        known = {name: place for place, name in enumerate(listed)}
        if len(known) < len(listed):
            raise BadInputError(f"the array {kind} of {file} names something twice.")
        missing = [name for name in names if known.get(name, count) >= count]
        if missing:
            raise BadInputError(f"{file} has no features for {missing[0]!r}, which is not in its array {kind}.")
        return np.array([known[name] for name in names], dtype=np.int64)
    if not all(name.isdecimal() and int(name) < count for name in names):
        raise BadInputError(f"{file} needs an array {kind} with the names of its {count} rows.")
    return np.array([int(name) for name in names], dtype=np.int64)


def _table(path: Path, votes: Votes) -> NDArray[np.float64]:
    frame = pl.read_parquet(path) if path.suffix.lower() == ".parquet" else pl.read_csv(path, infer_schema_length=None)
    if "item" not in frame.columns:
        raise BadInputError(f"{path.name} needs a column item; it has {', '.join(frame.columns)}.")
    keys = [name for name in ("context", "item") if name in frame.columns]
    numbers = frame.drop(keys)
    if not numbers.columns or not all(kind.is_numeric() for kind in numbers.dtypes):
        raise BadInputError(f"the columns of {path.name} other than {' and '.join(keys)} must be numbers.")
    places = [_places(frame[key], votes.items if key == "item" else votes.contexts) for key in keys]
    shape = (*(len(votes.items if key == "item" else votes.contexts) for key in keys), len(numbers.columns))
    kept = np.logical_and.reduce([place >= 0 for place in places])
    index = tuple(place[kept] for place in places)
    if len(set(zip(*(place.tolist() for place in index), strict=True))) < int(kept.sum()):
        raise BadInputError(f"{path.name} has two rows for the same {' and '.join(keys)}.")
    values = np.full(shape, np.nan)
    values[index] = numbers.to_numpy()[kept]
    return values


def _places(column: pl.Series, names: Sequence[str]) -> Indices:
    """Place of each entry among ``names``, −1 where it is none of them."""
    known = {name: place for place, name in enumerate(names)}
    return np.array([known.get(str(name), -1) for name in column.cast(pl.String)], dtype=np.int64)
