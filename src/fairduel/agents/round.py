"""The round from ask to tell of agents with features, written once.

Its steps are compiled functions over a plan (settings as numbers) and a state (arrays). An agent calls them once a
round; a compiled run calls them T times. What an agent does in its own way, to choose or to weigh, is filled into them.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fairduel.core.compiling import inlined, specialised
from fairduel.core.estimators import EstimatorArrays, EstimatorPlan, learn
from fairduel.core.information import FEW, InformationArrays, add_difference, width_between, with_gram
from fairduel.core.selection import View, random_pair, symmetric_pair, uncertainty_weight, view
from fairduel.duel import Matrix, Vector


class Plan(NamedTuple):
    """An agent's settings as compiled functions know them, the same in every round."""

    chooser: int
    """The number of its ``choose``, in a compiled run."""
    weigher: int
    """The number of its ``weigh``."""
    trust: float
    """α; ∞ trusts every duel fully."""
    design_slope: float
    """How much a duel counts in Σ, before its weight."""
    kappa: float
    self_duels: bool
    estimator: EstimatorPlan


class State(NamedTuple):
    """What an agent knows when it asks, as arrays."""

    information: InformationArrays
    """Σ."""
    local: InformationArrays
    """Λ of an agent that explores by it; empty for others."""
    theta: Vector
    """θ, shape (d,)."""


class Choice(NamedTuple):
    """A duel that was chosen, and what was known at that moment."""

    first: int
    second: int
    difference: Vector
    """φ, shape (d,)."""
    weight: float
    width: float
    slope: float


class Moment(NamedTuple):
    """All that an agent has to choose by in one round."""

    plan: Plan
    numbers: Vector
    """The agent's numbers of this round, shape (m,): the radius, and what a subclass puts behind it."""
    state: State
    actions: Matrix
    """The actions to choose from, shape (K, d); (0, d) where they are not listed."""
    is_warmup: bool


RADIUS = 0
"""Where the radius stands among the numbers of a round."""


@inlined
def choose(now: Moment, seen: View, rng: np.random.Generator) -> tuple[int, int]:
    """Which pair to ask: argmax (x_a + x_b)ᵀθ + β‖x_a − x_b‖, unless an agent has another rule."""
    return symmetric_pair(seen, now.numbers[RADIUS], now.plan.self_duels, rng.random())


@inlined
def weigh(now: Moment, difference: Vector, width: float) -> tuple[float, float]:  # noqa: ARG001
    """How much to trust a duel, and how much it informs: eq. (weight) and 1 or κ, unless an agent has it otherwise."""
    return uncertainty_weight(now.plan.trust, width), now.plan.design_slope


@inlined
def steering(state: State) -> InformationArrays:
    """What the agent explores by: Λ if it has one, else Σ."""
    return state.local if state.local.matrix.size else state.information


@inlined
def looking_at(state: State, count: int) -> State:
    """The same state with room for the Gram matrix of another set of so many actions, if these are few."""
    dimension = state.information.matrix.shape[0]
    kept = count if count <= max(FEW, dimension) else 0
    if state.local.matrix.size:
        return State(state.information, with_gram(state.local, kept), state.theta)
    return State(with_gram(state.information, kept), state.local, state.theta)


def commit_step(now: Moment, first: int, second: int, difference: Vector) -> Choice:
    """Weigh the duel with this difference (d,), and add it to Σ, which needs no outcome."""
    plan, state = now.plan, now.state
    width = width_between(state.information, difference, first, second)
    weight, slope = weigh(now, difference, width)
    if first != second:
        add_difference(state.information, difference, weight * plan.design_slope, first, second)
        if state.local.matrix.size:
            add_difference(state.local, difference, weight * slope, first, second)
    return Choice(first, second, difference, weight, width, slope)


def ask_step(now: Moment, rng: np.random.Generator) -> Choice:
    """Choose the next duel of listed actions."""
    if now.is_warmup:
        first, second = random_pair(len(now.actions), rng.random())
    else:
        first, second = choose(now, view(steering(now.state), now.actions, now.state.theta), rng)
    if rng.random() < 0.5:
        first, second = second, first
    return commit_step(now, first, second, now.actions[first] - now.actions[second])


@inlined
def tell_step(
    plan: EstimatorPlan,
    estimator: EstimatorArrays,
    first: int,
    second: int,
    difference: Vector,
    weight: float,
    share: float,
) -> None:
    """Learn the outcome of a duel; a self-duel teaches nothing."""
    if first != second:
        learn(plan, estimator, difference, weight, share)


class Steps(NamedTuple):
    """The two halves of ``ask`` for agents that choose and weigh alike."""

    ask: Callable[[Moment, np.random.Generator], Choice]
    commit: Callable[..., Choice]


@functools.cache
def steps(chooser: Callable[..., Any], weigher: Callable[..., Any]) -> Steps:
    """Compile the steps with this ``choose`` and this ``weigh``."""
    commit = specialised(commit_step, weigh=weigher)
    return Steps(specialised(ask_step, choose=chooser, commit_step=commit), commit)


class RunPlan(NamedTuple):
    """What a compiled run needs of an agent besides its steps."""

    plan: Plan
    schedule: Matrix
    """The agent's numbers in each round, shape (T, m)."""
    warmup: int
