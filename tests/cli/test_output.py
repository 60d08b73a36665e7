"""What a user sees: help, terminal and pipe, JSON, quiet, and whose results a folder holds."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from fairduel.votes.attacking.liars import arena

pytestmark = pytest.mark.usefixtures("blank_figures")

ROOT = Path(__file__).parents[2]
MODULE = [sys.executable, "-m", "fairduel"]
SMALL = ["--runs", "2", "--horizon", "40", "--budget", "3", "--jobs", "1"]
LONG = "logo07-final-with-a-rather-long-file-name"
GRID = """
runs = 2
horizon = 30
budget = 3
known_budget = [true, false]
[[agent]]
name = "rcdb"
[[attack]]
name = ["greedy", "none"]
"""
REPORTING = [
    ["rank", "votes.csv"],
    ["audit", "votes.csv", "--top", "1"],
    ["explain", "votes.csv"],
    ["stress", "votes.csv", "--target", "Oak", "--votes", "4"],
    ["cost", "votes.csv", "--voters", "2", "--days", "1", "--votes-per-day", "1", "--runs", "1"],
    ["review", "votes.csv"],
    ["export", "votes.csv", "--format", "trl"],
    ["simulate", *SMALL],
    ["tune", "rcdb", "--grid", "radius=1,2", *SMALL],
    ["attack", "rcdb", "--search", "1", "--no-growth", *SMALL],
    ["sweep", "grid.toml", "--jobs", "1"],
    ["results", "query", "swept", "SELECT agent, 'NaN'::DOUBLE AS nothing FROM runs"],
    ["results", "plot", "swept", "--x", "budget", "--to", "figure.pdf"],
]
VOTES_COMMANDS = ["rank", "audit", "explain", "stress", "cost", "review", "export", "demo"]
COMMANDS = [*VOTES_COMMANDS, "reproduce", "simulate", "attack", "tune", "verify", "leaderboard", "sweep"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("output")
    votes, _ = arena(voters=40, votes_each=15, liars={"promote": 2}, target="Oak", seed=2)
    table = votes.to_frame()
    table.write_csv(folder / "votes.csv")
    long = table.with_columns(pl.col("first", "second").str.replace("Oak", LONG), winner=pl.col("winner"))
    long.write_csv(folder / "long.csv")
    (folder / "grid.toml").write_text(GRID)
    command = [*MODULE, "sweep", "grid.toml", "--out", "swept", "--jobs", "1", "-q"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
    return folder


def strict_json(text):
    def refuse(word):
        raise ValueError(word)

    return json.loads(text, parse_constant=refuse)


# ---------------------------------------------------------------------- one JSON object, or nothing


@pytest.mark.parametrize("arguments", REPORTING, ids=lambda arguments: " ".join(arguments[:2]))
def test_json_is_one_object_and_quiet_is_silent(folder, here, arguments):
    done = here(*arguments, "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    record = strict_json(done.stdout)
    assert record["command"].startswith(f"fairduel {arguments[0]} ")
    if "report" in record:
        assert (folder / record["report"]).exists()
    done = here(*arguments, "--quiet", cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_json_has_what_was_found(folder, here):
    simulated = strict_json(here("simulate", *SMALL, "--json", cwd=folder).stdout)["experiments"][0]
    assert simulated["conclusions"]
    assert simulated["rows"][0]["regret"]["value"] > 0
    swept = strict_json(here("sweep", "grid.toml", "--out", "swept", "--json", cwd=folder).stdout)
    assert (swept["cells"], swept["runs_per_cell"], swept["new_runs"]) == (4, 2, 0)
    asked = here("results", "query", "swept", "SELECT 'NaN'::DOUBLE AS x", "--json", cwd=folder)
    assert strict_json(asked.stdout)["rows"] == [{"x": None}]


def test_a_query_prints_a_latex_table(folder, here):
    sql = "SELECT 'R&D' AS agent, -1.5 AS gain"
    lines = here("results", "query", "swept", sql, "--latex", cwd=folder).stdout.splitlines()
    assert [line for line in lines if "&" in line] == [r"agent & gain \\", r"R\&D & $-$1.5 \\"]


def test_errors_are_not_silenced_and_csv_is_not_mixed_with_json(folder, here):
    done = here("rank", "missing.csv", "--quiet", cwd=folder)
    assert done.returncode == 2
    assert "missing.csv" in done.stderr
    done = here("results", "query", "swept", "FROM runs", "--csv", "--json", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--csv cannot be combined" in done.stderr


# ---------------------------------------------------------------------- terminal and pipe


def test_a_narrow_terminal_keeps_names_and_says_where_the_other_columns_are(folder, here):
    done = here("rank", "long.csv", cwd=folder, terminal=True)
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert LONG in done.stdout
    assert "…" not in done.stdout
    said = " ".join(done.stdout.split())
    dropped = re.search(r"Terminal too narrow to show: (.*) \(see results/rank/long/ranking.csv\)", said)
    assert {"votes", "won"} <= set(dropped[1].split(", "))


def test_a_pipe_has_every_column_in_full(folder, here):
    done = here("rank", "long.csv", cwd=folder)
    header = next(line for line in done.stdout.splitlines() if line.startswith("item "))
    shown = ["item", "rank", "own range", "joint range", "score", "error", "best", "votes", "won"]
    assert re.split(" {2,}", header.strip()) == [*shown[:3], "may be best", *shown[3:], "false votes", "lying voters"]
    assert LONG in done.stdout
    assert "too narrow" not in done.stdout
    assert done.stdout.endswith("\n\nReport: results/rank/long/report.html\n")


def test_every_command_leads_with_its_conclusion(folder, here):
    lines = here("rank", "votes.csv", cwd=folder).stdout.splitlines()
    assert "first of 12 items" in lines[0]
    lines = here("simulate", "--agent", "rcdb", "--agent", "maxinp", *SMALL, cwd=folder).stdout.splitlines()
    assert lines[1].startswith("greedy attack, C = 3, 40 rounds")
    assert "regret" in lines[2]


def test_a_real_terminal_of_80_columns(folder):
    master, slave = os.openpty()
    environment = os.environ | {"COLUMNS": "80", "TERM": "xterm", "NO_COLOR": "1"}
    process = subprocess.Popen([*MODULE, "rank", "long.csv"], cwd=folder, stdout=slave, stderr=slave, env=environment)
    os.close(slave)
    shown = b""
    while True:
        try:
            part = os.read(master, 4096)
        except OSError:  # Linux reports the end so
            break
        if not part:
            break
        shown += part
    assert process.wait() == 0
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode())
    assert max(map(len, text.splitlines())) <= 80
    assert LONG in text


def test_rows_that_do_not_fit_are_printed_one_below_another(folder, here):
    done = here("results", "query", "swept", "FROM runs", cwd=folder, terminal=True)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^agent_known_budget +(True|False)$", done.stdout, re.MULTILINE)
    assert "SELECT fewer columns" in " ".join(done.stdout.split())
    piped = here("results", "query", "swept", "FROM runs", cwd=folder).stdout.splitlines()
    assert piped[1].split()[:3] == ["agent", "attack", "budget"]
    assert len(piped) == 3 + 8
    small = here("results", "query", "swept", "SELECT agent, regret FROM runs", cwd=folder, terminal=True)
    assert small.stdout.splitlines()[1].split() == ["agent", "regret"]


def test_nothing_prints_nan(folder, here):
    done = here("results", "query", "swept", "SELECT 'NaN'::DOUBLE AS x, NULL AS y", cwd=folder)
    assert done.stdout.split()[-2:] == ["–", "–"]
    one = here("simulate", "--agent", "rcdb", "--agent", "maxinp", *SMALL, "--runs", "1", cwd=folder)
    assert one.returncode == 0, one.stderr
    assert "nan" not in one.stdout.lower()


def test_markup_in_names_is_literal(folder, here):
    path = folder / "[bold]a[red].csv"
    path.write_bytes((folder / "votes.csv").read_bytes())
    done = here("audit", path.name, "--top", "1", cwd=folder, terminal=True)
    assert done.returncode == 0, done.stderr
    assert "Report: results/audit/[bold]a[red]/report.html\n" in done.stdout
    done = here("rank", "[/bold].csv", cwd=folder)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "[/bold].csv" in done.stderr


# ---------------------------------------------------------------------- several agents and attacks


def test_agents_with_settings_meet_every_attack(folder, here):
    agents = [
        "--agent",
        "rcdb,radius=2",
        "--agent",
        "rcdb,radius=theory,known_budget=false",
        "--agent",
        "rcdb,radius=2",
    ]
    attacks = ["--attack", "greedy", "--attack", "random,probability=0.25"]
    done = here("simulate", *agents, *attacks, "--world", "hypercube,dimension=3", *SMALL, "--out", "two", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "Without knowing C, RCDB assumes C = ⌈√T⌉.\n" in done.stderr
    runs = pl.read_parquet(folder / "two" / "runs.parquet")
    assert runs["panel"].unique(maintain_order=True).to_list() == ["greedy attack", "random attack (probability 0.25)"]
    assert runs.group_by("panel", "setting").len()["len"].to_list() == [2, 2, 2, 2]
    assert runs["dimension"].unique().to_list() == [3]
    for words in ("Greedy attack: ", "Random attack (probability 0.25): ", "RCDB (radius 2)", "RCDB (radius theory"):
        assert words in done.stdout


# ---------------------------------------------------------------------- whose results a folder holds


def test_another_commands_results_are_not_overwritten(folder, here):
    assert here("rank", "votes.csv", "--out", "mine", cwd=folder).stderr == ""
    before = {path: path.read_bytes() for path in (folder / "mine").iterdir()}
    for command in (["audit", "votes.csv"], ["simulate", *SMALL], ["sweep", "grid.toml"]):
        done = here(*command, "--out", "mine", cwd=folder)
        assert done.returncode == 2
        assert done.stderr == "fairduel: mine holds the results of fairduel rank: choose another --out.\n"
    assert {path: path.read_bytes() for path in (folder / "mine").iterdir()} == before


def test_replacing_a_report_is_announced_unless_it_is_the_same(folder, here):
    assert here("rank", "votes.csv", "--out", "again", cwd=folder).stderr == ""
    assert here("rank", "votes.csv", "--out", "again", cwd=folder).stderr == ""
    done = here("rank", "votes.csv", "--ties", "drop", "--out", "again", "--json", cwd=folder)
    assert done.stderr == "Replacing the results of 'fairduel rank votes.csv --out again' in again.\n"
    assert strict_json(done.stdout)["settings"]["ties"] == "drop"


def test_a_failed_run_changes_nothing(folder, here):
    for target in ("Oak", "Oka"):
        done = here("stress", "votes.csv", "--target", target, "--votes", "4", "--out", "failed", cwd=folder)
        assert "Replacing" not in done.stderr
        if target == "Oak":
            before = {path: path.read_bytes() for path in (folder / "failed").iterdir()}
    assert done.returncode == 2
    assert {path: path.read_bytes() for path in (folder / "failed").iterdir()} == before


def test_quiet_does_not_hide_that_another_files_results_are_replaced(folder, here):
    (folder / "sub").mkdir()
    (folder / "sub" / "same.csv").write_bytes((folder / "votes.csv").read_bytes())
    (folder / "same.csv").write_bytes((folder / "votes.csv").read_bytes())
    assert here("rank", "same.csv", "-q", cwd=folder).stderr == ""
    assert here("rank", "./same.csv", "--ties", "drop", "-q", cwd=folder).stderr == ""
    done = here("rank", "sub/same.csv", "-q", cwd=folder)
    assert done.stderr == "Replacing the results of 'fairduel rank ./same.csv --ties drop -q' in results/rank/same.\n"


def test_folders_of_older_versions_stay_usable(folder, here):
    (folder / "old").mkdir()
    (folder / "old" / "report.html").write_text("old")
    done = here("rank", "votes.csv", "--out", "old", cwd=folder)
    assert done.returncode == 0
    assert done.stderr == "Replacing the report in old.\n"


def test_two_files_have_two_folders(folder, here):
    (folder / "v1.2.csv").write_bytes((folder / "votes.csv").read_bytes())
    assert here("rank", "v1.2.csv", cwd=folder).stdout.endswith("Report: results/rank/v1.2/report.html\n")


# ---------------------------------------------------------------------- help


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS), ["results", "query"], ["results", "plot"]])
def test_help_fits_80_columns_and_names_no_types(here, tmp_path, command):
    done = here(*command, "-h", cwd=tmp_path, terminal=True)
    assert done.returncode == 0
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert not re.search(r"<(bool|str|int|float|list|path)|TEXT|INTEGER|BOOLEAN", done.stdout)
    if command:
        assert "--json" in done.stdout
        assert "--quiet" in done.stdout
    else:
        assert done.stdout.index("Votes") < done.stdout.index("Benchmarks")
        assert "--install-completion" in done.stdout


def test_citation_agrees_with_the_file(here, tmp_path):
    shown = here("--cite", cwd=tmp_path).stdout
    entries = dict(re.findall(r"@(\w+)\{\w+,\n((?:  \w+ += \{.*\},\n)+)\}\n", shown))
    fields = {kind: dict(re.findall(r"(\w+) += \{(.*)\},", text)) for kind, text in entries.items()}
    assert list(fields) == ["software", "inproceedings"]
    known = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    family, given = re.findall(r"family-names: (.*)", known), re.findall(r"given-names: (.*)", known)
    authors = " and ".join(f"{last}, {first}" for last, first in zip(family, given, strict=True))
    assert fields["inproceedings"]["author"] == authors
    for value in (fields["inproceedings"][name] for name in ("title", "booktitle", "year")):
        assert f": {value}\n" in known
    assert f"version: {fields['software']['version']}\n" in known
    assert f"name: {fields['software']['author'].strip('{}')}\n" in known


def test_the_shell_completes_names(tmp_path):
    script = Path(sys.executable).with_name("fairduel")
    words = {"_FAIRDUEL_COMPLETE": "complete_bash", "COMP_WORDS": "fairduel simulate --agent rc", "COMP_CWORD": "3"}
    done = subprocess.run([script], cwd=tmp_path, capture_output=True, text=True, env=os.environ | words, check=False)
    assert done.stdout.split() == ["rcdb", "rcdb-s", "rcdp"]
