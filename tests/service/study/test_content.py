"""What studies consist of: Markdown, audio and features."""

import io
import random
import re
import time
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from pydantic import ValidationError
from starlette.testclient import TestClient

from fairduel.agents.parts.state_file import same_state
from fairduel.service.api.app import create_app
from fairduel.service.api.limits import Limits, RateLimit
from fairduel.service.commands import operating, team
from fairduel.service.problems import Problem
from fairduel.service.service import Service
from fairduel.service.study.learner import Learner
from fairduel.service.study.media import prepare_audio, prepare_image, rendered
from fairduel.service.study.study import NewStudy, features_of
from helpers import sounds

MALICIOUS = [
    "<script>window.pwned = 1</script>",
    '<img src="http://evil.example/a.png" onerror="window.pwned = 1">',
    '<img src=x onerror="window.pwned = 1">',
    "![a](http://evil.example/b.png)",
    '![a](x" onerror="window.pwned=1)',
    "[click](javascript:window.pwned=1)",
    "[click](JaVaScRiPt&#58;window.pwned=1)",
    "[click](data:text/html,<script>window.pwned=1</script>)",
    "<javascript:window.pwned=1>",
    '<style>@import "http://evil.example/c.css"; body { background: url(http://evil.example/d.png) }</style>',
    '<p style="background: url(http://evil.example/e.png)">x</p>',
    '<iframe src="http://evil.example/"></iframe><object data="http://evil.example/"></object>',
    '<svg><script>window.pwned = 1</script><animate onbegin="window.pwned=1" /></svg>',
    "<math><mtext><table><mglyph><style><!--</style><img src=x onerror=window.pwned=1>",
    '<form action="http://evil.example/"><input name=q><button>Go</button></form>',
    '<a href="http://evil.example/" target=_blank>link</a> <base href="http://evil.example/">',
    '<meta http-equiv="refresh" content="0; url=http://evil.example/">',
    "```\n</code></pre><script>window.pwned = 1</script>\n```",
    "[r]: javascript:window.pwned=1\n[r]",
    "<link rel=stylesheet href=http://evil.example/f.css><audio src=http://evil.example/g.mp3 autoplay>",
    "| a |\n|---|\n| <img src=x onerror=window.pwned=1> |",
]
ALLOWED = re.compile(
    r"</?(p|br|hr|h3|ul|ol|li|blockquote|pre|code|em|strong|s|table|thead|tbody|tr|th|td)>"
    r'|<h3 class="level[1-6]">|<ol start="\d+">'
)


@pytest.mark.parametrize("text", MALICIOUS)
def test_markdown_becomes_tags_without_attributes(text):
    html = rendered(text)
    assert "<" not in ALLOWED.sub("", html)
    assert html != "" or text.startswith("[r]")


@given(st.text(alphabet=st.sampled_from(list("<>/\"'=&#;:()[]!`*_-|\n \\ascriptonerimgxu1")), max_size=200))
@settings(max_examples=300, deadline=None)
def test_no_text_becomes_another_tag(text):
    assert "<" not in ALLOWED.sub("", rendered(text))


def test_markdown_is_readable():
    html = rendered(
        "# Title\n\n**a** and `b` at [home](https://x.example/?a=1&b=2) <https://y.example/>\n\n1. one\n2. two"
    )
    assert '<h3 class="level1">Title</h3>' in html
    assert "home (https://x.example/?a=1&amp;b=2) https://y.example/</p>" in html
    assert "<ol>\n<li>one</li>" in html


@pytest.mark.parametrize(
    "text",
    [
        "|a" * 100 + "\n" + "|-" * 100 + "\n" + "|\n" * 9500,  # a million cells
        "![" * 10_000,
        ">" * 20_000,
        "*a **a " * 2800,
    ],
    ids=["table", "image", "quote", "emphasis"],
)
def test_no_text_takes_long(text):
    began = time.process_time()
    assert len(rendered(text[:20_000])) < 200_000
    assert time.process_time() - began < 1.5


@pytest.mark.parametrize("media_type", sounds.FILES)
def test_audio_is_recognised_by_its_content_and_stored_prepare_audio(media_type):
    content = sounds.FILES[media_type]()
    stored = prepare_audio(content)
    assert stored.media_type == media_type
    assert 0.3 < stored.facts["seconds"] < 1.5
    assert sounds.SECRET in content
    assert sounds.SECRET not in stored.content
    assert prepare_audio(stored.content).content == stored.content


def outcome(work, content):
    try:
        return work(content).media_type
    except Problem as problem:
        return problem.status


@pytest.mark.parametrize("kind", [*sounds.FILES.values(), lambda: b"GIF89a" + bytes(50), lambda: b"<html>" * 9])
def test_damaged_audio_is_refused_or_still_audio(kind):
    content, rng = kind(), random.Random(0)
    for cut in (0, 1, 8, 11, 12, 40, len(content) // 2):
        for spoilt in (content[:cut], bytes(b ^ (rng.random() < 0.05) * rng.randrange(256) for b in content)):
            assert outcome(prepare_audio, spoilt) in {*sounds.FILES, 422}
    with pytest.raises(Problem, match="minutes long"):
        prepare_audio(sounds.wav(seconds=0))


def test_damaged_images_are_refused():
    buffer, rng = io.BytesIO(), random.Random(0)
    Image.new("RGB", (20, 20), "red").save(buffer, "PNG")
    for _ in range(40):
        spoilt = bytes(b ^ (rng.random() < 0.05) * rng.randrange(256) for b in buffer.getvalue())
        assert outcome(prepare_image, spoilt) in {"image/png", 422}


@pytest.fixture(scope="module")
def operator(tmp_path_factory):
    plenty = RateLimit(1e9, 1e9)
    limits = Limits(hosts=frozenset({"testserver"}), address=plenty, joins=plenty, voter=plenty)
    with closing(Service(tmp_path_factory.mktemp("content") / "store")) as service:
        key = service.ledger.run(team.ensure_operator)
        yield TestClient(create_app(service, limits=limits), headers={"Authorization": f"Bearer {key}"})


def test_players_get_the_range_that_they_ask_for(operator):
    reply = operator.post("/api/audio", content=sounds.wav(), headers={"Content-Type": "audio/x-wav"})
    assert reply.status_code == 201
    path = f"/api/audio/{reply.json()['audio']}"
    whole = operator.get(path)
    assert whole.headers["content-type"] == "audio/wav"
    assert whole.headers["x-content-type-options"] == "nosniff"
    assert whole.headers["accept-ranges"] == "bytes"
    size = len(whole.content)
    for asked, expected in {
        "0-9": (0, 9),
        "100-": (100, size - 1),
        "-5": (size - 5, size - 1),
        "7-99999999": (7, size - 1),
    }.items():
        part = operator.get(path, headers={"Range": f"bytes={asked}"})
        assert part.status_code == 206
        assert part.headers["content-range"] == f"bytes {expected[0]}-{expected[1]}/{size}"
        assert part.content == whole.content[expected[0] : expected[1] + 1]
    for beyond in ("99999999-", f"{size}-", "-0"):
        assert operator.get(path, headers={"Range": f"bytes={beyond}"}).status_code == 416
    for unknown in ("items=0-1", "bytes=-", "bytes=0-1,5-6"):
        assert operator.get(path, headers={"Range": unknown}).status_code == 200
    assert operator.get(f"/api/images/{reply.json()['audio']}").status_code == 404


def test_audio_that_cannot_be_used_is_refused(operator):
    post = operator.post
    assert post("/api/audio", content=b"x" * 100, headers={"Content-Type": "audio/wav"}).status_code == 422
    assert post("/api/audio", content=sounds.wav(), headers={"Content-Type": "image/png"}).status_code == 415
    assert post("/api/audio", content=bytes(10_000_001), headers={"Content-Type": "audio/wav"}).status_code == 413
    sound = post("/api/audio", content=sounds.mp3(), headers={"Content-Type": "audio/mpeg"}).json()["audio"]
    for wrong in ({"image": sound}, {"audio": "0" * 64}):
        body = {"question": "?", "items": [{"name": "a", **wrong}, {"name": "b"}]}
        assert post("/api/studies", json=body).json()["code"] == "invalid"
    assert (
        TestClient(operator.app, headers={}).post("/api/audio", headers={"Content-Type": "audio/wav"}).status_code
        == 401
    )


def test_voters_get_html_only_for_markdown(operator):
    sound = operator.post("/api/audio", content=sounds.wav(), headers={"Content-Type": "audio/wav"}).json()["audio"]
    items = [{"name": "a", "text": "**a**"}, {"name": "b", "text": "**b**", "format": "text", "audio": sound}]
    body = {"question": "?", "items": items, "format": "markdown", "show_names": True}
    study = operator.post("/api/studies", json=body).json()
    assert (study["format"], study["items"][1]["format"], study["dimension"]) == ("markdown", "text", None)
    voter = TestClient(operator.app)
    voter.post(f"/api/studies/{study['study']}/voters", json={})
    duel = voter.post(f"/api/studies/{study['study']}/duels", json={}).json()["duels"][0]
    shown = {each["name"]: each for each in (duel["left"], duel["right"])}
    assert shown["a"] == {
        "name": "a",
        "text": "**a**",
        "html": "<p><strong>a</strong></p>\n",
        "image": None,
        "audio": None,
    }
    assert shown["b"] == {"name": "b", "text": "**b**", "html": None, "image": None, "audio": sound}


def study_with(features, **settings):
    items = [{"name": f"item {n}", "features": row} for n, row in enumerate(features)]
    return NewStudy(question="?", items=items, **settings)


@given(st.integers(1, 5), st.integers(2, 6), st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_features_keep_their_differences_up_to_scale(dimension, count, seed):
    given_rows = np.random.default_rng(seed).normal(3.0, 5.0, (count, dimension))
    (table,) = features_of(study_with(given_rows.tolist()))
    rows = np.array([table[n] for n in range(count)])
    assert np.linalg.norm(rows, axis=1).max() == pytest.approx(1.0)
    scale = np.linalg.norm(rows[0] - rows[1]) / np.linalg.norm(given_rows[0] - given_rows[1])
    assert rows - rows[0] == pytest.approx(scale * (given_rows - given_rows[0]), abs=1e-9)


@pytest.mark.parametrize(("settings", "ideal", "unseen"), [({}, 9.0, 4), ({"map": "rbf(0.6)"}, 2.1, 2)])
def test_an_agent_with_features_knows_items_that_nobody_has_seen(new_booth, settings, ideal, unseen):
    """One feature decides, the more the better, or with a map the nearer to an ideal; nobody votes on the best item."""
    items = [{"name": f"item {n}", "features": [float(n), 1.0]} for n in range(5)]
    booth = new_booth()
    about = NewStudy(question="?", items=items, undo_seconds=0, repeat_pairs=True, agent_settings=settings)
    booth.study = booth.run(operating.create_study, about).study
    booth.run(operating.change_item, booth.study, unseen, {"enabled": False})
    booth.voters.clear()
    booth.join(1)
    for number in range(150):
        (duel,) = booth.ask()
        left, right = (abs(float(duel[side]["text"][-1]) - ideal) for side in ("left", "right"))
        booth.answer(duel["duel"], "left" if left < right else "right", key=str(number))
    agent = booth.state.learner.agent
    (table,) = features_of(about)
    assert agent.dimension == 2
    assert agent.recommend(np.array([table[n] for n in range(5)])) == unseen
    live = booth.state.learner.state()
    booth.restart()
    assert same_state(booth.state.learner.state(), live)


def test_features_of_answers_decide_in_their_context():
    contexts = [
        {"name": "p", "contents": {"b": "x", "a": "y"}, "features": {"b": [1.0], "a": [0.0]}},
        {"name": "q", "contents": {"a": "x", "c": "y"}, "features": {"a": [5.0], "c": [7.0]}},
    ]
    study = NewStudy(question="?", items=[{"name": name} for name in "abc"], contexts=contexts)
    first, second = features_of(study)
    assert {item: float(row[0]) for item, row in first.items()} == {0: -0.5, 1: 0.5}
    assert {item: float(row[0]) for item, row in second.items()} == {0: -1.0, 2: 1.0}
    learner = Learner(study)
    assert learner.dimension == 1
    proposal = learner.propose(set(), [0, 0, 0])
    assert (proposal.context, {proposal.first, proposal.second}) == (0, {0, 1})


@pytest.mark.parametrize(
    ("features", "sentence"),
    [
        ([[1.0], [2.0, 3.0]], "same length"),
        ([[1.0], None], "has no features"),
        ([[1.0], [1.0]], "say nothing"),
        ([[1.0], [float("nan")]], "finite number"),
        ([[1.0], [1e300]], "less than or equal"),
        ([[1.0], []], "at least 1"),
        ([[0.0] * 257, [1.0] * 257], "at most 256"),
    ],
)
def test_wrong_features_are_refused(features, sentence):
    with pytest.raises(ValidationError, match=sentence):
        study_with(features)
