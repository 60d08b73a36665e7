import errno
import math
import os

import numpy as np
import polars as pl
import pytest
from joblib.externals.loky import get_reusable_executor
from polars.testing import assert_frame_equal
from threadpoolctl import threadpool_limits

from fairduel import BadInputError
from fairduel.report.figures import draw_points, image
from fairduel.report.points import points_of
from fairduel.simulation import Cell, Store, run_cells
from fairduel.simulation.many import Batch, run_elsewhere
from fairduel.simulation.query import query
from fairduel.simulation.sweep import Grid, declare, read_grid

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
    """Every cell's file by name, without what a clock says."""
    return {path.name: pl.read_parquet(path).drop("seconds") for path in (folder / "cells").glob("*.parquet")}


def assert_same_results(one, other):
    ours, theirs = kept(one), kept(other)
    assert ours.keys() == theirs.keys()
    for name, frame in ours.items():
        assert_frame_equal(frame, theirs[name], check_exact=True)


def sweep(grid, folder, **options):
    store = Store(folder)
    grid.save(folder, "fairduel sweep grid.toml")
    return run_cells(list(grid.cells.values()), grid.seeds, store, **options)


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("swept")
    sweep(read_grid(written(folder, SMALL)), folder)
    return folder


# ---------------------------------------------------------------------- the grid


def test_every_combination_is_a_cell(tmp_path):
    grid = read_grid(written(tmp_path, SMALL))
    assert grid.seeds == range(10, 13)
    assert len(grid.cells) == 2 * 2 * 3 * 3
    expected = Cell(
        agent="maxpairucb",
        attack="misleading",
        budget=4,
        horizon=20,
        agent_settings={"radius": 2.0},
        attack_settings={"target": "worst"},
    )
    assert grid.cells[expected.key] == expected
    assert grid.settings["agent_radius"].count(4.0) == 12
    assert set(grid.settings) == {"agent_radius", "attack_target"}


def test_names_can_be_listed_and_one_cell_twice_is_one_cell():
    common = {"runs": 1, "horizon": 9, "budget": 1, "attack": [{"name": "none"}]}
    one = declare(common | {"agent": [{"name": ["rcdb", "maxinp"], "warmup": [0, 3]}]})
    assert [(c.agent, c.agent_settings["warmup"]) for c in one.cells.values()] == [
        ("rcdb", 0),
        ("rcdb", 3),
        ("maxinp", 0),
        ("maxinp", 3),
    ]
    assert len(declare(common | {"agent": [{"name": "rcdb"}, {"name": "rcdb"}]}).cells) == 1


def test_a_budget_can_follow_the_horizon_and_worlds_have_settings():
    grid = declare(
        {
            "runs": 1,
            "horizon": [2000, 16],
            "budget": ["sqrt", 7],
            "agent": [{"name": "rcdb"}],
            "attack": [{"name": "greedy"}],
            "world": [{"name": "hypercube", "dimension": [2, 3]}, {"name": "fresh", "count": 5}],
        }
    )
    cells = list(grid.cells.values())
    assert {(cell.horizon, cell.budget) for cell in cells} == {(2000, 45), (2000, 7), (16, 4), (16, 7)}
    assert len(cells) == 4 * 3
    assert set(grid.settings) == {"world_dimension", "world_count"}


GOOD = {"runs": "2", "horizon": "9", "budget": "1", "agent": 'name = "rcdb"', "attack": 'name = "greedy"'}


def grid_text(**changes):
    parts = GOOD | changes
    tables = {name: parts.pop(name) for name in ("agent", "attack", "world") if name in parts}
    lines = [f"{name} = {value}" for name, value in parts.items() if value is not None]
    return "\n".join(lines + [f"[[{name}]]\n{value}" for name, value in tables.items() if value is not None])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (grid_text(run="3"), ["key", "'run'", "did you mean 'runs'"]),
        (grid_text(horizons="3"), ["did you mean 'horizon'"]),
        (grid_text(runs=None), ["needs runs"]),
        (grid_text(horizon=None), ["needs horizon"]),
        (grid_text(budget=None), ["needs budget"]),
        (grid_text(agent=None), ["needs agent"]),
        (grid_text(attack=None), ["needs attack"]),
        (grid_text(runs="0"), ["runs", "≥ 1", "0"]),
        (grid_text(runs="true"), ["runs", "True"]),
        (grid_text(runs="[1, 2]"), ["runs", "whole number"]),
        (grid_text(seed="-1"), ["seed", "≥ 0"]),
        (grid_text(horizon="[]"), ["horizon", "list"]),
        (grid_text(horizon="[10, 0]"), ["horizon", "≥ 1"]),
        (grid_text(horizon="10.5"), ["horizon", "10.5"]),
        (grid_text(budget='"log"'), ["budget", "sqrt", "log"]),
        (grid_text(budget="-1"), ["budget", "-1"]),
        (grid_text(budget="2020-01-01"), ["budget"]),
        (grid_text(agent="radius = 1.0"), ["[[agent]]", "name"]),
        (grid_text(agent="name = 3"), ["name", "3"]),
        (grid_text(agent="name = []"), ["name", "list"]),
        (grid_text(agent='name = "rcbd"'), ["'rcbd'", "did you mean 'rcdb'"]),
        (grid_text(agent='name = "rcdb"\nraduis = 1.0'), ["raduis", "did you mean 'radius'"]),
        (grid_text(agent='name = "rcdb"\nradius = []'), ["radius", "list"]),
        (grid_text(agent='name = "rcdb"\nradius = [[1.0]]'), ["radius", "list"]),
        (grid_text(agent='name = "rcdb"\nradius = {a = 1}'), ["radius"]),
        (grid_text(agent='name = "rcdb"\n"my radius" = 1.0'), ["my radius"]),
        (grid_text(agent='name = "rcdb"\ndesign = "round"'), ["rcdb", "greedy", "design"]),
        (grid_text(agent='name = "nowhere:Agent"'), ["nowhere"]),
        (grid_text(agent='name = "rcdb-s"', world='name = "hard-corrupted"'), ["rcdb-s", "hard-corrupted"]),
        (grid_text(attack='name = "gredy"'), ["did you mean 'greedy'"]),
        (grid_text(attack='name = "greedy"\ntarget = "worst"'), ["target"]),
        (grid_text(attack='name = "misleading"\ntarget = 99'), ["99"]),
        (grid_text(world='name = "cube"'), ["did you mean 'hypercube'"]),
        (grid_text(world='name = "hypercube"\ndimension = "five"'), ["dimension", "five"]),
        (grid_text(world='name = "hypercube"\nrng = 3'), ["hypercube", "cannot run"]),
        (grid_text(agent='name = ["rcdb", "barbar"]'), ["barbar", "cannot run", "rewards"]),
        (grid_text(agent='name = "wiwr"', world='name = "fresh"'), ["wiwr", "cannot run", "actions change"]),
        (grid_text(agent=None) + '\n[agent]\nname = "rcdb"', ["[[agent]]"]),
        (grid_text(agent=None).replace("[[", 'agent = ["rcdb"]\n[[', 1), ["[[agent]]"]),
        ("runs = ", ["TOML", "Invalid value"]),
        ("runs = 1\nruns = 2", ["TOML"]),
        ("", ["needs"]),
    ],
)
def test_what_is_wrong_in_a_grid_is_said_in_one_sentence(tmp_path, text, words):
    path = written(tmp_path, text)
    with pytest.raises(BadInputError) as caught:
        read_grid(path)
    sentence = str(caught.value)
    assert "\n" not in sentence
    for word in [str(path), *words]:
        assert word in sentence


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(BadInputError, match=r"nothing\.toml: No such file"):
        read_grid(tmp_path / "nothing.toml")
    with pytest.raises(BadInputError, match="Is a directory"):
        read_grid(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b"runs = 1 # caf\xe9")
    with pytest.raises(BadInputError, match="no TOML"):
        read_grid(tmp_path / "latin.toml")


def test_the_record_of_a_sweep_brings_back_its_grid(swept):
    grid = read_grid(swept / "grid.toml")
    assert Grid.load(swept) == grid


def test_a_folder_without_a_sweep_is_refused(tmp_path):
    with pytest.raises(BadInputError, match="holds no sweep"):
        query(tmp_path, "FROM runs")
    for text in ("", "[]", "{}", '{"seeds": {"first": 0, "runs": 1}, "cells": {"a": {"agnet": 1}}}'):
        (tmp_path / "sweep.json").write_text(text)
        with pytest.raises(BadInputError, match="no record of a sweep"):
            query(tmp_path, "FROM runs")


# ---------------------------------------------------------------------- running it


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
    with pytest.raises(BadInputError, match=r"4 runs killed every worker .* under greedy"):
        sweep(grid, tmp_path / "killed", jobs=2)
    [frame] = kept(tmp_path / "killed").values()
    assert len(frame) == 4


def test_a_worker_refuses_other_code_than_it_was_asked_to_run(mortal, tmp_path):
    with threadpool_limits():  # what a worker sets for good
        [(key, cell)] = mortal_grid(mortal, "never").cells.items()
        assert [run.seed for run in run_elsewhere(Batch(key, cell, [3]))] == [3]
        with pytest.raises(BadInputError, match="is not that of here"):
            run_elsewhere(Batch("another key", cell, [0]))
        path = tmp_path / f"{mortal}.py"
        path.write_text(MORTAL.replace("return self.seed", "return 1 + self.seed"))
        [(edited, cell)] = mortal_grid(mortal, "never").cells.items()
        assert edited != key
        with pytest.raises(BadInputError, match="start its workers again"):  # it still has the old code loaded
            run_elsewhere(Batch(edited, cell, [0]))


# ---------------------------------------------------------------------- asking it


def rows(folder, sql):
    return list(query(folder, sql).rows)


def test_runs_are_what_was_kept(swept):
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
    with pytest.raises(BadInputError, match="finished yet"):
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


# ---------------------------------------------------------------------- drawing it


def test_points_are_means_with_standard_errors(swept):
    points, mixed = points_of(
        swept,
        x="budget",
        y="regret",
        by=["agent", "agent_radius"],
        panel=["attack", "attack_target"],
        where="horizon=30",
    )
    assert mixed == []
    assert {point.line for point in points} == {"RCDB", "MaxPairUCB, radius 2", "MaxPairUCB, radius 4"}
    assert {point.panel for point in points} == {"greedy", "misleading, target random", "misleading, target worst"}
    [point] = [p for p in points if (p.panel, p.line, p.x) == ("greedy", "RCDB", 4.0)]
    frame = pl.concat(kept(swept).values()).filter(agent="rcdb", attack="greedy", horizon=30, budget=4)
    regret = frame["regret"].to_numpy()
    assert point.runs == 3
    assert point.mean == pytest.approx(regret.mean(), rel=1e-12)
    assert point.error == pytest.approx(regret.std(ddof=1) / np.sqrt(3), rel=1e-12)
    assert point.agent == "rcdb"


def test_what_a_mean_mixes_is_told(swept):
    _, mixed = points_of(swept, x="budget", y="regret", by=["agent"], panel=["attack"])
    assert mixed == ["horizon", "agent_radius", "attack_target"]


def test_one_run_has_no_error_and_words_stand_on_the_axis(swept):
    points, _ = points_of(
        swept, x="attack", y="locked_in", by=["horizon"], panel=[], where="seed = 10 AND agent = 'rcdb' AND budget = 2"
    )
    assert {point.x for point in points} == {"greedy", "misleading"}
    assert {point.line for point in points} == {"horizon 20", "horizon 30"}
    assert all(math.isnan(point.error) for point in points if point.x == "greedy")
    figure = draw_points(points, x_label="attack", y_label="locked in")
    assert image(figure, "png").startswith(b"\x89PNG")
    assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == ["greedy", "misleading"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"x": "bugdet"}, "did you mean 'budget'"),
        ({"by": ["agnet"]}, "did you mean 'agent'"),
        ({"y": "agent"}, "no number"),
        ({"where": "horizon = 1"}, "nothing to draw"),
        ({"where": "horizn = 1"}, "horizn"),
        ({"where": "true) --"}, "syntax"),
    ],
)
def test_a_figure_that_cannot_be_drawn_is_refused(swept, changes, words):
    wanted = {"x": "budget", "y": "regret", "by": ["agent"], "panel": ["attack"]} | changes
    with pytest.raises(BadInputError, match=words):
        points_of(swept, **wanted)
