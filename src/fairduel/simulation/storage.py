"""Where finished runs are kept, and which runs are missing.

A folder of finished work holds Parquet files that are written atomically and reveal any damage. Rows belong to a key
and have a seed. The rows of a key are in one or more parts named KEY-DIGEST.parquet, after the key and the part's
content. New rows become a new part; parts are merged when the key is complete. The merged part is written before the
others are deleted, so a kill in between leaves redundant parts, which are ignored.
"""

import bisect
import hashlib
import io
import itertools
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import polars as pl

from fairduel.errors import BadInputError
from fairduel.files import write_atomically
from fairduel.simulation.cell import Cell, Run

if sys.platform != "win32":
    import fcntl

_MAX_SMALL_PARTS = 16
"""This many parts that fit into one are merged even if the key is not complete."""
_SETTLED = 1_000_000_000
"""Nanoseconds after which a folder's time of change is surely past."""
_NAME = re.compile(r"[0-9a-f]+-[0-9a-f]{16}")


class DamagedError(Exception):
    """A part's content is not what was written."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.path = path


class Parts:
    """Finished work in a folder, by key and seed; the folder is created if missing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[Path, tuple[tuple[int, int], frozenset[int]]] = {}
        """When each part read so far was last changed, its size, and its seeds."""
        self._names: list[str] = []
        self._listed = -1
        """When the folder last changed before its ``_names`` were listed."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInputError(f"cannot write to {folder}: {error.strerror}.") from error

    def of(self, key: str) -> list[Path]:
        """Return the parts of this key; raise if one is damaged."""
        with _locked(self.folder, shared=True):
            return self._intact(key)

    def seeds(self, key: str) -> set[int]:
        """Return the finished seeds of this key; those in a damaged part are not."""
        with _locked(self.folder, shared=True):
            intact, _ = self._examine(key)
        return {seed for seeds in intact.values() for seed in seeds}

    def tidy(self, key: str) -> list[Path]:
        """Remove leftovers of a kill and damaged parts of this key; return the damaged parts."""
        with _locked(self.folder):
            intact, damaged = self._examine(key)
            for path in self._files(key):
                if path not in intact:
                    path.unlink()
            for path in self._starting_with(f".{key}-"):  # from an interrupted write
                path.unlink()
        return damaged

    def add(self, key: str, frame: pl.DataFrame, *, most_seeds: int, complete: bool = False) -> None:
        """Store the seeds of ``frame`` that are not stored yet as a new part; raise if another part is damaged.

        Parts are merged up to ``most_seeds`` seeds. ``complete``: these are the last of the key.
        """
        with _locked(self.folder):
            intact, damaged = self._examine(key)
            stored = [seed for seeds in intact.values() for seed in seeds]
            frame = frame.filter(~pl.col("seed").is_in(stored)).sort("seed", maintain_order=True)
            if len(frame):
                path = self._write(key, frame)
                intact[path] = self._seeds(path)
            if damaged:
                raise DamagedError(damaged[0])
            for parts in _fitting_together(intact, most_seeds):
                if len(parts) >= (2 if complete else _MAX_SMALL_PARTS):
                    self._merge(key, parts)

    def read(self, key: str, columns: list[str] | pl.Expr | None = None) -> pl.DataFrame | None:
        """Return all rows of this key, ordered by seed, or ``None`` without any; raise if a part is damaged."""
        with _locked(self.folder, shared=True):
            parts = self._intact(key)
            if not parts:
                return None
            return pl.concat([_read_part(part, columns) for part in parts]).sort("seed", maintain_order=True)

    def _intact(self, key: str) -> list[Path]:
        intact, damaged = self._examine(key)
        if damaged:
            raise DamagedError(damaged[0])
        return sorted(intact)

    def _examine(self, key: str) -> tuple[dict[Path, frozenset[int]], list[Path]]:
        """Return the seeds of each intact part that was not merged into another, and the damaged parts."""
        intact: dict[Path, frozenset[int]] = {}
        damaged = []
        for path in self._files(key):
            try:
                intact[path] = self._seeds(path)
            except DamagedError:
                damaged.append(path)
        return _without_merged(intact), damaged

    def _seeds(self, path: Path) -> frozenset[int]:
        """Return the seeds of a part, which is read again only if it has changed, as when it was damaged."""
        stamp = _stamp(path)
        if path not in self._read or self._read[path][0] != stamp:
            self._read[path] = (stamp, frozenset(_read_part(path, ["seed"])["seed"]))
        return self._read[path][1]

    def _files(self, key: str) -> list[Path]:
        found = self._starting_with(f"{key}-")
        return [path for path in found if path.suffix == ".parquet" and _NAME.fullmatch(path.stem)]

    def _starting_with(self, start: str) -> list[Path]:
        """Return the files with such names, sorted; an unchanged folder is not listed again for the next cell."""
        changed, now = self.folder.stat().st_mtime_ns, time.time_ns()
        if changed != self._listed:
            self._names = sorted(path.name for path in self.folder.iterdir())
            # Two changes can have the same time: rely on it only if it was past when the names were read.
            self._listed = changed if now - changed > _SETTLED else -1
        first = bisect.bisect_left(self._names, start)
        same = itertools.takewhile(lambda name: name.startswith(start), itertools.islice(self._names, first, None))
        return [self.folder / name for name in same]

    def _write(self, key: str, frame: pl.DataFrame) -> Path:
        content = _as_parquet(frame)
        path = self.folder / f"{key}-{_digest(content)}.parquet"
        write_atomically(path, content)
        self._read[path] = (_stamp(path), frozenset(frame["seed"]))
        return path

    def _merge(self, key: str, parts: list[Path]) -> None:
        merged = self._write(key, pl.concat([_read_part(part) for part in parts]).sort("seed", maintain_order=True))
        for part in parts:
            if part != merged:
                part.unlink()


def _without_merged(parts: Mapping[Path, frozenset[int]]) -> dict[Path, frozenset[int]]:
    """Drop every part whose seeds are all in larger parts."""
    kept: dict[Path, frozenset[int]] = {}
    seen: set[int] = set()
    for path, seeds in sorted(parts.items(), key=lambda part: (-len(part[1]), part[0])):
        if not seeds <= seen:
            kept[path] = seeds
            seen |= seeds
    return kept


def _fitting_together(parts: Mapping[Path, frozenset[int]], most_seeds: int) -> Iterator[list[Path]]:
    """Group the small parts so that each group fits into one part; large parts are left alone."""
    group: list[Path] = []
    count = 0
    for path, seeds in sorted(parts.items(), key=lambda part: (-len(part[1]), part[0])):
        if 4 * len(seeds) > most_seeds:
            continue
        if group and count + len(seeds) > most_seeds:
            yield group
            group, count = [], 0
        group.append(path)
        count += len(seeds)
    yield group


@contextmanager
def _locked(folder: Path, *, shared: bool = False) -> Iterator[None]:
    """Lock the folder: one writer, or any number of readers."""
    if sys.platform == "win32":  # has no flock: run only one command per folder at a time
        yield
        return
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BadInputError(f"cannot read {path}: {error.strerror}.") from error


def _stamp(path: Path) -> tuple[int, int]:
    with _reading(path):
        status = path.stat()
    return status.st_mtime_ns, status.st_size


def _read_part(path: Path, columns: list[str] | pl.Expr | None = None) -> pl.DataFrame:
    with _reading(path):
        content = path.read_bytes()
    if not path.stem.endswith(_digest(content)):
        raise DamagedError(path)
    return pl.scan_parquet(io.BytesIO(content)).select(pl.all() if columns is None else columns).collect()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _as_parquet(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression="zstd")
    return buffer.getvalue()


def write_parquet(frame: pl.DataFrame, path: Path | str) -> None:
    """Write a frame to ``path`` atomically."""
    write_atomically(Path(path), _as_parquet(frame))


TRACE_COLUMNS = ("regret", "weak_regret", "first", "second", "flipped", "weight", "width", "slope")
"""Columns kept for each round; a part holds them as lists named ``trace_…``."""
MAX_ROUNDS_PER_PART = 1_000_000
"""A file holds at most this many rounds of a cell (about 60 MB), unless a single run has more."""


class Storage(Protocol):
    """A place for finished runs, such as :class:`~fairduel.simulation.Store`, a folder that SQL can query."""

    def seeds(self, cell: Cell) -> set[int]:
        """Return the seeds of this cell whose runs are finished and readable."""

    def tidy(self, cell: Cell) -> Sequence[object]:
        """Remove what is unreadable of this cell; return the name of each thing removed."""

    def add(self, cell: Cell, runs: Iterable[Run], *, complete: bool = False) -> None:
        """Store finished runs of a cell; ``complete`` says that these are its last."""

    def records(self, cell: Cell, seeds: Iterable[int]) -> pl.DataFrame:
        """Return :meth:`Run.record` of these seeds, one row per run, ordered by seed."""

    def traces(self, cell: Cell, seeds: Iterable[int]) -> pl.DataFrame:
        """Return one row per run and round, ordered by seed and round, with cumulative regrets."""


def missing_seeds(store: Storage, cells: Iterable[Cell], seeds: Sequence[int]) -> dict[str, list[int]]:
    """Return the seeds that are not stored yet, by cell key."""
    by_key = {cell.key: cell for cell in cells}
    stored = {key: store.seeds(cell) for key, cell in by_key.items()}
    return {key: [seed for seed in dict.fromkeys(seeds) if seed not in done] for key, done in stored.items()}


def count_missing(store: Storage, cells: Iterable[Cell], seeds: Sequence[int]) -> int:
    """Return how many runs are not stored yet."""
    return sum(map(len, missing_seeds(store, cells, seeds).values()))


class Store:
    """A folder of finished runs.

    Rerunning a cell computes only the seeds that are missing. A changed setting means a different key and so different
    files.

    Args:
        folder: Where to store the runs; created if missing.
        traces: Whether to keep every round. ``False`` keeps only one row per run, for long runs.
    """

    def __init__(self, folder: Path | str, *, traces: bool = True) -> None:
        self.folder = Path(folder)
        self._columns = TRACE_COLUMNS if traces else ()
        self._parts = Parts(self.folder / ("cells" if traces else "records"))  # every file in cells/ has traces

    def parts(self, cell: Cell, key: str | None = None) -> list[Path]:
        """Return the files of this cell, or of the ``key`` that it had with other code; raise if one is damaged."""
        with _naming(cell):
            return self._parts.of(key or cell.key)

    def seeds(self, cell: Cell) -> set[int]:
        """Return the seeds of this cell that are finished; those in a damaged part are not."""
        return self._parts.seeds(cell.key)

    def tidy(self, cell: Cell) -> list[Path]:
        """Remove leftovers of a kill and damaged parts of this cell; return the damaged parts."""
        return self._parts.tidy(cell.key)

    def add(self, cell: Cell, runs: Iterable[Run], *, complete: bool = False) -> None:
        """Store finished runs as a new part of their cell; ``complete`` says that these are its last."""
        rows = [run.record() | {f"trace_{name}": getattr(run.trace, name) for name in self._columns} for run in runs]
        with _naming(cell):
            most = MAX_ROUNDS_PER_PART // cell.horizon
            self._parts.add(cell.key, pl.DataFrame(rows), most_seeds=most, complete=complete)

    def records(self, cell: Cell, seeds: Iterable[int]) -> pl.DataFrame:
        """Return one row per run, ordered by seed, without the traces."""
        return self._read(cell, seeds, pl.exclude("^trace_.*$"))

    def traces(self, cell: Cell, seeds: Iterable[int]) -> pl.DataFrame:
        """Return one row per run and round, ordered by seed and round, with cumulative regrets."""
        names = [f"trace_{name}" for name in TRACE_COLUMNS]
        frame = self._read(cell, seeds, ["seed", *names])
        rounds = pl.int_ranges(1, pl.col("trace_regret").list.len() + 1, dtype=pl.Int32).alias("round")
        long = frame.with_columns(rounds).explode("round", *names)
        long = long.rename({f"trace_{name}": name for name in TRACE_COLUMNS})
        return long.with_columns(pl.col("regret", "weak_regret").cum_sum().over("seed"))

    def _read(self, cell: Cell, seeds: Iterable[int], columns: list[str] | pl.Expr) -> pl.DataFrame:
        with _naming(cell):
            frame = self._parts.read(cell.key, columns)
        if frame is None:
            raise BadInputError(f"{self.folder} has no runs of {cell.agent} under {cell.attack} with these settings.")
        return frame.filter(pl.col("seed").is_in(list(seeds)))


@contextmanager
def _naming(cell: Cell) -> Iterator[None]:
    """Say which runs are damaged."""
    try:
        yield
    except DamagedError as error:
        raise BadInputError(
            f"stored runs of {cell.agent} under {cell.attack} (C = {cell.budget}, T = {cell.horizon}) are damaged; "
            f"rerun the command that made them to repeat the runs in {error.path}."
        ) from error
