"""Action sets: listed, or implicit where they are too large to list.

Each implicit set solves the paper's argmax over pairs (Algorithm 1, line 6) without enumerating its actions. The
``gap`` of the returned :class:`Pair` bounds how far its score is from the best; it is 0 where the pair is exact.

>>> import numpy as np
>>> cube = HypercubeSet(20)  # a million actions
>>> pair = cube.best_pair(np.linspace(-1, 1, 20), np.eye(20), 1.0, np.random.default_rng(0))
>>> pair.gap, pair.first.shape
(0.0, (20,))
"""

from fairduel.action_sets.ball import BallSet
from fairduel.action_sets.listed import ActionSet, Pair, checked_actions, hypercube
from fairduel.action_sets.product import ProductSet
from fairduel.action_sets.vertices import HypercubeSet

__all__ = ["ActionSet", "BallSet", "HypercubeSet", "Pair", "ProductSet", "checked_actions", "hypercube"]
