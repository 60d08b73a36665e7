"""What-if questions of operators: pure functions against the library's own results, and the jobs around them."""

import time
from dataclasses import replace

import numpy as np
import pytest
from starlette.testclient import TestClient

from fairduel.errors import BadInputError
from fairduel.service import commands, demo, jobs, what_if
from fairduel.service.analysis import recorded_votes
from fairduel.service.api.app import Limits, create_app
from fairduel.service.api.guard import RateLimit
from fairduel.service.job_process import compute
from fairduel.service.red_team import ATTACKS, Fork, Plan, Truth, red_team, simulate
from fairduel.service.service import Service, subject_of
from fairduel.service.store import load_state, reading
from fairduel.votes.auditing import audit
from fairduel.votes.manipulation import Limits as CampaignLimits
from fairduel.votes.manipulation import cost_of_manipulation

VOTES = 160


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A service whose demo study has some votes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "_PAUSE", 3600.0)
        service = Service(tmp_path_factory.mktemp("jobs") / "store")
        simulated = demo.Demo(service)
        for _ in range(VOTES):
            simulated.vote()
        yield service
        simulated.close()
        service.close()


@pytest.fixture(scope="module")
def folder(service):
    return service.ledger.store.folder


@pytest.fixture(scope="module")
def study(service):
    return next(iter(service.ledger.state.studies))


@pytest.fixture
def connection(folder):
    with reading(folder) as connection:
        yield connection


@pytest.fixture
def subject(connection, study):
    return subject_of(load_state(connection).studies[study])


# ---------------------------------------------------------------------------- the red team


def test_no_liars_change_nothing(connection, folder, study, subject):
    found = red_team(connection, folder, study, Plan("promote", "Oak", liars=0))
    assert [row["before"] for row in found["ranking"]] == [row["after"] for row in found["ranking"]]
    shown = audit(recorded_votes(connection, subject), top=1).shown
    assert [row["item"] for row in found["ranking"]] == [each.item for each in shown.standings]
    assert found["votes"] == {"recorded": VOTES, "liars": 0, "honest": 0}
    assert found["caught"] == {"liars": 0, "of": 0, "honest": 0}


@pytest.mark.parametrize("attack", ATTACKS)
def test_the_same_seed_gives_the_same_result_and_the_log_stays(connection, folder, study, service, attack):
    before = service.ledger.state.position, service.ledger.state.hash
    plan = Plan(attack, None if attack in ("inverters", "random votes") else "Oak", liars=2, votes_each=9, honest=1, seed=4)
    found = red_team(connection, folder, study, plan)
    assert found == red_team(connection, folder, study, plan)
    assert found["votes"] == {"recorded": VOTES, "liars": 18, "honest": 9}
    assert found["plan"] == vars(plan)
    assert (service.ledger.state.position, service.ledger.state.hash) == before


def test_large_campaigns_win_and_tiny_ones_do_not(connection, folder, study):
    """Over spread seeds; a campaign larger than the study must win nearly always, two votes hardly ever."""
    leader = red_team(connection, folder, study, Plan("promote", "Oak", liars=0))["ranking"][0]["item"]
    pushed = "Oak" if leader != "Oak" else "Elm"
    large, tiny = (
        [
            red_team(connection, folder, study, Plan("promote", pushed, liars, each, seed=seed))["ranking"][0]["item"]
            for seed in range(0, 2000, 200)
        ]
        for liars, each in ((30, 20), (1, 1))
    )
    assert large.count(pushed) >= 9
    assert tiny.count(pushed) == 0
    assert tiny.count(leader) >= 9
