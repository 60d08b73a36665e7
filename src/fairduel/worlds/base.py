"""What a world is: actions for each round, and the true rewards behind them."""

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from fairduel.checks import positive
from fairduel.core.links import Link, probability
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


class DuelingWorld(World):
    """A world that answers duels. P(a beats b) = σ(r*_a − r*_b), eq. (preference), unless a subclass says otherwise."""

    link: Link
    """σ."""
    parameter: Vector | None
    """θ*, shape (d,), or ``None`` where the rewards are not linear."""

    def win_probability(self, rewards: Vector, first: int, second: int) -> float:
        """P(first beats second) among actions with these true rewards (K,)."""
        return probability(self.link.kind, self.link.scale, rewards[first] - rewards[second])


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
        self, actions: Matrix, rewards: Vector, *, link: Link, norm_bound: float, parameter: Vector | None
    ) -> None:
        self.arms, self.dimension = actions.shape
        self.link = link
        self.norm_bound = norm_bound
        self.parameter = parameter
        self._offer = Offer(actions, rewards)

    def offer(self, round_number: int) -> Offer:  # noqa: ARG002
        """Return the same actions and rewards in every round."""
        return self._offer


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
