"""The two hard instances of the lower bound (Theorem 5.4).

Both use the clipped-linear link σ_κ(x) = σ(κx). The proof shrinks the slope by stretching the actions to A/κ, which
breaks ‖φ‖ ≤ 1; stretching θ* by 1/κ instead gives the same duels and regret.
"""

import math

import numpy as np

from fairduel.action_sets import hypercube
from fairduel.checks import positive
from fairduel.core.links import clipped_linear
from fairduel.errors import BadInputError
from fairduel.worlds.world import FixedWorld, checked_dimension


class HardStochastic(FixedWorld):
    """An instance in which no agent's expected regret is below about d√T/(58κ).

    θ* ∈ {±Δ}^d has random signs, with Δ = √(d/T)/20. The proof's actions are the unit ball; its best action is always a
    vertex of {±1/√d}^d, and the bound holds for every agent, hence also for one that sees only vertices.

    Args:
        dimension: d, at most 12.
        horizon: T ≥ 4d²/25.
        kappa: κ, the link's slope.

    >>> world = HardStochastic(rng=np.random.default_rng(0), dimension=3, horizon=100)
    >>> float(np.ptp(np.abs(world.parameter)))
    0.0
    """

    def __init__(
        self, *, rng: np.random.Generator, dimension: int = 5, horizon: int = 2000, kappa: float = 1.0
    ) -> None:
        checked_dimension(dimension, largest=12)
        if horizon < 4 * dimension**2 / 25:
            raise BadInputError(f"hard-stochastic needs T ≥ 4d²/25, but T = {horizon} and d = {dimension}.")
        kappa = positive("kappa", kappa)
        side = math.sqrt(dimension / horizon) / 20.0 / kappa
        parameter = rng.choice((-side, side), dimension)
        actions = hypercube(dimension)
        super().__init__(
            actions,
            actions @ parameter,
            link=clipped_linear(kappa),
            norm_bound=math.sqrt(dimension) * side,
            parameter=parameter,
        )


class HardCorrupted(FixedWorld):
    """An instance with one better action that the attack ``hiding`` can hide: regret of order dC/κ.

    The actions are e_1, …, e_d; θ* = e_i/(4κ) for a random i.

    Args:
        dimension: d, the number of features.
        kappa: κ, the link's slope.

    >>> world = HardCorrupted(rng=np.random.default_rng(0), dimension=3)
    >>> sorted(world.parameter.tolist())
    [0.0, 0.0, 0.25]
    """

    def __init__(self, *, rng: np.random.Generator, dimension: int = 5, kappa: float = 1.0) -> None:
        actions = np.eye(checked_dimension(dimension))
        kappa = positive("kappa", kappa)
        parameter = actions[rng.integers(dimension)] / (4.0 * kappa)
        super().__init__(
            actions,
            actions @ parameter,
            link=clipped_linear(kappa),
            norm_bound=0.25 / kappa,
            parameter=parameter,
        )
