"""What a place for finished runs offers, and which runs are missing there."""

from collections.abc import Iterable, Sequence
from typing import Protocol

import polars as pl

from fairduel.simulation.cell import Cell, Run

ROUNDS_A_PART = 1_000_000
"""So many rounds of a cell are stored at once at most, if they are of more than one run: about 60 MB."""


class Storage(Protocol):
    """A place for finished runs. :class:`~fairduel.simulation.store.Store`, a folder that SQL can read too, is one."""

    def seeds(self, cell: Cell) -> set[int]:
        """Which seeds of this cell are finished and readable."""

    def tidy(self, cell: Cell) -> Sequence[object]:
        """Remove what cannot be read of this cell; return what to call each thing removed."""

    def add(self, cell: Cell, runs: Iterable[Run], *, complete: bool = False) -> None:
        """Store finished runs of a cell; ``complete`` says that they are its last."""

    def records(self, cell: Cell, seeds: Iterable[int]) -> pl.DataFrame:
        """Return :meth:`Run.record` of these seeds, one row per run, by seed."""

    def traces(self, cell: Cell, seeds: Iterable[int]) -> pl.DataFrame:
        """Return one row per run and round, by seed and round, with cumulative regrets."""


def missing_seeds(store: Storage, cells: Iterable[Cell], seeds: Sequence[int]) -> dict[str, list[int]]:
    """Return the seeds that are not stored yet, for the key of each cell."""
    by_key = {cell.key: cell for cell in cells}
    stored = {key: store.seeds(cell) for key, cell in by_key.items()}
    return {key: [seed for seed in dict.fromkeys(seeds) if seed not in done] for key, done in stored.items()}


def count_missing(store: Storage, cells: Iterable[Cell], seeds: Sequence[int]) -> int:
    """Return how many runs are not stored yet."""
    return sum(map(len, missing_seeds(store, cells, seeds).values()))
