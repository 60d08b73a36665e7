"""fairduel audit, stress and demo, as a user types them."""

import html
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from fairduel.votes import audit, read_votes
from fairduel.votes.attacking.injection import inject
from fairduel.votes.attacking.liars import arena


@pytest.fixture(scope="module")
def votes_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("votes")
    votes, _ = arena(voters=60, votes_each=20, liars={"promote": 2}, target="Oak", seed=2)
    votes.to_frame().write_csv(folder / "votes.csv")
    return folder / "votes.csv"


@pytest.fixture(scope="module")
def audited(votes_file):
    command = [sys.executable, "-m", "fairduel", "audit", str(votes_file), "--top", "2"]
    environment = os.environ | {"COLUMNS": "200", "NO_COLOR": "1"}
    return subprocess.run(
        command, cwd=votes_file.parent, capture_output=True, text=True, env=environment, timeout=120, check=False
    )


def test_audit_names_the_liars_and_writes_everything(votes_file, audited):
    assert audited.returncode == 0, audited.stderr
    out = votes_file.parent / "results" / "audit" / "votes"
    voters = pl.read_csv(out / "voters.csv")
    _, liars = arena(voters=60, votes_each=20, liars={"promote": 2}, target="Oak", seed=2)
    assert set(voters.filter("flagged")["voter"]) == set(liars)
    assert len(voters) == 60
    for name in liars:
        assert name in audited.stdout
    record = json.loads((out / "audit.json").read_text(encoding="utf-8"))
    assert {row["voter"] for row in record["flagged"]} == set(liars)
    assert record["settings"]["evidence"]["level"] == 0.05
    assert [entry["top"] for entry in record["fragility"]] == [1, 1, 2, 2]
    leader = record["fragility"][0]
    assert len(leader["rows"]) == leader["found"] >= leader["at_least"] >= 1
    assert f"All votes: {leader['sentence'][0].lower()}{leader['sentence'][1:]}\n" in audited.stdout
    assert all(re.fullmatch("[a-z0-9_]+", name) for name in (*record["settings"], *record["settings"]["ranking"]))
    rows = pl.read_csv(out / "flagged-rows.csv")
    table = pl.read_csv(votes_file)
    assert set(rows["voter"]) == set(liars)
    assert table[rows["row"][0] - 2, "voter"] == rows["voter"][0]


def test_the_terminal_ranks_with_and_without_the_flagged(votes_file, audited):
    ranks = json.loads((votes_file.parent / "results" / "audit" / "votes" / "audit.json").read_text())["ranks"]
    for row in ranks:
        shown = re.search(rf"^{row['item']} +(\d+) +[\d–]+ +(\d+) +[\d–]+$", audited.stdout, re.MULTILINE)
        assert (int(shown[1]), int(shown[2])) == (row["without_flagged"], row["all_votes"])
    assert "Votes that change the ranking (all votes, each counted fully)\n" in audited.stdout


def test_the_report_of_an_audit_is_one_page_with_every_setting(votes_file, audited):
    assert audited.returncode == 0, audited.stderr
    page = (votes_file.parent / "results" / "audit" / "votes" / "report.html").read_text(encoding="utf-8")
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "https://" not in page
    assert page.count("<figure") == 2
    for words in ("What to do", "Voters", "How fragile is the result?", "evidence: level", "evidence: taste for items"):
        assert words in page


@pytest.mark.usefixtures("blank_figures")
def test_a_file_without_voters_still_has_its_fragility(here, votes_file, tmp_path):
    done = here("audit", str(votes_file), "--voter", "none", "--top", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "do not say who cast them" in done.stdout
    assert "changes first place (" in done.stdout
    assert (tmp_path / "results" / "audit" / "votes" / "audit.json").exists()
    assert not (tmp_path / "results" / "audit" / "votes" / "voters.csv").exists()


def test_an_audit_without_voters_takes_away_the_old_ones(here, votes_file, tmp_path):
    for name in ("voters.csv", "flagged-rows.csv", "mine.csv"):
        (tmp_path / name).write_text("old")
    done = here("audit", str(votes_file), "--voter", "none", "--top", "1", "--out", str(tmp_path), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    names = {path.name for path in tmp_path.iterdir()}
    assert {"audit.json", "report.html", "mine.csv"} <= names
    assert names.isdisjoint({"voters.csv", "flagged-rows.csv"})


def test_dollars_in_names_are_drawn_and_stress_needs_no_time(here, tmp_path):
    votes, _ = arena(voters=30, votes_each=15, liars={}, seed=3)
    table = votes.to_frame().with_columns(
        pl.col("first", "second").str.replace("Oak", "$x_{$", literal=True), timestamp=pl.lit(1), minute=pl.lit(2)
    )
    table.write_csv(tmp_path / "v.csv")
    for command in (["rank", "v.csv", "--time", "none"], ["stress", "v.csv", "--target", "$x_{$", "--votes", "7"]):
        done = here(*command, "--figures", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert "$x_{$" in (tmp_path / "results" / "stress" / "v" / "stress.svg").read_text(encoding="utf-8")


@pytest.mark.usefixtures("blank_figures")
def test_names_are_text_not_markup(here, tmp_path):
    votes, _ = arena(voters=40, votes_each=15, liars={}, seed=3)
    attacked = inject(votes, "promote", "Oak", size=80, voters=2).votes
    table = attacked.to_frame().with_columns(
        pl.col("first", "second").str.replace("Oak", "<b>[red]Oák & ünî\u200bcode[/red]</b>"),
        pl.col("voter").str.replace("liar 1", "[bold]evil</td>"),
    )
    table.write_csv(tmp_path / "v.csv")
    done = here("audit", "v.csv", "--top", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "[bold]evil</td>" in done.stdout
    page = (tmp_path / "results" / "audit" / "v" / "report.html").read_text(encoding="utf-8")
    assert "[bold]evil&lt;/td&gt;" in page
    assert "<b>[red]" not in page


def test_stress_shows_every_size_and_writes_a_plot(here, votes_file, tmp_path):
    done = here(
        "stress",
        str(votes_file),
        "--attack",
        "promote",
        "--target",
        "Fir",
        "--votes",
        "70",
        "--voters",
        "3",
        "--figures",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    out = tmp_path / "results" / "stress" / "votes"
    frame = pl.read_csv(out / "stress.csv")
    assert frame["size"].to_list() == [0, 10, 20, 30, 40, 50, 60, 70]
    assert frame["liars_flagged"].to_list()[-1] == 3
    assert (out / "stress.png").read_bytes().startswith(b"\x89PNG")
    record = json.loads((out / "stress.json").read_text(encoding="utf-8"))
    assert record["settings"]["target"] == "Fir"
    assert record["summary"][0] in done.stdout


def test_cost_names_the_cheapest_campaign_and_writes_a_plot(here, votes_file, tmp_path):
    limits = ["--voters", "9", "--votes-per-day", "2", "--days", "1", "--runs", "1"]
    done = here("cost", str(votes_file), "--figures", *limits, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    out = tmp_path / "results" / "cost" / "votes"
    frame = pl.read_csv(out / "cost.csv")
    assert frame["most_votes_each"].to_list() == [1, 2]
    assert (out / "cost.png").read_bytes().startswith(b"\x89PNG")
    record = json.loads((out / "cost.json").read_text(encoding="utf-8"))
    assert record["settings"]["seeds"] == [0]
    assert record["rows"] == frame.to_dicts()
    page = html.unescape((out / "report.html").read_text(encoding="utf-8"))
    for sentence in record["summary"]:
        assert sentence in done.stdout
        assert sentence in page
    assert "votes allowed per voter" in done.stdout


@pytest.mark.usefixtures("blank_figures")
@pytest.mark.parametrize("attack", ["random-flips", "early-flips"])
def test_flips_need_no_target(here, votes_file, tmp_path, attack):
    done = here("stress", str(votes_file), "--attack", attack, "--votes", "3", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(r"gets \d+ voters? flagged; after the audit|gets no voter flagged.", done.stdout)
    record = json.loads((tmp_path / "results" / "stress" / "votes" / "stress.json").read_text())
    assert record["settings"]["attack_voters"] is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["stress", "FILE"], "needs a target"),
        (["stress", "FILE", "--target", "Ook"], "did you mean 'Oak'"),
        (["stress", "FILE", "--attack", "early-flips", "--votes", "99999"], "have a winner"),
        (["cost", "FILE", "--item", "Ook"], "did you mean 'Oak'"),
        (["audit", "missing.csv"], "missing.csv"),
        (["audit", "FILE", "--voter", "whom"], "votes.csv has no column 'whom'; its columns: first, second, winner"),
        (["rank", "FILE", "--out", "FILE"], "cannot write to"),
    ],
)
def test_one_sentence_for_what_was_wrong(here, votes_file, tmp_path, arguments, words):
    done = here(*[str(votes_file) if a == "FILE" else a for a in arguments], cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stderr.count("\n") == 1
    assert words in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_option_is_explained_without_jargon(here, votes_file, tmp_path):
    done = here("stress", str(votes_file), "--attack", "foo", cwd=tmp_path)
    assert done.returncode == 2
    assert "Value error" not in done.stderr
    assert "'foo' is not one of" in done.stderr
    assert re.search(r"stress \[OPTIONS\] FILE\n", done.stderr)


def written_poll(folder, wins, of, voters, others=""):
    rows = "".join(f"tea,milk,{'first' if n % of < wins else 'second'},v{n % voters}\n" for n in range(400))
    (folder / "poll.csv").write_text("first,second,winner,voter\n" + rows + others)
    return "poll.csv"


@pytest.mark.usefixtures("blank_figures")
@pytest.mark.parametrize(
    ("reason", "wins", "others", "words"),
    [
        ("fragile", 5, "tea,milk,first,Ann\n", r"votes changes first place .* \(--fail-on fragile\)"),
        ("undecided", 5, "", r".*\(--fail-on undecided\)"),
    ],
)
def test_what_an_audit_shall_fail_on_gives_exit_code_1_and_a_report(here, tmp_path, reason, wins, others, words):
    path = written_poll(tmp_path, wins, 10, 40, others)
    done = here("audit", path, "--top", "1", "--fail-on", reason, "--quiet", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(rf"fairduel: .*{words}\n", done.stderr)
    assert (tmp_path / "results" / "audit" / "poll" / "report.html").exists()


@pytest.mark.usefixtures("blank_figures")
def test_an_audit_may_fail_on_flags(votes_file, here, tmp_path):
    done = here("audit", votes_file, "--top", "1", "--fail-on", "flag", "--quiet", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "fairduel: 2 voters flagged (--fail-on flag).\n")


@pytest.mark.usefixtures("blank_figures")
def test_a_good_audit_does_not_fail(here, tmp_path):
    reasons = [word for reason in ("flag", "fragile", "undecided") for word in ("--fail-on", reason)]
    done = here("audit", written_poll(tmp_path, 7, 10, 39), "--top", "1", *reasons, "--quiet", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.usefixtures("blank_figures")
def test_demo_finds_the_liars_and_shows_figure_1_on_one_page(here, tmp_path, monkeypatch):
    monkeypatch.setattr("fairduel.cli.votes.demo_command._RUNS", 2)
    done = here("demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    out = tmp_path / "results" / "demo"
    assert (out / "report.html").exists()
    votes, reported = read_votes(out / "votes.csv").votes, (out / "report.html").read_text()
    found = audit(votes, top=1)
    for sentence in found.headlines():  # what the demo says is what the audit of its file says
        assert sentence in done.stdout
        assert sentence in reported
    assert "If everybody were honest, Alder would be first." in done.stdout
    assert found.verdicts[0].leader == "Alder"
    caught = len(found.voters.filter("flagged"))
    assert f"The audit flags {caught} of 18 liars and 0 of 132 honest voters." in done.stdout
    assert len(re.findall(r"RCDB has [0-9.]+ \[.*\] times the regret of the best baseline", done.stdout)) == 6
    answer = next(line for line in done.stdout.splitlines() if line.startswith("RCDB, with one setting"))
    assert done.stdout.index(answer) > done.stdout.rindex("times the regret")  # the answer is last
    assert done.stdout.endswith(f"Report: {Path('results/demo/report.html')}\n")


def test_ctrl_c_leaves_in_one_sentence_and_changes_nothing(votes_file, here, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "fairduel.cli.votes.stress_command.stress", lambda *_, **__: os.kill(os.getpid(), signal.SIGINT)
    )
    done = here("stress", votes_file, "--target", "Oak", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (130, "fairduel: stopped: no report was written.\n")
    assert list(tmp_path.iterdir()) == []
