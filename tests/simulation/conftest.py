import pytest

from fairduel.simulation import Store
from fairduel.simulation.sweep import read_grid
from helpers.sweeps import SMALL, sweep, written


@pytest.fixture(scope="session")
def swept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("swept")
    sweep(read_grid(written(folder, SMALL)), folder)
    return folder


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results")
