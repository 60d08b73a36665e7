"""Any storage will do: a whole sweep and an experiment without a folder."""

import inspect

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from typer.testing import CliRunner

from fairduel.adversaries import ATTACKS
from fairduel.agents import AGENTS, rcdb
from fairduel.cli.command_list import app_for
from fairduel.errors import DamageWarning
from fairduel.experiments.comparing import lowest_in_each_panel
from fairduel.experiments.experiment import Curves, Entry, Experiment, run_experiment
from fairduel.simulation import Cell, Storage, Store, count_missing, missing_seeds, run_cells
from fairduel.simulation.storage import TRACE_COLUMNS
from fairduel.simulation.sweep import declare
from fairduel.worlds import WORLDS

GRID = {
    "runs": 3,
    "horizon": [20, 30],
    "budget": 4,
    "agent": [{"name": "rcdb"}, {"name": "maxpairucb", "radius": [2.0, 4.0]}, {"name": "vacdb"}],
    "attack": [{"name": "greedy"}, {"name": "misleading", "target": "worst"}],
}


class Memory:
    """Finished runs in a dictionary."""

    def __init__(self):
        self.runs = {}
        self.unreadable = []

    def seeds(self, cell):
        return {seed for key, seed in self.runs if key == cell.key}

    def tidy(self, cell):  # noqa: ARG002
        removed, self.unreadable = self.unreadable, []
        return removed

    def add(self, cell, runs, *, complete=False):  # noqa: ARG002
        self.runs |= {(cell.key, run.seed): run for run in runs}

    def records(self, cell, seeds):
        return pl.DataFrame([self.runs[cell.key, seed].record() for seed in sorted(set(seeds))])

    def traces(self, cell, seeds):
        frames = []
        for seed in sorted(set(seeds)):
            trace = self.runs[cell.key, seed].trace
            columns = {name: getattr(trace, name) for name in TRACE_COLUMNS}
            frame = pl.DataFrame({"seed": seed, **columns}).with_row_index("round", 1)
            frames.append(frame.with_columns(pl.col("regret", "weak_regret").cum_sum()))
        return pl.concat(frames)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_sweep_without_a_folder_has_the_runs_of_one_with(tmp_path, jobs):
    grid, memory, folder = declare(GRID), Memory(), Store(tmp_path)
    cells = list(grid.cells.values())
    assert len(cells) == 16
    for store in (memory, folder):
        assert count_missing(store, cells, grid.seeds) == 48
        assert run_cells(cells, grid.seeds, store, jobs=jobs) == 48
        assert count_missing(store, cells, grid.seeds) == 0
    for cell in cells:
        ours, theirs = memory.records(cell, grid.seeds), folder.records(cell, grid.seeds)
        assert_frame_equal(ours.drop("seconds"), theirs.drop("seconds"), check_exact=True)
        ours, theirs = memory.traces(cell, grid.seeds), folder.traces(cell, grid.seeds)
        assert_frame_equal(ours.select(theirs.columns), theirs, check_dtypes=False, rel_tol=1e-12)


def test_only_missing_runs_are_run():
    cell, memory = Cell("rcdb", "greedy", 4, 20), Memory()
    memory.add(cell, [cell.run(0), cell.run(3)])
    kept = dict(memory.runs)
    assert missing_seeds(memory, [cell, cell], [3, 2, 0, 2]) == {cell.key: [2]}
    assert run_cells([cell], range(4), memory) == 2
    assert memory.seeds(cell) == set(range(4))
    assert all(memory.runs[place] is run for place, run in kept.items())
    memory.unreadable = ["drawer 7"]
    with pytest.warns(DamageWarning, match="drawer 7 is damaged; repeating its runs of rcdb"):
        run_cells([cell], range(4), memory)


def test_an_experiment_runs_on_any_storage(tmp_path):
    cells = [Cell(agent, "greedy", 4, 20) for agent in ("rcdb", "maxinp")]
    entries = [Entry(cell, "practical", "greedy", is_reference=cell is cells[0]) for cell in cells]
    experiment = Experiment("two", "Two", "Who?", entries, lowest_in_each_panel, [Curves("")])
    memory: Storage = Memory()
    ours, theirs = (run_experiment(experiment, store, range(3)) for store in (memory, Store(tmp_path)))
    assert_frame_equal(ours.runs.drop("seconds"), theirs.runs.drop("seconds"), check_dtypes=False)
    assert_frame_equal(ours.traces.select(theirs.traces.columns), theirs.traces, check_dtypes=False, rel_tol=1e-12)


@pytest.fixture
def made(monkeypatch):
    """How often each kind of player was made in this process."""
    counts = {"agent": 0, "world": 0, "attack": 0}

    def counting(kind, maker):
        class Counted(maker):
            def __init__(self, *arguments, **settings):
                counts[kind] += 1
                super().__init__(*arguments, **settings)

        Counted.__signature__ = inspect.signature(maker)
        return Counted

    monkeypatch.setattr(rcdb, "Counted", counting("agent", rcdb.RCDB), raising=False)
    monkeypatch.setitem(AGENTS._places, "counted", "fairduel.agents.rcdb:Counted")
    monkeypatch.setitem(WORLDS, "counted", counting("world", WORLDS["hypercube"]))
    monkeypatch.setitem(ATTACKS, "counted", counting("attack", ATTACKS["greedy"]))
    return counts


class Elsewhere:
    """Workers in other processes, as far as this one can tell."""

    count = 1

    def run(self, batches):
        for batch in batches:
            known = Cell("rcdb", "greedy", 4, batch.cell.horizon)
            yield batch.key, [known.run(seed) for seed in batch.seeds]


def test_each_cell_is_made_once_before_its_runs(made):
    players = {kind: [{"name": "counted"}] for kind in ("agent", "attack", "world")}
    grid = declare({"runs": 30, "horizon": [20, 30], "budget": 4, **players})
    assert made == {"agent": 2, "world": 2, "attack": 2}  # one for each cell
    run_cells(list(grid.cells.values()), grid.seeds, Memory(), workers=Elsewhere())
    assert made == {"agent": 2, "world": 2, "attack": 2}  # and the runs were made elsewhere


def test_the_command_makes_a_cell_once_and_once_more_to_compile(made, tmp_path):
    players = [f"--{kind}=counted" for kind in made]
    call = ["simulate", *players, "--runs=3", "--jobs=1", "--horizon=20", "--budget=4", f"--out={tmp_path}"]
    done = CliRunner().invoke(app_for(), call)
    assert done.exit_code == 0, done.output
    assert made == {"agent": 2 + 3, "world": 2 + 3, "attack": 2 + 3}


def test_runs_in_this_process_add_one_each(made):
    cell = Cell("counted", "counted", 4, 20, world="counted")
    run_cells([cell], range(5), Memory())
    assert made == {"agent": 1 + 5, "world": 1 + 5, "attack": 1 + 5}
