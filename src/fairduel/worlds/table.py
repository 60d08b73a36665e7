"""A world from your own features and rewards."""

import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from fairduel.action_sets import checked_actions
from fairduel.checks import positive
from fairduel.core.links import LOGISTIC, Link, as_link
from fairduel.errors import BadInputError
from fairduel.worlds.world import FixedWorld


class Table(FixedWorld):
    """A fixed set of actions with any rewards, linear in the features or not.

    Args:
        features: Shape (K, d), with norms ≤ 1.
        rewards: Shape (K,).
        norm_bound: B, the bound on ‖θ*‖ that agents are told; no table contains it.

    >>> world = Table(features=[[1.0, 0.0], [0.0, 1.0]], rewards=[0.3, 0.7], norm_bound=1.0)
    >>> world.offer(1).rewards.tolist()
    [0.3, 0.7]
    """

    def __init__(
        self,
        *,
        features: ArrayLike,
        rewards: ArrayLike,
        norm_bound: float,
        link: Link | str = LOGISTIC,
        ties: str = "none",
    ) -> None:
        try:
            width = np.asarray(features).shape[-1]
            values = np.asarray(rewards, dtype=np.float64)
        except (ValueError, TypeError, IndexError):
            raise BadInputError("a table needs one row of features and one reward per action.") from None
        actions = checked_actions(features, width)
        if values.shape != (len(actions),) or not np.isfinite(values).all():
            raise BadInputError(f"a table of {len(actions)} actions needs {len(actions)} finite rewards.")
        bound = positive("norm_bound", norm_bound)
        super().__init__(actions, values, link=as_link(link), norm_bound=bound, parameter=None, ties=ties)

    @classmethod
    def read(
        cls,
        *,
        path: str,
        norm_bound: float,
        ties: str = "none",
        rng: np.random.Generator | None = None,  # noqa: ARG003
    ) -> "Table":
        """Read ``features`` (K, d) and ``rewards`` (K,) from an npz file."""
        try:
            with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as archive:
                return cls(features=archive["features"], rewards=archive["rewards"], norm_bound=norm_bound, ties=ties)
        except (OSError, KeyError, ValueError, TypeError, AttributeError, EOFError, zipfile.BadZipFile) as error:
            if isinstance(error, BadInputError):
                raise
            raise BadInputError(
                f"{path} is not an npz file with arrays 'features' (K, d) and 'rewards' (K,): {error}."
            ) from error
