"""How much each vote should count in the estimate, given how its voter votes: a soft weight.

Flags (see ``voters``) are for the few voters with overwhelming evidence. These weights use every voter's record a
little, and need no level. A voter prefers the first item of vote t with log-odds s·z_t + u: z_t is the consensus of all
*other* voters, s the voter's care and u a taste for an item, N(0, τ²), as in ``null_model``. A vote counts

    w = E[s]/μ · P(not adverse) · P(not in a team) · P(neither item pushed) / (1 + τ²h).

- **Care** s is N(μ, σ²) among honest voters; μ, σ and τ are estimated. **Adverse** voters have s from N(−½, 1) instead:
  unrelated or opposed to the consensus.
- An item is **pushed** by a voter who favours or disfavours it by 3 log-odds instead of having a taste for it. Only the
  voter's votes on that item count less.
- A **team** departs from the model in the same duels in the same direction. With residuals r of a voter's votes and R
  of all others' on the same pair, c = Σ r·R / √Var is about N(0, 1) for independent voters, but |N(0, 10²)| for a team.
  Teams can drag the consensus to their side, so that nothing else looks odd about them.
- Votes of one voter on one item share a taste, so h, their information, is worth at most 1/τ² (a random effect).

Consensus and weights are computed in turn. At the start w = 1/(1 + 4h), so that a voter counts at most once or so per
item; otherwise a few busy voters would be the consensus. Voters with at most 6 votes are pooled, unless they cast
half of all votes, and tested for pushed items only: if such a crowd pushes an item, all of them lose weight there
equally. Other voters about whom little is known count about 1, an average voter's weight. No weight is negative:
opposed voters are ignored, not inverted. If that would ignore most votes, there is no consensus to go by, and all
votes count fully.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import special

from fairduel.duel import Vector
from fairduel.votes.bradley_terry import fit_scores
from fairduel.votes.voters import Evidence
from fairduel.votes.votes import Indices, Ties, Votes, pair_sums, sums

_ROUNDS = 2
_RIDGE = 0.1  # λ of the consensus
_START = 4.0  # variance of tastes assumed at the start
_ADVERSE, _PUSHED, _TEAM = 0.05, 0.005, 0.02  # prior probabilities
_PUSH = 3.0  # log-odds
_OCCASIONAL = 6  # votes of a voter who is pooled with others like them
_TEAM_SPREAD, _FEW_VOTES = 10.0, 10.0
_LEAST_CARE, _MOST_CARE, _LEAST_CARE_VARIANCE = 0.1, 4.0, 0.01
_MOST_TASTE = 4.0  # τ²
_LEAST_INFORMATION = 1e-6
_TO_DEVIATION = 1.4826  # standard deviation of a normal distribution over its median absolute deviation
_NEWTON_STEPS, _EM_STEPS = 3, 5
IGNORED = 0.1
"""A vote with less weight hardly counts."""
MOST_WEIGHT = 2.0
"""Largest weight of a vote; 1 is an average voter's."""


@dataclass(frozen=True, eq=False)
class Reliability:
    """How much voters and their votes count, from 0 to 2; 1 is an average voter's weight.

    Args:
        vote: Weight of each vote, shape ``(n,)``.
        voter: Average weight of each voter's votes, shape ``(V,)``; 1 for voters without any.
        taste: Estimated standard deviation τ of tastes for items, in log-odds.
    """

    vote: Vector
    voter: Vector
    taste: float


def voter_reliability(votes: Votes, *, ties: Ties = "half") -> Reliability:
    """Estimate how much each vote should count; see the module's docstring.

    Without voters, every vote counts fully.

    >>> from fairduel.votes.synthetic import arena
    >>> votes, liars = arena(liars={"inverts": 3}, seed=1)
    >>> weight = dict(zip(votes.voters, voter_reliability(votes).voter))
    >>> max(weight[name] for name in liars) < 0.1 < 0.9 < np.median(list(weight.values()))
    np.True_
    """
    counts = votes.counts(ties)
    if votes.voter is None or not counts.any():
        return Reliability(np.ones(len(votes)), np.ones(len(votes.voters)), 0.0)
    order = np.argsort(votes.voter, kind="stable")  # sums over a voter's cells then stay in the processor's cache
    cast = _Cast.of(votes, counts, order)
    information = cast.per_cell(0.25 * cast.counts, sign=1.0)
    weight = 1.0 / (1.0 + _START * (information[cast.cell_first] + information[cast.cell_second]))
    scores, taste = np.zeros(cast.items), 0.0
    for _ in range(_ROUNDS):
        weight, scores, taste = _reweighted(cast, weight, scores)
    if cast.counts[weight < IGNORED].sum() > 0.5 * cast.counts.sum():
        weight, taste = np.ones(len(votes)), 0.0
    weight[order] = weight.copy()
    voters = len(votes.voters)
    total = sums(votes.voter, voters, counts)
    average = np.divide(sums(votes.voter, voters, counts * weight), total, out=np.ones(voters), where=total > 0.0)
    return Reliability(weight, average, float(np.sqrt(taste)))


class _Cast(NamedTuple):
    """The votes, with the (voter, item) cells and the (voter, pair) cells that they belong to."""

    first: Indices
    second: Indices
    result: Vector
    counts: Vector
    voter: Indices
    items: int
    voters: int
    """Number of voters; the last one is the pool."""
    cells: Indices
    """voter · items + item, (c,)."""
    cell_first: Indices
    cell_second: Indices
    duels: Indices
    """(voter · items + lower item) · items + higher item, (d,)."""
    duel: Indices
    turned: Vector
    """+1 where the first item is the lower one, else −1."""

    @classmethod
    def of(cls, votes: Votes, counts: Vector, order: Indices) -> "_Cast":
        first, second, voter = (each[order].astype(np.int64) for each in (votes.first, votes.second, votes.cast_by))
        counts = counts[order]
        items, voters, size = len(votes.items), len(votes.voters), len(votes)
        occasional = (sums(voter, voters, counts) <= _OCCASIONAL)[voter]
        if counts[occasional].sum() < 0.5 * counts.sum():
            voter = np.where(occasional, voters, voter)
        cells, cell = np.unique(np.concatenate([voter * items + first, voter * items + second]), return_inverse=True)
        low, high = np.minimum(first, second), np.maximum(first, second)
        duels, duel = np.unique((voter * items + low) * items + high, return_inverse=True)
        turned = np.where(first == low, 1.0, -1.0)
        return cls(
            first, second, votes.result[order], counts, voter, items, voters + 1,
            cells, cell[:size], cell[size:], duels, duel, turned,
        )  # fmt: skip

    def per_cell(self, values: Vector, sign: float = -1.0) -> Vector:
        """Sum ``values`` (n,) over each cell (c,), times ``sign`` where the item is the second."""
        count = len(self.cells)
        return sums(self.cell_first, count, values) + sign * sums(self.cell_second, count, values)

    @property
    def alone(self) -> Vector:
        """1 for cells of single voters, 0 for those of the pool, (c,)."""
        return (self.cells // self.items < self.voters - 1).astype(np.float64)

    def per_voter(self, values: Vector) -> Vector:
        return sums(self.voter, self.voters, values)


def _reweighted(cast: _Cast, weight: Vector, start: Vector) -> tuple[Vector, Vector, float]:
    """Return the weights (n,) given the consensus by ``weight`` (n,), its scores (K,), and τ²."""
    counted = cast.counts * weight
    won = pair_sums(cast.first, cast.second, cast.items, counted * cast.result)
    won += pair_sums(cast.second, cast.first, cast.items, counted * (1.0 - cast.result))
    scores = fit_scores(won, ridge=_RIDGE, start=start).scores
    margin = scores[cast.first] - scores[cast.second]
    chance = special.expit(margin)
    slope = chance * (1.0 - chance)
    residual = cast.result - chance
    z = margin - _own_influence(cast, counted * residual, counted * slope)
    care, fitted, precision = _care(cast, z)
    pushed, information, taste = _pushed(cast, np.maximum(care, 0.0)[cast.voter] * z)
    of_voter = _honest_care(cast, z, fitted, precision, taste) * (1.0 - _team(cast, residual, slope))
    of_voter[-1] = 1.0  # the pool
    of_cells = (1.0 - pushed[cast.cell_first]) * (1.0 - pushed[cast.cell_second])
    shared = information * cast.alone
    shared = 1.0 + taste * (shared[cast.cell_first] + shared[cast.cell_second])
    return of_voter[cast.voter] * of_cells / shared, scores, taste


def _own_influence(cast: _Cast, residual: Vector, slope: Vector) -> Vector:
    """Return how much of θ_first − θ_second is due to the voter's own votes, (n,): one diagonal Newton step."""
    gradient, own = cast.per_cell(residual), cast.per_cell(slope, sign=1.0)
    item = cast.cells % cast.items
    others = np.maximum(sums(item, cast.items, own)[item] - own, 0.0)
    move = gradient / (others + _RIDGE)
    return np.asarray(move[cast.cell_first] - move[cast.cell_second])


def _care(cast: _Cast, z: Vector) -> tuple[Vector, Vector, Vector]:
    """Return each voter's care s with the prior N(1, 1), and s without it and its information, all (V,).

    The prior keeps s finite. Without it, s moves on by the likelihood's remaining gradient.
    """
    care = np.ones(cast.voters)
    for _ in range(_NEWTON_STEPS):
        chance = special.expit(care[cast.voter] * z)
        gradient = cast.per_voter(cast.counts * z * (cast.result - chance))
        information = cast.per_voter(cast.counts * z**2 * chance * (1.0 - chance))
        care = np.clip(
            care + np.clip((gradient + 1.0 - care) / (information + 1.0), -1.0, 1.0), -_MOST_CARE, _MOST_CARE
        )
    rest = np.divide(gradient, information, out=np.zeros(cast.voters), where=information > _LEAST_INFORMATION)
    fitted = care + np.clip(rest, -_MOST_CARE, _MOST_CARE)
    return care, fitted, np.maximum(information, _LEAST_INFORMATION)


def _pushed(cast: _Cast, logit: Vector) -> tuple[Vector, Vector, float]:
    """Return P(pushed) and the information of each cell, both (c,), and τ², given the honest ``logit`` (n,).

    With g and h the gradient and the information of a taste u at 0, votes of an honest voter have the likelihood
    ∫ exp(gu − ½hu²) dN(0, τ²) relative to u = 0, and g² is h + h²τ² on average, which τ² is estimated from.
    """
    chance = special.expit(logit)
    gradient = cast.per_cell(cast.counts * (cast.result - chance))
    information = cast.per_cell(cast.counts * chance * (1.0 - chance), sign=1.0)

    # log L(u + m) − log L(u) of one vote, for the moves m = ± push of its logit
    up, down = (cast.counts * (cast.result * move - np.log1p(chance * np.expm1(move))) for move in (_PUSH, -_PUSH))
    favoured, disfavoured = (
        sums(cast.cell_first, len(cast.cells), one) + sums(cast.cell_second, len(cast.cells), other)
        for one, other in ((up, down), (down, up))
    )
    pushes = np.logaddexp(favoured, disfavoured) - np.log(2.0)
    pushed, taste = np.zeros(len(cast.cells)), 0.0
    for _ in range(2):  # tastes of all, then of those who do not push
        honest = cast.alone * (1.0 - pushed)
        excess, scale = float(honest @ (gradient**2 - information)), float(honest @ information**2)
        taste = float(np.clip(excess / max(scale, _LEAST_INFORMATION), 0.0, _MOST_TASTE))
        spread = 1.0 + information * taste
        of_honest = 0.5 * (gradient**2 * taste / spread - np.log(spread))
        pushed = special.expit(special.logit(_PUSHED) + pushes - of_honest)
    return pushed, information, taste


def _honest_care(cast: _Cast, z: Vector, care: Vector, information: Vector, taste: float) -> Vector:
    """Return P(not adverse) · E[s | votes, not adverse] / μ, at most 2, shape (V,).

    Tastes add Σ_i τ² a_i² to the variance of s, as in ``null_model.best_honest_slope``.
    """
    chance = special.expit(z)
    along = cast.per_cell(cast.counts * z * chance * (1.0 - chance))
    scale = np.maximum(cast.per_voter(cast.counts * z**2 * chance * (1.0 - chance)), _LEAST_INFORMATION)
    variance = 1.0 / information + taste * sums(cast.cells // cast.items, cast.voters, along**2) / scale**2
    voted = cast.per_voter(cast.counts) > 0.0
    centre, spread, adverse = 1.0, 0.1, np.zeros(cast.voters)
    for _ in range(_EM_STEPS):
        of_honest, of_adverse = (
            -0.5 * (np.log(variance + own) + (care - around) ** 2 / (variance + own))
            for around, own in ((centre, spread), (-0.5, 1.0))
        )
        adverse = special.expit(special.logit(_ADVERSE) + of_adverse - of_honest)
        expected = (care * spread + centre * variance) / (spread + variance)
        honest = voted * (1.0 - adverse)
        total = max(float(honest.sum()), _LEAST_INFORMATION)
        centre = max(float(honest @ expected) / total, _LEAST_CARE)
        squares = (expected - centre) ** 2 + spread * variance / (spread + variance)
        spread = max(float(honest @ squares) / total, _LEAST_CARE_VARIANCE)
    return np.asarray((1.0 - adverse) * np.clip(expected / centre, 0.0, MOST_WEIGHT))


def _team(cast: _Cast, residual: Vector, slope: Vector) -> Vector:
    """Return P(team) of each voter, shape (V,), from the ``residual`` and its variance ``slope``, both (n,).

    If all votes on a pair share a misfit (contexts, intransitivity), Σ r·R is ω² Var on average, for every voter. So
    the typical ω², a median over voters, is subtracted first, and c is divided by its robust standard deviation, if
    above 1. With few votes its tails are heavier than normal; √(n/(n + 10)) allows for that.
    """
    count, duels = len(cast.duels), cast.items**2
    own, own_variance = (sums(cast.duel, count, cast.counts * values) for values in (cast.turned * residual, slope))
    pair, voter = cast.duels % duels, cast.duels // duels
    others, others_variance = (sums(pair, duels, each)[pair] - each for each in (own, own_variance))
    shared = sums(voter, cast.voters, own * others)
    variance = np.maximum(sums(voter, cast.voters, own_variance * others_variance), _LEAST_INFORMATION)
    known = variance > _LEAST_INFORMATION
    typical = float(np.median(shared[known] / variance[known])) if known.any() else 0.0
    together = (shared - max(typical, 0.0) * variance) / np.sqrt(variance)
    together /= max(1.0, _TO_DEVIATION * float(np.median(np.abs(together - np.median(together)))))
    cast_by_voter = cast.per_voter(cast.counts)
    together *= np.sqrt(cast_by_voter / (cast_by_voter + _FEW_VOTES))
    wide = 1.0 + _TEAM_SPREAD**2
    log_ratio = 0.5 * (together**2 * (1.0 - 1.0 / wide) - np.log(wide)) + np.log(2.0)
    return np.where(together > 0.0, special.expit(special.logit(_TEAM) + log_ratio), 0.0)


def trusted_weights(votes: Votes, evidence: Evidence, ties: Ties = "half") -> Vector:
    """Return how much each vote counts after an audit, (n,): its weight by the ``evidence``, times its reliability."""
    weights = evidence.vote_weights(votes)
    left = weights > 0.0
    weights[left] *= voter_reliability(votes.reweighted(weights), ties=ties).vote
    return weights
