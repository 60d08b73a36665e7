import math

import numpy as np
import pytest

from fairduel import LOGISTIC, MaxInP, Outcome
from helpers.agents import sphere

TRUTH = np.array([1.5, -1.0, 0.6])


@pytest.mark.parametrize("eta", [0.05, 0.5, 2.0])
def test_sixty_rounds_under_flips_are_the_widest_promising_pair(eta, slow_estimate):
    agent = MaxInP(dimension=3, norm_bound=2.0, horizon=60, seed=1, radius=eta, warmup=8)
    rng = np.random.default_rng(2)
    phis, outcomes, sizes = np.empty((0, 3)), [], set()
    for t in range(60):
        inverse = np.linalg.inv(0.25 * np.eye(3) + phis.T @ phis)
        theta = agent.estimate
        np.testing.assert_allclose(theta, slow_estimate(phis, np.ones(t), outcomes, 0.25, LOGISTIC), atol=1e-6)
        actions = sphere(rng, 7)
        width = [[math.sqrt((x - y) @ inverse @ (x - y)) for y in actions] for x in actions]
        others = [[j for j in range(7) if j != i] for i in range(7)]
        margin = [min((actions[i] - actions[j]) @ theta + eta * width[i][j] for j in others[i]) for i in range(7)]
        promising = [i for i in range(7) if margin[i] > 0]

        duel = agent.ask(actions)

        if t < 8:
            assert not duel.is_self_duel
        else:
            assert min(map(abs, margin)) > 1e-9
            sizes.add(min(len(promising), 2))
            assert {duel.first, duel.second} <= set(promising)
            widest = max(width[i][j] for i in promising for j in promising)
            assert width[duel.first][duel.second] >= widest - 1e-9
        phi = actions[duel.first] - actions[duel.second]
        first_won = (rng.random() < LOGISTIC.probability(phi @ TRUTH)) != (t < 6)
        agent.tell(duel, Outcome.FIRST if first_won else Outcome.SECOND)
        phis, outcomes = np.vstack([phis, phi]), [*outcomes, float(first_won)]
    assert 1 in sizes if eta < 0.1 else 2 in sizes


def test_one_promising_action_duels_itself():
    agent = MaxInP(dimension=2, norm_bound=2.0, horizon=100, radius=0.01, warmup=20)
    actions = np.array([[0.9, 0.0], [0.0, 0.9], [-0.9, 0.0]])
    for _ in range(20):
        duel = agent.ask(actions)
        agent.tell(duel, Outcome.FIRST if duel.first < duel.second else Outcome.SECOND)
    assert (agent.ask(actions).first, agent.ask(actions).second) == (0, 0)


def test_the_practical_radius_is_root_d_log_t():
    agent = MaxInP(dimension=5, norm_bound=2.0, horizon=2000)
    assert agent.current_radius == pytest.approx(math.sqrt(5 * math.log(2000)))


def test_the_theory_radius_is_sahas():
    agent = MaxInP(dimension=5, norm_bound=2.0, horizon=2000, radius="theory", failure_probability=0.1)
    eta = math.sqrt(2.5 * math.log(1 + 800) + math.log(10)) / (2 * LOGISTIC.kappa(2.0))
    assert agent.current_radius == pytest.approx(eta, rel=1e-12)
