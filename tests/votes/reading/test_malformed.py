"""Damaged, hostile and odd vote files give one sentence that names the file, or the right votes; never a traceback."""

import csv
import gzip
import io
import itertools
import json
import re
import struct
import zipfile

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairduel import BadInputError
from fairduel.votes.reading import file_readers
from fairduel.votes.reading.features import read_features
from fairduel.votes.reading.read import read_votes, votes_of
from fairduel.votes.votes import Votes

ROWS = [("tea", "milk", "first"), ("milk", "juice", "second"), ("juice", "tea", "tie"), ("tea", "juice", "first")]
RESULTS = {("tea", "milk", 1.0), ("milk", "juice", 0.0), ("juice", "tea", 0.5), ("tea", "juice", 1.0)}
TEXT = "first,second,winner\n" + "".join(",".join(row) + "\n" for row in ROWS)
TABLE = pl.DataFrame(ROWS, schema=["first", "second", "winner"], orient="row")


def in_bytes(frame, write):
    buffer = io.BytesIO()
    write(frame, buffer)
    return buffer.getvalue()


def workbook():
    buffer = io.BytesIO()
    TABLE.write_excel(buffer)
    return buffer.getvalue()


FORMATS = {
    "votes.csv": TEXT.encode(),
    "votes.json": json.dumps(TABLE.to_dicts()).encode(),
    "votes.jsonl.gz": gzip.compress(in_bytes(TABLE, pl.DataFrame.write_ndjson), mtime=0),
    "votes.xlsx": workbook(),
    "votes.csv.gz": gzip.compress(TEXT.encode(), mtime=0),
    "votes.tsv": TEXT.replace(",", "\t").encode(),
    "votes.jsonl": in_bytes(TABLE, pl.DataFrame.write_ndjson),
    "votes.ndjson": in_bytes(TABLE, pl.DataFrame.write_ndjson),
    "votes.parquet": in_bytes(TABLE, pl.DataFrame.write_parquet),
}
RNG = np.random.default_rng(14)


def flipped(content, place, mask=0xFF):
    place %= len(content)
    return content[:place] + bytes([content[place] ^ mask]) + content[place + 1 :]


DAMAGE = {
    "whole": lambda content: content,
    "nothing": lambda _: b"",
    "one byte": lambda content: content[:1],
    "first half": lambda content: content[: len(content) // 2],
    "second half": lambda content: content[len(content) // 2 :],
    "without its end": lambda content: content[:-5],
    "without its start": lambda content: content[5:],
    "start flipped": lambda content: flipped(content, 2),
    "middle flipped": lambda content: flipped(content, len(content) // 2),
    "end flipped": lambda content: flipped(content, -6),
    "bit flipped": lambda content: flipped(content, len(content) // 3, 1),
    "junk appended": lambda content: content + b"\xff\xfe\x00junk",
    "zeros appended": lambda content: content + bytes(64),
    "zeros only": lambda content: bytes(len(content)),
    "twice": lambda content: content + content,
    "reversed": lambda content: content[::-1],
    "noise": lambda content: RNG.bytes(len(content)),
    "a picture": lambda _: b"\x89PNG\r\n\x1a\n" + RNG.bytes(300),
    "a web page": lambda _: b"<!DOCTYPE html><html><body>Log in, please</body></html>\n",
    "a spreadsheet": lambda _: b"PK\x03\x04\x14\x00\x06\x00" + RNG.bytes(300),
    "nested": lambda _: b'{"first":' * 100_000 + b"\n",
    "brackets": lambda _: b"[" * 100_000 + b"]" * 100_000 + b"\n",
    "one long line": lambda _: b"x" * 300_000,
    "gzip in gzip": gzip.compress,
}


def seen(votes):
    return [
        (votes.items[a], votes.items[b], float(r))
        for a, b, r in zip(votes.first, votes.second, votes.result, strict=True)
    ]


def tried(read, *arguments):
    """What was read, or the error."""
    try:
        return read(*arguments), None
    except BadInputError as error:
        return None, error


def is_one_sentence(error, name):
    text = str(error)
    return "\n" not in text and text.endswith(".") and name in text and len(text) < 2000


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("name", FORMATS)
def test_a_damaged_file_is_refused_or_read_right(tmp_path, name, damage):
    """Votes that are still readable are those of the file, apart from names in which a byte was changed."""
    path = tmp_path / name
    path.write_bytes(DAMAGE[damage](FORMATS[name]))
    reading, error = tried(read_votes, path)
    if reading is None:
        assert damage != "whole"
        assert is_one_sentence(error, name)
        return
    known = {item for row in ROWS for item in row[:2]}
    intact = [vote for vote in seen(reading.votes) if set(vote[:2]) <= known]
    assert set(intact) <= RESULTS
    assert len(seen(reading.votes)) - len(intact) <= 1
    assert sum(reading.problems.values()) + len(reading.votes) == reading.rows
    if damage == "whole":
        assert set(intact) == RESULTS


# ---------------------------------------------------------------------- text with odd contents

HEADER = "first,second,winner\n"
GOOD = "tea,milk,first\nmilk,tea,second\ntea,milk,tie\n"
READ = {  # the text of a CSV file; its results, or the words of the error
    "no winner column": ("first,second\ntea,milk\n", "no column found for the winner"),
    "two columns of one name": ("first,second,winner,winner\ntea,milk,first,second\n", "two columns named 'winner'"),
    "two other columns of one name": ("first,second,winner,x,x\ntea,milk,first,1,2\n", "two columns named 'x'"),
    "two quoted columns of one name": ('first,second,"winner",winner\ntea,milk,first,second\n', "named 'winner'"),
    "two columns but for their case": ("first,second,winner,Winner\ntea,milk,first,second\n", "could be"),
    "columns without a name": ("first,second,winner,,\ntea,milk,first,,\n", [1.0]),
    "broken lines and columns without a name": ("first,second,winner,,\ntea,milk,first,,\na,b,c,d,e,f\n", [1.0]),
    "signs": (HEADER + "tea,milk,1\ntea,milk,-1\nmilk,tea,-1\n", [1.0, 0.0, 0.0]),
    "signs and ties": (HEADER + "tea,milk,1\ntea,milk,-1\ntea,milk,0\n", [1.0, 0.0, 0.5]),
    "signs as fractions": (HEADER + "tea,milk,1.0\ntea,milk,-1.0\ntea,milk,0.0\n", [1.0, 0.0, 0.5]),
    "signs and places": (HEADER + "tea,milk,1\ntea,milk,2\ntea,milk,-1\n", [1.0, 0.0]),
    "minus alone": (HEADER + 9 * "tea,milk,2\n" + 9 * "tea,milk,-1\n", "9 rows say '-1'"),
    "zero and one": (HEADER + "tea,milk,0\ntea,milk,1\n", "could mean the first or the second"),
    "items named as signs": (HEADER + "1,-1,1\n-1,1,1\n1,-1,-1\n", [1.0, 0.0, 0.0]),
    "one side misspelt": (HEADER + 9 * "tea,milk,model_a\n" + 9 * "tea,milk,modelb\n", "9 rows say 'modelb'"),
    "true and false": (HEADER + "tea,milk,true\ntea,milk,false\n", []),
    "commas": (HEADER + GOOD, [1.0, 0.0, 0.5]),
    "semicolons": ((HEADER + GOOD).replace(",", ";"), [1.0, 0.0, 0.5]),
    "tabs": ((HEADER + GOOD).replace(",", "\t"), [1.0, 0.0, 0.5]),
    "sep=;": ("sep=;\n" + (HEADER + GOOD).replace(",", ";"), [1.0, 0.0, 0.5]),
    "sep=; and CRLF": (("SEP=;\n" + (HEADER + GOOD).replace(",", ";")).replace("\n", "\r\n"), [1.0, 0.0, 0.5]),
    '"sep=,"': ('"sep=,"\n' + HEADER + GOOD, [1.0, 0.0, 0.5]),
    "sep=|": ("sep=|\n" + (HEADER + GOOD).replace(",", "|"), [1.0, 0.0, 0.5]),
    "sep= alone": ("sep=;\n", "is empty"),
    "carriage returns": ((HEADER + GOOD).replace("\n", "\r"), [1.0, 0.0, 0.5]),
    "no line break at the end": ((HEADER + GOOD).removesuffix("\n"), [1.0, 0.0, 0.5]),
    "blank lines": ("\n\n" + HEADER + "\n" + GOOD, [1.0, 0.0, 0.5]),
    "many blank lines": (300_000 * "\n" + HEADER + GOOD, [1.0, 0.0, 0.5]),
    "many unknown columns": (",".join(f"c{n}" for n in range(20_000)) + "\n", "c29 and 19,970 more"),
    "a quote that never ends": (HEADER + '"tea,milk,first\n' + GOOD, [1.0, 0.0, 0.5]),
    "a header with a quote that never ends": ('"first,second,winner\n' + GOOD, "votes.csv"),
    "spaces around everything": ("first , second , winner\ntea,milk, first \n", [1.0]),
    "NUL in a name": (HEADER + "te\0a,milk,first\n" + GOOD, [1.0, 1.0, 0.0, 0.5]),
    "terminal codes": (HEADER + "\x1b[2Jtea,milk,first\n", [1.0]),
    "weight 1e200": ("first,second,winner,weight\ntea,milk,first,1e200\n", "a weight of 1e\\+200, above 1e\\+09"),
    "weight above 1e9": ("first,second,winner,weight\ntea,milk,first,1000000001\n", "how many times the vote counts"),
    "weight 1e9": ("first,second,winner,weight\ntea,milk,first,1e9\n", [1.0]),
    "weights of over 1e12": ("first,second,winner,weight\n" + 1001 * "tea,milk,first,1e9\n", "add up to 1e\\+12"),
    "weight inf": ("first,second,winner,weight\ntea,milk,first,inf\ntea,milk,second,1\n", [0.0]),
    "weight −1": ("first,second,winner,weight\ntea,milk,first,-1\ntea,milk,second,1\n", [0.0]),
    "weight 0": ("first,second,winner,weight\ntea,milk,first,0\n", [1.0]),
    "separators at the end": (HEADER + "tea,milk,first,\nmilk,tea,first, ,\n", [1.0, 1.0]),
    "a name that is very long": (HEADER + "t" * 200_000 + ",milk,first\n", [1.0]),
    "many columns": ("first,second,winner" + "".join(f",c{n}" for n in range(2000)) + "\ntea,milk,first\n", [1.0]),
}


@pytest.mark.parametrize("case", READ)
@pytest.mark.parametrize("name", ["votes.csv", "votes.csv.gz"])
def test_odd_text_is_read_right_or_refused(tmp_path, name, case):
    text, expected = READ[case]
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    if isinstance(expected, str):
        with pytest.raises(BadInputError, match=expected.replace("votes.csv", name)) as raised:
            read_votes(path)
        assert is_one_sentence(raised.value, name)
    else:
        assert read_votes(path).votes.result.tolist() == expected


# ---------------------------------------------------------------------- encodings

NAMES = HEADER + "Crème brûlée,Spätzle,first\nSpätzle,Crème brûlée,second\ntea,Spätzle “à la”,first\n"
ENCODINGS = {
    "utf-8": ("", b"", ""),
    "utf-8 with a mark": ("utf-8", b"\xef\xbb\xbf", ""),
    "utf-16-le with a mark": ("utf-16-le", b"\xff\xfe", ""),
    "utf-16-be with a mark": ("utf-16-be", b"\xfe\xff", ""),
    "utf-32-le with a mark": ("utf-32-le", b"\xff\xfe\0\0", ""),
    "utf-16-le": ("utf-16-le", b"", "read as UTF-16"),
    "utf-16-be": ("utf-16-be", b"", "read as UTF-16"),
    "cp1252": ("cp1252", b"", "read as Windows-1252"),
}


@pytest.mark.parametrize("kind", ["csv", "semicolons", "csv.gz", "jsonl"])
@pytest.mark.parametrize("case", ENCODINGS)
def test_every_encoding_gives_the_same_votes_and_a_guess_is_said(tmp_path, case, kind):
    encoding, mark, notice = ENCODINGS[case]
    text = NAMES.replace(",", ";") if kind == "semicolons" else NAMES
    if kind == "jsonl":
        rows = [dict(zip(HEADER.strip().split(","), row.split(","), strict=True)) for row in NAMES.splitlines()[1:]]
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    content = mark + text.encode(encoding or "utf-8")
    path = tmp_path / f"votes.{kind.replace('semicolons', 'csv')}"
    path.write_bytes(gzip.compress(content) if kind == "csv.gz" else content)
    reading = read_votes(path, strict=True)
    assert reading.votes.items == ("Crème brûlée", "Spätzle", "Spätzle “à la”", "tea")
    assert reading.votes.result.tolist() == [1.0, 0.0, 1.0]
    assert [notice in warning for warning in reading.warnings] == ([True] if notice else [])


ODD = "ab 1,;\t|\"'\n\0\x1b\x85é\u0301ß“漢😀\u2028\ufffd"
SOME_NAMES = st.lists(st.text(ODD, min_size=1).filter(str.strip), min_size=2, max_size=5, unique=True)


@given(SOME_NAMES, st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"]), st.sampled_from(",;\t"))
def test_any_names_in_any_encoding_are_read_literally(tmp_path_factory, names, encoding, separator):
    path = tmp_path_factory.getbasetemp() / "any.csv"
    written = io.StringIO()
    rows = [[one, other, "second"] for one, other in itertools.pairwise(names)]
    csv.writer(written, delimiter=separator, lineterminator="\n").writerows([HEADER.strip().split(","), *rows])
    path.write_bytes(written.getvalue().encode(encoding))
    votes = read_votes(path, strict=True).votes
    assert seen(votes) == [(one, other, 0.0) for one, other, _ in rows]


def test_mixed_encodings_cost_the_broken_lines_only(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_bytes(NAMES.encode() + "Brötchen,tea,first\n".encode("cp1252"))
    reading = read_votes(path)
    assert dict(reading.problems) == {"not UTF-8": 1}
    assert len(reading.votes) == 3
    path.write_bytes(NAMES.encode() + "�,tea,first,more\n�,tea,first\n".encode())  # a valid character
    assert dict(read_votes(path).problems) == {"more values than columns": 1}


def test_damaged_utf16_is_refused(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_bytes(b"\xff\xfe" + TEXT.encode("utf-16-le") + b"x")
    with pytest.raises(BadInputError, match=r"votes\.csv looks like UTF-16 but is damaged: save it again as UTF-8\.$"):
        read_votes(path)


def test_items_that_vanish_with_their_rows_are_named(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text(TEXT + "cola,tea,nobody\n")
    assert any(warning.startswith("cola occurs only in unusable rows") for warning in read_votes(path).warnings)


# ---------------------------------------------------------------------- JSON Lines

LINE = '{"first": "tea", "second": "milk", "winner": "first"}\n'


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"first": "\\ud800", "second": "milk", "winner": "first"}', "half a character (lone surrogate)"),
        ('{"first": "x\\udc00y", "second": "milk", "winner": "first"}', "half a character (lone surrogate)"),
        ('{"first": "\\ud83d\\ud83d", "second": "milk", "winner": "first"}', "half a character (lone surrogate)"),
        ('{"first": "tea", "second": "milk", "winner": 1e999}', "not JSON"),
        ('{"first": "tea", "second": "milk", "winner": first}', "not JSON"),
        ('{"first": "tea", "second": "milk", "x": ' + "[" * 5000 + "]" * 5000 + "}", "not JSON"),
        ('{"x":' * 50_000, "not JSON"),
        ("null", "not JSON"),
    ],
)
def test_a_line_that_is_not_json_is_set_aside(tmp_path, line, reason):
    path = tmp_path / "votes.jsonl"
    path.write_text(LINE + line + "\n" + LINE)
    reading = read_votes(path)
    assert seen(reading.votes) == 2 * [("tea", "milk", 1.0)]
    assert dict(reading.problems) == {reason: 1}


def test_whole_surrogate_pairs_and_escaped_backslashes_are_names(tmp_path):
    path = tmp_path / "votes.jsonl"
    path.write_text(LINE.replace("tea", "\\ud83d\\ude00") + LINE.replace("tea", "\\\\ud800"))
    assert set(read_votes(path, strict=True).votes.items) == {"😀", "milk", "\\ud800"}


def test_a_key_that_comes_twice_is_refused(tmp_path):
    path = tmp_path / "votes.jsonl"
    path.write_text('{"first": "tea", "second": "milk", "winner": "first", "winner": "second"}\n')
    with pytest.raises(BadInputError, match=r"votes\.jsonl has two values named 'winner' in one line"):
        read_votes(path)


# ---------------------------------------------------------------------- binary names, bombs, features


def test_names_in_bytes_are_text_also_where_a_row_is_set_aside(tmp_path):
    frame = pl.DataFrame({"first": [b"tea", b"tea", b"tea"], "second": [b"milk", b"milk", b"milk"]})
    frame = frame.with_columns(winner=pl.Series([b"first", b"nobody", b"second"]))
    frame.write_parquet(tmp_path / "votes.parquet")
    reading = read_votes(tmp_path / "votes.parquet")
    assert seen(reading.votes) == [("tea", "milk", 1.0), ("tea", "milk", 0.0)]
    assert (
        reading.set_aside.write_csv() == "row,reason,first,second,winner\n2,unknown winner 'nobody',tea,milk,nobody\n"
    )
    with pytest.raises(
        BadInputError, match=r"votes\.parquet: column 'first' holds Binary, not names: store it as text\.$"
    ):
        votes_of(frame.with_columns(first=pl.lit(b"\xff")), name="votes.parquet")


def test_a_gzip_bomb_is_refused_before_it_fills_the_memory(tmp_path, monkeypatch):
    path = tmp_path / "votes.csv.gz"
    path.write_bytes(gzip.compress(TEXT.encode() + b"\n" * 2**20))
    assert len(read_votes(path).votes) == 4
    monkeypatch.setattr(file_readers, "UNPACKED_BYTES", 2**16)
    with pytest.raises(BadInputError, match=r"votes\.csv\.gz unpacks to more than 100 times its size"):
        read_votes(path)
    path.write_bytes(gzip.compress(TEXT.encode()) + gzip.compress(b"\n" * 2**20))  # members are added up
    with pytest.raises(BadInputError, match="unpacks to more than"):
        read_votes(path)
    path.write_bytes(gzip.compress(TEXT.encode() + RNG.bytes(2**18).hex().encode()))  # large, but no bomb
    assert len(read_votes(path).votes) == 4


def test_a_parquet_bomb_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "votes.parquet"
    pl.DataFrame({"first": "tea", "second": "milk", "winner": ["first"] * 200_000}).write_parquet(path)
    assert len(read_votes(path).votes) == 200_000
    monkeypatch.setattr(file_readers, "UNPACKED_BYTES", 2**16)
    with pytest.raises(BadInputError, match=r"votes\.parquet unpacks to more than"):
        read_votes(path)


VOTES = Votes.from_arrays(["milk", "tea"], [0], [1], [1])


def npz(**arrays):
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


PLAIN = npz(features=np.array([[1.0, 2.0], [3.0, 4.0]]), items=np.array(["milk", "tea"]))


def member(content):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("features.npy", content)
    return buffer.getvalue()


def npy(header):
    text = header.encode().ljust(118) + b"\n"
    return member(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + bytes(32))


@pytest.mark.parametrize(
    "content",
    [
        *(PLAIN[:size] for size in (0, 1, 10, 100, len(PLAIN) // 2, len(PLAIN) - 1)),
        PLAIN[50:],
        PLAIN[::-1],
        RNG.bytes(300),
        npz(features=np.array([[{}]], dtype=object)),
        npz(features=np.array(["x"])),
        npz(features=np.array([[1.0, np.nan], [3.0, 4.0]])),
        npz(features=np.array([[np.inf, 1.0], [3.0, 4.0]])),
        npz(),
        member(b""),
        member(b"junk"),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2**60), }"),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 1000000000000), }"),
        npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-1, 2), }"),
        npy("{'descr': '|O', 'fortran_order': False, 'shape': (2, 2), }"),
        npy("{'descr': 'nonsense', 'fortran_order': False, 'shape': (2, 2), }"),
        npy("((((((" * 15),
        npy("{'descr"),
    ],
)
def test_damaged_features_are_refused(tmp_path, content):
    path = tmp_path / "features.npz"
    path.write_bytes(content)
    with pytest.raises(BadInputError, match=r"features\.npz") as raised:
        read_features(path, VOTES)
    assert is_one_sentence(raised.value, "features.npz")


def test_no_flipped_byte_of_features_is_a_traceback_or_another_number(tmp_path):
    path = tmp_path / "features.npz"
    path.write_bytes(PLAIN)
    whole = read_features(path, VOTES)
    for place in range(len(PLAIN)):
        path.write_bytes(flipped(PLAIN, place))
        found, error = tried(read_features, path, VOTES)
        if found is None:
            assert is_one_sentence(error, "features.npz")
        else:
            np.testing.assert_array_equal(found.values, whole.values)


def test_features_in_a_bomb_or_another_encoding(tmp_path, monkeypatch):
    path = tmp_path / "features.csv"
    path.write_bytes("item;größe\nmilk;1\ntea;2\n".encode("cp1252"))
    found = read_features(path, VOTES)
    assert found.values.tolist() == [[0.5], [1.0]]
    assert "Windows-1252" in found.source
    path.write_text("item,u,u\nmilk,1,2\ntea,2,3\n")
    with pytest.raises(BadInputError, match="two columns named 'u'"):
        read_features(path, VOTES)
    monkeypatch.setattr(file_readers, "UNPACKED_BYTES", 2**16)
    path = tmp_path / "features.npz"
    path.write_bytes(npz(features=np.zeros((1000, 1000))))
    with pytest.raises(BadInputError, match=r"features\.npz unpacks to more than"):
        read_features(path, VOTES)


def test_there_are_many_cases():
    assert len(DAMAGE) * len(FORMATS) + 2 * len(READ) + 4 * len(ENCODINGS) > 150
    assert re.search("[^ -~]", NAMES)
