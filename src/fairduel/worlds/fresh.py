"""The contextual case: new actions in every round, with linear or nonlinear rewards."""

import math
from typing import Literal, cast

import numpy as np

from fairduel.checks import integer, literal, positive
from fairduel.core.compiling import compiled
from fairduel.core.information import dot
from fairduel.core.links import LOGISTIC, Link, as_link, tie_model
from fairduel.duel import Matrix, Vector
from fairduel.features import random_frequencies
from fairduel.features.kernels import KernelName
from fairduel.worlds.world import (
    Curve,
    CurveNumbers,
    DuelingWorld,
    Offer,
    WorldPlan,
    checked_dimension,
    random_parameter,
)


@compiled
def unit_rows(normal: Matrix) -> Matrix:
    """Scale each row of (K, d) to norm 1, or slightly less, so that rounding never exceeds 1."""
    result = np.empty_like(normal)
    for i in range(len(normal)):
        result[i] = normal[i] / (math.sqrt(dot(normal[i], normal[i])) * (1.0 + 1e-12))
    return result


@compiled
def drawn(side: float, shape: tuple[int, int], rng: np.random.Generator) -> Matrix:
    """Draw actions (K, d) uniformly from the cube [−side, side]^d, or from the unit sphere if ``side`` is 0."""
    return unit_rows(rng.standard_normal(shape)) if side == 0.0 else side * (2.0 * rng.random(shape) - 1.0)


@compiled
def rewards_of(actions: Matrix, parameter: Vector) -> Vector:
    """Return xᵀθ* of each action, shape (K,)."""
    result = np.empty(len(actions))
    for i in range(len(actions)):
        result[i] = dot(actions[i], parameter)
    return result


@compiled
def curve_at(actions: Matrix, curve: CurveNumbers) -> Vector:
    """Return r(x) = Σ_j h_j g(ω_jᵀx + s_j) of each action, shape (K,)."""
    if curve.kind == 0:
        return rewards_of(actions, curve.directions[0])
    result = np.zeros(len(actions))
    for i in range(len(actions)):
        for j in range(len(curve.heights)):
            at = dot(actions[i], curve.directions[j]) + curve.shifts[j]
            result[i] += curve.heights[j] * (at * at if curve.kind == 1 else math.cos(at))
    return result


class DrawnWorld(DuelingWorld):
    """A world that draws K new actions in every round; their rewards are a curve of them.

    Args:
        dimension: d, the number of features.
        count: K, the number of actions.
    """

    side: float = 0.0
    """Half the side of the cube in which actions are uniform; 0 for the unit sphere."""
    curve: Curve
    """The rewards."""

    def __init__(
        self, rng: np.random.Generator, dimension: int, count: int, *, link: Link | str = LOGISTIC, ties: str = "none"
    ) -> None:
        self.rng, self.dimension = rng, checked_dimension(dimension)
        self.count = integer("count", count, least=2)
        self.link, self.ties = as_link(link), tie_model(ties)

    def offer(self, round_number: int) -> Offer:  # noqa: ARG002
        """Draw the next actions."""
        actions = drawn(self.side, (self.count, self.dimension), self.rng)
        return Offer(actions, curve_at(actions, self.curve.numbers))

    def plan(self) -> WorldPlan | None:
        """Return the world as arrays; ``None`` for subclasses that draw or answer differently."""
        own, as_here = type(self), (DrawnWorld.offer, DuelingWorld.win_probability, DuelingWorld.chances)
        return self._drawn_plan() if (own.offer, own.win_probability, own.chances) == as_here else None

    def _drawn_plan(self) -> WorldPlan:
        unknown = Offer(np.zeros((self.count, self.dimension)), np.zeros(self.count))
        return self._plan_of([unknown])._replace(is_fresh=True, side=self.side, curve=self.curve.numbers)


class Fresh(DrawnWorld):
    """K new actions in every round, uniform on the unit sphere.

    Args:
        norm: ‖θ*‖, which is also the bound B that agents are told.

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
        super().__init__(rng, dimension, count, link=link, ties=ties)
        self.norm_bound = norm
        self.parameter = random_parameter(rng, dimension, norm)
        self.curve = Curve.line(self.parameter)


Shape = Literal["quadratic", "cosine", "rbf", "matern52"]
_WAVES = 256  # in a random function


class Curved(DrawnWorld):
    """K new actions in every round, uniform on the unit sphere, with rewards that are a nonlinear function of them.

    The rewards, for a random unit vector θ:

    - ``"quadratic"``: 10⟨x,θ⟩², and ``"cosine"``: 3cos(3⟨x,θ⟩) (Verma 2024);
    - ``"rbf"`` and ``"matern52"``: a random function with this kernel, mean 0 and standard deviation ``size``, as a sum
      of 256 random waves.

    Args:
        shape: Which.
        scale: ℓ, the length scale of a random function.
        size: The standard deviation of a random function; twice it is the B that agents are told. Of the other two
            B is half the range: 5 and 3.

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
        literal("shape", shape, Shape)
        super().__init__(rng, dimension, count, link=link, ties=ties)
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
