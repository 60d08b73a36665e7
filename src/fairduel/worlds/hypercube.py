"""The world of the paper's experiments: the vertices of a hypercube, and a random θ*."""

import math

import numpy as np

from fairduel.action_sets import hypercube
from fairduel.checks import integer
from fairduel.core.links import LOGISTIC, Link, as_link
from fairduel.duel import Matrix
from fairduel.errors import BadInputError
from fairduel.worlds.world import FixedWorld, checked_dimension, random_parameter


class Hypercube(FixedWorld):
    """The paper's world: actions {±1/√d}^d; θ* uniform in [−½, ½]^d, scaled to ‖θ*‖ = ``norm``.

    Args:
        dimension: d, at most 12, or 62 with a ``count``.
        count: K, the number of vertices, drawn at random once; ``None`` offers all 2^d.
        norm: ‖θ*‖, which is also the bound B that agents are told.

    >>> world = Hypercube(rng=np.random.default_rng(0))
    >>> world.offer(1).actions.shape
    (32, 5)
    """

    def __init__(
        self,
        *,
        rng: np.random.Generator,
        dimension: int = 5,
        count: int | None = None,
        norm: float = 2.0,
        link: Link | str = LOGISTIC,
        ties: str = "none",
    ) -> None:
        checked_dimension(dimension, largest=12 if count is None else 62)
        parameter = random_parameter(rng, dimension, norm)
        actions = hypercube(dimension) if count is None else _some_vertices(rng, dimension, count)
        super().__init__(
            actions, actions @ parameter, link=as_link(link), norm_bound=norm, parameter=parameter, ties=ties
        )


def _some_vertices(rng: np.random.Generator, dimension: int, count: int) -> Matrix:
    """Draw distinct vertices of {±1/√d}^d, shape (K, d)."""
    if integer("count", count, least=2) > 2**dimension:
        raise BadInputError(f"a hypercube of dimension {dimension} has only {2**dimension} vertices, not {count}.")
    numbers = rng.choice(2**dimension, size=count, replace=False)
    is_high = numbers[:, None] >> np.arange(dimension) & 1
    side = 1.0 / math.sqrt(dimension)
    return np.where(is_high, side, -side)
