"""Where finished runs are kept: one Parquet file a cell, written whole or not at all.

A cell of so many rounds that they would fill the memory has further files, its parts.
"""

import io
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from fairduel.errors import BadInputError
from fairduel.files import write_whole
from fairduel.simulation.cell import Cell, Run

if sys.platform != "win32":
    import fcntl

TRACE_COLUMNS = ("regret", "weak_regret", "first", "second", "flipped", "weight", "width", "slope")
"""What is kept of each round; in a cell's file as lists named ``trace_…``."""
ROUNDS_A_PART = 1_000_000
"""So many rounds of a cell are stored together; it is about 60 MB before compression."""


class Store:
    """A folder of finished cells.

    A second run of the same cell finds the seeds that are there and computes the others only; a changed
    setting has another key, and so another file.
    """

    def __init__(self, folder: Path, *, traces: bool = True) -> None:
        self.folder = folder
        self._keeps_traces = traces
        try:
            (folder / "cells").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInputError(f"cannot write to {folder}: {error.strerror}.") from error

    def parts(self, cell: Cell) -> list[Path]:
        """The files of this cell, in the order in which they were begun."""
        return parts_of(self.folder, cell.key)

    def seeds(self, cell: Cell) -> set[int]:
        """Which seeds of this cell are finished."""
        if not self.parts(cell):
            return set()
        return set(self._read(cell, ["seed"])["seed"].to_list())

    def add(self, cell: Cell, runs: Iterable[Run]) -> None:
        """Add finished runs to the cell's last part, or begin another if that is full."""
        kept = TRACE_COLUMNS if self._keeps_traces else ()
        rows = [run.record() | {f"trace_{name}": getattr(run.trace, name) for name in kept} for run in runs]
        frame = pl.DataFrame(rows).sort("seed")
        with _locked(self.folder / "cells"):
            frame = frame.filter(~pl.col("seed").is_in(list(self.seeds(cell))))
            parts = self.parts(cell)
            last = _read_part(parts[-1]) if parts else frame.clear()
            if len(last) and (len(last) + len(frame)) * cell.horizon > ROUNDS_A_PART:
                path = self.folder / "cells" / f"{cell.key}-{_number(parts[-1]) + 1}.parquet"
            else:
                path = parts[-1] if parts else self.folder / "cells" / f"{cell.key}.parquet"
                frame = pl.concat([last, frame]).sort("seed")
            write_parquet(frame, path)

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
        parts = self.parts(cell)
        if not parts:
            raise BadInputError(
                f"no run of {cell.agent} under {cell.attack} is stored in {self.folder} with these settings."
            )
        frames = [_read_part(part, columns) for part in parts]
        return frames[0] if len(frames) == 1 else pl.concat(frames).sort("seed")


def parts_of(folder: Path, key: str) -> list[Path]:
    """The files in the store at ``folder`` of the cell with this key."""
    return sorted((folder / "cells").glob(f"{key}*.parquet"), key=_number)


def _number(part: Path) -> int:
    """Which part of its cell a file is: KEY.parquet is part 0, KEY-1.parquet part 1."""
    return int(part.stem.partition("-")[2] or 0)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Let one process at a time add to the cells, so that none overwrites what another has just stored."""
    if sys.platform == "win32":  # no such lock there: only one command at a time may store into a folder
        yield
        return
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


def _read_part(path: Path, columns: list[str] | pl.Expr | None = None) -> pl.DataFrame:
    try:
        content = io.BytesIO(path.read_bytes())  # opened once: another process may replace the file meanwhile
        return pl.scan_parquet(content).select(pl.all() if columns is None else columns).collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise BadInputError(f"{path} is torn or no Parquet file ({reason}): delete it and run again.") from error


def write_parquet(frame: pl.DataFrame, path: Path) -> None:
    """Write a frame to ``path``, whole or not at all."""
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression="zstd")
    write_whole(path, buffer.getvalue())
