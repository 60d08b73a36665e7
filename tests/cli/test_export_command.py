"""``fairduel export``: its files, what it says, and what it refuses."""

import json

import polars as pl
import pytest

from fairduel.votes import audit, read_votes
from fairduel.votes.attacking.liars import arena


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    arena(voters=60, votes_each=20, seed=4)[0].to_frame().write_csv(folder / "votes.csv")
    return folder


def test_it_says_who_won_and_what_is_left_out(folder, here):
    done = here("export", "votes.csv", "--format", "csv", "--format", "trl", cwd=folder, terminal=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert max(map(len, done.stdout.splitlines())) <= 80
    text = " ".join(done.stdout.split())
    assert text.startswith(audit(read_votes(folder / "votes.csv").votes, top=1).shown.verdicts[0].headline)
    found = json.loads((folder / "results/export/votes/export.json").read_text())
    left_out = ", ".join(f"{count:,} {reason}" for reason, count in found["left_out"].items())
    assert f"left out: {' and '.join(left_out.rsplit(', ', 1))}." in text
    rows = {name: len(pl.read_csv(folder / "results/export/votes" / name)) for name in ("ranking.csv", "votes.csv")}
    rows["trl.jsonl"] = len((folder / "results/export/votes/trl.jsonl").read_text().splitlines())
    assert found["files"] == rows
    assert rows["trl.jsonl"] + sum(found["left_out"].values()) == rows["votes.csv"] == found["settings"]["votes"]


def test_files_of_another_format_do_not_stay(folder, here):
    for kind, files in {"parquet": {"votes.parquet", "ranking.parquet"}, "kto": {"kto.jsonl"}}.items():
        done = here("export", "votes.csv", "--format", kind, "--out", "again", "--json", cwd=folder)
        assert done.returncode == 0, done.stderr
        assert {file.name for file in (folder / "again").iterdir()} == {*files, "export.json", "command.json"}
        assert set(json.loads(done.stdout)["files"]) == files


def test_unusable_rows_are_written_too(folder, here):
    text = (folder / "votes.csv").read_text()
    (folder / "odd.csv").write_text(text + "Oak,,first,voter 1\n")
    done = here("export", "odd.csv", cwd=folder)
    assert "1 of 1,369 rows are unusable and were skipped (see set-aside.csv): no second item (1)." in done.stdout
    assert (folder / "results/export/odd/set-aside.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["missing.csv"], "missing.csv"),
        (["votes.csv", "--format", "xlsx"], "'xlsx'"),
        (["votes.csv", "--least-weight", "-1"], "least-weight"),
        (["votes.csv", "--out", "votes.csv"], "cannot write to votes.csv: choose another --out."),
    ],
)
def test_refusals_change_nothing(arguments, words, folder, here):
    before = sorted(folder.rglob("*"))
    done = here("export", *arguments, cwd=folder)
    assert done.returncode == 2
    assert words in done.stderr
    assert sorted(folder.rglob("*")) == before
