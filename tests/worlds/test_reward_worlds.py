"""Worlds that pay rewards, attacks on them, and corrupted pulls in a run."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairduel import BadInputError
from fairduel.adversaries import Bury, Greedy, NoAttack, PullSight, StrongRewardAdversary, Swap, WeakRewardAdversary
from fairduel.simulation import play
from fairduel.worlds import WORLDS, Arms, Hypercube, Linear


def rng(seed=0):
    return np.random.default_rng(seed)


def sight(action, rewards=(0.4, 0.6, 0.5), reward=1.0, round_number=1):
    rewards = np.asarray(rewards)
    return PullSight(round_number, np.eye(len(rewards)), rewards, action, reward)


class Fixed:
    """Pulls one action, and keeps what it was told."""

    def __init__(self, action):
        self.action, self.told = action, []

    def ask(self, actions):  # noqa: ARG002
        return self.action

    def tell(self, asked, reward):
        assert asked == self.action
        self.told.append(reward)


# ---------------------------------------------------------------------- worlds


def test_reward_worlds_are_listed_by_name():
    assert (WORLDS["arms"], WORLDS["linear"]) == (Arms, Linear)


def test_one_arm_is_better_by_the_gap():
    for seed in range(10):
        rewards = np.sort(Arms(rng=rng(seed), arms=6, gap=0.3).offer(1).rewards)
        np.testing.assert_allclose(rewards, [0.35] * 5 + [0.65])
    best = {int(np.argmax(Arms(rng=rng(seed), arms=3).offer(1).rewards)) for seed in range(30)}
    assert best == {0, 1, 2}


def test_arms_pay_one_or_zero_with_their_mean():
    world = Arms(rng=rng())
    uniforms = rng(1).random(20_000)
    paid = np.array([world.reward(0.7, uniform) for uniform in uniforms])
    assert set(paid) == {0.0, 1.0}
    assert abs(paid.mean() - 0.7) < 4 * np.sqrt(0.7 * 0.3 / 20_000)


def test_linear_rewards_are_linear_with_gaussian_noise():
    world = Linear(rng=rng(), dimension=4, arms=7, norm=1.5, noise=0.3)
    actions, rewards = world.offer(1)
    np.testing.assert_allclose(rewards, actions @ world.parameter, rtol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(actions, axis=1), 1.0)
    assert np.linalg.norm(world.parameter) == pytest.approx(1.5)
    assert (world.norm_bound, world.noise, world.arms, world.dimension) == (1.5, 0.3, 7, 4)
    noise = np.array([world.reward(0.2, uniform) - 0.2 for uniform in rng(1).random(20_000)])
    assert abs(noise.mean()) < 4 * 0.3 / np.sqrt(20_000)
    assert noise.std() == pytest.approx(0.3, rel=0.03)
    assert np.isfinite(world.reward(0.2, 0.0))


def test_the_norm_bound_that_agents_are_told_holds_for_arms_too():
    world = Arms(rng=rng(), arms=5)
    actions, rewards = world.offer(1)
    np.testing.assert_array_equal(actions @ rewards, rewards)  # θ* is the means
    assert np.linalg.norm(rewards) <= world.norm_bound * (1 + 1e-12)


@pytest.mark.parametrize("settings", [{"gap": 0.0}, {"gap": 1.1}, {"arms": 1}, {"arms": 2.5}])
def test_bad_settings_of_arms_are_refused(settings):
    with pytest.raises(BadInputError):
        Arms(rng=rng(), **settings)


@pytest.mark.parametrize("settings", [{"dimension": 0}, {"arms": 1}, {"norm": 0.0}, {"noise": -1.0}])
def test_bad_settings_of_linear_are_refused(settings):
    with pytest.raises(BadInputError):
        Linear(rng=rng(), **settings)


# ---------------------------------------------------------------------- attacks


def test_bury_takes_off_the_best_action_alone():
    bury = Bury(budget=2.5)
    assert [bury.corruption(sight(action)) for action in (0, 1, 2, 1, 1, 1)] == [0.0, -1.0, 0.0, -1.0, -0.5, 0.0]
    assert bury.spent == 2.5


def test_swap_exchanges_best_and_worst_until_the_budget_is_spent():
    swap = Swap(budget=0.5)
    assert swap.corruption(sight(1)) == pytest.approx(-0.2)
    assert swap.corruption(sight(0)) == pytest.approx(0.2)
    assert swap.corruption(sight(1)) == pytest.approx(-0.1)  # half of the wish: 0.1 was left
    assert swap.corruption(sight(1)) == 0.0


def test_who_commits_pays_whatever_is_pulled():
    swap = Swap(budget=1.0)
    assert swap.corruption(sight(2)) == 0.0
    assert swap.spent == pytest.approx(0.2)


@given(
    budget=st.floats(0, 50),
    wishes=st.lists(st.lists(st.floats(-10, 10), min_size=3, max_size=3), max_size=30),
    pulled=st.lists(st.integers(0, 2), min_size=30, max_size=30),
)
@pytest.mark.parametrize("base", [StrongRewardAdversary, WeakRewardAdversary])
def test_no_adversary_overspends(base, budget, wishes, pulled):
    class Strong(StrongRewardAdversary):
        def wants_added(self, sight):
            return wishes[sight.round_number][sight.action]

    class Weak(WeakRewardAdversary):
        def wants_added(self, round_number, rewards):  # noqa: ARG002
            return np.array(wishes[round_number])

    adversary = {StrongRewardAdversary: Strong, WeakRewardAdversary: Weak}[base](budget=budget)
    added = [adversary.corruption(sight(pulled[t], round_number=t)) for t in range(len(wishes))]
    assert sum(map(abs, added)) <= budget * (1 + 1e-9) + 1e-12
    assert adversary.spent <= budget * (1 + 1e-9)
    for t, amount in enumerate(added):
        wanted = wishes[t][pulled[t]]
        assert abs(amount) <= abs(wanted)
        assert amount * wanted >= 0


def test_a_negative_budget_is_refused():
    with pytest.raises(BadInputError, match="budget"):
        Bury(budget=-1.0)
    with pytest.raises(BadInputError, match="depth"):
        Bury(budget=1.0, depth=0.0)


# ---------------------------------------------------------------------- a run


def test_a_run_tells_corrupted_rewards_and_counts_true_regret():
    world = Arms(rng=rng(3), arms=4, gap=0.5)
    best = int(np.argmax(world.offer(1).rewards))
    agent = Fixed(best)
    trace = play(agent, world, Bury(budget=2.5), horizon=6, labels=rng(1))
    uniforms = rng(1).random(6)
    true = (uniforms < 0.75).astype(float)
    np.testing.assert_allclose(agent.told, true - [1, 1, 0.5, 0, 0, 0])
    np.testing.assert_allclose(trace.corruption, [1, 1, 0.5, 0, 0, 0])
    assert trace.flipped.tolist() == [True, True, True, False, False, False]
    np.testing.assert_array_equal(trace.regret, 0.0)
    assert (trace.first == best).all()
    assert (trace.second == -1).all()
    assert not trace.self_duels.any()


def test_regret_of_a_pull_is_what_the_best_would_have_paid_more():
    world = Arms(rng=rng(3), arms=4, gap=0.5)
    worse = int(np.argmin(world.offer(1).rewards))
    trace = play(Fixed(worse), world, NoAttack(budget=0), horizon=5, labels=rng(1))
    np.testing.assert_allclose(trace.regret, 0.5)
    np.testing.assert_allclose(trace.weak_regret, 0.5)
    np.testing.assert_array_equal(trace.corruption, 0.0)


def test_attacks_and_worlds_of_different_kinds_do_not_meet():
    with pytest.raises(
        BadInputError, match="attack Greedy flips duels, but world Arms returns rewards; use bury, swap or none"
    ):
        play(Fixed(0), Arms(rng=rng()), Greedy(budget=1), horizon=5, labels=rng(1))
    with pytest.raises(
        BadInputError, match="attack Bury changes rewards, but world Hypercube returns duels; use none, greedy"
    ):
        play(Fixed(0), Hypercube(rng=rng()), Bury(budget=1), horizon=5, labels=rng(1))


@pytest.mark.parametrize("action", [4, -1, 0.5, None, "first"])
def test_a_pull_of_no_action_is_refused(action):
    with pytest.raises(BadInputError, match="index below 4"):
        play(Fixed(action), Arms(rng=rng(), arms=4), NoAttack(budget=0), horizon=5, labels=rng(1))
