import json
import re
import signal
import subprocess
import sys
import time

import polars as pl
import pytest

from fairduel.experiments import competition, table1_growth

pytestmark = pytest.mark.usefixtures("blank_figures")

TABLE1 = """
from fairduel.experiments import table1_growth
table1_growth.HORIZONS, table1_growth.REFERENCE_HORIZON = (20, 40, 60), 40
table1_growth.BUDGETS, table1_growth.REFERENCE_BUDGET = (4, 8, 16), 8
table1_growth.ALGORITHMS = tuple(each for each in table1_growth.ALGORITHMS if each.agent in ("barbar", "rcdb"))
"""
BOARD = """
from fairduel.experiments import competition
competition.SCENARIOS = (
    competition.Scenario("cube", "tuning", "greedy", budget=6, dimension=3, horizon=40),
    competition.Scenario("new", "held-out", "none", budget=0, dimension=3, horizon=40, world="fresh"),
)
competition.CONTENDERS = tuple(map(competition.Contender, ("rcdb", "random-pairs", "versatile-db")))
competition.CANDIDATES = tuple(competition.Contender("rcdb", {"radius": radius}) for radius in (0.5, 4.0))
competition.RUNGS = (competition.Rung(2, 2), competition.Rung(3, 1))
"""
SLOW = """
import pathlib, time
class Agent:
    def __init__(self, seed): pathlib.Path(f'started-{seed}').touch()
    def ask(self, actions): time.sleep(0.02); return 0, 1
    def tell(self, duel, outcome): pass
"""
SLOW_TABLE1 = (
    TABLE1
    + """
import dataclasses
table1_growth.ALGORITHMS = (dataclasses.replace(table1_growth.ALGORITHMS[-1], agent="slow:Agent", published=None),)
"""
)
SLOW_BOARD = BOARD + 'competition.CONTENDERS = (competition.Contender("slow:Agent"),)\n'


def command(smaller, *arguments):
    """The command with smaller declarations than the real ones, which take minutes, for a process of its own."""
    return [sys.executable, "-c", smaller + "from fairduel.cli import main; main()", *arguments]


@pytest.fixture
def smaller(monkeypatch):
    """Call with declarations to use them within this process, in place of the real ones."""
    declared = {
        table1_growth: ("HORIZONS", "REFERENCE_HORIZON", "BUDGETS", "REFERENCE_BUDGET", "ALGORITHMS"),
        competition: ("SCENARIOS", "CONTENDERS", "CANDIDATES", "RUNGS"),
    }
    for module, names in declared.items():
        for name in names:
            monkeypatch.setattr(module, name, getattr(module, name))  # restored in the end
    return lambda declarations: exec(declarations, {})


def strict_json(text):
    def refuse(word):
        raise ValueError(word)

    return json.loads(text, parse_constant=refuse)


def files_of(folder):
    return {path.name: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")}


def test_table1_is_printed_written_and_resumed(here, smaller, tmp_path):
    smaller(TABLE1)
    call = ["reproduce", "table1", "--runs", "2", "--jobs", "1"]
    done = here(*call, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    out = tmp_path / "results" / "table1"
    assert done.stdout.endswith("Report: results/table1/report.html\n")
    assert re.search(r"BARBAR +Õ\(√\(KT\) \+ KC\) +-?\d\.\d\d ± \d\.\d\d", done.stdout)
    record = strict_json((out / "table1.json").read_text(encoding="utf-8"))
    assert [row["agent"] for row in record["rows"]] == ["barbar", "rcdb"]
    assert record["seeds"] == [0, 1]
    assert record["command"].startswith("fairduel reproduce table1")
    before = files_of(out)
    assert len(before) == 14
    assert here(*call, cwd=tmp_path).returncode == 0
    assert files_of(out) == before


def test_leaderboard_is_printed_written_and_resumed(here, smaller, tmp_path):
    smaller(BOARD)
    call = ["leaderboard", "--runs", "2", "--jobs", "1"]
    done = here(*call, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    out = tmp_path / "results" / "leaderboard"
    assert done.stdout.endswith("Report: results/leaderboard/report.html\n")
    record = strict_json((out / "leaderboard.json").read_text(encoding="utf-8"))
    page = (out / "report.html").read_text(encoding="utf-8")
    for standing in record["standings"]:
        worst = standing["worst"]
        assert worst["value"] == max(ratio["value"] for ratio in standing["ratios"].values())
        shown = f"{worst['value']:.2f} [{worst['low']:,.2f}, {worst['high']:,.2f}]".replace("-", "−")
        assert shown in done.stdout
        assert shown in page
        assert standing["title"] in done.stdout
    assert set(record["best"]) == {"cube", "new"}
    assert record["best"]["cube"]["tuning_seeds"] == [1_000_000, 1_000_002]
    assert record["seeds"] == [0, 1]
    assert record["halves"] == {"held-out": ["new"], "tuning": ["cube"]}
    assert "cannot play fresh actions" in page
    assert "Held-out scenarios: new. Tuning scenarios: cube." in page
    before = files_of(out)
    again = here(*call, "--json", "--quiet", cwd=tmp_path)
    assert files_of(out) == before
    printed = strict_json(again.stdout)
    assert again.stderr == ""
    assert printed["standings"] == record["standings"]


def test_your_own_agent_joins_the_board_and_the_work_is_announced(here, smaller, tmp_path, monkeypatch):
    smaller(BOARD)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "guest.py").write_text(SLOW.replace("time.sleep(0.02); ", ""))
    call = ["leaderboard", "--agent", "guest:Agent", "--agent", "rcdb,radius=2", "--runs", "2", "--jobs", "1"]
    done = here(*call, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^\d+ runs to do\.$", done.stderr, re.MULTILINE)
    assert re.search(r"^guest:Agent +\d", done.stdout, re.MULTILINE)
    for known in ("known", "unknown"):
        assert re.search(rf"^RCDB, radius 2, C {known} +\d", done.stdout, re.MULTILINE)
    again = here(*call, cwd=tmp_path)
    assert again.stderr == ""
    assert again.stdout == done.stdout


def test_one_run_is_shown_without_errors_and_is_still_json(here, smaller, tmp_path):
    smaller(BOARD)
    done = here("leaderboard", "--runs", "1", "--jobs", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "(one run)" in done.stdout
    out = tmp_path / "results" / "leaderboard"
    assert "nan" not in done.stdout
    assert "nan" not in (out / "report.html").read_text(encoding="utf-8")
    record = strict_json((out / "leaderboard.json").read_text(encoding="utf-8"))
    assert record["standings"][0]["geometric_mean"]["error"] is None


@pytest.mark.parametrize(
    ("smaller", "call"),
    [(SLOW_TABLE1, ["reproduce", "table1"]), (SLOW_BOARD, ["leaderboard"])],
    ids=["table1", "leaderboard"],
)
def test_control_c_keeps_what_is_done(smaller, call, tmp_path):
    (tmp_path / "slow.py").write_text(SLOW)
    full = command(smaller, *call, "--runs", "40", "--jobs", "2", "--out", "out")
    running = subprocess.Popen(full, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    while len(list(tmp_path.glob("started-*"))) < 8 and running.poll() is None:
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=60)
    assert running.returncode == 130, errors.decode()
    assert "finished runs are saved; rerun to resume" in errors.decode()
    slow = [pl.read_parquet(cell) for cell in (tmp_path / "out").rglob("*.parquet")]
    finished = sum(len(runs) for runs in slow if runs["agent"][0] == "slow:Agent")
    assert 0 < finished < 40
    assert not list((tmp_path / "out").glob("*.html"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["reproduce", "table2"], ["table2", "'table1'"]),
        (["reproduce", "table1", "--seed", "999999"], ["tuning"]),
        (["reproduce", "table1", "--out", "/proc/nowhere"], ["/proc/nowhere"]),
        (["leaderboard", "--seed", "999999"], ["tuning"]),
        (["leaderboard", "--json", "--seed", "999999"], ["tuning"]),
        (["leaderboard", "--out", "/proc/nowhere"], ["/proc/nowhere"]),
        (["leaderboard", "--agent", "nowhere:Agent"], ["nowhere"]),
        (["leaderboard", "--agent", "rcdb,radus=2"], ["radus", "'radius'"]),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(here, arguments, words, tmp_path):
    done = here(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert all(word in done.stderr for word in words), done.stderr
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("arguments", [["leaderboard", "--runs", "0"], ["leaderboard", "--jobs", "0"]])
def test_impossible_numbers_are_refused(here, arguments, tmp_path):
    done = here(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert arguments[1] in done.stderr


def test_both_are_in_the_help(here, tmp_path):
    assert "leaderboard" in here("--help", cwd=tmp_path).stdout
    assert "table1" in here("reproduce", "--help", cwd=tmp_path).stdout
