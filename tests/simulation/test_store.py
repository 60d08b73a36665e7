import gc
import hashlib
import os
import shutil
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from fairduel import BadInputError
from fairduel.errors import DamageWarning
from fairduel.simulation import Cell, Store, run_cells
from fairduel.simulation.cell import RECORD_LAYOUT

CELLS = [
    Cell(agent="rcdb", attack="greedy", budget=5, horizon=30),
    Cell(agent="colstim", attack="misleading", budget=5, horizon=30, world="fresh"),
    Cell(agent="rcdb", attack="random", budget=3, horizon=20, agent_settings={"constrained": True}),
]


def settled(frame):
    return frame.drop("seconds")


def test_records_and_traces_are_those_of_the_runs(store):
    run_cells(CELLS, range(3), store)
    for cell in CELLS:
        records, traces = store.records(cell, [2, 0]), store.traces(cell, [2, 0])
        assert records["seed"].to_list() == [0, 2]
        assert not any(name.startswith("trace_") for name in records.columns)
        assert traces.height == 2 * cell.horizon
        for seed in (0, 2):
            run = cell.run(seed)
            long = traces.filter(pl.col("seed") == seed)
            assert long["round"].to_list() == list(range(1, cell.horizon + 1))
            assert long["first"].to_list() == run.trace.first.tolist()
            assert long["flipped"].to_list() == run.trace.flipped.tolist()
            assert long["weight"].to_list() == run.trace.weight.tolist()
            np.testing.assert_allclose(long["regret"].to_numpy(), run.trace.regret.cumsum(), rtol=1e-12)
            np.testing.assert_allclose(long["weak_regret"].to_numpy(), run.trace.weak_regret.cumsum(), rtol=1e-12)
            assert records.filter(pl.col("seed") == seed)["regret"][0] == run.trace.regret.sum()


def test_any_number_of_workers_gives_the_same_records(tmp_path):
    alone, together = Store(tmp_path / "alone"), Store(tmp_path / "together")
    run_cells(CELLS, range(6), alone, jobs=1)
    run_cells(CELLS, range(6), together, jobs=2)
    for cell in CELLS:
        assert_frame_equal(settled(alone.records(cell, range(6))), settled(together.records(cell, range(6))))
        assert_frame_equal(alone.traces(cell, range(6)), together.traces(cell, range(6)))


def test_a_second_call_computes_nothing(store):
    assert run_cells(CELLS, range(2), store) == 6
    before = [path.read_bytes() for cell in CELLS for path in store.parts(cell)]
    calls = []
    assert run_cells(CELLS, range(2), store, progress=calls.append) == 0
    assert calls == []
    assert [path.read_bytes() for cell in CELLS for path in store.parts(cell)] == before


def test_a_changed_setting_is_computed_again(store):
    changed = Cell(agent="rcdb", attack="greedy", budget=5, horizon=30, agent_settings={"radius": 0.1})
    run_cells(CELLS[:1], range(2), store)
    assert run_cells([changed], range(2), store) == 2
    assert not store.records(changed, range(2))["regret"].equals(store.records(CELLS[0], range(2))["regret"])


def test_more_seeds_add_only_missing_runs(store):
    cell = CELLS[0]
    run_cells([cell], [0, 3], store)
    before = store.records(cell, [0, 3])
    finished = []
    assert run_cells([cell], range(5), store, progress=finished.append) == 3
    assert sum(finished) == 3
    assert store.seeds(cell) == set(range(5))
    assert_frame_equal(store.records(cell, [0, 3]), before)  # seconds included: they were not run again
    assert store.records(cell, range(5))["seed"].to_list() == list(range(5))


def test_a_cell_given_twice_runs_once(store):
    assert run_cells([CELLS[0], CELLS[0]], range(2), store) == 2


def test_progress_counts_every_run(store):
    finished = []
    assert run_cells(CELLS, range(7), store, progress=finished.append) == sum(finished) == 21


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_torn_file_is_refused_and_its_runs_are_repeated(store, share):
    cell = CELLS[0]
    run_cells([cell], range(2), store)
    expected = settled(store.records(cell, range(2)))
    [path] = store.parts(cell)
    whole = path.read_bytes()
    torn = whole[: int(share * len(whole))]
    path.write_bytes(torn)
    for act in (store.records, store.traces):
        with pytest.raises(BadInputError, match=r"rcdb under greedy \(C = 5, T = 30\) are damaged"):
            act(cell, range(2))
    assert Store(store.folder).seeds(cell) == set()
    assert path.read_bytes() == torn
    with pytest.warns(DamageWarning, match=f"{path.name} is damaged; repeating its runs of rcdb"):
        assert run_cells([cell], range(2), store) == 2
    assert_frame_equal(settled(store.records(cell, range(2))), expected)


def test_every_flipped_bit_is_noticed(store):
    cell = CELLS[0]
    run_cells([cell], range(2), store)
    [path] = store.parts(cell)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for place in rng.choice(8 * len(whole), 600, replace=False):
        flipped = bytearray(whole)
        flipped[place // 8] ^= 1 << (place % 8)
        path.write_bytes(flipped)
        with pytest.raises(BadInputError, match="damaged"):
            store.records(cell, range(2))
        assert Store(store.folder).seeds(cell) == set()
    path.write_bytes(whole)
    assert store.records(cell, range(2)).height == 2


def test_a_damaged_part_costs_its_runs_only(store):
    cell = CELLS[0]
    for seed in range(4):
        store.add(cell, [cell.run(seed)])
    before = store.records(cell, range(4))
    path = store.parts(cell)[1]
    [lost] = pl.read_parquet(path)["seed"]
    path.write_bytes(path.read_bytes()[::-1])
    with pytest.warns(DamageWarning):
        assert run_cells([cell], range(4), store) == 1
    others = pl.col("seed") != lost
    assert_frame_equal(store.records(cell, range(4)).filter(others), before.filter(others))
    assert_frame_equal(settled(store.records(cell, range(4))), settled(before))


def test_damage_that_a_merge_meets_is_named(store):
    cell = CELLS[0]
    store.add(cell, [cell.run(0)])
    [path] = store.parts(cell)
    path.write_bytes(path.read_bytes()[::-1])
    with pytest.raises(BadInputError, match="are damaged"):
        store.add(cell, [cell.run(1)], complete=True)
    assert Store(store.folder).seeds(cell) == {1}


def test_the_columns_of_a_stored_run_belong_to_the_number_of_its_layout(store):
    """If this fails, raise RECORD_LAYOUT: the key of stored runs must change with their columns."""
    run_cells(CELLS[:1], range(1), store)
    [part] = store.parts(CELLS[0])
    columns = [f"{name} {kind}" for name, kind in pl.read_parquet_schema(part).items()]
    digest = hashlib.sha256("\n".join(columns).encode()).hexdigest()[:8]
    assert (RECORD_LAYOUT, digest) == (5, "a8f0abc0")


def test_a_store_without_traces_keeps_the_same_records_apart(tmp_path):
    full, light = Store(tmp_path), Store(tmp_path, traces=False)
    for store in (full, light):
        assert run_cells(CELLS[:1], range(2), store) == 2
    [part] = light.parts(CELLS[0])
    assert not [name for name in pl.read_parquet_schema(part) if name.startswith("trace_")]
    assert settled(light.records(CELLS[0], range(2))).equals(settled(full.records(CELLS[0], range(2))))
    assert len(full.traces(CELLS[0], range(2))) == 2 * 30


def test_a_cell_that_never_ran_has_no_seeds(store):
    assert store.seeds(CELLS[0]) == set()


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInputError, match="cannot write to"):
        Store(tmp_path / "file" / "results")


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupt_keeps_finished_runs(store, jobs):
    finished = []

    def interrupt(count):
        finished.append(count)
        if sum(finished) >= 5:
            raise KeyboardInterrupt

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # joblib remarks that its workers were not waited for
        with pytest.raises(KeyboardInterrupt):
            run_cells(CELLS[:2], range(8), store, jobs=jobs, progress=interrupt)
        gc.collect()
    kept = sum(len(store.seeds(cell)) for cell in CELLS[:2])
    assert 5 <= sum(finished) == kept < 16
    assert run_cells(CELLS[:2], range(8), store) == 16 - kept
    for cell in CELLS[:2]:
        assert store.records(cell, range(8))["regret"].to_list() == [cell.run(s).trace.regret.sum() for s in range(8)]


class Watchful:
    """A worker that goes on only when its last run is on disk."""

    count = 1

    def __init__(self, folder):
        self.folder = folder

    def run(self, batches):
        for batch in batches:
            yield batch.key, batch.run()
            deadline = time.monotonic() + 60
            while not set(batch.seeds) <= Store(self.folder).seeds(batch.cell):
                assert time.monotonic() < deadline
                time.sleep(0.01)


def test_a_finished_run_is_stored_while_the_next_one_takes_long(store):
    assert run_cells(CELLS[2:], range(3), store, workers=Watchful(store.folder)) == 3
    assert len(store.parts(CELLS[2])) == 1


def test_a_batch_that_takes_long_is_divided(store, monkeypatch):
    monkeypatch.setattr("fairduel.simulation.parallel._BATCH_SECONDS", 0.0)
    finished = []
    assert run_cells(CELLS[:2], range(20), store, progress=finished.append) == 40
    assert finished == [1] * 40
    assert [store.seeds(cell) for cell in CELLS[:2]] == [set(range(20))] * 2


def test_an_error_in_one_cell_keeps_finished_runs(store):
    broken = Cell(agent="rcdb", attack="misleading", budget=5, horizon=30, attack_settings={"target": 99})
    with pytest.raises(BadInputError, match="99"):
        run_cells([CELLS[0], broken], range(3), store)
    assert store.seeds(broken) == set()


def test_a_large_cell_is_kept_in_parts_that_read_as_one(store, monkeypatch, tmp_path):
    cell = CELLS[0]
    whole = Store(tmp_path / "whole")
    run_cells([cell], range(24), whole)
    assert len(whole.parts(cell)) == 1
    for module in ("storage", "parallel"):
        monkeypatch.setattr(f"fairduel.simulation.{module}.MAX_ROUNDS_PER_PART", 7 * cell.horizon)
    run_cells([cell], range(10), store)
    run_cells([cell], range(24), store, jobs=2)
    parts = store.parts(cell)
    assert len(parts) >= 3
    assert all(1 <= len(pl.read_parquet(part)) <= 10 for part in parts)
    assert store.seeds(cell) == set(range(24))
    ours, theirs = (each.records(cell, range(24)).drop("seconds") for each in (store, whole))
    assert_frame_equal(ours, theirs)
    assert_frame_equal(store.traces(cell, range(24)), whole.traces(cell, range(24)))


def sizes(store, cell):
    return sorted((len(pl.read_parquet(part)) for part in store.parts(cell)), reverse=True)


def test_parts_of_a_complete_cell_are_merged_as_far_as_they_fit(store, monkeypatch):
    cell = CELLS[0]
    monkeypatch.setattr("fairduel.simulation.storage.MAX_ROUNDS_PER_PART", 5 * cell.horizon)
    for seed in range(11):
        store.add(cell, [cell.run(seed)])
    assert sizes(store, cell) == [1] * 11
    store.add(cell, [cell.run(11)], complete=True)
    assert sizes(store, cell) == [5, 5, 2]
    store.add(cell, [cell.run(12)], complete=True)
    assert sizes(store, cell) == [5, 5, 2, 1]  # a large one stays as it is
    assert store.records(cell, range(13))["seed"].to_list() == list(range(13))


def test_a_cell_never_has_many_small_parts(store):
    cell = CELLS[0]
    for seed in range(40):
        store.add(cell, [cell.run(seed)])
        assert len(store.parts(cell)) < 16
    assert store.seeds(cell) == set(range(40))


def test_a_kill_in_the_middle_of_a_merge_changes_nothing(store, tmp_path):
    cell = CELLS[0]
    for seed in range(3):
        store.add(cell, [cell.run(seed)])
    shutil.copytree(tmp_path / "results", tmp_path / "before")
    store.add(cell, [cell.run(3)], complete=True)
    expected, [merged] = store.records(cell, range(4)), store.parts(cell)
    cells = tmp_path / "results" / "cells"
    shutil.copytree(tmp_path / "before" / "cells", cells, dirs_exist_ok=True)  # as if none had been removed yet
    (cells / f".{merged.name}.123").write_bytes(b"half of a fi")
    assert len(list(cells.iterdir())) == 5
    again = Store(tmp_path / "results")
    assert again.parts(cell) == [merged]
    assert_frame_equal(again.records(cell, range(4)), expected)
    assert run_cells([cell], range(4), again) == 0
    assert list(cells.iterdir()) == [merged]


def test_a_lost_part_costs_its_runs_only(store, monkeypatch):
    cell = CELLS[0]
    for module in ("storage", "parallel"):
        monkeypatch.setattr(f"fairduel.simulation.{module}.MAX_ROUNDS_PER_PART", 2 * cell.horizon)
    run_cells([cell], range(6), store)
    first, second, *_ = store.parts(cell)
    first.unlink()
    lost = set(range(6)) - store.seeds(cell)
    assert len(lost) == 2
    assert run_cells([cell], range(6), store) == 2
    second.unlink()
    run_cells([cell], range(6), store)
    rows = pl.concat([pl.read_parquet(part, columns=["seed"]) for part in store.parts(cell)])
    assert sorted(rows["seed"]) == list(range(6))


def test_stored_runs_are_not_stored_twice(store, monkeypatch):
    cell = CELLS[0]
    monkeypatch.setattr("fairduel.simulation.storage.MAX_ROUNDS_PER_PART", 3 * cell.horizon)
    runs = [cell.run(seed) for seed in range(3)]
    store.add(cell, runs)
    store.add(cell, runs)
    store.add(cell, [*runs, cell.run(3)])
    rows = pl.concat([pl.read_parquet(part, columns=["seed"]) for part in store.parts(cell)])
    assert sorted(rows["seed"]) == list(range(4))


def _add_alone(folder, seeds):
    cell, store = CELLS[0], Store(folder)
    for seed in seeds:
        store.add(cell, [cell.run(seed)])


def test_two_processes_may_store_into_one_cell(tmp_path):
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        list(pool.map(_add_alone, [tmp_path] * 2, [range(0, 40, 2), range(1, 40, 2)]))
    assert Store(tmp_path).seeds(CELLS[0]) == set(range(40))


def test_a_folder_is_listed_again_only_if_it_may_have_changed(store, monkeypatch):
    cell, other, listed = CELLS[0], Store(store.folder), []
    run_cells([cell], range(2), store)
    folder = store.parts(cell)[0].parent
    list_folder = Path.iterdir
    monkeypatch.setattr(Path, "iterdir", lambda path: listed.append(path) or list_folder(path))
    os.utime(folder, (0, 0))  # it changed long ago
    for _ in range(3):
        assert (store.seeds(cell), store.seeds(CELLS[1])) == ({0, 1}, set())
    assert listed == [folder]
    other.add(cell, [cell.run(2)])
    just_now = folder.stat().st_mtime_ns
    assert store.seeds(cell) == {0, 1, 2}
    other.add(cell, [cell.run(3)])
    os.utime(folder, ns=(just_now, just_now))  # as on a clock with coarse steps
    assert store.seeds(cell) == {0, 1, 2, 3}
