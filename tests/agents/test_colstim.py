import math

import numpy as np
import pytest
from scipy import stats

from fairduel import LOGISTIC, PROBIT, BadInputError, CoLSTIM, Outcome
from fairduel.agents.parts.rules import perturbed_leader
from fairduel.core.selection import perturbations, view_by
from helpers.agents import sphere

TRUTH = np.array([1.5, -1.0, 0.6])


def followed(agent, slow_estimate, rounds=60):
    """Play under flips; yield actions, θ, Σ⁻¹ and the duel of each round after checking θ."""
    rng = np.random.default_rng(2)
    phis, outcomes = np.empty((0, 3)), []
    for t in range(rounds):
        inverse = np.linalg.inv(0.25 * np.eye(3) + phis.T @ phis)
        theta = agent.estimate
        np.testing.assert_allclose(theta, slow_estimate(phis, np.ones(t), outcomes, 0.25, LOGISTIC), atol=1e-6)
        actions = sphere(rng, 7)
        duel = agent.ask(actions)
        yield actions, theta, inverse, duel
        phi = actions[duel.first] - actions[duel.second]
        first_won = (rng.random() < LOGISTIC.probability(phi @ TRUTH)) != (t < 6)
        agent.tell(duel, Outcome.FIRST if first_won else Outcome.SECOND)
        phis, outcomes = np.vstack([phis, phi]), [*outcomes, float(first_won)]


def is_toughest_rival(rival, leader, actions, theta, inverse, radius):
    x = actions[leader]
    scores = [(y - x) @ theta + radius * math.sqrt((y - x) @ inverse @ (y - x)) for y in actions]
    return scores[rival] >= max(scores) - 1e-9


@pytest.mark.parametrize("coupling", ["paper", "vacdb"])
@pytest.mark.parametrize("radius", [0.4, 2.0])
def test_one_of_the_two_is_the_others_toughest_rival(coupling, radius, slow_estimate):
    agent = CoLSTIM(dimension=3, norm_bound=2.0, horizon=60, seed=1, radius=radius, coupling=coupling)
    excluded = 0
    for actions, theta, inverse, duel in followed(agent, slow_estimate):
        problem = (actions, theta, inverse, radius)
        assert is_toughest_rival(duel.second, duel.first, *problem) or is_toughest_rival(
            duel.first, duel.second, *problem
        )
        assert (duel.weight, duel.slope) == (1.0, 1.0)
        excluded += sum(
            not is_toughest_rival(a, b, *problem) and not is_toughest_rival(b, a, *problem)
            for a in range(7)
            for b in range(a)
        )
    assert excluded > 60 * 10  # most pairs would not have passed


def test_with_shared_perturbations_clipped_to_nothing_the_leader_is_greedy(slow_estimate):
    agent = CoLSTIM(dimension=3, norm_bound=2.0, horizon=60, seed=1, radius=1.0, threshold=1e-12)
    for actions, theta, inverse, duel in followed(agent, slow_estimate):
        rewards = actions @ theta
        greedy = [i for i in (duel.first, duel.second) if rewards[i] >= rewards.max() - 1e-9]
        assert greedy
        assert any(is_toughest_rival(duel.first + duel.second - i, i, actions, theta, inverse, 1.0) for i in greedy)


def leaders(coupling, rounds=200):
    """Ask among two equally uncertain actions, one a little better, while p_t = 1."""
    agent = CoLSTIM(dimension=2, norm_bound=2.0, horizon=2000, seed=0, coupling=coupling, radius=1e-9, threshold=3.0)
    better = np.array([[0.8, 0.6], [0.8, -0.6]])
    duel = agent.ask(better)
    agent.tell(duel, Outcome.FIRST if duel.first < duel.second else Outcome.SECOND)
    return [agent.ask(better) for _ in range(rounds)]


@pytest.mark.filterwarnings("ignore::fairduel.LockInWarning")
def test_own_perturbations_let_the_second_best_lead_and_shared_ones_do_not():
    own = sum(not duel.is_self_duel for duel in leaders("paper"))
    shared = sum(not duel.is_self_duel for duel in leaders("vacdb"))
    assert own > 40
    assert shared == 0


@pytest.mark.parametrize(("coupling", "share"), [("paper", math.log(2)), ("vacdb", 1 - math.log(2))])
def test_the_mixing_probability_decides_between_own_and_shared(coupling, share, monkeypatch):
    seen = []

    def recorded(draws, own, gaussian, threshold):
        seen.append(own)
        return perturbations(draws, own, gaussian, threshold)

    monkeypatch.setattr("fairduel.agents.parts.rules.perturbations", recorded)
    for seed in range(400):  # d = 1, T = 2: p_1 = log 2
        agent = CoLSTIM(dimension=1, norm_bound=2.0, horizon=2, seed=seed, coupling=coupling)
        actions = np.array([[1.0], [-1.0]])
        seen_by_rule = view_by(agent.information.inverse, actions, agent.estimate)
        perturbed_leader.py_func(*agent._turn(0).known, seen_by_rule, agent._rng)
    assert stats.binomtest(sum(seen), 400, share).pvalue > 0.01


def test_the_mixing_probability_falls_after_the_warm_up_only():
    agent = CoLSTIM(dimension=1, norm_bound=2.0, horizon=100, warmup=50)
    assert agent.mixing_at(50 + 100) == pytest.approx(math.log(100) / 10)
    assert agent.mixing_at(1) == agent.mixing_at(51) == 1.0


def test_perturbations_are_gumbel_by_default_and_gaussian_for_the_probit_link():
    rng = np.random.default_rng(0)
    gumbel = perturbations(rng.random(4000), True, False, math.inf)
    gaussian = perturbations(rng.standard_normal(4000), True, True, math.inf)
    assert stats.kstest(gumbel, "gumbel_r").pvalue > 0.01
    assert stats.kstest(gaussian, "norm").pvalue > 0.01
    assert not CoLSTIM(dimension=2, norm_bound=1.0, horizon=10).gaussian
    assert CoLSTIM(dimension=2, norm_bound=1.0, horizon=10, link=PROBIT).gaussian


def test_perturbations_are_clipped_and_shared_as_set():
    draws = np.array([0.0, 0.2, 0.5, 0.9, math.nextafter(1.0, 0.0)])
    own = perturbations(draws, True, False, 1.5)
    assert own[0] == -1.5
    assert own[-1] == 1.5
    np.testing.assert_allclose(own[1:4], -np.log(-np.log([0.2, 0.5, 0.9])).clip(-1.5, 1.5), rtol=1e-12)
    shared = perturbations(draws[1:], False, False, 1.5)
    assert shared.tolist() == [own[1]] * 4


def test_the_radii_are_bengs():
    common = {"dimension": 5, "norm_bound": 2.0, "horizon": 2000}
    assert CoLSTIM(**common).current_radius == pytest.approx(math.sqrt(5 * math.log(2000)))
    theory = math.sqrt(5 * math.log(400) + 2 * math.log(2000)) / (2 * LOGISTIC.kappa(2.0))
    assert CoLSTIM(radius="theory", **common).current_radius == pytest.approx(theory, rel=1e-12)


@pytest.mark.parametrize("threshold", [0.0, -1.0, math.nan])
def test_a_bad_threshold_is_refused(threshold):
    with pytest.raises(BadInputError, match="threshold must be"):
        CoLSTIM(dimension=3, norm_bound=2.0, threshold=threshold)
