"""The recipes "Add an event" and "Add a kind of item" of CONTRIBUTING.md, followed step by step."""

import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import fairduel
from fairduel.agents.parts.state_file import same_state
from fairduel.service.commands import operating
from fairduel.service.events import backup, kinds
from fairduel.service.events.database import read_events
from fairduel.service.events.log import KINDS

CONTRIBUTING = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
CHECK = """
import sys, pathlib
from fastapi.testclient import TestClient
from fairduel.service.api.app import create_app
from fairduel.service.api.limits import Limits
from fairduel.service.commands import operating, team
from fairduel.service.commands.polls import create_poll
from fairduel.service.service import Service

folder = pathlib.Path(sys.argv[1])
service = Service(folder / "store")
key = service.ledger.run(team.replace_operator)
app = create_app(service, limits=Limits(hosts=frozenset({"testserver"})))
operator = TestClient(app, headers={"Authorization": f"Bearer {key}"})
content = bytes.fromhex("1a45dfa3") + b"film"
send = lambda content, kind: operator.post("/api/videos", content=content, headers={"Content-Type": kind})
assert send(b"no film", "video/webm").status_code == 422
assert send(content, "image/png").status_code == 415
film = send(content, "video/webm").json()["video"]
found = operator.get(f"/api/videos/{film}")
assert (found.content, found.headers["content-type"]) == (content, "video/webm")
items = [{"name": "film", "video": film}, {"name": "text"}]
study = operator.post("/api/studies", json={"question": "?", "items": items}).json()
assert [item["video"] for item in study["items"]] == [film, None]
assert operator.post("/api/studies", json={"question": "?", "items": [{"name": "a", "video": "0" * 64}, {"name": "b"}]}
).status_code == 422
for name in "ab":
    (folder / f"{name}.webm").write_bytes(content + name.encode())
(folder / "table.csv").write_text("name,video\\na,a.webm\\nb,b.webm\\n")
first = create_poll(service, [str(folder / "a.webm"), str(folder / "b.webm")])
other = create_poll(service, [str(folder / "table.csv")])
studies = service.ledger.state.studies
assert studies[first].about.items == studies[other].about.items
voter = TestClient(app)
voter.post(f"/api/studies/{first}/voters", json={})
(duel,) = voter.post(f"/api/studies/{first}/duels", json={}).json()["duels"]
assert {duel[side]["video"] for side in ("left", "right")} == {item.video for item in studies[first].about.items}
service.close()
print("shown")
"""


def recipe(title):
    return CONTRIBUTING.split(f"## {title}\n")[1].split("\n## ")[0]


def code(title):
    return textwrap.dedent(re.search(r" *```py\n(.*?)```", recipe(title), re.DOTALL)[1])


@pytest.fixture
def all_enabled():
    known = dict(KINDS)
    exec(code("Add an event"), scope := dict(vars(kinds)))
    yield scope["AllEnabled"]
    KINDS.clear()
    KINDS.update(known)


def test_an_event_is_a_class(booth, all_enabled):
    booth.run(operating.change_item, booth.study, 2, {"enabled": False})
    booth.vote(5)
    assert not booth.state.enabled[2]
    booth.run(lambda ledger: ledger.append(booth.study, all_enabled()))
    assert booth.state.enabled == [True] * 5
    booth.vote(20, seed=1)
    assert booth.state.shown[2] > 0
    state = booth.state.learner.state()
    booth.restart()
    assert booth.state.enabled == [True] * 5
    assert same_state(booth.state.learner.state(), state)
    log = booth.run(lambda ledger: list(read_events(ledger.connection())))
    assert [(event.body, event.text) for event in log if isinstance(event.body, all_enabled)] == [(all_enabled(), "{}")]
    assert backup.check(booth.folder).problems == ()
    assert [replay.problem for replay in backup.replay(booth.folder)] == [""]


def test_a_kind_of_item_is_a_function_an_entry_and_a_field(tmp_path):
    package, copy = Path(fairduel.__file__).parent, tmp_path / "fairduel"
    copy.mkdir()
    for each in package.iterdir():  # all but the service is as it is, and compiled
        if each.name != "service":
            (copy / each.name).symlink_to(each)
    shutil.copytree(package / "service", copy / "service", ignore=shutil.ignore_patterns("__pycache__"))
    media, study = copy / "service/study/media.py", copy / "service/study/study.py"
    [entry] = re.findall(r"Add `(.*?,)` to `MEDIA`", recipe("Add a kind of item"))
    text = media.read_text().replace("\nMEDIA = {", f"\n{code('Add a kind of item')}\n\nMEDIA = {{\n    {entry}")
    media.write_text(text)
    [field] = re.findall(r"Add `(.*?)` to `Media`", recipe("Add a kind of item"))
    study.write_text(study.read_text().replace("class Media(BaseModel):", f"class Media(BaseModel):\n    {field}"))
    command = [sys.executable, "-c", CHECK, str(tmp_path)]
    environment = {"PYTHONPATH": str(tmp_path), "NUMBA_DISABLE_JIT": "1"}  # nothing is compiled anew
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "shown", done.stderr
