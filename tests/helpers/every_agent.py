"""Any of the built-in agents, small, with rounds for it to play."""

import inspect

import numpy as np

from fairduel import Outcome

ACTIONS = np.array([[0.9, 0.0, 0.0], [0.0, 0.9, 0.0], [0.0, 0.0, 0.9], [-0.6, 0.3, 0.5]])
SETTINGS = {
    "dimension": 3,
    "norm_bound": 2.0,
    "noise": 0.1,
    "arms": 4,
    "horizon": 200,
    "flip_budget": 3,
    "corruption_budget": 3,
    "warmup": 4,
    "seed": 5,
}


def small(kind, **settings):
    """Make an agent, with those of the settings that it has."""
    named = inspect.signature(kind).parameters
    return kind(**{name: value for name, value in SETTINGS.items() if name in named} | settings)


def indices(asked):
    return [asked.first, asked.second] if hasattr(asked, "first") else [asked.action]


def tell(agent, asked, rng):
    """Answer: the later action is the better."""
    if hasattr(asked, "first"):
        first_won = rng.random() < 1 / (1 + np.exp(asked.second - asked.first))
        agent.tell(asked, Outcome.FIRST if first_won else Outcome.SECOND)
    else:
        agent.tell(asked, float(rng.random() < 0.2 * (asked.action + 1)))


def play(agent, rounds, rng):
    """Play rounds with answers at once; return the indices that were asked."""
    history = []
    for _ in range(rounds):
        asked = agent.ask(ACTIONS)
        history.append(indices(asked))
        tell(agent, asked, rng)
    return history


def waiting(kind, **settings):
    """An agent after twenty rounds, with two of four duels or pulls pending, one cancelled and one told."""
    agent, rng = small(kind, **settings), np.random.default_rng(1)
    play(agent, 20, rng)
    asked = agent.ask_many(ACTIONS, 4)
    agent.cancel(asked[1])
    tell(agent, asked[3], rng)
    return agent
