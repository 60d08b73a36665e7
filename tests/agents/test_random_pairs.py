from collections import Counter

import numpy as np
import pytest

from fairduel import LOGISTIC, Outcome
from fairduel.action_sets import HypercubeSet
from fairduel.agents import RandomPairs
from helpers.agents import ACTIONS, TRUTH, made, played, sums


def test_every_ordered_pair_of_distinct_actions_is_as_likely():
    agent = made(RandomPairs, seed=3)
    counts = Counter()
    for _ in range(6000):
        duel = agent.ask(ACTIONS)
        counts[duel.first, duel.second] += 1
        agent.tell(duel, Outcome.FIRST if duel.difference @ TRUTH > 0 else Outcome.SECOND)
    assert set(counts) == {(i, j) for i in range(4) for j in range(4) if i != j}
    statistic = sum((count - 500) ** 2 / 500 for count in counts.values())
    assert statistic < 31.3  # the 99.9% quantile of χ² with 11 degrees of freedom


def test_the_estimate_is_the_plain_mle_and_is_recommended(slow_estimate):
    agent = made(RandomPairs)
    phis, weights, outcomes = sums(played(agent, 300))
    assert (weights == 1.0).all()
    np.testing.assert_allclose(agent.estimate, slow_estimate(phis, weights, outcomes, 0.25, LOGISTIC), atol=1e-6)
    assert agent.recommend(ACTIONS) == int(np.argmax(ACTIONS @ agent.estimate)) == int(np.argmax(ACTIONS @ TRUTH))


@pytest.mark.parametrize("settings", [{"radius": 5.0}, {"warmup": 10}, {"self_duels": False}, {"radius_scale": 3.0}])
def test_settings_of_exploration_do_not_change_the_duels(settings):
    plain, other = made(RandomPairs), made(RandomPairs, **settings)
    assert played(plain, 40) == played(other, 40)


def test_pairs_of_an_implicit_set_are_random_too():
    agent = RandomPairs(dimension=3, norm_bound=2.0, seed=0)
    duels = agent.ask_many(HypercubeSet(3), 600)
    assert not any(duel.is_self_duel for duel in duels)
    assert len({(duel.first, duel.second) for duel in duels}) == 56
