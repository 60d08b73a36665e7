"""Maps without a kernel: products of features, whitened embeddings, and a function or transformer of yours."""

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fairduel.checks import integer
from fairduel.duel import Matrix
from fairduel.errors import BadInputError
from fairduel.features.feature_map import FeatureMap
from fairduel.features.kernels import within_unit_ball


class Quadratic(FeatureMap):
    """Features and all their products: (x, x_i x_j)/√2, so that rewards are any quadratic function.

    >>> Quadratic().fit(1)([[0.5]]).round(3).tolist()
    [[0.354, 0.177]]
    """

    name = "quadratic"

    def __init__(self) -> None:
        super().__init__()

    def learn(self, actions: Matrix, rng: np.random.Generator, *, are_known: bool) -> None:
        """Learn nothing."""

    def mapped(self, actions: Matrix) -> Matrix:
        """Return the features of ``actions`` (K, d)."""
        i, j = np.triu_indices(actions.shape[1])
        counts = np.where(i == j, 1.0, math.sqrt(2.0))  # then the products of features are (xᵀy)²
        return np.hstack([actions, actions[:, i] * actions[:, j] * counts]) * math.sqrt(0.5)


class Whitened(FeatureMap):
    """The first principal components of known actions, each divided by its standard deviation; for embeddings.

    All are then divided by the largest norm; a new action that is longer is shortened to norm 1.

    Args:
        components: k.

    >>> known = np.array([[0.9, 0.1], [-0.9, 0.1], [0.0, -0.2]])
    >>> Whitened(2).fit(2, known)(known).std(axis=0).round(3).tolist()
    [0.707, 0.707]
    """

    name = "whitened"
    needs_actions = True

    def __init__(self, components: int = 32) -> None:
        super().__init__(components=integer("components", components, least=1))

    def learn(self, actions: Matrix, rng: np.random.Generator, *, are_known: bool) -> None:  # noqa: ARG002
        """Find the components."""
        mean = actions.mean(axis=0)
        _, sizes, axes = np.linalg.svd(actions - mean, full_matrices=False)
        most = min(self.settings["components"], int((sizes > 1e-9 * max(sizes[0], 1e-300)).sum()))
        if most == 0:
            raise BadInputError("the actions that a whitened map is fitted to are all the same.")
        axes = axes[:most]
        axes *= np.where(axes[range(most), np.argmax(np.abs(axes), axis=1)] < 0, -1.0, 1.0)[:, None]
        loads = axes / sizes[:most, None]
        largest = float(np.linalg.norm((actions - mean) @ loads.T, axis=1).max())
        self.arrays = {"mean": mean, "loads": loads / largest}

    def mapped(self, actions: Matrix) -> Matrix:
        """Return the features of ``actions`` (K, d)."""
        return within_unit_ball((actions - self.arrays["mean"]) @ self.arrays["loads"].T)


class Custom(FeatureMap):
    """A function of yours, or a scikit-learn transformer: it gets actions (K, d) and returns features (K, m).

    A copy of a transformer that is not fitted yet is fitted to the known actions. Features are divided by the largest
    norm seen when the map is fitted. An agent with such a map cannot be saved, because functions cannot; write a
    :class:`FeatureMap` of your own for that.

    Args:
        function: A function, or an object with ``transform``.

    >>> Custom(lambda x: np.hstack([x, np.abs(x)])).fit(2).size
    4
    """

    def __init__(self, function: Any) -> None:
        if not callable(function) and not hasattr(function, "transform"):
            raise BadInputError("a map of your own must be a function or have a method transform.")
        super().__init__(function=function)
        self._apply: Callable[[Matrix], Any] = getattr(function, "transform", function)

    def unfitted(self) -> "Custom":
        """Return the map before it was fitted."""
        return Custom(self.settings["function"])

    def learn(self, actions: Matrix, rng: np.random.Generator, *, are_known: bool) -> None:  # noqa: ARG002
        """Fit a transformer, if that is left to do, and find the largest norm."""
        function = self.settings["function"]
        if hasattr(function, "transform") and not _is_fitted(function, actions):
            if not are_known:
                raise BadInputError(f"the feature map {self} is not fitted; fit it, or fit the map to known actions.")
            self._apply = copy.deepcopy(function).fit(actions).transform
        self.arrays = {"factor": np.ones(1)}
        largest = float(np.linalg.norm(self._raw(actions), axis=1).max())
        self.arrays = {"factor": np.array([max(largest, 1e-300)])}

    def _raw(self, actions: Matrix) -> Matrix:
        rows: Any = self._apply(actions)
        try:
            rows = np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=np.float64)
        except (TypeError, ValueError):
            raise BadInputError(f"the feature map {self} must return a table of numbers.") from None
        if rows.ndim != 2 or len(rows) != len(actions) or not np.isfinite(rows).all():
            raise BadInputError(
                f"a map of your own must return finite features, one row per action; it returned shape {rows.shape}."
            )
        return np.asarray(rows)

    def mapped(self, actions: Matrix) -> Matrix:
        """Return the features of ``actions`` (K, d)."""
        return within_unit_ball(self._raw(actions) / self.arrays["factor"][0])

    def __str__(self) -> str:
        function = self.settings["function"]
        return str(getattr(function, "__name__", type(function).__name__))

    def state(self) -> dict[str, Any]:
        """Refuse: a function cannot be saved."""
        raise BadInputError(
            f"the feature map {self} is a function or an object, which cannot be saved; derive a class from "
            "fairduel.features.FeatureMap instead."
        )


def _is_fitted(transformer: Any, actions: Matrix) -> bool:
    """Whether it can transform ``actions``: scikit-learn's NotFittedError is both of these errors."""
    try:
        transformer.transform(actions)
    except (AttributeError, ValueError):
        return False
    return True
