"""Other rankings of recorded votes, to compare ours with: scores only, without uncertainty.

Every one takes votes and returns scores (K,) in log-odds, highest first, with mean 0. Except for plain Bradley–Terry,
they need to know who voted; without voters, all votes are taken to be by one voter.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np
from scipy import optimize, sparse, special

from fairduel.duel import Vector
from fairduel.votes.ranking.bradley_terry import TINY_RIDGE, fit_scores, wins
from fairduel.votes.votes import Codes, Mask, Ties, Votes, ensure_some_count, sums

_MOST_STEPS = 500  # of L-BFGS
_ABILITY_PRIOR = 1.0  # precision of am-ELO's abilities around 1
_QUALITY_PRIOR = (10.0, 1.0)  # true and false votes added to every voter's by Crowd-BT
_REFITS = 5  # of reliability weighting
_ROUNDS, _SEEN = 40, 1.0  # of EM for abilities; true and false votes added to every voter's
_TASTE = 0.25  # variance of a voter's taste for an item
_SLOPE = 0.2  # information of a vote, about
_PSEUDO_VOTES = 2.0  # of agreement ½, for reliability weighting
_LEAST_CONFIDENCE = 0.01  # of a voter whom the spectral filter keeps although most others disagree


class Model(Protocol):
    """Scores (K,) of votes."""

    def __call__(self, votes: Votes, ties: Ties = "half") -> Vector:
        """Return the scores."""


class Loss(NamedTuple):
    """A joint loss of scores (K,) and one parameter per voter (V,), with its gradient, over both in one vector."""

    of: Callable[[Vector], tuple[float, Vector]]
    start: Vector


def plain(votes: Votes, ties: Ties = "half") -> Vector:
    """Bradley–Terry by maximum likelihood; all votes count equally.

    >>> plain(Votes.from_arrays("ab", [0] * 4, [1] * 4, [1, 1, 1, 0])).round(3).tolist()  # ± ½ log 3
    [0.549, -0.549]
    """
    return fit_scores(wins(votes, ties=ties)).scores


def crowd_bt(votes: Votes, ties: Ties = "half") -> Vector:
    """Crowd-BT (Chen et al. 2013): voter v reports the truth with probability η_v, P = η_v σ(z) + (1 − η_v) σ(−z).

    Maximises the joint posterior of scores and qualities, as if every voter had told the truth 10 more times and lied
    once, and with a normal prior of precision 0.01 on the scores in place of the paper's virtual item (both ours).
    """
    scores, _ = _fitted(crowd_bt_loss(votes, ties), votes, ties)
    return scores


def am_elo(votes: Votes, ties: Ties = "half") -> Vector:
    """am-ELO (Liu et al. 2025): voter v has ability a_v, P = σ(a_v z), with mean ability 1.

    Maximises the joint likelihood, with a ~ N(1, 1) and a normal prior of precision 0.01 on the scores (both ours),
    because abilities of voters who always agree have no finite estimate. An ability may be negative.
    """
    scores, ability = _fitted(am_elo_loss(votes, ties), votes, ties)
    return scores * float(ability.mean())


def reliability_weighted(votes: Votes, ties: Ties = "half") -> Vector:
    """Bradley–Terry with each voter weighted by max(0, 2·agreement − 1), refitted five times.

    Agreement is the share of the voter's votes that the last fit predicts, with two more of agreement ½.
    """
    counts, voter = votes.counts(ties), _voter(votes)
    weight = np.ones(len(votes))
    scores = np.zeros(len(votes.items))
    for _ in range(_REFITS):
        scores = plain(replace(votes, weight=votes.weight * weight), ties)
        margin = (scores[votes.first] - scores[votes.second]) * (votes.result - 0.5)
        agreed = 0.5 * (1.0 + np.sign(margin))
        cast = np.bincount(voter, counts) + _PSEUDO_VOTES
        agreement = (np.bincount(voter, counts * agreed) + 0.5 * _PSEUDO_VOTES) / cast
        weight = np.maximum(2.0 * agreement - 1.0, 0.0)[voter]
        if not (counts * weight).any():
            break
    return scores


def abilities(votes: Votes, ties: Ties = "half") -> Vector:
    """Abilities in [−1, 1] by EM, in the manner of BoRaEM (2026): P = ½ + a_v (σ(z) − ½) inverts opposed votes.

    A vote is true with probability η_v = (1 + a_v)/2, otherwise inverted. The E-step finds how likely each is true; η
    is then their share, with one true and one false vote added, and scores are refitted with those shares.
    """
    counts, voter = votes.counts(ties), _voter(votes)
    scores, eta = plain(votes, ties), np.full(int(voter.max(initial=0)) + 1, 0.8)
    cast = np.bincount(voter, counts, len(eta)) + 2.0 * _SEEN
    for _ in range(_ROUNDS):
        chance = special.expit(scores[votes.first] - scores[votes.second])
        likely = np.where(votes.result > 0.5, chance, 1.0 - chance)
        truth = eta[voter] * likely
        truth /= truth + (1.0 - eta[voter]) * (1.0 - likely)
        truth = np.where(votes.result == 0.5, 0.5, truth)
        won = np.where(votes.result == 0.5, 0.5, truth * votes.result + (1.0 - truth) * (1.0 - votes.result))
        eta = (np.bincount(voter, counts * truth, len(eta)) + _SEEN) / cast
        scores = fit_scores(wins(replace(votes, result=won), ties="half"), ridge=TINY_RIDGE, start=scores).scores
    return scores


def tastes(votes: Votes, ties: Ties = "half") -> Vector:
    """Bradley–Terry with tastes: votes of one voter on one item share a taste, so together they count at most 1/τ²."""
    counts, count = votes.counts(ties), len(votes.items)
    cells = [_voter(votes).astype(np.int64) * count + item for item in (votes.first, votes.second)]
    _, cell = np.unique(np.concatenate(cells), return_inverse=True)
    information = np.bincount(cell, np.tile(_SLOPE * counts, 2))[cell].reshape(2, -1).sum(axis=0)
    return plain(replace(votes, weight=votes.weight / (1.0 + _TASTE * information)), ties)


def spectral(votes: Votes, ties: Ties = "half") -> Vector:
    """Rank centrality after removing voters, in the spirit of Byzantine spectral ranking (Datar et al. 2022).

    The published algorithm assumes that a voter votes on all pairs of an item, and removes voters whose vote pattern is
    too frequent. Files rarely have that, so the filter here is our own: a voter is compared, pair by pair, with the
    majority of all others, and removed if they agree in fewer than half of these votes, beyond chance (99%).

    Rank centrality (Negahban et al. 2017): a random walk moves from i to j at the rate at which j beats i, with one
    vote added to each pair for finite scores; an item's score is the log of its stationary probability.
    """
    kept = _with_majority(votes, votes.counts(ties), _voter(votes))
    return rank_centrality(replace(votes, weight=votes.weight * kept), ties)


def rank_centrality(votes: Votes, ties: Ties = "half") -> Vector:
    """Rank centrality alone; see :func:`spectral`. Components of the comparison graph have mean 0 each."""
    ensure_some_count(votes.counts(ties))
    won = wins(votes, ties=ties)
    met = won + won.T > 0.0
    rate = np.where(met, (won.T + 0.5) / (won + won.T + 1.0), 0.0) / max(met.sum(axis=1).max(), 1)
    walk = rate + np.diag(1.0 - rate.sum(axis=1))
    component = votes.components(ties)
    scores = np.zeros(len(won))
    for number in range(int(component.max()) + 1):
        inside = np.flatnonzero(component == number)
        flow = walk[np.ix_(inside, inside)].T - np.eye(len(inside))
        flow[-1] = 1.0  # probabilities add up to 1, in place of one redundant equation
        scores[inside] = np.log(np.maximum(np.linalg.solve(flow, np.eye(len(inside))[-1]), 1e-300))
        scores[inside] -= scores[inside].mean()
    return scores


def am_elo_loss(votes: Votes, ties: Ties = "half") -> Loss:
    """Negative log-posterior of am-ELO at (θ, a)."""
    counts, voter, items = votes.counts(ties), _voter(votes), len(votes.items)
    voters = int(voter.max(initial=0)) + 1

    def of(point: Vector) -> tuple[float, Vector]:
        theta, ability = point[:items], point[items:]
        z = theta[votes.first] - theta[votes.second]
        margin = ability[voter] * z
        loss = counts @ (np.logaddexp(0.0, margin) - votes.result * margin)
        loss += 0.5 * TINY_RIDGE * theta @ theta + 0.5 * _ABILITY_PRIOR * ((ability - 1.0) ** 2).sum()
        residual = counts * (special.expit(margin) - votes.result)
        of_ability = np.bincount(voter, residual * z, voters) + _ABILITY_PRIOR * (ability - 1.0)
        return float(loss), np.concatenate(
            [_to_items(votes, residual * ability[voter]) + TINY_RIDGE * theta, of_ability]
        )

    return Loss(of, np.concatenate([plain(votes, ties), np.ones(voters)]))


def crowd_bt_loss(votes: Votes, ties: Ties = "half") -> Loss:
    """Negative log-posterior of Crowd-BT at (θ, logit η)."""
    counts, voter, items = votes.counts(ties), _voter(votes), len(votes.items)
    voters = int(voter.max(initial=0)) + 1
    right, wrong = _QUALITY_PRIOR

    def of(point: Vector) -> tuple[float, Vector]:
        theta, quality = point[:items], special.expit(point[items:])
        p, eta = special.expit(theta[votes.first] - theta[votes.second]), quality[voter]
        chance = eta * p + (1.0 - eta) * (1.0 - p)
        loss = -counts @ (votes.result * np.log(chance) + (1.0 - votes.result) * np.log1p(-chance))
        loss += 0.5 * TINY_RIDGE * theta @ theta - (right * np.log(quality) + wrong * np.log1p(-quality)).sum()
        slope = counts * (chance - votes.result) / (chance * (1.0 - chance))
        of_quality = np.bincount(voter, slope * (2.0 * p - 1.0), voters) * quality * (1.0 - quality)
        of_quality -= right * (1.0 - quality) - wrong * quality
        of_theta = _to_items(votes, slope * (2.0 * eta - 1.0) * p * (1.0 - p)) + TINY_RIDGE * theta
        return float(loss), np.concatenate([of_theta, of_quality])

    return Loss(of, np.concatenate([plain(votes, ties), np.full(voters, special.logit(right / (right + wrong)))]))


def _fitted(loss: Loss, votes: Votes, ties: Ties) -> tuple[Vector, Vector]:
    """Minimise a joint loss; return the scores (K,), with mean 0 in each component, and the voters' parameters (V,)."""
    found = optimize.minimize(loss.of, loss.start, jac=True, method="L-BFGS-B", options={"maxiter": _MOST_STEPS}).x
    scores, component = found[: len(votes.items)], votes.components(ties)
    return scores - (np.bincount(component, scores) / np.bincount(component))[component], found[len(votes.items) :]


def _to_items(votes: Votes, values: Vector) -> Vector:
    """Sum the ``values`` (n,) of each item's votes, negated where it is the second, shape (K,)."""
    count = len(votes.items)
    return sums(votes.first, count, values) - sums(votes.second, count, values)


def _voter(votes: Votes) -> Codes:
    return np.zeros(len(votes), np.int32) if votes.voter is None else votes.voter


def _with_majority(votes: Votes, counts: Vector, voter: Codes) -> Mask:
    """Return which votes (n,) are by voters who do not contradict the majority of the others; see :func:`spectral`."""
    low, high = np.minimum(votes.first, votes.second), np.maximum(votes.first, votes.second)
    pairs, pair = np.unique(low.astype(np.int64) * len(votes.items) + high, return_inverse=True)
    for_low = counts * (2.0 * np.where(votes.first == low, votes.result, 1.0 - votes.result) - 1.0)
    voters = int(voter.max(initial=0)) + 1
    own = sparse.coo_array((for_low, (voter, pair)), shape=(voters, len(pairs))).tocsr()
    own.sum_duplicates()
    rows, columns = own.nonzero()
    mine = own.data[own.data != 0.0]
    others = np.bincount(pair, for_low, len(pairs))[columns] - mine
    agreed, compared = (
        np.bincount(rows[chosen], minlength=voters) for chosen in (mine * others > 0, mine * others != 0)
    )
    contradicts = special.bdtr(agreed, compared, 0.5) < _LEAST_CONFIDENCE
    return ~contradicts[voter]


RIVALS: Mapping[str, Model] = {
    "plain": plain,
    "crowd-bt": crowd_bt,
    "am-elo": am_elo,
    "reliability": reliability_weighted,
    "abilities": abilities,
    "tastes": tastes,
    "spectral": spectral,
}
"""All rivals by name."""
