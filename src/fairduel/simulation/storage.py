"""The storage protocol for finished runs, and which runs are missing."""

from collections.abc import Iterable, Sequence
from typing import Protocol

import polars as pl

from fairduel.simulation.cell import Cell, Run

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
