"""The contextual case: other actions in every round."""

import math

import numpy as np

from fairduel.core.compiling import compiled
from fairduel.core.information import dot
from fairduel.core.links import LOGISTIC, Link, as_link
from fairduel.core.ties import tie_model
from fairduel.duel import Matrix, Vector
from fairduel.errors import BadInputError
from fairduel.worlds.base import DuelingWorld, Offer, WorldPlan, checked_dimension, random_parameter


@compiled
def unit_rows(normal: Matrix) -> Matrix:
    """Scale each row of (K, d) to norm 1, or a hair less, so that rounding never carries it over 1."""
    result = np.empty_like(normal)
    for i in range(len(normal)):
        result[i] = normal[i] / (math.sqrt(dot(normal[i], normal[i])) * (1.0 + 1e-12))
    return result


@compiled
def rewards_of(actions: Matrix, parameter: Vector) -> Vector:
    """xᵀθ* of each action, shape (K,)."""
    result = np.empty(len(actions))
    for i in range(len(actions)):
        result[i] = dot(actions[i], parameter)
    return result


class Fresh(DuelingWorld):
    """K fresh actions in every round, uniform on the unit sphere; θ* as in the paper, ‖θ*‖ = ``norm``.

    >>> world = Fresh(rng=np.random.default_rng(0), dimension=3, count=4)
    >>> bool((world.offer(1).actions == world.offer(2).actions).any())
    False
    """

    parameter: Vector

    def __init__(
        self,
        *,
        rng: np.random.Generator,
        dimension: int = 5,
        count: int = 32,
        norm: float = 2.0,
        link: Link | str = LOGISTIC,
        ties: str = "none",
    ) -> None:
        if count < 2:
            raise BadInputError(f"a world needs at least two actions, not {count}.")
        self.dimension = checked_dimension(dimension)
        self.norm_bound = norm
        self.link = as_link(link)
        self.ties = tie_model(ties)
        self.parameter = random_parameter(rng, dimension, norm)
        self.count = count
        self.rng = rng

    def offer(self, round_number: int) -> Offer:  # noqa: ARG002
        """Draw the next actions."""
        actions = unit_rows(self.rng.standard_normal((self.count, self.dimension)))
        return Offer(actions, rewards_of(actions, self.parameter))

    def plan(self) -> WorldPlan | None:
        """The world as arrays; a subclass may draw otherwise."""
        if type(self) is not Fresh:
            return None
        unknown = Offer(np.zeros((self.count, self.dimension)), np.zeros(self.count))
        return self._plan_of([unknown])._replace(is_fresh=True, parameter=self.parameter)
