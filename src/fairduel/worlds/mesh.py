"""Test functions of two variables on a mesh: rewards that no linear model fits."""

import math
from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from fairduel.checks import integer, literal, positive
from fairduel.core.links import LOGISTIC, Link, as_link
from fairduel.duel import Vector
from fairduel.errors import unknown_name
from fairduel.worlds.world import FixedWorld

Unit = Literal["utility", "preference"]


class Surface(NamedTuple):
    """A function to maximise."""

    value: Callable[[Vector, Vector], Any]
    """f(x, y)."""
    across: tuple[float, float]
    """The range of x."""
    along: tuple[float, float]
    """The range of y."""


def _on_square(value: Callable[[Vector, Vector], Any], low: float, high: float) -> Surface:
    return Surface(value, (low, high), (low, high))


def _ackley(x: Vector, y: Vector) -> Any:
    waves = np.exp((np.cos(2 * np.pi * x) + np.cos(2 * np.pi * y)) / 2)
    return 20 * np.exp(-0.2 * np.sqrt((x**2 + y**2) / 2)) + waves


def _branin(x: Vector, y: Vector) -> Any:
    valley = y - 5.1 / (4 * np.pi**2) * x**2 + 5 / np.pi * x - 6
    return -(valley**2) - 10 * (1 - 1 / (8 * np.pi)) * np.cos(x)


def _eggholder(x: Vector, y: Vector) -> Any:
    high = y + 47
    return high * np.sin(np.sqrt(np.abs(high + x / 2))) + x * np.sin(np.sqrt(np.abs(x - high)))


def _levy(x: Vector, y: Vector) -> Any:
    u, v = 1 + (x - 1) / 4, 1 + (y - 1) / 4
    middle = (u - 1) ** 2 * (1 + 10 * np.sin(np.pi * u + 1) ** 2)
    return -(np.sin(np.pi * u) ** 2) - middle - (v - 1) ** 2 * (1 + np.sin(2 * np.pi * v) ** 2)


REPORTED: Final = {
    "ackley": _on_square(_ackley, -5.0, 5.0),
    "branin": Surface(_branin, (-5.0, 10.0), (0.0, 15.0)),
    "eggholder": _on_square(_eggholder, -100.0, 100.0),
    "hoelder": _on_square(
        lambda x, y: np.abs(np.sin(x) * np.cos(y)) * np.exp(np.abs(1 - np.hypot(x, y) / np.pi)), -10.0, 10.0
    ),
    "matyas": _on_square(lambda x, y: 0.48 * x * y - 0.26 * (x**2 + y**2), -10.0, 10.0),
    "michalewicz": _on_square(
        lambda x, y: np.sin(x) * np.sin(x**2 / np.pi) ** 10 + np.sin(y) * np.sin(2 * y**2 / np.pi) ** 10, 0.0, 3.14
    ),
    "rosenbrock": _on_square(lambda x, y: -100 * (y - x**2) ** 2 - (1 - x) ** 2, -5.0, 10.0),
}
"""The seven functions of Pásztor 2024 with their ranges, on which results are reported."""
FOR_TUNING: Final = {
    "himmelblau": _on_square(lambda x, y: -((x**2 + y - 11) ** 2) - (x + y**2 - 7) ** 2, -5.0, 5.0),
    "camel": Surface(
        lambda x, y: -(4 - 2.1 * x**2 + x**4 / 3) * x**2 - x * y + (4 - 4 * y**2) * y**2, (-2.0, 2.0), (-1.0, 1.0)
    ),
    "levy": _on_square(_levy, -10.0, 10.0),
    "rastrigin": _on_square(lambda x, y: 10 * (np.cos(2 * np.pi * x) + np.cos(2 * np.pi * y)) - x**2 - y**2, -2.0, 2.0),
    "styblinski": _on_square(lambda x, y: (16 * (x**2 + y**2) - x**4 - y**4 - 5 * (x + y)) / 2, -5.0, 5.0),
}
"""Other functions, on which constants are chosen."""
SURFACES: Final = REPORTED | FOR_TUNING
"""Every function by name."""


class Mesh(FixedWorld):
    """A test function on a square mesh of actions; rewards are scaled to [−B, B].

    The features of an action are its two coordinates, scaled so that the corners of the mesh have norm 1.

    Args:
        function: The name of a function in ``SURFACES``; Pásztor 2024 reports on seven.
        side: The number of actions along each side; there are its square.
        height: B, which agents are told: rewards are from −B to B.
        regret: ``"utility"``: 2r* − r_a − r_b in rewards. ``"preference"``: P(x* beats a) + P(x* beats b) − 1, which is
            twice the regret of Pásztor 2024. The answers are the same.

    >>> offer = Mesh(function="matyas", side=3).offer(1)
    >>> offer.actions[0].round(2).tolist(), offer.rewards.round(2).tolist()
    ([-0.71, -0.71], [2.76, 1.44, -3.0, 1.44, 3.0, 1.44, -3.0, 1.44, 2.76])
    """

    def __init__(
        self,
        *,
        function: str = "ackley",
        side: int = 10,
        height: float = 3.0,
        regret: Unit = "utility",
        link: Link | str = LOGISTIC,
        ties: str = "none",
    ) -> None:
        if function not in SURFACES:
            raise unknown_name("function", str(function), SURFACES)
        literal("regret", regret, Unit)
        surface, height = SURFACES[function], positive("height", height)
        steps = np.linspace(0.0, 1.0, integer("side", side, least=2))
        x, y = (part.ravel() for part in np.meshgrid(steps, steps))
        values = surface.value(*(np.interp(s, (0, 1), r) for s, r in ((x, surface.across), (y, surface.along))))
        self.utilities = height * (2.0 * (values - values.min()) / np.ptp(values) - 1.0)
        actions = np.column_stack([2.0 * x - 1.0, 2.0 * y - 1.0]) / (math.sqrt(2.0) * (1.0 + 1e-12))
        self._by_preference = regret == "preference"
        sigma = as_link(link)
        rewards = self.utilities
        if self._by_preference:  # then 2 max r − r_a − r_b is the regret asked for
            rewards = sigma.probability(self.utilities - self.utilities.max()) - 0.5
        super().__init__(actions, rewards, link=sigma, norm_bound=height, parameter=None, ties=ties)

    def win_probability(self, rewards: Vector, first: int, second: int) -> float:  # noqa: ARG002
        """Return P(first beats second) without ties, by the utilities."""
        return super().win_probability(self.utilities, first, second)
