"""The five agents of the paper, small, and rounds for them to play."""

import math

import numpy as np

from fairduel import LOGISTIC, Outcome

FIVE = ["rcdb", "rcdb-s", "maxpairucb", "maxinp", "colstim"]

TRUTH = np.array([1.5, -1.0, 0.6])
ACTIONS = np.array([[0.9, 0.0, 0.0], [0.0, 0.9, 0.0], [0.0, 0.0, 0.9], [-0.6, 0.3, 0.5]])


def made(kind, **settings):
    return kind(**{"dimension": 3, "norm_bound": 2.0, "horizon": 400, "seed": 7} | settings)


def sphere(rng, count=6, dimension=3):
    normal = rng.standard_normal((count, dimension))
    return 0.99 * normal / np.linalg.norm(normal, axis=1, keepdims=True)


def pair_scores(actions, theta, inverse, beta):
    """The score of Algorithm 1, line 6, of each pair."""
    return {
        (a, b): (x + y) @ theta + beta * math.sqrt((x - y) @ inverse @ (x - y))
        for a, x in enumerate(actions)
        for b, y in enumerate(actions)
    }


def answer(duel, uniform):
    return Outcome.FIRST if uniform < LOGISTIC.probability(duel.difference @ TRUTH) else Outcome.SECOND


def played(agent, count, seed=0):
    """Play rounds with fresh actions; return the duels and what was told."""
    rng = np.random.default_rng(seed)
    history = []
    for _ in range(count):
        duel = agent.ask(sphere(rng))
        outcome = answer(duel, rng.random())
        agent.tell(duel, outcome)
        history.append((duel, outcome))
    return history


def same(one, other):
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    return type(one) is type(other) and one == other


def sums(history):
    differences = np.array([duel.difference for duel, _ in history]).reshape(-1, 3)
    weights = np.array([duel.weight for duel, _ in history])
    outcomes = np.array([float(outcome is Outcome.FIRST) for _, outcome in history])
    return differences, weights, outcomes
