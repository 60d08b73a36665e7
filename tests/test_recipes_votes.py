"""The recipes for readers, shapes, voter tests and report sections of CONTRIBUTING.md, followed step by step."""

import re
import textwrap
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from fairduel.cli import main
from fairduel.errors import BadInputError
from fairduel.report.text_table import TextTable, tabulate
from fairduel.report.votes import audit_page, ranking_page
from fairduel.report.votes.ranking_page import Section
from fairduel.report.votes.votes_tables import fragility_cells
from fairduel.votes import read_votes
from fairduel.votes.attacking.liars import arena
from fairduel.votes.auditing import voters
from fairduel.votes.auditing.voter_columns import _of_kind
from fairduel.votes.auditing.voters import audit_voters
from fairduel.votes.ranking.standings import RANKING
from fairduel.votes.reading import file_readers, shapes
from fairduel.votes.reading.records import FAULT, LINE
from fairduel.votes.reading.shapes import Shape, Shaped

CONTRIBUTING = (Path(__file__).parent.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
LINES = ["tea > milk (Ann)", "milk > tea (Bob)", "tea > juice (Ann)", "juice or tea?", "juice > milk (Bob)"]


def read_chevrons(path, _):
    """Read lines like  tea > milk (Ann)."""
    text = pl.Series("line", path.read_text().splitlines())
    pattern = r"^(?<first>\w+) > (?<second>\w+) \((?<voter>\w+)\)$"
    table = text.to_frame().select(pl.col("line").str.extract_groups(pattern)).unnest("line")
    broken = pl.col("first").is_null()
    return table.with_columns(
        pl.when(~broken).then(pl.lit("first")).alias("winner"),
        pl.when(broken).then(pl.lit("no chevron")).alias(FAULT),
        pl.when(broken).then(text).alias(LINE),
    ), 1


@pytest.fixture
def votes_file(tmp_path):
    path = tmp_path / "votes.chevrons"
    path.write_text("\n".join(LINES) + "\n")
    return path


@pytest.fixture
def reader(monkeypatch):
    monkeypatch.setitem(file_readers.READERS, ".chevrons", read_chevrons)


def fairduel(monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", ["fairduel", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        main()
    return stopped.value.code


def test_without_the_entry_the_file_is_refused(votes_file):
    with pytest.raises(BadInputError, match=r"unsupported file type: votes\.chevrons"):
        read_votes(votes_file)


@pytest.mark.usefixtures("reader")
def test_a_reader_is_a_function_and_an_entry(votes_file):
    reading = read_votes(votes_file)
    assert reading.votes.items == ("juice", "milk", "tea")
    assert reading.votes.voters == ("Ann", "Bob")
    assert reading.votes.row.tolist() == [1, 2, 3, 5]
    assert reading.set_aside.select("row", "reason", "line").rows() == [(4, "no chevron", "juice or tea?")]


def home_and_away(frame, column):
    """Matches with the goals of both teams."""
    home, away = pl.col(column["home_goals"]).cast(pl.Int64), pl.col(column["away_goals"]).cast(pl.Int64)
    winner = (
        pl.when(home > away).then(pl.lit("first")).when(home < away).then(pl.lit("second")).otherwise(pl.lit("tie"))
    )
    roles = {"first": column["home"], "second": column["away"], "winner": "goals"}
    return Shaped(frame.with_columns(winner.alias("goals")), roles)


def test_a_shape_is_a_function_and_an_entry(monkeypatch, tmp_path):
    path = tmp_path / "matches.csv"
    path.write_text("Home,Away,Home goals,Away goals\nAjax,Bari,2,1\nBari,Ajax,0,0\nBari,Ajax,0,3\n")
    with pytest.raises(BadInputError, match="no column found"):
        read_votes(path)
    shape = Shape(("home", "away", "home_goals", "away_goals"), home_and_away)
    monkeypatch.setattr(shapes, "SHAPES", [*shapes.SHAPES, shape])
    votes = read_votes(path).votes
    assert [votes.items[item] for item in votes.first] == ["Ajax", "Bari", "Bari"]
    assert votes.result.tolist() == [1.0, 0.5, 0.0]


@pytest.fixture
def in_turn(monkeypatch):
    """Follow the recipe for a voter test: two files."""
    recipe = CONTRIBUTING.split("## Add a voter test\n")[1].split("\n## ")[0]
    exec(textwrap.dedent(re.search(r" *```py\n(.*?)```", recipe, re.DOTALL)[1]), names := dict(vars(voters)))
    [(entry, table)] = re.findall(r"Add `(.*?,)` to `(\w+)` there", recipe)
    for kind, pattern in eval(f"{{{entry}}}", names).items():
        monkeypatch.setitem(getattr(voters, table), kind, pattern)
        monkeypatch.setattr(voters, "VOTERS", [*voters.VOTERS, _of_kind(kind)])
    [kind] = re.findall(r'Add `"(.*?)"` to `KINDS` in `votes/auditing/voter_columns.py`', recipe)
    assert kind in voters.PATTERNS


@pytest.mark.usefixtures("in_turn")
def test_a_voter_test_is_two_functions_and_two_entries():
    honest = [audit_voters(arena(liars={}, seed=seed)[0]) for seed in range(3)]
    evidence = np.concatenate([found.log_evidence["in turn"] for found in honest])
    assert np.exp(evidence).mean() <= 1.0
    assert not any(found.flagged.any() for found in honest)
    votes, _ = arena(liars={}, seed=0)
    voter = int(np.bincount(votes.voter).argmax())
    own, result = np.flatnonzero(votes.voter == voter), votes.result.copy()
    result[own] = np.arange(len(own)) % 2
    found = audit_voters(replace(votes, result=result))
    assert [why for why in found.why if why] == [f"took the sides in turn {len(own) - 1} times in {len(own)} votes"]
    assert found.flagged[voter]
    assert found.to_frame()["log10_in_turn"].max() > 2.0


@pytest.mark.usefixtures("reader", "blank_figures")
def test_a_section_of_a_ranking_is_a_function_and_an_entry(monkeypatch, votes_file, tmp_path):
    def lower_half(ranking, votes):
        last = ranking.records()[len(votes.items) // 2 :]
        return Section("The lower half", [f"{len(last)} items."], [tabulate(RANKING, last, "report")])

    monkeypatch.setattr(ranking_page, "RANKING_SECTIONS", [lower_half, *ranking_page.RANKING_SECTIONS])
    assert fairduel(monkeypatch, "rank", votes_file, "--out", tmp_path) == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.index("<h2>The lower half</h2>") < page.index("<h2>Ranking</h2>")
    assert "<p>2 items.</p>" in page


@pytest.mark.usefixtures("reader", "blank_figures")
def test_a_section_of_an_audit_is_a_function_and_an_entry(monkeypatch, votes_file, tmp_path):
    def in_short(audit):
        return Section("Fragile", tables=[TextTable.of(map(fragility_cells, audit.fragility), ["votes are", "share"])])

    def silent(_):
        return None

    monkeypatch.setattr(audit_page, "AUDIT_SECTIONS", [*audit_page.AUDIT_SECTIONS, silent, in_short])
    assert fairduel(monkeypatch, "audit", votes_file, "--top", "1", "--out", tmp_path) == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.index("<h2>How fragile is the result?</h2>") < page.index("<h2>Fragile</h2>")
    assert page.count("<h2>") == 8  # five of every audit, this one, the settings, and how it was made
