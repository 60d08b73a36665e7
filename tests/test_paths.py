"""Strings work wherever paths do."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import fairduel
from fairduel import RCDB
from fairduel.simulation import Cell, Store, write_parquet
from fairduel.simulation.query import query
from fairduel.simulation.sweep import Grid, read_grid
from fairduel.votes import clean, export, read_features, read_votes
from fairduel.worlds.replay import Replay

GRID = 'runs = 1\nhorizon = 10\nbudget = 1\n[[agent]]\nname = "rcdb"\n[[attack]]\nname = "none"\n'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to work in, with one file of each kind."""
    monkeypatch.chdir(tmp_path)
    Path("votes.csv").write_text("a,b,winner\ntea,milk,a\ntea,milk,tie\nmilk,rum,a\nrum,tea,b\n")
    np.savez("features.npz", features=[[0.0], [0.5], [1.0]], items=["rum", "milk", "tea"])
    Path("grid.toml").write_text(GRID)
    return tmp_path


def saved(path):
    RCDB(dimension=1, norm_bound=1.0, flip_budget=1, horizon=10, seed=0).save(path)
    return RCDB.load(path).flip_budget


def stored(path):
    cell = Cell(agent="rcdb", attack="none", budget=1, horizon=10)
    return Store(path).seeds(cell)


def written(path):
    write_parquet(pl.DataFrame({"x": [1]}), path)
    return pl.read_parquet(path).rows()


def swept(path):
    read_grid("grid.toml").save(path, "fairduel sweep")
    return list(Grid.load(path).cells)


def asked(path):
    Store(path)
    swept(path)
    with pytest.raises(fairduel.BadInputError, match="no finished runs") as refused:
        query(path, "FROM runs")
    return str(refused.value)


USES = {
    "votes.csv": lambda path: read_votes(path).votes.result.tolist(),
    "features.npz": lambda path: read_features(path, read_votes("votes.csv").votes).values.tolist(),
    "exported": lambda path: export(clean(read_votes("votes.csv")), path).files,
    "agent.npz": saved,
    "store": stored,
    "table.parquet": written,
    "grid.toml": lambda path: list(read_grid(path).cells),
    ".": lambda path: [*swept(path), Replay(path=path, rng=np.random.default_rng(0)).dimension],
    "sweep": asked,
}


@pytest.mark.parametrize("name", USES)
@pytest.mark.usefixtures("folder")
def test_a_string_does_what_a_path_does(name):
    assert USES[name](name) == USES[name](Path(name))
