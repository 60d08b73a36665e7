"""Features of items, or of items per context, from npz, Parquet or CSV files; and features of votes, from columns.

A feature of a vote is a number that may have decided it besides the items: how long the two answers are, say. Two
columns with numbers ≥ 0 of the two items become (A − B)/(A + B), or 0 if both are 0, as LMArena does for style. Each
feature is divided by its root mean square. It is not centred: two answers of equal length stay at 0.
"""

import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from zipfile import BadZipFile, ZipFile, ZipInfo

import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars.exceptions import PanicException, PolarsError

from fairduel.duel import Matrix, Vector
from fairduel.errors import BadInputError, unknown_name
from fairduel.features import FeatureMap, as_map
from fairduel.votes.notebook import clipped
from fairduel.votes.reading.fields import field, numbers
from fairduel.votes.reading.file_readers import check_unpacked, csv_layout, damage, read_text
from fairduel.votes.votes import Indices, Votes

_DEFAULT_ARRAYS = ("features", "phi")
# What NumPy and zipfile raise for a damaged archive, besides OSError.
NPZ_ERRORS = (
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
            raise BadInputError("features per context need votes with a context: name the context column (context=…).")
        return self.values[votes.context, item]

    def mapped(self, given: FeatureMap | str) -> "Features":
        """Return what a feature map makes of them, so that scores need not be linear in them.

        Args:
            given: The map or its text, as of an agent; it is fitted to these items unless it already is.

        >>> Features(np.array([[-1.0], [0.0], [1.0]]), factor=4.0, source="features.csv").mapped("rbf(0.5)")
        Features(3 × 3, from rbf(0.5) of features.csv)
        """
        made = as_map(given)
        if made.learns:
            raise BadInputError(f"the feature map {made} learns from an agent's votes; choose a kernel instead.")
        is_known = np.isfinite(self.values).all(axis=-1)
        rows = self.values[is_known]
        made = made if made.is_fitted else made.fit(self.values.shape[-1], rows)
        values = np.full((*is_known.shape, made.size), np.nan)
        values[is_known] = made(rows)
        return Features(values, self.factor, f"{made} of {self.source}")

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
    except NPZ_ERRORS as error:
        reason = damage(error)
        raise BadInputError(
            f"cannot read features from {path}: not an npz file of plain arrays, or {reason}."
        ) from error
    usable = [n for n, a in arrays.items() if a.ndim in (2, 3) and a.dtype.kind in "iuf"]
    name = wanted or next((n for n in _DEFAULT_ARRAYS if n in usable), usable[0] if len(usable) == 1 else None)
    if name is None:
        raise BadInputError(f"name the array of {path.name} with the features (array=…): it has {', '.join(arrays)}.")
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


_COUNTS = {
    "length": "sum_assistant_{}_tokens",
    "headers": "header_count_{}",
    "lists": "list_count_{}",
    "bold": "bold_count_{}",
}
STYLE = {name: ":".join(f"conv_metadata.{count.format(side)}" for side in "ab") for name, count in _COUNTS.items()}
"""The features of LMArena's style control, by name."""


def vote_features_of(frame: pl.DataFrame, columns: Mapping[str, str], file: str) -> dict[str, Vector]:
    """Return each feature (n,), given its column or the pair ``"A:B"`` of its columns; NaN where it is unknown.

    >>> table = pl.DataFrame({"long_a": [30, 0], "long_b": [10, 0]})
    >>> vote_features_of(table, {"length": "long_a:long_b"}, "votes.csv")["length"].tolist()
    [0.5, 0.0]
    """
    found = {name: _values(frame, spec, file) for name, spec in columns.items()}
    unknown = [name for name, values in found.items() if len(values) and np.isnan(values).all()]
    for name in unknown:
        if columns[name] != STYLE.get(name):
            raise BadInputError(f"{file} has no numbers in {columns[name]}.")
        del found[name]  # not every version of the file counts all of them
    if unknown and not found:
        raise BadInputError(f"{file} has none of the counts of LMArena's style control in conv_metadata.")
    return found


def _values(frame: pl.DataFrame, spec: str, file: str) -> Vector:
    if ":" not in spec or spec in frame.columns:
        return numbers(field(frame, spec, file))
    one, other = (numbers(field(frame, path, file)) for path in spec.split(":", 1))
    if (one < 0.0).any() or (other < 0.0).any():
        raise BadInputError(f"{file} has negative numbers in {spec}: give their difference as one column.")
    total = one + other
    return np.divide(one - other, total, out=np.where(np.isnan(total), np.nan, 0.0), where=total > 0.0)


def scaled_features(features: Mapping[str, Vector], file: str) -> Matrix:
    """Return features (n,), each divided by its root mean square, as columns (n, p)."""
    columns = []
    for name, values in features.items():
        size = float(np.sqrt(np.mean(values**2))) if len(values) else 1.0
        if size == 0.0:
            raise BadInputError(f"the vote feature {name} is 0 in all votes of {file}: leave it out.")
        columns.append(values / size)
    return np.column_stack(columns)
