"""Bounds on all score differences at once, which m false votes, or m voters who lie, cannot exceed.

In the notation of :mod:`fairduel.votes.lower_bound`, let x_kl be by how much θ_k − θ_l has changed on the way from θ̂ to
θ', after a share s of the change γ = Σ γ_t of the gradient, and h_kl = σ(m_kl + x_kl) − σ(m_kl) − v_kl x_kl. Since
∇F(θ̂ + Δ) = HΔ + Σ n_kl h_kl (e_k − e_l) = sγ, every pair i, j, with d = H⁻¹(e_i − e_j), has

    x_ij = s dᵀγ − Σ n_kl h_kl (d_k − d_l).

Assume that −b_kl ≤ x_kl ≤ a_kl for all pairs. Then h_kl is between its extremes on that interval, so x_ij is at most
T_m, the sum of the m largest possible changes of dᵀγ, plus the sum of the largest values of −n_kl h_kl (d_k − d_l); and
−x_ij likewise. If these bounds are below a_ij and b_ij for all pairs, then x, which starts from 0 and moves
continuously, never reaches the end of any interval, so they hold. Such a and b are found by iterating the bounds from
T_m. Unlike the radius of a ball around θ̂, they hardly grow with lies about many items, none of which moves far.

*Extremes of h.* For m ≥ 0, h' = σ'(m + x) − σ'(m) is positive between x = −2m and 0, and negative outside. So h has its
minimum on [−b, a] at a, or at −2m or −b, whichever is higher, and its maximum at 0 or −b. For m < 0, mirror x and h.
"""

import numpy as np
from scipy.special import expit

from fairduel.duel import Matrix, Vector
from fairduel.votes.bradley_terry import Scores
from fairduel.votes.vote_counts import VoteCounts
from fairduel.votes.votes import Indices

_MOST_PAIRS, _MOST_PULLS = 2000, 2e9  # pairs of items, and pairs × kinds; more take too long
_AT_ONCE, _MOST_KEPT = 2e6, 3e6  # pairs × units at once, and to keep
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
        inner = rows[:, self._one[self._compared]] - rows[:, self._other[self._compared]]
        self._same, self._opposite = np.maximum(inner, 0.0), np.maximum(-inner, 0.0)
        kept = min(len(kinds.available), max(1, int(_MOST_KEPT / len(rows))))
        self._most = kept if kept < len(kinds.available) else int(kinds.available.sum())
        parts = np.array_split(rows, int(len(rows) * len(kinds.available) / _AT_ONCE) + 1)
        self._up, self._down = (
            tuple(map(np.concatenate, zip(*(_heaviest(kinds, sign * part, kept) for part in parts), strict=True)))
            for sign in (-1.0, 1.0)
        )
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
        for _ in range(_ROUNDS):
            wide_up, wide_down = _WIDER * up, _WIDER * down
            low, high = curvature(self._margin, wide_down[self._compared], wide_up[self._compared])
            low, high = -self._games * low, self._games * high
            up = most_up + self._same @ low + self._opposite @ high
            down = most_down + self._same @ high + self._opposite @ low
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
    values = kinds.pushes(rows)
    order = np.argpartition(-values, most - 1, axis=1)[:, :most]
    order = np.take_along_axis(order, np.argsort(-np.take_along_axis(values, order, axis=1), axis=1), axis=1)
    counts = kinds.available[order]
    return np.cumsum(np.take_along_axis(values, order, axis=1) * counts, axis=1), np.cumsum(counts, axis=1)


def _top_sum(size: int, changes: Matrix, sizes: Indices) -> Vector:
    """Return by how much the ``size`` heaviest units change each of p products, given the results of _heaviest."""
    place, rows = (sizes < size).sum(axis=1), np.arange(len(sizes))
    before = np.where(place > 0, (sizes[rows, place - 1], changes[rows, place - 1]), 0.0)
    inside = (size - before[0]) / (sizes[rows, place] - before[0])
    return np.asarray(before[1] + inside * (changes[rows, place] - before[1]))
