"""Nonlinear rewards with new actions in every round."""

import math
from typing import Literal, cast, get_args

import numpy as np

from fairduel.checks import integer, positive
from fairduel.core.links import LOGISTIC, Link, as_link, tie_model
from fairduel.errors import unknown_name
from fairduel.features import random_frequencies
from fairduel.features.kernels import KernelName
from fairduel.worlds.base import Curve, DuelingWorld, Offer, WorldPlan, checked_dimension
from fairduel.worlds.fresh import curve_at, drawn, unit_rows

Shape = Literal["quadratic", "cosine", "rbf", "matern52"]
_WAVES = 256  # in a random function


class Curved(DuelingWorld):
    """K new actions in every round, uniform on the unit sphere, with rewards that are a nonlinear function of them.

    The rewards, for a random unit vector θ:

    - ``"quadratic"``: 10⟨x,θ⟩², and ``"cosine"``: 3cos(3⟨x,θ⟩) (Verma 2024);
    - ``"rbf"`` and ``"matern52"``: a random function with this kernel, mean 0 and standard deviation ``size``, as a sum
      of 256 random waves.

    Args:
        rng: Random stream of the world.
        shape: Which.
        dimension: d, the number of features.
        count: K, the number of actions.
        scale: ℓ, the length scale of a random function.
        size: The standard deviation of a random function; twice it is the B that agents are told. Of the other two
            B is half the range: 5 and 3.
        link: σ, or its name.
        ties: Tie model: ``"none"``, ``"davidson(0.5)"`` or ``"rao-kupper(1.5)"``, with the size in brackets.

    >>> world = Curved(rng=np.random.default_rng(0), shape="cosine", dimension=3, count=4)
    >>> offer = world.offer(1)
    >>> offer.actions.shape, bool(np.abs(offer.rewards).max() <= 3.0)
    ((4, 3), True)
    """

    def __init__(
        self,
        *,
        rng: np.random.Generator,
        shape: Shape = "cosine",
        dimension: int = 5,
        count: int = 10,
        scale: float = 0.7,
        size: float = 1.0,
        link: Link | str = LOGISTIC,
        ties: str = "none",
    ) -> None:
        if shape not in get_args(Shape):
            raise unknown_name("shape", str(shape), get_args(Shape))
        self.dimension = checked_dimension(dimension)
        self.count = integer("count", count, least=2)
        self.link = as_link(link)
        self.ties = tie_model(ties)
        self.parameter = None
        scale, size = positive("scale", scale), positive("size", size)
        if shape in ("quadratic", "cosine"):
            direction = unit_rows(rng.standard_normal((1, dimension)))
            self.norm_bound = 5.0 if shape == "quadratic" else 3.0
            if shape == "quadratic":
                self.curve = Curve("square", direction, np.zeros(1), np.array([10.0]))
            else:
                self.curve = Curve("wave", 3.0 * direction, np.zeros(1), np.array([3.0]))
        else:
            frequencies = random_frequencies(rng, cast("KernelName", shape), (_WAVES, dimension), scale)
            shifts = rng.uniform(0.0, 2.0 * math.pi, _WAVES)
            heights = size * math.sqrt(2.0 / _WAVES) * rng.standard_normal(_WAVES)
            self.norm_bound = 2.0 * size
            self.curve = Curve("wave", frequencies, shifts, heights)
        self.rng = rng

    def offer(self, round_number: int) -> Offer:  # noqa: ARG002
        """Draw the next actions."""
        actions = drawn(0.0, (self.count, self.dimension), self.rng)
        return Offer(actions, curve_at(actions, self.curve.numbers))

    def plan(self) -> WorldPlan | None:
        """Return the world as arrays; ``None`` for subclasses, which may draw differently."""
        if type(self) is not Curved:
            return None
        unknown = Offer(np.zeros((self.count, self.dimension)), np.zeros(self.count))
        return self._plan_of([unknown])._replace(is_fresh=True, curve=self.curve.numbers)
