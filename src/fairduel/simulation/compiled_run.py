"""A complete run in compiled code, made of the functions that ``ask`` and ``tell`` call.

It supports every registered contextual agent, every registered attack on duels and every world with a plan, for
d < 64. Operations and random draws happen in the same order as in :func:`fairduel.simulation.play.play`, so the duels
are identical.
"""

import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairduel.action_sets import checked_actions
from fairduel.adversaries import ATTACKS, Adversary, FlippingAdversary
from fairduel.adversaries.base import AttackPlan, DuelSeen, FlipCase, may_flip
from fairduel.agents import AGENTS, ContextualAgent
from fairduel.agents.round import Known, Plan, RunPlan, forget_gram, steps, with_gram
from fairduel.core.compiling import compiled, inlined, later, one_of, place, this
from fairduel.core.estimators import EXCESS, UPSETS, EstimatorArrays, hessian, refit, tell_step
from fairduel.core.information import HIGH_DIMENSION, LOG_DETERMINANT, add_direction, replace_matrix
from fairduel.core.likelihood import check_converged, converging
from fairduel.core.links import probability
from fairduel.core.selection import View
from fairduel.core.ties import win_and_tie
from fairduel.delays import Delay, DelayPlan, NoDelay, lateness
from fairduel.duel import Matrix, Vector
from fairduel.errors import BadInputError
from fairduel.simulation.play import Player, Trace
from fairduel.simulation.referee import regrets, true_share
from fairduel.worlds import DuelingWorld, World
from fairduel.worlds.base import WorldPlan
from fairduel.worlds.fresh import drawn, rewards_of

_AGENTS = [kind for kind in AGENTS.values() if issubclass(kind, ContextualAgent)]
_CHOOSERS = list(dict.fromkeys(kind._choose for kind in _AGENTS))  # noqa: SLF001
_WEIGHERS = list(dict.fromkeys(kind._weigh for kind in _AGENTS))  # noqa: SLF001
_FLIP_STEPS = {
    kind: step for kind in ATTACKS.values() if issubclass(kind, FlippingAdversary) and (step := kind.flip_step())
}


def _choose(plan: Plan, numbers: Vector, seen: View, rng: np.random.Generator) -> Any:
    return this(plan, numbers, seen, rng) if plan.chooser == place else later(plan, numbers, seen, rng)


def _weigh(plan: Plan, numbers: Vector, theta: Vector, difference: Vector, width: float) -> Any:
    if plan.weigher == place:
        return this(plan, numbers, theta, difference, width)
    return later(plan, numbers, theta, difference, width)


def _wants_flip(case: FlipCase) -> Any:
    return this(case) if case.plan.which == place else later(case)


ask_step = steps(one_of(_choose, _CHOOSERS), one_of(_weigh, _WEIGHERS)).ask
wants_flip = one_of(_wants_flip, list(_FLIP_STEPS.values()))


class Record(NamedTuple):
    """What happened in each round, as in :class:`Trace`."""

    columns: Matrix
    """Regret, weak regret, weight, width and slope, shape (5, T)."""
    estimates: Matrix
    """Shape (T, d)."""
    pairs: NDArray[np.int32]
    """The two actions of each duel, shape (2, T)."""
    marked: NDArray[np.bool_]
    """Whether each duel was flipped, and whether it was a tie, shape (2, T)."""
    totals: Vector
    """The number of flips, and the largest ratio of a gradient to its tolerance, shape (2,)."""


class Waiting(NamedTuple):
    """Outcomes on their way to the agent: of each round, and in a linked list for each round of arrival."""

    differences: Matrix
    """φ of each duel, shape (T, d)."""
    shares: Vector
    """What the agent will be told, shape (T,); NaN once it is told."""
    links: NDArray[np.int64]
    """For each round, the first and the last duel that arrive in it, and the duel that arrives after this one; −1 if
    there is none. Shape (3, T)."""


@inlined
def _send(links: NDArray[np.int64], asked: int, arrival: int) -> None:
    """Let the duel of round ``asked`` arrive in round ``arrival``, if the run lasts that long."""
    if arrival < links.shape[1]:
        last = links[1, arrival]
        links[1, arrival] = asked
        if last < 0:
            links[0, arrival] = asked
        else:
            links[2, last] = asked


@compiled
def _chances(world: WorldPlan, current: int, rewards: Vector, low: int, high: int) -> tuple[float, float]:
    """P(low wins) and P(tie) for two actions of the current set."""
    if world.chance_starts.size:
        row = world.chance_starts[current] + low * rewards.size + high
        return world.chances[row, 0], world.chances[row, 1]
    p = probability(world.link.kind, world.link.scale, rewards[low] - rewards[high])
    return win_and_tie(world.ties, p)


@inlined
def _play(
    rounds: tuple[int, int],
    agent: RunPlan,
    known: Known,
    estimator: EstimatorArrays,
    attack: AttackPlan,
    delay: DelayPlan,
    world: WorldPlan,
    current: int,
    record: Record,
    waiting: Waiting,
    world_rng: np.random.Generator,
    label_rng: np.random.Generator,
    adversary_rng: np.random.Generator,
    agent_rng: np.random.Generator,
    delay_rng: np.random.Generator,
) -> None:
    """Play consecutive rounds that offer the same set, from ``rounds[0]`` up to ``rounds[1]``.

    The tuples that the steps take are made outside the loop, because making one updates the reference counts of all
    its arrays.
    """
    columns, estimates, pairs, marked, totals = record
    differences, shares, links = waiting
    plan, estimator_plan = agent.plan, agent.plan.estimator
    information, local, theta = known
    begin, end = world.starts[current], world.starts[current + 1]
    actions, rewards = world.actions[begin:end], world.rewards[begin:end]
    best_reward = np.max(rewards)
    for t in range(*rounds):
        if world.is_fresh:
            actions = drawn(world.side, actions.shape, world_rng)
            rewards = rewards_of(actions, world.parameter)
            best_reward = np.max(rewards)
            forget_gram(known)
        numbers = agent.schedule[t]
        if plan.counts_upsets:
            numbers[-1] = estimator.marks[UPSETS]
        duel = ask_step(plan, numbers, information, local, theta, actions, t < agent.warmup, agent_rng)
        first, second = duel.first, duel.second
        low_wins, ties = _chances(world, current, rewards, min(first, second), max(first, second))
        share, chance = true_share(label_rng.random(), first, second, low_wins, ties)
        if may_flip(attack, totals[0], t + 1, share):
            seen = DuelSeen(t + 1, rewards, first, second, share, chance)
            marked[0, t] = wants_flip(FlipCase(attack, seen, adversary_rng))
            totals[0] += marked[0, t]
        differences[t], shares[t] = duel.difference, 1.0 - share if marked[0, t] else share
        pairs[0, t], pairs[1, t], marked[1, t] = first, second, share == 0.5
        columns[0, t], columns[1, t] = regrets(rewards, best_reward, first, second)
        columns[2, t], columns[3, t], columns[4, t] = duel.weight, duel.width, duel.slope
        _send(links, t, t + lateness(delay, max(rewards[first], rewards[second]), marked[0, t], delay_rng))
        arrived = links[0, t]
        while arrived >= 0:
            pair = pairs[0, arrived], pairs[1, arrived]
            tell_step(estimator_plan, estimator, pair, differences[arrived], columns[2, arrived], shares[arrived])
            shares[arrived] = np.nan
            arrived = links[2, arrived]
        if refit(estimator_plan, estimator, information.marks[LOG_DETERMINANT]) and plan.by_hessian:
            replace_matrix(local, hessian(estimator_plan, estimator))
            for asked in range(t + 1 if delay.kind else 0):
                if pairs[0, asked] != pairs[1, asked] and not np.isnan(shares[asked]):
                    coefficient = columns[2, asked] * columns[4, asked]
                    add_direction(local.matrix, local.inverse, local.marks, differences[asked], coefficient)
        estimates[t] = estimator.theta
        totals[1] = max(totals[1], estimator.marks[EXCESS])


@compiled
def run(
    agent: RunPlan,
    known: Known,
    estimator: EstimatorArrays,
    attack: AttackPlan,
    delay: DelayPlan,
    world: WorldPlan,
    shown: NDArray[np.int64],
    world_rng: np.random.Generator,
    label_rng: np.random.Generator,
    adversary_rng: np.random.Generator,
    agent_rng: np.random.Generator,
    delay_rng: np.random.Generator,
) -> Record:
    """Play all rounds; ``shown`` (T,) is the index of the action set offered in each."""
    horizon, dimension = shown.size, world.actions.shape[1]
    record = Record(
        np.empty((5, horizon)),
        np.empty((horizon, dimension)),
        np.empty((2, horizon), np.int32),
        np.zeros((2, horizon), np.bool_),
        np.zeros(2),
    )
    links = np.full((3, horizon), -1)
    waiting = Waiting(np.empty((horizon, dimension)), np.empty(horizon), links)
    begin = 0
    while begin < horizon:
        current, end = shown[begin], begin + 1
        while end < horizon and shown[end] == current:
            end += 1
        looking = with_gram(known, world.starts[current + 1] - world.starts[current])
        rounds = begin, end
        _play(
            rounds,
            agent,
            looking,
            estimator,
            attack,
            delay,
            world,
            current,
            record,
            waiting,
            world_rng,
            label_rng,
            adversary_rng,
            agent_rng,
            delay_rng,
        )
        begin = end
    return record


def play_compiled(
    agent: Player,
    world: World,
    adversary: Adversary,
    *,
    horizon: int,
    labels: np.random.Generator,
    delay: Delay | None = None,
) -> Trace | None:
    """Play like :func:`~fairduel.simulation.play.play`, but compiled; return ``None`` if that is not supported.

    Only the settings and random streams of the agent, the adversary and the delay are used. The agent then has the
    run's estimate and votes, so that it can recommend; otherwise the objects learn nothing.
    """
    delay = delay or NoDelay()
    plans = _plans(agent, world, adversary, delay, horizon)
    if plans is None:
        return None
    agent_plan, attack_plan, delay_plan, world_plan = plans
    assert isinstance(agent, ContextualAgent)
    assert isinstance(world, DuelingWorld)
    assert isinstance(adversary, FlippingAdversary)
    if agent.dimension != world.dimension:
        raise BadInputError(f"the agent has {agent.dimension} features but the world's actions have {world.dimension}.")
    if not world_plan.is_fresh:
        checked_actions(world_plan.actions, agent.dimension)
    known, estimator = agent.new_arrays(room=horizon + 1)
    agent_rng = np.random.Generator(np.random.PCG64(agent.seed))
    world_rng = getattr(world, "rng", agent_rng)  # unused unless the world draws actions
    shown = world.places(horizon)
    began = time.thread_time()
    ridge = agent_plan.plan.estimator.ridge
    with converging(ridge):
        columns, estimates, pairs, marked, totals = run(
            agent_plan,
            known,
            estimator,
            attack_plan,
            delay_plan,
            world_plan,
            shown,
            world_rng,
            labels,
            adversary.rng,
            agent_rng,
            delay.rng,
        )
    check_converged(float(totals[1]), ridge)
    agent.learn_run(estimator)
    return Trace(
        regret=columns[0],
        weak_regret=columns[1],
        first=pairs[0],
        second=pairs[1],
        corruption=marked[0].astype(np.float64),
        tied=marked[1],
        weight=columns[2],
        width=columns[3],
        slope=columns[4],
        estimate_norm=np.linalg.norm(estimates, axis=1),
        estimates=estimates,
        seconds=time.thread_time() - began,
    )


def can_compile(agent: Player, world: World, adversary: Adversary, delay: Delay | None = None) -> bool:
    """Whether :func:`play_compiled` supports this combination."""
    return _plans(agent, world, adversary, delay or NoDelay(), horizon=1) is not None


_Plans = tuple[RunPlan, AttackPlan, DelayPlan, WorldPlan]


def _plans(agent: Player, world: World, adversary: Adversary, delay: Delay, horizon: int) -> _Plans | None:
    """The arguments of :func:`run`, or ``None`` if only the plain driver supports this combination."""
    if type(agent) not in _AGENTS or type(adversary) not in _FLIP_STEPS or not isinstance(world, DuelingWorld):
        return None
    assert isinstance(agent, ContextualAgent)
    assert isinstance(adversary, FlippingAdversary)
    if world.dimension >= HIGH_DIMENSION:
        return None
    agent_plan, attack_plan, world_plan = agent.plan_run(horizon), adversary.plan_run(), world.plan()
    delay_plan = delay.plan_run()
    if agent_plan is None or attack_plan is None or delay_plan is None or world_plan is None:
        return None
    adversary.check_actions(int(np.diff(world_plan.starts).min()))
    chooser, weigher = _CHOOSERS.index(agent._choose), _WEIGHERS.index(agent._weigh)  # noqa: SLF001
    plan = agent_plan.plan._replace(chooser=chooser, weigher=weigher)
    which = list(_FLIP_STEPS).index(type(adversary))
    return agent_plan._replace(plan=plan), attack_plan._replace(which=which), delay_plan, world_plan
