"""A small sweep, and how two sweeps are compared."""

import polars as pl
from polars.testing import assert_frame_equal

from fairduel.simulation import Store, run_cells

SMALL = """
runs = 3
seed = 10
horizon = [20, 30]
budget = [2, 4]
[[agent]]
name = "rcdb"
[[agent]]
name = "maxpairucb"
radius = [2.0, 4.0]
[[attack]]
name = "greedy"
[[attack]]
name = "misleading"
target = ["random", "worst"]
"""


def written(folder, text):
    path = folder / "grid.toml"
    path.write_text(text, encoding="utf-8")
    return path


def kept(folder):
    """The stored runs of each cell by its key, without what a clock says."""
    parts = {}
    for path in (folder / "cells").glob("*.parquet"):
        parts.setdefault(path.stem.partition("-")[0], []).append(pl.read_parquet(path))
    return {key: pl.concat(frames).sort("seed").drop("seconds") for key, frames in parts.items()}


def assert_same_results(one, other):
    ours, theirs = kept(one), kept(other)
    assert ours.keys() == theirs.keys()
    for name, frame in ours.items():
        assert_frame_equal(frame, theirs[name], check_exact=True)


def sweep(grid, folder, **options):
    store = Store(folder)
    grid.save(folder, "fairduel sweep grid.toml")
    return run_cells(list(grid.cells.values()), grid.seeds, store, **options)
