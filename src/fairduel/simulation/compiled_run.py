"""A run in compiled code from end to end: the very functions that ``ask`` and ``tell`` call, T times.

Any registered agent with features can be run so, under any registered attack on duels, in any world that says how, for
d < 64. The order of operations and of random draws is that of :func:`fairduel.simulation.play.play`, so that the duels
are the same.
"""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairduel.action_sets import checked_actions
from fairduel.adversaries import ATTACKS, Adversary, FlippingAdversary
from fairduel.adversaries.base import AttackPlan, DuelSeen, FlipCase, may_flip
from fairduel.agents import AGENTS, ContextualAgent
from fairduel.agents.round import Plan, RunPlan, State, looking_at, steps, tell_step
from fairduel.core.compiling import compiled, later, one_of, place, this
from fairduel.core.estimators import EXCESS, EstimatorArrays, refit
from fairduel.core.information import HIGH_DIMENSION, LOG_DETERMINANT
from fairduel.core.likelihood import check_converged, converging
from fairduel.core.links import probability
from fairduel.core.selection import View
from fairduel.core.ties import win_and_tie
from fairduel.duel import Matrix, Vector
from fairduel.errors import BadInputError
from fairduel.simulation.play import Player, Trace
from fairduel.simulation.referee import regrets, true_share
from fairduel.worlds import DuelingWorld, World
from fairduel.worlds.base import WorldPlan
from fairduel.worlds.fresh import rewards_of, unit_rows

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


@compiled
def run(
    agent: RunPlan,
    state: State,
    estimator: EstimatorArrays,
    attack: AttackPlan,
    world: WorldPlan,
    shown: NDArray[np.int64],
    world_rng: np.random.Generator,
    label_rng: np.random.Generator,
    adversary_rng: np.random.Generator,
    agent_rng: np.random.Generator,
) -> tuple[Matrix, Matrix, NDArray[np.int32], NDArray[np.bool_], float]:
    """Play all rounds; return the columns of :class:`Trace` and the largest excess of a gradient over its tolerance.

    ``shown`` (T,) says which of the world's sets is offered in each round. The float columns are (5, T): regret, weak
    regret, weight, width, slope; then come the estimates (T, d), both actions of each duel (2, T), and whether it was
    flipped or a tie (2, T).
    """
    horizon = shown.size
    columns, estimates = np.empty((5, horizon)), np.empty((horizon, world.actions.shape[1]))
    pairs, marked = np.empty((2, horizon), np.int32), np.zeros((2, horizon), np.bool_)
    current, actions, rewards, best_reward = -1, world.actions, world.rewards, 0.0
    spent, worst = 0, 0.0
    plan, information_marks = agent.plan, state.information.marks
    for t in range(horizon):
        if world.is_fresh:
            actions = unit_rows(world_rng.standard_normal(actions.shape))
            rewards = rewards_of(actions, world.parameter)
        elif shown[t] != current:
            begin, end = world.starts[shown[t]], world.starts[shown[t] + 1]
            actions, rewards = world.actions[begin:end], world.rewards[begin:end]
        if world.is_fresh or shown[t] != current:
            current, best_reward = shown[t], np.max(rewards)
            state = looking_at(state, len(actions))

        duel = ask_step(plan, agent.schedule[t], state, actions, t < agent.warmup, agent_rng)
        first, second = duel.first, duel.second

        low, high = min(first, second), max(first, second)
        if world.chance_starts.size:
            chances = world.chances[world.chance_starts[current] + low * len(actions) + high]
            low_wins, ties = chances[0], chances[1]
        else:
            p = probability(world.link.kind, world.link.scale, rewards[low] - rewards[high])
            low_wins, ties = win_and_tie(world.ties, p)
        share, chance = true_share(label_rng.random(), first, second, low_wins, ties)
        marked[1, t] = share == 0.5
        if may_flip(attack.budget, spent, share):
            seen = DuelSeen(t + 1, rewards, first, second, share, chance)
            marked[0, t] = wants_flip(FlipCase(attack, seen, adversary_rng))
            spent += marked[0, t]

        told = 1.0 - share if marked[0, t] else share
        tell_step(plan.estimator, estimator, first, second, duel.difference, duel.weight, told)
        refit(plan.estimator, estimator, information_marks[LOG_DETERMINANT])
        worst = max(worst, estimator.marks[EXCESS])

        pairs[0, t], pairs[1, t] = first, second
        columns[0, t], columns[1, t] = regrets(rewards, best_reward, first, second)
        columns[2, t], columns[3, t], columns[4, t] = duel.weight, duel.width, duel.slope
        estimates[t] = estimator.theta
    return columns, estimates, pairs, marked, worst


def play_compiled(
    agent: Player, world: World, adversary: Adversary, *, horizon: int, labels: np.random.Generator
) -> Trace | None:
    """Play like :func:`~fairduel.simulation.play.play`, compiled; ``None``, with nothing done, where that cannot be.

    The agent and the adversary only lend their settings and random streams: they learn nothing themselves.
    """
    plans = _plans(agent, world, adversary, horizon)
    if plans is None:
        return None
    agent_plan, attack_plan, world_plan = plans
    assert isinstance(agent, ContextualAgent)
    assert isinstance(world, DuelingWorld)
    assert isinstance(adversary, FlippingAdversary)
    if agent.dimension != world.dimension:
        raise BadInputError(f"the agent has {agent.dimension} features and the world's actions have {world.dimension}.")
    if not world_plan.is_fresh:
        checked_actions(world_plan.actions, agent.dimension)
    state, estimator = agent.new_state(room=horizon + 1)
    agent_rng = np.random.Generator(np.random.PCG64(agent.seed))
    world_rng = getattr(world, "rng", agent_rng)  # unless it draws actions, it needs none
    shown = world.places(horizon)
    began = time.thread_time()
    ridge = agent_plan.plan.estimator.ridge
    with converging(ridge):
        columns, estimates, pairs, marked, worst = run(
            agent_plan, state, estimator, attack_plan, world_plan, shown, world_rng, labels, adversary.rng, agent_rng
        )
    check_converged(worst, ridge)
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


def can_compile(agent: Player, world: World, adversary: Adversary) -> bool:
    """Whether :func:`play_compiled` would play this."""
    return _plans(agent, world, adversary, horizon=1) is not None


_Plans = tuple[RunPlan, AttackPlan, WorldPlan]


def _plans(agent: Player, world: World, adversary: Adversary, horizon: int) -> _Plans | None:
    """What :func:`run` needs to know, or ``None`` where only the plain driver serves."""
    if type(agent) not in _AGENTS or type(adversary) not in _FLIP_STEPS or not isinstance(world, DuelingWorld):
        return None
    assert isinstance(agent, ContextualAgent)
    assert isinstance(adversary, FlippingAdversary)
    if world.dimension >= HIGH_DIMENSION:
        return None
    agent_plan, attack_plan, world_plan = agent.plan_run(horizon), adversary.plan_run(), world.plan()
    if agent_plan is None or attack_plan is None or world_plan is None:
        return None
    adversary.check_actions(int(np.diff(world_plan.starts).min()))
    chooser, weigher = _CHOOSERS.index(agent._choose), _WEIGHERS.index(agent._weigh)  # noqa: SLF001
    plan = agent_plan.plan._replace(chooser=chooser, weigher=weigher)
    which = list(_FLIP_STEPS).index(type(adversary))
    return agent_plan._replace(plan=plan), attack_plan._replace(which=which), world_plan
