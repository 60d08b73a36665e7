"""Operators with roles, studies in frames and on crowd platforms, items added while people vote, and notices."""

import hashlib
import hmac
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from starlette.testclient import TestClient

from fairduel.errors import BadInputError
from fairduel.service.api.app import create_app
from fairduel.service.api.limits import unlimited
from fairduel.service.commands import team
from fairduel.service.events import backup
from fairduel.service.notices import Mail, Webhook, targets, webhook_signature
from fairduel.service.service import Service

STUDY = {"question": "Which?", "items": [{"name": name} for name in ("tea", "milk", "water")], "repeat_pairs": True}
SITE = "https://blog.example.org"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("operating") / "store"


@pytest.fixture(scope="module")
def service(folder):
    service = Service(folder)
    yield service
    service.close()
    assert backup.check(folder).problems == ()


@pytest.fixture(scope="module")
def app(service):
    return create_app(service, limits=unlimited())


@pytest.fixture
def browser(app):
    def make(key=None, base="http://localhost", **headers):
        given = {"Authorization": f"Bearer {key}"} if key else {}
        return TestClient(app, base_url=base, headers=given | headers, follow_redirects=False)

    return make


@pytest.fixture
def owner(service, browser):
    return browser(service.ledger.run(team.replace_operator))


def new_study(operator, **settings):
    return operator.post("/api/studies", json=STUDY | settings).raise_for_status().json()["study"]


def vote(voter, study, count=1):
    for _ in range(count):
        (duel,) = voter.post(f"/api/studies/{study}/duels", json={}).json()["duels"]
        path = f"/api/studies/{study}/duels/{duel['duel']}/answer"
        voter.post(path, json={"answer": "left"}, headers={"Idempotency-Key": duel["duel"]}).raise_for_status()


# ---------------------------------------------------------------------------- roles


def test_roles_allow_what_they_say(browser, owner):
    made = [owner.post("/api/operators", json={"name": role, "role": role}) for role in ("operator", "observer")]
    operator, observer = (browser(each.json()["key"]) for each in made)
    study = new_study(operator)
    voter = operator.post(f"/api/studies/{study}/invitations", json={"count": 1}).json()["invitations"][0]["voter"]
    routes = {
        ("GET", "/api/operators"): (200, 403, 404),
        ("GET", "/api/webhook-key"): (200, 403, 404),
        ("GET", "/api/studies"): (200, 200, 200),
        ("GET", f"/api/studies/{study}"): (200, 200, 200),
        ("GET", f"/api/studies/{study}/results"): (200, 200, 200),
        ("GET", f"/api/studies/{study}/voters"): (200, 200, 404),
        ("GET", f"/api/studies/{study}/history"): (200, 200, 404),
        ("GET", f"/api/studies/{study}/exports/log.csv"): (200, 200, 404),
        ("PATCH", f"/api/studies/{study}"): (200, 200, 404),
        ("PATCH", f"/api/studies/{study}/voters/{voter}"): (422, 422, 404),
        ("DELETE", f"/api/studies/{study}/voters/{voter}/personal"): (204, 204, 404),
        ("DELETE", f"/api/studies/{study}/personal"): (204, 204, 404),
        ("POST", "/api/operators"): (422, 403, 404),
    }
    for (method, path), expected in routes.items():
        body = {} if method in {"POST", "PATCH"} else None
        found = tuple(each.request(method, path, json=body).status_code for each in (owner, operator, observer))
        assert found == expected, (method, path)
    assert operator.delete(f"/api/studies/{study}").status_code == 403
    assert observer.get("/api/session").json()["role"] == "observer"
    assert owner.delete(f"/api/studies/{study}").status_code == 204
    assert owner.get(f"/api/studies/{study}").status_code == 404
    assert study not in json.dumps(owner.get("/api/studies").json())
    for each in made:
        owner.delete(f"/api/operators/{each.json()['operator']}").raise_for_status()
    assert [each.get("/api/session").status_code for each in (operator, observer)] == [401, 401]


def test_the_log_says_who_set_whom_aside(browser, owner):
    ann = owner.post("/api/operators", json={"name": "Ann"}).json()
    assert owner.post("/api/operators", json={"name": "ANN"}).json()["code"] == "name-taken"
    operator = browser(ann["key"])
    study = new_study(operator)
    voter = operator.post(f"/api/studies/{study}/invitations", json={"names": ["Bob"]}).json()["invitations"][0][
        "voter"
    ]
    row = operator.patch(f"/api/studies/{study}/voters/{voter}", json={"set_aside": True}).json()
    assert (row["judged_by"], row["judged_at"] > 1e9) == ("Ann", True)
    owner.delete(f"/api/operators/{ann['operator']}").raise_for_status()
    newest = owner.get(f"/api/studies/{study}/history").json()["actions"][0]
    assert (newest["by"], newest["kind"], newest["about"]) == (
        "Ann",
        "voter changed",
        {"voter": voter, "set_aside": True},
    )
    log = owner.get(f"/api/studies/{study}/exports/log.jsonl").text
    assert f'by\\":\\"{ann["operator"]}' in log


def test_signing_out_everywhere_replaces_the_key(browser, owner):
    ann = owner.post("/api/operators", json={"name": "Eve"}).json()
    cookie = browser()
    cookie.post("/api/session", json={"key": ann["key"]}).raise_for_status()
    assert cookie.delete("/api/session").status_code == 204
    assert cookie.get("/api/session").status_code == 401  # here
    first = browser(ann["key"])
    other = first.get("/api/session").json()
    boss = owner.get("/api/session").json()["operator"]
    assert first.post(f"/api/operators/{boss}/key", json={}).status_code == 403
    new = first.post(f"/api/operators/{other['operator']}/key", json={}).json()
    assert first.get("/api/session").status_code == 401  # everywhere
    assert browser(new["key"]).get("/api/session").json()["name"] == "Eve"
    assert owner.delete(f"/api/operators/{boss}").json()["code"] == "last-owner"


# ---------------------------------------------------------------------------- frames, other sites, platforms


def test_only_the_sites_of_a_study_may_show_it_in_a_frame(browser, owner):
    study, other = new_study(owner, allowed_origins=[SITE]), new_study(owner)
    shown, hidden = (browser().get(f"/vote/{each}").headers for each in (study, other))
    assert f"frame-ancestors 'self' {SITE}" in shown["content-security-policy"]
    assert "x-frame-options" not in shown
    assert ("frame-ancestors 'none'" in hidden["content-security-policy"], hidden["x-frame-options"]) == (True, "DENY")
    assert "frame-ancestors 'none'" in browser().get("/").headers["content-security-policy"]
    script = browser().get("/static/embed.js").headers
    assert (script["cross-origin-resource-policy"], hidden["cross-origin-resource-policy"]) == (
        "cross-origin",
        "same-origin",
    )
    joined = browser(base="https://localhost").post(f"/api/studies/{study}/voters", json={}).headers["set-cookie"]
    assert joined.endswith("Secure; Partitioned") or "Partitioned" in joined
    assert "SameSite=none" in joined
    assert "Secure" in joined
    plain = browser(base="https://localhost").post(f"/api/studies/{other}/voters", json={}).headers["set-cookie"]
    assert "SameSite=strict" in plain
    wrong = {"allowed_origins": ["https://a.example/'; script-src *"]}
    assert owner.patch(f"/api/studies/{study}", json=wrong).status_code == 422


def test_pages_of_allowed_sites_may_vote_by_key_and_not_by_cookie(browser, owner):
    study, other = new_study(owner, allowed_origins=[SITE]), new_study(owner)
    visitor = browser(Origin=SITE, **{"Sec-Fetch-Site": "cross-site"})
    asked = visitor.options(f"/api/studies/{study}/duels", headers={"Access-Control-Request-Method": "POST"})
    assert (asked.status_code, asked.headers["access-control-allow-origin"]) == (204, SITE)
    assert "Authorization" in asked.headers["access-control-allow-headers"]
    joined = visitor.post(f"/api/studies/{study}/voters", json={})
    assert (joined.status_code, joined.headers["access-control-allow-origin"]) == (201, SITE)
    assert "access-control-allow-credentials" not in joined.headers
    assert visitor.post(f"/api/studies/{study}/duels", json={}).status_code == 401  # the cookie does not count
    visitor.headers["Authorization"] = f"Bearer {joined.json()['key']}"
    vote(visitor, study)
    assert visitor.post(f"/api/studies/{other}/voters", json={}).json()["code"] == "cross-site"
    assert visitor.patch(f"/api/studies/{study}", json={}).json()["code"] == "cross-site"
    stranger = browser(Origin="https://evil.example")
    assert stranger.post(f"/api/studies/{study}/voters", json={}).json()["code"] == "cross-site"
    assert "access-control-allow-origin" not in stranger.get(f"/api/studies/{study}/ballot").headers
    assert stranger.options(f"/api/studies/{study}/duels").status_code == 405


@pytest.mark.parametrize(
    ("query", "participant"),
    [("PROLIFIC_PID=5f&STUDY_ID=1", "5f"), ("workerId=A1%26B", "A1%26B"), ("participant=x&workerId=y", None)],
)
def test_crowd_platforms_name_participants_in_their_own_way(browser, owner, query, participant):
    study = new_study(owner, platform="prolific", completion_code="C1 &", votes_per_voter=1)
    found = browser().get(f"/vote/{study}?{query}")
    assert (found.status_code, found.headers.get("location")) == (
        (200, None) if participant is None else (303, f"?participant={participant}")
    )


def test_participants_of_prolific_are_led_back_when_they_are_done(browser, owner):
    study = new_study(owner, platform="prolific", completion_code="C1 &", votes_per_voter=1)
    about = owner.get(f"/api/studies/{study}").json()
    assert about["access"] == "platform"
    assert about["links"]["prolific"].startswith(f"vote/{study}?PROLIFIC_PID={{{{%PROLIFIC_PID%}}}}&STUDY_ID=")
    voter = browser()
    voter.post(f"/api/studies/{study}/voters", json={"participant": "5f"}).raise_for_status()
    asked = voter.post(f"/api/studies/{study}/duels", json={}).json()
    assert asked["progress"]["completion_url"] is None
    vote(voter, study)
    done = voter.post(f"/api/studies/{study}/duels", json={}).json()["progress"]
    assert done["completion_url"] == "https://app.prolific.com/submissions/complete?cc=C1+%26"
    for wrong in ("http://a.example", "javascript:alert(1)", "https://a.example/ x"):
        assert owner.patch(f"/api/studies/{study}", json={"completion_url": wrong}).status_code == 422


# ---------------------------------------------------------------------------- items


def test_an_item_joins_a_study_that_people_vote_in(browser, owner, service):
    study = new_study(owner)
    voter = browser()
    voter.post(f"/api/studies/{study}/voters", json={}).raise_for_status()
    vote(voter, study, 30)
    grown = owner.post(f"/api/studies/{study}/items", json={"name": "juice", "text": "fresh"}).raise_for_status().json()
    assert [item["name"] for item in grown["items"]] == ["tea", "milk", "water", "juice"]
    assert grown["counts"]["votes"] == 30
    seen = set()
    for _ in range(30):
        (duel,) = voter.post(f"/api/studies/{study}/duels", json={}).json()["duels"]
        seen |= {duel[side]["text"] for side in ("left", "right")}
        vote(voter, study)
    assert "fresh" in seen
    assert owner.post(f"/api/studies/{study}/items", json={"name": "juice"}).status_code == 422
    assert owner.post(f"/api/studies/{study}/items", json={"name": "x", "image": "0" * 64}).status_code == 422
    wrong = {"name": "x", "contents": {"nowhere": "y"}}
    assert "no context" in owner.post(f"/api/studies/{study}/items", json=wrong).json()["detail"]
    with service.ledger.store.engine.connect():
        replayed = {each.study: each.problem for each in backup.replay(service.ledger.store.where)}
    assert replayed[study] == ""


def test_an_item_joins_contexts_with_its_answers_and_features(owner):
    contents = {"tea": "t", "milk": "m"}
    contexts = [{"name": n, "contents": contents, "features": {"tea": [1.0], "milk": [2.0]}} for n in ("one", "two")]
    study = new_study(owner, items=STUDY["items"][:2], contexts=contexts)
    body = {"name": "juice", "contents": {"two": "j"}, "answer_features": {"two": [3.0]}}
    grown = owner.post(f"/api/studies/{study}/items", json=body).raise_for_status().json()
    assert [context["contents"] for context in grown["contexts"]] == [contents, contents | {"juice": "j"}]
    assert "at least one" in owner.post(f"/api/studies/{study}/items", json={"name": "x"}).json()["detail"]


# ---------------------------------------------------------------------------- notices


@pytest.fixture
def receiver():
    """A server that refuses the first request and keeps the others."""
    got, found = [], threading.Semaphore(0)

    class Handler(BaseHTTPRequestHandler):
        refused = False

        def do_POST(self):
            content = self.rfile.read(int(self.headers["Content-Length"]))
            is_first, Handler.refused = not Handler.refused, True
            self.send_response(500 if is_first else 204)
            self.end_headers()
            if not is_first:
                got.append((content, self.headers["Fairduel-Signature"]))
                found.release()

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/hook", got, found
        server.shutdown()
        thread.join()


def test_webhooks_are_signed_and_come_again_until_they_arrive(owner, service, receiver):
    url, got, found = receiver
    study = new_study(owner, title="Drinks", stop_at_votes=1)
    service.notify([Webhook(url)])
    owner.patch(f"/api/studies/{study}", json={"state": "paused"}).raise_for_status()
    owner.patch(f"/api/studies/{study}", json={"title": "Cold drinks"}).raise_for_status()  # no news
    owner.patch(f"/api/studies/{study}", json={"state": "closed"}).raise_for_status()
    for _ in range(2):
        assert found.acquire(timeout=120)
    sentences = [json.loads(content)["sentence"] for content, _ in got]
    assert sentences == [f"Cold drinks: Owner changed it to {state}." for state in ("paused", "closed")]
    key = owner.get("/api/webhook-key").json()["key"].encode()
    content, signed = got[0]
    at, _, digest = signed.partition(",sha256=")
    right = hmac.new(key, at.removeprefix("t=").encode() + b"." + content, hashlib.sha256).hexdigest()
    assert digest == right
    assert webhook_signature(key, int(at.removeprefix("t=")), content) == signed


@pytest.mark.parametrize(
    ("webhooks", "mails", "said"),
    [
        (["http://example.org/x"], [], "begins with https://"),
        (["file:///etc/passwd"], [], "begins with https://"),
        ([], ["ann@example.org"], "FAIRDUEL_SMTP"),
        ([], ["ann\n@example.org"], "no e-mail address"),
    ],
)
def test_wrong_addresses_are_refused_at_the_start(webhooks, mails, said, monkeypatch):
    monkeypatch.delenv("FAIRDUEL_SMTP", raising=False)
    with pytest.raises(BadInputError, match=said):
        targets(webhooks, mails)


def test_mails_say_what_happened(monkeypatch):
    sent, encrypts = [], True

    class Server:
        def __init__(self, host, port, **_):
            sent.append((host, port))

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def has_extn(self, _):
            return encrypts

        def starttls(self, **_):
            sent.append("encrypted")

        def login(self, user, password):
            sent.append((user, password))

        def send_message(self, message, to_addrs):
            assert to_addrs == [message["To"]]
            sent.append((message["To"], message["From"], message["Subject"], message.get_content()))

    monkeypatch.setattr("smtplib.SMTP", Server)
    mail = Mail("ann@example.org", "smtp://bot%40example.org:p%2Fw@mail.example.org")
    mail.send({"title": "Drinks\nBcc: x@y", "sentence": "Drinks: tea has won."}, b"")
    assert sent[:3] == [("mail.example.org", 587), "encrypted", ("bot@example.org", "p/w")]
    assert sent[3][0] == "ann@example.org"
    assert sent[3][2] == "fairduel: Drinks Bcc: x@y"
    assert sent[3][3].strip() == "Drinks: tea has won."
    sent.clear()
    encrypts = False  # or so someone in between says, who would like to have the password
    with pytest.raises(OSError, match="does not encrypt"):
        mail.send({"title": None, "sentence": "x"}, b"")
    assert sent == [("mail.example.org", 587)]
    Mail("ann@example.org", "smtp://localhost").send({"title": None, "sentence": "x"}, b"")
    assert len(sent) == 3
