"""One run: an agent plays a world against an adversary, round by round."""

import collections
import functools
import math
import operator
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from fairduel.adversaries import (
    ATTACKS,
    REWARD_ATTACKS,
    Adversary,
    FlippingAdversary,
    NoAttack,
    PullSight,
    RewardAdversary,
    Sight,
)
from fairduel.core.compiling import inlined
from fairduel.core.information import HIGH_DIMENSION
from fairduel.delays import Delay, NoDelay
from fairduel.duel import Matrix, Outcome, Vector
from fairduel.errors import BadInputError
from fairduel.worlds.world import DuelingWorld, Offer, RewardWorld, World


class Player(Protocol):
    """What a run needs of an agent.

    ``ask`` gets the actions (K, d). In a dueling world it returns a pair of indices, or any object with ``first`` and
    ``second``; in a reward world an index, or any object with ``action``. ``tell`` gets back what ``ask`` returned,
    with the outcome or the reward. A world with features that are seen only after serving shows them to ``serve``, if
    there is such a method: it gets what ``ask`` returned and the features (2, d), and returns what to pass to ``tell``.
    """

    def ask(self, actions: Matrix, /) -> Any:
        """Choose a duel, or a pull."""

    def tell(self, asked: Any, answer: Any, /) -> None:
        """Learn its outcome, or its reward."""


class Streams(NamedTuple):
    """The separate random streams of one seed; all agents with that seed share all but their own."""

    world: np.random.Generator
    labels: np.random.Generator
    adversary: np.random.Generator
    agent_seed: int
    delays: np.random.Generator

    @classmethod
    def of(cls, seed: int) -> "Streams":
        """Spawn the streams of ``seed``."""
        world, labels, adversary, agent, delays = np.random.SeedSequence(seed).spawn(5)
        return cls(
            np.random.Generator(np.random.PCG64(world)),
            np.random.Generator(np.random.PCG64(labels)),
            np.random.Generator(np.random.PCG64(adversary)),
            int(agent.generate_state(1, np.uint32)[0]),
            np.random.Generator(np.random.PCG64(delays)),
        )


@dataclass(frozen=True, slots=True)
class Trace:
    """What happened in each of the T rounds; every array but ``estimates`` has shape (T,).

    Args:
        regret: 2r* − r_a − r_b, the paper's average regret; r* − r_a for a pull.
        weak_regret: r* − max(r_a, r_b); the same as ``regret`` for a pull.
        first: Index of the first action.
        second: Index of the second action; −1 for a pull.
        corruption: Absolute value of c_t: 1 for a flip, or the change of a reward.
        tied: Which duels were ties.
        weight: w_t; 1 for agents without weights.
        width: ‖φ_t‖_Σ⁻¹, or ‖φ_t‖_H⁻¹ of GINOP and HCW; NaN for agents without Σ.
        slope: v_t of RCDB-S, σ′(φ_tᵀθ) of GINOP and HCW, κ or 1 of others; NaN for agents without one.
        estimate_norm: ‖θ_{t+1}‖, after the round; NaN for agents without an estimate.
        estimates: θ_{t+1}, shape (T, d); shape (T, 0) for agents without an estimate, and for d ≥ 64 to save memory.
        seconds: CPU time of the run.
    """

    regret: Vector
    weak_regret: Vector
    first: NDArray[np.int32]
    second: NDArray[np.int32]
    corruption: Vector
    tied: NDArray[np.bool_]
    weight: Vector
    width: Vector
    slope: Vector
    estimate_norm: Vector
    estimates: Matrix
    seconds: float

    @property
    def flipped(self) -> NDArray[np.bool_]:
        """Which answers were corrupted."""
        return np.asarray(self.corruption != 0)

    @property
    def self_duels(self) -> NDArray[np.bool_]:
        """Which rounds set an action against itself."""
        return np.asarray(self.first == self.second)

    @property
    def locked_in(self) -> bool:
        """Whether at least 90% of the last quarter were self-duels with regret."""
        tail = slice(3 * len(self.regret) // 4, None)
        costly = self.self_duels[tail] & (self.regret[tail] > 1e-9)
        return bool(costly.mean() >= 0.9)


def play(
    agent: Player,
    world: World,
    adversary: Adversary,
    *,
    horizon: int,
    labels: np.random.Generator,
    delay: Delay | None = None,
) -> Trace:
    """Play ``horizon`` rounds of the paper's loop and return what happened.

    Args:
        agent: Anything with ``ask`` and ``tell``.
        world: Offers actions and answers.
        adversary: Corrupts answers; it must fit the world.
        horizon: T, the number of rounds.
        labels: Random stream of the true outcomes.
        delay: How late answers arrive; ``None`` for at once.

    >>> from fairduel import RCDB
    >>> from fairduel.adversaries import Greedy
    >>> from fairduel.worlds import Hypercube
    >>> streams = Streams.of(0)
    >>> world = Hypercube(rng=streams.world)
    >>> agent = RCDB(dimension=5, norm_bound=2.0, flip_budget=3, horizon=20, seed=streams.agent_seed)
    >>> trace = play(agent, world, Greedy(budget=3), horizon=20, labels=streams.labels)
    >>> trace.flipped.nonzero()[0].tolist()
    [0, 1, 2]
    """
    if horizon < 1:
        raise BadInputError(f"horizon must be at least 1, not {horizon}.")
    answer = referee(world, adversary)
    delay = delay or NoDelay()
    arriving: collections.defaultdict[int, list[tuple[Any, Any]]] = collections.defaultdict(list)
    names = ("regret", "weak_regret", "corruption", "width", "slope", "estimate_norm")
    columns = {name: np.full(horizon, np.nan) for name in names}
    weight, tied = np.ones(horizon), np.zeros(horizon, np.bool_)
    first, second = np.zeros(horizon, np.int32), np.zeros(horizon, np.int32)
    has_estimate = hasattr(agent, "estimate")
    kept = len(agent.estimate) if has_estimate else 0  # type: ignore[attr-defined]  # checked above
    estimates = np.empty((horizon, kept if kept < HIGH_DIMENSION else 0))
    began = time.thread_time()
    for t in range(horizon):
        offer = world.offer(t + 1)
        asked = agent.ask(offer.actions)
        first[t], second[t], told, columns["corruption"][t] = answer(t + 1, offer, asked, labels.random(), agent)
        asked = _served(world, agent, asked, first[t], second[t])
        better, is_flipped = _better(offer.rewards, first[t], second[t]), columns["corruption"][t] != 0.0
        arriving[t + delay.rounds_late(better, is_flipped=is_flipped)].append((asked, told))
        for arrived in arriving.pop(t, ()):
            agent.tell(*arrived)
        tied[t] = told is Outcome.TIE

        columns["regret"][t], columns["weak_regret"][t] = true_regrets(offer.rewards, first[t], second[t])
        weight[t] = getattr(asked, "weight", 1.0)
        columns["width"][t] = getattr(asked, "width", np.nan)
        columns["slope"][t] = getattr(asked, "slope", np.nan)
        if has_estimate:
            estimate = agent.estimate  # type: ignore[attr-defined]
            columns["estimate_norm"][t] = np.sqrt(estimate @ estimate)
            estimates[t] = estimate[: estimates.shape[1]]
    seconds = time.thread_time() - began
    return Trace(**columns, first=first, second=second, tied=tied, weight=weight, estimates=estimates, seconds=seconds)


def _served(world: World, agent: Player, asked: Any, first: int, second: int) -> Any:
    """Show the agent what is seen only after serving, if there is anything and it can use it."""
    features = world.served(first, second) if isinstance(world, DuelingWorld) else None
    return asked if features is None or not hasattr(agent, "serve") else agent.serve(asked, features)


def _better(rewards: Vector, first: int, second: int) -> float:
    """Return the larger true reward of what was asked; the second of a pull is −1."""
    return float(max(rewards[first], rewards[second if second >= 0 else first]))


def true_regrets(rewards: Vector, first: int, second: int) -> tuple[float, float]:
    """Return the average and the weak regret; both are the same for a pull, whose second is −1."""
    best = rewards.max()
    if second < 0:
        return best - rewards[first], best - rewards[first]
    return regrets(rewards, best, first, second)


Answered = tuple[int, int, Outcome | float, float]
"""Both actions (the second is −1 for a pull), what the agent is told, and the size of c_t."""


def referee(
    world: World, adversary: Adversary, names: tuple[str, str] | None = None
) -> Callable[[int, Offer, Any, float, Player], Answered]:
    """Return the function that answers in this world, corrupted by this adversary; ``names`` are theirs in errors."""
    if isinstance(world, DuelingWorld) and isinstance(adversary, FlippingAdversary):
        return functools.partial(_answer_duel, world, adversary)
    if isinstance(world, RewardWorld) and isinstance(adversary, RewardAdversary):
        return functools.partial(_answer_pull, world, adversary)
    if isinstance(world, RewardWorld) and isinstance(adversary, NoAttack):
        return functools.partial(_answer_pull, world, None)
    place, attack = names or (type(world).__name__, type(adversary).__name__)
    if isinstance(world, RewardWorld):
        does, returned, fitting = "flips duels", "rewards", [*REWARD_ATTACKS, "none"]
    else:
        does, returned, fitting = "changes rewards", "duels", [name for name in ATTACKS if name not in REWARD_ATTACKS]
    raise BadInputError(
        f"attack {attack} {does}, but world {place} returns {returned}; use {', '.join(fitting[:-1])} or {fitting[-1]}."
    )


def _answer_duel(
    world: DuelingWorld,
    adversary: FlippingAdversary,
    round_number: int,
    offer: Offer,
    asked: Any,
    uniform: float,
    agent: Player,
) -> Answered:
    first, second = _pair(asked, len(offer.actions))
    sight = _see(round_number, offer, first, second, world, uniform)
    sight = replace(sight, weight=getattr(asked, "weight", 1.0), width=getattr(asked, "width", math.nan))
    if adversary.watches and hasattr(agent, "standing"):
        sight = replace(sight, **agent.standing(asked, offer.actions)._asdict())
    flipped = adversary.flips(sight)
    return first, second, sight.outcome.flipped if flipped else sight.outcome, float(flipped)


def _answer_pull(
    world: RewardWorld,
    adversary: RewardAdversary | None,
    round_number: int,
    offer: Offer,
    asked: Any,
    uniform: float,
    agent: Player,  # noqa: ARG001  # attacks on rewards do not watch it
) -> Answered:
    action = _action(asked, len(offer.actions))
    reward = world.reward(offer.rewards[action], uniform)
    sight = PullSight(round_number, offer.actions, offer.rewards, action, reward)
    added = adversary.corruption(sight) if adversary else 0.0
    return action, -1, reward + added, abs(added)


def _pair(duel: Any, count: int) -> tuple[int, int]:
    try:
        first, second = (duel.first, duel.second) if hasattr(duel, "first") else duel
        first, second = operator.index(first), operator.index(second)
        if 0 <= first < count and 0 <= second < count:
            return first, second
    except (TypeError, ValueError):
        pass
    raise BadInputError(f"ask must return a duel or a pair of indices below {count}, but it returned {duel!r}.")


def _action(pull: Any, count: int) -> int:
    try:
        action = operator.index(getattr(pull, "action", pull))
        if 0 <= action < count:
            return action
    except TypeError:
        pass
    raise BadInputError(f"ask must return a pull or an index below {count}, but it returned {pull!r}.")


def _see(round_number: int, offer: Offer, first: int, second: int, world: DuelingWorld, uniform: float) -> Sight:
    """Draw the true outcome l_t."""
    chances = world.chances(offer.rewards, min(first, second), max(first, second))
    share, probability = true_share(uniform, first, second, *chances)
    outcome = {1.0: Outcome.FIRST, 0.0: Outcome.SECOND}.get(share, Outcome.TIE)
    return Sight(round_number, offer.actions, offer.rewards, first, second, outcome, probability)


# ---------------------------------------------------------------------- shared with compiled runs


@inlined
def true_share(uniform: float, first: int, second: int, low_wins: float, ties: float) -> tuple[float, float]:
    """Draw the true outcome l_t; return the first action's share of the win (1, 0 or ½) and the outcome's probability.

    ``low_wins`` and ``ties`` are P(the action of lower index wins) and P(tie). The winner depends on ``uniform`` but
    not on which side an action stands, so that agents with the same seed and pair get the same answer.
    """
    if low_wins <= uniform < low_wins + ties:
        return 0.5, ties
    low_won = uniform < low_wins
    share = 1.0 if low_won == (first <= second) else 0.0
    return share, low_wins if low_won else 1.0 - low_wins - ties


@inlined
def regrets(rewards: Vector, best: float, first: int, second: int) -> tuple[float, float]:
    """Return the average and the weak regret of a duel, given the true rewards (K,)."""
    return 2.0 * best - rewards[first] - rewards[second], best - max(rewards[first], rewards[second])
