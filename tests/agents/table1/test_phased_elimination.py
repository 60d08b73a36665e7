import math

import numpy as np
import pytest

from fairduel import BadInputError
from fairduel.agents import PhasedElimination
from fairduel.simulation import Cell

FIRST_LENGTH = 12 * (math.log(1 + math.log(3)) + 18)  # m₀ with d = 3
MEANS = np.array([0.9, 0.5, 0.1])


def made(**settings):
    given = {"dimension": 3, "norm_bound": 1.0, "noise": 0.1, "corruption_budget": 0, "horizon": 20_000}
    return PhasedElimination(**given | {"scale": "theory"} | settings)


def play_epoch(agent, rewards, actions=None):
    actions = np.eye(3) if actions is None else actions
    counts, epoch = np.zeros(len(actions), int), max(agent.epoch, 1)
    while agent.epoch <= epoch:
        pull = agent.ask(actions)
        counts[pull.action] += 1
        agent.tell(pull, rewards[pull.action])
    return counts


def margin(m, tolerance, scale=1.0, arms=3):
    """Of the notes, with d = 3, R = 0.1, ν = 1/m₀; δ = 0.05 shared by two signs, all arms and log₂(20,000) epochs."""
    nu = 1 / FIRST_LENGTH
    noise = 0.1 * 2 * math.sqrt(4 * 3 / m * math.log(2 * arms * math.log2(20_000) / 0.05))
    return noise + scale * 2 * tolerance / (m * nu) * math.sqrt(4 * 3 * (1 + nu * FIRST_LENGTH))


def test_the_first_epochs_by_hand():
    """Three unit vectors: the design is uniform, and noiseless means show θ exactly."""
    agent = made()
    counts = play_epoch(agent, MEANS)
    assert counts.tolist() == [math.ceil(FIRST_LENGTH / 3)] * 3
    np.testing.assert_allclose(agent.estimate, MEANS, atol=1e-9)
    assert 0.05 < margin(FIRST_LENGTH, 0) < MEANS[0] - MEANS[1]
    assert agent.active.tolist() == [True, False, False]
    # One action is left: its span is a line, and an epoch has twice the pulls.
    assert play_epoch(agent, MEANS).tolist() == [math.ceil(2 * FIRST_LENGTH), 0, 0]


@pytest.mark.parametrize("budget", [0, 0.01, 0.1, 1])
@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_the_margin_is_the_printed_one_for_all_events_at_once(budget, scale):
    agent = made(corruption_budget=budget, scale=scale)
    agent.ask(np.vstack([np.eye(3), -np.eye(3)]))
    agent._first_length = agent._length = FIRST_LENGTH
    assert agent._margin() == pytest.approx(margin(FIRST_LENGTH, budget, scale, arms=6))
    agent._length *= 8
    assert agent._margin() == pytest.approx(margin(8 * FIRST_LENGTH, budget, scale, arms=6))


def test_actions_within_the_margin_stay():
    edge = margin(FIRST_LENGTH, 0)
    agent = made()
    play_epoch(agent, np.array([0.9, 0.9 - 0.99 * edge, 0.9 - 1.01 * edge]))
    assert agent.active.tolist() == [True, True, False]


def test_an_unknown_budget_is_guessed_as_printed():
    agent = made(corruption_budget=None, horizon=10_000)
    agent.ask(np.eye(3))
    assert agent._tolerance() == pytest.approx(100 / (FIRST_LENGTH * math.log2(10_000)))
    agent._epoch = 60  # late enough for the other term
    assert agent._tolerance() == pytest.approx(FIRST_LENGTH * math.sqrt(3) * 2 ** (math.log2(10_000) - 59))


def test_a_known_budget_of_100_eliminates_nothing_by_theory():
    """The margin stays above 2, more than any two rewards differ by, for all epochs within 20,000 rounds."""
    agent = PhasedElimination(
        dimension=5, norm_bound=1.0, noise=0.1, corruption_budget=100, horizon=20_000, scale="theory"
    )
    agent.ask(np.eye(5))
    while agent._length < 20_000:
        assert agent._margin() > 2
        agent._length *= 2


def test_the_estimate_is_the_least_squares_of_the_epoch():
    rng = np.random.default_rng(0)
    actions = rng.standard_normal((12, 3))
    actions /= np.linalg.norm(actions, axis=1, keepdims=True)
    agent, xs, told = made(scale=0.1), [], []
    while agent.epoch < 2:
        pull = agent.ask(actions)
        reward = float(actions[pull.action] @ [0.5, -0.5, 0.2] + 0.3 * rng.standard_normal())
        agent.tell(pull, reward)
        xs.append(actions[pull.action])
        told.append(reward)
    np.testing.assert_allclose(agent.estimate, np.linalg.lstsq(np.array(xs), np.array(told), rcond=None)[0], rtol=1e-9)


def test_a_cancelled_pull_is_due_again():
    agent = made()
    for pull in agent.ask_many(np.eye(3), 30):
        if pull.action:
            agent.tell(pull, MEANS[pull.action])
        else:
            agent.cancel(pull)
    each = math.ceil(FIRST_LENGTH / 3)
    assert play_epoch(agent, MEANS).tolist() == [each, each - 10, each - 10]


def test_late_rewards_are_waited_for_and_those_of_an_old_epoch_ignored():
    agent = made(scale=0.1)
    waiting = agent.ask_many(np.eye(3), 200)
    for pull in waiting[:100]:
        agent.tell(pull, MEANS[pull.action])
    assert agent.epoch >= 2
    before = agent.state()["memory"]
    for pull in waiting[100:]:
        agent.tell(pull, 1e6)
    after = agent.state()["memory"]
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_another_set_is_refused():
    agent = made()
    agent.ask(np.eye(3))
    with pytest.raises(BadInputError, match="one set of actions"):
        agent.ask(-np.eye(3))
    with pytest.raises(BadInputError, match="needs the actions as a list"):
        agent.ask()


def regret(budget, attack, **settings):
    cell = Cell(
        "phased-elimination", attack, budget, 1500, "linear", settings, world_settings={"dimension": 3, "arms": 8}
    )
    return np.mean([cell.run(seed).trace.regret.sum() for seed in range(3)])


def test_regret_is_far_below_chance_known_or_not():
    assert regret(0, "none") < 0.06 * 1500  # chance costs about 0.8 a round
    assert regret(0, "none", corruption_budget=None) < 0.08 * 1500


def test_regret_rises_about_linearly_with_corruption():
    budgets = np.array([0, 40, 80, 120])
    measured = np.array([regret(int(budget), "swap") for budget in budgets])
    slope, start = np.polyfit(budgets, measured, 1)
    residual = measured - (slope * budgets + start)
    assert 1 - residual.var() / measured.var() > 0.9
    assert 1.0 < slope < 10.0  # d^1.5·C = 5.2C for the order of it


@pytest.mark.parametrize("settings", [{"horizon": None}, {"corruption_budget": -1}, {"scale": math.nan}])
def test_bad_settings_are_refused(settings):
    with pytest.raises(BadInputError):
        made(**settings)


def test_while_rewards_are_late_only_remaining_actions_are_pulled():
    agent = made(scale=0.01)
    while agent.active.all():
        pull = agent.ask(np.eye(3))
        agent.tell(pull, MEANS[pull.action])
    left = set(agent.active.nonzero()[0].tolist())
    assert {pull.action for pull in agent.ask_many(np.eye(3), 300)} == left


def test_an_action_without_features_may_be_all_that_is_left():
    actions = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    agent = PhasedElimination(dimension=2, norm_bound=2.0, noise=0.1, corruption_budget=0, horizon=2000)
    for _ in range(1500):
        pull = agent.ask(actions)
        agent.tell(pull, float(actions[pull.action] @ (-1.0, -1.0)))
    assert agent.active.tolist() == [True, False, False]
    assert agent.epoch > 3


def test_rows_of_several_lengths_are_refused_at_any_time():
    agent = made()
    agent.ask(np.eye(3))
    with pytest.raises(BadInputError, match="all of one length"):
        agent.ask([[1.0, 0.0, 0.0], [0.0]])
