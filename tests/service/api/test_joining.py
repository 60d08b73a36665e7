"""Who may join, as whom, and how often: signed links, platforms, invitations that work once, and proofs of work."""

import hashlib
import hmac
import shutil
import subprocess
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from fairduel.service import keys, pages, work
from fairduel.service.api.app import create_app
from fairduel.service.api.limits import unlimited
from fairduel.service.client import Client
from fairduel.service.commands import team
from fairduel.service.events import backup
from fairduel.service.local import local_server
from fairduel.service.problems import Problem
from helpers.servers import called_from

STUDY = {"question": "Which?", "items": [{"name": name} for name in ("tea", "milk", "water")], "repeat_pairs": True}
NONCES = [f"a nonce of a browser {n}".replace(" ", "-") for n in range(3)]


@pytest.fixture
def browser(service):
    """Makes browsers, which keep cookies; an operator's with their key."""
    app = create_app(service, limits=unlimited())
    return lambda address="192.0.2.1", **headers: TestClient(
        called_from(app, address), base_url="http://localhost", headers=headers
    )


@pytest.fixture
def operator(service, browser):
    return browser(Authorization=f"Bearer {service.ledger.run(team.ensure_operator)}")


def new_study(operator, **settings):
    return operator.post("/api/studies", json=STUDY | settings).raise_for_status().json()["study"]


def join(browser, study, **body):
    return browser.post(f"/api/studies/{study}/voters", json=body)


def refusal(reply):
    return reply.status_code, reply.json().get("code")


def vote(browser, study, key="key"):
    duel = browser.post(f"/api/studies/{study}/duels", json={}).json()["duels"][0]["duel"]
    path = f"/api/studies/{study}/duels/{duel}/answer"
    return browser.post(path, json={"answer": "left"}, headers={"Idempotency-Key": key}).raise_for_status().json()


def answers(browser, study):
    return browser.get(f"/api/studies/{study}/receipt").raise_for_status().json()["answers"]


def test_only_a_signed_link_makes_a_participant(browser, operator):
    study, other = (new_study(operator, access="participant") for _ in range(2))
    made = operator.post(f"/api/studies/{study}/participants", json={"participants": ["ann & bob"]}).json()
    (link,) = made["links"]
    own = hmac.new(bytes.fromhex(made["key"]), b"ann & bob", hashlib.sha256).hexdigest()  # as operators may do
    assert link["signature"] == own
    assert link["link"] == f"vote/{study}?participant=ann+%26+bob&signature={own}"
    for wrong in ({}, {"signature": ""}, {"signature": own[:-1]}, {"signature": "0" * 64}):
        assert refusal(join(browser(), study, participant="ann & bob", **wrong)) == (409, "not-invited")
    assert refusal(join(browser(), study, participant="eve", signature=own)) == (409, "not-invited")
    assert refusal(join(browser(), other, participant="ann & bob", signature=own)) == (409, "not-invited")
    first, second = browser(), browser()
    one = join(first, study, participant="ann & bob", signature=own).json()
    vote(first, study)
    two = join(second, study, participant="ann & bob", signature=own).json()
    assert one["voter"] == two["voter"]
    assert one["key"] != two["key"]
    assert answers(second, study) == []  # a new key does not show earlier answers
    vote(second, study, "other")
    assert (len(answers(first, study)), len(answers(second, study))) == (2, 1)
    assert operator.get(f"/api/studies/{study}").json()["counts"]["voters"] == 1
    voter = browser(Authorization=f"Bearer {one['key']}")
    assert voter.post(f"/api/studies/{study}/participants", json={"participants": ["x"]}).status_code == 404


def test_a_platforms_participant_joins_once(browser, operator):
    study = new_study(operator, access="platform")
    assert refusal(join(browser(), study)) == (409, "not-invited")
    first = browser()
    joined = [join(first, study, participant="p1", nonce=NONCES[0]).json() for _ in range(2)]
    assert joined[0] == joined[1]  # the same request again, if its reply was lost
    assert refusal(join(browser(), study, participant="p1")) == (409, "already-joined")
    assert refusal(join(browser(), study, participant="p1", nonce=NONCES[1])) == (409, "already-joined")
    assert join(browser(), study, participant="p2", nonce=NONCES[0]).json()["voter"] != joined[0]["voter"]


def test_an_invitation_works_once(browser, operator, service):
    study = new_study(operator, access="invitation")
    path = f"/api/studies/{study}/invitations"
    (made,) = operator.post(path, json={"names": ["Ann"], "one_time": True}).json()["invitations"]
    direct = browser(Authorization=f"Bearer {made['key']}")
    assert direct.post(f"/api/studies/{study}/duels", json={}).status_code == 404  # it is not a voter's key yet
    first, second = browser(), browser()
    for _ in range(2):  # the reply may have been lost
        opened = first.post("/api/session", json={"key": made["key"], "nonce": NONCES[0]})
        assert opened.json().items() >= {"scope": "voter", "study": study}.items()
    assert vote(first, study)["counted"]
    for nonce in ({}, {"nonce": NONCES[1]}):
        assert refusal(second.post("/api/session", json={"key": made["key"], **nonce})) == (409, "already-joined")
    assert operator.get(f"/api/studies/{study}").json()["counts"]["voters"] == 1
    models = {"kind": "model", "names": ["gpt-x"], "one_time": True}
    assert operator.post(path, json=models).status_code == 422
    where = service.ledger.store.where
    service.ledger.close()
    assert backup.check(where).problems == ()


def test_the_same_browser_gets_the_same_key_if_it_asks_again(browser, operator):
    study = new_study(operator)
    assert join(browser(), study, nonce=NONCES[0]).json() == join(browser(), study, nonce=NONCES[0]).json()
    assert join(browser(), study, nonce=NONCES[1]).json() != join(browser(), study, nonce=NONCES[0]).json()
    assert join(browser(), study).json() != join(browser(), study).json()
    assert join(browser(), study, nonce="short").status_code == 422
    assert operator.get(f"/api/studies/{study}").json()["counts"]["voters"] == 4


def test_joining_may_need_work(browser, operator):
    study, other = (new_study(operator, proof_of_work=8) for _ in range(2))

    def solved(study, client):
        given = client.get(f"/api/studies/{study}/ballot").json()["work"]
        assert given["bits"] == 8
        return {"challenge": given["challenge"], "answer": work.solve_challenge(given["challenge"], 8)}

    client = browser()
    proof = solved(study, client)
    wrong = [{}, {"work": proof | {"answer": proof["answer"] + 1}}, {"work": solved(other, client)}]
    wrong += [{"work": {"challenge": "made up", "answer": 1}}]
    for body in wrong:
        assert refusal(join(browser(), study, **body)) == (409, "new-challenge")
    assert join(client, study, work=proof).status_code == 201
    assert refusal(join(browser(), study, work=proof)) == (409, "new-challenge")  # each can be used once
    assert client.get(f"/api/studies/{study}/ballot").json()["work"] is None  # whoever has joined needs none
    operator.patch(f"/api/studies/{study}", json={"proof_of_work": 0})
    assert join(browser(), study).status_code == 201


def test_old_challenges_end_and_are_forgotten(monkeypatch):
    challenges, now = work.Challenges(), [1000.0]
    monkeypatch.setattr(keys.time, "monotonic", lambda: now[0])
    old = challenges.new("study", 0)
    challenges.spend("study", 0, challenges.new("study", 0), 0)
    now[0] += work._SECONDS + 2
    with pytest.raises(Problem, match="challenge"):
        challenges.spend("study", 0, old, 0)
    challenges.spend("study", 0, challenges.new("study", 0), 0)
    assert len(challenges._tickets._spent) == 1
    for other in (work.Challenges(), challenges):
        with pytest.raises(Problem, match="challenge"):
            other.spend("study", 4, challenges.new("study", 0), 0)


def test_the_python_client_does_the_work():
    with local_server(limits=unlimited()) as (url, key), Client(url, key) as client:
        study = client.create_study(**STUDY, proof_of_work=10).study
        with client.join(study) as voter:
            assert voter.answer(voter.ask().duels[0].duel, "left").counted
        signed = client.create_study(**STUDY, access="participant").study
        (link,) = client.sign(signed, ["ann"]).links
        with client.join(signed, participant="ann", signature=link.signature) as voter:
            assert voter.ask().duels


def test_browsers_solve_what_the_server_sets(tmp_path):
    """The page's own SHA-256 finds the same least number as Python's."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node on this machine")
    for bits, challenge in ((0, ""), (4, "x" * 63), (9, "y" * 120), (10, work.Challenges().new("study", 10))):
        shutil.copyfile(Path(pages.__file__).parent / "static" / "voter" / "work.js", tmp_path / "work.mjs")
        code = f"import {{ solve }} from './work.mjs'; console.log(solve('{challenge}', {bits}))"
        command = [node, "--input-type=module", "-e", code]
        found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        assert int(found) == work.solve_challenge(challenge, bits)


def test_operators_see_who_joined_from_one_address(browser, operator, service):
    study = new_study(operator)
    for _ in range(3):
        client = browser()
        join(client, study)
        vote(client, study)
    join(browser("198.51.100.7"), study)
    join(browser("2001:db8::1"), study)
    join(browser("2001:db8::2"), study)
    found = operator.get(f"/api/studies/{study}/voters").json()
    shown = [(each["voters"], each["votes"], each["in_a_minute"]) for each in found["joins"]]
    assert shown == [(3, 3, 3), (2, 0, 2)]
    assert found["joins"][0]["first"] < found["joins"][0]["last"]
    addresses = [row["address"] for row in found["voters"]]
    assert len(set(addresses)) == 3
    log = operator.get(f"/api/studies/{study}/exports/log.csv").text
    assert "192.0.2" not in log + str(found)
    assert not any(address in log for address in addresses)  # the log has salted hashes only
    voter = found["voters"][0]["voter"]
    assert operator.delete(f"/api/studies/{study}/voters/{voter}/personal").status_code == 204
    rows = operator.get(f"/api/studies/{study}/voters").json()["voters"]
    assert [row["address"] for row in rows if row["voter"] == voter] == [None]
    where = service.ledger.store.where
    service.ledger.close()
    assert backup.check(where).problems == ()
