"""Sweeps in threads and processes, some of which die."""

import errno
import os

import pytest
from joblib.externals.loky import get_reusable_executor
from threadpoolctl import threadpool_limits

from fairduel import BadInputError
from fairduel.simulation.parallel import Batch, run_elsewhere
from fairduel.simulation.sweep import declare, read_grid
from helpers.sweeps import assert_same_results, kept, sweep


def test_any_number_of_jobs_gives_the_same_files(swept, tmp_path):
    assert sweep(read_grid(swept / "grid.toml"), tmp_path / "two", jobs=2) == 36 * 3
    assert_same_results(swept, tmp_path / "two")


def test_a_full_disk_is_one_sentence_and_the_next_sweep_completes(swept, tmp_path, monkeypatch):
    grid = read_grid(swept / "grid.toml")
    real, calls = os.fsync, []

    def full(descriptor):
        calls.append(descriptor)
        if len(calls) > 9:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(BadInputError, match="No space left on device"):
            sweep(grid, tmp_path / "full")
    finished = {path: path.stat().st_mtime_ns for path in (tmp_path / "full" / "cells").iterdir()}
    assert {path.suffix for path in finished} == {".parquet"}  # no half-written file was left
    assert 0 < len(finished) < len(grid.cells)
    sweep(grid, tmp_path / "full")
    assert {path: path.stat().st_mtime_ns for path in finished} == finished
    assert_same_results(swept, tmp_path / "full")


MORTAL = """
import os
import signal
from pathlib import Path


class Agent:
    def __init__(self, seed, dies="never"):
        self.seed = seed
        self.dies = dies

    def ask(self, actions):
        sign = Path("died-once")
        if self.dies == "always" or (self.dies == "once" and not sign.exists()):
            sign.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return self.seed % len(actions), 1

    def tell(self, pair, outcome):
        pass
"""


@pytest.fixture
def mortal(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    name = f"mortal_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(MORTAL)
    get_reusable_executor().shutdown()  # its processes stay in the folder in which they started
    yield name
    get_reusable_executor().shutdown()


def mortal_grid(name, *dies):
    agent = {"name": f"{name}:Agent", "dies": list(dies)}
    return declare({"runs": 4, "horizon": 5, "budget": 1, "agent": [agent], "attack": [{"name": "greedy"}]})


@pytest.mark.filterwarnings("ignore:A worker stopped")
def test_a_killed_process_costs_nothing_but_time(mortal, tmp_path):
    grid = mortal_grid(mortal, "never", "once")
    sweep(grid, tmp_path / "killed", jobs=2)
    assert (tmp_path / "died-once").exists()
    sweep(grid, tmp_path / "alone", jobs=1)
    assert_same_results(tmp_path / "killed", tmp_path / "alone")


@pytest.mark.filterwarnings("ignore:A worker stopped")
def test_a_cell_that_kills_every_worker_costs_no_other_cell(mortal, tmp_path):
    grid = mortal_grid(mortal, "always", "never")
    with pytest.raises(BadInputError, match=r"4 runs crashed every worker .* under greedy"):
        sweep(grid, tmp_path / "killed", jobs=2)
    [frame] = kept(tmp_path / "killed").values()
    assert len(frame) == 4


def test_a_worker_refuses_other_code_than_it_was_asked_to_run(mortal, tmp_path):
    with threadpool_limits():  # what a worker sets for good
        [(key, cell)] = mortal_grid(mortal, "never").cells.items()
        assert [run.seed for run in run_elsewhere(Batch(key, cell, [3]))] == [3]
        with pytest.raises(BadInputError, match="differs from the local code"):
            run_elsewhere(Batch("another key", cell, [0]))
        path = tmp_path / f"{mortal}.py"
        path.write_text(MORTAL.replace("return self.seed", "return 1 + self.seed"))
        [(edited, cell)] = mortal_grid(mortal, "never").cells.items()
        assert edited != key
        with pytest.raises(BadInputError, match="restart its processes"):  # it still has the old code loaded
            run_elsewhere(Batch(edited, cell, [0]))
