"""The world of the paper's experiments: all vertices of a hypercube, and a random θ*."""

import numpy as np

from fairduel.action_sets import hypercube
from fairduel.core.links import LOGISTIC, Link, as_link
from fairduel.worlds.base import FixedWorld, checked_dimension, random_parameter


class Hypercube(FixedWorld):
    """The paper's world: actions {±1/√d}^d; θ* uniform in [−½, ½]^d, scaled to ‖θ*‖ = ``norm``.

    Args:
        rng: Random stream of the world.
        dimension: d, at most 12.
        norm: ‖θ*‖, which is also the bound B that agents are told.
        link: σ, or its name.
        ties: Tie model: ``"none"``, ``"davidson(0.5)"`` or ``"rao-kupper(1.5)"``, with the size in brackets.

    >>> world = Hypercube(rng=np.random.default_rng(0))
    >>> world.offer(1).actions.shape
    (32, 5)
    """

    def __init__(
        self,
        *,
        rng: np.random.Generator,
        dimension: int = 5,
        norm: float = 2.0,
        link: Link | str = LOGISTIC,
        ties: str = "none",
    ) -> None:
        actions = hypercube(checked_dimension(dimension, largest=12))
        parameter = random_parameter(rng, dimension, norm)
        super().__init__(
            actions, actions @ parameter, link=as_link(link), norm_bound=norm, parameter=parameter, ties=ties
        )
