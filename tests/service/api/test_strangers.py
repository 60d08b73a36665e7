"""What costs the server work, or tells strangers something, is limited: pages, pictures, refusals, live updates."""

import asyncio
import io
import json
import logging
import socket
import time

import numpy as np
import pytest
from PIL import Image
from starlette.testclient import TestClient

from fairduel.service.api import content, gate, operators
from fairduel.service.api.app import create_app
from fairduel.service.api.limits import Limits, RateLimit, unlimited
from fairduel.service.commands import team
from fairduel.service.local import local_server
from fairduel.service.server_log import log_to
from helpers.servers import called_from

STUDY = {"question": "Which?", "items": [{"name": "tea"}, {"name": "milk"}], "repeat_pairs": True}


@pytest.fixture
def caller(service):
    """Makes clients at addresses, with limits of 5 requests per address."""
    app = create_app(service, limits=Limits(address=RateLimit(0.001, 5)))
    return lambda address="192.0.2.1", **headers: TestClient(
        called_from(app, address), base_url="http://localhost", headers=headers
    )


@pytest.fixture
def operator(service):
    key = service.ledger.run(team.ensure_operator)
    app = create_app(service, limits=unlimited())
    return TestClient(app, base_url="http://localhost", headers={"Authorization": f"Bearer {key}"})


@pytest.mark.parametrize("path", ["/", "/vote/x", "/static/client.js", "/openapi.json", "/nothing", "/api/head"])
def test_nothing_can_be_asked_for_without_limit(caller, path, monkeypatch):
    monkeypatch.setattr(gate, "_HELD_SECONDS", 0.0)
    for headers in ({}, {"Host": "evil.example"}):  # each refusal takes time too
        client = caller(f"192.0.2.{len(headers)}", **headers)
        assert [client.get(path).status_code == 429 for _ in range(7)] == [False] * 5 + [True] * 2
    assert caller("198.51.100.1").get(path).status_code in {200, 404}  # others notice nothing


def test_the_voters_of_one_address_share_a_limit(caller, operator, monkeypatch):
    """Else one person who joins 150 times could ask 150 times as often."""
    monkeypatch.setattr(gate, "_HELD_SECONDS", 0.0)
    study = operator.post("/api/studies", json=STUDY).json()["study"]
    keys = [operator.post(f"/api/studies/{study}/voters", json={}).json()["key"] for _ in range(3)]

    def ask(key, address):
        return caller(address, Authorization=f"Bearer {key}").post(f"/api/studies/{study}/duels", json={}).status_code

    assert [ask(key, "192.0.2.1") for key in 3 * keys] == [200] * 5 + [429] * 4
    assert ask(keys[0], "192.0.2.2") == 200


def test_whoever_is_refused_waits_and_makes_room_for_others():
    """A refusal of too many requests comes late; until then its connection is the first to be closed for another."""
    limits = Limits(address=RateLimit(0.001, 3), connections=5)
    with local_server(limits=limits) as (url, _):
        address = "127.0.0.1", int(url.rpartition(":")[2])
        asking = b"GET /api/head HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"

        def ask():
            connection = socket.create_connection(address, 20)
            connection.sendall(asking)
            return connection

        def status(connection):
            with connection:
                return int((connection.recv(1000) or b"-" * 9 + b"000")[9:12])

        assert [status(ask()) for _ in range(3)] == [200] * 3
        began = time.perf_counter()
        assert status(ask()) == 429
        assert time.perf_counter() - began > 0.8 * gate._HELD_SECONDS  # the loop's clock is that of its last turn
        held = [ask() for _ in range(8)]  # three more than there may be
        found = []
        for connection in held:
            try:
                found.append(status(connection))
            except ConnectionError:
                found.append(0)
        assert sorted(found) == [0] * 3 + [429] * 5


def test_a_small_picture_is_made_once_and_gone_with_its_study(operator, monkeypatch):
    made, small = [], content._small
    monkeypatch.setattr(content, "_small", lambda image: made.append(1) or small(image))
    picture = io.BytesIO()
    noise = np.random.default_rng(1).integers(0, 255, (300, 400, 3), dtype=np.uint8)
    Image.fromarray(noise).save(picture, "PNG")
    png = {"Content-Type": "image/png"}
    image = operator.post("/api/images", content=picture.getvalue(), headers=png).json()["image"]
    items = [{"name": "a", "image": image}, {"name": "b"}]
    study = operator.post("/api/studies", json={"question": "Which?", "items": items}).json()["study"]
    path = f"/api/images/{image}/small"
    replies = [operator.get(path) for _ in range(3)]
    assert len(made) == 1
    assert Image.open(io.BytesIO(replies[2].content)).size == (160, 120)
    logo = {"question": "Which?", "items": [{"name": "a"}, {"name": "b"}], "page": {"logo": image}}
    other = operator.post("/api/studies", json=logo).json()["study"]
    for each, status in ((study, 200), (other, 404)):  # the other study still shows it
        assert operator.delete(f"/api/studies/{each}").status_code == 204
        assert {operator.get(found).status_code for found in (path, f"/api/images/{image}")} == {status}


def test_callers_cannot_fill_the_log(monkeypatch):
    """Each invalid request would be a line of the server's log, as many as a stranger likes."""
    server, ours = logging.getLogger("uvicorn.error"), logging.getLogger("fairduel.service")
    monkeypatch.setattr(server, "level", server.level)  # as they were, at the end
    for name in ("handlers", "level", "propagate"):
        monkeypatch.setattr(ours, name, getattr(ours, name))
    log_to(io.StringIO(), logging.WARNING)
    assert (server.isEnabledFor(logging.WARNING), server.isEnabledFor(logging.ERROR)) == (False, True)


def test_scripts_come_from_memory_and_only_if_they_changed(operator):
    first = operator.get("/static/voter/vote.js")
    assert first.headers["content-type"].startswith("text/javascript")
    again = operator.get("/static/voter/vote.js", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content, again.headers["cache-control"]) == (304, b"", "no-cache")
    for path in ("", "nothing.js", "..%2F__init__.py", "%2Fetc%2Fpasswd", "voter"):
        assert operator.get(f"/static/{path}").status_code == 404
    described = operator.get("/openapi.json")
    assert described.json()["info"]["title"] == "fairduel"


def test_an_observers_link_shows_results_only(service, operator, monkeypatch):
    settings = {"completion_code": "C1A2", "completion_url": "https://example.org/done?cc=C1A2"}
    settings |= {"gold": {"answers": [{"winner": "tea", "loser": "milk"}]}}
    study = operator.post("/api/studies", json=STUDY | settings).json()["study"]
    key = operator.post(f"/api/studies/{study}/observers", json={}).json()["key"]
    app = create_app(service, limits=Limits(most_streams=0))
    observer = TestClient(app, base_url="http://localhost", headers={"Authorization": f"Bearer {key}"})
    shown = observer.get(f"/api/studies/{study}")
    assert "C1A2" not in shown.text
    assert shown.json()["gold"] is None
    # Observers cannot keep the operators from seeing what happens.
    assert observer.get(f"/api/studies/{study}/events").status_code == 429
    monkeypatch.setattr(operators, "_events", lambda *_: _once())
    operator.app.state.limits = Limits(most_streams=0)
    assert operator.get(f"/api/studies/{study}/events").status_code == 200
    for method, path, body in (
        ("PATCH", "", {"state": "closed"}),
        ("POST", "/observers", {}),
        ("POST", "/participants", {"participants": ["x"]}),
        ("POST", "/clone", {}),
        ("POST", "/red-team", {}),
        ("DELETE", "/observers", None),
        ("GET", "/history", None),
        ("GET", "/jobs", None),
    ):
        content = None if body is None else json.dumps(body)
        headers = {"Content-Type": "application/json"}
        refused = observer.request(method, f"/api/studies/{study}{path}", content=content, headers=headers)
        assert refused.status_code == 404, path


async def _once():
    await asyncio.sleep(0)
    yield ": one\n\n"
