"""MaxMinLCB against its rule written out, and with a kernel on a world where a linear agent is lost."""

import numpy as np
import pytest
from scipy.special import expit

from fairduel import Outcome
from fairduel.agents import MaxMinLCB
from fairduel.features import Kernel

pytestmark = pytest.mark.filterwarnings("ignore::fairduel.LockInWarning")


def slow_choice(agent, rows, radius, self_duels):
    """All pairs, one by one: the set of best choices."""
    inverse, theta = np.linalg.inv(agent.information.matrix), agent.estimate
    count = len(rows)
    bounds = np.full((count, count), np.inf)
    for a in range(count):
        for b in range(count):
            gap = rows[a] - rows[b]
            if a != b:
                bounds[a, b] = expit(gap @ theta) - radius * np.sqrt(max(gap @ inverse @ gap, 0.0))
            elif self_duels:
                bounds[a, a] = 0.5
    lowest = bounds.min(axis=1)
    return {
        (a, b)
        for a in np.flatnonzero(lowest >= lowest.max() - 1e-7)
        for b in np.flatnonzero(bounds[a] <= lowest[a] + 1e-7)
    }


@pytest.mark.parametrize("count", [5, 90])  # with and without a Gram matrix
@pytest.mark.parametrize("self_duels", [True, False])
@pytest.mark.parametrize("radius", [0.3, 1.0])
def test_the_pair_is_the_one_of_all_pairs(count, self_duels, radius):
    draws = np.random.default_rng(2)
    actions = draws.uniform(-0.5, 0.5, (count, 3))
    agent = MaxMinLCB(dimension=3, norm_bound=2.0, radius=radius, self_duels=self_duels, seed=1)
    for _ in range(25):
        allowed = slow_choice(agent, actions, radius, self_duels)
        duel = agent.ask(actions)
        assert {(duel.first, duel.second), (duel.second, duel.first)} & allowed
        agent.tell(duel, Outcome.FIRST if draws.random() < 0.5 else Outcome.SECOND)


def test_the_published_constants_are_the_defaults():
    agent = MaxMinLCB(dimension=2, norm_bound=3.0, map=Kernel("rbf", scale=0.5))
    assert (agent.current_radius, agent.settings["ridge"]) == (1.0, 0.25)
