import itertools
import math

import numpy as np
import pytest

from fairduel import BadInputError
from fairduel.agents import COBE, CWOFUL, PhasedElimination, WeightedOFUL
from fairduel.simulation import Cell

ACTIONS = np.array([[1.0, 0.0], [0.0, 1.0], [-0.6, 0.8]])


def made(**settings):
    return COBE(**{"dimension": 2, "norm_bound": 1.0, "noise": 0.1, "horizon": 1000, "seed": 3} | settings)


def test_guesses_shares_and_budgets_by_hand():
    """b = (4, 2, 2) and T = 1000: k = ⌈log₂((√4000 + 4)/2)⌉ = 6, and ⌈log₂ 1000⌉ = 10."""
    agent = made(scale="theory")
    assert agent._shares == [17 / 32, 1 / 4, 1 / 8, 1 / 16, 1 / 32]
    assert sum(agent._shares) == 1.0
    more = 21 * math.log(1000 / 0.05)
    expected = [1.25 * share * 2**i + more for i, share in zip(range(6, 11), agent._shares, strict=True)]
    np.testing.assert_allclose(agent._budgets, expected)
    assert [base.settings["corruption_budget"] for base in agent._bases] == pytest.approx(expected)


def test_guesses_are_drawn_by_their_shares_and_only_the_drawn_base_learns():
    agent = made(horizon=1000)
    drawn = np.zeros(5, int)
    for _ in range(400):
        before = [base.information.matrix.copy() for base in agent._bases]
        pull = agent.ask(ACTIONS)
        agent.tell(pull, 0.5)
        changed = [not np.array_equal(b, base.information.matrix) for b, base in zip(before, agent._bases, strict=True)]
        index = pull.base
        assert changed == [i == index for i in range(5)]
        drawn[index] += 1
    shares = np.array(agent._shares)
    assert (np.abs(drawn / 400 - shares) < 4 * np.sqrt(shares * (1 - shares) / 400)).all()


def caught(agent, pulls, rewards):
    """The test of the notes, over all pairs."""
    b1, b2, b3 = 4.0, 2.0, 2.0
    logarithm, t = math.log(agent.horizon / 0.05), sum(pulls)
    for i, j in itertools.combinations(range(len(agent._shares)), 2):
        a, b = agent._shares[i], agent._shares[j]
        bound = math.sqrt(b1 * pulls[i]) + b2 * agent._budgets[i] + b3
        doubt = 8 * agent._scale * (math.sqrt(t * logarithm / b) + (logarithm + agent._budgets[j]) / b)
        if (rewards[i] + bound) / a < rewards[j] / b - doubt:
            return True
    return False


def restarted(seed=0):
    """An agent whose first guess earned −1 and all others 1, until it was caught in just the round that it must."""
    agent = made(scale=0.001, horizon=3000, seed=seed)
    late = agent.ask_many(ACTIONS, 5)
    pulls, rewards = [0] * len(agent._bases), [0.0] * len(agent._bases)
    while not agent.restarts:
        pull = agent.ask(ACTIONS)
        index = pull.base
        reward = 1.0 if index else -1.0
        pulls[index] += 1
        rewards[index] += reward
        expected = caught(agent, pulls, rewards)
        agent.tell(pull, reward)
        assert bool(agent.restarts) == expected
    return agent, late


def test_a_smaller_guess_that_earns_too_little_is_caught():
    fresh = made(scale=0.001, horizon=3000)
    agent, _ = restarted()
    assert agent._smallest == fresh._smallest + 1
    assert len(agent._bases) == len(fresh._bases) - 1
    assert agent._pulls == [0] * len(agent._bases)
    assert sum(agent._shares) == 1.0
    assert all(np.array_equal(base.estimate, [0, 0]) for base in agent._bases)


def test_a_restarted_agent_is_saved_with_its_guesses(tmp_path):
    agent, late = restarted()
    agent.save(tmp_path / "cobe.npz")
    twin = COBE.load(tmp_path / "cobe.npz")
    assert (twin._shares, twin._budgets, twin.restarts) == (agent._shares, agent._budgets, 1)
    for one in (agent, twin):
        one.tell(late[0], 0.5)
    for _ in range(100):
        pull, same = agent.ask(ACTIONS), twin.ask(ACTIONS)
        assert pull == same
        agent.tell(pull, 0.3)
        twin.tell(same, 0.3)


def test_pulls_from_before_a_restart_are_not_learned():
    agent, late = restarted()
    agent.cancel(late[0])
    for pull in late[1:]:
        agent.tell(pull, 100.0)
    assert agent._pulls == [0] * len(agent._bases)


@pytest.mark.parametrize("scale", ["theory", 0.05, 0.001])
@pytest.mark.parametrize("horizon", [500, 2000, 20_000])
def test_the_earliest_restart_is_that_of_the_best_case(scale, horizon):
    """Every guess as often as expected, one earns B and the other −B: found round by round."""
    agent = made(scale=scale, horizon=horizon)
    rounds = np.arange(1, horizon + 1)
    logarithm, possible = math.log(horizon / 0.05), np.zeros(horizon, bool)
    for i, j in itertools.combinations(range(len(agent._shares)), 2):
        a, b = agent._shares[i], agent._shares[j]
        bound = np.sqrt(4.0 * a * rounds) + 2.0 * agent._budgets[i] + 2.0
        doubt = 8 * agent._scale * (np.sqrt(rounds * logarithm / b) + (logarithm + agent._budgets[j]) / b)
        possible |= (-a * rounds + bound) / a < rounds - doubt
    expected = int(rounds[possible][0]) if possible.any() else None
    assert agent.earliest_restart == expected


def test_small_horizons_leave_theory_no_chance_and_it_says_so():
    assert made(scale="theory", horizon=2000).settings["earliest_restart"] is None
    assert made(scale="theory", horizon=100_000).earliest_restart is not None
    assert "weak adversary" in made().settings["assumes"]


@pytest.mark.parametrize(
    ("name", "kind"), [("cw-oful", CWOFUL), ("weighted-oful", WeightedOFUL), ("phased-elimination", PhasedElimination)]
)
def test_bases_by_name(name, kind):
    agent = made(base=name, base_settings={"scale": 0.25})
    assert {type(base) for base in agent._bases} == {kind}
    assert {base.settings["scale"] for base in agent._bases} == {0.25}
    for _ in range(30):
        agent.tell(agent.ask(ACTIONS), 0.1)
    assert agent.recommend(ACTIONS) in range(3)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"base": "barbar"}, "unknown base agent"),
        ({"base": "fairduel.agents:ArmRace"}, "corruption_budget"),
        ({"base_settings": {"corruption_budget": 3}}, "which COBE estimates"),
        ({"base_settings": {"colour": 3}}, "colour"),
        ({"largest_corruption": 0}, "largest_corruption"),
        ({"regret_constant": -1}, "regret_constant"),
        ({"horizon": None}, "horizon"),
    ],
)
def test_bad_settings_are_refused(settings, words):
    with pytest.raises(BadInputError, match=words):
        made(**settings)


def test_it_runs_from_a_cell_by_name_and_beats_chance_by_far():
    world = {"dimension": 2, "arms": 6}
    cell = Cell("cobe", "swap", 20, 1500, "linear", {"base": "cw-oful"}, world_settings=world)
    regret = np.mean([cell.run(seed).trace.regret.sum() for seed in range(3)])
    assert regret < 0.3 * 1500  # chance costs about 1 a round
    record = cell.run(0).record()
    assert "weak adversary" in record["agent_settings"]


def test_a_base_of_one_set_keeps_it_for_all_guesses():
    agent = made(base="phased-elimination")
    agent.ask(ACTIONS)
    before = agent.state()
    for _ in range(20):
        with pytest.raises(BadInputError, match="plans for one set"):
            agent.ask(-ACTIONS)
    assert agent.state()["random"] == before["random"]
    assert agent.asked == 1
