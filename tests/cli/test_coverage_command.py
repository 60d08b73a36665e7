import csv
import json

import pytest

from fairduel.experiments import coverage
from fairduel.experiments.coverage import Setting

pytestmark = pytest.mark.usefixtures("blank_figures")


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(coverage, "GRID", (Setting("clean", 5, 50, 3), Setting("prompts", 5, 50, 3)))


def test_coverage_is_printed_written_and_resumed(here, tmp_path):
    call = ["reproduce", "coverage", "--runs", "5", "--jobs", "1"]
    done = here(*call, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    out = tmp_path / "results" / "coverage"
    assert done.stdout.endswith("Report: results/coverage/report.html\n")
    assert "5 runs per cell" in done.stdout
    with (out / "coverage.csv").open(encoding="utf-8") as file:
        assert [(row["kind"], row["files"]) for row in csv.DictReader(file)] == [("clean", "5"), ("prompts", "5")]
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*.parquet")}
    assert len(before) == 2
    again = here(*call, "--json", cwd=tmp_path)
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*.parquet")} == before
    record = json.loads(again.stdout)
    assert record["seeds"] == [0, 4]
    assert [cell["files"] for cell in record["cells"]] == [5, 5]
    assert record["conclusions"][0] in done.stdout


def test_tuning_seeds_are_refused(here, tmp_path):
    done = here("reproduce", "coverage", "--seed", "999999", cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "tuning" in done.stderr
