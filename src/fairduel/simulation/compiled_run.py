"""A complete run in compiled code, made of the functions that ``ask`` and ``tell`` call.

It supports every registered contextual agent, every registered attack on duels and every world with a plan, for
d < 64 or new actions in every round. Operations and random draws happen in the same order as in
:func:`fairduel.simulation.play.play`, so the duels are identical.
"""

import functools
import itertools
import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairduel.action_sets import checked_actions
from fairduel.adversaries import ATTACKS, Adversary, FlippingAdversary
from fairduel.adversaries.adversary import AttackPlan, DuelSeen, FlipCase, may_flip
from fairduel.agents import AGENTS, ContextualAgent
from fairduel.agents.parts.round import (
    Known,
    Memory,
    Now,
    Plan,
    RunPlan,
    asking,
    count_upsets,
    forget_gram,
    nothing,
    standing,
    with_gram,
)
from fairduel.agents.parts.rules import RULES, TRUSTS
from fairduel.core.compiling import compiled, inlined, later, one_of, place, specialised, this
from fairduel.core.estimators import EXCESS, EstimatorArrays, hessian, refit, tell_step
from fairduel.core.information import HIGH_DIMENSION, LOG_DETERMINANT, add_direction, dot, replace_matrix
from fairduel.core.likelihood import check_converged, converging
from fairduel.core.links import probability, win_and_tie
from fairduel.core.selection import View
from fairduel.delays import Delay, DelayPlan, NoDelay, lateness
from fairduel.duel import Matrix, Vector
from fairduel.errors import BadInputError
from fairduel.simulation.play import Player, Trace, regrets, true_share
from fairduel.worlds import DuelingWorld, World
from fairduel.worlds.fresh import curve_at, drawn
from fairduel.worlds.world import WorldPlan

_MOST_FEATURES = 50_000_000  # of all rounds, in high dimension
_FLIP_STEPS = {
    kind: step for kind in ATTACKS.values() if issubclass(kind, FlippingAdversary) and (step := kind.flip_step())
}


def _rule(plan: Plan, now: Now, memory: Memory, seen: View, rng: np.random.Generator) -> Any:
    if plan.rule == place:
        return this(plan, now, memory, seen, rng)
    return later(plan, now, memory, seen, rng)


def _trust_rule(plan: Plan, now: Now, memory: Memory, lead: float, width: float) -> Any:
    if plan.trust_rule == place:
        return this(plan, now, memory, lead, width)
    return later(plan, now, memory, lead, width)


def _wants_flip(case: FlipCase) -> Any:
    return this(case) if case.plan.which == place else later(case)


ask_step = asking(one_of(_rule, RULES), one_of(_trust_rule, TRUSTS))
"""The step of every agent whose rule and trust are among those that compiled runs share."""
remember = count_upsets
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
    """The answers that are still to be told, shape (T,); NaN once told."""
    links: NDArray[np.int64]
    """For each round, the first and the last duel that arrive in it, and the duel that arrives after this one; −1 if
    there is none. Shape (3, T)."""


class RunStreams(NamedTuple):
    """The random streams of a run."""

    world: np.random.Generator
    labels: np.random.Generator
    adversary: np.random.Generator
    agent: np.random.Generator
    delay: np.random.Generator


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


def _play(
    rounds: tuple[int, int],
    agent: RunPlan,
    known: Known,
    estimator: EstimatorArrays,
    memory: Memory,
    attack: AttackPlan,
    delay: DelayPlan,
    world: WorldPlan,
    current: int,
    record: Record,
    waiting: Waiting,
    streams: RunStreams,
) -> None:
    """Play consecutive rounds that offer the same set, from ``rounds[0]`` up to ``rounds[1]``.

    The tuples that the steps take are made outside the loop, because making one updates the reference counts of all
    its arrays.
    """
    columns, estimates, pairs, marked, totals = record
    differences, shares, links = waiting
    plan, estimator_plan = agent.plan, agent.estimator
    world_rng, label_rng, adversary_rng, agent_rng, delay_rng = streams
    information, local, theta = known
    begin, end = world.starts[current], world.starts[current + 1]
    actions, rewards = world.actions[begin:end], world.rewards[begin:end]
    best_reward = np.max(rewards)
    for t in range(*rounds):
        if world.is_fresh:
            actions = drawn(world.side, actions.shape, world_rng)
            rewards = curve_at(actions, world.curve)
            best_reward = np.max(rewards)
            forget_gram(known)
        now, is_warmup = agent.schedule[t], t < agent.warmup
        duel = ask_step(plan, now, memory, information, local, theta, actions, is_warmup, agent_rng)
        first, second = duel.first, duel.second
        low_wins, ties = _chances(world, current, rewards, min(first, second), max(first, second))
        share, chance = true_share(label_rng.random(), first, second, low_wins, ties)
        if may_flip(attack, totals[0], t + 1, share):
            lead, leader, settling = math.nan, -1, math.nan
            if attack.watches:
                lead, leader, settling = standing(now, known, actions, duel.difference)
            weight, width = duel.weight, duel.width
            seen = DuelSeen(t + 1, rewards, first, second, share, chance, weight, width, lead, leader, settling)
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
            if plan.remembers and pair[0] != pair[1]:
                remember(memory, dot(differences[arrived], theta), shares[arrived])
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


def _run(
    agent: RunPlan,
    known: Known,
    estimator: EstimatorArrays,
    memory: Memory,
    attack: AttackPlan,
    delay: DelayPlan,
    world: WorldPlan,
    shown: NDArray[np.int64],
    streams: RunStreams,
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
            memory,
            attack,
            delay,
            world,
            current,
            record,
            waiting,
            streams,
        )
        begin = end
    return record


def _with(asking_step: Callable[..., Any], remembering: Callable[..., Any]) -> Callable[..., Record]:
    return specialised(_run, _play=specialised(_play, ask_step=asking_step, remember=remembering))


run = _with(ask_step, remember)
"""The run of every agent whose parts are all among those that compiled runs share."""


@functools.cache
def _own_run(
    rule: Callable[..., Any], trust_rule: Callable[..., Any], remembering: Callable[..., Any]
) -> Callable[..., Record]:
    """The run of an agent with a part of its own."""
    return _with(asking(rule, trust_rule), remembering)


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
    playing, agent_plan, attack_plan, delay_plan, world_plan = plans
    assert isinstance(agent, ContextualAgent)
    assert isinstance(world, DuelingWorld)
    assert isinstance(adversary, FlippingAdversary)
    if agent.dimension != world.dimension:
        raise BadInputError(f"the agent has {agent.dimension} features but the world's actions have {world.dimension}.")
    if not world_plan.is_fresh:
        checked_actions(world_plan.actions, agent.dimension)
    known, estimator, memory = agent.new_arrays(room=horizon + 1)
    agent_rng = np.random.Generator(np.random.PCG64(agent.seed))
    world_rng = getattr(world, "rng", agent_rng)  # unused unless the world draws actions
    shown = world.places(horizon)
    if agent.map is not None:
        world_plan, shown = _mapped(agent, world_plan, shown, world_rng)
    began = time.thread_time()
    ridge = agent_plan.estimator.ridge
    with converging(ridge):
        columns, estimates, pairs, marked, totals = playing(
            agent_plan,
            known,
            estimator,
            memory,
            attack_plan,
            delay_plan,
            world_plan,
            shown,
            RunStreams(world_rng, labels, adversary.rng, agent_rng, delay.rng),
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
        estimates=estimates if agent.size < HIGH_DIMENSION else estimates[:, :0].copy(),
        seconds=time.thread_time() - began,
    )


def _mapped(
    agent: ContextualAgent, world: WorldPlan, shown: NDArray[np.int64], world_rng: np.random.Generator
) -> tuple[WorldPlan, NDArray[np.int64]]:
    """Return the plan with features in place of actions, new actions drawn in advance, and the set of each round."""
    sets = [world.actions[begin:end] for begin, end in itertools.pairwise(world.starts)]
    rewards = world.rewards
    if world.is_fresh:
        shape = sets[0].shape
        sets = [drawn(world.side, shape, world_rng) for _ in range(shown.size)]
        rewards = np.concatenate([curve_at(actions, world.curve) for actions in sets])
        shown = np.arange(shown.size)
    features = [agent.features_of(actions) for actions in sets]  # set by set: then all bits are those of plain runs
    starts = np.concatenate([[0], np.cumsum([len(table) for table in features])])
    return world._replace(is_fresh=False, starts=starts, actions=np.concatenate(features), rewards=rewards), shown


def can_compile(agent: Player, world: World, adversary: Adversary, delay: Delay | None = None) -> bool:
    """Whether :func:`play_compiled` supports this combination."""
    return _plans(agent, world, adversary, delay or NoDelay(), horizon=1) is not None


_Plans = tuple[Callable[..., Record], RunPlan, AttackPlan, DelayPlan, WorldPlan]


def _plans(agent: Player, world: World, adversary: Adversary, delay: Delay, horizon: int) -> _Plans | None:
    """The run and its arguments, or ``None`` if only the plain driver supports this combination."""
    if not _is_built_in(type(agent)) or type(adversary) not in _FLIP_STEPS or not isinstance(world, DuelingWorld):
        return None
    assert isinstance(agent, ContextualAgent)
    assert isinstance(adversary, FlippingAdversary)
    agent_plan, attack_plan, world_plan = agent.plan_run(horizon), adversary.plan_run(), world.plan()
    delay_plan = delay.plan_run()
    if agent_plan is None or attack_plan is None or delay_plan is None or world_plan is None:
        return None
    is_large = agent.size >= HIGH_DIMENSION  # plain agents then defer updates of Σ where the same actions come again
    if is_large and not (world_plan.is_fresh and horizon * len(world_plan.actions) * agent.size <= _MOST_FEATURES):
        return None
    adversary.check_actions(int(np.diff(world_plan.starts).min()))
    which = list(_FLIP_STEPS).index(type(adversary))
    attack_plan = attack_plan._replace(which=which)
    rule, trust_rule, remembering = agent._rule, agent._trust_rule, agent._remember  # noqa: SLF001
    if rule in RULES and trust_rule in TRUSTS and remembering in {nothing, count_upsets}:
        plan = agent_plan.plan._replace(rule=RULES.index(rule), trust_rule=TRUSTS.index(trust_rule))
        return run, agent_plan._replace(plan=plan), attack_plan, delay_plan, world_plan
    return _own_run(rule, trust_rule, remembering), agent_plan, attack_plan, delay_plan, world_plan


def _is_built_in(kind: type) -> bool:
    name = AGENTS.name_of(f"{kind.__module__}:{kind.__qualname__}")
    return name is not None and issubclass(kind, ContextualAgent)
