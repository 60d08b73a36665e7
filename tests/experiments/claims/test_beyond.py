import numpy as np
import pytest

from fairduel.experiments.ablations import NORMS
from fairduel.experiments.claims import beyond
from fairduel.experiments.paper_setup import NO_ATTACK
from helpers.planted import Planted, statuses


@pytest.mark.parametrize("tune_rcdb", [False, True])
def test_the_same_start_for_everyone(tune_rcdb):
    claim = beyond.lowest_with_the_same_start(tune_rcdb=tune_rcdb)
    assert all(cell.agent_settings["warmup"] == 160 for cell in claim.cells)
    assert statuses(claim, Planted(lambda cell: 500.0 if cell.agent == "rcdb" else 900.0)) == ["holds"] * 4
    assert statuses(claim, Planted(lambda cell: 900.0 if cell.agent == "rcdb" else 500.0)) == ["does not hold"] * 4


def test_a_tolerance_below_the_flips():
    def late(small, large):
        return Planted(lambda cell: small if cell.agent_settings["flip_budget"] == 10 else large, noise=0.1)

    assert statuses(beyond.tolerance_below_the_flips(), late(3.0, 0.2)) == ["holds"]
    assert statuses(beyond.tolerance_below_the_flips(), late(0.2, 3.0)) == ["does not hold"]


def test_the_sigmoid_agent_is_ahead_and_its_lead_grows():
    claim = beyond.sigmoid_agent_ahead(NO_ATTACK)

    def planted(lead):
        return Planted(lambda cell: 1000.0 * (1.0 if cell.agent == "rcdb-s" else lead(cell.world_settings["norm"])))

    assert statuses(claim, planted(lambda norm: 1.0 + norm)) == ["holds", "holds"]
    assert statuses(claim, planted(lambda norm: 8.0 - norm)) == ["holds", "does not hold"]
    assert statuses(claim, planted(lambda norm: 1 / (1.0 + norm))) == ["does not hold", "does not hold"]
    behind_once = planted(lambda norm: 0.5 if norm == NORMS[2] else 2.0)
    assert statuses(claim, behind_once)[0] == "does not hold"
    _, doubling = claim.judge(planted(lambda norm: 2.0**norm))
    assert doubling.numbers["value"] == pytest.approx(np.log(2.0), abs=0.01)


def test_a_few_locked_in_runs_make_no_trend():
    """Three runs of RCDB in 100 lock in at B = 5: the means then say that RCDB-S's lead grows, the medians do not."""

    def regret(cell):
        costly = np.where(np.arange(100) < 3, 50_000.0, 0.0) if cell.world_settings["norm"] == NORMS[-1] else 0.0
        return 500.0 + costly if cell.agent == "rcdb" else 400.0 + 20.0 * cell.world_settings["norm"]

    _, growing = beyond.sigmoid_agent_ahead(NO_ATTACK).judge(Planted(regret))
    assert growing.numbers["by_means"]["value"] > 0.2
    assert growing.status == "does not hold"


def test_the_sigmoid_agents_are_compared_with_the_same_ridge():
    ridges = {}
    for cell in beyond.sigmoid_agent_ahead(NO_ATTACK).cells:
        agent = cell.start(seed=0)[0]
        ridges.setdefault(cell.world_settings["norm"], set()).add(agent.settings["ridge"])
    assert all(len(each) == 1 for each in ridges.values())


def test_the_theorems_own_radii():
    claim = beyond.sigmoid_agent_by_its_theorem()
    assert statuses(claim, Planted(lambda cell: 500.0 if cell.agent == "rcdb-s" else 900.0)) == ["holds"]
    assert statuses(claim, Planted(lambda cell: 900.0 if cell.agent == "rcdb-s" else 500.0)) == ["does not hold"]


def test_cobe_under_strong_and_weak_adversaries():
    def regret(worse_for):
        return lambda cell: 1000.0 if (cell.agent, cell.attack) == (worse_for, "bury") else 500.0

    claim = beyond.strong_adversary_of_cobe()
    assert statuses(claim, Planted(regret("cobe"))) == ["holds"]
    assert statuses(claim, Planted(regret("cw-oful"))) == ["does not hold"]
