"""Studies from TOML and CSV files, on this machine and over HTTP."""

import csv
import io
import json
import math
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from starlette.testclient import TestClient

from fairduel.errors import BadInputError
from fairduel.service.api.app import create_app
from fairduel.service.api.limits import Limits
from fairduel.service.commands import team
from fairduel.service.commands.polls import create_poll
from fairduel.service.service import Service
from fairduel.service.study.study_files import Files, read_study
from helpers import sounds


def nothing(*name):
    raise KeyError(*name)


NO_FILES = Files(nothing, nothing)
lines = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S"]), min_size=1, max_size=12)
texts = st.text(
    st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"], include_characters="\n\t"), max_size=40
)
numbers = st.floats(-1e6, 1e6)


def as_csv(rows):
    buffer = io.StringIO(newline="")
    csv.writer(buffer).writerows(rows)
    return buffer.getvalue()


def as_toml(value):
    """A value in TOML; JSON strings, with DEL escaped, are TOML strings."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{as_toml(name)} = {as_toml(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


@given(st.lists(lines, min_size=2, max_size=5, unique=True), st.lists(texts, min_size=5, max_size=5), st.data())
@settings(max_examples=25, deadline=None)
def test_items_come_back_from_csv(names, written, data):
    features = [[data.draw(numbers), float(n)] for n in range(len(names))]
    rows = [["feature_a", "text", "name", "feature b"]]
    rows += [[a, text, name, b] for name, text, (a, b) in zip(names, written, features, strict=False)]
    study = read_study("items.csv", as_csv(rows), NO_FILES, {"question": "?"})
    assert [item.name for item in study.items] == names
    assert [item.text for item in study.items] == [text if text.strip() else None for text in written[: len(names)]]
    assert [item.features for item in study.items] == features


@given(st.lists(lines, min_size=2, max_size=4, unique=True), st.lists(texts, min_size=3, max_size=3), st.data())
@settings(max_examples=25, deadline=None)
def test_studies_come_back_from_toml_and_answers_from_csv(names, prompts, data):
    names = [f"model {name}" for name in names]
    answers = [{name: "x" + data.draw(texts) for name in names} for _ in prompts]
    table = as_csv(
        [["prompt", *names], *([f"p{prompt}", *each.values()] for prompt, each in zip(prompts, answers, strict=True))]
    )
    written = {
        "question": data.draw(lines),
        "instructions": data.draw(texts),
        "access": data.draw(st.sampled_from(["link", "invitation", "participant"])),
        "votes_per_voter": data.draw(st.integers(1, 99)),
        "ties": data.draw(st.booleans()),
        "format": "markdown",
    }
    toml = "".join(f"{name} = {as_toml(value)}\n" for name, value in written.items())
    inline = [
        {"name": f"prompt {n + 1}", "text": f"p{text}", "contents": each}
        for n, (text, each) in enumerate(zip(prompts, answers, strict=True))
    ]
    files = Files({"answers.csv": table}.__getitem__, nothing)
    one = read_study("study.toml", toml + 'contexts = "answers.csv"\n', files, {})
    two = read_study("study.toml", toml + f"items = {as_toml(names)}\ncontexts = {as_toml(inline)}\n", files, {})
    assert one == two
    assert {name: getattr(one, name) for name in written} == written
    assert [context.contents for context in one.contexts] == answers
    assert read_study("answers.csv", table, NO_FILES, {"question": "?"}).contexts == one.contexts


WRONG_TOML = {
    "question = ": "study.toml: Invalid value (at end of document)",
    "question = 'a'\nquestion = 'b'\n": "line 2",
    "items = ['a', 'b']": "question: Field required",
    "question = '?'": "items: Field required",
    "question = '?'\nitems = ['a']": "items: List should have at least 2 items",
    "question = '?'\nitems = ['a', 'b']\ncolour = 'red'": "colour: Extra inputs are not permitted",
    "question = '?'\nitems = ['a', {text = 'x'}]": "items.1.name: Field required",
    "question = '?'\nitems = 'other.csv'": "study.toml: items: there is no file 'other.csv'",
    "question = '?'\nitems = '../items.csv'": "must be a file in the same folder",
    "question = '?'\nitems = '/etc/passwd'": "must be a file in the same folder",
    "question = '?'\nitems = [{name = 'a', image = 'a.png'}, 'b']": "items.0.image: there is no file 'a.png'",
    "question = '?'\nitems = 'bad.csv'": "bad.csv, line 3: it has 3 cells, but there are 2 columns",
    "question = '?'\nitems = ['a', 'b']\nagent = 'nobody'": "nobody",
    "question = '?'\nitems = ['a', 'b']\nvotes_per_voter = nan": "votes_per_voter",
    "question = '?'\nitems = 3": "items: Input should be a valid list",
    "question = '?'\nitems = [1, 2]": "items.0",
    "a = " + "[" * 3000: "study.toml:",
}
WRONG_CSV = {
    "": "items: List should have at least 2 items",
    "name\n": "items: List should have at least 2 items",
    "name,name\na,b\n": "line 1: there are two columns named 'name'",
    "name,colour\na,red\n": "line 1: unknown column 'colour'",
    "text\na\nb\n": "line 2: name: Field required",
    "name\na\na\n": "two items named 'a'",
    'name,text\na,"x\nb,y\n': "line 3: unexpected end of data",
    'name,text\na,"x"y\n': "line 2: ',' expected after '\"'",
    "name,feature\na,1\nb,one\n": "line 3: feature: 'one' is not a number",
    "name,feature\na,1\nb,inf\n": "line 3: features.0",
    "name,format\na,html\nb,text\n": "line 2: format: Input should be 'text' or 'markdown'",
    "name,image\na,a.png\nb,\n": "line 2.image: there is no file 'a.png'",
    "prompt,a,b\np,x,\n": "fewer than two answers",
    "prompt,a,b\np,x,y,z\n": "line 2: it has 4 cells",
    "name,prompt,a,b\nq,p,x,y\nq,p,x,y\n": "two contexts named 'q'",
    "name\n" + "\u202ea\n": "line 2: name: Value error, it contains a character that reverses text".replace(
        "Value error, ", ""
    ),
}


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [("study.toml", *pair) for pair in WRONG_TOML.items()] + [("t.csv", *pair) for pair in WRONG_CSV.items()],
)
def test_a_wrong_file_is_refused_with_its_line_or_field(name, text, sentence):
    files = Files({"bad.csv": "name,text\na,b\na,b,c\n"}.__getitem__, nothing)
    with pytest.raises(BadInputError) as refused:
        read_study(name, text, files, {} if name.endswith("toml") else {"question": "?"})
    assert sentence in str(refused.value)
    assert str(refused.value).endswith(".")
    assert "\n" not in str(refused.value)


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with closing(Service(tmp_path_factory.mktemp("files") / "store")) as service:
        service.analyst.close()
        yield service


@pytest.fixture
def folder(tmp_path):
    """A study with every kind of file, and votes to begin with."""
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8), "red").save(buffer, "PNG")
    (tmp_path / "media").mkdir()
    (tmp_path / "media" / "red.png").write_bytes(buffer.getvalue())
    (tmp_path / "low.wav").write_bytes(sounds.wav(pitch=220.0))
    (tmp_path / "items.csv").write_text("name,text,image,audio\nred,,media/red.png,\nlow,**deep**,,low.wav\nplain,,,\n")
    (tmp_path / "study.toml").write_text(
        'question = "Which?"\nformat = "markdown"\nitems = "items.csv"\nvotes_per_voter = 5\n'
    )
    (tmp_path / "votes.csv").write_text("first,second,winner,voter\nred,low,first,Ann\nlow,plain,tie,Ann\n")
    return tmp_path


def test_a_poll_from_a_study_file_with_votes(service, folder):
    made = create_poll(service, [str(folder / "study.toml")], votes=folder / "votes.csv")
    study = service.ledger.state.studies[made]
    red, low, plain = study.about.items
    assert red.image
    assert low.audio
    assert (low.text, plain.image, plain.audio) == ("**deep**", None, None)
    assert (study.about.question, study.about.votes_per_voter, study.counts["voted"]) == ("Which?", 5, 2)
    other = create_poll(service, [str(folder / "items.csv")], {"question": "Why?", "votes_per_voter": 7})
    assert service.ledger.state.studies[other].about.votes_per_voter == 7
    sound = create_poll(service, [str(folder / "low.wav"), str(folder / "media" / "red.png")])
    assert [item.name for item in service.ledger.state.studies[sound].about.items] == ["low", "red"]


def test_a_wrong_poll_is_refused_and_creates_nothing(service, folder):
    before = len(service.ledger.state.studies)
    (folder / "latin.csv").write_bytes("name\ncafé\n".encode("latin-1"))
    (folder / "wrong.csv").write_text("first,second,winner\nred,beer,first\n")
    (folder / "bad.wav").write_bytes(b"RIFF")
    (folder / "outside.csv").symlink_to("/etc/hostname")
    (folder / "link.toml").write_text('question = "?"\nitems = "outside.csv"\n')
    study = str(folder / "study.toml")
    for words, votes, sentence in [
        ([study, "tea"], None, "give it alone"),
        ([str(folder / "none.toml")], None, "cannot read"),
        ([str(folder / "latin.csv")], None, "UTF-8"),
        ([str(folder / "bad.wav"), "tea"], None, "not a WAV"),
        ([str(folder / "link.toml")], None, "there is no file"),
        ([study], folder / "wrong.csv", "the item 'beer', which the study does not have"),
        ([study], folder / "none.csv", "cannot read"),
    ]:
        with pytest.raises(BadInputError, match=sentence):
            create_poll(service, words, votes=votes)
    assert len(service.ledger.state.studies) == before


def test_the_same_file_over_http(service, folder):
    key = service.ledger.run(team.replace_operator)
    limits = Limits(hosts=frozenset({"testserver"}))
    operator = TestClient(create_app(service, limits=limits), headers={"Authorization": f"Bearer {key}"})
    image = operator.post(
        "/api/images", content=(folder / "media/red.png").read_bytes(), headers={"Content-Type": "image/png"}
    )
    audio = operator.post(
        "/api/audio", content=(folder / "low.wav").read_bytes(), headers={"Content-Type": "audio/wav"}
    )
    body = {
        "file": "study.toml",
        "text": (folder / "study.toml").read_text(),
        "tables": {"items.csv": (folder / "items.csv").read_text()},
        "media": {
            "red.png": image.json()["image"],
            "low.wav": audio.json()["audio"],
        },  # a browser does not tell folders
    }
    reply = operator.post("/api/study-files", json=body)
    assert reply.status_code == 201
    made = create_poll(service, [str(folder / "study.toml")])
    about = service.ledger.state.studies
    assert about[reply.json()["study"]].about == about[made].about
    for wrong, sentence in [
        ({"tables": {}}, "there is no file 'items.csv'"),
        ({"media": {}}, "there is no file 'media/red.png'"),
        ({"media": body["media"] | {"red.png": "0" * 64}}, "was not uploaded"),
        ({"file": "study.exe"}, "file"),
        ({"file": "../study.toml"}, "file"),
        ({"settings": {"speed": 1}}, "settings.speed"),
        ({"more": 1}, "more"),
    ]:
        refused = operator.post("/api/study-files", json=body | wrong)
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid")
        assert sentence in refused.json()["detail"]
    text = "prompt,A,B\nWhy?,Because.,**So.**\n"
    settings = {"question": "Which answer?", "format": "markdown", "access": "invitation"}
    made = operator.post("/api/study-files", json={"file": "a.csv", "text": text, "settings": settings}).json()
    assert [item["name"] for item in made["items"]] == ["A", "B"]
    assert {name: made[name] for name in settings} == settings
    assert TestClient(operator.app).post("/api/study-files", json=body).status_code == 401


def test_numbers_are_read_as_python_writes_them():
    value = math.nextafter(0.1, 1.0)
    study = read_study("t.csv", f"name,feature1\na,{value!r}\nb,-1e-3\n", NO_FILES, {"question": "?"})
    assert [item.features for item in study.items] == [[value], [-0.001]]
