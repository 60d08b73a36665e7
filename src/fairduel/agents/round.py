"""One round of a contextual dueling agent, from ask to tell.

The steps are compiled functions of a plan (settings as numbers) and of arrays; ``tell_step`` is the estimator's. An
agent calls them once per round, a compiled run calls them T times. Each agent's own way of choosing and weighing is
filled in by :func:`steps`.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fairduel.core.compiling import inlined, specialised
from fairduel.core.estimators import EstimatorPlan
from fairduel.core.information import (
    GRAM_UPDATES,
    REFRESH_EVERY,
    SMALL_SET,
    InformationArrays,
    add_difference,
    fill_gram,
    width_between,
)
from fairduel.core.selection import View, random_pair, symmetric_pair, uncertainty_weight, view
from fairduel.duel import Matrix, Vector


class Plan(NamedTuple):
    """An agent's settings for compiled functions, constant over a run."""

    chooser: int
    """The index of its ``choose`` in a compiled run."""
    weigher: int
    """The index of its ``weigh`` in a compiled run."""
    trust: float
    """α; ∞ trusts every duel fully."""
    design_slope: float
    """The coefficient of a duel in Σ, before its weight."""
    kappa: float
    self_duels: bool
    counts_upsets: bool
    """Whether the last round parameter is the number of upsets in a row."""
    by_hessian: bool
    """Whether Λ is the Hessian of the estimate; widths are then in its norm."""
    estimator: EstimatorPlan


class Known(NamedTuple):
    """What an agent knows when it asks."""

    information: InformationArrays
    """Σ."""
    local: InformationArrays
    """Λ of an agent that explores by it; empty for other agents."""
    theta: Vector
    """θ, shape (d,)."""


class Choice(NamedTuple):
    """A chosen duel, and what was known at that moment."""

    first: int
    second: int
    difference: Vector
    """φ, shape (d,)."""
    weight: float
    width: float
    slope: float


RADIUS = 0
"""The index of the radius among an agent's round parameters (m,); a subclass may append more."""


@inlined
def choose(plan: Plan, numbers: Vector, seen: View, rng: np.random.Generator) -> tuple[int, int]:
    """The default rule: argmax over pairs of (x_a + x_b)ᵀθ + β‖x_a − x_b‖ (Algorithm 1, line 6)."""
    return symmetric_pair(seen, numbers[RADIUS], plan.self_duels, rng.random())


@inlined
def weigh(
    plan: Plan,
    numbers: Vector,  # noqa: ARG001
    theta: Vector,  # noqa: ARG001
    difference: Vector,  # noqa: ARG001
    width: float,
) -> tuple[float, float]:
    """The default weight of a duel, eq. (weight), and how much it informs: 1 or κ."""
    return uncertainty_weight(plan.trust, width), plan.design_slope


@inlined
def with_gram(known: Known, count: int) -> Known:
    """Make room for the Gram matrix of a small action set, in the matrix that steers exploration."""
    information, local, theta = known
    kept = count if count <= max(SMALL_SET, theta.size) else 0
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
    """Mark the Gram matrix as outdated, because the actions changed."""
    known.information.marks[GRAM_UPDATES] = known.local.marks[GRAM_UPDATES] = REFRESH_EVERY


def commit_step(
    plan: Plan,
    numbers: Vector,
    information: InformationArrays,
    local: InformationArrays,
    theta: Vector,
    pair: tuple[int, int],
    difference: Vector,
) -> tuple[float, float, float]:
    """Weigh a duel with this difference (d,) and add it to Σ and Λ; return its weight, width and slope.

    Algorithm 1, lines 8 and 3; Algorithm 2, lines 12 to 15, 4 and 6.
    """
    first, second = pair
    if plan.by_hessian:
        width = width_between(local, difference, first, second)
    else:
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
    """Choose the next duel among ``actions`` (K, d), exploring by Λ if the agent has one, else by Σ."""
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
    """The compiled steps of ``ask``: all of it, and the part after the choice."""

    ask: Callable[..., Choice]
    commit: Callable[..., tuple[float, float, float]]


@functools.cache
def steps(chooser: Callable[..., Any], weigher: Callable[..., Any]) -> Steps:
    """Compile the steps for this ``choose`` and this ``weigh``."""
    commit = specialised(commit_step, weigh=weigher)
    return Steps(specialised(ask_step, choose=chooser, commit_step=commit), commit)


class RunPlan(NamedTuple):
    """An agent's settings for a compiled run."""

    plan: Plan
    schedule: Matrix
    """The round parameters, shape (T, m)."""
    warmup: int
