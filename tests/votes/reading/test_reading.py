import datetime as dt
import gzip
import re

import numpy as np
import polars as pl
import pytest

from fairduel import BadInputError
from fairduel.votes.reading.fields import find_columns
from fairduel.votes.reading.file_readers import READERS
from fairduel.votes.reading.read import read_votes, votes_of

HEADER = "first,second,winner\n"


def written(folder, text, name="votes.csv"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read(folder, text, name="votes.csv", **settings):
    return read_votes(written(folder, text, name), **settings)


def named(votes):
    return [
        (votes.items[a], votes.items[b], float(r))
        for a, b, r in zip(votes.first, votes.second, votes.result, strict=True)
    ]


CLEAN = pl.DataFrame(
    {
        "model_a": ["tea", "milk", "Kakao", "tea"],
        "model_b": ["milk", "Kakao", "tea", "Kakao"],
        "winner": ["model_a", "model_b", "tie", "tie (bothbad)"],
        "judge": ["Ann", "Bob", "Ann", "Zoë"],
        "question_id": [81, 82, 81, 9],
        "tstamp": [1.5, 2.5, 4.0, 8.0],
        "weight": [1.0, 2.0, 0.0, 0.5],
    }
)
MEANT = [("tea", "milk", 1.0), ("milk", "Kakao", 0.0), ("Kakao", "tea", 0.5), ("tea", "Kakao", 0.5)]


@pytest.mark.parametrize("ending", [each for each in READERS if not re.match(r"\.[st]o[ci]", each)])  # not ballots
def test_every_kind_of_file_holds_the_same_votes(tmp_path, ending):
    name = f"v{ending}"
    path = tmp_path / name
    writers = {
        ".csv": CLEAN.write_csv,
        ".txt": CLEAN.write_csv,
        ".tsv": lambda path: CLEAN.write_csv(path, separator="\t"),
        ".json": CLEAN.write_json,
        ".parquet": CLEAN.write_parquet,
        ".xlsx": CLEAN.write_excel,
    }
    plain = path.with_name(name.removesuffix(".gz"))
    writers.get(plain.suffix, CLEAN.write_ndjson)(plain)
    if plain != path:
        path.write_bytes(gzip.compress(plain.read_bytes()))
    reading = read_votes(path)
    votes = reading.votes
    assert named(votes) == MEANT
    assert [votes.voters[v] for v in votes.voter] == ["Ann", "Bob", "Ann", "Zoë"]
    assert [votes.contexts[c] for c in votes.context] == ["81", "82", "81", "9"]
    assert votes.contexts == ("9", "81", "82")  # by number, not by letter
    assert votes.time.tolist() == [1.5, 2.5, 4.0, 8.0]
    assert votes.weight.tolist() == [1.0, 2.0, 0.0, 0.5]
    first = 1 if "json" in name or "parquet" in name else 2
    assert votes.row.tolist() == list(range(first, first + 4))
    assert (reading.problems, reading.both_bad, reading.rows, reading.warnings) == ({}, 1, 4, ())
    assert votes.items == ("Kakao", "milk", "tea")


@pytest.mark.parametrize(
    ("first", "second", "tie", "both_bad"),
    [
        ("first", "second", "tie", "both-bad"),
        ("A", "B", "Draw", "Both bad"),
        ("model_a", "model_b", "tie", "tie (bothbad)"),
        ("left", " right ", "equal", "neither"),
        ("1", "2", "0.5", "both_bad"),
        ("tea", "milk", "tie", "bothbad"),
    ],
)
def test_winners_are_written_in_many_ways(tmp_path, first, second, tie, both_bad):
    rows = "".join(f"tea,milk,{winner}\n" for winner in (first, second, tie, both_bad))
    reading = read(tmp_path, HEADER + rows)
    assert reading.votes.result.tolist() == [1.0, 0.0, 0.5, 0.5]
    assert reading.both_bad == 1


BAD_ROWS = """first,second,winner,weight
tea,milk,first,1
,milk,first,1
tea,  ,first,1
tea,milk,,1
tea,milk,nobody,1
tea,tea,first,1
tea,milk,second,-1
tea,milk,second,many
tea,milk,second,nan
,,,

milk,tea,second,2
"""


def test_every_bad_row_is_set_aside_with_its_number_and_reason(tmp_path):
    reading = read(tmp_path, BAD_ROWS)
    assert named(reading.votes) == [("tea", "milk", 1.0), ("milk", "tea", 0.0)]
    assert reading.votes.row.tolist() == [2, 13]
    assert reading.set_aside.select("row", "reason").rows() == [
        (3, "no first item"),
        (4, "no second item"),
        (5, "no winner"),
        (6, "unknown winner 'nobody'"),
        (7, "item compared with itself"),
        (8, "weight is not a number ≥ 0"),
        (9, "weight is not a number ≥ 0"),
        (10, "weight is not a number ≥ 0"),
        (11, "empty row"),
        (12, "empty row"),
    ]
    assert reading.set_aside.row(3) == (6, "unknown winner 'nobody'", "tea", "milk", "nobody", "1")
    assert reading.problems["weight is not a number ≥ 0"] == 3
    assert sum(reading.problems.values()) + len(reading.votes) == reading.rows == 12


def test_strict_stops_and_counts(tmp_path):
    with pytest.raises(
        BadInputError,
        match=r"row 3 is unusable \(no first item\); unusable rows in all: 10 .*unknown winner 'nobody' \(1\)",
    ):
        read(tmp_path, BAD_ROWS, strict=True)


def test_lines_with_too_many_values_and_foreign_bytes_are_set_aside(tmp_path):
    text = (
        HEADER.encode()
        + b"tea,milk,first\ntea,milk,first,extra\nt\xe9a,milk,first\ntea,milk\n"
        + "té,milk,b\n".encode()
    )
    reading = read(tmp_path, text)
    assert reading.set_aside.select("row", "reason").rows() == [
        (3, "more values than columns"),
        (4, "not UTF-8"),
        (5, "no winner"),
    ]
    assert named(reading.votes) == [("tea", "milk", 1.0), ("té", "milk", 0.0)]


def test_a_broken_line_of_json_is_set_aside(tmp_path):
    lines = ['{"first": "tea", "second": "milk", "winner": "a"}', "", "not json", '{"first": "tea", "winner": "a"}']
    lines += ['{"winner": 2, "second": "tea", "first": "milk", "other": {"x": [1]}}']
    reading = read(tmp_path, "\n".join(lines) + "\n", "votes.jsonl")
    assert named(reading.votes) == [("tea", "milk", 1.0), ("milk", "tea", 0.0)]
    assert reading.votes.row.tolist() == [1, 5]
    assert reading.set_aside.select("row", "reason").rows() == [
        (2, "empty row"),
        (3, "not JSON"),
        (4, "no second item"),
    ]


def test_empty_lines_between_good_json_keep_the_row_numbers(tmp_path):
    line = '{"first": "tea", "second": "milk", "winner": "a"}'
    reading = read(tmp_path, f"{line}\n\n{line}", "votes.jsonl")
    assert reading.votes.row.tolist() == [1, 3]
    assert reading.set_aside["row"].to_list() == [2]


def test_quoted_names_and_a_byte_order_mark_are_read(tmp_path):
    reading = read(tmp_path, '\ufefffirst,second,winner\n"tea, ""green""",milk,first\r\n')
    assert reading.votes.items == ("milk", 'tea, "green"')


def test_names_that_only_look_alike_are_kept_apart_and_said(tmp_path):
    reading = read(tmp_path, HEADER + "té,milk,a\nte\u0301,milk,a\nmilk ,tea,a\n", strict=True)
    assert set(reading.votes.items) == {"té", "te\u0301", "milk", "milk ", "tea"}
    assert len(reading.warnings) == 2
    assert all("kept separate" in warning for warning in reading.warnings)
    assert any("'milk'" in warning and "'milk '" in warning for warning in reading.warnings)


def test_items_that_are_numbers_are_in_their_order_and_can_win_by_name(tmp_path):
    reading = read(tmp_path, HEADER + "10,9,9\n2,10,10\n9,1,1\n1,2,1\n1,2,10\n")
    assert reading.votes.items == ("1", "2", "9", "10")
    assert named(reading.votes) == [("10", "9", 0.0), ("2", "10", 0.0), ("9", "1", 0.0), ("1", "2", 1.0)]
    assert dict(reading.problems) == {"unknown winner '10'": 1}


def test_places_win_over_names_where_names_make_no_sense(tmp_path):
    reading = read(tmp_path, HEADER + "1,2,2\n3,4,1\n5,1,2\n")
    assert reading.votes.result.tolist() == [0.0, 1.0, 0.0]


def test_a_winner_with_two_meanings_is_refused(tmp_path):
    with pytest.raises(BadInputError, match="positions or item names"):
        read(tmp_path, HEADER + "a,b,a\nb,a,a\n")
    assert read(tmp_path, HEADER + "a,b,a\na,b,b\n").votes.result.tolist() == [1.0, 0.0]
    with pytest.raises(BadInputError, match="first or the second item"):
        read(tmp_path, HEADER + "tea,milk,0\ntea,milk,1\n")


def test_votes_without_a_voter_are_voters_of_their_own(tmp_path):
    text = "first,second,winner,voter\ntea,milk,a,Ann\ntea,milk,a,\nx,x,a,Al\ntea,milk,b, \ntea,milk,b,Ann\n"
    reading = read(tmp_path, text)
    assert reading.votes.voters == ("Ann", "(row 3)", "(row 5)")
    assert reading.votes.items == ("milk", "tea")
    assert [reading.votes.voters[v] for v in reading.votes.voter] == ["Ann", "(row 3)", "(row 5)", "Ann"]
    assert any("2 votes name no voter" in warning for warning in reading.warnings)
    nobody = read(tmp_path, "first,second,winner,voter\ntea,milk,a,\n")
    assert nobody.votes.voter is None


def test_votes_without_a_context_share_one(tmp_path):
    text = "first,second,winner,prompt\ntea,milk,a,p\ntea,milk,a,\nx,x,a,q\ntea,milk,b,\n"
    reading = read(tmp_path, text)
    assert reading.votes.contexts == ("p", "(none)")
    assert reading.votes.context.tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("column", "values", "seconds"),
    [
        ("time", ["1.5", "x"], [1.5, np.nan]),
        ("minute", ["2", "3"], [120.0, 180.0]),
        ("time", ["soon", "later"], [np.nan, np.nan]),
        ("timestamp", ["1970-01-01 00:01:00", "1970-01-01T00:00:01.5"], [60.0, 1.5]),
    ],
)
def test_times_are_seconds(column, values, seconds):
    table = pl.DataFrame({"first": ["a", "b"], "second": ["c", "c"], "winner": ["tie", "tie"], column: values})
    np.testing.assert_allclose(votes_of(table).votes.time, seconds)


def test_columns_can_be_named_or_left_out(tmp_path):
    text = "x,y,who,voter\ntea,milk,x,Ann\n"
    missing = r"the second item and the winner: name them with first=…, second=… and winner=…;.* x, y, who, voter\.$"
    with pytest.raises(BadInputError, match=missing):
        read(tmp_path, text)
    columns = {"first": "x", "second": "y", "winner": "who", "voter": None}
    reading = read(tmp_path, text.replace("milk,x", "milk,tea"), **columns)
    assert named(reading.votes) == [("tea", "milk", 1.0)]
    assert reading.votes.voter is None
    with pytest.raises(BadInputError, match="did you mean 'who'"):
        read(tmp_path, text, **(columns | {"winner": "wh"}))
    with pytest.raises(BadInputError, match="role"):
        read(tmp_path, text, loser="x")
    with pytest.raises(BadInputError, match="two roles"):
        read(tmp_path, text, **(columns | {"second": "x"}))


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["model_a", "model_b", "left", "right", "winner"], "model_a and model_b or left and right"),
        (["a", "b", "winner", "user", "worker_id"], "the voter column could be worker or user"),
        (["a", "b"], "no column found for the winner: name it with winner=…"),
        (["a", "b", "Winner", "winner"], "the winner column could be Winner or winner: name it"),
    ],
)
def test_ambiguous_columns_are_said(names, reason):
    with pytest.raises(BadInputError, match=reason):
        find_columns(names, {}, "votes.csv")


def test_a_file_with_a_header_alone_has_no_votes(tmp_path):
    reading = read(tmp_path, HEADER)
    assert (len(reading.votes), reading.rows, reading.votes.items) == (0, 0, ())


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("votes.csv", b"", "empty"),
        ("votes.jsonl", b"", "empty"),
        ("votes.jsonl", b"[1]\n", "not JSON Lines"),
        ("votes.csv", b'"first"x,second,winner\nmilk,tea,first,more\n', "the header of votes.csv is broken"),
        ("votes.csv", b"\n\r\n\n", "empty"),
        ("votes.parquet", b"PAR1torn", "cannot read"),
        ("votes.parquet", b"", "cannot read"),
        ("votes.csv.gz", b"\x1f\x8b\x08torn", "cannot read"),
        ("votes.xlsx", b"", "cannot read"),
        ("votes.docx", b"", "unsupported file type: votes.docx .votes can be .csv, .*, .parquet; text also as .gz"),
    ],
)
def test_a_file_that_is_none_is_one_sentence(tmp_path, name, content, reason):
    with pytest.raises(BadInputError, match=reason):
        read(tmp_path, content, name)


def test_a_missing_file_is_one_sentence(tmp_path):
    for name in ("votes.csv", "votes.jsonl", "votes.parquet"):
        with pytest.raises(BadInputError, match="cannot read"):
            read_votes(tmp_path / name)


def test_a_quote_out_of_place_costs_its_own_line(tmp_path):
    text = HEADER + 'tea,milk,first\n"tea,milk,first\nmilk,"te"a,first\n"te\na",milk,second\nmilk,tea,first\n'
    reading = read(tmp_path, text)
    assert named(reading.votes) == [("tea", "milk", 1.0), ("te\na", "milk", 0.0), ("milk", "tea", 1.0)]
    assert reading.set_aside.rows() == [
        (3, "misplaced quote", None, None, None, '"tea,milk,first'),
        (4, "misplaced quote", None, None, None, 'milk,"te"a,first'),
    ]


def test_what_is_set_aside_is_there_whole(tmp_path):
    text = "row,row (column),line,first,second,winner\n1,2,3,tea,milk,a,more\n1,2,3,tea,,a\n1,2,3,tea,milk,b\n"
    reading = read(tmp_path, text)
    assert reading.set_aside.columns[:5] == ["row", "reason", "row (column) (column)", "row (column)", "line (column)"]
    assert reading.set_aside["line"].to_list() == ["1,2,3,tea,milk,a,more", None]
    line = '{"first": "tea", "second": "milk", "winner": "a"}'
    reading = read(tmp_path, f'{line}\n{{"torn": 1\n[1]\n{line}\n', "votes.jsonl")
    assert reading.set_aside["line"].to_list() == ['{"torn": 1', "[1]"]
    assert dict(reading.problems) == {"not JSON": 2}


@pytest.mark.parametrize("broken", ["", "not json\n"])
def test_json_lines_end_at_line_feeds_alone(tmp_path, broken):
    line = '\ufeff{"first": "te\u2028a", "second": "mi\x85lk", "winner": 1.0}\r\n'
    late = '{"first": "milk", "second": "tea", "winner": 2.0, "voter": "Ann"}\n'
    reading = read(tmp_path, line + broken + late, "votes.jsonl")
    assert named(reading.votes) == [("te\u2028a", "mi\x85lk", 1.0), ("milk", "tea", 0.0)]
    assert len(reading.set_aside) == bool(broken)


def test_a_key_that_comes_late_is_seen(tmp_path):
    line = '{"first": "tea", "second": "milk", "winner": "a"}\n'
    late = '{"first": "tea", "second": "milk", "winner": "a", "voter": "Ann"}\n'
    assert "Ann" in read(tmp_path, 1001 * line + late, "votes.jsonl").votes.voters
    assert "Ann" in read(tmp_path, 1001 * line + "torn\n" + late, "votes.jsonl").votes.voters


def test_numbers_may_have_been_turned_into_fractions(tmp_path):
    assert read(tmp_path, HEADER + "tea,milk,1.0\ntea,milk,2.0\n").votes.result.tolist() == [1.0, 0.0]
    assert read(tmp_path, HEADER + "7,8,8.0\n8,9,8.0\n").votes.result.tolist() == [0.0, 1.0]
    with pytest.raises(BadInputError, match="first or the second item"):
        read(tmp_path, HEADER + "tea,milk,0.0\ntea,milk,1.0\n")
    [warning] = read(tmp_path, HEADER + "10.0,9,first\n10,9,first\n").warnings
    assert "'10.0'" in warning
    assert "'10'" in warning


def test_a_stray_winner_does_not_change_how_others_are_read(tmp_path):
    places = "1,2,1\n2,1,1\n3,4,1\n4,1,2\n2,4,3\n4,3,2\n"
    reading = read(tmp_path, HEADER + places)
    assert reading.votes.result.tolist() == [1.0, 1.0, 1.0, 0.0, 0.0]
    assert reading.set_aside.select("row", "reason").rows() == [(6, "unknown winner '3'")]
    reading = read(tmp_path, HEADER + 30 * "tea,milk,first\ntea,milk,second\n" + "tea,milk,0\n")
    assert dict(reading.problems) == {"unknown winner '0'": 1}
    with pytest.raises(BadInputError, match="positions or item names"):  # one row more by place decides nothing
        read(tmp_path, HEADER + 30 * "a,b,a\nb,a,a\n" + "c,d,a\n")


def test_rows_are_counted_as_an_editor_does(tmp_path):
    assert read(tmp_path, "\n\r\n" + HEADER + "tea,milk,a\n").votes.row.tolist() == [4]
    assert read(tmp_path, "\n" + HEADER + "tea,milk,a\ntea,milk,a,b\n").votes.row.tolist() == [3]
    old = read(tmp_path, (HEADER + "tea,milk,a\nmilk,tea,b\n").replace("\n", "\r"))
    assert (named(old.votes), old.votes.row.tolist()) == ([("tea", "milk", 1.0), ("milk", "tea", 0.0)], [2, 3])


@pytest.mark.parametrize(
    ("times", "seconds"),
    [
        ([dt.timedelta(minutes=1.5), None], [90.0, np.nan]),
        ([dt.time(0, 1, 30), dt.time(1)], [90.0, 3600.0]),
    ],
)
def test_spans_and_hours_are_seconds(tmp_path, times, seconds):
    table = pl.DataFrame({"first": ["a", "b"], "second": ["c", "c"], "winner": ["tie", "tie"], "time": times})
    table.write_parquet(tmp_path / "votes.parquet")
    np.testing.assert_allclose(read_votes(tmp_path / "votes.parquet").votes.time, seconds)


@pytest.mark.parametrize("role", ["weight", "time"])
def test_a_column_of_lists_is_no_column_of_numbers(role):
    table = pl.DataFrame({"first": ["a"], "second": ["b"], "winner": ["tie"], role: [[1]]})
    with pytest.raises(BadInputError, match=f"'{role}' holds .* not numbers"):
        votes_of(table)
    numbers = pl.Series(role, ["2.5"], dtype=pl.Categorical)
    assert getattr(votes_of(table.with_columns(numbers)).votes, role).tolist() == [2.5]


def test_a_column_of_lists_is_no_column_of_names():
    table = pl.DataFrame({"first": [["a"]], "second": ["b"], "winner": ["tie"]})
    with pytest.raises(BadInputError, match="not names"):
        votes_of(table)


@pytest.mark.parametrize(("name", "count"), [("llmfao", 8931), ("mtbench_human", 3355), ("ukpconvarg1", 84445)])
def test_recorded_votes_are_read_whole(recorded, name, count):
    assert len(recorded(name)) == count


# ---------------------------------------------------------------------- everyday words, names and times

LOGOS = "first,second,winner\n1,2,links\n2,3,rechts\n1,3,gleich\n1,2,hm\n3,1,No preference\n"


def test_words_of_other_languages_are_known_and_an_unknown_one_is_named(tmp_path):
    reading = read(tmp_path, LOGOS)
    assert reading.votes.result.tolist() == [1.0, 0.0, 0.5, 0.5]
    assert dict(reading.problems) == {"unknown winner 'hm'": 1}
    assert reading.notes()[-1].startswith("Say what 'hm' means with words=…, for example hm=tie")


def test_the_meaning_of_a_word_may_be_given(tmp_path):
    assert read(tmp_path, LOGOS, words={"hm": "second"}).votes.result.tolist() == [1.0, 0.0, 0.5, 0.0, 0.5]
    assert read(tmp_path, LOGOS, words={"HM ": "both-bad"}).both_bad == 1
    with pytest.raises(BadInputError, match=r"unknown meaning 'draw' of the winner 'hm'"):
        read(tmp_path, LOGOS, words={"hm": "draw"})
    with pytest.raises(BadInputError, match=r"no winner in votes.csv is 'hmm' .* most frequent values are"):
        read(tmp_path, LOGOS, words={"hmm": "tie"})


def test_items_have_the_names_of_a_file(tmp_path):
    names = written(tmp_path, "id,colour,Name\n1,red,Fox\n2,blue,Owl\n", "names.csv")
    reading = read(tmp_path, LOGOS, names=names)
    assert reading.votes.items == ("Fox", "Owl", "3")
    assert "3 has no name (names=…)." in reading.warnings
    assert read(tmp_path, LOGOS, names={"1": "Fox", "2": "Owl", "3": "Elk"}).votes.items == ("Fox", "Owl", "Elk")
    for bad, words in (
        ({"1": "Fox", "2": "Fox"}, "two items have the name 'Fox'"),
        ({"x": "Fox"}, "no item of the votes has a name: their ids are 1, 2 and 3"),
    ):
        with pytest.raises(BadInputError, match=words):
            read(tmp_path, LOGOS, names=bad)
    with pytest.raises(BadInputError, match=r"names.csv must have two columns"):
        read(tmp_path, LOGOS, names=written(tmp_path, "id\n1\n", "names.csv"))


@pytest.mark.parametrize(
    ("times", "seconds"),
    [
        (["11/14/2023 22:17:02", "11/15/2023 22:17:02"], 86_400.0),  # as Google Forms writes them in the USA
        (["14/11/2023 22:17:02", "15/11/2023 22:17:02"], 86_400.0),
        (["30.11.2023 9:00", "01.12.2023 9:00"], 86_400.0),
        (["5/11/2023 9:00:00", "4/12/2023 9:00:00"], 29 * 86_400.0),  # time passes, so the day comes first
    ],
)
def test_dates_of_forms_are_times(tmp_path, times, seconds):
    rows = "".join(f"a,b,first,{time}\n" for time in times)
    votes = read(tmp_path, f"first,second,winner,time\n{rows}").votes
    assert votes.time[1] - votes.time[0] == seconds


def test_a_folder_is_named_with_its_files_and_text_files_are_read(tmp_path):
    written(tmp_path, LOGOS, "votes.txt")
    assert len(read_votes(tmp_path / "votes.txt").votes) == 4
    with pytest.raises(BadInputError, match=r"is a folder; name one of its files: votes\.txt"):
        read_votes(tmp_path)
