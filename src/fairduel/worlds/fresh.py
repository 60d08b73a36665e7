"""The contextual case: new actions in every round."""

import math

import numpy as np

from fairduel.checks import integer
from fairduel.core.compiling import compiled
from fairduel.core.information import dot
from fairduel.core.links import LOGISTIC, Link, as_link, tie_model
from fairduel.duel import Matrix, Vector
from fairduel.worlds.base import (
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


class Fresh(DuelingWorld):
    """K new actions in every round, uniform on the unit sphere.

    Args:
        rng: Random stream of the world.
        dimension: d, the number of features.
        count: K, the number of actions.
        norm: ‖θ*‖, which is also the bound B that agents are told.
        link: σ, or its name.
        ties: Tie model: ``"none"``, ``"davidson(0.5)"`` or ``"rao-kupper(1.5)"``, with the size in brackets.

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
        self.dimension = checked_dimension(dimension)
        self.norm_bound = norm
        self.link = as_link(link)
        self.ties = tie_model(ties)
        self.parameter = random_parameter(rng, dimension, norm)
        self.count = integer("count", count, least=2)
        self.rng = rng

    def offer(self, round_number: int) -> Offer:  # noqa: ARG002
        """Draw the next actions."""
        actions = drawn(0.0, (self.count, self.dimension), self.rng)
        return Offer(actions, rewards_of(actions, self.parameter))

    def plan(self) -> WorldPlan | None:
        """Return the world as arrays; ``None`` for subclasses, which may draw differently."""
        if type(self) is not Fresh:
            return None
        unknown = Offer(np.zeros((self.count, self.dimension)), np.zeros(self.count))
        return self._plan_of([unknown])._replace(is_fresh=True, curve=Curve.line(self.parameter).numbers)
