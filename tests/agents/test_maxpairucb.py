import math

import numpy as np
import pytest

from fairduel import LOGISTIC, PROBIT, MaxPairUCB, Outcome
from helpers.agents import pair_scores, sphere

TRUTH = np.array([1.5, -1.0, 0.6])


@pytest.mark.parametrize("radius", [0.4, "practical"])
def test_sixty_rounds_under_flips_are_the_symmetric_rule_on_equal_weights(radius, slow_estimate):
    agent = MaxPairUCB(dimension=3, norm_bound=2.0, horizon=60, seed=1, radius=radius)
    beta = 0.4 if radius == 0.4 else math.sqrt(3 * math.log(60))
    rng = np.random.default_rng(2)
    phis, outcomes = np.empty((0, 3)), []
    for t in range(60):
        inverse = np.linalg.inv(0.25 * np.eye(3) + phis.T @ phis)
        theta = agent.estimate
        np.testing.assert_allclose(theta, slow_estimate(phis, np.ones(t), outcomes, 0.25, LOGISTIC), atol=1e-6)
        actions = sphere(rng, 7)
        score = pair_scores(actions, theta, inverse, beta)

        duel = agent.ask(actions)

        assert score[duel.first, duel.second] >= max(score.values()) - 1e-9
        assert (duel.weight, duel.slope) == (1.0, 1.0)
        phi = actions[duel.first] - actions[duel.second]
        first_won = (rng.random() < LOGISTIC.probability(phi @ TRUTH)) != (t < 6)
        agent.tell(duel, Outcome.FIRST if first_won else Outcome.SECOND)
        phis, outcomes = np.vstack([phis, phi]), [*outcomes, float(first_won)]


def test_the_practical_radius_is_root_d_log_t():
    agent = MaxPairUCB(dimension=5, norm_bound=2.0, horizon=2000)
    assert agent.current_radius == pytest.approx(math.sqrt(5 * math.log(2000)))


@pytest.mark.parametrize("link", [LOGISTIC, PROBIT], ids=str)
def test_the_theory_radius_is_lemma_mles_without_flips_over_root_kappa(link):
    agent = MaxPairUCB(dimension=5, norm_bound=1.5, horizon=2000, radius="theory", failure_probability=0.1, link=link)
    kappa, lam = float(link.slope(3.0)), 1 / 1.5**2
    beta = math.sqrt(lam) * 1.5 + math.sqrt(5 * math.log((1 + 4000 / lam) / 0.1) / kappa)
    assert agent.current_radius == pytest.approx(beta / math.sqrt(kappa), rel=1e-12)
