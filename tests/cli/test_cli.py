import html
import io
import json
import os
import signal
import subprocess
import sys
import time

import polars as pl
import pytest
from rich.console import Console

from fairduel.cli import output

FAIRDUEL = [sys.executable, "-c", "from fairduel.cli import main; main()"]
SMALL = ["--runs", "2", "--horizon", "60", "--budget", "5", "--jobs", "1"]


def fairduel(*arguments, cwd):
    environment = os.environ | {"COLUMNS": "160", "NO_COLOR": "1"}
    return subprocess.run(
        [*FAIRDUEL, *arguments], cwd=cwd, capture_output=True, text=True, env=environment, timeout=300, check=False
    )


def assert_one_sentence(done, *words):
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr


def test_simulate_writes_report_figures_and_tables(tmp_path):
    agents = ("--agent", "rcdb", "--agent", "maxinp")
    done = fairduel("simulate", *agents, "--attack", "misleading", *SMALL, "--figures", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    out = tmp_path / "results" / "simulate"
    assert done.stdout.endswith("Report: results/simulate/report.html\n")
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "https://" not in page
    assert "data:image/svg+xml;base64," in page
    assert (out / "regret.png").read_bytes().startswith(b"\x89PNG")
    assert (out / "regret.svg").read_text(encoding="utf-8").lstrip().startswith("<?xml")
    runs = pl.read_parquet(out / "runs.parquet")
    promised = "experiment agent setting tuned attack budget dimension horizon seed regret weak_regret flips"
    assert set(f"{promised} self_duel_share seconds".split()) <= set(runs.columns)
    assert len(runs) == 4
    traces = pl.read_parquet(out / "traces.parquet")
    assert len(traces) == 4 * 60
    assert traces["round"].max() == 60


@pytest.mark.usefixtures("blank_figures")
def test_simulate_and_tune_take_late_answers(here, tmp_path):
    late = ["--delay", "fixed,rounds=20", "--json"]
    done = here("simulate", *SMALL, *late, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    [found] = json.loads(done.stdout)["experiments"]
    assert found["title"].endswith("60 rounds, fixed delay (rounds 20)")
    assert "Delay: fixed (rounds 20)." in (tmp_path / "results/simulate/report.html").read_text(encoding="utf-8")
    runs = pl.read_parquet(tmp_path / "results/simulate/runs.parquet")
    assert runs.select("delay", "delay_settings").unique().rows() == [("fixed", '{"rounds": 20}')]
    done = here("tune", "rcdb", "--grid", "radius=1,2", *SMALL, *late, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["conclusions"][0].startswith("RCDB, greedy attack, fixed delay, C = 5")
    assert "fixed (rounds 20)" in (tmp_path / "results/tune/report.html").read_text(encoding="utf-8")
    assert_one_sentence(here("simulate", "--delay", "fixd", cwd=tmp_path), "did you mean 'fixed'")


@pytest.mark.usefixtures("blank_figures")
def test_a_second_run_computes_nothing_and_a_changed_setting_does(here, tmp_path):
    here("simulate", *SMALL, cwd=tmp_path)
    cells = tmp_path / "results" / "simulate" / "cells"
    [before] = cells.iterdir()
    changed = before.stat().st_mtime_ns
    here("simulate", *SMALL, cwd=tmp_path)
    assert [path.stat().st_mtime_ns for path in cells.iterdir()] == [changed]
    here("simulate", *SMALL, "--agent", "rcdb,radius=3", cwd=tmp_path)
    assert len(list(cells.iterdir())) == 2


def test_your_own_agent_and_attack_run(tmp_path):
    (tmp_path / "mine.py").write_text(
        "from fairduel.adversaries import StrongAdversary\n"
        "class Agent:\n"
        "    def __init__(self, dimension): self.dimension = dimension\n"
        "    def ask(self, actions): return 0, 1\n"
        "    def tell(self, duel, outcome): pass\n"
        "class Attack(StrongAdversary):\n"
        "    def wants_flip(self, sight): return sight.winner == 0\n"
    )
    done = fairduel("simulate", "--agent", "mine:Agent", "--attack", "mine:Attack", *SMALL, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    runs = pl.read_parquet(tmp_path / "results" / "simulate" / "runs.parquet")
    assert runs["flips"].to_list() == [5, 5]
    (tmp_path / "mine.py").write_text((tmp_path / "mine.py").read_text().replace("return 0, 1", "return 1, 2"))
    fairduel("simulate", "--agent", "mine:Agent", "--attack", "mine:Attack", *SMALL, cwd=tmp_path)
    assert len(list((tmp_path / "results" / "simulate" / "cells").iterdir())) == 2


@pytest.mark.parametrize(
    "wrong", [["rcdb", "--budget", "0"], ["cw-oful", "--world", "linear"], ["rcdb", "--world", "linear"]]
)
def test_a_search_that_cannot_start_leaves_earlier_results_alone(here, tmp_path, wrong):
    done = here("attack", *wrong, "--out", "out", cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("blank_figures")
def test_attack_writes_what_it_found_on_a_page(here, tmp_path):
    done = here("attack", "rcdb", "--search", "1", "--no-growth", *SMALL, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "results/attack/report.html").read_text(encoding="utf-8")
    found = json.loads((tmp_path / "results/attack/attack.json").read_text())
    assert found["words"] in html.unescape(page)
    assert "half-settled" in page


@pytest.mark.usefixtures("blank_figures")
def test_tune_names_a_winner_on_tuning_seeds(here, tmp_path):
    grid = ["--grid", "radius=0.1,4", "--grid", "warmup=0,5"]
    done = here("tune", "maxpairucb", *grid, *SMALL, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    [tuned] = json.loads((tmp_path / "results" / "tune" / "tuned.json").read_text())
    assert len(tuned["trials"]) == 4
    assert tuned["winner"]["mean"] == min(trial["mean"] for trial in tuned["trials"])
    assert tuned["seeds"][0] == 1_000_000


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["simulate", "--agent", "rcbd"], ["rcbd", "did you mean 'rcdb'"]),
        (["simulate", "--attack", "gredy"], ["gredy", "greedy"]),
        (["simulate", "--world", "cube"], ["cube", "hypercube"]),
        (["simulate", "--agent", "rcdb,radus=1"], ["radus", "'radius'"]),
        (["simulate", "--agent", "rcdb,radius"], ["NAME,SETTING=VALUE", "'rcdb,radius'"]),
        (["simulate", "--agent", "rcdb,=8"], ["NAME,SETTING=VALUE", "'rcdb,=8'"]),
        (["simulate", "--agent", "rcdb", "--agent", "rcdb,kappa=0.5"], ["kappa", "0.25"]),
        (["simulate", "--agent", "rcdb,design=round"], ["design", "plain"]),
        (["simulate", "--attack", "greedy,target=best"], ["target"]),
        (["simulate", "--attack", "none", "--attack", "misleading,target=99", "--jobs", "1"], ["99", "32"]),
        (["simulate", "--world", "hypercube,dimension=40"], ["dimension"]),
        (["simulate", "--agent", "nowhere:Agent"], ["nowhere"]),
        (
            ["simulate", "--agent", "barbar"],
            ["barbar needs rewards", "world hypercube returns duels", "world arms with"],
        ),
        (["simulate", "--agent", "cw-oful"], ["cw-oful needs rewards", "; try world linear with attack swap."]),
        (
            ["simulate", "--agent", "wiwr", "--world", "linear"],
            ["wiwr needs duels", "linear returns rewards; try world"],
        ),
        (
            ["simulate", "--agent", "cobe", "--world", "linear"],
            ["attack greedy flips duels", "use bury, swap or none."],
        ),
        (["simulate", "--attack", "bury"], ["attack bury changes rewards", "returns duels; use none, greedy, random"]),
        (["simulate", "--agent", "wiwr", "--world", "fresh"], ["wiwr", "actions change"]),
        (["tune", "wiwr"], ["wiwr", "--grid scale"]),
        (["simulate", "--agent", "json:Agent"], ["json", "Agent"]),
        (["simulate", "--agent", "json:loads"], ["loads"]),
        (["simulate", "--agent", "rcdb-s", "--world", "hard-corrupted"], ["logistic", "use RCDB"]),
        (["simulate", "--seed", "999999"], ["tuning"]),
        (["simulate", "--out", "/proc/nowhere"], ["/proc/nowhere"]),
        (["tune", "rcdb", "--grid", "radius"], ["grid"]),
        (["reproduce", "figure3"], ["figure3", "figure"]),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(here, arguments, words, tmp_path):
    assert_one_sentence(here(*arguments, cwd=tmp_path), *words)
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert written == []


@pytest.mark.parametrize("total", [0, 3])
def test_a_progress_bar_is_shown_if_there_is_something_to_do(total, monkeypatch):
    screen = Console(file=io.StringIO(), force_terminal=True, width=80)
    monkeypatch.setattr(output, "notices", screen)
    with output.progress_bar("Sweep", total) as progress:
        progress(total)
    shown = screen.file.getvalue()
    assert "3/3" in shown if total else shown == ""


def test_a_negative_budget_is_refused(here, tmp_path):
    done = here("simulate", "--budget", "-1", cwd=tmp_path)
    assert done.returncode == 2
    assert "--budget" in done.stderr


@pytest.mark.usefixtures("blank_figures")
@pytest.mark.filterwarnings("always::fairduel.errors.DamageWarning")
def test_a_torn_cell_is_named_and_run_again(here, tmp_path):
    first = here("simulate", *SMALL, cwd=tmp_path)
    [cell] = (tmp_path / "results" / "simulate" / "cells").iterdir()
    cell.write_bytes(cell.read_bytes()[: cell.stat().st_size // 2])
    again = here("simulate", *SMALL, cwd=tmp_path)
    assert again.returncode == 0
    assert again.stderr.count("\n") == 1
    assert f"{cell.name} is damaged" in again.stderr
    assert again.stdout.splitlines()[-6:] == first.stdout.splitlines()[-6:]


def test_control_c_keeps_what_is_done(tmp_path):
    (tmp_path / "slow.py").write_text(
        "import pathlib, time\n"
        "class Agent:\n"
        "    def __init__(self, seed): pathlib.Path(f'started-{seed}').touch()\n"
        "    def ask(self, actions): time.sleep(0.02); return 0, 1\n"
        "    def tell(self, duel, outcome): pass\n"
    )
    command = ["simulate", "--agent", "slow:Agent", "--runs", "40", "--horizon", "40", "--budget", "5", "--jobs", "2"]
    running = subprocess.Popen([*FAIRDUEL, *command], cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    while len(list(tmp_path.glob("started-*"))) < 15 and running.poll() is None:  # of 40; up to 5 runs go in one batch
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=60)
    assert running.returncode == 130, errors.decode()
    assert "finished runs are saved; rerun to resume" in errors.decode()
    parts = list((tmp_path / "results" / "simulate" / "cells").iterdir())
    assert 0 < sum(len(pl.read_parquet(part)) for part in parts) < 40


def test_help_is_there_on_every_level(here, tmp_path):
    assert "reproduce" in here("--help", cwd=tmp_path).stdout
    for command in ("reproduce", "simulate", "tune", "verify"):
        done = here(command, "--help", cwd=tmp_path)
        assert done.returncode == 0
        assert "--out" in done.stdout


def test_reproduce_runs_a_whole_experiment(here, tmp_path):
    done = here("reproduce", "figure2", "--runs", "3", "--jobs", "2", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    [experiment] = json.loads(done.stdout)["experiments"]
    assert experiment["conclusions"]
    assert {row["x"] for row in experiment["rows"]} == set(range(20, 201, 20))
    page = (tmp_path / "results" / "figure2" / "report.html").read_text(encoding="utf-8")
    assert "R² = 0.9" in page
    assert "tuning seeds" in page


def test_verify_speaks_json_and_judges_every_claim(here, tmp_path):
    done = here("verify", "--json", "--runs", "2", "--jobs", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    verdicts = json.loads(done.stdout)["verdicts"]
    assert len(verdicts) > 50
    assert {verdict["status"] for verdict in verdicts} <= {"holds", "does not hold", "undecided", "cannot fail"}
    assert sum(verdict["status"] == "cannot fail" for verdict in verdicts) == 6
    assert all({"value", "low", "high"} <= set(verdict["numbers"]) for verdict in verdicts)
    by_source = {verdict["source"] for verdict in verdicts}
    assert {"Figure 1", "Figure 2", "Lemma 5.1 (MLE)", "Lemma C.1 (cE)", "Theorem 5.3 (main)", "fairduel"} <= by_source
    page = (tmp_path / "results" / "verify" / "report.html").read_text(encoding="utf-8")
    assert "claims beyond the paper hold" in page
    assert "claims of ours hold" in page
