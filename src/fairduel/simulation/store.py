"""Where finished runs are kept: Parquet files, each written whole or not at all, that give away any damage.

A cell's runs are in one or more parts, called KEY-DIGEST.parquet after the cell's key and the part's content. Runs are
added as a further part; parts are merged when the cell is complete. The merged part is there before the others go, so
that a kill between the two leaves parts with nothing new in them, which are passed over.
"""

import hashlib
import io
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from fairduel.errors import BadInputError
from fairduel.files import write_atomically
from fairduel.simulation.cell import Cell, Run
from fairduel.simulation.storage import ROUNDS_A_PART

if sys.platform != "win32":
    import fcntl

TRACE_COLUMNS = ("regret", "weak_regret", "first", "second", "flipped", "weight", "width", "slope")
"""What is kept of each round; in a part as lists named ``trace_…``."""
_MOST_SMALL_PARTS = 16
"""So many parts that fit into one are merged, also where the cell is not complete."""
_NAME = re.compile(r"[0-9a-f]+-[0-9a-f]{16}")


class Store:
    """A folder of finished runs.

    A second run of the same cell finds the seeds that are there and computes the others only; a changed
    setting has another key, and so other files. ``traces=False`` keeps one row per run and nothing of its rounds, for
    long runs of which only the end counts.
    """

    def __init__(self, folder: Path, *, traces: bool = True) -> None:
        self.folder = folder
        self._columns = TRACE_COLUMNS if traces else ()
        self._cells = folder / ("cells" if traces else "records")  # a reader of the first finds traces in each file
        self._seeds: dict[Path, frozenset[int]] = {}
        """Of each part that was read. A part with other runs has another name, so this stays true."""
        try:
            self._cells.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInputError(f"cannot write to {folder}: {error.strerror}.") from error

    def parts(self, cell: Cell, key: str | None = None) -> list[Path]:
        """The files of this cell, or of what had this ``key`` in an older version; an error if one is damaged."""
        key = key or cell.key
        with _locked(self._cells, shared=True):
            # Before there were digests, files were called KEY.parquet, KEY-1.parquet and so on.
            old = sorted(path for path in self._cells.glob(f"{key}*.parquet") if not _NAME.fullmatch(path.stem))
            return [*self._intact_parts(cell, key), *old]

    def seeds(self, cell: Cell) -> set[int]:
        """Which seeds of this cell are finished; those of a damaged part are not."""
        with _locked(self._cells, shared=True):
            intact, _ = self._examine(cell.key)
        return {seed for seeds in intact.values() for seed in seeds}

    def tidy(self, cell: Cell) -> list[Path]:
        """Remove what a kill left behind of this cell, and its damaged parts, which are returned."""
        with _locked(self._cells):
            for path in self._files(cell.key):
                self._seeds.pop(path, None)  # look again: it may have been damaged since
            intact, damaged = self._examine(cell.key)
            for path in self._files(cell.key):
                if path not in intact:
                    path.unlink()
            for path in self._cells.glob(f".{cell.key}-*"):  # of a write that was cut short
                path.unlink()
        return damaged

    def add(self, cell: Cell, runs: Iterable[Run], *, complete: bool = False) -> None:
        """Store finished runs as a further part of their cell; ``complete`` says that they are its last."""
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
                    if len(parts) >= (2 if complete else _MOST_SMALL_PARTS):
                        self._merge(cell.key, parts)
            except _DamagedError as error:
                raise _damage(cell, error.path) from error

    def records(self, cell: Cell, seeds: Iterable[int]) -> pl.DataFrame:
        """Return one row a run, by seed, without the traces."""
        frame = self._read(cell, pl.exclude("^trace_.*$"))
        return frame.filter(pl.col("seed").is_in(list(seeds)))

    def traces(self, cell: Cell, seeds: Iterable[int]) -> pl.DataFrame:
        """Return one row a run and round, by seed and round, with cumulative regrets."""
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
                    f"no run of {cell.agent} under {cell.attack} is stored in {self.folder} with these settings."
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
        """The seeds of each intact part of a cell that was not merged into another; and the damaged parts."""
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
        return sorted(path for path in self._cells.glob(f"{key}-*.parquet") if _NAME.fullmatch(path.stem))

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
    """Leave out every part all of whose seeds are in larger ones."""
    kept: dict[Path, frozenset[int]] = {}
    seen: set[int] = set()
    for path, seeds in sorted(parts.items(), key=lambda part: (-len(part[1]), part[0])):
        if not seeds <= seen:
            kept[path] = seeds
            seen |= seeds
    return kept


def _fitting_together(parts: Mapping[Path, frozenset[int]], horizon: int) -> Iterator[list[Path]]:
    """Divide the small parts into groups that each fit into one; to write the others again would gain little."""
    group: list[Path] = []
    rounds = 0
    for path, seeds in sorted(parts.items(), key=lambda part: (-len(part[1]), part[0])):
        more = len(seeds) * horizon
        if more > ROUNDS_A_PART // 4:
            continue
        if group and rounds + more > ROUNDS_A_PART:
            yield group
            group, rounds = [], 0
        group.append(path)
        rounds += more
    yield group


@contextmanager
def _locked(folder: Path, *, shared: bool = False) -> Iterator[None]:
    """Let one process at a time change the cells, and none while others read them."""
    if sys.platform == "win32":  # no such lock there: only one command at a time may use a folder
        yield
        return
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


class _DamagedError(Exception):
    """The content of a part is not what was written."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.path = path


def _damage(cell: Cell, path: Path) -> BadInputError:
    return BadInputError(
        f"stored runs of {cell.agent} under {cell.attack} (C = {cell.budget}, T = {cell.horizon}) are damaged: rerun "
        f"the command that made them, which repeats the runs in {path}"
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


def write_parquet(frame: pl.DataFrame, path: Path) -> None:
    """Write a frame to ``path``, whole or not at all."""
    write_atomically(path, _as_parquet(frame))
