"""The HTTP interface: who may do what, what is refused, and how."""

import io
import json
import random
import string
import subprocess
import threading
import time

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from PIL import Image
from starlette.testclient import TestClient

from fairduel.service.api import booth
from fairduel.service.api.app import create_app
from fairduel.service.api.limits import Limits, RateLimit
from fairduel.service.commands import team
from fairduel.service.events import database
from fairduel.service.events.ledger import Ledger
from fairduel.service.local import local_server, serving
from fairduel.service.service import Service
from helpers.servers import called_from, in_a_loop
from helpers.torture import torture

ITEMS = [{"name": name} for name in ("tea", "milk", "water", "=1+1")]
STUDY = {"question": "Which is better?", "items": ITEMS, "repeat_pairs": True}


def unlimited():
    return Limits(
        hosts=frozenset({"testserver", "127.0.0.1"}),
        address=RateLimit(1e9, 1e9),
        joins=RateLimit(1e9, 1e9),
        voter=RateLimit(1e9, 1e9),
    )


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    service = Service(tmp_path_factory.mktemp("api"))
    yield service
    service.close()


@pytest.fixture(scope="module")
def key(service):
    return service.ledger.run(team.ensure_operator)


@pytest.fixture(scope="module")
def app(service):
    return create_app(service, limits=unlimited())


@pytest.fixture
def anyone(app):
    return TestClient(app, raise_server_exceptions=True)


@pytest.fixture
def operator(app, key):
    return TestClient(app, headers={"Authorization": f"Bearer {key}"})


@pytest.fixture
def study(operator):
    return operator.post("/api/studies", json=STUDY).json()["study"]


@pytest.fixture
def voter(app, study):
    client = TestClient(app)
    assert client.post(f"/api/studies/{study}/voters", json={}).status_code == 201
    return client


def vote(client, study, given="left", key="key", root=""):
    duel = client.post(f"{root}/api/studies/{study}/duels", json={}).json()["duels"][0]["duel"]
    path = f"{root}/api/studies/{study}/duels/{duel}"
    return path, client.post(f"{path}/answer", json={"answer": given}, headers={"Idempotency-Key": key})


def problem(response):
    assert response.headers["content-type"] == "application/problem+json"
    body = response.json()
    assert body["status"] == response.status_code
    assert body["detail"].endswith(".")
    return response.status_code, body["code"]


def test_a_vote_from_the_link_to_the_receipt(operator, voter, study):
    assert voter.get(f"/api/studies/{study}/ballot").json()["joined"]
    path, reply = vote(voter, study)
    assert reply.status_code == 200
    assert voter.post(f"{path}/answer", json={"answer": "left"}, headers={"Idempotency-Key": "key"}).text == reply.text
    assert reply.json()["duels"] == []
    receipts = voter.get(f"/api/studies/{study}/receipt").json()
    assert [each["receipt"] for each in receipts["answers"]] == [reply.json()["receipt"]]
    assert voter.get(f"/api/receipts/{reply.json()['receipt']}").json()["valid"]
    assert voter.post(f"{path}/undo", json={}).json()["progress"]["votes"] == 0
    counts = operator.get(f"/api/studies/{study}").json()["counts"]
    assert counts == {"issued": 2, "votes": 0, "skips": 0, "expired": 0, "undone": 1, "open": 1, "voters": 1} | {
        "models": 0,
        "model_votes": 0,
        "imported": 0,
    }


@pytest.mark.parametrize(
    ("content", "idempotency_key"),
    [
        (b'{"answer": "left"}', "key"),  # the same vote again
        (b'{"answer": "right"}', "key"),
        (b'{"answer": "left"}', "other"),
        (b'{"answer": "left"}', ""),
        (b'{"answer": "left"}', "a key"),
        (b'{"answer": "left", "answer": "up"}', "key"),
        (b'{"answer": "left", "seconds": "1.5", "more": 1}', "key"),
        (b'{"answer": "left", "seconds": NaN}', "key"),
        (b'{"answer": "left", "next": 1.0}', "key"),
        (b'{"answer": "left"', "key"),
        (b"[" * 20_000, "key"),
        (b"\xff", "key"),
        (b"", "key"),
    ],
)
def test_the_shortcut_replies_as_fastapi_does(voter, study, monkeypatch, content, idempotency_key):
    path, _ = vote(voter, study)
    headers = {"Idempotency-Key": idempotency_key, "Content-Type": "application/json"}
    open_duels = f"/api/studies/{study}/duels"
    sent = [(f"{path}/answer", content), (open_duels, content), (open_duels, b'{"count": 2}')]

    def replies():
        found = [voter.post(where, content=what, headers=headers) for where, what in sent]
        return [(reply.status_code, reply.text, sorted(reply.headers.items())) for reply in found]

    short = replies()

    async def no_shortcut(*_):
        return None

    monkeypatch.setattr(booth, "shortcut", no_shortcut)
    assert replies() == short


def test_results_come_from_the_recorded_votes(operator, app, study):
    voters = [TestClient(app) for _ in range(5)]
    for client in voters:
        client.post(f"/api/studies/{study}/voters", json={})
    for number in range(30):
        client = voters[number % 5]
        duel = client.post(f"/api/studies/{study}/duels", json={}).json()["duels"][0]
        given = "left" if duel["left"]["text"] > duel["right"]["text"] else "right"
        path = f"/api/studies/{study}/duels/{duel['duel']}/answer"
        client.post(path, json={"answer": given}, headers={"Idempotency-Key": str(number)})
    for _ in range(200):
        found = operator.get(f"/api/studies/{study}/results").json()
        if found["votes"] == 30 and not found["stale"]:
            break
        time.sleep(0.1)
    assert found["ranking"][0]["item"] == "water"
    assert found["verdicts"][0]["items"][0] == "water"
    assert found["verdicts"][0]["votes"] == 30
    assert found["needs"] is None
    assert sum(bar["votes"] for bar in found["activity"]) == 30
    assert found["balance"]["left"] + found["balance"]["right"] == 30
    assert [each["item"] for each in found["certificates"]] == [each["item"] for each in found["ranking"]]
    assert [each["rank"] for each in found["certificates"]] == [1, 2, 3, 4]
    assert sum(pair["duels"] for pair in found["agent"]["pairs"]) == found["agent"]["lately"] == 30
    assert not {found["verdicts"][0]["headline"], *found["verdicts"][0]["details"]} & {*found["details"]}
    rows = operator.get(f"/api/studies/{study}/voters").json()["voters"]
    assert [row["votes"] for row in rows] == [6] * 5
    aside = operator.patch(f"/api/studies/{study}/voters/{rows[0]['voter']}", json={"set_aside": True})
    assert aside.json()["set_aside"]
    for table in ("votes", "duels", "voters", "ranking", "log"):
        for form in ("csv", "jsonl", "parquet"):
            file = operator.get(f"/api/studies/{study}/exports/{table}.{form}")
            assert file.status_code == 200
            assert len(file.content) > 100
    lines = operator.get(f"/api/studies/{study}/exports/votes.csv").text.splitlines()
    assert len(lines) == 31
    assert "'=1+1" in operator.get(f"/api/studies/{study}/exports/votes.csv").text
    assert operator.get(f"/api/studies/{study}/exports/secrets.csv").status_code == 422


def test_keys_open_only_their_own_doors(app, operator, anyone, voter, study):
    other = operator.post("/api/studies", json=STUDY).json()["study"]
    seen = operator.post(f"/api/studies/{study}/observers", json={}).json()
    observer = TestClient(app, headers={"Authorization": f"Bearer {seen['key']}"})
    assert seen["link"] == f"observe/{study}#{seen['key']}"
    pages = ["", "/results", "/exports/votes.csv"]
    for page in pages:
        assert observer.get(f"/api/studies/{study}{page}").status_code == 200
        assert problem(observer.get(f"/api/studies/{other}{page}")) == (404, "not-found")
        assert problem(voter.get(f"/api/studies/{study}{page}")) == (404, "not-found")
        assert problem(anyone.get(f"/api/studies/{study}{page}")) == (401, "no-key")
    for client, status in ((observer, 404), (voter, 401), (anyone, 401)):
        assert client.get("/api/studies").status_code == status
        assert client.post("/api/studies", json=STUDY).status_code == status
    for page in ("/voters", "/exports/voters.csv", "/exports/log.csv"):
        assert observer.get(f"/api/studies/{study}{page}").status_code == 404
    assert problem(observer.post(f"/api/studies/{study}/duels", json={})) == (404, "not-found")
    wrong = TestClient(app, headers={"Authorization": "Bearer fdo_guess"})
    assert problem(wrong.get("/api/studies")) == (401, "no-key")
    assert operator.delete(f"/api/studies/{study}/observers").status_code == 204
    assert problem(observer.get(f"/api/studies/{study}/results")) == (401, "no-key")


def test_a_session_cookie_cannot_be_read_or_sent_by_others(app, key, anyone):
    response = anyone.post("/api/session", json={"key": key})
    assert response.json().items() >= {"scope": "operator", "study": None, "name": "Owner", "role": "owner"}.items()
    cookie = response.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert anyone.get("/api/studies").status_code == 200
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}, {"Origin": "null"}):
        assert problem(anyone.post("/api/studies", json=STUDY, headers=headers)) == (403, "cross-site")
    form = anyone.post("/api/studies", data={"question": "x"})
    assert problem(form) == (415, "wrong-type")
    assert anyone.delete("/api/session").status_code == 204
    assert anyone.get("/api/studies").status_code == 401
    secure = TestClient(app, base_url="https://testserver").post("/api/session", json={"key": key})
    assert "Secure" in secure.headers["set-cookie"]


def test_invitations_and_keys(app, operator, anyone):
    invited = operator.post("/api/studies", json=STUDY | {"access": "invitation"}).json()["study"]
    assert problem(anyone.post(f"/api/studies/{invited}/voters", json={})) == (409, "not-invited")
    made = operator.post(f"/api/studies/{invited}/invitations", json={"names": ["Ada"]}).json()["invitations"][0]
    guest = TestClient(app)
    assert guest.post("/api/session", json={"key": made["key"]}).json()["scope"] == "voter"
    assert vote(guest, invited)[1].json()["counted"]


def test_gold_duels_and_items_over_http(app, operator, voter, study):
    known = {"answers": [{"winner": "tea", "loser": "milk", "context": None}], "first": 1, "every": 2}
    assert operator.put(f"/api/studies/{study}/gold", json=known).json()["gold"] == known
    duel = voter.post(f"/api/studies/{study}/duels", json={}).json()["duels"][0]
    assert {duel["left"]["text"], duel["right"]["text"]} == {"tea", "milk"}
    given = "left" if duel["left"]["text"] == "tea" else "right"
    path = f"/api/studies/{study}/duels/{duel['duel']}/answer"
    reply = voter.post(path, json={"answer": given, "next": 1}, headers={"Idempotency-Key": "k"})
    assert "gold" not in reply.text
    next_duel = reply.json()["duels"][0]["duel"]
    voter.post(
        f"/api/studies/{study}/duels/{next_duel}/answer", json={"answer": "tie"}, headers={"Idempotency-Key": "l"}
    )
    row = operator.get(f"/api/studies/{study}/voters").json()["voters"][0]
    assert (row["gold"], row["kind"], row["learned"]) == (
        "1 of 1 known answers right; someone who answers at random gets 0.5",
        "person",
        True,
    )
    assert "gold_right" in operator.get(f"/api/studies/{study}/exports/voters.csv").text
    rows = operator.get(f"/api/studies/{study}/exports/duels.jsonl").text.splitlines()
    assert [json.loads(row)["gold"] for row in rows] == [True, False]
    assert json.loads(rows[0])["weight"] == 0.0
    seen = operator.post(f"/api/studies/{study}/observers", json={}).json()
    observer = TestClient(app, headers={"Authorization": f"Bearer {seen['key']}"})
    assert observer.get(f"/api/studies/{study}").json()["gold"] is None
    hidden = json.loads(observer.get(f"/api/studies/{study}/exports/duels.jsonl").text.splitlines()[0])
    assert hidden.keys() == json.loads(rows[0]).keys() - {"gold", "weight", "agent_weight"}
    for client in (observer, voter):
        assert problem(client.put(f"/api/studies/{study}/gold", json=known)) == (404, "not-found")
    stranger = {"answers": [{"winner": "tea", "loser": "coffee"}]}
    for wrong in (stranger, known | {"every": 1}, known | {"always": True}, {"answers": [{"winner": "tea"}]}):
        assert problem(operator.put(f"/api/studies/{study}/gold", json=wrong)) == (422, "invalid")
    assert operator.get(f"/api/studies/{study}").json()["gold"] == known
    item = operator.patch(f"/api/studies/{study}/items/2", json={"priority": True, "least_views": 7}).json()["items"][2]
    assert (item["priority"], item["least_views"], item["enabled"]) == (True, 7, True)
    for wrong in ({"priority": 7}, {"least_views": -1}, {"views": 3}):
        assert problem(operator.patch(f"/api/studies/{study}/items/2", json=wrong)) == (422, "invalid")


def test_language_models_are_invited_by_operators_only(app, operator, anyone, study):
    body = {"kind": "model", "names": ["gpt-x"]}
    made = operator.post(f"/api/studies/{study}/invitations", json=body).json()["invitations"][0]
    assert made["kind"] == "model"
    model = TestClient(app, headers={"Authorization": f"Bearer {made['key']}"})
    assert vote(model, study)[1].json()["counted"]
    counts = operator.get(f"/api/studies/{study}").json()["counts"]
    assert (counts["models"], counts["model_votes"]) == (1, 1)
    row = operator.get(f"/api/studies/{study}/voters").json()["voters"][0]
    assert (row["kind"], row["name"], row["learned"], row["label"]) == ("model", "gpt-x", False, "gpt-x (voter 1)")
    votes = operator.get(f"/api/studies/{study}/exports/votes.jsonl").text
    assert json.loads(votes)["kind"] == "model"
    assert problem(anyone.post(f"/api/studies/{study}/voters", json={"kind": "model"})) == (422, "invalid")
    assert problem(model.post(f"/api/studies/{study}/invitations", json=body))[0] == 404
    for wrong in ({"kind": "model", "count": 2}, {"kind": "robot", "names": ["x"]}):
        assert problem(operator.post(f"/api/studies/{study}/invitations", json=wrong)) == (422, "invalid")
    assert problem(operator.patch(f"/api/studies/{study}", json={"models": "counted"})) == (422, "invalid")


def test_every_answer_has_the_security_headers(anyone):
    for path in ("/healthz", "/api/studies", "/nowhere"):
        headers = anyone.get(path).headers
        assert "script-src 'self'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"


def test_other_host_names_are_refused(anyone):
    assert problem(anyone.get("/healthz", headers={"Host": "evil.example"})) == (421, "wrong-host")


def test_rate_limits_say_when_to_come_back(service, key):
    limits = Limits(hosts=frozenset({"testserver"}), joins=RateLimit(0.5, 3))
    client = TestClient(create_app(service, limits=limits), headers={"Authorization": f"Bearer {key}"})
    study = client.post("/api/studies", json=STUDY).json()["study"]
    replies = [client.post(f"/api/studies/{study}/voters", json={}) for _ in range(6)]
    assert [reply.status_code for reply in replies] == [201] * 3 + [429] * 3
    assert problem(replies[-1]) == (429, "too-many-requests")
    assert 1 <= int(replies[-1].headers["retry-after"]) <= 3


BAD_BODIES = {
    "nan": b'{"answer": "left", "seconds": NaN}',
    "infinity": b'{"answer": "left", "seconds": 1e999}',
    "text": b'{"answer": "left", "seconds": "inf"}',
    "surrogate": b'{"answer": "left", "comment": "\\ud800"}',
    "null byte": b'{"answer": "left", "comment": "\\u0000"}',
    "unknown field": b'{"answer": "left", "weight": 9}',
    "not an answer": b'{"answer": "both"}',
    "deep": b"[" * 15_000,
    "long number": b'{"answer": ' + b"9" * 5000 + b"}",
    "not JSON": b"\xff\xfe",
    "empty": b"",
}


HOSTILE_BODIES = [
    b'{"count": NaN, "seconds": NaN}',
    b'{"count": 1e999, "seconds": 1e999}',
    b'{"question": "' + b"x" * 10_000_000 + b'"}',
    b"[" * 10_000 + b"]" * 10_000,
    b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
]


@pytest.mark.parametrize("name", BAD_BODIES)
def test_bad_bodies_are_refused(voter, study, name):
    duel = voter.post(f"/api/studies/{study}/duels", json={}).json()["duels"][0]["duel"]
    headers = {"Idempotency-Key": "k", "Content-Type": "application/json"}
    response = voter.post(f"/api/studies/{study}/duels/{duel}/answer", content=BAD_BODIES[name], headers=headers)
    assert problem(response)[0] in {400, 422}


def test_large_bodies_are_refused(operator, voter, study):
    json_type = {"Content-Type": "application/json", "Idempotency-Key": "k"}
    assert problem(voter.post(f"/api/studies/{study}/duels", content=b" " * 10_000_000, headers=json_type))[0] == 413
    assert problem(operator.post("/api/studies", content=b" " * 21_000_000, headers=json_type))[0] == 413
    many = STUDY | {"items": [{"name": str(n)} for n in range(1001)]}
    assert problem(operator.post("/api/studies", json=many))[0] == 422
    bomb = operator.post("/api/images", content=b"GIF89a" + b"\xff" * 100, headers={"Content-Type": "image/gif"})
    assert problem(bomb) == (422, "invalid")


@pytest.mark.parametrize(
    "wrong",
    [
        {"items": [{"name": "one"}]},
        {"items": [{"name": "one"}, {"name": "one"}]},
        {"items": [{"name": "a"}, {"name": "b", "image": "0" * 64}]},
        {"items": [{"name": " a"}, {"name": "b"}]},
        {"agent": "barbar"},
        {"agent": "os:system"},
        {"agent_settings": {"self_duels": True}},
        {"agent_settings": {"ridge": -1}},
        {"agent_settings": {"no_such": 1}},
        {"contexts": [{"name": "p", "contents": {"tea": "x"}}]},
        {"contexts": [{"name": "p", "contents": {"tea": "x", "stranger": "y"}}]},
        {"question": ""},
        {"question": "hidden \u202e text"},
        {"votes_per_voter": 0},
        {"undo_seconds": 1e300},
        {"models": "mixed"},
        {"least_views": -1},
        {"gold": {"answers": [{"winner": "tea", "loser": "tea"}]}},
        {"gold": {"answers": [{"winner": "tea", "loser": "milk", "context": "p"}]}},
    ],
    ids=str,
)
def test_a_wrong_study_is_refused_in_one_sentence(operator, wrong):
    assert problem(operator.post("/api/studies", json=STUDY | wrong)) == (422, "invalid")


def test_images_are_encoded_again(operator, anyone):
    buffer = io.BytesIO()
    Image.new("RGB", (3000, 10), "red").save(buffer, "PNG", pnginfo=None)
    sent = buffer.getvalue() + b"<script>alert(1)</script>"
    reply = operator.post("/api/images", content=sent, headers={"Content-Type": "image/png"})
    assert reply.status_code == 201
    assert reply.json()["width"] == 2000
    got = anyone.get(f"/api/images/{reply.json()['image']}")
    assert got.headers["content-type"] == "image/png"
    assert "immutable" in got.headers["cache-control"]
    assert b"script" not in got.content
    items = [{"name": "a", "image": reply.json()["image"]}, {"name": "b"}]
    assert operator.post("/api/studies", json=STUDY | {"items": items}).status_code == 201


def test_metrics_and_logs_hold_no_secrets(operator, voter, study, key, caplog):
    with caplog.at_level("INFO", logger="fairduel.service"):
        vote(voter, study)
        operator.get(f"/api/studies/{study}/results?secret=1")
    text = operator.get("/metrics").text + "".join(str(vars(record)) for record in caplog.records)
    assert "/api/studies/{study}/results" in text
    assert "fairduel_duels" in text
    assert not any(secret in text for secret in (key, "secret=1", study))


def test_pages_are_notified_of_changes():
    with local_server(limits=unlimited()) as (url, key):
        headers = {"Authorization": f"Bearer {key}"}
        study = httpx.post(f"{url}/api/studies", json=STUDY, headers=headers).json()["study"]
        positions = []
        with httpx.stream("GET", f"{url}/api/studies/{study}/events", headers=headers, timeout=20) as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            for line in stream.iter_lines():
                if line.startswith("data: "):
                    positions.append(json.loads(line[6:])["position"])
                    if len(positions) == 1:
                        join = f"{url}/api/studies/{study}/voters"
                        threading.Thread(target=httpx.post, args=(join,), kwargs={"json": {}}).start()
                    if positions[-1] > positions[0]:
                        break
        assert positions[-1] > positions[0]


@torture(
    20, "requests generated from the schema, valid and not, and hostile bodies", small=4, full=400, unit="per route"
)
def test_random_requests_cause_no_server_error(trial, app, operator, voter, study):
    """As an operator and as a voter."""
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    schema.config.generation.with_security_parameters = False  # the keys of both are valid
    assert len(list(schema.get_all_operations())) > 20
    rng, requests = random.Random(0), 0
    for operation in schema.get_all_operations():
        found = operation.ok()
        if found.path.endswith("/events"):
            continue

        @settings(
            max_examples=trial.size,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=found.as_strategy())
        def send(case):
            nonlocal requests
            requests += 1
            client = rng.choice([operator, voter])
            if rng.random() < 0.7 and "study" in (case.path_parameters or {}):
                case.path_parameters["study"] = study
            arguments = case.as_transport_kwargs(base_url="http://testserver")
            arguments.pop("cookies", None)
            response = client.request(**{name: value for name, value in arguments.items() if value is not None})
            assert response.status_code < 500, (case.method, case.path, response.text)

        send()
        if found.method.upper() in {"POST", "PATCH"}:
            path = found.path.replace("{study}", study).replace("{", "").replace("}", "")
            for body in HOSTILE_BODIES:
                for client in (operator, voter):
                    requests += 1
                    headers = {"Content-Type": "application/json", "Idempotency-Key": "k"}
                    response = client.request(found.method, path, content=body, headers=headers)
                    assert 400 <= response.status_code < 500, (found.path, body[:20], response.text)
    assert requests > 15 * trial.size
    trial.found = f"{requests:,} requests, no 5xx; NaN, 1e999, 10 MB and JSON 10,000 deep are refused by every route"


def test_random_bytes_cause_no_server_error(operator, voter, study):
    rng = random.Random(0)
    paths = [f"/api/studies/{study}/duels", "/api/session", "/api/studies", f"/api/studies/{study}/duels/x/answer"]
    for _ in range(150):
        letters = string.printable + "é\u202e\0"
        path = rng.choice([*paths, "/" + "".join(rng.choices(string.ascii_letters + "/%.#?", k=20))])
        body = "".join(rng.choices(letters + '{}[]":,' * 9, k=rng.randrange(60))).encode()
        headers = {"Content-Type": "application/json", "Idempotency-Key": "k" * rng.randrange(100)}
        for client in (operator, voter):
            assert client.post(path, content=body, headers=headers).status_code < 500


def test_an_erased_name_is_nowhere_on_disk(operator, service, study):
    invited = operator.post(f"/api/studies/{study}/invitations", json={"names": ["Grace Hopper"]}).json()["invitations"]
    assert "Grace Hopper" in operator.get(f"/api/studies/{study}/voters").text
    path = f"/api/studies/{study}/voters/{invited[0]['voter']}/personal"
    assert operator.delete(path).status_code == 204
    assert "Grace Hopper" not in operator.get(f"/api/studies/{study}/voters").text
    assert not is_on_disk("Grace Hopper", service.ledger.store.where)


def is_on_disk(text, folder):
    """Whether a file has a text; this process must not open them, because to close them would free SQLite's locks."""
    return subprocess.run(["grep", "-rq", text, folder], check=False).returncode == 0


def test_nothing_is_said_to_be_erased_while_it_is_on_disk(service, operator, study, monkeypatch):
    invited = operator.post(f"/api/studies/{study}/invitations", json={"names": ["Ada Lovelace"]}).json()["invitations"]
    path, place = f"/api/studies/{study}/voters/{invited[0]['voter']}/personal", service.ledger.store.where
    monkeypatch.setattr(database, "_FORGET_SECONDS", 0.0)
    with service.ledger.store.engine.connect() as reader:
        reader.exec_driver_sql("BEGIN")
        reader.exec_driver_sql("SELECT count(*) FROM events").scalar()
        reader.exec_driver_sql("PRAGMA busy_timeout = 0")
        assert problem(operator.delete(path)) == (503, "storage")
        assert is_on_disk("Ada Lovelace", place)
        reader.rollback()
    assert operator.delete(path).status_code == 204
    assert not is_on_disk("Ada Lovelace", place)


def test_metrics_are_for_operators_and_this_machine(app, anyone, operator, voter):
    assert problem(anyone.get("/metrics")) == (401, "no-key")
    assert problem(voter.get("/metrics"))[0] in {401, 404}
    assert operator.get("/metrics").status_code == 200
    here = TestClient(called_from(app, "127.0.0.1"))
    assert here.get("/metrics").status_code == 200
    assert here.get("/metrics", headers={"X-Forwarded-For": "192.0.2.1"}).status_code == 401


def test_the_head_of_the_log_is_public(anyone, voter, study):
    path, reply = vote(voter, study)
    head = anyone.get("/api/head").json()
    assert head["receipt"] == reply.json()["receipt"]
    assert head["receipt"].startswith(f"{head['position']}-")
    voter.post(f"{path}/undo", json={})
    assert anyone.get("/api/head").json()["position"] > head["position"]


def test_callers_without_a_key_are_refused_before_their_body_is_read(app, voter, study):
    """A body that would never end is not asked for; and a path that only ends like another is not that one."""

    async def send(path, key=None, kind="application/json"):
        async def receive():
            raise AssertionError("the body is read")

        replies = []

        async def keep(message):
            replies.append(message)

        headers = [(b"host", b"testserver"), (b"content-type", kind.encode()), (b"content-length", b"20000000")]
        headers += [(b"authorization", f"Bearer {key}".encode())] if key else []
        scope = {"type": "http", "http_version": "1.1", "method": "POST", "scheme": "http", "path": path}
        scope |= {"raw_path": path.encode(), "query_string": b"", "root_path": "", "headers": headers}
        await app(scope | {"client": ("192.0.2.1", 1), "server": ("testserver", 80), "state": {}}, receive, keep)
        return replies[0]["status"]

    binary, key = "application/octet-stream", voter.cookies["fairduel_voter"]
    paths = ["/api/studies", "/api/study-files", f"/api/studies/{study}", f"/api/studies/{study}/duels"]
    assert [in_a_loop(send(path)) for path in paths] == [401] * 4
    assert in_a_loop(send(f"/api/studies/{study}/import", kind=binary)) == 401
    assert in_a_loop(send("/api/images", kind="image/png")) == 401
    assert in_a_loop(send("/x/import", kind=binary)) in {404, 405}
    assert in_a_loop(send("/api/x/import", key, binary)) == 415  # JSON is expected there
    assert [in_a_loop(send(path, key)) for path in paths] == [404, 404, 413, 413]
    for path in ("/api/session", f"/api/studies/{study}/voters"):
        assert in_a_loop(send(path)) == 413


def test_an_answer_can_bring_the_next_duels(voter, study):
    duel = voter.post(f"/api/studies/{study}/duels", json={"count": 2}).json()["duels"][0]["duel"]
    path, headers = f"/api/studies/{study}/duels/{duel}/answer", {"Idempotency-Key": "key"}
    replies = [voter.post(path, json={"answer": "left", "next": 2}, headers=headers) for _ in range(3)]
    assert len({reply.text for reply in replies}) == 1
    assert replies[0].json()["duels"] == voter.post(f"/api/studies/{study}/duels", json={"count": 2}).json()["duels"]


def test_under_a_subpath_cookies_stay_there(app, key, operator, study):
    client = TestClient(app, root_path="/polls")
    opened = client.post("/polls/api/session", json={"key": key})
    assert "Path=/polls/;" in opened.headers["set-cookie"]
    joined = client.post(f"/polls/api/studies/{study}/voters", json={})
    assert f"Path=/polls/api/studies/{study};" in joined.headers["set-cookie"]
    client.cookies["fairduel_voter"] = joined.json()["key"]
    assert vote(client, study, root="/polls")[1].json()["counted"]
    assert operator.get(f"/api/studies/{study}").json()["counts"]["voters"] == 1


def test_a_callers_word_on_their_address_is_not_taken(service, key):
    limits = Limits(hosts=frozenset({"127.0.0.1"}), joins=RateLimit(0.001, 2))
    with serving(create_app(service, limits=limits)) as url:
        headers = {"Authorization": f"Bearer {key}"}
        study = httpx.post(f"{url}/api/studies", json=STUDY, headers=headers).json()["study"]
        join = f"{url}/api/studies/{study}/voters"
        spoofed = [httpx.post(join, json={}, headers={"X-Forwarded-For": f"10.0.0.{n}"}) for n in range(4)]
    assert [reply.status_code for reply in spoofed] == [201, 201, 429, 429]


def test_an_overloaded_server_refuses_before_it_reads(voter, study, monkeypatch):
    path, _ = vote(voter, study)
    with monkeypatch.context() as overload:
        overload.setattr(Ledger, "is_overloaded", True)
        reply = voter.post(f"{path}/undo", content=b"not read", headers={"Content-Type": "application/json"})
        assert problem(reply) == (503, "overloaded")
        assert reply.headers["retry-after"] == "1"
        assert "content-security-policy" in reply.headers
        assert voter.get("/healthz").status_code == 200
    assert voter.post(f"{path}/undo", json={}).status_code == 200
