"""fairduel explain, and a burst in fairduel audit, as a user types them."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from fairduel.votes.attacking.liars import arena

FAIRDUEL = [sys.executable, "-c", "from fairduel.cli import main; main()"]
ENVIRONMENT = os.environ | {"COLUMNS": "200", "NO_COLOR": "1"}


def fairduel(*arguments, cwd):
    return subprocess.run(
        [*FAIRDUEL, *arguments], cwd=cwd, capture_output=True, text=True, env=ENVIRONMENT, timeout=120, check=False
    )


@pytest.fixture(scope="module")
def votes_file(tmp_path_factory):
    """An arena, and at its end a hundred votes for Oak, each by an account of its own."""
    folder = tmp_path_factory.mktemp("votes")
    honest = arena(voters=60, votes_each=20, liars={}, seed=2)[0].to_frame()
    rng = np.random.default_rng(0)
    other = rng.choice([name for name in honest["first"].unique().sort() if name != "Oak"], 100)
    false = pl.DataFrame(
        {"first": "Oak", "second": other, "winner": "first", "voter": [f"new {i}" for i in range(100)]}
    )
    pl.concat([honest, false.select(honest.columns)]).write_csv(folder / "votes.csv")
    return folder / "votes.csv"


def test_explain_answers_and_writes_everything(votes_file):
    done = fairduel("explain", "votes.csv", "Maple", "Birch", cwd=votes_file.parent)
    assert done.returncode == 0, done.stderr
    out = votes_file.parent / "results" / "explain" / "votes"
    record = json.loads((out / "explain.json").read_text(encoding="utf-8"))
    assert done.stdout.startswith(record["summary"][0] + "\n")
    assert {record["above"], record["below"]} == {"Maple", "Birch"}
    assert record["direct"] + sum(each["share"] for each in record["through"]) == pytest.approx(record["gap"])
    influence = pl.read_csv(out / "influence.csv")
    assert influence["share_of_gap"].sum() == pytest.approx(record["gap"])
    table = pl.read_csv(votes_file)
    row = influence["row"][0] - 2
    assert (table["first"][row], table["voter"][row]) == (influence["first"][0], influence["voter"][0])
    assert f"{record['most_voters'][0]['voter']} " in done.stdout
    page = (out / "report.html").read_text(encoding="utf-8")
    assert record["summary"][0] in page
    assert {path.suffix for path in out.iterdir()} == {".html", ".json", ".csv"}  # figures on request only


def test_an_unknown_item_is_refused_in_one_sentence(votes_file):
    done = fairduel("explain", "votes.csv", "Mapel", "--out", "nothing", cwd=votes_file.parent)
    assert done.returncode != 0
    assert "unknown item 'Mapel': did you mean 'Maple'?" in done.stderr
    assert not (votes_file.parent / "nothing").exists()


def test_audit_reports_a_burst_and_the_ranking_without_it(votes_file):
    done = fairduel("audit", "votes.csv", "--top", "1", cwd=votes_file.parent)
    assert done.returncode == 0, done.stderr
    assert re.search(r"differs from the rest \(p = 0.00\d\): Oak won", done.stdout)
    assert "rank without the stretch" in done.stdout
    out = votes_file.parent / "results" / "audit" / "votes"
    record = json.loads((out / "audit.json").read_text(encoding="utf-8"))
    burst, last = record["burst"], len(pl.read_csv(votes_file)) + 1
    assert burst["found"]
    assert burst["gained"][0] == "Oak"
    assert burst["rows"][-1] == last
    assert len(set(burst["rows"]) & set(range(last - 99, last + 1))) >= 80
    assert any("Find out what happened during the stretch" in each for each in record["advice"])
    assert "Did a stretch of votes differ?" in (out / "report.html").read_text(encoding="utf-8")
    ranks = {each["item"]: each for each in burst["ranks"]}
    assert ranks["Oak"]["without"] >= ranks["Oak"]["with"]
