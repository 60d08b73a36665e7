"""What-if questions of operators: pure functions against the library's own results, and the jobs around them."""

import time
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from scipy import special
from sqlalchemy import select
from starlette.testclient import TestClient

from fairduel.errors import BadInputError
from fairduel.service.analysis import background, what_if
from fairduel.service.analysis.analyse import last_asked, recorded_votes
from fairduel.service.analysis.inputs import Subject
from fairduel.service.analysis.red_team import Fork, RedTeamPlan, red_team, simulate_campaign
from fairduel.service.analysis.workers import compute
from fairduel.service.api.app import create_app
from fairduel.service.api.limits import Limits
from fairduel.service.commands import operating, team, voting
from fairduel.service.commands.imports import CastVote, Import, import_votes
from fairduel.service.events import schema
from fairduel.service.events.database import load_state, read_events, reading, spelled
from fairduel.service.keys import Holder
from fairduel.service.service import Service
from fairduel.votes.attacking.liars import TACTICS, Liar
from fairduel.votes.attacking.manipulation import CampaignLimits, cost_of_manipulation
from fairduel.votes.auditing.audit import audit
from fairduel.votes.ranking.bradley_terry import fit_scores, wins
from fairduel.votes.ranking.rank import rank
from helpers.clusters import in_both
from helpers.electorate import Electorate

VOTES = 160


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A service whose study has some votes."""
    with closing(Service(tmp_path_factory.mktemp("jobs") / "store")) as service:
        electorate = Electorate(service)
        for _ in range(VOTES):
            electorate.vote()
        yield service


@pytest.fixture(scope="module")
def folder(service):
    return service.ledger.store.where


@pytest.fixture(scope="module")
def study(service):
    return next(iter(service.ledger.state.studies))


@pytest.fixture
def connection(folder):
    with reading(folder) as connection:
        yield connection


@pytest.fixture
def subject(connection, study):
    return Subject.of(load_state(connection).studies[study])


@pytest.fixture
def forked(connection, folder, study, subject):
    """Simulates votes in a fork; returns them and all votes with them."""
    votes = recorded_votes(connection, subject)
    scores = rank(votes, draws=100).scores

    def run(plan):
        item = None if plan.item is None else subject.items.index(plan.item)
        liar = Liar(plan.attack, item, leader=0, lift=np.zeros(len(scores)))
        cast = simulate_campaign(Fork.of(connection, folder, study, plan.seed, 1.0), study, plan, liar, scores)
        everyone = replace(subject, labels=subject.labels | {vote.voter: vote.voter for vote in cast})
        return cast, recorded_votes(connection, everyone, cast)

    return run


# ---------------------------------------------------------------------------- the red team


def test_no_liars_change_nothing(connection, folder, study, subject):
    found = red_team(connection, folder, study, RedTeamPlan("promote", "Oak", liars=0))
    assert [row["before"] for row in found["ranking"]] == [row["after"] for row in found["ranking"]]
    shown = audit(recorded_votes(connection, subject), top=1).shown
    assert [row["item"] for row in found["ranking"]] == [each.item for each in shown.standings]
    assert found["votes"] == {"recorded": VOTES, "liars": 0, "honest": 0}
    assert found["caught"] == {"liars": 0, "of": 0, "honest": 0}


def test_a_red_team_compares_the_rankings_that_audits_show(connection, folder, study, service):
    before = service.ledger.state.position
    plan = RedTeamPlan("omnipresent", "Oak", liars=3, votes_each=10, honest=2, seed=4)
    found = red_team(connection, folder, study, plan)
    assert found == red_team(connection, folder, study, plan)
    assert found["plan"] == vars(plan)
    assert found["votes"] == {"recorded": VOTES, "liars": 30, "honest": 20}
    assert found["caught"]["of"] == 3
    assert found["caught"]["liars"] == sum(each["liar"] for each in found["flagged"])
    assert found["caught"]["honest"] == sum(not each["liar"] for each in found["flagged"])
    for column in ("before", "after", "unchecked"):
        assert sorted(row[column] for row in found["ranking"]) == list(range(1, 9))
    leaders = [min(found["ranking"], key=lambda row: row[column])["item"] for column in ("before", "after")]
    verb = "keeps the highest score" if len(set(leaders)) == 1 else f"has the highest score instead of {leaders[0]}"
    assert f"{leaders[1]} {verb}" in found["sentence"]
    with reading(folder) as later:
        since = {event.body.kind for event in read_events(later, study=study, after=before)}
    assert since <= {"verdict changed"}  # which the service itself may find at any time


@pytest.mark.parametrize("attack", TACTICS)
def test_the_same_seed_casts_the_same_votes(forked, attack):
    plan = RedTeamPlan(attack, "Oak" if TACTICS[attack].needs_item else None, liars=2, votes_each=9, honest=1, seed=4)
    assert forked(plan)[0] == forked(plan)[0]
    assert forked(plan)[0] != forked(replace(plan, seed=5))[0]
    voters = [vote[0] for vote in forked(plan)[0]]
    assert sorted(set(voters)) == ["honest 1", "liar 1", "liar 2"]
    assert len(voters) == 27


def test_the_fork_asks_what_the_study_would_ask(connection, folder, study, service):
    fork = Fork.of(connection, folder, study, 0, 1.0)
    voter = next(iter(service.ledger.state.studies[study].voters))
    holder = Holder("voter", study, voter)
    voting.ask(fork, holder, 3)
    service.ledger.run(lambda ledger: voting.ask(ledger, holder, 3))
    asked, live = (
        [(duel.first, duel.second) for duel in state.studies[study].voters[voter].open.values()]
        for state in (fork.state, service.ledger.state)
    )
    assert len(asked) == 3
    assert asked == live


def test_large_campaigns_win_and_tiny_ones_do_not(forked):
    """Over 20 spread seeds; a campaign larger than the study wins nearly always, one false vote hardly ever."""

    def order(plan):
        votes = forked(plan)[1]
        return [votes.items[item] for item in np.argsort(-fit_scores(wins(votes)).scores)]

    leader, *_, pushed = order(RedTeamPlan("promote", "Oak", liars=0))
    large, tiny = (
        [order(RedTeamPlan("promote", pushed, liars, each, seed=seed))[0] for seed in range(0, 20_000, 1000)]
        for liars, each in ((20, 8), (1, 1))
    )
    assert large.count(pushed) >= 17
    assert tiny.count(leader) >= 17
    assert pushed not in tiny


def test_simulated_voters_answer_by_the_ranking_and_liars_by_their_tactic(forked, connection, subject):
    """Whichever side an item is on; the chances of all tactics are tested beside them."""
    cast, _ = forked(RedTeamPlan("one-side", liars=3, votes_each=60, honest=6, seed=1))
    by_liar = np.array([vote.voter.startswith("liar") for vote in cast])
    left = np.array([vote.answer == "left" for vote in cast])
    assert left[by_liar].all()
    scores = rank(recorded_votes(connection, subject), draws=100).scores
    shown = [(vote.first, vote.second) if vote.first_is_left else (vote.second, vote.first) for vote in cast]
    expected = special.expit([scores[one] - scores[other] for one, other in shown])
    for clear in (expected > 0.5, expected < 0.5):
        chosen = clear & ~by_liar
        error = np.sqrt((expected * (1.0 - expected))[chosen].sum())
        assert abs((left - expected)[chosen].sum()) < 3.5 * error


def test_the_limits_of_a_study_bind_its_fork(booth, new_booth):
    for settings, each in (({"votes_per_voter": 4}, 4), ({"repeat_pairs": False, "items": 3}, 3)):
        booth = new_booth(**settings)
        booth.vote(12)
        with reading(booth.folder) as connection:
            plan = RedTeamPlan("promote", "item 0", liars=2, votes_each=9)
            found = red_team(connection, booth.folder, booth.study, plan)
        assert found["votes"]["liars"] == 2 * each
        assert any(f"{2 * each} of 18 votes count" in sentence for sentence in found["details"])


@in_both
def test_gold_duels_test_simulated_voters_too(new_booth):
    gold = {"answers": [{"winner": "item 0", "loser": "item 4"}], "first": 1, "every": 2}
    booth = new_booth(gold=gold)
    booth.vote(40)
    where, plan = booth.ledger.store.where, RedTeamPlan("promote", "item 4", liars=3, votes_each=6)
    with reading(where) as connection:
        found = red_team(connection, where, booth.study, plan)
    assert found["votes"]["liars"] == 15  # each got the known answer once
    request = {"where": spelled(where), "study": booth.study, "kind": "red-team", "wanted": vars(plan)}
    told = []
    assert compute(request, told.append) == {"result": found}
    assert told[0] == {"progress": 0.1}


def test_a_red_team_needs_votes_and_a_known_item(booth, connection, folder, study):
    with reading(booth.folder) as own, pytest.raises(BadInputError, match="at least 5 votes"):
        red_team(own, booth.folder, booth.study, RedTeamPlan("promote", "item 0"))
    with pytest.raises(BadInputError, match="Oka"):
        red_team(connection, folder, study, RedTeamPlan("promote", "Oka"))


# ---------------------------------------------------------------------------- a voter, and the cost


def test_the_effect_of_a_voter_is_what_audits_with_and_without_them_show(connection, subject):
    voter = next(iter(subject.labels))
    found = what_if.effect(connection, subject, voter)
    whole = recorded_votes(connection, subject)
    without = whole.select(whole.voter != 0)
    for column, votes in (("before", whole), ("after", without)):
        expected = {each.item: each.rank for each in audit(votes, top=1).shown.standings}
        assert {row["item"]: row[column] for row in found["ranking"]} == expected
    assert found["votes"] == len(whole) - len(without) > 0
    assert found["sentence"].startswith("Without voter 1, ")
    aside = replace(subject, set_aside=frozenset({voter}))
    assert what_if.effect(connection, aside, voter) == found


def test_the_cost_is_what_the_library_finds(connection, subject, monkeypatch):
    monkeypatch.setattr(what_if, "_SEEDS", 1)
    found = what_if.cost(connection, subject, what_if.Allowed(6, 2))
    expected = cost_of_manipulation(recorded_votes(connection, subject), limits=CampaignLimits(6, 2, 1), runs=1)
    assert found["rows"] == expected.to_frame().to_dicts()
    assert [found["sentence"], *found["details"]] == expected.summary()
    nobody = what_if.cost(connection, subject, what_if.Allowed(0, 4))
    assert nobody["rows"] == []


def test_limits_follow_the_study(new_booth):
    booth = new_booth()
    assert vars(what_if.allowed(booth.state)) | {"reasons": ()} == {"voters": 100, "votes_each": 64, "reasons": ()}
    booth.run(operating.change_study, booth.study, {"votes_per_voter": 7})
    assert what_if.allowed(booth.state).votes_each == 7
    assert what_if.allowed(new_booth(repeat_pairs=False).state).votes_each == 10
    given = what_if.allowed(booth.state, voters=3, votes_each=2)
    assert (given.voters, given.votes_each) == (3, 2)


def test_a_study_is_by_invitation_so_that_only_those_who_have_not_voted_can_cheat(service, study):
    state = service.ledger.state.studies[study]
    assert what_if.allowed(state).voters == sum(voter.votes == 0 for voter in state.voters.values())


def test_what_the_agent_asks_adds_up(connection, subject, study):
    ranking = audit(recorded_votes(connection, subject), top=1).shown
    found = last_asked(connection, study, subject.items, ranking)
    assert found["lately"] == 50
    assert sum(pair["duels"] for pair in found["pairs"]) <= 50
    for pair in found["pairs"]:
        assert pair["settled"] == ranking.tells_apart(pair["one"], pair["other"])
    top = found["pairs"][0]
    assert f"{top['duels']} compared {top['one']} with {top['other']}" in found["sentences"][0]
    assert last_asked(connection, "nothing", subject.items, ranking) == {"lately": 0, "pairs": [], "sentences": []}


def test_the_agent_did_not_ask_gold_and_imported_duels(new_booth):
    booth = new_booth(gold={"answers": [{"winner": "item 0", "loser": "item 4"}], "first": 1, "every": 2})
    booth.vote(8)
    cast = [CastVote(1, 2, "left", f"someone {number}", None, None, None) for number in range(60)]
    booth.run(import_votes, booth.study, Import(cast))
    voters = {holder.voter for holder in booth.voters}
    with reading(booth.folder) as connection:
        found = last_asked(connection, booth.study, [item.name for item in booth.state.about.items], None)
        duels = connection.execute(select(schema.duels)).all()
    own = [row for row in duels if row.weight > 0.0 and row.repeats is None and row.voter in voters]
    assert 0 < found["lately"] == len(own) < len(duels) - 60


# ---------------------------------------------------------------------------- jobs


@pytest.fixture
def operator(service):
    key = service.ledger.run(team.replace_operator)
    app = create_app(service, limits=Limits(hosts=frozenset({"testserver"})))
    return TestClient(app, headers={"Authorization": f"Bearer {key}"})


def finished(operator, study, started):
    assert started.status_code == 202, started.text
    for _ in range(600):
        job = operator.get(f"/api/studies/{study}/jobs/{started.json()['job']}").json()
        if job["state"] in {"done", "failed"}:
            return job
        time.sleep(0.1)
    raise AssertionError(job)


def test_jobs_run_in_another_process_and_give_way(operator, study, service, connection, folder):
    base = f"/api/studies/{study}"
    slow = operator.post(f"{base}/cost", json={"voters": 40, "votes_each": 32})
    while operator.get(f"{base}/jobs/{slow.json()['job']}").json()["state"] == "waiting":
        time.sleep(0.02)
    plan = {"attack": "promote", "item": "Oak", "liars": 3, "votes_each": 5, "seed": 2}
    started = operator.post(f"{base}/red-team", json=plan)
    assert operator.get(f"{base}/jobs/{slow.json()['job']}").json()["state"] == "waiting"
    again = operator.post(f"{base}/red-team", json=plan)
    assert again.json()["job"] == started.json()["job"]
    job = finished(operator, study, started)
    assert job["result"] == red_team(connection, folder, study, RedTeamPlan("promote", "Oak", 3, 5, seed=2))
    assert job["wanted"]["honest"] == 0
    voter = next(iter(service.ledger.state.studies[study].voters))
    effect = finished(operator, study, operator.post(f"{base}/voters/{voter}/effect", json={}))
    assert effect["result"]["sentence"].startswith("Without voter 1, ")
    listed = operator.get(f"{base}/jobs").json()["jobs"]
    assert {each["kind"] for each in listed} == {"cost", "red-team", "effect"}
    changed = operator.patch(base, json={"votes_per_voter": 1})
    assert changed.status_code == 200
    newest = operator.get(f"{base}/jobs").json()["jobs"][0]
    assert (newest["kind"], newest["wanted"]["votes_each"]) == ("cost", 1)
    assert operator.patch(base, json={"votes_per_voter": None}).status_code == 200
    empty = operator.post("/api/studies", json={"question": "?", "items": [{"name": "a"}, {"name": "b"}]}).json()[
        "study"
    ]
    failed = finished(operator, empty, operator.post(f"/api/studies/{empty}/red-team", json={"item": "a"}))
    assert (failed["state"], failed["result"]) == ("failed", None)
    assert failed["problem"] == "A red team needs at least 2 votes to start from."


def test_the_tactics_of_a_red_team_are_those_of_the_library(operator):
    listed = operator.get("/api/tactics").json()["tactics"]
    assert {each["name"]: each["how"] for each in listed} == {name: each.how for name, each in TACTICS.items()}
    assert {each["name"] for each in listed if each["needs_item"]} > {"promote", "demote", "half-honest"}
    schema = operator.get("/openapi.json").json()["components"]["schemas"]["RedTeam"]["properties"]["attack"]
    assert schema["enum"] == list(TACTICS)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"item": "Oka"}, 404),
        ({}, 422),
        ({"attack": "inverters", "item": "Oak"}, 422),
        ({"attack": "early-flips"}, 422),
        ({"item": "Oak", "liars": 0}, 422),
        ({"item": "Oak", "liars": 500, "votes_each": 100}, 422),
        ({"item": "Oak", "liars": 2.5}, 422),
        ({"item": "Oak", "budget": 1}, 422),
        ({"item": "Oak", "seed": -1}, 422),
    ],
    ids=str,
)
def test_a_wrong_red_team_is_refused(operator, study, body, status):
    reply = operator.post(f"/api/studies/{study}/red-team", json=body)
    assert reply.status_code == status
    assert reply.headers["content-type"] == "application/problem+json"


def test_jobs_are_for_operators_and_their_own_study(operator, study):
    observer = operator.post(f"/api/studies/{study}/observers", json={}).json()["key"]
    app = operator.app
    for headers, status in (({}, 401), ({"Authorization": f"Bearer {observer}"}, 404)):
        client = TestClient(app, headers=headers)
        for path in ("red-team", "cost", "voters/x/effect"):
            assert client.post(f"/api/studies/{study}/{path}", json={"item": "Oak"}).status_code == status
        for path in ("jobs", "jobs/x"):
            assert client.get(f"/api/studies/{study}/{path}").status_code == status
    for path in ("voters/x/effect", "cost"):
        assert operator.post(f"/api/studies/nothing/{path}", json={}).status_code == 404
    assert operator.post(f"/api/studies/{study}/voters/x/effect", json={}).status_code == 404
    assert operator.get(f"/api/studies/{study}/jobs/x").status_code == 404
    operator.patch(f"/api/studies/{study}", json={"votes_per_voter": 5})
    refused = operator.post(f"/api/studies/{study}/red-team", json={"item": "Oak", "votes_each": 6})
    assert refused.status_code == 422
    assert "allows 5" in refused.json()["detail"]
    operator.patch(f"/api/studies/{study}", json={"votes_per_voter": None})


def test_the_number_of_waiting_jobs_is_limited(folder, monkeypatch):
    monkeypatch.setattr(background.Jobs, "_work", lambda _: None)  # none is ever done
    queue = background.Jobs(folder, lambda _: None)
    for number in range(10):
        queue.start("study", "effect", {"voter": str(number)}, 1)
    with pytest.raises(background.Problem, match="Too many jobs"):
        queue.start("study", "effect", {"voter": "x"}, 1)
    queue.close()


def test_a_dead_process_is_replaced_and_an_idle_one_ends(folder, study, monkeypatch):
    queue = background.Jobs(folder, lambda _: None)
    wanted = {"voters": 0, "votes_each": 1, "reasons": []}

    def run(position):
        job = queue.start(study, "cost", wanted, position)
        while job.state in {"waiting", "running"}:
            time.sleep(0.02)
        return job

    monkeypatch.setattr(background, "_IDLE", 60.0)
    assert run(1).state == "done"
    monkeypatch.setattr(background, "_IDLE", 0.1)
    queue._worker._process.kill()
    queue._worker._process.wait()
    assert run(2).state == "done"
    for _ in range(200):
        if queue._worker._process is None:
            break
        time.sleep(0.05)
    assert queue._worker._process is None
    queue.close()
