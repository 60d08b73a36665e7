"""The client repeats requests; nothing is lost, and nothing counts twice."""

import io
import random
import re

import httpx
import pytest
from PIL import Image

from fairduel.service.api.limits import Limits, RateLimit
from fairduel.service.client import Client, UnreachableError
from fairduel.service.local import local_server
from fairduel.service.problems import Problem
from helpers.torture import torture

ITEMS = [{"name": name} for name in ("tea", "milk", "water")]


class Unreliable(httpx.HTTPTransport):
    """Loses some requests before they arrive, and some answers on the way back."""

    def __init__(self, seed):
        super().__init__()
        self.rng, self.losing, self.lost = random.Random(seed), False, 0

    def handle_request(self, request):
        chance = self.rng.random() if self.losing else 1.0
        if chance < 0.1:
            self.lost += 1
            raise httpx.ConnectError("lost on the way there", request=request)
        response = super().handle_request(request)
        if chance < 0.4:
            response.read()
            self.lost += 1
            raise httpx.ReadTimeout("lost on the way back", request=request)
        return response


@pytest.fixture(scope="module")
def server():
    free = RateLimit(1e9, 1e9)
    with local_server(limits=Limits(address=free, joins=free, voter=free)) as found:
        yield found


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr("fairduel.service.client._FIRST_PAUSE", 0.001)
    monkeypatch.setattr("fairduel.service.client._LONGEST_PAUSE", 0.01)


def test_a_copy_has_the_votes_if_they_are_wanted(server):
    with Client(*server) as client:
        study = client.create_study(question="Which?", items=ITEMS, format="markdown").study
        with client.join(study) as voter:
            voter.answer(voter.ask().duels[0].duel, "left")
        copies = [client.clone(study, votes=votes, title="Again") for votes in (False, True)]
        assert [(copy.title, copy.format, copy.counts.imported) for copy in copies] == [
            ("Again", "markdown", 0),
            ("Again", "markdown", 1),
        ]


@torture(9, "10 % of requests and 30 % of replies are lost; the client retries", small=30, full=1500, unit="votes")
@pytest.mark.usefixtures("impatient")
def test_with_many_answers_lost_every_vote_counts_once(trial, server):
    transport = Unreliable(0)
    with Client(*server, transport=transport) as client:
        study = client.create_study(question="Which?", items=ITEMS, repeat_pairs=True).study
        voters = [client.join(study) for _ in range(3)]
        transport.losing = True
        for number in range(trial.size):
            voter = voters[number % 3]
            duel = voter.ask().duels[0]
            assert voter.answer(duel.duel, "left", next_duels=1 if number < trial.size - 3 else 0).counted
        transport.losing = False
        assert transport.lost > trial.size // 2
        counts = client.study(study).counts
        assert (counts.votes, counts.issued, counts.open) == (trial.size, trial.size, 0)
        assert len(voters[0].receipts().answers) == trial.size // 3
    trial.found = f"exactly {trial.size:,} votes, though {transport.lost:,} requests or replies were lost"


@pytest.mark.usefixtures("impatient")
def test_unsafe_requests_are_not_repeated(server):
    class Lossy(httpx.HTTPTransport):
        def handle_request(self, request):
            super().handle_request(request).read()
            raise httpx.ReadTimeout("lost on the way back", request=request)

    with Client(*server, transport=Lossy()) as client, pytest.raises(UnreachableError, match="does not answer"):
        client.create_study(question="Made once?", items=ITEMS)
    headers = {"Authorization": f"Bearer {server[1]}"}
    studies = httpx.get(f"{server[0]}/api/studies", headers=headers).json()["studies"]
    assert sum(each["question"] == "Made once?" for each in studies) == 1


@pytest.mark.usefixtures("impatient")
def test_after_a_proxy_lost_the_answer_only_safe_requests_are_repeated(server):
    statuses = [502, 504]

    class Lossy(httpx.HTTPTransport):
        def handle_request(self, request):
            return httpx.Response(statuses.pop()) if statuses else super().handle_request(request)

    with Client(*server, transport=Lossy()) as client:
        for _ in range(2):
            with pytest.raises(Problem):
                client.create_study(question="Which?", items=ITEMS)
        study = client.create_study(question="Which?", items=ITEMS).study
        statuses += [502, 504]
        assert client.study(study).question == "Which?"


def test_refusals_are_problems(server):
    with Client(server[0], "wrong") as client, pytest.raises(Problem, match="valid key") as refused:
        client.results("none")
    assert refused.value.status == 401


@pytest.mark.usefixtures("impatient")
def test_the_client_waits_when_asked_to(server):
    waits = []

    class Busy(httpx.HTTPTransport):
        def handle_request(self, request):
            if len(waits) < 2:
                waits.append(1)
                return httpx.Response(503, headers={"Retry-After": "0"}, json={"code": "overloaded", "detail": "Busy."})
            return super().handle_request(request)

    with Client(*server, transport=Busy()) as client:
        assert client.create_study(question="Which?", items=ITEMS).state == "open"
    assert len(waits) == 2
    waits.clear()
    with Client(*server, transport=Busy(), patience=0.0) as client, pytest.raises(Problem, match="Busy"):
        client.create_study(question="Which?", items=ITEMS)


def test_an_operator_sets_a_voter_aside(server):
    with Client(*server) as client:
        study = client.create_study(question="Which?", items=ITEMS, access="invitation").study
        key = client.invite(study, ["Ada"])[0].key
        with client.voter(study, key) as voter:
            duel = voter.ask().duels[0]
            voter.answer(duel.duel, "tie", seconds=1.5)
            again = voter.undo(duel.duel).duel
            assert (again.left, again.right) == (duel.left, duel.right)
        ada = client.voters(study)[0]
        assert (ada.name, ada.set_aside) == ("Ada", False)
        assert client.set_aside(study, ada.voter).set_aside
        assert client.results(study).counts.voters == 1


class Noting(httpx.HTTPTransport):
    """Notes which routes are called."""

    def __init__(self):
        super().__init__()
        self.called = []

    def handle_request(self, request):
        self.called.append((request.method, request.url.path))
        return super().handle_request(request)


def test_the_client_covers_the_interface(tmp_path):  # noqa: PLR0915  # one call after the other
    """Every route for operators, observers and voters, except streams for pages; and each says who may call it."""
    noting = Noting()
    sound = b"RIFF" + (36).to_bytes(4, "little") + b"WAVEfmt " + (16).to_bytes(4, "little")
    sound += bytes([1, 0, 1, 0]) + (8000).to_bytes(4, "little") * 2 + bytes([1, 0, 8, 0]) + b"data" + bytes(4)
    picture = io.BytesIO()
    Image.new("RGB", (2, 2)).save(picture, "PNG")
    with local_server() as (url, key), Client(url, key, transport=noting) as client:
        schema = httpx.get(f"{url}/openapi.json").json()
        study = client.create_study(question="Which?", items=ITEMS).study
        signed = client.create_study(question="Which?", items=ITEMS, access="participant").study
        assert client.sign(signed, ["ann"]).links[0].participant == "ann"
        assert client.create_from_file("x.csv", "name\na\nb\n", settings={"question": "?"}).question == "?"
        assert client.clone(study).title.startswith("Copy")
        assert client.study(study).study in {each.study for each in client.studies()}
        assert client.change_study(study, title="Drinks").title == "Drinks"
        assert client.add_item(study, name="juice").items[3].name == "juice"
        assert not client.change_item(study, 3, enabled=False).items[3].enabled
        assert client.change_gold(study, answers=[]).gold is not None
        uploaded = client.upload("image", picture.getvalue())
        assert client.file("image", uploaded)
        assert client.small_image(uploaded).startswith(b"RIFF")
        assert "<svg" in client.qr_code(url)
        with pytest.raises(Problem):
            client.upload("audio", sound)  # it is too short, but it was asked
        with pytest.raises(Problem):
            client.file("audio", "0" * 64)
        (tmp_path / "votes.csv").write_text("left,right,winner,voter\ntea,milk,left,Ann\nmilk,water,left,Bob\n")
        assert client.import_votes(study, tmp_path / "votes.csv").counts.imported == 2
        with client.join(study) as voter:
            assert voter.ballot(study).title == "Drinks"
            first = voter.answer(voter.ask().duels[0].duel, "left", next_duels=1)
            assert voter.undo(first.duel).progress.votes == 0
            assert voter.receipts().head == client.head().receipt
            assert client.check_receipt(first.receipt).valid
        with pytest.raises(Problem, match="do not sign in"):
            client.send_link(study, "ann@example.org")
        (invited,) = client.invite(study, ["Eve"], one_time=True)
        with client.redeem(study, invited.key) as guest:
            assert guest.ask().duels
        assert client.results(study).counts.votes == 2
        assert client.export(study, "votes.csv").startswith(b"\xef\xbb\xbf")
        assert client.tactics()
        jobs = [client.cost(study), client.red_team(study, attack="random-votes", liars=1, votes_each=1)]
        jobs.append(client.effect(study, client.voters(study)[0].voter))
        assert len(client.jobs(study)) == len(jobs)
        assert client.wait(jobs[0]).state in {"done", "failed"}
        assert client.set_aside(study, client.voters(study)[0].voter).set_aside
        assert client.history(study)[0].kind == "voter changed"
        client.erase_personal(study, client.voters(study)[0].voter)
        client.erase_personal(study)
        assert client.add_observer(study).link
        client.revoke_observers(study)
        ann = client.add_operator("Ann")
        assert {each.name for each in client.operators()} == {"Owner", "Ann"}
        assert client.replace_key(ann.operator).key != ann.key
        client.remove_operator(ann.operator)
        assert (client.session().role, len(client.webhook_key())) == ("owner", 64)
        client.sign_out()
        client.delete_study(study)
    missing = []
    for path, operations in schema["paths"].items():
        pattern = re.compile(re.sub(r"\{\w+\}", "[^/]+", path))
        for method, operation in operations.items():
            is_called = any(name == method.upper() and pattern.fullmatch(called) for name, called in noting.called)
            if not is_called and "machines" not in operation["tags"] and not path.endswith("/events"):
                missing.append((method, path))
            needs_key = {"operators", "voters"} & set(operation["tags"]) and "security" not in operation
            free = (
                "session",
                "ballot",
                "voters",
                "head",
                "sign-in",
                "{receipt}",
                "{digest}",
                "small",
                "healthz",
                "readyz",
            )
            assert not needs_key or path.endswith(free), (method, path)
            assert "application/problem+json" in operation["responses"]["4XX"]["content"]
    assert missing == []
    assert {"key": []} in schema["paths"]["/api/session"]["get"]["security"]
    assert schema["paths"]["/metrics"]["get"]["security"] == [
        {"key": []},
        {"fairduel_session": []},
        {},
    ]  # {}: from here
    assert schema["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
