"""How an honest voter votes, as predicted by everyone else: the composite null hypothesis behind every flag.

An honest voter prefers the first item of vote t with log-odds s·z_t + u. Here z_t is the consensus of all *other*
voters, s ≥ 0 is the voter's care (0: a coin flip; large: an expert), and u is the voter's own taste (for one item, or
for one side of the screen), drawn once from N(0, τ²). As s and u are unknown, evidence is measured against the best:

    E = Q(votes) / max_{s, u} Π_t σ(± (s·z_t + u)) · exp(−u² / 2τ²),

with Q a probability distribution, fixed in advance, that makes the votes of a liar likely.

**E is an e-value, and an e-process in those votes.** For the true s, write L(u) = Π_t σ(±(s·z_t + u)). log L is
concave, so log L(u) − u²/2τ² has a maximiser û and falls from it at least as fast as −(u − û)²/2τ². Integrated
against the density of N(0, τ²), the honest probability of the votes is ∫ L(u) e^{−u²/2τ²} du / √(2πτ²) ≤
L(û) e^{−û²/2τ²}, which is at most the denominator. So E ≤ Q / P_honest, which is 1 on average after any number of
votes, even if the votes decide when to stop (Ville). τ is estimated from all voters, as an upper bound, because a few
voters reveal little about it. The consensus z is uncertain too: it contains the others' tastes and sampling noise,
whose variance on an item (``consensus_variance``) is added to τ².
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.typing import NDArray
from scipy import optimize, special

from fairduel.duel import Matrix, Vector
from fairduel.votes.ranking.bradley_terry import fit_scores
from fairduel.votes.ranking.design_matrix import Pairs
from fairduel.votes.ranking.many_items import MOST_DENSE, sparse_scores
from fairduel.votes.timing import stretches
from fairduel.votes.votes import Indices, Mask, Votes, pair_sums, sums

SLOPES = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)
"""Values of the care s allowed for honest voters, relative to the consensus."""
_NEGATIVE_SLOPES = (-0.05, -0.1, -0.2, -0.3, -0.4, -0.5, -0.75, -1.0, -1.5, -2.0, -3.0)
CONSENSUS_RIDGE = 0.1
"""λ of the consensus, which must exist even if all votes on an item are from one voter."""
_PART_VARIANCES = (0.1, 0.3, 1.0)  # of an item's score in one context or stretch; or 0
_NODES, _NODE_WEIGHTS = hermegauss(15)
_NODE_WEIGHTS = _NODE_WEIGHTS / _NODE_WEIGHTS.sum()
_MOST_TASTE = 3.0
_ALLOWED = 1.353  # ½ χ²₁(0.9): drop in log-likelihood at the upper bound of τ
_LYING = 0.02  # share of groups assumed to be liars when tastes are estimated
_SAMPLE = 40_000  # votes, enough to estimate one number
_LEAST_GROUPS = 100
_MOST_COUNTED = 40  # votes of a group: with more, its likelihood falls between the nodes, and τ seems small
_BATCH = 4_000_000  # numbers in memory at a time
_PARTS = 10  # of the voters, with more than MOST_DENSE items


@dataclass(frozen=True, eq=False)
class Decisive:
    """The n votes with a winner, a voter and a weight above 0, which evidence is based on."""

    first: Indices
    second: Indices
    sign: Vector
    """+1 where the first won, −1 where the second won, shape (n,)."""
    voter: Indices
    context: Indices | None
    stretch: Indices
    """When each was cast; see ``timing.stretches``."""
    items: int
    voters: int

    @classmethod
    def of(cls, votes: Votes) -> "Decisive":
        """Select the decisive votes; each counts once, so weights must have been written out."""
        kept = votes.counts("drop") > 0.0
        return cls(
            first=votes.first[kept].astype(np.int64),
            second=votes.second[kept].astype(np.int64),
            sign=2.0 * votes.result[kept] - 1.0,
            voter=votes.cast_by[kept].astype(np.int64),
            context=None if votes.context is None else votes.context[kept].astype(np.int64),
            stretch=stretches(votes)[kept],
            items=len(votes.items),
            voters=len(votes.voters),
        )

    def select(self, chosen: Mask) -> "Decisive":
        """Keep only the votes where ``chosen`` (n,) is true."""
        arrays: dict[str, Any] = {n: each[chosen] for n, each in vars(self).items() if isinstance(each, np.ndarray)}
        return replace(self, **arrays)

    def sides(self, values: Vector) -> Vector:
        """Return ``values`` (n,) from the first items' side, then negated for the second items, (2n,)."""
        return np.concatenate([values, -values])

    def per_voter(self, values: NDArray[Any]) -> Vector:
        """Sum the ``values`` (n,) over each voter's votes, shape (V,)."""
        return sums(self.voter, self.voters, values)

    @cached_property
    def cells(self) -> tuple[Indices, Indices]:
        """Return the (voter, item) cells as voter · items + item (c,), and the cell of each side of each vote (2n,)."""
        keys = np.concatenate([self.voter * self.items + self.first, self.voter * self.items + self.second])
        cells, places = np.unique(keys, return_inverse=True)
        return cells, places


def consensus(votes: Decisive, left_out: Mask, *, only_left_out: bool = False) -> Vector:
    """Return the log-odds z (n,) that the first item wins, by everyone but the voter and the voters ``left_out`` (V,).

    With ``only_left_out``, z is right only for votes of the voters left out.

    Scores without the voter come from one Newton step from the Bradley–Terry scores of all, with the Hessian of the
    remaining votes. Of more than 1,000 items, they are those of all voters but a tenth, which the voter is part of. If
    votes have contexts, an item's score moves in each context towards the others' votes there (one
    step, with the prior variance that predicts the votes best). For voters left out, it moves so in each stretch of
    time too, because items change; for others it does not, or a few who vote for an item at one time would be each
    other's consensus.
    """
    counts = ~left_out[votes.voter]
    z = _without_voter(votes, counts, step_back=not only_left_out)
    for part in (votes.context, votes.stretch if only_left_out else None):
        if part is not None:
            z = _moved_within(votes, part, z, counts)
    return z


def taste_size(group: Indices, logit: Vector, sign: Vector, *, lying: tuple[float, ...] = (_LYING,)) -> float:
    """Estimate a 95% upper bound of τ from votes (n,), if each group has its own taste u ~ N(0, τ²) and s = 1.

    The bound, at most 3 log-odds, is where the log-likelihood has fallen by half the 90% quantile of χ² from its
    maximum. One group in fifty may be liars who vote one way 19 times in 20: otherwise a few of them would make
    everyone's tastes look strong, which would excuse them. With several shares ``lying``, the likeliest is taken.

    >>> rng = np.random.default_rng(0)
    >>> group = np.repeat(np.arange(2000), 8)
    >>> taste = 0.7 * rng.standard_normal(2000)[group]
    >>> sign = np.where(rng.random(16000) < special.expit(taste), 1.0, -1.0)
    >>> round(taste_size(group, np.zeros(16000), sign), 1)
    0.7
    """
    groups, place = np.unique(group, return_inverse=True)
    every = -(-len(place) // _SAMPLE)
    if every > 1:  # keep whole groups, evenly spread; if they are few, some votes of each
        whole = (np.arange(len(groups)) % every == 0)[place]
        kept = whole if len(groups) >= _LEAST_GROUPS * every else np.arange(len(place)) % every == 0
        return taste_size(group[kept], logit[kept], sign[kept], lying=lying)
    if len(groups) == len(place):
        return _MOST_TASTE  # nobody voted twice, so tastes cannot be seen

    order = np.argsort(place, kind="stable")
    starts, logit, up = np.flatnonzero(np.diff(place[order], prepend=-1)), logit[order], sign[order] > 0
    ups, cast = np.add.reduceat(up.astype(np.float64), starts), sums(place, len(groups))
    counted = np.minimum(1.0, _MOST_COUNTED / cast)
    liars = [counted * (n * np.log(0.95) + (cast - n) * np.log(0.05)) for n in (ups, cast - ups)]
    one_way = np.logaddexp(*liars) - np.log(2.0)
    odds = np.exp(np.where(up, -logit, logit))[:, None]  # against the vote, without a taste

    def loss(taste: float) -> float:
        against = np.exp(-taste * _NODES)
        each = np.log1p(odds * np.where(up[:, None], against, against[::-1]))  # the nodes are symmetric
        honest = special.logsumexp(-counted[:, None] * np.add.reduceat(each, starts), b=_NODE_WEIGHTS, axis=1)
        return min(-float(np.logaddexp(np.log1p(-e) + honest, np.log(e) + one_way).sum()) for e in lying)

    found = optimize.minimize_scalar(loss, bounds=(0.0, _MOST_TASTE), method="bounded", options={"xatol": 1e-3})
    allowed = float(found.fun) + _ALLOWED
    if loss(_MOST_TASTE) <= allowed:
        return _MOST_TASTE
    return float(optimize.brentq(lambda taste: loss(taste) - allowed, found.x, _MOST_TASTE, xtol=1e-3))


def consensus_variance(votes: Decisive, counts: Mask, taste: float) -> Vector:
    """Return the variance of everyone else's score of an item, for each cell of ``votes.cells``, shape (c,).

    Only votes where ``counts`` (n,) is true are in the consensus. With N of them on the item, n by each voter, tastes
    contribute τ² Σn²/N², and sampling 1/(N/4 + λ), because N votes contain at most N/4 of information.
    """
    cells, place = votes.cells
    item, own = cells % votes.items, sums(place, len(cells), np.tile(counts, 2))
    _, same = np.unique(_parts(votes)[cells // votes.items] * votes.items + item, return_inverse=True)

    def of_others(values: Vector) -> Vector:
        return np.asarray(sums(item, votes.items, values)[item] - (own > 0.0) * np.bincount(same, values)[same])

    cast, squares = of_others(own), of_others(own**2)
    return np.asarray(taste**2 * squares / np.maximum(cast, 1.0) ** 2 + 1.0 / (cast / 4.0 + CONSENSUS_RIDGE))


def best_honest(
    group: Indices,
    count: int,
    logit: Vector,
    sign: Vector,
    taste: float | Vector,
    *,
    slopes: tuple[float, ...] = SLOPES,
) -> Vector:
    """Return log max over s and u of Π σ(± (s·z + u)) · exp(−u²/2τ²) over each group's votes, shape (count,).

    ``taste`` is τ, the same for all groups or (count,).

    >>> best_honest(np.array([0, 0]), 1, np.zeros(2), np.array([1.0, -1.0]), 1.0).round(4).tolist()  # a coin: ¼
    [-1.3863]
    """
    return best_with_taste(group, count, sign * logit, sign, taste, slopes=slopes)


def best_with_taste(
    group: Indices,
    count: int,
    right: Vector,
    along: Vector,
    taste: float | Vector,
    *,
    slopes: tuple[float, ...] = SLOPES,
) -> Vector:
    """Return log max over s and u of Π σ(s·z + u·x) · exp(−u²/2τ²) over each group's votes, shape (count,).

    z = ``right`` (n,) is how much the consensus favours what was voted for, and x = ``along`` (n,) whether that has
    what the taste is for: 1, or −1 if the other has it, or 0 if it does not matter here.

    >>> best_with_taste(np.array([0, 0]), 1, np.zeros(2), np.array([1.0, 0.0]), 1e-3).round(4).tolist()  # ½ · ½
    [-1.3863]
    """
    precision = 1.0 / np.maximum(taste, 1e-3) ** 2
    best = np.full(count, -np.inf)
    for slope in slopes:
        u = np.zeros(count)
        for _ in range(100):
            chance = special.expit(slope * right + along * u[group])
            gradient = np.bincount(group, along * (1.0 - chance), count) - precision * u
            step = gradient / (np.bincount(group, along**2 * chance * (1.0 - chance), count) + precision)
            u += np.clip(step, -1.0, 1.0)
            if np.abs(step).max(initial=0.0) < 1e-7:
                break
        each = -np.logaddexp(0.0, -(slope * right + along * u[group]))
        best = np.maximum(best, np.bincount(group, each, count) - 0.5 * precision * u**2)
    return best


def log_mean(logs: Matrix) -> Vector:
    """Return the log of the mean over the first axis, given the logs of the numbers."""
    return np.asarray(special.logsumexp(logs, axis=0) - np.log(len(logs)))


def best_honest_slope(votes: Decisive, z: Vector, variance: Vector) -> Vector:
    """Return the log honest maximum over all votes of each voter, who has a taste for *every* item, shape (V,).

    ``variance`` is τ² of each cell of ``votes.cells``, shape (c,). Tastes u_i can make an honest voter seem to vote
    against the consensus. To first order, they add c = Σ_i u_i a_i to the slope, with
    a_i = Σ_t ±z_t v_t / Σ_t z_t² v_t and v = p(1 − p), where the numerator sums over the voter's votes on i; so
    c ~ N(0, Σ τ_i² a_i²). A slope b ≥ 0 is care and costs nothing; a slope b < 0 costs exp(−b²/2Σ τ_i² a_i²).
    """
    p = special.expit(z)
    weight = p * (1.0 - p)
    cells, place = votes.cells
    along = sums(place, len(cells), votes.sides(z * weight))
    scale = np.maximum(votes.per_voter(z**2 * weight), 1e-12)
    of_slope = sums(cells // votes.items, votes.voters, variance * along**2) / scale**2
    best = np.full(votes.voters, -np.inf)
    for slope in (*SLOPES, *_NEGATIVE_SLOPES):
        price = min(slope, 0.0) ** 2 / (2.0 * np.maximum(of_slope, 1e-12))
        best = np.maximum(best, votes.per_voter(-np.logaddexp(0.0, -slope * votes.sign * z)) - price)
    return best


def _parts(votes: Decisive) -> Indices:
    """Return the part of each voter, (V,); voters are compared with those of other parts. Of few items, each is one."""
    if votes.items <= MOST_DENSE:
        return np.arange(votes.voters)
    return np.random.default_rng(0).permutation(votes.voters) % _PARTS


def _without_part(votes: Decisive, counts: Mask, *, step_back: bool) -> Vector:
    """Do what :func:`_without_voter` does for many items, whose matrices are sparse, by a fit without each part."""
    first, second = (each.astype(np.int32) for each in (votes.first, votes.second))
    pairs, row, turned = Pairs.collapse(first, second, votes.items)
    ridge, won = np.full(votes.items, CONSENSUS_RIDGE), (votes.sign > 0) != turned

    def fitted(chosen: Mask, start: Vector | None = None) -> Vector:
        counted, wins = (sums(row, len(pairs), each) for each in (chosen, chosen & won))
        return sparse_scores(pairs, counted, wins, ridge, start)[0]

    everyone = fitted(counts)
    z = everyone[votes.first] - everyone[votes.second]
    part = _parts(votes)[votes.voter]
    for number in range(_PARTS if step_back else 0):
        mine = counts & (part == number)
        scores = fitted(counts & (part != number), everyone)
        z[mine] = scores[votes.first[mine]] - scores[votes.second[mine]]
    return np.asarray(z)


def _without_voter(votes: Decisive, counts: Mask, *, step_back: bool) -> Vector:
    if votes.items > MOST_DENSE:
        return _without_part(votes, counts, step_back=step_back)
    count = votes.items
    winner = np.where(votes.sign > 0, votes.first, votes.second)[counts]
    loser = np.where(votes.sign > 0, votes.second, votes.first)[counts]
    fitted = fit_scores(pair_sums(winner, loser, count), ridge=CONSENSUS_RIDGE)
    z = fitted.scores[votes.first] - fitted.scores[votes.second]
    if not step_back:
        return np.asarray(z)
    order = np.flatnonzero(counts)
    order = order[np.argsort(votes.voter[order], kind="stable")]
    starts = np.searchsorted(votes.voter[order], np.arange(votes.voters + 1))
    sizes = np.diff(starts)
    for size in np.unique(sizes[sizes > 0]):
        batch = max(1, _BATCH // min(size, count) ** 2)
        same = np.flatnonzero(sizes == size)
        for begin in range(0, len(same), batch):
            mine = order[
                starts[same[begin : begin + batch], None] + np.arange(size)
            ]  # (g, m): m votes of each of g voters
            step = _small_step if size <= count else _large_step
            z[mine] = step(fitted.scores, fitted.covariance, votes.first[mine], votes.second[mine], votes.sign[mine])
    return z


def _small_step(scores: Vector, covariance: Matrix, first: Indices, second: Indices, sign: Matrix) -> Matrix:
    """Return z of g voters with m votes each, (g, m), by Woodbury in the space of their votes.

    With A = Φ H⁻¹ Φᵀ, D = diag(p(1 − p)) and residuals r of their votes, Φ(H − ΦᵀDΦ)⁻¹Φᵀ r = A (I − D A)⁻¹ r.
    """
    z = scores[first] - scores[second]
    p = special.expit(z)
    residual = (sign > 0) - p
    one, other = first[:, :, None], second[:, :, None]
    this, that = first[:, None, :], second[:, None, :]
    a = covariance[one, this] - covariance[one, that] - covariance[other, this] + covariance[other, that]
    left = np.eye(first.shape[1]) - (p * (1.0 - p))[:, :, None] * a
    return np.asarray(z - (a @ np.linalg.solve(left, residual[:, :, None]))[:, :, 0])


def _large_step(scores: Vector, covariance: Matrix, first: Indices, second: Indices, sign: Matrix) -> Matrix:
    """Do the same in the space of items, (I − H⁻¹ΦᵀDΦ)⁻¹ H⁻¹Φᵀr, for voters with more votes than items."""
    count = len(scores)
    result = np.empty(first.shape)
    for voter, (one, other) in enumerate(zip(first, second, strict=True)):
        z = scores[one] - scores[other]
        p = special.expit(z)
        residual, weight = (sign[voter] > 0) - p, p * (1.0 - p)
        gradient = np.bincount(one, residual, count) - np.bincount(other, residual, count)
        between = pair_sums(one, other, count, weight)
        between += between.T
        laplacian = np.diag(between.sum(axis=1)) - between
        moved = scores - np.linalg.solve(np.eye(count) - covariance @ laplacian, covariance @ gradient)
        result[voter] = moved[one] - moved[other]
    return result


def _moved_within(votes: Decisive, part: Indices, z: Vector, counts: Mask) -> Vector:
    """Move z (n,) by others' votes on the same item in the same part: by gradient / (Hessian + 1/variance)."""
    p = special.expit(z)
    residual, weight = counts * ((votes.sign > 0) - p), counts * p * (1.0 - p)
    answer = np.concatenate([part * votes.items + votes.first, part * votes.items + votes.second])
    if answer.max() > 4 * len(answer):
        answer = np.unique(answer, return_inverse=True)[1]
    own = np.unique(np.tile(votes.voter, 2) * (answer.max() + 1) + answer, return_inverse=True)[1]

    def of_others(values: Vector) -> Vector:
        return np.asarray(np.bincount(answer, values)[answer] - np.bincount(own, values)[own])

    gradient, hessian = of_others(votes.sides(residual)), of_others(np.tile(weight, 2))
    steps = [gradient / (hessian + 1.0 / variance) for variance in _PART_VARIANCES]
    moved = [z, *(z + step[: len(z)] - step[len(z) :] for step in steps)]
    return min(moved, key=lambda logit: float(np.logaddexp(0.0, -votes.sign * logit)[counts].sum()))
