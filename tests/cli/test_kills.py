"""A sweep that is killed again and again gets done, with the same results, and leaves no process behind."""

import os
import signal
import time
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

from fairduel.simulation import Store, run_cells
from fairduel.simulation.sweep import read_grid
from helpers.commands import run_command
from helpers.sweeps import assert_same_results

pytestmark = pytest.mark.skipif(not Path("/proc/self").exists(), reason="processes are looked for in /proc")

AGENT = """
import os
import time


class Agent:
    def __init__(self, seed):
        self.seed = seed
        time.sleep(float(os.environ.get("SLEEP", "0")))

    def ask(self, actions):
        return self.seed % len(actions), 1

    def tell(self, pair, outcome):
        pass
"""
GRID = """
runs = 500
horizon = 200
budget = 20
[[agent]]
name = ["rcdb", "slow_of_kills:Agent"]
[[attack]]
name = "greedy"
"""
KILLS = 10
PATIENCE = 300.0  # for a machine with twenty times as much to do as it can


class Sweep:
    """A sweep in a folder, which can be started many times."""

    def __init__(self, folder):
        self.folder = folder
        self.grid = read_grid(folder / "grid.toml")
        self.sessions = []
        self._context = get_context("forkserver")
        self._context.set_forkserver_preload(
            ["helpers.commands", "fairduel.cli.research.results"]
        )  # saves two seconds each time

    def start(self, sleep):
        arguments = ["sweep", "grid.toml", "--out", "killed", "--jobs", "2"]
        process = self._context.Process(target=run_command, args=(self.folder, arguments, {"SLEEP": str(sleep)}))
        process.start()
        self.sessions.append(process.pid)
        return process

    def stored(self):
        store = Store(self.folder / "killed")
        return sum(len(store.seeds(cell)) for cell in self.grid.cells.values())

    def output(self):
        return (self.folder / "output.txt").read_text()


def processes_of(sessions):
    """All processes of these sessions that run."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, session = (path / "stat").read_text().rpartition(")")[2].split()[:4]
        except OSError:  # it ended meanwhile
            continue
        if int(session) in sessions and state != "Z":
            found.append(int(path.name))
    return found


def wait_for(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    (tmp_path / "slow_of_kills.py").write_text(AGENT)
    (tmp_path / "grid.toml").write_text(GRID)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    sweep = Sweep(tmp_path)
    yield sweep
    for process in processes_of(sweep.sessions):
        os.kill(process, signal.SIGKILL)


def test_every_kill_leaves_progress_and_nothing_else(sweep, tmp_path):
    rng = np.random.default_rng(int(os.environ.get("KILL_SEED", "0")))
    before = 0
    for number in range(KILLS):
        process = sweep.start(sleep=0.2)
        wait_for(lambda: sweep.stored() > before or not process.is_alive())  # noqa: B023  # it ends in this round
        time.sleep(rng.uniform(0.0, 0.5))
        assert process.is_alive(), sweep.output()
        if number % 2:
            process.kill()
            process.join()
        else:
            process.terminate()
            process.join()
            assert process.exitcode == 143
            assert "stopped: finished runs are saved; rerun to resume.\n" in sweep.output()
            assert "Traceback" not in sweep.output()
        stored = sweep.stored()
        assert stored > before
        before = stored
    wait_for(lambda: not processes_of(sweep.sessions))

    last = sweep.start(sleep=0.0)
    last.join()
    assert last.exitcode == 0, sweep.output()
    assert sweep.stored() == 1000
    run_cells(list(sweep.grid.cells.values()), sweep.grid.seeds, Store(tmp_path / "whole"))
    assert_same_results(tmp_path / "killed", tmp_path / "whole")
    wait_for(lambda: not processes_of(sweep.sessions))
