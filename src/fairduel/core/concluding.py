"""Conclude from recorded votes although a stretch of them may be lies.

A burst of lies is a window of consecutive votes that another θ explains better than the θ of all other votes. Windows
of up to a quarter of the votes are tried, with edges on a grid of ``PARTS`` equal parts. Inside its window the estimate
may differ by δ from the θ outside, at the price λ/2 ‖δ‖²; the *gain* is how much that raises the penalised
log-likelihood.

Without lies, twice the gain is about Σ a_k χ²₁ with a_k = v_k/(v_k + λ), where v_k are the eigenvalues of
V = H_in − H_in H⁻¹ H_in, the information about δ. Since a_k ≤ 1, the moments of that sum are at most those of χ² with
ν = Σ a_k degrees of freedom. So the *bar* is half the quantile of χ²_ν at 1 − ``LEVEL``/number of windows (Bonferroni).
All of this is conditional on the duels asked, which may depend on earlier votes.

If lies come first, the honest votes right after them may be the window that contradicts the rest. So where a quarter of
the votes came after the last window, an estimate from these alone is made, too: what they prefer cannot be due to that.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from fairduel.core.compiling import compiled
from fairduel.core.information import HIGH_DIMENSION, dot
from fairduel.core.likelihood import Comparisons, FitProblem, hessian_of, loss, newton, problem_of, solved
from fairduel.core.links import Link, probability_and_slope
from fairduel.duel import Matrix, Vector

LEVEL = 0.05
"""At most this share of polls without lies have a window set aside."""
PARTS = 20
_LONGEST = PARTS // 4
WINDOWS = np.array([(a, b) for a in range(PARTS) for b in range(a + 1, min(a + _LONGEST, PARTS) + 1)])
"""The edges at which each window begins and ends, shape (w, 2)."""
FEWEST_VOTES = 2 * PARTS
"""With fewer votes, hardly any window can be told from chance."""
_MOST_BURSTS = 2
_MOST_FITS = 10


class Burst(NamedTuple):
    """A window of votes that was set aside."""

    begin: int
    """Its first vote, from 0, in the order of telling."""
    end: int
    """The vote after its last."""
    gain: float
    """How much a separate fit of the window raises the log-likelihood."""
    bar: float
    """The largest gain put down to chance."""


class Conclusion(NamedTuple):
    """What recorded votes say."""

    theta: Vector
    """The maximum-likelihood estimate from all votes that were not set aside, shape (d,)."""
    bursts: tuple[Burst, ...]
    """The windows set aside, in the order in which they were found."""
    votes: int
    """The number of votes, including those set aside."""
    since: Vector | None = None
    """The estimate from the votes after the last window, shape (d,), if these are a quarter of all."""


class Ordered(NamedTuple):
    """Votes in the order of telling, split into parts."""

    rows: NDArray[np.int64]
    """The row of each vote, shape (v,)."""
    shares: Vector
    """o of each vote, shape (v,)."""
    edges: NDArray[np.int64]
    """The vote at which each part begins, and the number of votes, shape (g + 1,)."""


@compiled
def screen(theta: Vector, whole: FitProblem, votes: Ordered, windows: NDArray[np.int64]) -> Matrix:
    """Return the approximate gain and the degrees of freedom ν of each window, shape (w, 2).

    The approximation is ½ sᵀ(V + λI)⁻¹s, with the window's score s = Σ (o − σ(φᵀθ)) φ at the ``theta`` (d,) that solves
    ``whole``. If a window has more upsets than expected it is too large rather than too small.
    """
    differences, _, _, ridge, link, _ = whole
    dimension = theta.size
    parts = votes.edges.size - 1
    scores, hessians = np.zeros((parts + 1, dimension)), np.zeros((parts + 1, dimension, dimension))
    variance = curvature = 0.0
    for part in range(parts):
        begin, end = votes.edges[part], votes.edges[part + 1]
        told, slopes = np.empty((end - begin, dimension)), np.empty(end - begin)
        score = scores[part].copy()
        for k in range(end - begin):
            told[k] = differences[votes.rows[begin + k]]
            p, slopes[k] = probability_and_slope(link.kind, link.scale, dot(told[k], theta))
            score += (votes.shares[begin + k] - p) * told[k]
            variance += p * (1.0 - p)
            curvature += slopes[k]
        scores[part + 1] = score
        hessians[part + 1] = hessians[part] + hessian_of(told, slopes, 0.0)
    priced = ridge * np.eye(dimension)
    inverse = np.linalg.inv(hessians[parts] + priced)
    found = np.empty((len(windows), 2))
    for k in range(len(windows)):
        begin, end = windows[k]
        score, inside = scores[end] - scores[begin], hessians[end] - hessians[begin]
        information = inside - inside @ inverse @ inside
        solution = np.linalg.solve(information + priced, np.column_stack((score, information)))
        found[k, 0] = 0.5 * np.dot(score, solution[:, 0]) * curvature / variance
        found[k, 1] = np.trace(solution[:, 1:])
    return found


@compiled
def gain(theta: Vector, whole: FitProblem, votes: Ordered, window: NDArray[np.int64]) -> tuple[float, float]:
    """Return a window's gain, and how much more its votes agree with the rest than expected.

    (θ, δ) solves eq. (MLE) with differences (φ, φ) for votes in the window and (φ, 0) for all others. The agreement is
    Σ (o − σ(φᵀθ)) φᵀθ over the window. The gain is in units of the log-likelihood: links other than the logistic have
    σ′ ≠ σ(1 − σ), and their loss is divided by Σσ(1 − σ)/Σσ′.
    """
    differences, weights, wins, ridge, link, size = whole
    rows, dimension = differences.shape
    inside = np.zeros((2, rows))
    for k in range(votes.edges[window[0]], votes.edges[window[1]]):
        inside[0, votes.rows[k]] += 1.0
        inside[1, votes.rows[k]] += votes.shares[k]
    both, sums = np.zeros((2 * rows, 2 * dimension)), np.empty((2, 2 * rows))
    used = 0
    for i in range(rows):
        if inside[0, i] > 0.0:
            both[used, :dimension], both[used, dimension:] = differences[i], differences[i]
            sums[:, used] = inside[:, i]
            used += 1
        if weights[i] > inside[0, i]:
            both[used, :dimension] = differences[i]
            sums[0, used], sums[1, used] = weights[i] - inside[0, i], wins[i] - inside[1, i]
            used += 1
    joint = FitProblem(both[:used], sums[0, :used], sums[1, :used], ridge, link, size)
    fitted = newton(np.concatenate((theta, np.zeros(dimension))), joint, np.empty((0, 0))).theta
    agreement = variance = curvature = 0.0
    for i in range(rows):
        margin = dot(differences[i], fitted[:dimension])
        p, slope = probability_and_slope(link.kind, link.scale, margin)
        agreement += (inside[1, i] - inside[0, i] * p) * margin
        variance += weights[i] * p * (1.0 - p)
        curvature += weights[i] * slope
    return (loss(theta, whole) - loss(fitted, joint)) * curvature / variance, agreement


def can_scan(votes: int, dimension: int) -> bool:
    """Whether there are enough votes to find a burst, and few enough features to do so in seconds."""
    return votes >= FEWEST_VOTES and dimension < HIGH_DIMENSION


def conclude(told: Comparisons, *, ridge: float, link: Link) -> Conclusion:
    """Estimate θ from votes, all with the same weight, without those in at most two bursts.

    >>> told = Comparisons(dimension=1)
    >>> for vote in range(400):
    ...     is_lie = 300 <= vote < 360
    ...     told.add(np.ones(1), weight=1.0, share=float(vote % 4 == 0 if is_lie else vote % 4 > 0))
    >>> conclusion = conclude(told, ridge=0.25, link=Link("logistic"))
    >>> [(burst.begin, burst.end) for burst in conclusion.bursts], conclusion.theta.round(1)
    ([(300, 360)], array([1.1]))
    """
    kept = np.arange(len(told.votes))
    bursts: list[Burst] = []
    theta = np.zeros(told.differences.shape[1])
    while True:
        votes, whole = _problem(told, told.votes[kept], ridge, link)
        theta = solved(theta, whole).theta
        found = _clearest(theta, whole, votes) if len(bursts) < _MOST_BURSTS else None
        if found is None:
            break
        (first, last), *evidence = found
        begin, end = votes.edges[first], votes.edges[last]
        bursts.append(Burst(int(kept[begin]), int(kept[end - 1]) + 1, *evidence))
        kept = np.delete(kept, slice(begin, end))
    over, since = max((burst.end for burst in bursts), default=0), None
    if over and PARTS * (len(told.votes) - over) >= _LONGEST * len(told.votes):
        since = solved(theta, _problem(told, told.votes[over:], ridge, link)[1]).theta
    return Conclusion(theta, tuple(bursts), len(told.votes), since)


def _problem(told: Comparisons, codes: NDArray[np.int64], ridge: float, link: Link) -> tuple[Ordered, FitProblem]:
    """Return the votes ``codes`` in order, and the problem whose solution is their estimate."""
    edges = np.linspace(0, len(codes), PARTS + 1).round().astype(np.int64)
    votes = Ordered(codes // 3, codes % 3 / 2.0, edges)
    weights = np.bincount(votes.rows, minlength=len(told)).astype(np.float64)
    wins = np.bincount(votes.rows, votes.shares, len(told)).astype(np.float64)
    return votes, problem_of(told.differences, weights, wins, ridge, link)


def _clearest(theta: Vector, whole: FitProblem, votes: Ordered) -> tuple[NDArray[np.int64], float, float] | None:
    """Return the window furthest above its bar, with its gain and its bar; ``None`` if there is none.

    Lies lower agreement: a window that agrees more with the rest than expected is not set aside.
    """
    if not can_scan(len(votes.rows), len(theta)):
        return None
    approximate, freedom = screen(theta, whole, votes, WINDOWS).T
    bars = 0.5 * chdtri(freedom, LEVEL / len(WINDOWS))
    likely = np.argsort(bars - approximate)[:_MOST_FITS]
    best, best_excess = None, 0.0
    for k in likely[approximate[likely] > bars[likely] / 2.0]:
        value, agreement = gain(theta, whole, votes, WINDOWS[k])
        if agreement < 0.0 and value - bars[k] > best_excess:
            best, best_excess = (WINDOWS[k], value, float(bars[k])), value - bars[k]
    return best
