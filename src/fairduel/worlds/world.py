"""What a world is: actions for each round, and their true rewards."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairduel.checks import positive
from fairduel.core.links import NO_TIES, Link, LinkNumbers, TieModel, probability, tie_model, win_and_tie
from fairduel.duel import Matrix, Vector
from fairduel.errors import BadInputError


class Offer(NamedTuple):
    """What a world offers in one round."""

    actions: Matrix
    """The actions that the agent sees, shape (K, d)."""
    rewards: Vector
    """True reward of each action, shape (K,), hidden from the agent."""


class World(ABC):
    """Offers actions with hidden true rewards; subclasses define what an agent is told."""

    dimension: int
    """d."""
    norm_bound: float
    """B, which agents are told."""

    @abstractmethod
    def offer(self, round_number: int) -> Offer:
        """Return the actions of round t = 1, 2, … with their rewards; called once per round, in order."""

    def known_actions(self) -> Matrix | None:
        """Return all actions (n, d) if they are known in advance, else ``None``."""
        return None


class CurveNumbers(NamedTuple):
    """A reward function for compiled functions: Σ_j h_j g(ω_jᵀx + s_j)."""

    kind: int
    """g: 0 is the identity, 1 the square, 2 the cosine."""
    directions: Matrix
    """ω, shape (m, d)."""
    shifts: Vector
    """s, shape (m,)."""
    heights: Vector
    """h, shape (m,)."""


class Curve(NamedTuple):
    """A reward function r(x) = Σ_j h_j g(ω_jᵀx + s_j)."""

    kind: Literal["line", "square", "wave"]
    """g."""
    directions: Matrix
    """ω, shape (m, d)."""
    shifts: Vector
    """s, shape (m,)."""
    heights: Vector
    """h, shape (m,)."""

    @property
    def numbers(self) -> CurveNumbers:
        """For compiled functions."""
        return CurveNumbers(("line", "square", "wave").index(self.kind), *self[1:])

    @classmethod
    def line(cls, parameter: Vector) -> "Curve":
        """The linear function xᵀθ*."""
        return cls("line", parameter[None, :].copy(), np.zeros(1), np.ones(1))


class WorldPlan(NamedTuple):
    """A dueling world as arrays: s sets of actions, one of which is offered each round."""

    is_fresh: bool
    """Whether every round draws new actions, as many as the set has."""
    side: float
    """Half the side of the cube that they are uniform in; 0 for the unit sphere."""
    starts: NDArray[np.int64]
    """Where each set begins in ``actions``, and where the last ends, shape (s + 1,)."""
    actions: Matrix
    """The actions of all sets, one set after another, shape (n, d)."""
    rewards: Vector
    """Their true rewards, shape (n,)."""
    chance_starts: NDArray[np.int64]
    """Where each set begins in ``chances``, shape (s + 1,); empty if the link gives the chances."""
    chances: Matrix
    """P(row beats column) and P(tie) for the K² pairs of each set, one set after another, shape (Σ K², 2)."""
    curve: CurveNumbers
    """The rewards of new actions, if ``is_fresh``."""
    link: LinkNumbers
    ties: TieModel


class DuelingWorld(World):
    """A world that answers duels, by default with P(a beats b) = σ(r*_a − r*_b), eq. (preference).

    Args:
        rng: Random stream of the world.
        link: σ, or its name.
        ties: Tie model: ``"none"``, ``"davidson(0.5)"`` or ``"rao-kupper(1.5)"``, with the size in brackets.
    """

    link: Link
    """σ."""
    parameter: Vector | None
    """θ*, shape (d,), or ``None`` if rewards are not linear."""
    ties: TieModel = NO_TIES

    def win_probability(self, rewards: Vector, first: int, second: int) -> float:
        """Return P(first beats second) without ties, given the true rewards (K,)."""
        return probability(self.link.kind, self.link.scale, rewards[first] - rewards[second])

    def chances(self, rewards: Vector, first: int, second: int) -> tuple[float, float]:
        """Return P(first beats second) and P(tie); an action ties with itself as with an equal one."""
        return win_and_tie(self.ties, self.win_probability(rewards, first, second))

    def served(self, first: int, second: int) -> Matrix | None:  # noqa: ARG002
        """Return the features of two actions of this round as seen after serving them, (2, d); ``None``: as before."""
        return None

    def plan(self) -> WorldPlan | None:
        """Return the world as arrays for compiled runs; ``None`` if it does not support them."""
        return None

    def places(self, horizon: int) -> NDArray[np.int64]:
        """Return the index of the plan's set offered in each round, shape (T,)."""
        return np.zeros(horizon, np.int64)

    def _plan_of(self, offers: Sequence[Offer], chances: Sequence[Matrix] = ()) -> WorldPlan:
        """Return the plan for these sets of actions, with ``chances`` (K², 2) of each if they override the link."""
        sizes = np.array([len(offer.rewards) for offer in offers])
        return WorldPlan(
            is_fresh=False,
            side=0.0,
            starts=_starts(sizes),
            actions=np.concatenate([offer.actions for offer in offers]),
            rewards=np.concatenate([offer.rewards for offer in offers]),
            chance_starts=_starts(sizes**2) if chances else np.empty(0, np.int64),
            chances=np.concatenate(chances) if chances else np.empty((0, 2)),
            curve=Curve.line(np.zeros(self.dimension)).numbers,
            link=self.link.numbers,
            ties=self.ties,
        )


def _starts(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the offsets of consecutive blocks of these ``sizes`` (s,), shape (s + 1,)."""
    return np.concatenate([[0], np.cumsum(sizes)])


class RewardWorld(World):
    """A world that answers a pull with a noisy reward."""

    noise: float
    """R, which agents are told; the noise is R-sub-Gaussian."""

    @abstractmethod
    def reward(self, mean: float, uniform: float) -> float:
        """Turn a uniform random number into a reward with this mean."""


class FixedWorld(DuelingWorld):
    """A dueling world whose actions never change.

    Args:
        actions: Features, shape (K, d), with norms ≤ 1.
        rewards: True rewards, shape (K,).
        norm_bound: B, which agents are told.
        parameter: θ*, shape (d,), or ``None`` if rewards are not linear.
    """

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

    def known_actions(self) -> Matrix | None:
        """Return all actions (K, d)."""
        return self._offer.actions if type(self).offer is FixedWorld.offer else None

    def plan(self) -> WorldPlan | None:
        """Return the world as arrays, unless a subclass changes what it offers."""
        if type(self).offer is not FixedWorld.offer:
            return None
        if (type(self).win_probability, type(self).chances) == (DuelingWorld.win_probability, DuelingWorld.chances):
            return self._plan_of([self._offer])
        rewards, places = self._offer.rewards, range(self.arms)
        chances = np.array([self.chances(rewards, i, j) for i in places for j in places])
        return self._plan_of([self._offer], [chances])


def checked_dimension(dimension: int, largest: int | None = None) -> int:
    """Return ``dimension``, or raise if it is not a whole number from 1 to ``largest``."""
    if not isinstance(dimension, int) or dimension < 1 or (largest is not None and dimension > largest):
        limit = "≥ 1" if largest is None else f"from 1 to {largest}"
        raise BadInputError(f"dimension must be a whole number {limit}, not {dimension!r}.")
    return dimension


def random_parameter(rng: np.random.Generator, dimension: int, norm: float) -> Vector:
    """Draw θ* uniformly from [−½, ½]^d and scale it to ‖θ*‖ = ``norm``, as in the paper's experiments."""
    norm = positive("the norm of θ*", norm)
    parameter = rng.uniform(-0.5, 0.5, dimension)
    return parameter * (norm / float(np.linalg.norm(parameter)))
