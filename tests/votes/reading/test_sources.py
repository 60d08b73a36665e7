"""Votes from tables in memory, Excel files and standard input, and the rows that a filter keeps."""

import datetime as dt
import gzip
import io
import json
import sys

import datasets
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xlsxwriter

from fairduel import BadInputError
from fairduel.votes import Votes, rank, read_votes
from fairduel.votes.attacking.liars import arena


def table():
    """Some votes of a made-up arena, with missing values."""
    votes, _ = arena(voters=12, votes_each=8, seed=3)
    names, people = np.array(votes.items), np.array(votes.voters)
    winner = np.array(["model_b", "tie", "model_a"])[(2 * votes.result).astype(int)]
    frame = pl.DataFrame({"model_a": names[votes.first], "model_b": names[votes.second], "winner": winner})
    return frame.with_columns(
        judge=pl.Series(people[votes.voter]).set(pl.Series(np.arange(len(votes)) == 3), None),
        turn=pl.Series(np.arange(len(votes)) % 3),
        anony=pl.Series(np.arange(len(votes)) % 2 == 0),
    )


def same(one: Votes, other: Votes):
    assert one.items == other.items
    for name in ("first", "second", "result", "weight"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert [one.voters[v] for v in one.voter][4:] == [other.voters[v] for v in other.voter][4:]


class OnlyArrow:
    def __init__(self, frame):
        self.frame = frame

    def __arrow_c_stream__(self, requested_schema=None):
        return self.frame.__arrow_c_stream__(requested_schema)


SOURCES = {
    "polars": lambda frame: frame,
    "lazy": lambda frame: frame.lazy(),
    "pandas": lambda frame: frame.to_pandas().set_index(np.arange(len(frame))[::-1]),
    "categories": lambda frame: frame.to_pandas().astype({"model_a": "category", "winner": "category"}),
    "arrow": lambda frame: frame.to_arrow(),
    "batches": lambda frame: pa.RecordBatchReader.from_batches(frame.to_arrow().schema, frame.to_arrow().to_batches()),
    "any with arrow": OnlyArrow,
    "hugging face": lambda frame: datasets.Dataset.from_dict(frame.to_dict(as_series=False)),
    "selection": lambda frame: datasets.Dataset.from_dict(
        pl.concat([frame[:7], frame]).to_dict(as_series=False)
    ).select(range(7, len(frame) + 7)),
    "dicts": lambda frame: frame.to_dicts(),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_a_table_in_memory_gives_the_ranking_of_the_file(tmp_path, kind):
    frame = table()
    frame.write_csv(tmp_path / "votes.csv")
    file, memory = read_votes(str(tmp_path / "votes.csv")), read_votes(SOURCES[kind](frame))
    same(memory.votes, file.votes)
    assert memory.votes.row.tolist() == list(range(len(frame)))
    assert rank(memory.votes, draws=100).records() == rank(file.votes, draws=100).records()


@pytest.mark.parametrize("source", [7, None, object(), {"train": datasets.Dataset.from_dict({"a": [1]})}, [], [1, 2]])
def test_what_is_no_table_is_one_sentence(source):
    with pytest.raises(BadInputError, match=r"(cannot read votes from|the list holds no votes).*\.$"):
        read_votes(source)


def test_pandas_without_arrow_is_one_sentence():
    class Frame:
        def __arrow_c_stream__(self, _=None):
            raise ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow")

    with pytest.raises(BadInputError, match="cannot read votes from Frame: install pyarrow"):
        read_votes(Frame())


# ---------------------------------------------------------------------- Excel


def workbook(path, rows, *, top=0, sheets=("votes",)):
    with xlsxwriter.Workbook(path, {"default_date_format": "yyyy-mm-dd hh:mm"}) as book:
        for name in sheets:
            sheet = book.add_worksheet(name)
            for number, row in enumerate(rows):
                for place, value in enumerate(row):
                    sheet.write(number + top, place, value)


MAY = dt.datetime.fromisoformat("2024-05-01T10:00")
ROWS = [
    ["first", "second", "winner", "time"],
    [7, "milk", 1, MAY],
    [],
    ["tea", 7, "second", MAY + dt.timedelta(minutes=1)],
]


@pytest.mark.parametrize("top", [0, 2])
def test_excel_keeps_its_row_numbers(tmp_path, top):
    workbook(tmp_path / "votes.xlsx", ROWS, top=top)
    reading = read_votes(tmp_path / "votes.xlsx")
    votes = reading.votes
    assert votes.items == ("7", "milk", "tea")
    assert votes.result.tolist() == [1.0, 0.0]
    assert votes.row.tolist() == [top + 2, top + 4]
    assert votes.time[1] - votes.time[0] == 60.0
    assert reading.set_aside.select("row", "reason").rows() == [(top + 3, "empty row")]


def test_excel_reads_the_first_sheet_and_says_so(tmp_path):
    workbook(tmp_path / "votes.xlsx", ROWS, sheets=("May", "June"))
    assert "votes.xlsx has 2 sheets; only the first, May, was read." in read_votes(tmp_path / "votes.xlsx").warnings


@pytest.mark.parametrize(
    ("rows", "reason"),
    [([], "is empty"), ([["first", "first"]], "two columns named 'first'"), ([["x"], ["y"]], "no column found")],
)
def test_excel_without_votes_is_one_sentence(tmp_path, rows, reason):
    workbook(tmp_path / "votes.xlsx", rows)
    with pytest.raises(BadInputError, match=reason):
        read_votes(tmp_path / "votes.xlsx")


def test_excel_without_its_library_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastexcel", None)
    workbook(tmp_path / "votes.xlsx", ROWS)
    with pytest.raises(BadInputError, match=r"needs fastexcel: install it with  pip install 'fairduel\[excel\]'"):
        read_votes(tmp_path / "votes.xlsx")


# ---------------------------------------------------------------------- standard input


def as_bytes(frame, kind, folder):
    if kind == "xlsx":
        workbook(folder / "votes.xlsx", [frame.columns, *frame.rows()])
        return (folder / "votes.xlsx").read_bytes()
    if kind == "json":
        return json.dumps(frame.to_dicts()).encode()
    buffer = io.BytesIO()
    {"parquet": frame.write_parquet, "jsonl": frame.write_ndjson}.get(kind, frame.write_csv)(buffer)
    return buffer.getvalue().replace(b",", b"\t") if kind == "tsv" else buffer.getvalue()


@pytest.mark.parametrize("kind", ["csv", "tsv", "json", "jsonl", "csv.gz", "jsonl.gz", "utf-16", "xlsx", "parquet"])
def test_standard_input_is_read_by_what_it_is(tmp_path, monkeypatch, kind):
    frame = table()
    frame.write_csv(tmp_path / "votes.csv")
    content = as_bytes(frame, kind.removesuffix(".gz"), tmp_path)
    content = gzip.compress(content) if kind.endswith("gz") else content
    content = content.decode().encode("utf-16") if kind == "utf-16" else content
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    same(read_votes("-").votes, read_votes(tmp_path / "votes.csv").votes)


@pytest.mark.parametrize("content", [b"", b"\x1f\x8b", b"[", b"PAR1", b"PK\3\4", b"\x1f\x8b\x08torn", b"\0\0"])
def test_broken_standard_input_is_one_sentence(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    with pytest.raises(BadInputError, match="stdin") as raised:
        read_votes("-")
    assert "\n" not in str(raised.value)
    assert "/tmp" not in str(raised.value)


# ---------------------------------------------------------------------- filters


def test_a_filter_keeps_row_numbers_and_is_not_a_problem(tmp_path):
    frame = table()
    frame.write_csv(tmp_path / "votes.csv")
    whole = read_votes(tmp_path / "votes.csv")
    reading = read_votes(tmp_path / "votes.csv", where={"turn": ["1", "2.0"], "anony": True})
    kept = (frame["turn"] > 0) & frame["anony"]
    assert reading.votes.row.tolist() == (kept.arg_true() + 2).to_list()
    np.testing.assert_array_equal(reading.votes.result, whole.votes.result[kept.to_numpy()])
    assert (reading.left_out, reading.rows, dict(reading.problems)) == (len(frame) - kept.sum(), len(frame), {})
    assert not any("anony" in warning for warning in reading.warnings)
    assert any("rows have anony = false" in warning for warning in whole.warnings)


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ({"trun": 1}, "has no column 'trun': did you mean 'turn'"),
        ({"turn": 9}, "no row of the table has turn = 9: its most frequent values are "),
        ({"meta": 1}, "name a value in it"),
        ({"meta.y": 1}, "it has no values"),
    ],
)
def test_a_filter_that_cannot_be_is_one_sentence(where, reason):
    frame = table().with_columns(meta=pl.struct(x=pl.lit(1)))
    with pytest.raises(BadInputError, match=reason):
        read_votes(frame, where=where)


def test_no_filter_hides_broken_lines(tmp_path):
    text = "first,second,winner,turn\ntea,milk,a,1\ntea,milk,a,1,2,3\ntea,milk,b,2\n"
    (tmp_path / "votes.csv").write_text(text)
    reading = read_votes(tmp_path / "votes.csv", where={"turn": 1})
    assert reading.set_aside.select("row", "reason").rows() == [(3, "more values than columns")]
    assert (len(reading.votes), reading.left_out, reading.rows) == (1, 1, 3)


def test_a_role_may_be_inside_of_a_column(tmp_path):
    users = [{"user": {"id": number}, "topic": "hot"} for number in (4, 5)]
    lines = [{"a": "tea", "b": "milk", "winner": "a", "meta": user} for user in users]
    (tmp_path / "votes.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    inside = {"voter": "meta.user.id", "context": "meta.topic"}
    for source in (tmp_path / "votes.jsonl", pl.DataFrame(lines), lines):
        votes = read_votes(source, **inside).votes
        assert (votes.voters, votes.contexts) == (("4", "5"), ("hot",))
    with pytest.raises(BadInputError, match=r"has no column 'mta\.user'"):
        read_votes(tmp_path / "votes.jsonl", voter="mta.user")


def test_pandas_missing_values_are_missing():
    frame = pd.DataFrame({"left": ["tea", None], "right": ["milk", "tea"], "winner": ["left", "left"]})
    assert dict(read_votes(frame).problems) == {"no first item": 1}
