import math

import numpy as np
import pytest

from fairduel import BadInputError
from fairduel.agents import BARBAR
from fairduel.simulation import Cell

LOGARITHM = math.log(8 * 2 * 4 / 0.05)  # ln(8K log₂T / δ) with K = 2, T = 16, δ = 0.05


def agent(pulls_at_gap_one, seed=0):
    return BARBAR(arms=2, horizon=16, seed=seed, scale=pulls_at_gap_one / (1024 * LOGARITHM))


def play_epoch(agent, rewards):
    """Play to the end of the epoch; return how often each arm was pulled."""
    counts, epoch = [0, 0], agent.epoch
    while agent.epoch == epoch:
        pull = agent.ask()
        counts[pull.action] += 1
        agent.tell(pull, rewards[pull.action])
    return counts


def test_two_epochs_by_hand():
    barbar = agent(7.75, seed=1)
    counts = play_epoch(barbar, [1.0, 0.125])
    assert sum(counts) == 16  # ⌈7.75 + 7.75⌉
    means = [counts[0] / 7.75, 0.125 * counts[1] / 7.75]  # by the expected pulls
    best = max(means[0] - 1 / 16, means[1] - 1 / 16)
    gaps = [max(1 / 2, best - mean) for mean in means]
    np.testing.assert_allclose(barbar._gaps, gaps, rtol=1e-12)
    assert gaps[1] > 1 / 2  # or the hand would not test what a worse arm gets

    expected = [7.75 / gap**2 for gap in gaps]
    counts = play_epoch(barbar, [1.0, 0.125])
    assert sum(counts) == math.ceil(sum(expected))
    means = [counts[0] / expected[0], 0.125 * counts[1] / expected[1]]
    best = max(mean - gap / 16 for mean, gap in zip(means, gaps, strict=True))
    np.testing.assert_allclose(barbar._gaps, [max(1 / 4, best - mean) for mean in means], rtol=1e-12)


def test_arms_are_drawn_in_proportion_to_their_expected_pulls():
    barbar = agent(400.0)
    play_epoch(barbar, [1.0, 0.0])
    shares = barbar._gaps**-2.0 / (barbar._gaps**-2.0).sum()
    drawn = [barbar.ask().action for _ in range(4000)]
    assert np.mean(drawn) == pytest.approx(shares[1], abs=4 * math.sqrt(shares[1] * shares[0] / 4000))
    assert shares[1] < 0.25


def test_theory_is_1024_logarithms_of_every_arm_first():
    barbar = BARBAR(arms=10, horizon=20_000, scale="theory")
    length = 10 * 1024 * math.log(8 * 10 * math.log2(20_000) / 0.05)
    assert barbar._awaited == math.ceil(length)
    assert length > 100_000
    run = Cell("barbar", "none", 0, 20_000, world="arms", agent_settings={"scale": "theory"}).start(0)[0]
    for _ in range(1000):
        run.tell(run.ask(), 1.0)
    assert run.epoch == 1


def test_late_rewards_of_an_old_epoch_are_not_learned():
    barbar = agent(7.75)
    late = barbar.ask()
    play_epoch(barbar, [1.0, 0.0])
    before = barbar.state()["memory"]
    barbar.tell(late, 1e6)
    after = barbar.state()["memory"]
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_the_recommendation_is_the_best_arm_also_within_the_first_epoch():
    barbar = agent(400.0)
    for _ in range(100):
        pull = barbar.ask()
        barbar.tell(pull, float(pull.action))
    assert barbar.epoch == 1
    assert barbar.recommend() == 1
    play_epoch(barbar, [0.0, 1.0])
    assert barbar.recommend() == 1


def regret(budget, attack="swap", **settings):
    cell = Cell("barbar", attack, budget, 2000, world="arms", world_settings={"arms": 2, "gap": 0.8}, **settings)
    return np.mean([cell.run(seed).trace.regret.sum() for seed in range(3)])


def test_regret_is_far_below_chance():
    assert regret(0, "none") < 0.1 * 2000 * 0.4


def test_regret_rises_about_linearly_with_corruption():
    budgets = np.array([0, 60, 120, 180])
    measured = np.array([regret(int(budget)) for budget in budgets])
    slope, start = np.polyfit(budgets, measured, 1)
    residual = measured - (slope * budgets + start)
    assert 1 - residual.var() / measured.var() > 0.9
    assert 1.0 < slope < 8.0  # K·C = 2C for the order of it


@pytest.mark.parametrize("settings", [{"arms": 1}, {"horizon": None}, {"scale": "big"}, {"scale": 0.0}])
def test_bad_settings_are_refused(settings):
    with pytest.raises(BadInputError):
        BARBAR(**{"arms": 3, "horizon": 100} | settings)
