"""Each threat to a poll has a defence, and each defence a test: those named here, and those in this file."""

import ast
import inspect
import re
import socket
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

import fairduel.service
from fairduel.agents.parts import state_file
from fairduel.cli.live import serve
from fairduel.service import keys
from fairduel.service.analysis import exports
from fairduel.service.api.app import create_app
from fairduel.service.api.limits import Limits, RateLimit
from fairduel.service.commands import operating, team
from fairduel.service.service import Service
from fairduel.service.study import learner

THREATS = {
    "ballot stuffing": [
        "test_api::test_invitations_and_keys",
        "test_joining::test_only_a_signed_link_makes_a_participant",
        "test_joining::test_a_platforms_participant_joins_once",
        "test_joining::test_an_invitation_works_once",
        "test_joining::test_joining_may_need_work",
        "test_joining::test_operators_see_who_joined_from_one_address",
        "test_api::test_rate_limits_say_when_to_come_back",
        "test_api::test_a_callers_word_on_their_address_is_not_taken",
        "test_api::test_keys_open_only_their_own_doors",  # voters do not see the standings
        "test_proxy::test_limits_are_per_caller_whom_the_proxy_names",
        "test_demo::test_a_fifth_of_liars_does_not_change_who_is_first",
        "test_threats::test_a_voter_cannot_vote_faster_than_people_do_or_choose_the_pair",
        "test_liars::test_liars_who_see_the_duel_do_not_change_who_is_first",
    ],
    "replay, double vote": [
        "test_servers::test_the_same_answer_a_hundred_times_at_once_counts_once",
        "test_servers::test_a_second_answer_is_refused_and_kept",
        "test_histories::test_histories_are_linearizable",
        "test_client::test_with_many_answers_lost_every_vote_counts_once",
    ],
    "cross-site posts": ["test_api::test_a_session_cookie_cannot_be_read_or_sent_by_others"],
    "script in item text": [
        "test_api::test_every_answer_has_the_security_headers",
        "test_api::test_results_come_from_the_recorded_votes",  # formulas in CSV
        "test_threats::test_no_spreadsheet_runs_what_voters_write",
        "test_api::test_images_are_encoded_again",
        "test_threats::test_pages_never_turn_text_into_markup",
        "test_browser::test_markup_in_names_and_texts_is_shown_as_text",
    ],
    "guessing ids": [
        "test_voting::test_another_voters_duel_does_not_exist",
        "test_api::test_keys_open_only_their_own_doors",
        "test_strangers::test_an_observers_link_shows_results_only",
        "test_threats::test_ids_and_keys_cannot_be_guessed",
    ],
    "default secrets": [
        "test_threats::test_keys_are_new_in_each_store_and_nowhere_on_disk",
        "test_api::test_metrics_and_logs_hold_no_secrets",
        "test_api::test_every_answer_has_the_security_headers",
    ],
    "stalling": [
        "test_attacks::test_a_voter_hardly_notices_an_attack",
        "test_api::test_callers_without_a_key_are_refused_before_their_body_is_read",
        "test_connections::test_a_caller_who_sends_nothing_makes_room_for_others",
        "test_connections::test_who_has_shown_a_key_stays_while_strangers_come_and_go",
        "test_connections::test_slow_callers_are_cut_off",
        "test_connections::test_endless_headers_are_cut_off",
        "test_connections::test_callers_who_do_not_read_make_room_for_others",
        "test_postgres::test_slow_callers_of_a_standby_keep_no_connection_to_the_leader",
        "test_proxy::test_half_sent_headers_lock_nobody_out_of_the_proxy",
        "test_strangers::test_nothing_can_be_asked_for_without_limit",
        "test_strangers::test_the_voters_of_one_address_share_a_limit",
        "test_strangers::test_whoever_is_refused_waits_and_makes_room_for_others",
        "test_strangers::test_a_small_picture_is_made_once_and_gone_with_its_study",
    ],
    "hostile numbers and sizes": [
        "test_api::test_bad_bodies_are_refused",
        "test_api::test_large_bodies_are_refused",
        "test_api::test_random_requests_cause_no_server_error",
    ],
    "fetching for others": ["test_threats::test_the_server_never_connects_anywhere"],
    "rebinding, framing": [
        "test_api::test_other_host_names_are_refused",
        "test_api::test_every_answer_has_the_security_headers",
        "test_threats::test_by_default_the_server_listens_on_this_machine_only",
    ],
    "unsafe model files": [
        "test_threats::test_a_saved_learner_with_code_in_it_runs_nothing",
        "test_learner::test_a_missing_or_damaged_save_does_no_harm",
    ],
}
PACKAGE = Path(fairduel.service.__file__).parent
STUDY = {"question": "Which?", "items": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}


@pytest.mark.parametrize("threat", THREATS)
def test_every_threat_has_its_tests(threat):
    for name in THREATS[threat]:
        file, _, test = name.partition("::")
        (path,) = Path(__file__).parents[1].rglob(f"{file}.py")
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert test in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}, name


def test_a_voter_cannot_vote_faster_than_people_do_or_choose_the_pair(service):
    free = RateLimit(1e9, 1e9)
    limits = Limits(hosts=frozenset({"testserver"}), address=free, joins=free, voter=RateLimit(0.5, 6))
    app = create_app(service, limits=limits)
    key = service.ledger.run(team.ensure_operator)
    operator, voter = TestClient(app, headers={"Authorization": f"Bearer {key}"}), TestClient(app)
    study = operator.post("/api/studies", json=STUDY | {"repeat_pairs": True}).json()["study"]
    voter.post(f"/api/studies/{study}/voters", json={})
    for choice in ({"first": 0, "second": 1}, {"left": "a"}, {"count": 99}):
        assert voter.post(f"/api/studies/{study}/duels", json=choice).status_code == 422
    statuses = []
    for number in range(8):
        asked = voter.post(f"/api/studies/{study}/duels", json={})
        statuses.append(asked.status_code)
        if asked.status_code == 200:
            path = f"/api/studies/{study}/duels/{asked.json()['duels'][0]['duel']}/answer"
            body = {"answer": "left", "winner": "a"} if number == 0 else {"answer": "left"}
            statuses.append(voter.post(path, json=body, headers={"Idempotency-Key": str(number)}).status_code)
    assert statuses.count(429) >= 5
    assert operator.get(f"/api/studies/{study}").json()["counts"]["votes"] <= 3


def test_pages_never_turn_text_into_markup():
    scripts = [*PACKAGE.rglob("*.js")]
    assert scripts
    forbidden = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc")
    for script in scripts:
        own = script.read_text(encoding="utf-8")
        if "license" not in own[:300].lower():  # libraries are as their authors publish them
            assert not forbidden.search(own), script.name
    for page in PACKAGE.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|javascript:|\|\s*safe\b|<style", text), page.name


def test_ids_and_keys_cannot_be_guessed():
    """128 and 256 random bits; a bit that is not random would be the same in 200 of them."""
    assert not any(keys.new_id().startswith("-") for _ in range(1000))  # a spreadsheet would take it for a formula
    for make, bits in ((keys.new_id, 128), (lambda: keys.new_key("voter").removeprefix("fdv_"), 256)):
        made = [make() for _ in range(200)]
        assert len(set(made)) == 200
        rows = [np.unpackbits(np.frombuffer(_decoded(text), dtype=np.uint8)) for text in made]
        ones = np.sum(rows, axis=0)
        assert ones.size == bits
        assert ((ones > 48) & (ones < 152)).all()  # 7 standard deviations


def _decoded(text):
    import base64  # noqa: PLC0415

    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def test_keys_are_new_in_each_store_and_nowhere_on_disk(tmp_path):
    secrets = []
    for name in ("one", "two"):
        service = Service(tmp_path / name)
        operator = service.ledger.run(team.ensure_operator)
        study = service.ledger.run(lambda ledger: operating.create_study(ledger, learner.NewStudy(**STUDY))).study
        invited = service.ledger.run(lambda ledger, study=study: operating.invite(ledger, study, [None]))[0]["key"]
        observer = service.ledger.run(lambda ledger, study=study: operating.add_observer(ledger, study))
        secrets += [operator, invited, observer, service.ledger.secret.hex()]
        service.close()
        files = b"".join(file.read_bytes() for file in (tmp_path / name).rglob("*") if file.is_file())
        assert not any(key.encode() in files for key in (operator, invited, observer))
        assert ((tmp_path / name / "fairduel.db").stat().st_mode & 0o077) == 0
    assert len(set(secrets)) == 8


def test_the_server_never_connects_anywhere(service, monkeypatch):
    """URLs in studies are text; an item's image is an id of an uploaded one."""
    app = create_app(service, limits=Limits(hosts=frozenset({"testserver"})))
    key = service.ledger.run(team.ensure_operator)
    operator, voter = TestClient(app, headers={"Authorization": f"Bearer {key}"}), TestClient(app)

    def connect(*_):
        raise AssertionError("the server connects somewhere")

    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(socket, "getaddrinfo", connect)
    url = "http://169.254.169.254/latest/meta-data"
    for image in (url, "file:///etc/passwd", "//evil.example/x.png"):
        wrong = STUDY | {"items": [{"name": "a", "image": image}, {"name": "b"}]}
        assert operator.post("/api/studies", json=wrong).status_code == 422
    items = [{"name": url}, {"name": "b", "text": f"![x]({url}) <img src='{url}'>"}]
    study = operator.post("/api/studies", json=STUDY | {"items": items, "instructions": url}).json()["study"]
    assert operator.post("/api/images", content=url.encode(), headers={"Content-Type": "image/png"}).status_code == 422
    svg = f'<svg xmlns="http://www.w3.org/2000/svg"><image href="{url}"/></svg>'.encode()
    assert operator.post("/api/images", content=svg, headers={"Content-Type": "image/svg+xml"}).status_code == 422
    voter.post(f"/api/studies/{study}/voters", json={"name": url})
    shown = voter.post(f"/api/studies/{study}/duels", json={}).json()["duels"][0]
    assert {shown["left"]["text"], shown["right"]["text"]} == {url, f"![x]({url}) <img src='{url}'>"}


def test_by_default_the_server_listens_on_this_machine_only():
    assert inspect.signature(serve.serve).parameters["address"].default == "127.0.0.1"
    assert Limits().hosts == {"localhost", "127.0.0.1", "[::1]"}


class _Code:
    """Leaves a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_a_saved_learner_with_code_in_it_runs_nothing(booth, tmp_path):
    booth.vote(5)
    live, file, proof = (
        booth.state.learner.state(),
        booth.folder / "learners" / f"{booth.study}.npz",
        tmp_path / "proof",
    )
    booth.ledger.close()
    np.savez(file, json=np.array([_Code(proof)], dtype=object))
    content = file.read_bytes() + state_file._SEAL
    file.write_bytes(content + state_file._digest(content))  # as one who can write here would
    booth.open()
    assert not proof.exists()
    assert booth.state.learner.state().keys() == live.keys()
    assert booth.state.learner.position == live["position"]
    np.load(file, allow_pickle=True)["json"]
    assert proof.exists()  # so this test would notice
    modules = [*PACKAGE.rglob("*.py"), Path(state_file.__file__)]
    assert not any(re.search(r"\b(pickle|marshal|shelve|joblib)\b", path.read_text("utf-8")) for path in modules)


@pytest.mark.parametrize("said", ["=1+1", "hi;=1+1", 'hi;"=1+1', "hi\t =1+1", "hi;@x"])
def test_no_spreadsheet_runs_what_voters_write(said):
    """Where commas are for decimals, spreadsheets take semicolons to separate the cells of a CSV file."""
    content = b"".join(exports._csv(iter([{"comment": said, "first": "a;-b"}]))).decode("utf-8-sig")
    cells = [cell.strip(' "') for line in content.splitlines() for cell in re.split("[;,\t]", line)]
    assert [cell for cell in cells if cell[:1] in set("=+@")] == []
    assert "a;-b" in content  # operators write names, which have to be found again
