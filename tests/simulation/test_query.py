"""SQL over what a sweep kept."""

import shutil

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from fairduel import BadInputError
from fairduel.simulation import Store
from fairduel.simulation.cell import Run
from fairduel.simulation.query import query
from fairduel.simulation.sweep import Grid, declare, read_grid
from helpers.sweeps import SMALL, kept, sweep, written


def rows(folder, sql):
    return list(query(folder, sql).rows)


def test_runs_are_those_stored(swept):
    assert rows(swept, "SELECT count(*), min(seed), max(seed), count(DISTINCT cell) FROM runs") == [(108, 10, 12, 36)]
    all_runs = pl.concat(kept(swept).values())
    [(regret,)] = rows(swept, "SELECT avg(regret) FROM runs WHERE agent = 'rcdb' AND budget = 4")
    expected = all_runs.filter((pl.col("agent") == "rcdb") & (pl.col("budget") == 4))["regret"].mean()
    assert regret == pytest.approx(expected, rel=1e-12)
    assert not any(name.startswith("trace_") for name in query(swept, "FROM runs").columns)


def test_settings_are_columns_with_types(swept):
    found = rows(swept, "SELECT DISTINCT agent, agent_radius, attack_target FROM runs ORDER BY ALL")
    assert ("maxpairucb", 2.0, "random") in found
    assert ("rcdb", None, None) in found  # its radius is "practical", and greedy has no target
    assert rows(swept, "SELECT DISTINCT agent_settings->>'radius' FROM runs WHERE agent = 'rcdb'") == [("practical",)]
    types = dict(row[:2] for row in rows(swept, "DESCRIBE runs"))
    assert (types["agent_radius"], types["attack_target"], types["agent_settings"]) == ("DOUBLE", "VARCHAR", "JSON")


def test_traces_are_those_of_the_store(swept):
    [cell, *_] = Grid.load(swept).cells.values()
    expected = Store(swept).traces(cell, range(10, 13)).sort("seed", "round")
    answer = query(swept, f"SELECT * FROM traces WHERE cell = '{cell.key}' ORDER BY seed, round")
    found = pl.DataFrame(list(answer.rows), schema=answer.columns, orient="row")
    assert_frame_equal(found.select(expected.columns), expected, check_dtypes=False, rel_tol=1e-12)
    assert found["agent"].unique().to_list() == ["rcdb"]


def test_only_the_last_grid_is_asked(swept, tmp_path):
    sweep(read_grid(swept / "grid.toml"), tmp_path)
    narrow = SMALL.replace("[2, 4]", "2").replace("runs = 3", "runs = 2")
    sweep(read_grid(written(tmp_path, narrow)), tmp_path)
    assert len(kept(tmp_path)) == 36
    assert rows(tmp_path, "SELECT count(*), max(budget), max(seed) FROM runs") == [(18 * 2, 2, 11)]


def test_a_sweep_without_a_finished_cell_says_so(tmp_path):
    Store(tmp_path)
    read_grid(written(tmp_path, SMALL)).save(tmp_path, "")
    with pytest.raises(BadInputError, match="no finished runs yet"):
        query(tmp_path, "FROM runs")


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT nothing FROM runs", ["nothing"]),
        ("SELEC 1", ["syntax"]),
        ("", ["one SELECT"]),
        ("SELECT 1; SELECT 2", ["one SELECT"]),
        ("CREATE TABLE t AS SELECT 1", ["one SELECT"]),
        ("COPY runs TO '{cells}/x.parquet'", ["one SELECT"]),
        ("COPY runs TO 'x.parquet'", ["one SELECT"]),
        ("ATTACH '{cells}/x.db'", ["one SELECT"]),
        ("SET enable_external_access = true", ["one SELECT"]),
        ("SELECT * FROM read_text('/etc/passwd')", ["/etc/passwd"]),
        ("SELECT * FROM read_csv('{cells}/../grid.toml')", ["disabled"]),
        ("SELECT * FROM glob('/*')", ["disabled"]),
        ("SELECT * FROM swept", ["swept"]),  # no peeping at Python's variables
        ("SELECT CAST(agent AS INTEGER) FROM runs", ["Could not convert"]),
    ],
)
def test_a_query_that_cannot_be_answered_is_one_sentence_and_changes_nothing(swept, sql, words):
    before = {path: path.stat().st_mtime_ns for path in swept.rglob("*")}
    with pytest.raises(BadInputError) as caught:
        rows(swept, sql.replace("{cells}", str(swept / "cells")))
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)
    assert {path: path.stat().st_mtime_ns for path in swept.rglob("*")} == before


def test_a_folder_with_quotes_in_its_name_is_asked_too(tmp_path):
    folder = tmp_path / 'it\'s "mine"'
    folder.mkdir()
    sweep(
        declare({"runs": 1, "horizon": 5, "budget": 0, "agent": [{"name": "rcdb"}], "attack": [{"name": "none"}]}),
        folder,
    )
    assert rows(folder, "SELECT agent, agent_settings->>'trust' FROM runs") == [("rcdb", "Infinity")]


def test_a_store_with_other_columns_is_refused_in_one_sentence(tmp_path, monkeypatch):
    record = Run.record
    monkeypatch.setattr(Run, "record", lambda run: {k: v for k, v in record(run).items() if k != "agent_given"})
    agent = {"name": "maxinp", "radius": 2.0}
    sweep(declare({"runs": 2, "horizon": 5, "budget": 2, "agent": [agent], "attack": [{"name": "greedy"}]}), tmp_path)
    with pytest.raises(BadInputError, match=r"^the runs in .* have the columns of another version of fairduel; rerun"):
        query(tmp_path, "FROM runs")


def test_a_damaged_cell_is_named_and_not_read(swept, tmp_path):
    shutil.copytree(swept, tmp_path / "swept")
    [cell, *_] = Grid.load(swept).cells.values()
    [path] = Store(tmp_path / "swept").parts(cell)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)
    with pytest.raises(BadInputError, match=f"rcdb under greedy .* are damaged; rerun .*{path.name}"):
        query(tmp_path / "swept", "FROM runs")


def test_a_part_that_is_merged_meanwhile_is_one_sentence(swept, tmp_path, monkeypatch):
    shutil.copytree(swept, tmp_path / "swept")
    parts = Store.parts

    def then_merge(store, cell, key):
        found = parts(store, cell, key)
        for path in found:
            path.unlink()
        return found

    monkeypatch.setattr(Store, "parts", then_merge)
    with pytest.raises(BadInputError, match="If the sweep is still running, try again"):
        query(tmp_path / "swept", "FROM runs")


def test_runs_that_are_stored_in_two_parts_count_once(tmp_path):
    grid = read_grid(written(tmp_path, SMALL))
    store, cell = Store(tmp_path), next(iter(grid.cells.values()))
    grid.save(tmp_path, "")
    for seed in grid.seeds:
        store.add(cell, [cell.run(seed)])
    single = {path: path.read_bytes() for path in store.parts(cell)}
    store.add(cell, [cell.run(grid.seeds.start)], complete=True)
    for path, content in single.items():
        path.write_bytes(content)  # as a kill in the middle of the merge would leave it
    assert rows(tmp_path, "SELECT count(*), count(DISTINCT seed) FROM runs") == [(3, 3)]
