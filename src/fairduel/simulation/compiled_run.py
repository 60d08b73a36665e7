"""A whole run in compiled code, out of the same functions that ``ask`` and ``tell`` call.

It covers the five agents, the six attacks on duels, and every world that answers duels, for d < 64. The order of
operations and of random draws is that of :func:`fairduel.simulation.play.play`, so that the duels are the same.
"""

import math
import time
from collections.abc import Callable
from typing import NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from fairduel.action_sets import checked_actions
from fairduel.adversaries import Adversarial, Adversary, Greedy, Hiding, Misleading, NoAttack, Random
from fairduel.adversaries.strong import ranked_action
from fairduel.agents import RCDB, RCDBS, CoLSTIM, ContextualAgent, MaxInP, MaxPairUCB
from fairduel.agents.contextual import EstimatorName
from fairduel.core.compiling import compiled
from fairduel.core.information import AFRESH, HIGH_DIMENSION, dot, gram_rank_one, products, rank_one, squared_width
from fairduel.core.likelihood import add_outcome, newton, predicted, worth_a_fit
from fairduel.core.links import as_link, probability, slope
from fairduel.core.mirror_descent import STEP, mirror_step
from fairduel.core.selection import (
    FEW,
    informative_pair,
    informative_pair_by_gram,
    perturbations,
    perturbed_pair,
    perturbed_pair_by_gram,
    random_pair,
    symmetric_pair,
    symmetric_pair_by_gram,
    uncertainty_weight,
)
from fairduel.duel import Matrix, Vector
from fairduel.errors import BadInputError, ConvergenceError
from fairduel.simulation.play import Player, Trace
from fairduel.worlds import DuelingWorld, FixedWorld, Fresh, Offer, Replay, World
from fairduel.worlds.fresh import rewards_of, unit_rows

_AGENTS: list[type[ContextualAgent]] = [RCDB, RCDBS, MaxPairUCB, MaxInP, CoLSTIM]
_RCDB, _RCDBS, _MAXPAIRUCB, _MAXINP, _COLSTIM = range(5)
_ATTACKS: list[type[Adversary]] = [NoAttack, Greedy, Random, Adversarial, Misleading, Hiding]
_ESTIMATORS = get_args(EstimatorName)
_EXACT, _LAZY, _ONE_PASS = range(3)
_NONE, _GREEDY, _RANDOM, _ADVERSARIAL, _MISLEADING, _HIDING = range(6)


class AgentPlan(NamedTuple):
    """An agent's settings as numbers, and its schedules, each of shape (T,)."""

    kind: int
    ridge: float
    kappa: float
    trust: float
    design_slope: float
    warmup: int
    self_duels: bool
    link_kind: int
    link_scale: float
    paper_coupling: bool
    gaussian: bool
    estimator: int
    norm_bound: float
    radius: Vector
    slope_radius: Vector
    mixing: Vector
    threshold: Vector


class AttackPlan(NamedTuple):
    """An attack's settings as numbers."""

    kind: int
    budget: int
    probability: float
    rank: int
    """Of the misleading target among fresh rewards; −1 where ``targets`` says it."""
    targets: NDArray[np.int64]
    """The misleading target in each of the world's sets, shape (s,)."""


class WorldPlan(NamedTuple):
    """A world as arrays: s sets of actions, one of them a round; a fresh one draws its own instead."""

    is_fresh: bool
    starts: NDArray[np.int64]
    """Where each set begins among all actions, and how many there are, shape (s + 1,)."""
    actions: Matrix
    """Of all sets, one after another, shape (n, d)."""
    rewards: Vector
    """Shape (n,)."""
    chance_starts: NDArray[np.int64]
    """Where each set begins in ``chances``, shape (s + 1,); empty where chances are a matter of the link."""
    chances: Vector
    """P(row beats column) for the K² pairs of each set, one set after another."""
    parameter: Vector
    link_kind: int
    link_scale: float


@compiled
def _choose(  # noqa: PLR0911  # two returns a rule
    agent: AgentPlan,
    t: int,
    actions: Matrix,
    theta: Vector,
    inverse: Matrix,
    gram: Matrix,
    rng: np.random.Generator,
) -> tuple[int, int]:
    """What ``ask`` chooses in round t, counted from 0, before first and second are drawn.

    ``inverse`` is of the matrix that the agent explores by, and ``gram`` XΣ⁻¹Xᵀ by it, or empty.
    """
    radius = agent.radius[t]
    if t < agent.warmup:
        return random_pair(len(actions), rng.random())
    if agent.kind == _MAXINP:
        if gram.size:
            return informative_pair_by_gram(products(actions, theta), gram, radius, agent.self_duels, rng.random())
        return informative_pair(actions, theta, inverse, radius, agent.self_duels, rng.random())
    if agent.kind == _COLSTIM:
        own = (rng.random() < agent.mixing[t]) == agent.paper_coupling
        draws = rng.standard_normal(len(actions)) if agent.gaussian else rng.random(len(actions))
        noise = perturbations(draws, own, agent.gaussian, agent.threshold[t])
        ties = (rng.random(), rng.random())
        if gram.size:
            return perturbed_pair_by_gram(products(actions, theta), gram, radius, noise, agent.self_duels, ties)
        return perturbed_pair(actions, theta, inverse, radius, noise, agent.self_duels, ties)
    if gram.size:
        return symmetric_pair_by_gram(products(actions, theta), gram, radius, agent.self_duels, rng.random())
    return symmetric_pair(actions, theta, inverse, radius, agent.self_duels, rng.random())


@compiled
def _wants_flip(  # noqa: PLR0911  # one return an attack
    attack: AttackPlan,
    rewards: Vector,
    target: int,
    winner: int,
    loser: int,
    probability_of_outcome: float,
    hidden: int,
    rng: np.random.Generator,
) -> tuple[bool, int]:
    """What ``wants_flip`` answers, and how often the best action was hidden by now."""
    if attack.kind == _GREEDY:
        return True, hidden
    if attack.kind == _RANDOM:
        return rng.random() < attack.probability, hidden
    if attack.kind == _ADVERSARIAL:
        return probability_of_outcome > 0.5, hidden
    if winner == loser:
        return False, hidden
    if attack.kind == _MISLEADING:
        return loser == (target if attack.rank < 0 else ranked_action(rewards, attack.rank)), hidden
    if attack.kind == _HIDING and np.argmax(rewards) in (winner, loser) and hidden < attack.budget:
        return rng.random() < 0.5, hidden + 1
    return False, hidden


@compiled
def run(  # noqa: C901, PLR0912, PLR0915  # one round after another: the loop of Algorithm 1
    agent: AgentPlan,
    attack: AttackPlan,
    world: WorldPlan,
    shown: NDArray[np.int64],
    world_rng: np.random.Generator,
    label_rng: np.random.Generator,
    adversary_rng: np.random.Generator,
    agent_rng: np.random.Generator,
) -> tuple[Matrix, Matrix, NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_], float]:
    """Play all rounds; return the columns of :class:`Trace` and the largest gradient over its tolerance.

    ``shown`` (T,) says which of the world's sets is offered in each round. The float columns are (5, T): regret, weak
    regret, weight, width, slope; then come the estimates (T, d).
    """
    horizon = agent.radius.size
    d = world.actions.shape[1]
    columns, estimates = np.empty((5, horizon)), np.empty((horizon, d))
    firsts, seconds = np.empty(horizon, np.int32), np.empty(horizon, np.int32)
    flipped = np.zeros(horizon, np.bool_)

    theta, root = np.zeros(d), np.empty((0, 0))
    matrix, inverse = agent.ridge * np.eye(d), np.eye(d) / agent.ridge
    local_matrix, local_inverse = matrix.copy(), inverse.copy()
    steering = local_inverse if agent.kind == _RCDBS else inverse
    keeps_gram = not world.is_fresh and world.starts.size == 2 and len(world.actions) <= FEW
    gram = np.empty((0, 0))
    curvature, inverse_curvature = matrix.copy(), inverse.copy()
    room = 1 if agent.estimator == _ONE_PASS else horizon + 1
    differences, weights, wins = np.empty((room, d)), np.empty(room), np.empty(room)
    slots = np.full(2 * room, -1)
    updates = told = fitted_outcomes = rows = spent = hidden = 0
    log_determinant, fitted_at = d * math.log(agent.ridge), -np.inf
    worst = 0.0
    place, actions, rewards, best_reward = -1, world.actions, world.rewards, 0.0

    for t in range(horizon):
        if shown[t] != place:
            place = shown[t]
            begin, end = world.starts[place], world.starts[place + 1]
            actions, rewards = world.actions[begin:end], world.rewards[begin:end]
            best_reward = np.max(rewards)
        if world.is_fresh:
            actions = unit_rows(world_rng.standard_normal(actions.shape))
            rewards = rewards_of(actions, world.parameter)
            best_reward = np.max(rewards)

        # The agent asks.
        if keeps_gram and updates % AFRESH == 0:
            gram = (actions @ steering) @ actions.T
        first, second = _choose(agent, t, actions, theta, steering, gram, agent_rng)
        if agent_rng.random() < 0.5:
            first, second = second, first
        difference = actions[first] - actions[second]
        width = math.sqrt(squared_width(inverse, difference))
        weight = uncertainty_weight(agent.trust, width)
        steering_slope = agent.design_slope
        if agent.kind == _RCDBS:
            largest = abs(dot(difference, theta)) + agent.slope_radius[t] * width
            steering_slope = max(agent.kappa, slope(agent.link_kind, agent.link_scale, largest))
        if first != second:
            updates += 1
            pivot = rank_one(matrix, inverse, difference, weight * agent.design_slope, updates)
            log_determinant += math.log(pivot)
            if agent.kind == _RCDBS:
                rank_one(local_matrix, local_inverse, difference, weight * steering_slope, updates)
            if keeps_gram:
                gram_rank_one(gram, first, second, weight * steering_slope)

        # The world answers, and the adversary flips.
        low, high = min(first, second), max(first, second)
        if world.chance_starts.size:
            p_low = world.chances[world.chance_starts[place] + low * len(actions) + high]
        else:
            p_low = probability(world.link_kind, world.link_scale, rewards[low] - rewards[high])
        low_won = label_rng.random() < p_low
        first_won = low_won == (first == low)
        if spent < attack.budget:
            winner, loser = (first, second) if first_won else (second, first)
            p_outcome = p_low if low_won else 1.0 - p_low
            target = attack.targets[place]
            flipped[t], hidden = _wants_flip(attack, rewards, target, winner, loser, p_outcome, hidden, adversary_rng)
            spent += flipped[t]

        # The agent is told.
        if first != second:
            share = 1.0 if first_won != flipped[t] else 0.0
            told += 1
            if agent.estimator == _ONE_PASS:
                theta = mirror_step(
                    theta,
                    curvature,
                    inverse_curvature,
                    told,
                    difference,
                    weight,
                    share,
                    STEP,
                    agent.norm_bound,
                    agent.link_kind,
                    agent.link_scale,
                )
            else:
                rows = add_outcome(differences, weights, wins, slots, rows, difference, weight, share)
            gain = log_determinant - fitted_at
            if agent.estimator == _EXACT or (agent.estimator == _LAZY and worth_a_fit(gain, fitted_outcomes, told)):
                fitted_at, fitted_outcomes = log_determinant, told
                start = theta
                if agent.estimator == _EXACT:
                    start = predicted(theta, root, difference, weight, share, agent.link_kind, agent.link_scale)
                theta, root, gradient, tolerance, _ = newton(
                    start,
                    differences[:rows],
                    weights[:rows],
                    wins[:rows],
                    agent.ridge,
                    agent.link_kind,
                    agent.link_scale,
                )
                worst = max(worst, gradient / tolerance)

        firsts[t], seconds[t] = first, second
        columns[0, t] = 2.0 * best_reward - rewards[first] - rewards[second]
        columns[1, t] = best_reward - max(rewards[first], rewards[second])
        columns[2, t], columns[3, t], columns[4, t] = weight, width, steering_slope
        estimates[t] = theta
    return columns, estimates, firsts, seconds, flipped, worst


def play_whole_run(
    agent: Player, world: World, adversary: Adversary, *, horizon: int, labels: np.random.Generator
) -> Trace | None:
    """Play like :func:`~fairduel.simulation.play.play`, compiled; ``None``, with nothing done, where that cannot be.

    The agent and the adversary only lend their settings and random streams: they learn nothing themselves.
    """
    agent_plan, world_plan = _plan_agent(agent, horizon), _plan_world(world)
    attack_plan = _plan_attack(adversary, world_plan) if world_plan else None
    if agent_plan is None or attack_plan is None or world_plan is None:
        return None
    assert isinstance(agent, ContextualAgent)
    if agent.dimension != world.dimension:
        raise BadInputError(f"the agent has {agent.dimension} features and the world's actions have {world.dimension}.")
    if not world_plan.is_fresh:
        checked_actions(world_plan.actions, agent.dimension)
    agent_rng = np.random.Generator(np.random.PCG64(agent.seed))
    world_rng = world.rng if isinstance(world, Fresh) else agent_rng
    shown = [world.draw() for _ in range(horizon)] if isinstance(world, Replay) else [0] * horizon
    began = time.thread_time()
    try:
        columns, estimates, first, second, flipped, worst = run(
            agent_plan, attack_plan, world_plan, np.array(shown), world_rng, labels, adversary.rng, agent_rng
        )
    except np.linalg.LinAlgError:
        raise ConvergenceError(
            "an estimate was not reached, because its Hessian is singular: use a larger ridge."
        ) from None
    if not worst <= 1.0:
        raise ConvergenceError(f"an estimate was not reached: its gradient is {worst:.2g} times what is allowed.")
    return Trace(
        regret=columns[0],
        weak_regret=columns[1],
        first=first,
        second=second,
        corruption=flipped.astype(np.float64),
        weight=columns[2],
        width=columns[3],
        slope=columns[4],
        estimate_norm=np.linalg.norm(estimates, axis=1),
        estimates=estimates,
        seconds=time.thread_time() - began,
    )


def can_run_whole(agent: Player, world: World, adversary: Adversary) -> bool:
    """Whether :func:`play_whole_run` would play this."""
    world_plan = _plan_world(world)
    return world_plan is not None and bool(_plan_agent(agent, 1) and _plan_attack(adversary, world_plan))


def _plan_attack(adversary: Adversary, world: WorldPlan) -> AttackPlan | None:
    if type(adversary) not in _ATTACKS or adversary.spent:
        return None
    rank, targets = -1, np.zeros(len(world.starts) - 1, np.int64)
    if isinstance(adversary, Misleading) and adversary.budget:
        sets = np.split(world.rewards, world.starts[1:-1])
        if world.is_fresh:  # fresh rewards have no ties, so that any other without ties ranks alike
            rank = adversary.rank(np.arange(len(sets[0]), dtype=float))
        targets = np.array([adversary.target_among(rewards) for rewards in sets])
    return AttackPlan(
        kind=_ATTACKS.index(type(adversary)),
        budget=int(adversary.budget),
        probability=adversary.probability if isinstance(adversary, Random) else 0.0,
        rank=rank,
        targets=targets,
    )


def _plan_world(world: World) -> WorldPlan | None:
    """Return the plan of a built-in world, or ``None`` where only the plain driver serves."""
    if not isinstance(world, DuelingWorld) or world.dimension >= HIGH_DIMENSION:
        return None
    chances = None
    if type(world) is Fresh:
        offers = [Offer(np.zeros((world.count, world.dimension)), np.zeros(world.count))]
    elif type(world) is Replay:
        offers = [Offer(context.actions, context.rewards) for context in world.contexts]
        chances = [context.shares for context in world.contexts]
    elif isinstance(world, FixedWorld) and type(world).offer is FixedWorld.offer:
        offers = [world.offer(1)]
        if type(world).win_probability is not DuelingWorld.win_probability:
            rewards, places = offers[0].rewards, range(world.arms)
            chances = [np.array([[world.win_probability(rewards, i, j) for j in places] for i in places])]
    else:
        return None
    sizes = np.array([len(offer.rewards) for offer in offers])
    return WorldPlan(
        is_fresh=type(world) is Fresh,
        starts=_starts(sizes),
        actions=np.concatenate([offer.actions for offer in offers]),
        rewards=np.concatenate([offer.rewards for offer in offers]),
        chance_starts=_starts(sizes**2) if chances else np.empty(0, np.int64),
        chances=np.concatenate([table.ravel() for table in chances]) if chances else np.empty(0),
        parameter=world.parameter if type(world) is Fresh else np.zeros(world.dimension),
        link_kind=world.link.kind,
        link_scale=world.link.scale,
    )


def _starts(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each of things of these ``sizes`` (s,) begins if they stand one after another, and where all end."""
    return np.concatenate([[0], np.cumsum(sizes)])


def _plan_agent(agent: Player, horizon: int) -> AgentPlan | None:
    """Return the plan of a built-in agent that has not asked yet, or ``None`` where only the plain driver serves."""
    if not isinstance(agent, ContextualAgent) or type(agent) not in _AGENTS:
        return None
    if agent.constrained or agent.radius == "determinant" or agent.asked:
        return None
    settings = agent.settings
    link = as_link(settings["link"])
    robust = isinstance(agent, (RCDB, RCDBS))
    radius = _schedule(agent.radius_at, horizon)
    slope_radius = mixing = np.zeros(1)
    threshold = radius
    if isinstance(agent, RCDBS):
        slope_radius = _schedule(agent.slope_radius_at, horizon)
    if isinstance(agent, CoLSTIM):
        mixing = _schedule(agent.mixing_at, horizon)
        threshold = radius if agent.threshold is None else np.full(horizon, agent.threshold)
    return AgentPlan(
        kind=_AGENTS.index(type(agent)),
        ridge=settings["ridge"],
        kappa=settings["kappa"],
        trust=settings["trust"] if robust else math.inf,
        design_slope=settings["kappa"] if settings.get("design") == "kappa" else 1.0,
        warmup=agent.warmup,
        self_duels=agent.self_duels,
        link_kind=link.kind,
        link_scale=link.scale,
        paper_coupling=isinstance(agent, CoLSTIM) and agent.coupling == "paper",
        gaussian=isinstance(agent, CoLSTIM) and agent.gaussian,
        estimator=_ESTIMATORS.index(agent.estimator),
        norm_bound=float(agent.norm_bound),
        radius=radius,
        slope_radius=slope_radius,
        mixing=mixing,
        threshold=threshold,
    )


def _schedule(at: Callable[[int], float], horizon: int) -> Vector:
    """What ``at`` gives for rounds 1 to T, shape (T,); all of them are monotone, so equal ends mean one value."""
    first, last = at(1), at(horizon)
    return np.full(horizon, first) if first == last else np.array([at(t) for t in range(1, horizon + 1)])
