"""What a report writes beside its page, and what it says about its origin."""

import subprocess

import pytest

from fairduel.report.page import Page, Section, _commit, provenance, with_files, write_page
from fairduel.report.text_table import TextTable
from helpers.reports import REPORTS


def test_figures_of_the_same_results_are_the_same_files(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        REPORTS["simulate"](tmp_path / name)
    for kind in ("png", "svg", "pdf"):
        one, two = ((tmp_path / name / f"regret.{kind}").read_bytes() for name in ("one", "two"))
        assert one == two
        assert b"CreationDate" not in one
        assert b"dc:date" not in one


def test_tables_are_files_named_after_them_and_old_ones_go(tmp_path):
    table = TextTable(["item", "won"], [["a, b", "50 %"], ["c_d", "± 1"]], "Who won?")
    with with_files():
        write_page(tmp_path, Page("T", ["One."], [Section("S", tables=[table, table], name="x")], "fairduel"))
    names = {"table-x-who-won", "table-x-who-won-2"}
    assert {path.stem for path in tmp_path.glob("table-*")} == names
    assert (tmp_path / "table-x-who-won.csv").read_text() == 'item,won\n"a, b",50 %\nc_d,± 1\n'
    assert r"c\_d & $\pm$ 1 \\" in (tmp_path / "table-x-who-won.tex").read_text()
    (tmp_path / "mine.csv").touch()
    write_page(tmp_path, Page("T", ["One."], [Section("S")], "fairduel"))
    assert {path.name for path in tmp_path.iterdir()} == {"report.html", "mine.csv"}


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("50 % & $5_{a}#", r"50 \% \& \$5\_\{a\}\#"),
        ("\\~^", r"\textbackslash{}\textasciitilde{}\textasciicircum{}"),
        ("‖θ‖ ≤ 10⁶", r"$\|$$\theta$$\|$ $\leq$ 10$^6$"),
    ],
)
def test_latex_is_escaped(text, latex):
    assert f"{latex} \\\\\n" in TextTable(["x"], [[text]]).latex()


def test_the_commit_is_that_of_a_checkout_and_nothing_elsewhere(tmp_path):
    def git(*arguments):
        identity = ["-c", "user.name=n", "-c", "user.email=e"]
        done = subprocess.run(
            ["git", "-C", tmp_path, *identity, *arguments], check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    (tmp_path / "src").mkdir()
    assert _commit(tmp_path) == ""
    git("init", "-q")
    assert _commit(tmp_path) == ""
    git("commit", "-q", "--allow-empty", "-m", "first")
    commit = git("rev-parse", "HEAD")[:10]
    assert _commit(tmp_path) == commit
    (tmp_path / "notes.txt").touch()
    assert _commit(tmp_path) == commit
    (tmp_path / "src" / "new.py").touch()
    assert _commit(tmp_path) == f"{commit} with uncommitted changes"


def test_every_report_says_how_it_was_made():
    made = provenance("fairduel verify", range(3))
    assert made["Command"] == "fairduel verify"
    assert made["Runs"] == "3 runs (seeds 0–2)"
    assert made["Date"].endswith("UTC")
