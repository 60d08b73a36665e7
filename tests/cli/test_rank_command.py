"""``fairduel rank`` as a user meets it."""

import csv
import json
import re

import pytest

from fairduel.cli import main
from fairduel.votes import audit_voters, read_votes, trusted_weights
from fairduel.votes import rank as rank_votes
from fairduel.votes.attacking.liars import arena

pytestmark = pytest.mark.usefixtures("blank_figures")

ROWS = ["tea,milk,first,Ann", "tea,milk,first,Bob", "milk,tea,tie,Cleo", "milk,juice,first,Ann", "juice,tea,second,Bob"]
ROWS += ["juice,milk,first,Dan", "tea,juice,first,Eve", "milk,tea,first,Fay"]


def rank(monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", ["fairduel", "rank", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        main()
    return stopped.value.code


@pytest.fixture
def votes(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("first,second,winner,voter\n" + "\n".join(ROWS) + "\n")
    return path


def test_a_ranking_is_shown_and_written(monkeypatch, capsys, tmp_path, votes):
    assert rank(monkeypatch, votes, "--out", tmp_path / "out") == 0
    shown = capsys.readouterr().out
    assert "It is too early to say which of 3 items is the best." in shown
    assert "8 votes on 3 items are fewer than 5 per item." in shown
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"ranking.csv", "ranking.json", "report.html", "command.json"} <= names
    assert "set-aside.csv" not in names
    with (tmp_path / "out" / "ranking.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert rows[0]["item"] == "tea"
    record = json.loads((tmp_path / "out" / "ranking.json").read_text())
    assert record["ranking"][0]["item"] == "tea"
    assert float(rows[0]["score"]) == pytest.approx(record["ranking"][0]["score"])
    settings = record["settings"]
    assert (settings["votes"], settings["items"], settings["voters"], settings["set_aside"]) == (8, 3, 6, {})
    assert settings["columns"]["voter"] == "voter"
    assert record["versions"]["fairduel"]
    assert record["command"].startswith("fairduel rank ")


def test_certificates_are_shown_and_written(monkeypatch, capsys, tmp_path, votes):
    assert rank(monkeypatch, votes, "--out", tmp_path / "out") == 0
    shown = capsys.readouterr().out
    assert re.search(r"won +false votes +lying voters$", shown, re.MULTILINE)
    assert "from the proven minimum to the fewest found" in shown
    record = json.loads((tmp_path / "out" / "ranking.json").read_text())
    assert record["summary"][0] == record["verdicts"][0]["headline"]
    assert [row["votes_found"] for row in record["ranking"]] == [2, 1, 1]
    assert {row["rival"] for row in record["ranking"]} <= {"tea", "milk", "juice"}
    with (tmp_path / "out" / "ranking.csv").open() as file:
        assert [row["voters_proven"] for row in csv.DictReader(file)] == ["1", "1", "1"]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "a voter who lies may answer all their duels in any way" in page
    assert page.count("lying voters</th>") == 1
    assert rank(monkeypatch, votes, "--voter", "none", "--out", tmp_path / "out") == 0
    shown = capsys.readouterr().out
    assert "False votes: how many it takes" in shown
    assert not re.search("won +false votes +lying voters", shown)


def test_the_page_is_complete_in_one_file(monkeypatch, tmp_path, votes):
    votes.write_text(votes.read_text().replace("tea", "<b>tea & co</b>"))
    assert rank(monkeypatch, votes, "--out", tmp_path / "out") == 0
    page = (tmp_path / "out" / "report.html").read_text()
    assert "&lt;b&gt;tea &amp; co&lt;/b&gt;" in page
    assert "<b>tea" not in page
    assert page.count("<figure") == 2
    assert not re.search(r'(src|href)="(?!data:|#)', page)
    for setting in ("none", "first = first, second = second, winner = winner, voter = voter"):
        assert setting in page


def test_bad_rows_are_set_aside_until_the_file_is_mended(monkeypatch, capsys, tmp_path, votes):
    good = votes.read_text()
    votes.write_text(good + "tea,milk,nobody,Gus\ntea,,first,Gus\n")
    assert rank(monkeypatch, votes, "--out", tmp_path / "out") == 0
    assert "2 of 10 rows are unusable and were skipped" in capsys.readouterr().out
    kept = (tmp_path / "out" / "set-aside.csv").read_text().splitlines()
    assert kept == [
        "row,reason,first,second,winner,voter",
        "10,unknown winner 'nobody',tea,milk,nobody,Gus",
        "11,no second item,tea,,first,Gus",
    ]
    assert json.loads((tmp_path / "out" / "ranking.json").read_text())["settings"]["set_aside"] == {
        "unknown winner 'nobody'": 1,
        "no second item": 1,
    }
    assert rank(monkeypatch, votes, "--out", tmp_path / "strict", "--strict") == 2
    assert "row 10 is unusable (unknown winner 'nobody')" in capsys.readouterr().err
    assert not (tmp_path / "strict").exists()
    votes.write_text(good)
    assert rank(monkeypatch, votes, "--out", tmp_path / "out") == 0
    assert not (tmp_path / "out" / "set-aside.csv").exists()


def test_a_file_of_bad_rows_alone_keeps_them(monkeypatch, capsys, tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("first,second,winner\ntea,tea,first\n")
    assert rank(monkeypatch, path, "--out", tmp_path / "out") == 2
    assert "votes.csv has no votes: all its rows are unusable (see " in capsys.readouterr().err
    assert "item compared with itself" in (tmp_path / "out" / "set-aside.csv").read_text()
    path.write_text("first,second,winner\n")
    assert rank(monkeypatch, path, "--out", tmp_path / "none") == 2
    assert capsys.readouterr().err == "fairduel: votes.csv has no votes.\n"
    assert not (tmp_path / "none").exists()


def test_columns_features_and_settings_are_chosen(monkeypatch, tmp_path):
    path, features = tmp_path / "v.csv", tmp_path / "f.csv"
    path.write_text("x,y,who,person\n" + "\n".join(ROWS) + "\n")
    features.write_text("item,heat\ntea,3\nmilk,1\njuice,0\n")
    columns = ["--first", "x", "--second", "y", "--winner", "who", "--voter", "person"]
    options = ["--features", features, "--ties", "drop", "--weights", "fixed-point", "--lies", "2"]
    assert rank(monkeypatch, path, *columns, *options, "--out", tmp_path / "out") == 0
    settings = json.loads((tmp_path / "out" / "ranking.json").read_text())["settings"]
    assert (settings["ties"], settings["weights"], settings["lies"]) == ("drop", "fixed-point", 2.0)
    assert settings["features"] == "f.csv, divided by 3"
    assert rank(monkeypatch, path, *columns, *options, "--feature-map", "rbf(0.5)", "--out", tmp_path / "out") == 0
    mapped = json.loads((tmp_path / "out" / "ranking.json").read_text())["settings"]
    assert mapped["features"] == "rbf(0.5) of f.csv, divided by 3"
    assert rank(monkeypatch, path, *columns, "--feature-map", "rbf", "--out", tmp_path / "out") == 2
    assert rank(monkeypatch, path, *columns[:6], "--voter", "none", "--out", tmp_path / "out") == 0
    assert json.loads((tmp_path / "out" / "ranking.json").read_text())["settings"]["voters"] is None


@pytest.mark.parametrize("options", [["--lies", "0"], ["--ties", "drop"]])
def test_the_record_is_json_without_infinite_numbers(monkeypatch, tmp_path, options):
    path = tmp_path / "votes.csv"
    path.write_text("first,second,winner\ntea,milk,first\nmilk,tea,first\ntea,juice,tie\n")
    assert rank(monkeypatch, path, *options, "--out", tmp_path) == 0

    def refuse(constant):
        raise AssertionError(constant)

    json.loads((tmp_path / "ranking.json").read_text(), parse_constant=refuse)


@pytest.mark.parametrize("where", ["fairduel.cli.votes.recorded_votes.read_votes", "fairduel.cli._run"])
def test_control_c_is_one_sentence_anywhere(monkeypatch, capsys, votes, where):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(where, stop)
    assert rank(monkeypatch, votes) == 130
    assert capsys.readouterr().err == "fairduel: stopped.\n"


@pytest.mark.parametrize("arguments", [["missing.csv"], ["votes.xlsx"]])
def test_what_cannot_be_read_is_one_sentence(monkeypatch, capsys, tmp_path, arguments):
    monkeypatch.chdir(tmp_path)
    assert rank(monkeypatch, *arguments) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_an_audited_ranking_counts_votes_by_their_voters(monkeypatch, tmp_path):
    file = tmp_path / "votes.csv"
    arena(voters=40, liars={"promote": 3}, seed=3)[0].to_frame().write_csv(file)
    for folder, options in (("plain", []), ("audited", ["--audited"])):
        assert rank(monkeypatch, file, *options, "--out", tmp_path / folder) == 0
    plain, audited = (json.loads((tmp_path / name / "ranking.json").read_text()) for name in ("plain", "audited"))
    assert (plain["settings"]["audited"], audited["settings"]["audited"]) == (False, True)
    assert {row["mean_weight"] for row in plain["ranking"]} == {1.0}
    votes = read_votes(file).votes
    expected = rank_votes(votes, reliability=trusted_weights(votes, audit_voters(votes)))
    assert {row["item"]: row["score"] for row in audited["ranking"]} == pytest.approx(
        {standing.item: standing.score for standing in expected.standings}
    )
