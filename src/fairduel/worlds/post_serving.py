"""The world of Oh 2026: some features of an action are seen only after it was served."""

import math
from typing import Literal

import numpy as np

from fairduel.checks import literal, needs_extra
from fairduel.duel import Matrix, Vector
from fairduel.worlds.fresh import DrawnWorld, drawn, rewards_of
from fairduel.worlds.world import Curve, Offer, WorldPlan

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


class Predictor:
    """Oh 2026's network from x (n, d_x) to y (n, d_y), trained on everything seen so far.

    Two hidden layers of 64 ReLUs, squared error, and two steps of Adam on all data per duel, each of size 0.001. The
    first weights are those of scikit-learn; before it has learned anything, it predicts 0.

    Args:
        rng: Random stream of the first weights.
        sizes: The numbers of inputs and outputs.
    """

    def __init__(self, rng: np.random.Generator, sizes: tuple[int, int]) -> None:
        with needs_extra("votes"):
            from sklearn.neural_network import MLPRegressor  # noqa: PLC0415  # slow, and not for other worlds
        seed = int(rng.integers(2**32))
        self._network = MLPRegressor(hidden_layer_sizes=(64, 64), alpha=0.0, shuffle=False, random_state=seed)
        self._x, self._y = (np.empty((0, size), np.float32) for size in sizes)

    def predict(self, x: Matrix) -> Matrix:
        """Return the predictions for x (n, d_x), shape (n, d_y)."""
        shape = len(x), self._y.shape[1]
        if not len(self._y):
            return np.zeros(shape)
        return np.asarray(self._network.predict(x.astype(np.float32)), dtype=np.float64).reshape(shape)

    def learn(self, x: Matrix, y: Matrix) -> None:
        """Add x (n, d_x) with y (n, d_y) to the data, and take two steps."""
        self._x, self._y = np.vstack([self._x, x], dtype=np.float32), np.vstack([self._y, y], dtype=np.float32)
        self._network.set_params(batch_size=len(self._y))
        for _ in range(2):
            self._network.partial_fit(self._x, self._y.ravel() if self._y.shape[1] == 1 else self._y)


class PostServing(DrawnWorld):
    """K new actions x in every round, uniform in [−π, π]^d; their rewards also depend on y(x), seen only after serving.

    Rewards are xᵀθ_x + yᵀθ_y with Gaussian θ_x and θ_y, of standard deviations 0.1 and 5. An agent chooses among
    (x, ŷ), where ŷ is predicted by a :class:`Predictor` that learns from every duel; the true features of a duel are
    then shown by ``agent.serve``. Because agents need norms ≤ 1, all features are multiplied by one s, the inverse of
    the largest possible norm, and θ by 1/s, so that rewards are those of Oh 2026; predictions are shortened if need be.

    Args:
        dimension: d, the number of features before serving.
        count: K, the number of actions.
        post: y(x), element by element: ``"none"``; ``"abs"``, absolute values; ``"polynomial"``, squares and roots of
            absolute values; ``"sinusoidal"``, cosines and sines.

    >>> world = PostServing(rng=np.random.default_rng(0), dimension=3, count=4, post="abs")
    >>> world.offer(1).actions.shape, world.served(0, 1).shape
    ((4, 6), (2, 6))
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
        literal("post", post, Post)
        super().__init__(rng, dimension, count, ties=ties)
        self._before, after = dimension, post_serving(np.zeros((1, dimension)), post).shape[1]
        self.dimension = dimension + after
        self.post = post
        self.scale = 1.0 / (math.sqrt(dimension * _LARGEST[post]) * (1.0 + 1e-12))
        spread = np.repeat([0.1, 5.0], [dimension, after])
        self.parameter = spread * rng.standard_normal(self.dimension) / self.scale
        self.norm_bound = float(np.linalg.norm(self.parameter))
        self.side, self.curve = self.scale * math.pi, Curve.line(self.parameter)
        if after:
            self._predictor = Predictor(rng.spawn(1)[0], (dimension, after))

    def offer(self, round_number: int) -> Offer:
        """Draw the next actions; what is not yet seen of them is predicted."""
        if self.post == "none":
            return super().offer(round_number)
        shown = drawn(self.side, (self.count, self._before), self.rng)
        x = shown / self.scale
        self._features = np.hstack([shown, self.scale * post_serving(x, self.post)])
        guessed = self.scale * self._predictor.predict(x)
        room = np.sqrt(1.0 - np.sum(shown**2, axis=1, keepdims=True))
        guessed *= room / np.maximum(room, np.linalg.norm(guessed, axis=1, keepdims=True) * (1.0 + 1e-12))
        return Offer(np.hstack([shown, guessed]), rewards_of(self._features, self.parameter))

    def served(self, first: int, second: int) -> Matrix | None:
        """Return the true features of two actions of this round, shape (2, d), and let the predictor learn them."""
        if self.post == "none":
            return None
        features = self._features[[first, second]]
        unscaled = features / self.scale
        self._predictor.learn(unscaled[:, : self._before], unscaled[:, self._before :])
        return features

    def plan(self) -> WorldPlan | None:
        """Return the world as arrays; ``None`` if there are features to serve."""
        return self._drawn_plan() if self.post == "none" and type(self) is PostServing else None
