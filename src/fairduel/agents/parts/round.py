"""One round of a contextual dueling agent with a linear belief, compiled.

``ask_step`` is a function of a plan (settings), of what is known of the round, and of the belief's arrays. An agent
calls it once per round, a compiled run calls it T times. The agent's rule and trust are filled in by :func:`asking`.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple, get_type_hints

import numpy as np
from numpy.typing import NDArray

from fairduel.core.compiling import compiled, inlined, specialised
from fairduel.core.estimators import EstimatorPlan
from fairduel.core.information import (
    GRAM_UPDATES,
    REFRESH_EVERY,
    SMALL_SET,
    InformationArrays,
    add_difference,
    dot,
    fill_gram,
    width_between,
)
from fairduel.core.links import LinkNumbers
from fairduel.core.selection import View, leader_and_settling, random_pair, view
from fairduel.duel import Matrix, Vector


class Plan(NamedTuple):
    """An agent's settings for compiled functions, constant over a run."""

    rule: int
    """The index of its rule in a compiled run."""
    trust_rule: int
    """The index of its trust in a compiled run."""
    remembers: bool
    """Whether it remembers answers."""
    trust: float
    """α; ∞ trusts every duel fully."""
    design_slope: float
    """The coefficient of a duel in Σ, before its weight."""
    kappa: float
    self_duels: bool
    by_hessian: bool
    """Whether Λ is the Hessian of the estimate; widths are then in its norm."""
    link: LinkNumbers
    """σ."""


class Now(NamedTuple):
    """What the rules and trusts of this package need to know of a round; an agent sets what its own need.

    A rule or a trust of your own may come with a type of its own: floats and bools, by name.
    """

    radius: float
    """β."""
    slope_radius: float = 0.0
    """β_t of RCDB-S."""
    grown: float = 1.0
    """The largest weight of a vote."""
    patience: float = math.inf
    """m: after this many upsets in a row, votes are doubted."""
    tolerated: float = 0.0
    """Ĉ: how many votes are doubted then."""
    allowance: float = 0.0
    """The regret that is treated as zero: ε."""
    margin: float = 0.0
    """How much weight of votes must be needed to reverse a clear leader's lead."""
    mixing: float = 1.0
    """The probability of separate perturbations, or of a shared one: p_t."""
    is_mixing_separate: bool = True
    """Which of the two."""
    threshold: float = math.inf
    """The largest perturbation."""
    is_gaussian: bool = False
    """Whether perturbations are Gaussian rather than Gumbel."""


class Memory(NamedTuple):
    """What an agent remembers between rounds, besides its belief; numbers are arrays, because they change.

    A rule, a trust or a ``remember`` of your own may come with a type of its own.
    """

    upsets: Vector
    """The number of outcomes in a row, up to the last, that contradicted the belief of their time, shape (1,)."""


@inlined
def nothing(memory: Any, lead: float, share: float) -> None:
    """Remember nothing."""


@inlined
def count_upsets(memory: Memory, lead: float, share: float) -> None:
    """Count the outcomes in a row that contradicted the belief of their time.

    Args:
        memory: What is remembered.
        lead: How far the first action was believed ahead.
        share: Its share of the win: 1, 0, or ½ for a tie, which is neither an upset nor the end of a run of them.
    """
    agreement = lead * (share - 0.5)
    if agreement < 0.0:
        memory.upsets[0] += 1
    elif agreement > 0.0:
        memory.upsets[0] = 0


class Known(NamedTuple):
    """What a linear belief knows when its agent asks."""

    information: InformationArrays
    """Σ."""
    local: InformationArrays
    """Λ, if the agent explores by it; otherwise empty."""
    theta: Vector
    """θ, shape (d,)."""


class BelievedStanding(NamedTuple):
    """What an agent believes once it has asked; a strong adversary sees it, because it sees all history."""

    lead: float
    """How far the first action of the duel is believed ahead: φᵀθ of a linear belief."""
    leader: int
    """The action that is believed best."""
    settling: float
    """How near the leader is to being clearly ahead of all others; from 1 on it is."""


class Choice(NamedTuple):
    """A chosen duel, and what was known at that moment."""

    first: int
    second: int
    difference: Vector
    """φ, shape (d,)."""
    weight: float
    width: float
    slope: float


@inlined
def rule(plan: Plan, now: Now, memory: Memory, seen: View, rng: np.random.Generator) -> tuple[int, int]:
    """Which pair next; :func:`asking` fills in one of :mod:`~fairduel.agents.parts.rules`."""
    raise NotImplementedError


@inlined
def trust_rule(plan: Plan, now: Now, memory: Memory, lead: float, width: float) -> tuple[float, float]:
    """How much the duel counts and informs; :func:`asking` fills in one of :mod:`~fairduel.agents.parts.rules`."""
    raise NotImplementedError


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


def ask_step(
    plan: Plan,
    now: Now,
    memory: Memory,
    information: InformationArrays,
    local: InformationArrays,
    theta: Vector,
    actions: Matrix,
    is_warmup: bool,
    rng: np.random.Generator,
) -> Choice:
    """Choose the next duel among ``actions`` (K, d), weigh it, and add it to Σ and Λ.

    Algorithm 1, lines 6, 8 and 3; Algorithm 2, lines 10, 12 to 15, 4 and 6. It explores by Λ if it exists, else by Σ.
    """
    gram, inverse, marks = information.gram, information.inverse, information.marks
    if local.matrix.size:
        gram, inverse, marks = local.gram, local.inverse, local.marks
    fill_gram(gram, marks, inverse, actions)
    if is_warmup:
        first, second = random_pair(len(actions), rng.random())
    else:
        first, second = rule(plan, now, memory, view(gram, inverse, actions, theta), rng)
    if rng.random() < 0.5:
        first, second = second, first
    difference = actions[first] - actions[second]
    if plan.by_hessian:
        width = width_between(local, difference, first, second)
    else:
        width = width_between(information, difference, first, second)
    weight, slope = trust_rule(plan, now, memory, dot(difference, theta), width)
    if first != second:
        add_difference(information, difference, weight * plan.design_slope, first, second)
        if local.matrix.size:
            add_difference(local, difference, weight * slope, first, second)
    return Choice(first, second, difference, weight, width, slope)


@compiled
def standing(now: Now, known: Known, actions: Matrix, difference: Vector) -> BelievedStanding:
    """What is believed of ``actions`` (K, d) and a duel φ (d,), after it was asked."""
    information, local, theta = known
    seen = local if local.matrix.size else information
    fill_gram(seen.gram, seen.marks, seen.inverse, actions)
    leader, settling = leader_and_settling(view(seen.gram, seen.inverse, actions, theta), now.radius, now.margin)
    return BelievedStanding(dot(difference, theta), leader, settling)


@functools.cache
def asking(rule: Callable[..., Any], trust_rule: Callable[..., Any]) -> Callable[..., Choice]:
    """Compile ``ask_step`` for this rule and this trust."""
    return specialised(ask_step, rule=rule, trust_rule=trust_rule)


class RunPlan(NamedTuple):
    """An agent's settings for a compiled run."""

    plan: Plan
    estimator: EstimatorPlan
    schedule: NDArray[np.void]
    """What is known of each round, shape (T,), with the fields of :class:`Now`."""
    warmup: int


def schedule_of(rounds: list[Any], horizon: int) -> NDArray[np.void]:
    """What is known of these rounds, repeated to ``horizon`` rounds, as an array with fields of these names."""
    fields = get_type_hints(type(rounds[0]))
    table = np.array([tuple(now) for now in rounds], dtype=[(name, fields[name]) for name in rounds[0]._fields])
    return np.tile(table, horizon // len(table))
