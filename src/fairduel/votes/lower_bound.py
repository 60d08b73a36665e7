"""The proven minimum number of votes needed to change the top k: no smaller set can do it.

Let θ̂ minimise F, the loss of all votes, with Hessian H at θ̂; let κ_ij = ‖e_i − e_j‖ in the norm of H⁻¹, and κ the
largest κ_ij among compared pairs. Let S be any m votes, let θ' = θ̂ + Δ minimise the loss after S is dropped (or
flipped), and r = ‖Δ‖_H. Then ∇F(θ') = Σ_S γ_t, where γ_t is the gradient that vote t takes with it. For a win of i over
j it is −σ(−m')(e_i − e_j) if the vote is dropped, with margin m' = θ'_i − θ'_j, and exactly −(e_i − e_j) if flipped.

1. *θ' is close to θ̂.* |σ''| ≤ σ' gives Δᵀ(∇F(θ') − ∇F(θ̂)) ≥ r²(1 − e^{−κr})/(κr), and |Δᵀγ_t| ≤ r·κ_ij·σ(κ_ij r − m).
   So (1 − e^{−κr})/κ ≤ A_m(r), the sum of the m largest κ_ij·σ(κ_ij r − m). If the votes are removed gradually, θ'
   moves continuously from θ̂ and the inequality holds all along, so r never passes a value where it fails: r ≤ r*.
2. *Nearby, the problem is almost linear.* Let a lead b by g, and d = H⁻¹(e_a − e_b). If b catches up, then −dᵀHΔ ≥ g
   and −dᵀ∇F(θ') ≥ g − ε(r) with ε(r)² = r² Σ_pairs n_ij δ_ij² (d_i − d_j)² / v_ij, by Cauchy–Schwarz. Here v = σ'(m),
   and δ_ij bounds how far the mean slope along the path can be from v, by |σ''| ≤ σ' ≤ ¼.
3. But −dᵀ∇F(θ') is at most T_m(r), the sum of the m largest (d_i − d_j)·σ(κ_ij r − m). So m votes are not enough
   whenever T_m(r*) < g − ε(r*).
4. *Most pairs can be ruled out together.* |d_i − d_j| ≤ κ_ab κ_ij (Cauchy–Schwarz), so T_m(r) ≤ κ_ab A_m(r); and since
   Σ n_ij v_ij (d_i − d_j)² ≤ κ_ab², ε(r) ≤ κ_ab r max(δ_ij/v_ij). Only the pairs that this does not rule out are
   checked one by one.

For flips, σ(·) is 1 throughout. A tie counted as two half wins can be dropped, with (½ − σ(m')) in place of σ(−m').
A vote of weight w counts w times in all sums. A ridge only adds to H and does not change. If no r* exists, the proof
rules nothing out. If r* exists, θ' is finite even without a ridge: otherwise r would pass every value.
"""

from collections.abc import Sequence

import numpy as np
from scipy.special import expit

from fairduel.duel import Vector
from fairduel.votes.bradley_terry import Scores
from fairduel.votes.vote_counts import How, VoteCounts, standard_gaps
from fairduel.votes.votes import Indices

_RADII = np.geomspace(1e-3, 1e4, 400)
_STRIDE = 8


def lower_bound(kinds: VoteCounts, fitted: Scores, pairs: Sequence[tuple[int, int]], how: How) -> int:
    """Return the smallest m that the proof above does not rule out for all (inside, outside) pairs."""
    low, high = 1, int(kinds.count.sum()) + 1  # everything below low is ruled out
    proof = _Proof(kinds, fitted, how)
    sorted_pairs = np.array(pairs)[np.argsort(standard_gaps(fitted, pairs), kind="stable")]
    while low < high:
        middle = (low + high) // 2
        if proof.possible(middle, sorted_pairs):
            high = middle
        else:
            low = middle + 1
    return low


def least_gap(kinds: VoteCounts, fitted: Scores, pair: tuple[int, int], how: How, size: int) -> float:
    """Return the least score gap that ``size`` changed votes can leave between the ``pair``; −∞ without a proof."""
    return _Proof(kinds, fitted, how).least_gap(size, pair)


class _Proof:
    """The quantities of the proof for one fit."""

    def __init__(self, kinds: VoteCounts, fitted: Scores, how: How) -> None:
        self._kinds, self._fitted, self._how = kinds, fitted, how
        variance = np.diag(fitted.covariance)
        kappa = np.sqrt(np.maximum(variance[:, None] + variance[None, :] - 2.0 * fitted.covariance, 0.0))
        self._kappa = kappa[kinds.winner, kinds.loser]
        self._margin = fitted.scores[kinds.winner] - fitted.scores[kinds.loser]
        games = kinds.won(kinds.count)
        self._one, self._other = np.nonzero(np.triu(games + games.T))
        self._games = (games + games.T)[self._one, self._other]
        self._pair_kappa = kappa[self._one, self._other]
        self._largest = float(self._pair_kappa.max(initial=0.0))
        margin = fitted.scores[self._one] - fitted.scores[self._other]
        self._slope = expit(margin) * expit(-margin)  # 1 − expit would be 0 for margins above 37

    def possible(self, size: int, pairs: Indices) -> bool:
        """Return whether the proof allows ``size`` votes to swap one of the ``pairs`` (p, 2)."""
        radius = self._radius(size)
        if radius is None:
            return True
        reach = self._moved(size, radius) + radius * float((self._bend(radius) / self._slope).max(initial=0.0))
        unclear = pairs[standard_gaps(self._fitted, pairs) <= reach]
        return any(self.least_gap(size, (inside, outside)) <= 0.0 for inside, outside in unclear)

    def least_gap(self, size: int, pair: tuple[int, int]) -> float:
        """Return what T_m(r*) + ε(r*) leave of the gap of the ``pair``; −∞ if there is no r*."""
        gap = float(self._fitted.scores[pair[0]] - self._fitted.scores[pair[1]])
        if size == 0:
            return gap
        radius = self._radius(size)
        if radius is None:
            return -np.inf
        d = self._fitted.covariance[pair[0]] - self._fitted.covariance[pair[1]]
        pull = d[self._kinds.winner] - d[self._kinds.loser]
        most = self._most(size, self._share(radius, np.sign(pull)) * np.abs(pull))
        return gap - most - self._error(radius, d, self._bend(radius))

    def _bend(self, radius: float) -> Vector:
        """δ of each compared pair: how far the mean slope can be from v along a path of length ``radius``."""
        stretch = self._pair_kappa * radius
        with np.errstate(over="ignore"):
            more = np.minimum(self._slope * (np.expm1(stretch) / stretch - 1.0), 0.25 - self._slope)
        return np.maximum(more, self._slope * (1.0 + np.expm1(-stretch) / stretch))

    def _error(self, radius: float, d: Vector, bend: Vector) -> float:
        """ε(r): how far dᵀ∇F(θ') can be from dᵀHΔ if ‖Δ‖_H = r."""
        return radius * float(np.sqrt((self._games * bend**2 / self._slope) @ (d[self._one] - d[self._other]) ** 2))

    def _radius(self, size: int) -> float | None:
        """r*: a small radius that θ' cannot pass when ``size`` votes change; None if there is none."""
        radii = _RADII / self._largest
        inner = -np.expm1(-_RADII) / self._largest
        at_zero = self._moved(size, 0.0)  # A_m grows with r, so smaller radii cannot fail the inequality
        start = int(np.searchsorted(inner, at_zero, side="right"))
        # any radius that fails the inequality will do: search coarsely, then refine
        for coarse in range(start, len(radii), _STRIDE):
            if inner[coarse] > self._moved(size, radii[coarse]):
                places = range(max(start, coarse - _STRIDE + 1), coarse + 1)
                fine = (place for place in places if inner[place] > self._moved(size, radii[place]))
                return float(radii[next(fine)])
        return None

    def _moved(self, size: int, radius: float) -> float:
        """A_m(r)."""
        against = np.maximum(self._share(radius, np.ones(1)), self._share(radius, -np.ones(1)))
        return self._most(size, against * self._kappa)

    def _share(self, radius: float, direction: Vector) -> Vector:
        """Bound the gradient that one vote of each kind takes with it in this direction: w·σ(κr − m) for a dropped win.

        ``direction`` is +1 to reduce the difference winner − loser, −1 to increase it (only dropping a tie can).
        """
        kinds = self._kinds
        if self._how == "flipped":
            return np.where(kinds.tie | (direction < 0), 0.0, kinds.weight)
        reach = self._kappa * radius
        win = np.where(direction > 0, expit(reach - self._margin), 0.0)
        tie = np.maximum(0.5 - expit(direction * self._margin - reach), 0.0)
        return np.asarray(kinds.weight * np.where(kinds.tie, tie, win))

    def _most(self, size: int, values: Vector) -> float:
        """Sum the ``size`` largest values, counting each kind's value once per vote."""
        largest = np.arange(len(values))
        if size < len(values):  # every kind has at least one vote, so ``size`` kinds are enough
            largest = np.argpartition(values, -size)[-size:]
        order = largest[np.argsort(-values[largest])]
        before = np.cumsum(self._kinds.count[order]) - self._kinds.count[order]
        return float(values[order] @ np.clip(size - before, 0, self._kinds.count[order]))
