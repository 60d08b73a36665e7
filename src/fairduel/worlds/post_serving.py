"""The world of Oh 2026: some features of an action are seen only after it was served."""

import math
from typing import Literal, get_args

import numpy as np

from fairduel.checks import integer
from fairduel.core.links import LOGISTIC
from fairduel.core.ties import tie_model
from fairduel.duel import Matrix, Vector
from fairduel.errors import unknown_name
from fairduel.worlds.base import DuelingWorld, Offer, WorldPlan, checked_dimension
from fairduel.worlds.fresh import drawn, rewards_of

Post = Literal["none", "abs", "polynomial", "sinusoidal"]
_LARGEST: dict[Post, float] = {
    "none": math.pi**2,
    "abs": 2.0 * math.pi**2,
    "polynomial": math.pi**2 + math.pi**4 + math.pi,
    "sinusoidal": math.pi**2 + 1.0,
}
"""The largest sum of squares that one coordinate of x adds to ‖(x, y)‖²."""


def post_serving(x: Matrix, post: Post) -> Matrix:
    """Return y (K, d_y) of the pre-serving features x (K, d_x).

    >>> post_serving(np.array([[-4.0]]), "polynomial").tolist()
    [[16.0, 2.0]]
    """
    if post == "abs":
        return np.abs(x)
    if post == "polynomial":
        return np.hstack([x**2, np.sqrt(np.abs(x))])
    if post == "sinusoidal":
        return np.hstack([np.cos(x), np.sin(x)])
    return np.empty((len(x), 0))


class PostServing(DuelingWorld):
    """K new actions x in every round, uniform in [−π, π]^d; their rewards also depend on y(x), which is seen late.

    Rewards are xᵀθ_x + yᵀθ_y with Gaussian θ_x and θ_y, of standard deviations 0.1 and 5. An agent sees x when it asks,
    and both (x, y) of a duel by :meth:`served`. Because agents need norms ≤ 1, they are shown s·(x, y) with s the
    inverse of the largest possible norm, and told the norm of θ/s; the rewards stay those of Oh 2026.

    Args:
        rng: Random stream of the world.
        dimension: d, the number of features before serving.
        count: K, the number of actions.
        post: y(x), element by element: ``"none"``, ``"abs"``: |x|, ``"polynomial"``: (x², √|x|), ``"sinusoidal"``:
            (cos x, sin x).
        ties: Tie model: ``"none"``, ``"davidson(0.5)"`` or ``"rao-kupper(1.5)"``, with the size in brackets.

    >>> world = PostServing(rng=np.random.default_rng(0), dimension=3, count=4, post="abs")
    >>> world.offer(1).actions.shape, world.served(0, 1).shape
    ((4, 3), (2, 6))
    """

    parameter: Vector

    def __init__(
        self,
        *,
        rng: np.random.Generator,
        dimension: int = 10,
        count: int = 10,
        post: Post = "none",
        ties: str = "none",
    ) -> None:
        if post not in get_args(Post):
            raise unknown_name("post", str(post), get_args(Post))
        self.dimension = checked_dimension(dimension)
        self.post = post
        self.scale = 1.0 / (math.sqrt(dimension * _LARGEST[post]) * (1.0 + 1e-12))
        self.served_dimension = dimension + post_serving(np.zeros((1, dimension)), post).shape[1]
        spread = np.repeat([0.1, 5.0], [dimension, self.served_dimension - dimension])
        self.parameter = spread * rng.standard_normal(self.served_dimension) / self.scale
        self.norm_bound = float(np.linalg.norm(self.parameter))
        self.link = LOGISTIC
        self.ties = tie_model(ties)
        self.count = integer("count", count, least=2)
        self.rng = rng
        self._served = np.zeros((count, self.served_dimension))

    def offer(self, round_number: int) -> Offer:  # noqa: ARG002
        """Draw the next actions; only s·x is shown."""
        actions = drawn(self.scale * math.pi, (self.count, self.dimension), self.rng)
        x = actions / self.scale
        self._served = np.hstack([actions, self.scale * post_serving(x, self.post)])
        return Offer(actions, rewards_of(self._served, self.parameter))

    def served(self, first: int, second: int) -> Matrix:
        """Return s·(x, y) of two actions of this round, shape (2, d + d_y), as seen after serving."""
        return self._served[[first, second]]

    def plan(self) -> WorldPlan | None:
        """Return the world as arrays; ``None`` if there are features to serve."""
        if self.post != "none" or type(self) is not PostServing:
            return None
        unknown = Offer(np.zeros((self.count, self.dimension)), np.zeros(self.count))
        side = self.scale * math.pi
        return self._plan_of([unknown])._replace(is_fresh=True, side=side, parameter=self.parameter)
