"""One run: an agent in a world, against an adversary, round by round."""

import functools
import operator
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from fairduel.adversaries import Adversary, FlippingAdversary, NoAttack, PullSight, RewardAdversary, Sight
from fairduel.core.information import HIGH_DIMENSION
from fairduel.duel import Matrix, Outcome, Vector
from fairduel.errors import BadInputError
from fairduel.simulation.referee import regrets, true_share
from fairduel.worlds.base import DuelingWorld, Offer, RewardWorld, World


class Player(Protocol):
    """All that a run asks of an agent.

    ``ask`` gets the actions (K, d). Where duels are answered it returns anything with ``first`` and ``second``, or that
    pair of indices itself; where rewards are, anything with ``action``, or that index. ``tell`` gets back what ``ask``
    returned, with the outcome or the reward.
    """

    def ask(self, actions: Matrix, /) -> Any:
        """Choose a duel, or a pull."""

    def tell(self, asked: Any, answer: Any, /) -> None:
        """Learn its outcome, or its reward."""


class Streams(NamedTuple):
    """The separate random streams of one seed; agents of the same seed meet the same first three."""

    world: np.random.Generator
    labels: np.random.Generator
    adversary: np.random.Generator
    agent_seed: int

    @classmethod
    def of(cls, seed: int) -> "Streams":
        """Return the streams of ``seed``."""
        world, labels, adversary, agent = np.random.SeedSequence(seed).spawn(4)
        return cls(
            np.random.Generator(np.random.PCG64(world)),
            np.random.Generator(np.random.PCG64(labels)),
            np.random.Generator(np.random.PCG64(adversary)),
            int(agent.generate_state(1, np.uint32)[0]),
        )


@dataclass(frozen=True, slots=True)
class Trace:
    """What happened in each of the T rounds; every array but ``estimates`` has shape (T,)."""

    regret: Vector
    """2r* − r_a − r_b of each round, the paper's average regret; of a pull r* − r_a."""
    weak_regret: Vector
    """r* − max(r_a, r_b) of each round; of a pull the same as its regret."""
    first: NDArray[np.int32]
    second: NDArray[np.int32]
    """Index of the second action; −1 for a pull, which has none."""
    corruption: Vector
    """|c_t|: 1 for a flip, or what was added to or taken off a reward."""
    tied: NDArray[np.bool_]
    """Which duels were ties."""
    weight: Vector
    """w_t; 1 for agents that do not weigh."""
    width: Vector
    """‖φ_t‖_Σ⁻¹; NaN for agents that have none."""
    slope: Vector
    """v_t of RCDB-S, κ or 1 of others; NaN for agents that have none."""
    estimate_norm: Vector
    """‖θ_{t+1}‖, the estimate after the round; NaN for agents that have none."""
    estimates: Matrix
    """θ_{t+1} itself, shape (T, d); (T, 0) for agents that have none, and for d ≥ 64, which would fill the memory."""
    seconds: float
    """Processor time of the run."""

    @property
    def flipped(self) -> NDArray[np.bool_]:
        """Which answers were corrupted."""
        return np.asarray(self.corruption != 0)

    @property
    def self_duels(self) -> NDArray[np.bool_]:
        """Which rounds asked an action against itself."""
        return np.asarray(self.first == self.second)

    @property
    def locked_in(self) -> bool:
        """Whether the last quarter was spent, to nine tenths, on self-duels that cost regret."""
        tail = slice(3 * len(self.regret) // 4, None)
        costly = self.self_duels[tail] & (self.regret[tail] > 1e-9)
        return bool(costly.mean() >= 0.9)


def play(agent: Player, world: World, adversary: Adversary, *, horizon: int, labels: np.random.Generator) -> Trace:
    """Play ``horizon`` rounds of the paper's loop and return what happened.

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
        raise BadInputError(f"a run needs a horizon of at least 1 round, not {horizon}.")
    answer = referee(world, adversary)
    columns = {name: np.full(horizon, np.nan) for name in ("regret", "weak", "corruption", "width", "slope", "norm")}
    weight, tied = np.ones(horizon), np.zeros(horizon, np.bool_)
    first, second = np.zeros(horizon, np.int32), np.zeros(horizon, np.int32)
    has_estimate = hasattr(agent, "estimate")
    kept = len(agent.estimate) if has_estimate else 0  # type: ignore[attr-defined]  # asked for above
    estimates = np.empty((horizon, kept if kept < HIGH_DIMENSION else 0))
    began = time.thread_time()
    for t in range(horizon):
        offer = world.offer(t + 1)
        asked = agent.ask(offer.actions)
        first[t], second[t], told, columns["corruption"][t] = answer(t + 1, offer, asked, labels.random())
        agent.tell(asked, told)
        tied[t] = told is Outcome.TIE

        columns["regret"][t], columns["weak"][t] = _regrets(offer.rewards, first[t], second[t])
        weight[t] = getattr(asked, "weight", 1.0)
        columns["width"][t] = getattr(asked, "width", np.nan)
        columns["slope"][t] = getattr(asked, "slope", np.nan)
        if has_estimate:
            estimate = agent.estimate  # type: ignore[attr-defined]
            columns["norm"][t] = np.sqrt(estimate @ estimate)
            estimates[t] = estimate[: estimates.shape[1]]
    return Trace(
        regret=columns["regret"],
        weak_regret=columns["weak"],
        first=first,
        second=second,
        corruption=columns["corruption"],
        tied=tied,
        weight=weight,
        width=columns["width"],
        slope=columns["slope"],
        estimate_norm=columns["norm"],
        estimates=estimates,
        seconds=time.thread_time() - began,
    )


def _regrets(rewards: Vector, first: int, second: int) -> tuple[float, float]:
    """The average and the weak regret of a duel; of a pull, whose second is −1, both are the same."""
    best = rewards.max()
    if second < 0:
        return best - rewards[first], best - rewards[first]
    return regrets(rewards, best, first, second)


Answered = tuple[int, int, Outcome | float, float]
"""Which two actions were shown (the second is −1 for a pull), what the agent is told, and |c_t|."""


def referee(world: World, adversary: Adversary) -> Callable[[int, Offer, Any, float], Answered]:
    """Who answers what is asked in this world, corrupted by this adversary."""
    if isinstance(world, DuelingWorld) and isinstance(adversary, FlippingAdversary):
        return functools.partial(_answer_duel, world, adversary)
    if isinstance(world, RewardWorld) and isinstance(adversary, RewardAdversary):
        return functools.partial(_answer_pull, world, adversary)
    if isinstance(world, RewardWorld) and isinstance(adversary, NoAttack):
        return functools.partial(_answer_pull, world, None)
    what = "rewards" if isinstance(world, RewardWorld) else "duels"
    raise BadInputError(
        f"the world {type(world).__name__} answers with {what}, which {type(adversary).__name__} cannot corrupt."
    )


def _answer_duel(
    world: DuelingWorld, adversary: FlippingAdversary, round_number: int, offer: Offer, asked: Any, uniform: float
) -> Answered:
    first, second = _pair(asked, len(offer.actions))
    sight = _see(round_number, offer, first, second, world, uniform)
    flipped = adversary.flips(sight)
    return first, second, sight.outcome.flipped if flipped else sight.outcome, float(flipped)


def _answer_pull(
    world: RewardWorld, adversary: RewardAdversary | None, round_number: int, offer: Offer, asked: Any, uniform: float
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
    raise BadInputError(f"ask must return a duel or a pair of indices below {count}, and this agent returned {duel!r}.")


def _action(pull: Any, count: int) -> int:
    try:
        action = operator.index(getattr(pull, "action", pull))
        if 0 <= action < count:
            return action
    except TypeError:
        pass
    raise BadInputError(f"ask must return a pull or an index below {count}, and this agent returned {pull!r}.")


def _see(round_number: int, offer: Offer, first: int, second: int, world: DuelingWorld, uniform: float) -> Sight:
    """Draw the true outcome l_t."""
    chances = world.chances(offer.rewards, min(first, second), max(first, second))
    share, probability = true_share(uniform, first, second, *chances)
    outcome = {1.0: Outcome.FIRST, 0.0: Outcome.SECOND}.get(share, Outcome.TIE)
    return Sight(round_number, offer.actions, offer.rewards, first, second, outcome, probability)
