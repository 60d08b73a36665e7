"""The contextual case: other actions in every round."""

import numpy as np

from fairduel.errors import BadInputError
from fairduel.links import LOGISTIC, Link
from fairduel.worlds.base import Offer, World, checked_dimension, random_parameter


class Fresh(World):
    """K fresh actions in every round, uniform on the unit sphere; θ* as in the paper, ‖θ*‖ = ``norm``.

    >>> world = Fresh(rng=np.random.default_rng(0), dimension=3, count=4)
    >>> bool((world.offer(1).actions == world.offer(2).actions).any())
    False
    """

    def __init__(
        self,
        *,
        rng: np.random.Generator,
        dimension: int = 5,
        count: int = 32,
        norm: float = 2.0,
        link: Link = LOGISTIC,
    ) -> None:
        if count < 2:
            raise BadInputError(f"a world needs at least two actions, not {count}.")
        self.dimension = checked_dimension(dimension)
        self.norm_bound = norm
        self.link = link
        self.parameter = random_parameter(rng, dimension, norm)
        self._count = count
        self._rng = rng

    def offer(self, round_number: int) -> Offer:  # noqa: ARG002
        """Draw the next actions."""
        normal = self._rng.standard_normal((self._count, self.dimension))
        actions = normal / np.linalg.norm(normal, axis=1, keepdims=True)
        actions /= 1.0 + 1e-12  # rounding must not carry a norm over 1
        assert self.parameter is not None
        return Offer(actions, actions @ self.parameter)
