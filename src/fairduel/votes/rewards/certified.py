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
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from fairduel.checks import integer
from fairduel.duel import Vector
from fairduel.errors import BadInputError
from fairduel.votes.rewards.held_out import groups_of
from fairduel.votes.rewards.model import RobustRewardModel
from fairduel.votes.votes import Indices
from fairduel.words import counted_noun

_VOTERS_EACH = 4
LEAST_SHARE = 0.02
"""Share of the voters whose lies a preference should withstand."""
_MOST_GROUPS = 101
_RIDGE_PER_FEATURE = 1.0


class Certificates(NamedTuple):
    """Which answer of each of n pairs is preferred, and how many voters must lie, at least, to change that."""

    side: Vector
    """1 if the first is preferred, −1 if the second is, 0 if neither, (n,)."""
    least: Indices
    """k, (n,); 0 if neither is preferred."""
    voters: int
    groups: int

    @property
    def aim(self) -> int:
        """How many liars a preference should withstand: 2% of the voters, at least two."""
        return max(2, int(np.ceil(LEAST_SHARE * self.voters)))

    @property
    def share(self) -> float:
        """The share of pairs whose preference fewer than ``aim`` voters cannot change."""
        return float((self.least >= self.aim).mean())

    @property
    def sentence(self) -> str:
        """How many voters must lie to change the preferences."""
        half = int(np.median(self.least))
        return (
            f"{self.share:.0%} of the pairs keep their preferred text unless at least {self.aim:,} of {self.voters:,} "
            f"voters lie ({self.aim / self.voters:.0%})"
            + (f"; for half of them, it takes at least {counted_noun(half, 'liar')}." if half else ".")
        )

    def sentences(self, first: str = "first answer", second: str = "second answer") -> list[str]:
        """Say of each pair which answer is preferred, and how many voters must lie to change that."""
        return [
            f"The {first if side > 0.0 else second} is preferred unless at least {least:,} of {self.voters:,} voters "
            "lie."
            if least
            else f"Neither {first.rsplit(maxsplit=1)[-1]} is preferred."
            for side, least in zip(self.side, self.least, strict=True)
        ]


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
    def fit(
        cls,
        X: ArrayLike,
        y: ArrayLike,
        voters: ArrayLike,
        *,
        groups: int | None = None,
        sample_weight: ArrayLike | None = None,
        **settings: Any,
    ) -> Self:
        """Fit a model for each group.

        Args:
            X: See :meth:`RobustRewardModel.fit`.
            y: The same.
            voters: Who cast each vote, shape ``(n,)``.
            groups: How many groups; odd, so that one side always has the majority. Default: one for four voters, at
                most 101.
            sample_weight: How many times each vote counts; for each voter, the sum must not depend on the answers.
            settings: Of each model. Default of ``ridge``: the number of features.

        Returns:
            The models.
        """
        pairs, result = np.asarray(X), np.asarray(y)
        names, voter = np.unique(np.asarray(voters), return_inverse=True)
        weight = np.ones(len(voter)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        if not len(voter) == len(pairs) == len(result) == len(weight):
            raise BadInputError("X, y, voters and sample_weight must be of the same length.")
        count = usual_groups(len(names)) if groups is None else integer("groups", groups, least=1)
        if count % 2 == 0 or count > len(names):
            raise BadInputError(f"groups must be odd and at most the number of voters, {len(names)}, not {count}.")
        settings = {"ridge": _RIDGE_PER_FEATURE * pairs.shape[-1]} | settings
        group = groups_of(voter, weight, count, np.random.default_rng(0))[voter]
        models = []
        for chosen in (np.flatnonzero(group == each) for each in range(count)):
            model = RobustRewardModel(**settings)
            models.append(model.fit(pairs[chosen], result[chosen], weight[chosen], voters=voter[chosen]))
        return cls(tuple(models), len(names))

    def margins(self, X: ArrayLike) -> Vector:
        """Return the median of the models' reward differences, first − second, shape ``(n,)``."""
        return np.asarray(np.median([model.leads(X) for model in self.models], axis=0))

    def certificates(self, X: ArrayLike) -> Certificates:
        """Return which answer of each pair is preferred, and how many voters must lie to change that."""
        pairs, lead = np.asarray(X), np.zeros(len(np.asarray(X)), dtype=np.int64)
        for model in self.models:
            lead += np.sign(model.leads(pairs)).astype(np.int64)
        return Certificates(np.sign(lead).astype(np.float64), (np.abs(lead) + 1) // 2, self.voters, len(self.models))

    def least_liars(self, X: ArrayLike) -> Indices:
        """Return k: how many voters must lie, at least, before the preferred answer changes, shape ``(n,)``."""
        return self.certificates(X).least

    def sentences(self, X: ArrayLike) -> list[str]:
        """Say of each pair which answer is preferred, and how many voters must lie to change that."""
        return self.certificates(X).sentences()


def usual_groups(voters: int) -> int:
    """Return in how many groups this many voters are divided: an odd number, about one for four voters.

    >>> usual_groups(3), usual_groups(65), usual_groups(5000)
    (1, 15, 101)
    """
    count = max(1, min(_MOST_GROUPS, voters // _VOTERS_EACH))
    return count - (count + 1) % 2
