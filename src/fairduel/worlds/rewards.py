"""Worlds that return rewards: arms without features, and actions with linear mean rewards."""

import numpy as np
from scipy.special import ndtri

from fairduel.checks import integer, positive
from fairduel.duel import Matrix, Vector
from fairduel.errors import BadInputError
from fairduel.worlds.fresh import rewards_of, unit_rows
from fairduel.worlds.world import Offer, RewardWorld, checked_dimension


class _FixedRewardWorld(RewardWorld):
    """A reward world whose actions never change."""

    def __init__(self, actions: Matrix, rewards: Vector, *, noise: float, norm_bound: float) -> None:
        self.arms, self.dimension = actions.shape
        self.noise = noise
        self.norm_bound = norm_bound
        self._offer = Offer(actions, rewards)

    def offer(self, round_number: int) -> Offer:  # noqa: ARG002
        """Return the same actions and mean rewards in every round."""
        return self._offer


class Arms(_FixedRewardWorld):
    """K arms that pay 1 or 0: one with probability ½ + gap/2, the others with ½ − gap/2.

    The actions are the K unit vectors, so that agents with features can play too.

    Args:
        arms: K, the number of arms.
        gap: Difference between the best mean and the others.

    >>> Arms(rng=np.random.default_rng(0), arms=3, gap=0.5).offer(1).rewards.tolist()
    [0.25, 0.25, 0.75]
    """

    def __init__(self, *, rng: np.random.Generator, arms: int = 10, gap: float = 0.2) -> None:
        if not 0 < gap <= 1:
            raise BadInputError(f"gap must be above 0 and at most 1, not {gap!r}.")
        arms = integer("arms", arms, least=2)
        means = np.full(arms, (1.0 - gap) / 2.0)
        means[rng.integers(arms)] = (1.0 + gap) / 2.0
        super().__init__(np.eye(arms), means, noise=0.5, norm_bound=float(np.linalg.norm(means)))

    def reward(self, mean: float, uniform: float) -> float:
        """Return 1 with probability ``mean``, otherwise 0."""
        return float(uniform < mean)


class Linear(_FixedRewardWorld):
    """K actions drawn once, uniform on the unit sphere; rewards xᵀθ* plus Gaussian noise.

    Args:
        dimension: d, the number of features.
        arms: K, the number of arms.
        norm: ‖θ*‖, which is also the bound B that agents are told.
        noise: R, the standard deviation of the noise.

    >>> Linear(rng=np.random.default_rng(0), dimension=3, arms=4).offer(1).actions.shape
    (4, 3)
    """

    def __init__(
        self, *, rng: np.random.Generator, dimension: int = 5, arms: int = 20, norm: float = 1.0, noise: float = 0.1
    ) -> None:
        dimension, arms = checked_dimension(dimension), integer("arms", arms, least=2)
        norm, noise = positive("the norm of θ*", norm), positive("noise", noise)
        directions = unit_rows(rng.standard_normal((arms + 1, dimension)))
        self.parameter = norm * directions[0]
        actions = directions[1:]
        super().__init__(actions, rewards_of(actions, self.parameter), noise=noise, norm_bound=norm)

    def reward(self, mean: float, uniform: float) -> float:
        """Return ``mean`` plus Gaussian noise."""
        return float(mean + self.noise * ndtri(max(uniform, 1e-16)))
