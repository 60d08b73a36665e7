"""Agents whose votes choose the length scale of their kernel."""

import numpy as np
import pytest

from fairduel import RCDB, RCDBS, Agent, BadInputError, Outcome, Sceptic
from fairduel.features import Kernel
from fairduel.simulation import Cell
from fairduel.testing import check_agent
from helpers.agents import played, same, sphere

KNOWN = {"dimension": 3, "norm_bound": 2.0, "horizon": 60, "flip_budget": 5, "map": "rbf(votes, 20)"}
pytestmark = pytest.mark.filterwarnings("ignore::fairduel.LockInWarning")


@pytest.mark.parametrize("kind", [RCDB, Sceptic])
def test_an_agent_whose_scale_is_learned_passes(kind):
    check_agent(lambda **settings: kind(**KNOWN | settings), rounds=40)


def test_the_scale_changes_on_schedule_and_a_saved_agent_continues(tmp_path):
    """Rewards that change quickly: the scale shrinks when 25 votes are told, not before, late answers included."""
    rng = np.random.default_rng(2)
    agent = Sceptic(**KNOWN | {"flip_budget": 0, "growth": 0.0, "self_duels": False, "map": Kernel("rbf", "votes", 40)})
    scales, late = [], []
    for number in range(130):
        duel = agent.ask(sphere(rng))
        lead = np.sin(9.0 * duel.features[:, 0]) @ [1.0, -1.0]
        late.append((duel, Outcome.FIRST if lead > 0 else Outcome.SECOND))
        if number % 2:
            for each in late:
                agent.tell(*each)
            late = []
        scales.append(agent.belief.features.current_scale)
    assert scales[:25] == scales[:1] * 25
    assert scales[-1] == scales[0] / 2
    agent.ask(sphere(rng))  # left pending
    agent.save(tmp_path / "agent.npz")
    loaded = Agent.load(tmp_path / "agent.npz")
    assert same(loaded.state(), agent.state())
    pairs = [[(duel.first, duel.second, duel.weight) for duel, _ in played(each, 70, 3)] for each in (agent, loaded)]
    assert pairs[0] == pairs[1]


def test_agents_without_a_belief_that_learns_refuse_it():
    with pytest.raises(BadInputError, match="RCDBS cannot learn its features; use another map, or RCDB"):
        RCDBS(**KNOWN)


def test_a_run_depends_on_nothing_but_its_seed_with_ties_and_delays():
    world = {"shape": "rbf", "dimension": 2, "count": 5, "ties": "davidson(1)"}
    cell = Cell("rcdb", "adversarial", 5, 80, "curved", {"map": "rbf(votes, 20)"}, {}, world, "fixed", {"rounds": 5})
    one, other = cell.run(3).trace, cell.run(3).trace
    assert one.tied.any()
    np.testing.assert_array_equal(one.weight, other.weight)
    np.testing.assert_array_equal(one.regret, other.regret)
