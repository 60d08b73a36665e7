"""The sets of actions that agents choose from: listed, or too large for that.

Each set that is not listed answers the paper's argmax over pairs (Algorithm 1, line 6) with a :class:`Pair`, found by
mathematics instead of search; its ``gap`` says how far its score can be from the best: 0 where it is exact.

>>> import numpy as np
>>> cube = HypercubeSet(20)  # a million actions
>>> pair = cube.best_pair(np.linspace(-1, 1, 20), np.eye(20), 1.0, np.random.default_rng(0))
>>> pair.gap, pair.first.shape
(0.0, (20,))
"""

from fairduel.action_sets.ball import BallSet
from fairduel.action_sets.base import ActionSet, Pair
from fairduel.action_sets.hypercube import HypercubeSet
from fairduel.action_sets.listed import checked_actions, hypercube
from fairduel.action_sets.product import ProductSet

__all__ = ["ActionSet", "BallSet", "HypercubeSet", "Pair", "ProductSet", "checked_actions", "hypercube"]
