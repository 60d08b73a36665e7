"""The proven minimum number of votes, or of voters, needed to change a ranking: no smaller set can do it.

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

*False votes* may have any answer y' ∈ [0, 1] (a win, a loss, a tie) in place of y, and γ_t = (y' − y)(e_i − e_j). A
dropped vote has γ_t = (σ(m') − y)(e_i − e_j): θ' is as if its answer were σ(m'). So what holds for any m false votes
also holds if some of them are dropped instead. The bounds are those of a flip, or half of them for a tie, which can
turn either way. They do not depend on r, so step 1 gives r* = −ln(1 − κA_m)/κ if κA_m < 1.

*Voters who lie* may answer all their duels in any way. Steps 1 and 3 then add up the m voters with the largest bounds
on their own votes' sums: in step 3, the sum over the voter's votes; in step 1, ‖Σ γ_t‖ over these votes, in the norm of
H⁻¹, where |Δᵀγ| ≤ r‖γ‖. With γ_t = −c_t φ_t, ‖Σ γ_t‖² = Σ c_s c_t φ_sᵀH⁻¹φ_t is at most the sum of its positive terms
at the largest c_s and c_t, and of the absolute values of all terms if s or t is a tie, whose c may have either sign.
With few items, :mod:`fairduel.votes.score_box` rules out more false votes and lying voters than steps 1 and 2 do.
"""

import functools
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy.special import expit

from fairduel.duel import Matrix, Vector
from fairduel.votes.bradley_terry import Scores
from fairduel.votes.score_box import ScoreBox
from fairduel.votes.vote_counts import How, VoteCounts, standard_gaps
from fairduel.votes.votes import Indices

_RADII = np.geomspace(1e-3, 1e4, 400)
_STRIDE = 8
_MOST_AT_ONCE = 1000  # kinds of one voter's votes; more are split, and the norms of the parts added up


def lower_bound(kinds: VoteCounts, fitted: Scores, pairs: Sequence[tuple[int, int]], how: How) -> int:
    """Return the smallest m that the proof above does not rule out for all (inside, outside) pairs."""
    return Proof(kinds, fitted, how).least(pairs)


class Proof:
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
        self._norms = None if kinds.voter is None else _voter_norms(kinds, kinds.voter, fitted.covariance)
        self._has_box = how == "false" and ScoreBox.fits(kinds)
        self._ways: dict[int, tuple[float | None, Vector, float]] = {}

    def least(self, pairs: Sequence[tuple[int, int]], guess: int | None = None) -> int:
        """Return the smallest m that is not ruled out for all pairs; a ``guess`` of at least m is faster.

        Beyond 100 false units it may be up to 1% too small, to save time.
        """
        sorted_pairs = np.array(pairs)[np.argsort(standard_gaps(self._fitted, pairs), kind="stable")]
        low, most = 1, int(self._kinds.available.sum()) + 1  # everything below low is ruled out
        high = min(guess or most, most)
        while high < most and not self.possible(high, sorted_pairs):
            low, high = high + 1, min(2 * high, most)
        while high - low > (low // 100 if self._how == "false" else 0):
            middle = (low + high) // 2
            if self.possible(middle, sorted_pairs):
                high = middle
            else:
                low = middle + 1
        return low

    def possible(self, size: int, pairs: Indices) -> bool:
        """Return whether the proof allows ``size`` units to swap one of the ``pairs`` (p, 2), the nearest first."""
        scores, covariance = self._fitted.scores, self._fitted.covariance
        gaps = scores[pairs[:, 0]] - scores[pairs[:, 1]]
        if self._has_box:
            nearest = covariance[pairs[0, 0]] - covariance[pairs[0, 1]]
            if self._most(size, self._pushes(nearest, 0.0)) >= gaps[0]:  # saves making the box
                return True
            falls = self._box.falls(size)
            if falls is not None:
                return bool((falls[pairs[:, 0], pairs[:, 1]] >= gaps).any())
        if size not in self._ways:
            self._ways[size] = self._way(size)
        radius, bend, reach = self._ways[size]
        if radius is None:
            return True
        return any(
            gaps[place] <= self._closed(size, radius, bend, pairs[place])
            for place in np.flatnonzero(standard_gaps(self._fitted, pairs) <= reach)
        )

    def least_gap(self, size: int, pair: tuple[int, int]) -> float:
        """Return the least gap that ``size`` units can leave between the ``pair``; −∞ if the proof says nothing."""
        gap = float(self._fitted.scores[pair[0]] - self._fitted.scores[pair[1]])
        if size == 0:
            return gap
        falls = self._box.falls(size) if self._has_box else None
        if falls is not None:
            return gap - float(falls[pair])
        radius, bend, _ = self._way(size)
        return -np.inf if radius is None else gap - self._closed(size, radius, bend, pair)

    def _closed(self, size: int, radius: float, bend: Vector, pair: Sequence[int] | Indices) -> float:
        """T_m(r*) + ε(r*): by how much ``size`` units can close the gap of the ``pair``."""
        d = self._fitted.covariance[pair[0]] - self._fitted.covariance[pair[1]]
        return self._most(size, self._pushes(d, radius)) + self._error(radius, d, bend)

    @functools.cached_property
    def _box(self) -> ScoreBox:
        return ScoreBox(self._kinds, self._fitted)

    def _pushes(self, d: Vector, radius: float) -> Vector:
        """Bound by how much each unit changes dᵀ∇F(θ'), shape (u,)."""
        if self._how == "false":
            return self._kinds.pushes(d)
        pull = d[self._kinds.winner] - d[self._kinds.loser]
        return self._kinds.per_unit(self._share(radius, np.sign(pull)) * np.abs(pull))

    def _way(self, size: int) -> tuple[float | None, Vector, float]:
        """Return r* for ``size`` units, δ there, and the standard gap above which step 4 rules a pair out."""
        radius = self._radius(size)
        if radius is None:
            return None, np.empty(0), np.inf
        bend = self._bend(radius)
        return radius, bend, self._moved(size, radius) + radius * float((bend / self._slope).max(initial=0.0))

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
        """r*: a small radius that θ' cannot pass when ``size`` units change; None if there is none."""
        if self._how == "false":
            share = self._largest * self._moved(size, 0.0)
            return float(-np.log1p(-share) / self._largest) if share < 1.0 else None
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
        if self._norms is not None:
            return float(np.sort(self._norms)[::-1][:size].sum())
        against = np.maximum(self._share(radius, np.ones(1)), self._share(radius, -np.ones(1)))
        return self._most(size, against * self._kappa)

    def _share(self, radius: float, direction: Vector) -> Vector:
        """Bound the gradient that one vote of each kind takes with it in this direction: w·σ(κr − m) for a dropped win.

        ``direction`` is +1 to reduce the difference winner − loser, −1 to increase it (only dropping or turning a tie
        can).
        """
        kinds = self._kinds
        if self._how == "flipped":
            return np.where(kinds.tie | (direction < 0), 0.0, kinds.weight)
        if self._how == "false":
            return np.asarray(kinds.weight * np.where(kinds.tie, 0.5, direction > 0))
        reach = self._kappa * radius
        win = np.where(direction > 0, expit(reach - self._margin), 0.0)
        tie = np.maximum(0.5 - expit(direction * self._margin - reach), 0.0)
        return np.asarray(kinds.weight * np.where(kinds.tie, tie, win))

    def _most(self, size: int, values: Vector) -> float:
        """Sum the ``size`` largest values (u,), counting each once per alike unit."""
        available = self._kinds.available
        largest = np.arange(len(values))
        if size < len(values):  # there is at least one of each unit, so ``size`` of them are enough
            largest = np.argpartition(values, -size)[-size:]
        order = largest[np.argsort(-values[largest])]
        before = np.cumsum(available[order]) - available[order]
        return float(values[order] @ np.clip(size - before, 0, available[order]))


def _voter_norms(kinds: VoteCounts, voter: Indices, covariance: Matrix) -> Vector:
    """Bound ‖Σ γ_t‖ over the votes of each voter, whatever their answers, in the norm of H⁻¹, shape (u,)."""
    largest = kinds.weight * kinds.count * np.where(kinds.tie, 0.5, 1.0)
    norms = np.zeros(len(kinds.available))
    ends = np.searchsorted(voter, np.arange(len(norms) + 1))
    for place, (start, end) in enumerate(pairwise(ends)):
        for begin in range(start, end, _MOST_AT_ONCE):
            part = slice(begin, min(begin + _MOST_AT_ONCE, end))
            winner, loser, tie = kinds.winner[part], kinds.loser[part], kinds.tie[part]
            between = covariance[winner[:, None], loser]
            products = covariance[winner[:, None], winner] - between - between.T + covariance[loser[:, None], loser]
            positive = np.where(tie[:, None] | tie, np.abs(products), np.maximum(products, 0.0))
            norms[place] += np.sqrt(largest[part] @ positive @ largest[part])
    return norms
