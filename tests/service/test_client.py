"""The client repeats requests; nothing is lost, and nothing counts twice."""

import random

import httpx
import pytest

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
    with local_server() as found:
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


@torture(9, "10 % of requests and 30 % of replies are lost; the client retries", small=30, full=2001, unit="votes")
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
def test_what_cannot_be_repeated_is_not(server):
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
def test_after_a_proxy_lost_the_answer_only_what_is_safe_is_repeated(server):
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
