"""Votes that were cast elsewhere: exports come back as they went, all or nothing, once."""

import io
import json
import math
import random
import time
from contextlib import closing

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select
from starlette.testclient import TestClient

from fairduel.errors import BadInputError
from fairduel.service.analysis import exports, red_team
from fairduel.service.analysis.analyse import analyse, recorded_votes
from fairduel.service.analysis.inputs import Analysis, Subject
from fairduel.service.api.app import create_app
from fairduel.service.api.limits import Limits, RateLimit
from fairduel.service.commands import imports, operating, team, voting
from fairduel.service.commands.vote_files import read_import
from fairduel.service.events import backup, schema
from fairduel.service.keys import Holder
from fairduel.service.problems import Problem
from fairduel.service.service import Service
from fairduel.service.study.study import NewStudy

NAMES = ["tea", "=1+1", "-2", "milk, hot", 'the "best"', "first", "01"]
CONTEXTS = [
    {"name": "+prompt", "text": "What is **it**?", "contents": {name: f"{name} one" for name in NAMES}},
    {"name": "second", "contents": {name: f"{name} two" for name in NAMES[:4]}},
]
ABOUT = {"question": "Which?", "items": [{"name": name} for name in NAMES], "repeat_pairs": True, "undo_seconds": 0}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with closing(Service(tmp_path_factory.mktemp("imports") / "store")) as service:
        service.analyst.close()  # it would take the tests' time
        yield service


@pytest.fixture
def operator(service):
    plenty = RateLimit(1e9, 1e9)
    limits = Limits(hosts=frozenset({"testserver"}), address=plenty, joins=plenty, voter=plenty)
    key = service.ledger.run(team.replace_operator)
    return TestClient(create_app(service, limits=limits), headers={"Authorization": f"Bearer {key}"})


def run(service, command, *arguments, **named):
    return service.ledger.run(lambda ledger: command(ledger, *arguments, **named))


def voted_study(service, count=60, seed=0, **about):
    """A study with votes, ties, skips, and a voter set aside; better items are later in NAMES."""
    return run(service, _voted_study, NewStudy.model_validate(ABOUT | about), count, random.Random(seed))


def _voted_study(ledger, about, count, rng):
    study = operating.create_study(ledger, about).study
    holders = [Holder("voter", study, voting.join(ledger, study, voting.Newcomer())[0]) for _ in range(6)]
    for number in range(count):
        holder = holders[number % 6]
        for duel in voting.ask(ledger, holder, 1)["duels"]:
            shown = ledger.state.studies[study].voters[holder.voter].open[duel["duel"]]
            left, right = (shown.first, shown.second) if shown.first_is_left else (shown.second, shown.first)
            says = "left" if rng.random() < 1 / (1 + math.exp(right - left)) else "right"
            answer = rng.choice([says] * 8 + ["tie", "skip"])
            voting.answer(ledger, holder, voting.Given(duel["duel"], "key", answer, 2.5))
    operating.set_voter_aside(ledger, study, holders[0].voter, set_aside=True)
    return study


def exported(service, study, table, form):
    about = Subject.of(service.ledger.state.studies[study])
    return b"".join(exports.export_study(service.ledger.store.engine, table, form, about, Analysis(), []))


def ranking(service, study):
    about = Subject.of(service.ledger.state.studies[study])
    with service.ledger.store.engine.connect() as connection:
        votes, found = recorded_votes(connection, about), analyse(connection, about, 0).results
    rows = votes.to_frame().drop("voter").select(pl.exclude("time"), "time").rows()
    return [(*row, round(time, 6)) for *row, time in rows], [  # as in a CSV file
        (each["item"], each["score"], each["score_low"], each["games"]) for each in found["ranking"]
    ]


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize(("table", "contexts"), [("duels", []), ("votes", CONTEXTS)])
def test_an_export_comes_back_with_the_same_ranking(service, tmp_path, form, table, contexts):
    study = voted_study(service, contexts=contexts)
    path = tmp_path / f"{table}.{form}"
    path.write_bytes(exported(service, study, table, form))
    about = service.ledger.state.studies[study].about
    read = read_import(path, about)
    again, refold = run(service, imports.create_with_votes, about, read)
    assert refold
    old, new = ranking(service, study), ranking(service, again.study)
    if table == "duels":  # in the order they were issued
        old, new = (sorted(old[0]), old[1]), (sorted(new[0]), new[1])
    assert new == old
    assert len(old[1]) == len(NAMES)
    assert sum(voter.set_aside for voter in again.voters.values()) == 1
    assert all(voter.imported for voter in again.voters.values())
    assert again.imports == {read.digest: sum(voter.votes for voter in again.voters.values())}


def test_an_import_is_recorded_learned_and_replayed(service, operator, tmp_path):
    study = voted_study(service)
    made = operator.post("/api/studies", json=ABOUT).json()["study"]
    content = exported(service, study, "votes", "csv")
    path = f"/api/studies/{made}/import?name=votes.csv"
    reply = operator.post(path, content=content, headers={"Content-Type": "application/octet-stream"})
    assert reply.status_code == 200
    counts = reply.json()["counts"]
    assert counts["imported"] == counts["votes"] == content.count(b"\n") - 1 > 40
    here = service.ledger.state.studies[made]
    deadline = time.monotonic() + 20
    while here.refolded_without != here.set_aside and time.monotonic() < deadline:
        time.sleep(0.02)
    assert here.learner.waiting == 0
    voters = operator.get(f"/api/studies/{made}/voters").json()["voters"]
    assert {row["imported"] for row in voters} == {True}
    assert [row["name"] for row in voters if row["set_aside"]] == ["voter 1"]
    for again in (content, exported(service, study, "votes", "jsonl")):  # the same votes in another form
        name = "votes.csv" if again is content else "votes.jsonl"
        twice = operator.post(
            f"/api/studies/{made}/import?name={name}",
            content=again,
            headers={"Content-Type": "application/octet-stream"},
        )
        assert (twice.status_code, twice.json()["code"]) == (409, "already-imported")
    assert operator.get(f"/api/studies/{made}").json()["counts"] == counts
    voter = TestClient(operator.app)
    voter.post(f"/api/studies/{made}/voters", json={})
    assert voter.post(f"/api/studies/{made}/duels", json={}).json()["duels"]
    assert backup.backup(service.ledger.store.where, tmp_path / "copy").problems == ()
    assert all(not each.problem for each in backup.replay(tmp_path / "copy"))


def test_copies_have_the_settings_items_and_perhaps_the_votes(service, operator):
    study = voted_study(service, contexts=CONTEXTS, title="Drinks", state="open")
    operator.patch(f"/api/studies/{study}/items/2", json={"enabled": False})
    operator.patch(f"/api/studies/{study}", json={"state": "closed", "title": "Tea"})
    plain = operator.post(f"/api/studies/{study}/clone", json={}).json()
    assert (plain["title"], plain["state"], plain["counts"]["votes"]) == ("Copy of Tea", "open", 0)
    assert [item["enabled"] for item in plain["items"]] == [n != 2 for n in range(len(NAMES))]
    assert plain["agent_settings"] == {"allowance": 2.0}
    older = service.ledger.run(
        lambda ledger: operating.create_study(ledger, NewStudy.model_validate(ABOUT), is_copy=True)
    )
    assert operator.post(f"/api/studies/{older.study}/clone", json={}).json()["agent_settings"] == {}
    assert plain["contexts"] == operator.get(f"/api/studies/{study}").json()["contexts"]
    full = operator.post(f"/api/studies/{study}/clone", json={"votes": True, "title": "More tea"}).json()
    assert full["title"] == "More tea"
    assert full["counts"]["imported"] == operator.get(f"/api/studies/{study}").json()["counts"]["votes"]
    assert ranking(service, full["study"]) == ranking(service, study)
    empty = operator.post(f"/api/studies/{plain['study']}/clone", json={"votes": True})
    assert (empty.status_code, empty.json()["code"]) == (422, "invalid")
    assert operator.post("/api/studies/nothing/clone", json={}).status_code == 404
    assert TestClient(operator.app).post(f"/api/studies/{study}/clone", json={}).status_code == 401


def test_known_answers_and_language_models_stay_what_they_are(service, tmp_path):
    """Answers to gold duels are not imported as votes, models stay models, and copies have the known answers."""
    gold = {"answers": [{"winner": "01", "loser": "tea"}], "first": 1, "every": 2}
    study = voted_study(service, gold=gold, least_views=1)
    model = run(service, operating.invite, study, ["gpt-x"], are_models=True)[0]
    holder = Holder("voter", study, model["voter"])
    for _ in range(5):
        duel = run(service, voting.ask, holder, 1)["duels"][0]
        run(service, voting.answer, holder, voting.Given(duel["duel"], "key", "left"))
    path = tmp_path / "votes.csv"
    path.write_bytes(exported(service, study, "votes", "csv"))
    assert path.read_bytes().startswith(b"\xef\xbb\xbffirst,")  # so that Excel reads it as UTF-8
    rows = pl.read_csv(path, try_parse_dates=True)
    assert rows["time"].dtype == rows["issued_at"].dtype == rows["deadline"].dtype == pl.Datetime("us")
    assert abs(rows["time"].dt.timestamp("us")[0] / 1e6 - time.time()) < 60
    assert rows["gold"].sum() >= 6
    about = service.ledger.state.studies[study].about
    read, _ = run(service, imports.create_with_votes, about, read_import(path, about))
    copy, _ = run(service, imports.clone_study, study, None, votes=True)
    for again in (read, copy):
        assert [voter.model for voter in again.models] == ["gpt-x"]
        assert again.counts["voted"] == len(rows) - rows["gold"].sum()
        assert again.learner.agent.asked - len(again.gold.answers) == sum(
            not again.is_apart(again.voters[row.voter]) for row in duels(service, again)
        )
        (votes, rows_now), (old_votes, old_rows) = ranking(service, again.study), ranking(service, study)
        assert votes == old_votes
        assert [row[0] for row in rows_now] == [row[0] for row in old_rows]  # intervals depend on who voted first
        # Voters have new random ids here, and sums over voters run in the order of their ids.
        assert [row[1] for row in rows_now] == pytest.approx([row[1] for row in old_rows], rel=1e-9, abs=1e-9)
    assert copy.gold == service.ledger.state.studies[study].gold
    counted = rows.filter(pl.col("weight") == 1.0)
    assert len(counted) == len(ranking(service, study)[0])


def duels(service, study):
    with service.ledger.store.engine.connect() as connection:
        return connection.execute(select(schema.duels).where(schema.duels.c.study == study.study)).all()


FOREIGN = "model_a,model_b,winner,judge\ntea,01,model_a,Ann\n01,tea,tie,Bob\n"
WRONG = {
    "another item": (FOREIGN + "tea,beer,model_a,Eve\n", "item 'beer', which the study does not have"),
    "no winner": (FOREIGN + "tea,01,,Eve\n", "row 4 is unusable (no winner)"),
    "unknown winner": (FOREIGN + "tea,01,beer,Eve\n", "row 4"),
    "against itself": (FOREIGN + "tea,tea,model_a,Eve\n", "row 4"),
    "weights": ("first,second,winner,weight\ntea,01,first,2\n", "has weights"),
    "no votes": ("first,second,winner\n", ""),
    "no columns": ("a\n1\n", ""),
    "empty": ("", ""),
    "too many": ("first,second,winner\n" + "tea,01,first\n" * 20_001, "at most 20,000"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_file_changes_nothing(service, operator, name):
    text, sentence = WRONG[name]
    made = operator.post("/api/studies", json=ABOUT).json()["study"]
    before = service.ledger.state.position
    path = f"/api/studies/{made}/import?name=votes.csv"
    reply = operator.post(path, content=text, headers={"Content-Type": "application/octet-stream"})
    assert reply.status_code == 422
    assert sentence in reply.json()["detail"]
    assert service.ledger.state.position == before


def test_an_import_needs_an_operator_a_type_and_a_known_ending(operator):
    made = operator.post("/api/studies", json=ABOUT).json()["study"]
    path, file = f"/api/studies/{made}/import", {"Content-Type": "application/octet-stream"}
    assert (
        operator.post(f"{path}?name=votes.csv", content=FOREIGN, headers={"Content-Type": "text/csv"}).status_code
        == 415
    )
    for name in ("votes.pkl", "votes.csv.gz", "votes.xlsx", "", "x" * 300 + ".csv"):
        assert operator.post(f"{path}?name={name}", content=FOREIGN, headers=file).status_code == 422
    assert operator.post(f"{path}?name=v.csv", content=bytes(20_000_001), headers=file).status_code == 413
    for ending in ("parquet", "json", "jsonl"):
        assert operator.post(f"{path}?name=v.{ending}", content=b"\x80\x04K\x01.", headers=file).status_code == 422
    assert operator.post("/api/studies/nothing/import?name=v.csv", content=FOREIGN, headers=file).status_code == 404
    assert TestClient(operator.app).post(f"{path}?name=v.csv", content=FOREIGN, headers=file).status_code == 401
    assert operator.post(f"{path}?name=Votes.CSV", content=FOREIGN, headers=file).json()["counts"]["imported"] == 2
    rows = operator.get(f"/api/studies/{made}/voters").json()["voters"]
    assert {row["name"] for row in rows} == {"Ann", "Bob"}


def test_votes_without_voters_or_sides(service, tmp_path):
    """Every vote of an unknown voter is someone's own, and a winner that was always named first gets a random side."""
    path = tmp_path / "games.csv"
    path.write_text("winner,loser\n" + "01,tea\n" * 40)
    about = NewStudy.model_validate(ABOUT)
    study, _ = run(service, imports.create_with_votes, about, read_import(path, about))
    rows = duels(service, study)
    assert len({row.voter for row in rows}) == len(study.voters) == 40
    winners = {(row.first if (row.answer == "left") == row.first_is_left else row.second) for row in rows}
    assert winners == {NAMES.index("01")}
    assert 5 < sum(row.answer == "left" for row in rows) < 35
    about = Subject.of(service.ledger.state.studies[study.study])
    with service.ledger.store.engine.connect() as connection:
        found = analyse(connection, about, 0)
        assert red_team._gap(recorded_votes(connection, about)) == 1.0
    assert found.results["activity"] == []  # nobody knows when they were cast
    assert {row["seconds_per_vote"] for row in found.evidence.values()} <= {None}


def test_a_context_without_an_answer_is_refused(tmp_path):
    about = NewStudy.model_validate(ABOUT | {"contexts": CONTEXTS})
    path = tmp_path / "votes.csv"
    path.write_text("first,second,winner,context\ntea,01,first,second\ntea,01,first,+prompt\n")
    with pytest.raises(BadInputError, match="row 2: '01' has no answer in context 'second'"):
        read_import(path, about)
    path.write_text(FOREIGN)
    with pytest.raises(BadInputError, match="in which context"):
        read_import(path, about)


def test_a_large_parquet_file_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "votes.parquet"
    pl.DataFrame({"first": ["tea"], "second": ["01"], "winner": ["first"]}).select(
        pl.all().repeat_by(3_000_000).list.explode(keep_nulls=True, empty_as_null=True)
    ).write_parquet(path)
    with pytest.raises(BadInputError, match="3,000,000 votes"):
        read_import(path, NewStudy.model_validate(ABOUT))


def test_an_import_with_too_many_or_no_votes_is_refused(service):
    vote = imports.CastVote(0, 1, "left", "Ann", None, None, None)
    about = NewStudy.model_validate(ABOUT)
    for count in (0, imports.MOST_VOTES + 1):
        with pytest.raises(Problem, match="can be imported"):
            run(service, imports.create_with_votes, about, imports.Import([vote] * count, frozenset()))


names = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S"]), min_size=1, max_size=8)


@given(st.lists(names, min_size=2, max_size=5, unique=True), st.integers(0, 999))
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_names_come_back(service, tmp_path, items, seed):
    """What a study's items are called does not matter, in any format."""
    about = NewStudy(question="?", items=[{"name": name} for name in items], undo_seconds=0)
    rng = random.Random(seed)
    pairs = [rng.sample(range(len(items)), 2) for _ in range(8)]
    answers = ["left", "right", "tie"]
    cast = [
        imports.CastVote(*pair, answers[n % 3], f"v{n % 2}", None, 1.7e9 + n, float(n)) for n, pair in enumerate(pairs)
    ]
    study, _ = run(service, imports.create_with_votes, about, imports.Import(cast, frozenset()))
    expected = run(service, imports.votes_of_study, study)
    for form in ("csv", "jsonl", "parquet"):
        path = tmp_path / f"votes.{form}"
        path.write_bytes(exported(service, study.study, "votes", form))
        assert (
            read_import(path, about).votes
            == expected.votes
            == [vote._replace(voter=f"voter {1 + int(vote.voter[1:])}") for vote in cast]
        )


def test_preferences_have_the_prompts_and_both_answers(service, operator):
    study = voted_study(service, count=120, contexts=CONTEXTS)
    rows = [json.loads(line) for line in operator.get(f"/api/studies/{study}/exports/trl.jsonl").text.splitlines()]
    assert len(rows) > 40
    assert {row["prompt"] for row in rows} == {"What is **it**?", "second"}
    for row in rows:
        number = "one" if row["prompt"].startswith("What") else "two"
        assert row["chosen"] == f"{row['chosen_model']} {number}"
        assert row["rejected"] == f"{row['rejected_model']} {number}"
    later = sum(NAMES.index(row["chosen_model"]) > NAMES.index(row["rejected_model"]) for row in rows)
    assert later > 0.6 * len(rows)
    parquet = pl.read_parquet(io.BytesIO(operator.get(f"/api/studies/{study}/exports/trl.parquet").content))
    assert parquet["chosen"].to_list() == [row["chosen"] for row in rows]
    assert "'=1+1 " in operator.get(f"/api/studies/{study}/exports/trl.csv").text
    key = operator.post(f"/api/studies/{study}/observers", json={}).json()["key"]
    observer = TestClient(operator.app, headers={"Authorization": f"Bearer {key}"})
    assert observer.get(f"/api/studies/{study}/exports/trl.jsonl").status_code == 404
    empty = operator.post("/api/studies", json=ABOUT).json()["study"]
    assert operator.get(f"/api/studies/{empty}/exports/trl.jsonl").status_code == 422
