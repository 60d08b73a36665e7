"""Honest voters: what each of them answers, and what all who could have been asked would answer on average."""

import itertools
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy import special

from fairduel.duel import Matrix, Vector

TASTE = 0.7
"""Standard deviation of a voter's taste, or of a prompt's effect, per item (log-odds)."""
DIVIDED = 2.0
"""What half of all voters add to the score of a divisive item, and the other half subtract."""
_NODES = 24  # of Gauss-Hermite quadrature; the averages are then exact to 1e-4
_CARELESS = 0.1  # share of answers by coin where the link is a mixture

Codes = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Crowd:
    """Everybody who could be asked.

    Voter v prefers item i to j, in context p, with log-odds s_v (θ_i − θ_j) + u_vi − u_vj + e_pi − e_pj + β, where
    i is shown first.

    Args:
        theta: θ, the scores, shape ``(K,)``.
        taste: Standard deviation of the tastes u.
        divided: Items whose u is further ±2, + for half of all voters, independently of each other.
        care: Standard deviation of log s.
        prompt: Standard deviation of the prompts' effects e.
        advantage: β, the advantage of the item shown first.
        mixture: Whether the link is a mixture of probit, cauchit and 10% coin flips instead of the logistic function.
        tie: ν of Davidson's model of ties.
    """

    theta: Vector
    taste: float = 0.0
    divided: tuple[int, ...] = ()
    care: float = 0.0
    prompt: float = 0.0
    advantage: float = 0.0
    mixture: bool = False
    tie: float = 0.0

    def chances(self, margin: Vector | Matrix) -> tuple[Vector | Matrix, Vector | Matrix]:
        """Return the chance that the first item wins unless it is a tie, and the chance of a tie, by log-odds."""
        if self.mixture:
            links = 0.5 * special.ndtr(margin) + 0.5 * (0.5 + np.arctan(margin) / np.pi)
            return (1.0 - _CARELESS) * links + 0.5 * _CARELESS, np.zeros_like(margin)
        # P(tie) = ν √(p_i p_j) / (p_i + p_j + ν √(p_i p_j))
        return special.expit(margin), self.tie / (2.0 * np.cosh(0.5 * margin) + self.tie)

    def average(self) -> Matrix:
        """Return the expected result of i against j over all voters, contexts and both sides, shape ``(K, K)``.

        >>> Crowd(theta=np.array([0.0, 1.0]), taste=0.7).average().round(3)
        array([[0.5 , 0.3 ],
               [0.7 , 0.5 ]])
        """
        tastes, taste_weights = _normal(np.sqrt(2.0 * (self.taste**2 + self.prompt**2)))
        cares, care_weights = _normal(self.care)
        patterns = list(itertools.product((-DIVIDED, DIVIDED), repeat=len(self.divided)))
        result = np.zeros((len(self.theta), len(self.theta)))
        for pattern in patterns:
            extra = np.zeros(len(self.theta))
            extra[list(self.divided)] = pattern
            for care, care_weight in zip(np.exp(cares), care_weights, strict=True):
                own = care * self.theta + extra
                for taste, taste_weight in zip(tastes, taste_weights, strict=True):
                    won, tie = self.chances(own[:, None] - own + taste)
                    result += care_weight * taste_weight / len(patterns) * (0.5 * tie + (1.0 - tie) * won)
        result = 0.5 * (result + 1.0 - result.T)  # the quadrature is symmetric up to rounding
        np.fill_diagonal(result, 0.5)
        return result


def _normal(deviation: float) -> tuple[Vector, Vector]:
    """Return nodes and weights to average over N(0, ``deviation``²)."""
    if deviation == 0.0:
        return np.zeros(1), np.ones(1)
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    return deviation * nodes, weights / weights.sum()


@dataclass(frozen=True, eq=False)
class People:
    """The voters who are asked, and the prompts that they are asked on.

    Args:
        crowd: Where they come from.
        own: Each voter's own scores, shape ``(V, K)``.
        activity: How often each votes, in proportion, shape ``(V,)``.
        effects: Effects of the prompts, shape ``(prompts, K)``; no rows if there are none.
    """

    crowd: Crowd
    own: Matrix
    activity: Vector
    effects: Matrix

    @classmethod
    def drawn(cls, crowd: Crowd, voters: int, rng: np.random.Generator, *, prompts: int = 0) -> Self:
        """Draw voters with the same activity, and prompts."""
        count = len(crowd.theta)
        tastes = crowd.taste * rng.standard_normal((voters, count))
        for item in crowd.divided:
            tastes[:, item] += rng.choice((-DIVIDED, DIVIDED), voters)
        care = np.exp(crowd.care * rng.standard_normal(voters))
        effects = crowd.prompt * rng.standard_normal((prompts, count))
        return cls(crowd, care[:, None] * crowd.theta + tastes, np.ones(voters), effects)

    def with_activity(self, activity: Vector) -> Self:
        """Return the same people with another activity, shape ``(V,)``."""
        return replace(self, activity=activity)

    def in_households(self, rng: np.random.Generator) -> Self:
        """Return people of whom the first 2 to 5 share the tastes of the first, the next 2 to 5 those of the next …"""
        voters = len(self.own)
        household = np.repeat(np.arange(voters), rng.integers(2, 6, voters))[:voters]
        return replace(self, own=self.own[household])

    def who(self, votes: int, rng: np.random.Generator) -> Codes:
        """Draw who casts each vote, in proportion to activity, shape ``(votes,)``."""
        return rng.choice(len(self.activity), votes, p=self.activity / self.activity.sum())

    def answers(
        self, voter: Codes, first: Codes, second: Codes, rng: np.random.Generator
    ) -> tuple[Vector, Codes | None]:
        """Draw the results of duels, and the prompt of each if there are any, all ``(n,)``."""
        margin, context = self.own[voter, first] - self.own[voter, second] + self.crowd.advantage, None
        if len(self.effects):
            context = rng.integers(len(self.effects), size=len(voter))
            margin += self.effects[context, first] - self.effects[context, second]
        won, tie = self.crowd.chances(margin)
        draw = rng.random(len(voter))
        return np.where(draw < tie, 0.5, (draw < tie + (1.0 - tie) * won).astype(np.float64)), context
