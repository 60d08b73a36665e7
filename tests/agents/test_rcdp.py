"""RCDP-UCB against the algorithm written out, with late outcomes."""

import math

import numpy as np
import pytest

from fairduel import LOGISTIC, PROBIT, BadInputError, Outcome
from fairduel.agents import RCDP
from fairduel.core.radius import horizon_noise
from helpers.agents import TRUTH, sphere


def made(**settings):
    return RCDP(**{"dimension": 3, "norm_bound": 2.0, "horizon": 80, "seed": 1, "flip_budget": 4} | settings)


def is_greedy_against_its_toughest_rival(leader, rival, actions, theta, inverse, radius):
    gaps = actions - actions[leader]
    scores = gaps @ theta + radius * np.sqrt(np.einsum("kd,de,ke->k", gaps, inverse, gaps).clip(0.0))
    return (gaps @ theta).max() <= 1e-9 and scores[rival] >= scores.max() - 1e-9


@pytest.mark.parametrize(
    ("settings", "ridge", "late"), [({"delay": 6.0}, 1.0, 6), ({"ridge": 0.1, "radius": 1.0}, 0.1, 0)]
)
def test_every_round_is_that_of_the_algorithm(settings, ridge, late, slow_estimate):
    agent, rng = made(**settings), np.random.default_rng(3)
    alpha = math.sqrt(3) / (4 + settings.get("delay", 0.0))
    radius = settings.get("radius", 0.1)
    matrix, waiting, told, excluded, light = ridge * np.eye(3), [], [], 0, 0
    for t in range(80):
        phis, weights, wins = (np.array([row[i] for row in told]) for i in range(3))
        theta = slow_estimate(phis.reshape(-1, 3), weights, wins, ridge, LOGISTIC)
        np.testing.assert_allclose(agent.estimate, theta, atol=1e-6)
        actions, inverse = sphere(rng), np.linalg.inv(matrix)
        problem = (actions, agent.estimate, inverse, radius)
        duel = agent.ask(actions)
        pair = duel.first, duel.second
        assert is_greedy_against_its_toughest_rival(*pair, *problem) or is_greedy_against_its_toughest_rival(
            *pair[::-1], *problem
        )
        excluded += sum(not is_greedy_against_its_toughest_rival(a, b, *problem) for a in range(6) for b in range(6))
        phi = actions[duel.first] - actions[duel.second]
        width = math.sqrt(phi @ inverse @ phi)
        weight = min(1.0, alpha / width) if width else 1.0
        assert (duel.weight, duel.width) == (pytest.approx(weight), pytest.approx(width))
        light += weight < 0.9
        matrix += 0.25 * weight * np.outer(phi, phi)  # at once
        first_won = rng.random() < LOGISTIC.probability(phi @ TRUTH)
        waiting.append((t + late, duel, phi, weight, float(first_won)))
        for arrival, asked, *learned in waiting:
            if arrival == t:
                agent.tell(asked, Outcome.FIRST if learned[-1] else Outcome.SECOND)
                if not asked.is_self_duel:
                    told.append(learned)
    np.testing.assert_allclose(agent.information.matrix, matrix, rtol=1e-9)
    assert len(agent.pending) == late
    assert light > 5
    assert excluded > 80 * 20  # most pairs would not have passed


def test_defaults_are_those_of_the_authors_experiments():
    agent = made(delay=100.0, flip_budget=25, dimension=10)
    found = {name: agent.settings[name] for name in ("trust", "kappa", "ridge", "design")}
    assert found == {"trust": pytest.approx(math.sqrt(10) / 125), "kappa": 0.25, "ridge": 1.0, "design": "kappa"}
    assert agent.current_radius == 0.1
    assert made(link=PROBIT).settings["kappa"] == pytest.approx(1 / math.sqrt(2 * math.pi))
    assert made(flip_budget=0).settings["trust"] == math.inf


def test_the_theory_radius_is_twice_the_lemmas_with_missing_outcomes_as_flipped():
    agent = made(radius="theory", delay=6.0)
    noise = horizon_noise(dimension=3, horizon=80, ridge=1.0, kappa=0.25, failure=0.05)
    assert agent.current_radius == pytest.approx(2 * (2.0 + math.sqrt(3) / 10 * 10 + noise))


@pytest.mark.parametrize("delay", [-1.0, math.nan, "long"])
def test_a_delay_is_at_least_zero(delay):
    with pytest.raises(BadInputError, match="delay"):
        made(delay=delay)
