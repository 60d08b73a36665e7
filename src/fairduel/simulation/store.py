"""Store finished runs in Parquet files that are written atomically and reveal any damage.

A cell's runs are in one or more parts named KEY-DIGEST.parquet, after the cell's key and the part's content. New runs
become a new part; parts are merged when the cell is complete. The merged part is written before the others are deleted,
so a kill in between leaves redundant parts, which are ignored.
"""

import bisect
import hashlib
import io
import itertools
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from fairduel.errors import BadInputError
from fairduel.files import write_atomically
from fairduel.simulation.cell import Cell, Run
from fairduel.simulation.storage import MAX_ROUNDS_PER_PART

if sys.platform != "win32":
    import fcntl

TRACE_COLUMNS = ("regret", "weak_regret", "first", "second", "flipped", "weight", "width", "slope")
"""Columns kept for each round; a part holds them as lists named ``trace_…``."""
_MAX_SMALL_PARTS = 16
"""This many parts that fit into one are merged even if the cell is not complete."""
_SETTLED = 1_000_000_000
"""Nanoseconds after which a folder's time of change is surely past."""
_NAME = re.compile(r"[0-9a-f]+-[0-9a-f]{16}")


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
        self._cells = self.folder / ("cells" if traces else "records")  # every file in cells/ has traces
        self._seeds: dict[Path, frozenset[int]] = {}
        """Seeds of each part read so far; valid forever, because a part with other runs has another name."""
        self._names: list[str] = []
        self._listed = -1
        """When the folder last changed before its ``_names`` were listed."""
        try:
            self._cells.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInputError(f"cannot write to {folder}: {error.strerror}.") from error

    def parts(self, cell: Cell, key: str | None = None) -> list[Path]:
        """Return the files of this cell, or of its ``key`` in an older version; raise if one is damaged."""
        key = key or cell.key
        with _locked(self._cells, shared=True):
            # Before digests were added, files were named KEY.parquet, KEY-1.parquet and so on.
            old = sorted(path for path in self._cells.glob(f"{key}*.parquet") if not _NAME.fullmatch(path.stem))
            return [*self._intact_parts(cell, key), *old]

    def seeds(self, cell: Cell) -> set[int]:
        """Return the seeds of this cell that are finished; those in a damaged part are not."""
        with _locked(self._cells, shared=True):
            intact, _ = self._examine(cell.key)
        return {seed for seeds in intact.values() for seed in seeds}

    def tidy(self, cell: Cell) -> list[Path]:
        """Remove leftovers of a kill and damaged parts of this cell; return the damaged parts."""
        with _locked(self._cells):
            for path in self._files(cell.key):
                self._seeds.pop(path, None)  # reread it, in case it was damaged since
            intact, damaged = self._examine(cell.key)
            for path in self._files(cell.key):
                if path not in intact:
                    path.unlink()
            for path in self._starting_with(f".{cell.key}-"):  # from an interrupted write
                path.unlink()
        return damaged

    def add(self, cell: Cell, runs: Iterable[Run], *, complete: bool = False) -> None:
        """Store finished runs as a new part of their cell; ``complete`` says that these are its last."""
        rows = [run.record() | {f"trace_{name}": getattr(run.trace, name) for name in self._columns} for run in runs]
        frame = pl.DataFrame(rows).sort("seed")
        with _locked(self._cells):
            intact, _ = self._examine(cell.key)
            stored = [seed for seeds in intact.values() for seed in seeds]
            frame = frame.filter(~pl.col("seed").is_in(stored))
            if len(frame):
                path = self._write(cell.key, frame)
                intact[path] = self._seeds[path]
            try:
                for parts in _fitting_together(intact, cell.horizon):
                    if len(parts) >= (2 if complete else _MAX_SMALL_PARTS):
                        self._merge(cell.key, parts)
            except _DamagedError as error:
                raise _damage(cell, error.path) from error

    def records(self, cell: Cell, seeds: Iterable[int]) -> pl.DataFrame:
        """Return one row per run, ordered by seed, without the traces."""
        frame = self._read(cell, pl.exclude("^trace_.*$"))
        return frame.filter(pl.col("seed").is_in(list(seeds)))

    def traces(self, cell: Cell, seeds: Iterable[int]) -> pl.DataFrame:
        """Return one row per run and round, ordered by seed and round, with cumulative regrets."""
        names = [f"trace_{name}" for name in TRACE_COLUMNS]
        frame = self._read(cell, ["seed", *names]).filter(pl.col("seed").is_in(list(seeds)))
        rounds = pl.int_ranges(1, pl.col("trace_regret").list.len() + 1, dtype=pl.Int32).alias("round")
        long = frame.with_columns(rounds).explode("round", *names)
        long = long.rename({f"trace_{name}": name for name in TRACE_COLUMNS})
        return long.with_columns(pl.col("regret", "weak_regret").cum_sum().over("seed"))

    def _read(self, cell: Cell, columns: list[str] | pl.Expr) -> pl.DataFrame:
        with _locked(self._cells, shared=True):
            parts = self._intact_parts(cell, cell.key)
            if not parts:
                raise BadInputError(
                    f"{self.folder} has no runs of {cell.agent} under {cell.attack} with these settings."
                )
            try:
                return pl.concat([_read_part(part, columns) for part in parts]).sort("seed")
            except _DamagedError as error:
                raise _damage(cell, error.path) from error

    def _intact_parts(self, cell: Cell, key: str) -> list[Path]:
        intact, damaged = self._examine(key)
        if damaged:
            raise _damage(cell, damaged[0])
        return sorted(intact)

    def _examine(self, key: str) -> tuple[dict[Path, frozenset[int]], list[Path]]:
        """Return the seeds of each intact part that was not merged into another, and the damaged parts."""
        intact: dict[Path, frozenset[int]] = {}
        damaged = []
        for path in self._files(key):
            try:
                if path not in self._seeds:
                    self._seeds[path] = frozenset(_read_part(path, ["seed"])["seed"])
                intact[path] = self._seeds[path]
            except _DamagedError:
                damaged.append(path)
        return _without_merged(intact), damaged

    def _files(self, key: str) -> list[Path]:
        found = self._starting_with(f"{key}-")
        return [path for path in found if path.suffix == ".parquet" and _NAME.fullmatch(path.stem)]

    def _starting_with(self, start: str) -> list[Path]:
        """Return the files with such names, sorted; an unchanged folder is not listed again for the next cell."""
        changed, now = self._cells.stat().st_mtime_ns, time.time_ns()
        if changed != self._listed:
            self._names = sorted(path.name for path in self._cells.iterdir())
            # Two changes can have the same time: rely on it only if it was past when the names were read.
            self._listed = changed if now - changed > _SETTLED else -1
        first = bisect.bisect_left(self._names, start)
        same = itertools.takewhile(lambda name: name.startswith(start), itertools.islice(self._names, first, None))
        return [self._cells / name for name in same]

    def _write(self, key: str, frame: pl.DataFrame) -> Path:
        content = _as_parquet(frame)
        path = self._cells / f"{key}-{_digest(content)}.parquet"
        write_atomically(path, content)
        self._seeds[path] = frozenset(frame["seed"])
        return path

    def _merge(self, key: str, parts: list[Path]) -> None:
        merged = self._write(key, pl.concat([_read_part(part) for part in parts]).sort("seed"))
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


def _fitting_together(parts: Mapping[Path, frozenset[int]], horizon: int) -> Iterator[list[Path]]:
    """Group the small parts so that each group fits into one part; large parts are left alone."""
    group: list[Path] = []
    rounds = 0
    for path, seeds in sorted(parts.items(), key=lambda part: (-len(part[1]), part[0])):
        more = len(seeds) * horizon
        if more > MAX_ROUNDS_PER_PART // 4:
            continue
        if group and rounds + more > MAX_ROUNDS_PER_PART:
            yield group
            group, rounds = [], 0
        group.append(path)
        rounds += more
    yield group


@contextmanager
def _locked(folder: Path, *, shared: bool = False) -> Iterator[None]:
    """Lock the cells: one writer, or any number of readers."""
    if sys.platform == "win32":  # has no flock: run only one command per folder at a time
        yield
        return
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


class _DamagedError(Exception):
    """A part's content is not what was written."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.path = path


def _damage(cell: Cell, path: Path) -> BadInputError:
    return BadInputError(
        f"stored runs of {cell.agent} under {cell.attack} (C = {cell.budget}, T = {cell.horizon}) are damaged; rerun "
        f"the command that made them to repeat the runs in {path}."
    )


def _read_part(path: Path, columns: list[str] | pl.Expr | None = None) -> pl.DataFrame:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadInputError(f"cannot read {path}: {error.strerror}.") from error
    if not path.stem.endswith(_digest(content)):
        raise _DamagedError(path)
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
