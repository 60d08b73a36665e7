"""What a world is: actions for each round, and the true rewards behind them."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairduel.checks import positive
from fairduel.core.links import Link, LinkNumbers, probability
from fairduel.core.ties import NO_TIES, TieModel, tie_model, win_and_tie
from fairduel.duel import Matrix, Vector
from fairduel.errors import BadInputError


class Offer(NamedTuple):
    """What a world puts before an agent in one round, and what it keeps to itself."""

    actions: Matrix
    """The agent sees these, shape (K, d)."""
    rewards: Vector
    """r* of each action, shape (K,); only regret, labels and strong adversaries know it."""


class World(ABC):
    """Actions for each round, and what they are truly worth; its subclasses say what an agent is told."""

    dimension: int
    """d."""
    norm_bound: float
    """B, which agents are told."""

    @abstractmethod
    def offer(self, round_number: int) -> Offer:
        """Return the actions of round t = 1, 2, … with their rewards; asked once a round, in order."""


class WorldPlan(NamedTuple):
    """A dueling world as arrays: s sets of actions, one of them a round; or one that draws its own."""

    is_fresh: bool
    """Whether each round has new actions: as many as the set has, uniform on the unit sphere."""
    starts: NDArray[np.int64]
    """Where each set begins among all actions, and how many there are, shape (s + 1,)."""
    actions: Matrix
    """Of all sets, one after another, shape (n, d)."""
    rewards: Vector
    """Shape (n,)."""
    chance_starts: NDArray[np.int64]
    """Where each set begins in ``chances``, shape (s + 1,); empty where chances are a matter of the link."""
    chances: Matrix
    """P(row beats column) and P(tie) for the K² pairs of each set, one set after another, shape (Σ K², 2)."""
    parameter: Vector
    """θ*, shape (d,), of a world that draws its own actions."""
    link: LinkNumbers
    ties: TieModel


class DuelingWorld(World):
    """A world that answers duels. P(a beats b) = σ(r*_a − r*_b), eq. (preference), unless a subclass says otherwise."""

    link: Link
    """σ."""
    parameter: Vector | None
    """θ*, shape (d,), or ``None`` where the rewards are not linear."""
    ties: TieModel = NO_TIES

    def win_probability(self, rewards: Vector, first: int, second: int) -> float:
        """P(first beats second) among actions with these true rewards (K,), if there were no ties."""
        return probability(self.link.kind, self.link.scale, rewards[first] - rewards[second])

    def chances(self, rewards: Vector, first: int, second: int) -> tuple[float, float]:
        """P(first beats second) and P(tie); an action ties with itself as it would with its twin."""
        return win_and_tie(self.ties, self.win_probability(rewards, first, second))

    def plan(self) -> WorldPlan | None:
        """The world as arrays, for a compiled run; ``None`` where only the plain driver serves."""
        return None

    def places(self, horizon: int) -> NDArray[np.int64]:
        """Which of the plan's sets is offered in each round, shape (T,)."""
        return np.zeros(horizon, np.int64)

    def _plan_of(self, offers: Sequence[Offer], chances: Sequence[Matrix] = ()) -> WorldPlan:
        """The plan of a world with these sets of actions, and tables of ``chances`` (K², 2) if the link has no say."""
        sizes = np.array([len(offer.rewards) for offer in offers])
        return WorldPlan(
            is_fresh=False,
            starts=_starts(sizes),
            actions=np.concatenate([offer.actions for offer in offers]),
            rewards=np.concatenate([offer.rewards for offer in offers]),
            chance_starts=_starts(sizes**2) if chances else np.empty(0, np.int64),
            chances=np.concatenate(chances) if chances else np.empty((0, 2)),
            parameter=np.zeros(self.dimension),
            link=self.link.numbers,
            ties=self.ties,
        )


def _starts(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each of things of these ``sizes`` (s,) begins if they stand one after another, and where all end."""
    return np.concatenate([[0], np.cumsum(sizes)])


class RewardWorld(World):
    """A world that answers a pull with a noisy reward."""

    noise: float
    """R: the reward's noise is R-sub-Gaussian; which agents are told."""

    @abstractmethod
    def reward(self, mean: float, uniform: float) -> float:
        """Turn a uniform random number into a reward of this mean."""


class FixedWorld(DuelingWorld):
    """A dueling world whose actions stay the same."""

    def __init__(
        self,
        actions: Matrix,
        rewards: Vector,
        *,
        link: Link,
        norm_bound: float,
        parameter: Vector | None,
        ties: str = "none",
    ) -> None:
        self.arms, self.dimension = actions.shape
        self.link = link
        self.norm_bound = norm_bound
        self.parameter = parameter
        self.ties = tie_model(ties)
        self._offer = Offer(actions, rewards)

    def offer(self, round_number: int) -> Offer:  # noqa: ARG002
        """Return the same actions and rewards in every round."""
        return self._offer

    def plan(self) -> WorldPlan | None:
        """The world as arrays, unless a subclass offers something else."""
        if type(self).offer is not FixedWorld.offer:
            return None
        if (type(self).win_probability, type(self).chances) == (DuelingWorld.win_probability, DuelingWorld.chances):
            return self._plan_of([self._offer])
        rewards, places = self._offer.rewards, range(self.arms)
        chances = np.array([self.chances(rewards, i, j) for i in places for j in places])
        return self._plan_of([self._offer], [chances])


def checked_dimension(dimension: int, largest: int | None = None) -> int:
    """Return ``dimension`` if it is a whole number from 1 to ``largest``."""
    if not isinstance(dimension, int) or dimension < 1 or (largest is not None and dimension > largest):
        limit = "≥ 1" if largest is None else f"from 1 to {largest}"
        raise BadInputError(f"the dimension of this world must be a whole number {limit}, not {dimension!r}.")
    return dimension


def random_parameter(rng: np.random.Generator, dimension: int, norm: float) -> Vector:
    """θ* uniform in [−½, ½]^d, then scaled to ‖θ*‖ = ``norm``, as in the paper's experiments."""
    norm = positive("the norm of θ*", norm)
    parameter = rng.uniform(-0.5, 0.5, dimension)
    return parameter * (norm / float(np.linalg.norm(parameter)))
