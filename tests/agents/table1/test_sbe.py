import math

import numpy as np
import pytest

from fairduel import BadInputError
from fairduel.agents import SBE
from fairduel.simulation import Cell

ACTIONS = np.array([[1.0, 0.0], [0.0, 1.0], [0.3, -0.4], [-0.5, 0.5]])
THETA = np.array([0.9, 0.3])
LOGARITHM = math.log(8 * 2 * 4 / 0.05)  # ln(8d log₂T / δ) with d = 2, T = 16, δ = 0.05


def made(pulls_at_gap_one=10.25, **settings):
    unscaled = 1024 * (2 * 0.1) ** 2 * 2 * LOGARITHM
    given = {"dimension": 2, "norm_bound": 1.0, "noise": 0.1, "horizon": 16, "scale": pulls_at_gap_one / unscaled}
    return SBE(**given | settings)


def play_epoch(agent, rewards, actions=ACTIONS):
    history, epoch = [], max(agent.epoch, 1)
    while agent.epoch <= epoch:
        pull = agent.ask(actions)
        agent.tell(pull, rewards[pull.action])
        history.append(pull)
    return history


def test_two_epochs_by_hand():
    agent = made()
    rewards = ACTIONS @ THETA  # 0.9, 0.3, 0.15, −0.3
    first = play_epoch(agent, rewards)
    assert len(first) == 21  # ⌈2 · 10.25⌉
    assert {pull.action for pull in first} == {0, 1}  # the two that make all others
    assert agent.recommend(ACTIONS) == 0
    share = 0.6**-2 / 4  # D = 0.9 − 0.3, which noiseless rewards show exactly
    assert agent._share == pytest.approx(share)

    second = play_epoch(agent, rewards)
    assert len(second) == 82  # four times as long
    explored = [pull for pull in second if pull.place is not None]
    assert {pull.action for pull in second if pull.place is None} == {0}
    assert agent._share == pytest.approx(share / 4)
    assert len(explored) / 82 == pytest.approx(share, abs=4 * math.sqrt(share / 82))


def test_the_estimate_is_the_least_squares_of_this_epochs_exploration():
    agent, rng = made(), np.random.default_rng(0)
    play_epoch(agent, ACTIONS @ THETA)
    xs, told = [], []
    for _ in range(60):
        pull = agent.ask(ACTIONS)
        reward = float(ACTIONS[pull.action] @ THETA + rng.standard_normal())
        agent.tell(pull, reward)
        if pull.place is not None:
            xs.append(ACTIONS[pull.action])
            told.append(reward)
    solution = np.linalg.lstsq(np.array(xs), np.array(told), rcond=None)[0]
    np.testing.assert_allclose(agent._values(), ACTIONS @ solution, rtol=1e-9)


def test_a_small_gap_is_halved_no_faster_than_the_epochs():
    agent = made()
    for epoch in (1, 2, 3):
        play_epoch(agent, np.zeros(4))
        assert agent.epoch == epoch + 1
        assert agent._share == pytest.approx(1.0)  # D = 2^−epoch: it explores all the time


def test_theory_never_leaves_its_first_epoch_within_twenty_thousand_rounds():
    agent = SBE(dimension=5, norm_bound=1.0, noise=0.5, horizon=20_000, scale="theory")
    agent.ask(np.eye(5))
    assert agent._awaited > 20_000


def test_another_set_is_refused_and_nothing_changes():
    agent = made()
    agent.ask(ACTIONS)
    with pytest.raises(BadInputError, match="one set of actions"):
        agent.ask(ACTIONS[:3])
    assert agent.asked == 1
    agent.ask(ACTIONS.tolist())


def test_a_set_that_cannot_be_planned_for_is_not_remembered():
    agent = made()
    with pytest.raises(BadInputError, match="zero"):
        agent.ask(np.zeros((3, 2)))
    assert agent.ask(ACTIONS).action in range(4)


def test_recommending_before_the_first_ask_fixes_nothing():
    agent = made()
    assert agent.recommend(ACTIONS[:2]) == 0
    assert agent.ask(ACTIONS).number == 0


def regret(budget, attack):
    cell = Cell("sbe", attack, budget, 2500, "arms", world_settings={"arms": 3, "gap": 0.8})
    return np.mean([cell.run(seed).trace.regret.sum() for seed in range(4)])


def test_regret_is_far_below_chance_and_rises_about_linearly_with_corruption():
    budgets = np.array([0, 40, 80, 120])
    measured = np.array([regret(int(budget), "swap") for budget in budgets])
    assert measured[0] < 0.2 * 2500 * 0.8 * 2 / 3
    slope, start = np.polyfit(budgets, measured, 1)
    residual = measured - (slope * budgets + start)
    assert 1 - residual.var() / measured.var() > 0.85
    assert 0.5 < slope < 12.0  # d²·C/Δ = 11C for the order of it
