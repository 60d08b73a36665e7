"""The world of Oh 2026: some features of an action are seen only after it was served."""

import itertools
import math
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from fairduel.checks import integer
from fairduel.core.links import LOGISTIC
from fairduel.core.ties import tie_model
from fairduel.duel import Matrix, Vector
from fairduel.errors import unknown_name
from fairduel.worlds.base import DuelingWorld, Offer, WorldPlan, checked_dimension
from fairduel.worlds.fresh import drawn, rewards_of

Single = NDArray[np.float32]
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


class Network:
    """Two hidden layers of 64 ReLUs from (n, d_x) to (n, d_y), trained by Adam on everything seen so far.

    Oh 2026's predictor, in single precision: squared error, step 0.001, and two steps on all data per duel.

    Args:
        rng: Random stream of the first weights, uniform in ±1/√(number of inputs).
        sizes: The numbers of inputs and outputs.
    """

    def __init__(self, rng: np.random.Generator, sizes: tuple[int, int]) -> None:
        widths = [sizes[0], 64, 64, sizes[1]]
        self._layers = [
            (rng.uniform(-1.0, 1.0, (inputs + 1, outputs)) / math.sqrt(inputs)).astype(np.float32)  # the bias is last
            for inputs, outputs in itertools.pairwise(widths)
        ]
        self._means = [np.zeros_like(layer) for layer in self._layers]
        self._squares = [np.zeros_like(layer) for layer in self._layers]
        self._steps = 0
        self._x, self._y = np.empty((0, sizes[0]), np.float32), np.empty((0, sizes[1]), np.float32)

    def predict(self, x: Matrix) -> Matrix:
        """Return the predictions for x (n, d_x), shape (n, d_y)."""
        return self._forward(x.astype(np.float32))[-1].astype(np.float64)

    def learn(self, x: Matrix, y: Matrix) -> None:
        """Add x (n, d_x) with y (n, d_y) to the data, and take two steps."""
        self._x = np.vstack([self._x, x.astype(np.float32)])
        self._y = np.vstack([self._y, y.astype(np.float32)])
        for _ in range(2):
            self._steps += 1
            for place, gradient in enumerate(self.gradients(self._x, self._y)):
                mean, square = self._means[place], self._squares[place]
                mean += 0.1 * (gradient - mean)
                square += 0.001 * (gradient**2 - square)
                step = mean / (1.0 - 0.9**self._steps)
                self._layers[place] -= 0.001 * step / (np.sqrt(square / (1.0 - 0.999**self._steps)) + 1e-8)

    def gradients(self, x: Single, y: Single) -> list[Single]:
        """Return the gradient of the mean squared error with respect to each layer."""
        values = self._forward(x)
        back, found = (values[-1] - y) * np.float32(2.0 / y.size), []
        for layer, inputs in zip(reversed(self._layers), reversed(values[:-1]), strict=True):
            found.append(np.vstack([inputs.T @ back, back.sum(axis=0)]))
            back = (back @ layer[:-1].T) * (inputs > 0.0)
        return found[::-1]

    def _forward(self, x: Single) -> list[Single]:
        """Return the inputs of each layer, and the outputs of the last."""
        values = [x]
        for place, layer in enumerate(self._layers):
            output = values[-1] @ layer[:-1] + layer[-1]
            values.append(output if place == len(self._layers) - 1 else np.maximum(output, np.float32(0.0)))
        return values


class PostServing(DuelingWorld):
    """K new actions x in every round, uniform in [−π, π]^d; their rewards also depend on y(x), seen only after serving.

    Rewards are xᵀθ_x + yᵀθ_y with Gaussian θ_x and θ_y, of standard deviations 0.1 and 5. An agent chooses among
    (x, ŷ), where ŷ is predicted by a :class:`Network` that learns from every duel; the true features of a duel are then
    shown by ``agent.serve``. Because agents need norms ≤ 1, all features are multiplied by one s, the inverse of the
    largest possible norm, and θ by 1/s, so that rewards are those of Oh 2026; predictions are shortened if need be.

    Args:
        rng: Random stream of the world.
        dimension: d, the number of features before serving.
        count: K, the number of actions.
        post: y(x), element by element: ``"none"``; ``"abs"``, absolute values; ``"polynomial"``, squares and roots of
            absolute values; ``"sinusoidal"``, cosines and sines.
        ties: Tie model: ``"none"``, ``"davidson(0.5)"`` or ``"rao-kupper(1.5)"``, with the size in brackets.

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
        if post not in get_args(Post):
            raise unknown_name("post", str(post), get_args(Post))
        self._before = checked_dimension(dimension)
        after = post_serving(np.zeros((1, dimension)), post).shape[1]
        self.dimension = dimension + after
        self.post = post
        self.scale = 1.0 / (math.sqrt(dimension * _LARGEST[post]) * (1.0 + 1e-12))
        spread = np.repeat([0.1, 5.0], [dimension, after])
        self.parameter = spread * rng.standard_normal(self.dimension) / self.scale
        self.norm_bound = float(np.linalg.norm(self.parameter))
        self.link = LOGISTIC
        self.ties = tie_model(ties)
        self.count = integer("count", count, least=2)
        self.rng = rng
        self._network = Network(rng.spawn(1)[0], (dimension, after))

    def offer(self, round_number: int) -> Offer:  # noqa: ARG002
        """Draw the next actions; what is not yet seen of them is predicted."""
        shown = drawn(self.scale * math.pi, (self.count, self._before), self.rng)
        if self.post == "none":
            return Offer(shown, rewards_of(shown, self.parameter))
        x = shown / self.scale
        self._features = np.hstack([shown, self.scale * post_serving(x, self.post)])
        guessed = self.scale * self._network.predict(x)
        room = np.sqrt(1.0 - np.sum(shown**2, axis=1, keepdims=True))
        guessed *= room / np.maximum(room, np.linalg.norm(guessed, axis=1, keepdims=True) * (1.0 + 1e-12))
        return Offer(np.hstack([shown, guessed]), rewards_of(self._features, self.parameter))

    def served(self, first: int, second: int) -> Matrix | None:
        """Return the true features of two actions of this round, shape (2, d), and let the network learn them."""
        if self.post == "none":
            return None
        features = self._features[[first, second]]
        unscaled = features / self.scale
        self._network.learn(unscaled[:, : self._before], unscaled[:, self._before :])
        return features

    def plan(self) -> WorldPlan | None:
        """Return the world as arrays; ``None`` if there are features to serve."""
        if self.post != "none" or type(self) is not PostServing:
            return None
        unknown = Offer(np.zeros((self.count, self.dimension)), np.zeros(self.count))
        side = self.scale * math.pi
        return self._plan_of([unknown])._replace(is_fresh=True, side=side, parameter=self.parameter)
