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
With few items, score boxes rule out more false votes and lying voters than steps 1 and 2 do.

*Score boxes* bound all score differences at once. Let x_kl be by how much θ_k − θ_l has changed on the way from
θ̂ to θ', after a share s of the change γ = Σ γ_t of the gradient, and h_kl = σ(m_kl + x_kl) − σ(m_kl) − v_kl x_kl.
Since ∇F(θ̂ + Δ) = HΔ + Σ n_kl h_kl (e_k − e_l) = sγ, every pair i, j, with d = H⁻¹(e_i − e_j), has

    x_ij = s dᵀγ − Σ n_kl h_kl (d_k − d_l).

Assume that −b_kl ≤ x_kl ≤ a_kl for all pairs. Then h_kl is between its extremes on that interval, so x_ij is at most
T_m, the sum of the m largest possible changes of dᵀγ, plus the sum of the largest values of −n_kl h_kl (d_k − d_l); and
−x_ij likewise. If these bounds are below a_ij and b_ij for all pairs, then x, which starts from 0 and moves
continuously, never reaches the end of any interval, so they hold. Such a and b are found by iterating the bounds from
T_m. Unlike the radius of a ball around θ̂, they hardly grow with lies about many items, none of which moves far.

*Extremes of h.* For m ≥ 0, h' = σ'(m + x) − σ'(m) is positive between x = −2m and 0, and negative outside. So h has its
minimum on [−b, a] at a, or at −2m or −b, whichever is higher, and its maximum at 0 or −b. For m < 0, mirror x and h.
"""

import functools
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy.special import expit

from fairduel.core.memory import give_back
from fairduel.duel import Matrix, Vector
from fairduel.votes.certifying.vote_counts import How, VoteCounts, standard_gaps
from fairduel.votes.ranking.bradley_terry import Scores
from fairduel.votes.votes import Codes, Indices

_RADII = np.geomspace(1e-3, 1e4, 400)
_STRIDE = 8
_MOST_AT_ONCE = 1000  # kinds of one voter's votes; more are split, and the norms of the parts added up
_MOST_PAIRS, _MOST_PULLS = 2000, 2e9  # pairs of items, and pairs × kinds; more take too long
_AT_ONCE, _MOST_KEPT = 5e5, 3e6  # pairs × units at once, and to keep
_ROUNDS = 40
_WIDER = 1.01  # the last bounds must be below these times the ones before
_TOO_FAR = 10.0  # log-odds


class ScoreBox:
    """How far false units can move the scores of one fit."""

    def __init__(self, kinds: VoteCounts, fitted: Scores) -> None:
        self._one, self._other = np.triu_indices(kinds.items, 1)
        won = kinds.won(kinds.count)
        games = (won + won.T)[self._one, self._other]
        self._compared = np.flatnonzero(games)
        self._games = games[self._compared]
        self._margin = (fitted.scores[self._one] - fitted.scores[self._other])[self._compared]
        rows = fitted.covariance[self._one] - fitted.covariance[self._other]
        self._inner = rows[:, self._one[self._compared]] - rows[:, self._other[self._compared]]
        kept = min(len(kinds.available), max(1, int(_MOST_KEPT / len(rows))))
        self._most = kept if kept < len(kinds.available) else int(kinds.available.sum())
        self._up, self._down = (_heaviest(kinds, sign * rows, kept) for sign in (-1.0, 1.0))
        self._falls: dict[int, Matrix | None] = {}

    @staticmethod
    def fits(kinds: VoteCounts) -> bool:
        """Whether there are few enough items and votes."""
        pairs = kinds.items * (kinds.items - 1) // 2
        return pairs <= _MOST_PAIRS and pairs * len(kinds.count) <= _MOST_PULLS

    def falls(self, size: int) -> Matrix | None:
        """Return by how much θ_i − θ_j falls at most if ``size`` units are false, shape (K, K); None if unknown."""
        if size not in self._falls:
            self._falls[size] = self._bounds(size) if size <= self._most else None
        return self._falls[size]

    def _bounds(self, size: int) -> Matrix | None:
        most_up, most_down = (_top_sum(size, *heaviest) for heaviest in (self._up, self._down))
        up, down = most_up, most_down
        same, opposite = np.maximum(self._inner, 0.0), np.maximum(-self._inner, 0.0)
        for _ in range(_ROUNDS):
            wide_up, wide_down = _WIDER * up, _WIDER * down
            low, high = curvature(self._margin, wide_down[self._compared], wide_up[self._compared])
            low, high = -self._games * low, self._games * high
            up = most_up + same @ low + opposite @ high
            down = most_down + same @ high + opposite @ low
            if max(up.max(), down.max()) > _TOO_FAR:
                return None
            if (up < wide_up).all() and (down < wide_down).all():
                items = int(self._other[-1]) + 1
                falls = np.zeros((items, items))
                falls[self._one, self._other], falls[self._other, self._one] = down, up
                return falls
        return None


def curvature(margin: Vector, down: Vector, up: Vector) -> tuple[Vector, Vector]:
    """Return the minimum and maximum of σ(m + x) − σ(m) − σ'(m)x for −``down`` ≤ x ≤ ``up``; all arrays are (p,)."""
    mirrored = margin < 0.0
    m, down, up = np.abs(margin), np.where(mirrored, up, down), np.where(mirrored, down, up)
    slope = expit(m) * expit(-m)

    def bent(x: Vector) -> Vector:
        return np.asarray(expit(m + x) - expit(m) - slope * x)

    low = np.minimum(bent(up), bent(np.maximum(-2.0 * m, -down)))
    high = np.maximum(bent(-down), 0.0)
    return np.where(mirrored, -high, low), np.where(mirrored, -low, high)


def _heaviest(kinds: VoteCounts, rows: Matrix, most: int) -> tuple[Matrix, Indices]:
    """Find the ``most`` units that can change the product of the gradient and each of ``rows`` (p, K) the most.

    Returns by how much the first of these units change it together, and how many they are, as alike units count
    separately; both (p, most).
    """
    changes = np.empty((len(rows), most))
    sizes = np.empty(changes.shape, np.min_scalar_type(int(kinds.available.sum())))
    for part in np.array_split(np.arange(len(rows)), int(len(rows) * len(kinds.available) / _AT_ONCE) + 1):
        values = kinds.pushes(rows[part])
        order = np.argpartition(-values, most - 1, axis=1)[:, :most]
        order = np.take_along_axis(order, np.argsort(-np.take_along_axis(values, order, axis=1), axis=1), axis=1)
        counts = kinds.available[order]
        changes[part] = np.cumsum(np.take_along_axis(values, order, axis=1) * counts, axis=1)
        sizes[part] = np.cumsum(counts, axis=1)
    return changes, sizes


def _top_sum(size: int, changes: Matrix, sizes: Indices) -> Vector:
    """Return by how much the ``size`` heaviest units change each of p products, given the results of _heaviest."""
    place, rows = (sizes < size).sum(axis=1), np.arange(len(sizes))
    before = np.where(place > 0, (sizes[rows, place - 1], changes[rows, place - 1]), 0.0)
    inside = (size - before[0]) / (sizes[rows, place] - before[0])
    return np.asarray(before[1] + inside * (changes[rows, place] - before[1]))


class Proof:
    """The quantities of the proof for one fit."""

    def __init__(self, kinds: VoteCounts, fitted: Scores, how: How) -> None:
        self._kinds, self._fitted, self._how = kinds, fitted, how
        games = kinds.won(kinds.count)
        self._one, self._other = np.nonzero(np.triu(games + games.T))
        self._games = (games + games.T)[self._one, self._other]
        self._pair_kappa = self._kappas(self._one, self._other)
        self._largest = float(self._pair_kappa.max(initial=0.0))
        margin = fitted.scores[self._one] - fitted.scores[self._other]
        self._slope = expit(margin) * expit(-margin)  # 1 − expit would be 0 for margins above 37
        self._norms = None if kinds.voter is None else _voter_norms(kinds, kinds.voter, fitted.covariance)
        self._has_box = how == "false" and ScoreBox.fits(kinds)
        self._ways: dict[int, tuple[float | None, float]] = {}

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
        radius, reach = self._ways[size]
        if radius is None:
            return True
        near = np.flatnonzero(standard_gaps(self._fitted, pairs) <= reach)
        bend = self._bend(radius) if len(near) else np.empty(0)
        return any(gaps[place] <= self._closed(size, radius, bend, pairs[place]) for place in near)

    def least_gap(self, size: int, pair: tuple[int, int]) -> float:
        """Return the least gap that ``size`` units can leave between the ``pair``; −∞ if the proof says nothing."""
        gap = float(self._fitted.scores[pair[0]] - self._fitted.scores[pair[1]])
        if size == 0:
            return gap
        falls = self._box.falls(size) if self._has_box else None
        if falls is not None:
            return gap - float(falls[pair])
        radius, _ = self._way(size)
        return -np.inf if radius is None else gap - self._closed(size, radius, self._bend(radius), pair)

    def _closed(self, size: int, radius: float, bend: Vector, pair: Sequence[int] | Indices) -> float:
        """T_m(r*) + ε(r*): by how much ``size`` units can close the gap of the ``pair``."""
        d = self._fitted.covariance[pair[0]] - self._fitted.covariance[pair[1]]
        return self._most(size, self._pushes(d, radius)) + self._error(radius, d, bend)

    def _kappas(self, one: Indices | Codes, other: Indices | Codes) -> Vector:
        """κ_ij of each of these pairs, all (p,)."""
        covariance = self._fitted.covariance
        variance = np.diag(covariance)
        return np.asarray(np.sqrt(np.maximum(variance[one] + variance[other] - 2.0 * covariance[one, other], 0.0)))

    @functools.cached_property
    def _kappa(self) -> Vector:
        """κ_ij of each kind of votes, shape (q,)."""
        return self._kappas(self._kinds.winner, self._kinds.loser)

    @functools.cached_property
    def _margin(self) -> Vector:
        """By how much each kind's winner is ahead, shape (q,)."""
        return self._fitted.scores[self._kinds.winner] - self._fitted.scores[self._kinds.loser]

    @functools.cached_property
    def _box(self) -> ScoreBox:
        box = ScoreBox(self._kinds, self._fitted)
        give_back(len(self._kinds.order))
        return box

    def _pushes(self, d: Vector, radius: float) -> Vector:
        """Bound by how much each unit changes dᵀ∇F(θ'), shape (u,)."""
        if self._how == "false":
            return self._kinds.pushes(d)
        pull = d[self._kinds.winner] - d[self._kinds.loser]
        return self._kinds.per_unit(self._share(radius, np.sign(pull)) * np.abs(pull))

    def _way(self, size: int) -> tuple[float | None, float]:
        """Return r* for ``size`` units, and the standard gap above which step 4 rules a pair out."""
        radius = self._radius(size)
        if radius is None:
            return None, np.inf
        largest = float((self._bend(radius) / self._slope).max(initial=0.0))
        return radius, self._moved(size, radius) + radius * largest

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


def _voter_norms(kinds: VoteCounts, voter: Codes, covariance: Matrix) -> Vector:
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
