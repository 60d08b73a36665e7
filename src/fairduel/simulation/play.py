"""One run: an agent in a world, against an adversary, round by round."""

import operator
import time
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from fairduel.adversaries.base import Adversary, Sight
from fairduel.duel import Matrix, Outcome, Vector
from fairduel.errors import BadInputError
from fairduel.links import probability
from fairduel.worlds.base import World


class Player(Protocol):
    """All that a run asks of an agent.

    ``ask`` gets the actions (K, d) and returns anything with ``first`` and ``second``, or that pair of
    indices itself; ``tell`` gets back what ``ask`` returned, with the outcome.
    """

    def ask(self, actions: Matrix, /) -> Any:
        """Choose a duel."""

    def tell(self, duel: Any, outcome: Outcome, /) -> None:
        """Learn its outcome."""


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
    """What happened in each of the T rounds; every array has shape (T,)."""

    regret: Vector
    """2r* − r_a − r_b of each round, the paper's average regret."""
    weak_regret: Vector
    """r* − max(r_a, r_b) of each round."""
    first: NDArray[np.int32]
    second: NDArray[np.int32]
    flipped: NDArray[np.bool_]
    weight: Vector
    """w_t; 1 for agents that do not weigh."""
    width: Vector
    """‖φ_t‖_Σ⁻¹; NaN for agents that have none."""
    slope: Vector
    """v_t of RCDB-S, κ or 1 of others; NaN for agents that have none."""
    estimate_norm: Vector
    """‖θ_{t+1}‖, the estimate after the round; NaN for agents that have none."""
    seconds: float
    """Processor time of the run."""

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
    columns = {name: np.full(horizon, np.nan) for name in ("regret", "weak", "width", "slope", "norm")}
    weight = np.ones(horizon)
    first, second = np.zeros(horizon, np.int32), np.zeros(horizon, np.int32)
    flipped = np.zeros(horizon, np.bool_)
    has_estimate = hasattr(agent, "estimate")
    began = time.thread_time()
    for t in range(horizon):
        actions, rewards = world.offer(t + 1)
        duel = agent.ask(actions)
        a, b = first[t], second[t] = _pair(duel, len(actions))
        sight = _answer(t + 1, actions, rewards, a, b, world, labels.random())
        flipped[t] = adversary.flips(sight)
        agent.tell(duel, sight.outcome.flipped if flipped[t] else sight.outcome)

        best = rewards.max()
        columns["regret"][t] = 2.0 * best - rewards[a] - rewards[b]
        columns["weak"][t] = best - max(rewards[a], rewards[b])
        weight[t] = getattr(duel, "weight", 1.0)
        columns["width"][t] = getattr(duel, "width", np.nan)
        columns["slope"][t] = getattr(duel, "slope", np.nan)
        if has_estimate:
            estimate = agent.estimate  # type: ignore[attr-defined]  # asked for above
            columns["norm"][t] = np.sqrt(estimate @ estimate)
    return Trace(
        regret=columns["regret"],
        weak_regret=columns["weak"],
        first=first,
        second=second,
        flipped=flipped,
        weight=weight,
        width=columns["width"],
        slope=columns["slope"],
        estimate_norm=columns["norm"],
        seconds=time.thread_time() - began,
    )


def _pair(duel: Any, count: int) -> tuple[int, int]:
    try:
        first, second = (duel.first, duel.second) if hasattr(duel, "first") else duel
        first, second = operator.index(first), operator.index(second)
        if 0 <= first < count and 0 <= second < count:
            return first, second
    except (TypeError, ValueError):
        pass
    raise BadInputError(f"ask must return a duel or a pair of indices below {count}, and this agent returned {duel!r}.")


def _answer(
    round_number: int, actions: Matrix, rewards: Vector, first: int, second: int, world: World, uniform: float
) -> Sight:
    """Draw the true outcome l_t.

    The same uniform number lets the same action win whichever side it stands on, so that two agents of a
    seed that ask the same pair are told the same winner.
    """
    low, high = min(first, second), max(first, second)
    p_low = probability(world.link.kind, world.link.scale, rewards[low] - rewards[high])
    low_won = uniform < p_low
    outcome = Outcome.FIRST if low_won == (first == low) else Outcome.SECOND
    return Sight(round_number, actions, rewards, first, second, outcome, p_low if low_won else 1.0 - p_low)
