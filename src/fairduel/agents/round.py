"""The round from ask to tell of agents with features, written once.

Its steps are compiled functions over a plan (settings as numbers) and what is known (arrays). ``tell_step`` is
the estimator's. An agent calls them once a
round; a compiled run calls them T times. What an agent does in its own way, to choose or to weigh, is filled into them.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fairduel.core.compiling import inlined, specialised
from fairduel.core.estimators import EstimatorPlan
from fairduel.core.information import (
    AFRESH,
    FEW,
    GRAM_UPDATES,
    InformationArrays,
    add_difference,
    fill_gram,
    width_between,
)
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


class Known(NamedTuple):
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


RADIUS = 0
"""Where the radius stands among an agent's numbers of a round (m,); a subclass may put more behind it."""


@inlined
def choose(plan: Plan, numbers: Vector, seen: View, rng: np.random.Generator) -> tuple[int, int]:
    """argmax over pairs of (x_a + x_b)ᵀθ + β‖x_a − x_b‖ (Algorithm 1, line 6), unless an agent has another rule."""
    return symmetric_pair(seen, numbers[RADIUS], plan.self_duels, rng.random())


@inlined
def weigh(
    plan: Plan,
    numbers: Vector,  # noqa: ARG001
    theta: Vector,  # noqa: ARG001
    difference: Vector,  # noqa: ARG001
    width: float,
) -> tuple[float, float]:
    """How much to trust a duel, and how much it informs: eq. (weight) and 1 or κ, unless an agent has it otherwise."""
    return uncertainty_weight(plan.trust, width), plan.design_slope


@inlined
def looking_at(known: Known, count: int) -> Known:
    """The same with room for the Gram matrix of so many actions where the agent explores, if these are few."""
    information, local, theta = known
    kept = count if count <= max(FEW, theta.size) else 0
    gram = np.empty((kept, kept))
    if local.matrix.size:
        local = InformationArrays(local.matrix, local.inverse, gram, local.waiting, local.marks)
    else:
        matrix, inverse, _, waiting, marks = information
        information = InformationArrays(matrix, inverse, gram, waiting, marks)
    known = Known(information, local, theta)
    forget_gram(known)
    return known


@inlined
def forget_gram(known: Known) -> None:
    """Have the Gram matrix computed again, because its actions are others now."""
    known.information.marks[GRAM_UPDATES] = known.local.marks[GRAM_UPDATES] = AFRESH


def commit_step(
    plan: Plan,
    numbers: Vector,
    information: InformationArrays,
    local: InformationArrays,
    theta: Vector,
    pair: tuple[int, int],
    difference: Vector,
) -> tuple[float, float, float]:
    """Weigh the duel of a ``pair`` with this difference (d,) and add it to Σ and Λ; return its weight, width and slope.

    Algorithm 1, lines 8 and 3; Algorithm 2, lines 12 to 15, 4 and 6.
    """
    first, second = pair
    width = width_between(information, difference, first, second)
    weight, slope = weigh(plan, numbers, theta, difference, width)
    if first != second:
        add_difference(information, difference, weight * plan.design_slope, first, second)
        if local.matrix.size:
            add_difference(local, difference, weight * slope, first, second)
    return weight, width, slope


def ask_step(
    plan: Plan,
    numbers: Vector,
    information: InformationArrays,
    local: InformationArrays,
    theta: Vector,
    actions: Matrix,
    is_warmup: bool,
    rng: np.random.Generator,
) -> Choice:
    """Choose the next duel among ``actions`` (K, d): by Λ if the agent has one, else by Σ."""
    gram, inverse, marks = information.gram, information.inverse, information.marks
    if local.matrix.size:
        gram, inverse, marks = local.gram, local.inverse, local.marks
    fill_gram(gram, marks, inverse, actions)
    if is_warmup:
        first, second = random_pair(len(actions), rng.random())
    else:
        first, second = choose(plan, numbers, view(gram, inverse, actions, theta), rng)
    if rng.random() < 0.5:
        first, second = second, first
    difference = actions[first] - actions[second]
    weight, width, slope = commit_step(plan, numbers, information, local, theta, (first, second), difference)
    return Choice(first, second, difference, weight, width, slope)


class Steps(NamedTuple):
    """The two halves of ``ask`` for agents that choose and weigh alike."""

    ask: Callable[..., Choice]
    commit: Callable[..., tuple[float, float, float]]


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
