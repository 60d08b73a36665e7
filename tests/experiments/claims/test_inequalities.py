"""The audit of the proofs' inequalities, beside a slow one that watches the agent duel by duel."""

import math
from dataclasses import replace

import numpy as np
import pytest

from fairduel import LOGISTIC, BadInputError
from fairduel.experiments.claims.inequalities import check_proof, regret_bound
from fairduel.experiments.claims.proofs import LINEAR, SIGMOID, theory_cell
from fairduel.experiments.paper_setup import ADVERSARIAL, GREEDY, NO_ATTACK, paper_cell
from fairduel.simulation import play

SMALL = {"horizon": 300, "world_settings": {"dimension": 3, "norm": 2.0}}
pytestmark = pytest.mark.filterwarnings("ignore::fairduel.LockInWarning")


class Watched:
    """An agent that is measured against θ* before each duel, with matrices of the onlooker's own."""

    def __init__(self, agent, parameter):
        self.agent, self.parameter = agent, parameter
        dimension = len(parameter)
        self.sigma = agent.settings["ridge"] * np.eye(dimension)
        self.local = self.sigma.copy()
        self.flips = np.zeros(dimension)
        self.found = {"confidence": 0.0, "local_confidence": 0.0, "slope": 0.0, "round_regret": 0.0}
        self.potential = self.corruption = 0.0
        self.told = []

    def ask(self, actions):
        error = self.agent.estimate - self.parameter
        asked = self.agent.asked + 1
        local = hasattr(self.agent, "slope_radius_at")
        beta = self.agent.slope_radius_at(asked) if local else self.agent.radius_at(asked)
        self._see("confidence", math.sqrt(error @ self.sigma @ error) / beta)
        self._see("local_confidence", math.sqrt(error @ self.local @ error) / self.agent.radius_at(asked))
        self.duel = duel = self.agent.ask(actions)
        rewards, kappa = actions @ self.parameter, self.agent.settings["kappa"]
        squared = duel.difference @ np.linalg.solve(self.sigma, duel.difference)
        regret = 2 * rewards.max() - rewards[duel.first] - rewards[duel.second]
        if regret > 1e-9:
            allowed = min(4 * self.agent.norm_bound, 2 * beta * math.sqrt(squared))
            self._see("round_regret", regret / allowed)
        if duel.first != duel.second:
            self._see("slope", duel.slope / LOGISTIC.slope(duel.difference @ self.parameter))
        self.potential += min(1.0, duel.weight * kappa * squared)
        outer = np.outer(duel.difference, duel.difference)
        self.sigma = self.sigma + duel.weight * kappa * outer
        self.local = self.local + duel.weight * duel.slope * outer
        return duel

    def tell(self, duel, outcome):
        self.agent.tell(duel, outcome)

    def _see(self, name, ratio):
        self.found[name] = max(self.found[name], float(ratio))


def watched_run(cell, seed):
    agent, world, adversary, streams = cell.start(seed)
    watched = Watched(agent, world.parameter)
    trace = play(watched, world, adversary, horizon=cell.horizon, labels=streams.labels)
    return watched, trace


@pytest.mark.parametrize("attack", [GREEDY, ADVERSARIAL, NO_ATTACK])
def test_the_audit_of_rcdb_is_the_slow_ones(attack):
    cell = paper_cell("rcdb", attack, {"radius": "theory"}, budget=17, **SMALL)
    watched, trace = watched_run(cell, seed=3)
    found = check_proof(cell, seed=3)
    for name in ("confidence", "round_regret"):
        assert found[name].ratio == pytest.approx(watched.found[name], rel=1e-6)
    settings = watched.agent.settings
    limit = 2 * 3 * math.log(1 + 300 * 4 * settings["kappa"] / (3 * settings["ridge"]))
    assert found["potential"].ratio == pytest.approx(watched.potential / limit, rel=1e-6)
    bound = regret_bound(watched.agent, 300)
    assert found["regret"].ratio == pytest.approx(trace.regret.sum() / bound, rel=1e-9)


def test_the_flips_weighted_sum_is_the_slow_one():
    cell = paper_cell("rcdb", ADVERSARIAL, {"radius": "theory"}, budget=17, **SMALL)
    agent, world, _, _ = cell.start(seed=1)
    trace, actions = cell.run(seed=1).trace, world.offer(1).actions
    sigma, flips, largest = agent.settings["ridge"] * np.eye(3), np.zeros(3), 0.0
    for t in range(300):
        difference = actions[trace.first[t]] - actions[trace.second[t]]
        sigma += trace.weight[t] * agent.settings["kappa"] * np.outer(difference, difference)
        flips += trace.flipped[t] * trace.weight[t] * difference
        largest = max(largest, math.sqrt(flips @ np.linalg.solve(sigma, flips)))
    allowed = agent.settings["trust"] * 17
    assert check_proof(cell, seed=1)["corruption"].ratio == pytest.approx(largest / allowed, rel=1e-6)


def test_the_audit_of_a_rounds_regret_is_the_slow_one_where_its_width_decides():
    """On the linear link 2β‖φ‖ soon falls below 4B; above it was always 4B."""
    cell = theory_cell("rcdb", NO_ATTACK, LINEAR, 0, horizon=3000)
    watched, trace = watched_run(cell, seed=0)
    found = check_proof(cell, seed=0)["round_regret"]
    assert found.ratio == pytest.approx(watched.found["round_regret"], rel=1e-6)
    beta = watched.agent.radius_at(3000)
    duels = ~trace.self_duels
    decided_by_width = 2 * beta * trace.width < 4 * watched.agent.norm_bound
    assert decided_by_width[duels].mean() > 0.1
    worst = 2 * np.ptp(cell.start(0)[1].offer(1).rewards)
    smallest = min(4 * watched.agent.norm_bound, 2 * beta * trace.width[duels].min())
    assert found.reach == pytest.approx(worst / smallest, rel=1e-9)


def test_the_reach_of_the_confidence_set_is_the_opposite_estimate():
    cell = theory_cell("rcdb", NO_ATTACK, LINEAR, 0, horizon=3000)
    watched, _ = watched_run(cell, seed=0)
    # The onlooker's Σ has the last duel too, which Σ_T has not: one part in thousands.
    farthest = 2 * 0.25 * math.sqrt(np.linalg.eigvalsh(watched.sigma)[-1])
    assert check_proof(cell, seed=0)["confidence"].reach == pytest.approx(
        farthest / watched.agent.radius_at(3000), rel=1e-2
    )


def test_the_reach_of_a_slope_is_its_own_over_the_smallest():
    cell = theory_cell("rcdb-s", NO_ATTACK, SIGMOID, 0, horizon=30_000)
    trace = cell.run(seed=1).trace
    largest = trace.slope[~trace.self_duels].max()
    assert check_proof(cell, seed=1)["slope"].reach == pytest.approx(largest / LOGISTIC.kappa(0.5), rel=1e-9)


@pytest.mark.parametrize("attack", [ADVERSARIAL, NO_ATTACK])
def test_the_audit_of_rcdb_s_is_the_slow_ones(attack):
    cell = theory_cell("rcdb-s", attack, SIGMOID, 10 * (attack is ADVERSARIAL), horizon=2000)
    watched, _ = watched_run(cell, seed=2)
    found = check_proof(cell, seed=2)
    for name in ("confidence", "local_confidence", "slope"):
        assert found[name].ratio == pytest.approx(watched.found[name], rel=1e-6)


@pytest.mark.parametrize("attack", [GREEDY, ADVERSARIAL])
def test_the_proofs_inequalities_hold_at_the_theory_radius(attack):
    found = check_proof(paper_cell("rcdb", attack, {"radius": "theory"}, budget=17, **SMALL), seed=0)
    assert all(0 < each.ratio <= 1 for each in found.values())


def test_an_audit_sees_a_radius_that_is_too_small():
    settings = {"radius": "theory", "radius_scale": 0.003}
    found = check_proof(paper_cell("rcdb", ADVERSARIAL, settings, budget=17, **SMALL), seed=0)
    assert found["confidence"].ratio > 1


def test_an_audit_sees_more_corruption_than_the_trust_allows():
    """Trust ten times too large for the budget: the weights no longer bound the flips by αC of the theorem."""
    cell = paper_cell("rcdb", ADVERSARIAL, {"radius": "theory"}, budget=17, **SMALL)
    deceived = replace(cell, agent_settings={"radius": "theory", "flip_budget": 1})
    assert check_proof(deceived, seed=0)["corruption"].ratio > 1 > check_proof(cell, seed=0)["corruption"].ratio


def test_an_audit_sees_a_slope_that_is_too_steep():
    """With hardly any slope radius, v_t is the slope at the estimate, which is not below the true one."""
    cell = theory_cell("rcdb-s", ADVERSARIAL, SIGMOID, 40, horizon=2000)
    hasty = replace(cell, agent_settings={**cell.agent_settings, "radius": 3.0, "slope_radius": 0.01})
    assert check_proof(hasty, seed=0)["slope"].ratio > 1 + 1e-6


def test_where_the_bound_is_above_the_worst_regret_it_cannot_fail():
    papers_own = check_proof(paper_cell("rcdb", NO_ATTACK, {"radius": "theory"}), seed=0)
    assert papers_own["regret"].reach < 0.01
    assert papers_own["confidence"].reach < 1
    elsewhere = check_proof(theory_cell("rcdb", NO_ATTACK, LINEAR, 0, horizon=100_000), seed=0)
    assert elsewhere["regret"].reach > 2
    assert elsewhere["confidence"].reach > 2


def test_uniform_play_would_break_the_regret_bound_there():
    """The bound says something: an agent that learns nothing has more regret than it allows."""
    cell = theory_cell("rcdb", NO_ATTACK, LINEAR, 0, horizon=100_000)
    agent, world, _, _ = cell.start(seed=0)
    rewards = world.offer(1).rewards
    assert 2 * cell.horizon * (rewards.max() - rewards.mean()) > regret_bound(agent, cell.horizon)


def test_other_agents_are_refused():
    with pytest.raises(BadInputError, match="RCDB"):
        check_proof(paper_cell("maxinp", NO_ATTACK), seed=0)
