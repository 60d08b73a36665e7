"""What a hostile or unusable file can do to a terminal, a spreadsheet, a picture, or the verdict: nothing."""

import csv
import json
import re
import sys
import xml.dom.minidom

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairduel.cli import main, output
from fairduel.report import drawing
from fairduel.report.drawing import image
from fairduel.report.text_table import TextTable
from fairduel.report.votes.ranking_page import draw_win_matrix
from fairduel.votes.reading.read import read_votes
from fairduel.words import cell_text, printable

ESCAPES = "\x1b[2J\x1b]0;owned\x07 \x9b31m \r\u202e\u2066"
HOSTILE = [f"tea{ESCAPES}", "=cmd|' /C calc'!A0", "@SUM(1+1)", "-2+3+cmd|x", "日本語 <b>&", "two\nlines\ttabs"]
UNSAFE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture
def fairduel(monkeypatch, capsys, tmp_path):
    """Run a command in an empty folder; return its exit code, stdout and stderr as they are."""

    def run(*arguments):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["fairduel", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code or 0, *capsys.readouterr()

    return run


def write_votes(path, names, encoding="utf-8", **options):
    rng = np.random.default_rng(3)
    with path.open("w", encoding=encoding, newline="") as file:
        writer = csv.writer(file, **options)
        writer.writerow(["first", "second", "winner", "voter"])
        for number in range(200):
            one, other = rng.permutation(len(names))[:2]
            winner = "first" if rng.random() < 0.5 + 0.08 * (other - one) else "second"
            writer.writerow([names[one], names[other], winner, f"=voter {number % 9}"])


# ---------------------------------------------------------------------- who won


@pytest.mark.usefixtures("blank_figures")
def test_a_file_from_excel_ranks_all_its_items(fairduel, tmp_path):
    names = ["Käse", "Crème", "tea", "milk", "Öl"]
    write_votes(tmp_path / "utf8.csv", names)
    write_votes(tmp_path / "excel.csv", names, "cp1252", delimiter=";")
    (tmp_path / "excel.csv").write_bytes(b"sep=;\r\n" + (tmp_path / "excel.csv").read_bytes())
    code, shown, _ = fairduel("rank", "excel.csv")
    assert code == 0
    assert "Excel.csv is not UTF-8 and was read as Windows-1252" in shown
    record = json.loads((tmp_path / "results" / "rank" / "excel" / "ranking.json").read_text())
    assert record["settings"]["set_aside"] == {}
    assert {standing["item"] for standing in record["ranking"]} == set(names)
    one, other = (read_votes(tmp_path / name).votes for name in ("utf8.csv", "excel.csv"))
    for field in ("items", "first", "second", "result"):
        np.testing.assert_array_equal(getattr(one, field), getattr(other, field))


@pytest.mark.parametrize("command", ["rank", "audit", "explain", "stress", "review", "cost"])
def test_no_winner_is_named_if_most_rows_are_unusable(fairduel, tmp_path, command):
    good, empty = "tea,milk,first\ntea,milk,second\n", ",,\n"
    path = tmp_path / "votes.csv"
    path.write_text("first,second,winner\n" + 2 * good + 3 * "tea,milk,?\n" + 2 * "tea,,first\n" + 9 * empty)
    code, shown, error = fairduel(command, "votes.csv")
    assert (code, shown) == (2, "")
    file = f"results/{command}/votes/set-aside.csv"
    assert error == (
        "fairduel: votes.csv has too few votes for a result: 5 of 9 rows are unusable "
        f"(see {file}); main reason: unknown winner '?' (3).\n"
    )
    assert len((tmp_path / file).read_text().splitlines()) == 15
    assert not (tmp_path / file).with_name("report.html").exists()


@pytest.mark.usefixtures("blank_figures")
def test_half_of_the_rows_and_empty_ones_may_be_unusable(fairduel, tmp_path):
    good = "tea,milk,first\nmilk,tea,first\ntea,milk,tie\n"
    (tmp_path / "votes.csv").write_text("first,second,winner\n" + good + 3 * "tea,,first\n" + 99 * ",,\n")
    assert fairduel("rank", "votes.csv")[0] == 0


def test_votes_of_weight_0_are_refused_by_name(fairduel, tmp_path):
    (tmp_path / "votes.csv").write_text("first,second,winner,weight\ntea,milk,first,0\nmilk,tea,first,0\n")
    code, _, error = fairduel("rank", "votes.csv")
    assert code == 2
    assert error == "fairduel: no vote in votes.csv counts: column 'weight' is 0 throughout (--weight none).\n"


# ---------------------------------------------------------------------- names


@pytest.fixture
def hostile(tmp_path):
    write_votes(tmp_path / "votes.csv", HOSTILE)
    with (tmp_path / "votes.csv").open("a") as file:
        file.write(f"{HOSTILE[1]},tea,first{ESCAPES[0]},=x\n")


def safe_cells(path):
    with path.open(newline="") as file:
        rows = list(csv.reader(file))
    return [cell for row in rows for cell in row], rows


@pytest.mark.usefixtures("hostile")
@pytest.mark.parametrize(
    "command",
    [
        ["rank"],
        ["audit", "--top", "1"],
        ["explain"],
        ["stress", "--target", HOSTILE[0]],
        ["review"],
        ["cost", "--days", "1", "--voters", "20"],
    ],
)
def test_names_cannot_leave_their_place(fairduel, tmp_path, command):
    code, shown, error = fairduel(command[0], "votes.csv", *command[1:], "--figures", "--out", "out")
    assert code == 0, error
    assert not UNSAFE.search(shown + error)
    assert "tea\\x1b[2J" in shown
    out = tmp_path / "out"
    for path in out.glob("*.svg"):
        xml.dom.minidom.parseString(path.read_bytes())
    assert not UNSAFE.search((out / "report.html").read_text().replace("\t", ""))
    for path in out.glob("*.csv"):
        cells, _ = safe_cells(path)
        assert [cell for cell in cells if re.match(r"[=@\t\r]|[+-](?!inf$|[\d.e-]+$)", cell)] == [], path.name
    for path in out.glob("*.tex"):
        assert not UNSAFE.search(path.read_text())


@pytest.mark.usefixtures("hostile", "blank_figures")
def test_numbers_in_csv_files_and_json_are_untouched(fairduel, tmp_path):
    code, shown, _ = fairduel("rank", "votes.csv", "--out", "out", "--json")
    assert code == 0
    assert not UNSAFE.search(shown)
    ranking = json.loads(shown)["ranking"]
    assert {standing["item"] for standing in ranking} == set(HOSTILE)
    _, [header, *rows] = safe_cells(tmp_path / "out" / "ranking.csv")
    scores = [float(row[header.index("score")]) for row in rows]
    assert min(scores) < 0 < max(scores)
    assert scores == pytest.approx([standing["score"] for standing in ranking])
    assert [row[header.index("item")].removeprefix("'") for row in rows] == [standing["item"] for standing in ranking]
    table = TextTable(["item", "score"], [["-x", "-0.5"], ["=x", "+12 [+8, +16]"], ["+3", "+1 (one run)"]])
    assert table.csv() == "item,score\n'-x,-0.5\n'=x,\"+12 [+8, +16]\"\n+3,+1 (one run)\n"


@given(st.text("=+-@\t\r\n 019.,eE%ab|![](one run)\x1b\x9b\u202e\ud800\uffff漢😀"))
def test_any_text_is_safe_in_a_terminal_and_a_spreadsheet(text):
    assert not UNSAFE.search(printable(text))
    assert "\n" not in printable(text)
    printable(text).encode()
    assert cell_text(text) in (text, f"'{text}")
    assert not re.match(
        r"[=@\t\r]|[+-](?!\.?[0-9][0-9., \[\]+%eE±−-]*$)", cell_text(text).replace("(one run)", ""), re.DOTALL
    )


def test_printing_escapes_what_a_terminal_would_obey(capsys, monkeypatch):
    for console in (output.console, output.notices):
        monkeypatch.setattr(console, "quiet", False)
    output.say(ESCAPES)
    output.notify(ESCAPES)
    output.warn(ESCAPES)
    output.say_report(ESCAPES)
    output.print_table(TextTable(["item"], [[ESCAPES], [f"{ESCAPES}\n"]], ESCAPES), text=["item"])
    output.print_records(["item"], [[ESCAPES]])
    shown, error = capsys.readouterr()
    assert not UNSAFE.search(shown + error)
    assert shown.count("\\x1b]0;owned\\x07") == 6
    assert error.count(printable(ESCAPES)) == 2
    assert printable("日本語 é 😀 a\u200bb") == "日本語 é 😀 a\u200bb"


@pytest.mark.parametrize("name", ["[/bold].csv", "[/bold][red]x[/].csv", "a\x1b[31mb.csv", "=x.csv", "\udcff.csv"])
@pytest.mark.parametrize("terminal", [False, True])
def test_any_missing_file_is_named(fairduel, monkeypatch, name, terminal):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    code, _, error = fairduel("rank", name)
    assert (code, error) == (2, f"fairduel: cannot read {printable(name)}: No such file or directory.\n")


@pytest.mark.usefixtures("blank_figures")
def test_any_path_can_be_read_and_written(fairduel, tmp_path):
    path = tmp_path / "[" / "bold]" / "[red]\x1b[31m\udcff.csv"
    path.parent.mkdir(parents=True)
    write_votes(path, ["tea", "milk"])
    code, shown, error = fairduel("rank", str(path.relative_to(tmp_path)))
    assert code == 0, error
    assert "Report: results/rank/[red]\\x1b[31m\\udcff/report.html\n" in shown
    assert not UNSAFE.search(shown + error)
    assert (tmp_path / "results" / "rank" / path.stem / "report.html").exists()


# ---------------------------------------------------------------------- figures


def test_characters_without_a_font_are_drawn_by_the_browser(monkeypatch):
    monkeypatch.setattr(drawing, "_glyphs", lambda: frozenset(range(0x2100)))
    names = ["\U0001f9ea\u4e2d", "\u4e2d\U0001f9ea", "plain & <b>"]
    figure = draw_win_matrix(names, np.ones((3, 3)) - np.eye(3))
    svg = image(figure, "svg")
    texts = [node.firstChild.data for node in xml.dom.minidom.parseString(svg).getElementsByTagName("text")]
    assert [texts.count(name) for name in names] == [2, 2, 2]
    assert "—" not in "".join(texts)
    assert image(figure, "svg") == svg
    assert image(figure, "png").startswith(b"\x89PNG")  # and no warning about glyphs
    assert image(figure, "pdf").startswith(b"%PDF")


def test_other_figures_are_drawn_as_before():
    svg = image(draw_win_matrix(["té", "milk"], np.ones((2, 2)) - np.eye(2)), "svg")
    assert b"<text" not in svg
