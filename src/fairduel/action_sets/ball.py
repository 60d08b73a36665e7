"""The unit ball."""

import math

import numpy as np

from fairduel.action_sets.listed import ROUNDING, ActionSet, Pair, pair_score
from fairduel.checks import integer
from fairduel.duel import Matrix, Vector
from fairduel.errors import BadInputError


class BallSet(ActionSet):
    """All actions with ‖x‖ ≤ 1, for d ≥ 2. Its best pair is exact.

    With Σ⁻¹ = M the score is max over w ∈ βM^½·(unit ball) of ‖θ + w‖ + ‖θ − w‖, attained by a and b along θ ± w. Its
    square is 2(t + p) + 2√((t + p)² − 4q), where t = ‖θ‖², p = ‖w‖², q = (θᵀw)²; so it is at least 2c exactly if
    c·p/2 − q ≥ c²/4 − c·t/2 for some w. The left side's maximum is an eigenvalue, and the largest such c a root.
    """

    count = None

    def __init__(self, dimension: int) -> None:
        self.dimension = integer("the dimension of a ball", dimension, least=2)

    def best(self, direction: Vector) -> Vector:
        """Return the action along ``direction``, or the first axis if that is 0."""
        length = float(np.linalg.norm(direction))
        if length == 0.0:
            return np.asarray(np.eye(1, self.dimension)[0])
        return np.asarray(direction / (length * (1.0 + ROUNDING)))

    def random(self, rng: np.random.Generator) -> Vector:
        """Draw uniformly from the sphere, because inner points inform less."""
        return self.best(rng.standard_normal(self.dimension))

    def index(self, action: Vector) -> int:  # noqa: ARG002
        """Raise an error, since a ball cannot be numbered."""
        raise BadInputError("the actions of a ball cannot be numbered; use best(agent.estimate) instead.")

    def best_pair(
        self, theta: Vector, inverse: Matrix, radius: float, rng: np.random.Generator, *, self_duels: bool = True
    ) -> Pair:
        """Return the best pair, as the class explains; ties of the eigenvalue are broken at random."""
        if radius == 0.0 and self_duels:
            best = self.best(theta)
            return Pair(best, best, pair_score(best, best, theta, inverse, 0.0), 0.0)
        values, vectors = np.linalg.eigh(inverse)
        spread = max(radius, ROUNDING) * np.sqrt(np.maximum(values, 0.0))  # w = spread · v in the eigenbasis
        # The best pair does not depend on the joint scale of θ and w; at scale 1, ties show up as rounding errors.
        scale = math.sqrt(float(theta @ theta) + float(spread[-1] ** 2)) or 1.0
        spread, centre = spread / scale, vectors.T @ theta / scale
        along = spread * centre  # θᵀw = alongᵀv
        squared = float(centre @ centre)

        from scipy.optimize import brentq  # noqa: PLC0415  # slow, and few need it

        def form(c: float) -> Matrix:
            return np.asarray(0.5 * c * np.diag(spread**2) - np.outer(along, along))

        def excess(c: float) -> float:
            return float(np.linalg.eigvalsh(form(c))[-1] - c * c / 4.0 + c * squared / 2.0)

        # q = 0 would give c = 2(t + p), an upper bound; w along the longest axis is attainable, a lower bound.
        longest = float(spread[-1] ** 2)
        high = 2.0 * (squared + longest) * (1.0 + 1e-6)
        low = squared + longest + math.sqrt(max((squared + longest) ** 2 - 4.0 * along[-1] ** 2, 0.0))
        c = brentq(excess, low * (1.0 - 1e-6), high, xtol=1e-14 * high) if excess(high) < 0.0 else high
        eigenvalues, eigenvectors = np.linalg.eigh(form(c))
        top = eigenvectors[:, eigenvalues >= eigenvalues[-1] - ROUNDING]
        chosen = top @ rng.standard_normal(top.shape[1])
        offset = vectors @ (spread * chosen / np.linalg.norm(chosen))
        first, second = self.best(theta / scale + offset), self.best(theta / scale - offset)
        return Pair(first, second, pair_score(first, second, theta, inverse, radius), 0.0)


def ball_gap(theta: Vector, inverse: Matrix, radius: float, rng: np.random.Generator, score: float) -> float:
    """How far ``score`` is from the ball's best score, which bounds every set within the ball."""
    if len(theta) == 1:
        return math.inf
    ball = BallSet(len(theta)).best_pair(theta, inverse, radius, rng)
    return max(ball.score * (1.0 + 4.0 * ROUNDING) - score, 0.0)
