"""``fairduel sweep`` and ``fairduel results`` as a user meets them, with a real Dask cluster on this machine."""

import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest
from distributed import Client

from fairduel import BadInputError
from fairduel.simulation import Cell, Store, parallel, run_cells
from helpers.sweeps import assert_same_results

FAIRDUEL = [sys.executable, "-c", "from fairduel.cli import main; main()"]
DASK = [sys.executable, "-m", "dask"]
SLOW = """
import time


class Agent:
    def __init__(self, seed):
        self.seed = seed

    def ask(self, actions):
        time.sleep(0.003)
        return self.seed % len(actions), 1

    def tell(self, pair, outcome):
        pass
"""
GRID = """
runs = 8
horizon = [30, 40]
budget = 3
[[agent]]
name = ["rcdb", "slow:Agent"]
[[attack]]
name = ["greedy", "misleading"]
"""
CELLS = 8
PATIENCE = 240  # seconds; the first time, all mathematics is compiled


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where all commands run: an agent that takes its time, a grid, and its results from one job."""
    folder = tmp_path_factory.mktemp("sweep")
    (folder / "slow.py").write_text(SLOW)
    (folder / "grid.toml").write_text(GRID)
    done = fairduel("sweep", "grid.toml", "--out", "serial", "--jobs", "1", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "fairduel results query serial" in done.stdout
    assert len(cells(folder / "serial")) == CELLS
    return folder


def start(*command, cwd):
    environment = os.environ | {"COLUMNS": "160", "NO_COLOR": "1"}
    return subprocess.Popen(
        command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )


def finish(process):
    output, errors = process.communicate(timeout=PATIENCE)
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def fairduel(*arguments, cwd):
    return finish(start(*FAIRDUEL, *arguments, cwd=cwd))


def cells(out):
    """The files of each cell by its key."""
    found = {}
    for path in (out / "cells").glob("*.parquet"):
        found.setdefault(path.stem.partition("-")[0], []).append(path)
    return found


def wait_for(condition, process):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def assert_same_as_serial(out):
    assert_same_results(out, out.parent / "serial")


def assert_one_sentence(done, *words):
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr


# ---------------------------------------------------------------------- on this machine


def test_what_is_wrong_with_a_sweep_is_said_before_anything_is_written(here, tmp_path):
    good = GRID.replace("slow:Agent", "rcdb-s")
    path = tmp_path / "grid.toml"
    path.write_text(good.replace("runs", "rnus"))
    assert_one_sentence(here("sweep", "grid.toml", cwd=tmp_path), "grid.toml", "rnus", "did you mean 'runs'")
    path.write_text(f"seed = 999_999\n{good}")
    assert_one_sentence(here("sweep", "grid.toml", cwd=tmp_path), "tuning")
    path.write_text(good)
    assert_one_sentence(here("sweep", "grid.toml", "--out", "/proc/nowhere", cwd=tmp_path), "/proc/nowhere")
    assert_one_sentence(here("sweep", "grid.toml", "--dask", "nowhere", cwd=tmp_path), "nowhere", "tcp://")
    assert list(tmp_path.iterdir()) == [path]


def test_a_sweep_is_run_again_where_a_helper_of_its_agent_was_edited(folder, here):
    (folder / "helped.py").write_text(
        SLOW.replace("import time", "import time\nfrom helper import PLACE").replace("1\n", "PLACE\n")
    )
    helper = folder / "helper.py"
    helper.write_text("PLACE = 1\n")
    (folder / "helped.toml").write_text(GRID.replace("slow:Agent", "helped:Agent").replace("runs = 8", "runs = 2"))

    def runs():
        done = fairduel("sweep", "helped.toml", "--out", "helped", "--jobs", "1", cwd=folder)
        assert done.returncode == 0, done.stderr
        return re.search(r"\((\d+) new\)", done.stdout).group(1)

    assert runs() == "16"
    helper.write_text("# Another word.\nPLACE = 1\n")
    assert runs() == "0"
    helper.write_text("PLACE = 2\n")
    assert runs() == "8"
    sql = "SELECT DISTINCT second FROM traces WHERE agent = 'helped:Agent'"
    answer = here("results", "query", "helped", sql, "--csv", cwd=folder)
    assert answer.stdout == "second\n2\n"


@pytest.mark.filterwarnings("always::fairduel.errors.DamageWarning")
def test_a_damaged_cell_is_named_and_run_again(folder, here):
    shutil.copytree(folder / "serial", folder / "damaged")
    path = next(iter(cells(folder / "damaged").values()))[0]
    path.write_bytes(path.read_bytes()[::-1])
    asked = here("results", "query", "damaged", "FROM runs", cwd=folder)
    assert_one_sentence(asked, "are damaged; rerun", path.name)
    done = here("sweep", "grid.toml", "--out", "damaged", "--jobs", "1", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "(8 new)" in done.stdout
    said = " ".join((done.stdout + done.stderr).split())
    assert f"fairduel: damaged/cells/{path.name} is damaged; repeating its runs of" in said
    assert_same_as_serial(folder / "damaged")


def test_help_explains_itself(here, tmp_path):
    shown = here("sweep", "--help", cwd=tmp_path).stdout
    assert "[[agent]]" in shown
    assert "--dask" in shown
    assert "agent_radius" in here("results", "query", "--help", cwd=tmp_path).stdout
    assert "--panel" in here("results", "plot", "--help", cwd=tmp_path).stdout


# ---------------------------------------------------------------------- on a cluster


class Scheduler:
    """A Dask scheduler and its workers, each a process of its own, on this machine's loopback."""

    def __init__(self, folder, workers):
        self.folder = folder
        file = folder / f"scheduler-{time.monotonic_ns()}.json"
        local = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
        self.process = self._start("scheduler", *local, "--scheduler-file", str(file))
        wait_for(file.exists, self.process)
        self.address = json.loads(file.read_text())["address"]
        self.workers = [
            self._start(
                "worker", self.address, "--host", "127.0.0.1", "--nthreads", "1", "--no-nanny", "--no-dashboard"
            )
            for _ in range(workers)
        ]
        if workers:  # a command waits for the first of them no longer than some seconds
            with Client(self.address, timeout=PATIENCE, set_as_default=False) as client:
                client.wait_for_workers(workers, timeout=PATIENCE)

    def _start(self, *arguments):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen([*DASK, *arguments], cwd=self.folder, **quiet)

    def stop(self):
        for process in [*self.workers, self.process]:
            process.kill()
            process.wait()


@pytest.fixture
def scheduler(folder, request):
    scheduler = Scheduler(folder, workers=request.param)
    yield scheduler
    scheduler.stop()


@pytest.mark.parametrize("scheduler", [2], indirect=True)
def test_a_cluster_gives_the_same_bits_though_a_worker_is_killed_and_the_sweep_is_interrupted(folder, scheduler):
    out = folder / "cluster"
    command = ["sweep", "grid.toml", "--out", "cluster", "--dask", scheduler.address]
    running = start(*FAIRDUEL, *command, cwd=folder)
    wait_for(lambda: len(cells(out)) > CELLS // 2, running)
    running.send_signal(signal.SIGINT)
    stopped = finish(running)
    assert stopped.returncode == 130, stopped.stderr
    assert stopped.stderr.endswith("stopped: finished runs are saved; rerun to resume.\n")
    finished = cells(out)
    assert CELLS // 2 < len(finished) <= CELLS

    for paths in list(finished.values())[::2]:
        for path in paths:
            path.unlink()  # so that there is enough left to do
    left = cells(out)
    running = start(*FAIRDUEL, *command, cwd=folder)
    wait_for(lambda: len(cells(out)) > len(left), running)
    scheduler.workers[0].kill()
    assert running.poll() is None
    done = finish(running)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert_same_as_serial(out)


@pytest.mark.parametrize("scheduler", [1], indirect=True)
def test_a_lost_scheduler_is_one_sentence_and_another_machine_goes_on(folder, scheduler):
    out = folder / "lost"
    running = start(*FAIRDUEL, "sweep", "grid.toml", "--out", "lost", "--dask", scheduler.address, cwd=folder)
    wait_for(lambda: len(cells(out)) > CELLS // 2, running)
    scheduler.process.kill()
    assert_one_sentence(finish(running), scheduler.address, "lost the Dask scheduler", "rerun to resume")
    assert len(cells(out)) > CELLS // 2
    done = fairduel("sweep", "grid.toml", "--out", "lost", "--jobs", "2", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert_same_as_serial(out)


@pytest.mark.parametrize("scheduler", [1], indirect=True)
def test_a_deserted_cluster_is_left_after_a_while(scheduler, monkeypatch, tmp_path):
    monkeypatch.setattr(parallel, "_NO_WORKER_TIMEOUT", 1.0)
    cell = Cell("slow:Agent", "greedy", 3, 40)
    monkeypatch.chdir(scheduler.folder)
    store, done = Store(tmp_path), []

    def leave(runs):
        done.append(runs)
        scheduler.workers[0].kill()

    with (
        parallel.Cluster(scheduler.address) as workers,
        pytest.raises(BadInputError, match="has had no workers for 1 s; finished runs are saved"),
    ):
        run_cells([cell], range(200), store, workers=workers, progress=leave)
    assert 0 < len(store.seeds(cell)) == sum(done) < 200


@pytest.mark.parametrize("scheduler", [0], indirect=True)
def test_a_cluster_that_cannot_be_used_is_named(scheduler, monkeypatch):
    monkeypatch.setattr(parallel, "_CONNECT_TIMEOUT", 0.5)
    with pytest.raises(BadInputError, match=f"{scheduler.address} has no workers"), parallel.Cluster(scheduler.address):
        pass
    scheduler.stop()
    with pytest.raises(BadInputError, match=f"no Dask scheduler answers at {scheduler.address}"):
        parallel.Cluster(scheduler.address)
    for address in ("", "somewhere", "127.0.0.1:8786", "http://127.0.0.1:80", "tcp://127.0.0.1"):
        with pytest.raises(BadInputError, match="looks like tcp://"):
            parallel.Cluster(address)


def test_a_dead_address_is_one_sentence_and_writes_nothing(folder, here):
    done = here("sweep", "grid.toml", "--out", "dead", "--dask", "tcp://127.0.0.1:1", cwd=folder)
    assert_one_sentence(done, "no Dask scheduler answers at tcp://127.0.0.1:1")
    assert not (folder / "dead").exists()


# ---------------------------------------------------------------------- its results


def test_results_are_asked_in_sql(folder, here):
    sql = "SELECT agent, attack, count(*) AS runs, avg(regret) FROM runs GROUP BY ALL ORDER BY ALL"
    table = here("results", "query", "serial", sql, cwd=folder)
    assert table.returncode == 0, table.stderr
    assert "avg(regret)" in table.stdout
    assert "slow:Agent" in table.stdout
    as_json = json.loads(here("results", "query", "serial", sql, "--json", cwd=folder).stdout)["rows"]
    as_csv = here("results", "query", "serial", sql, "--csv", cwd=folder).stdout
    assert [row["runs"] for row in as_json] == [16, 16, 16, 16]
    for row, record in zip(csv.DictReader(io.StringIO(as_csv)), as_json, strict=True):
        assert row["agent"] == record["agent"]
        assert float(row["avg(regret)"]) == pytest.approx(record["avg(regret)"], rel=1e-12)  # threads add in any order


def test_a_query_that_cannot_be_answered_is_one_sentence(folder, here):
    assert_one_sentence(here("results", "query", "serial", "SELECT x FROM runs", cwd=folder), '"x"')
    assert_one_sentence(here("results", "query", "nowhere", "FROM runs", cwd=folder), "nowhere", "holds no sweep")


def test_results_are_drawn(folder, here):
    done = here("results", "plot", "serial", "--x", "horizon", "--to", "figure.png", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "means of 8 runs" in done.stdout
    assert done.stdout.endswith("Report: figure.png\n")
    assert (folder / "figure.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    done = here("results", "plot", "serial", "--x", "attack", "--panel", "world", "--to", "f.svg", cwd=folder)
    assert "mix different horizon" in done.stdout
    assert (folder / "f.svg").read_text(encoding="utf-8").lstrip().startswith("<?xml")
    here("results", "plot", "serial", "--x", "horizon", "--to", "f.pdf", cwd=folder)
    assert (folder / "f.pdf").read_bytes().startswith(b"%PDF")
    assert_one_sentence(here("results", "plot", "serial", "--x", "horizon", "--to", "f.gif", cwd=folder), "f.gif")


@pytest.mark.parametrize(
    ("missing", "arguments", "extra"),
    [
        ("duckdb", ["results", "query", "serial", "FROM runs"], "fairduel[results]"),
        ("distributed", ["sweep", "other.toml", "--dask", "tcp://127.0.0.1:1"], "fairduel[cluster]"),
    ],
)
def test_a_missing_extra_is_named_with_the_way_to_install_it(folder, here, monkeypatch, missing, arguments, extra):
    (folder / "other.toml").write_text(GRID.replace("slow:Agent", "rcdb-s"))
    monkeypatch.setitem(sys.modules, missing, None)
    assert_one_sentence(here(*arguments, cwd=folder), missing, extra)
