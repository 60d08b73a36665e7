"""Feature maps: rewards that are not linear in what an action is described by, but in features of it."""

from collections.abc import Callable
from functools import partial

from fairduel.features.feature_map import Chain, FeatureMap, TrainingVotes, as_map
from fairduel.features.kernels import Kernel, kernel_matrix, random_frequencies
from fairduel.features.network import Network
from fairduel.features.simple import Custom, Quadratic, Whitened


def _kernel(name: str, scale: float | str = 0.0, features: int = 60) -> Kernel:
    return Kernel(name, scale or None, features)  # type: ignore[arg-type]  # checked there


MAPS: dict[str, Callable[..., FeatureMap]] = {
    "rbf": partial(_kernel, "rbf"),
    "matern52": partial(_kernel, "matern52"),
    "quadratic": Quadratic,
    "whitened": Whitened,
    "neural": Network,
}
"""Every map by its name in text."""

__all__ = [
    "MAPS",
    "Chain",
    "Custom",
    "FeatureMap",
    "Kernel",
    "Network",
    "Quadratic",
    "TrainingVotes",
    "Whitened",
    "as_map",
    "kernel_matrix",
    "random_frequencies",
]
