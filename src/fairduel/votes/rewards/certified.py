"""Preferences between answers that a few lying voters provably cannot change.

The voters are divided into groups by how often they voted, not by what they answered, and every group has a reward
model of its own. The median of the models' margins decides. A voter who lies changes one model, and a model that
changes sides changes the majority by two. So if a models prefer one answer and b < a the other, at least ⌈(a − b)/2⌉
voters must lie before the first is no longer preferred: k below. Liars may answer as they like, and know everything;
who voted on which pairs is as it was.

More groups tolerate more liars if the models agree, but each learns from fewer votes. The number of groups must not be
chosen by looking at certificates.
"""
# ruff: noqa: N803  # scikit-learn calls it X

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from fairduel.checks import integer
from fairduel.duel import Vector
from fairduel.errors import BadInputError
from fairduel.votes.rewards.held_out import groups_of
from fairduel.votes.rewards.model import RobustRewardModel
from fairduel.votes.votes import Indices

_VOTERS_EACH = 4
_MOST_GROUPS = 101
_RIDGE_PER_FEATURE = 1.0


@dataclass(frozen=True, eq=False)
class CertifiedRewards:
    """Reward models of disjoint groups of voters.

    Args:
        models: One per group.
        voters: The number of voters.

    >>> rng = np.random.default_rng(0)
    >>> answers = rng.normal(size=(600, 2, 3))
    >>> votes = (answers[:, 0, 0] > answers[:, 1, 0]).astype(int)
    >>> certified = CertifiedRewards.fit(answers, votes, voters=np.arange(600) % 40)
    >>> certified.sentences([[[2.0, 0, 0], [-2.0, 0, 0]]])
    ['The first answer is preferred unless at least 5 of 40 voters lie.']
    """

    models: tuple[RobustRewardModel, ...]
    voters: int

    @classmethod
    def fit(cls, X: ArrayLike, y: ArrayLike, voters: ArrayLike, *, groups: int | None = None, **settings: Any) -> Self:
        """Fit a model for each group.

        Args:
            X: See :meth:`RobustRewardModel.fit`.
            y: The same.
            voters: Who cast each vote, shape ``(n,)``.
            groups: How many groups; odd, so that one side always has the majority. Default: one for four voters, at
                most 101.
            settings: Of each model. Default of ``ridge``: the number of features.

        Returns:
            The models.
        """
        pairs, result = np.asarray(X), np.asarray(y)
        names, voter = np.unique(np.asarray(voters), return_inverse=True)
        if not len(voter) == len(pairs) == len(result):
            raise BadInputError("X, y and voters must be of the same length.")
        default = max(1, min(_MOST_GROUPS, len(names) // _VOTERS_EACH))
        count = default - (default + 1) % 2 if groups is None else integer("groups", groups, least=1)
        if count % 2 == 0 or count > len(names):
            raise BadInputError(f"groups must be odd and at most the number of voters, {len(names)}, not {count}.")
        settings = {"ridge": _RIDGE_PER_FEATURE * pairs.shape[-1]} | settings
        group = groups_of(voter, np.ones(len(voter)), count, np.random.default_rng(0))[voter]
        models = []
        for chosen in (np.flatnonzero(group == each) for each in range(count)):
            model = RobustRewardModel(**settings)
            models.append(model.fit(pairs[chosen], result[chosen], voters=voter[chosen]))
        return cls(tuple(models), len(names))

    def margins(self, X: ArrayLike) -> Vector:
        """Return the median of the models' reward differences, first − second, shape ``(n,)``."""
        return np.asarray(np.median(self._each(X), axis=0))

    def least_liars(self, X: ArrayLike) -> Indices:
        """Return k: how many voters must lie, at least, before the preferred answer changes, shape ``(n,)``."""
        each = self._each(X)
        lead = np.abs((each > 0.0).sum(axis=0) - (each < 0.0).sum(axis=0))
        return np.asarray((lead + 1) // 2, dtype=np.int64)

    def sentences(self, X: ArrayLike) -> list[str]:
        """Say of each pair which answer is preferred, and how many voters must lie to change that."""
        return [
            f"The {'first' if margin > 0.0 else 'second'} answer is preferred unless at least {least:,} of "
            f"{self.voters:,} voters lie."
            if least
            else "Neither answer is preferred."
            for margin, least in zip(self.margins(X), self.least_liars(X), strict=True)
        ]

    def _each(self, X: ArrayLike) -> Any:
        return np.stack([model.margins(X)[0] for model in self.models])
