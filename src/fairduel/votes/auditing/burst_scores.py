r"""The largest difference between a stretch of votes and the rest, and how large chance makes it.

Votes are compared within *strata*: votes on the same pair of items, and in the same context if votes are sorted by
context, or if that leaves at least two votes per stratum on average. So the model need not hold, and an item that
appears midway is no difference. With e the result of a vote minus the mean of its stratum, the score of item k in
window W is s_Wk = Σ_{i∈W} φ_ik e_i, where φ_ik is 1 for the vote's first item, −1 for its second. One more direction,
the margins of the ranking, asks whether votes agree less with it. Windows are those of :mod:`fairduel.core.concluding`:
up to a quarter of the votes. The statistic is t = max_W,k |s_Wk|/√v_Wk.

Two sets of draws of all s_Wk, each centred in its strata again, say what chance does:

- *votes*: results are drawn again within their strata, as if votes were independent;
- *voters*: the residuals of all votes of one voter change sign together, with probability ½ (a wild cluster bootstrap).
  If contexts are no strata, a ridge regression predicts residuals by context and item. The predictions change sign by
  context, and what is left by voter.

v is the larger variance of the two, and p the larger share of draws with a t as large as the observed one. A stratum of
m effective voters has its residuals multiplied by √(m/(m − 1)), because its mean has adapted to them.
"""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import linalg as sparse_linalg

from fairduel.core.concluding import PARTS, WINDOWS
from fairduel.duel import Matrix, Vector
from fairduel.votes.timing import time_order
from fairduel.votes.votes import Codes, Indices, Mask, Ties, Votes, distinct_duels, sums

_BATCH = 3e5  # draws × votes at once, which fit into the processor's cache
_AT_ONCE = 5e6  # draws × windows × directions
_MOST_VOTES = 200_000  # more take long
_LEAST_PER_STRATUM = 2.0  # votes, on average
_TASTE_RIDGE = 2.0  # σ²/τ² of a context's effects on results: ¼ over (1.4/4)², so that large effects are covered
_STEPS = 30  # of the ridge regression
_NEARLY = 0.8
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Stratified:
    """The m votes that count, in time order, in R strata."""

    place: Indices
    """Index of each vote, shape (m,)."""
    part: Indices
    """Part of the file, shape (m,)."""
    stratum: Indices
    """Shape (m,)."""
    low: Indices
    """Lower item of each stratum, shape (R,)."""
    high: Indices
    """Higher item, shape (R,)."""
    margin: Vector
    """Score of the lower item minus that of the higher one, shape (R,)."""
    result: Vector
    """Result for the stratum's lower item, shape (m,)."""
    count: Vector
    """How many votes each stands for, shape (m,)."""
    voter: Codes | None
    """Shape (m,); None if unknown, or if everyone cast one vote."""
    context: Codes | None
    """Shape (m,); None if there are none, or if they are strata."""
    scanned: Mask
    """Which directions are scanned, shape (K + 1,)."""

    @classmethod
    def of(cls, votes: Votes, ties: Ties, scores: Vector) -> Self:
        """Collect the votes; ``scores`` (K,) order the items. Of many votes, only those on the best items are kept."""
        counts, items = votes.counts(ties), len(votes.items)
        scanned = _best(votes, counts, scores)
        kept = (counts > 0.0) & (scanned[votes.first] | scanned[votes.second])
        order, part = np.argsort(time_order(votes)), parts_of(votes)
        place = order[kept[order]]
        first, second = votes.first[place], votes.second[place]
        context = None if votes.context is None else votes.context[place]
        _, low, high, stratum, turned = distinct_duels(first, second, items)
        if context is not None:
            _, *finer, turned = distinct_duels(first, second, items, context)
            if is_sorted_by(context) or len(place) >= _LEAST_PER_STRATUM * len(finer[0]):
                (low, high, stratum), context = finer, None
        return cls(
            place=place,
            part=part[place],
            stratum=stratum,
            low=low,
            high=high,
            margin=scores[low] - scores[high],
            result=np.where(turned, 1.0 - votes.result[place], votes.result[place]),
            count=counts[place],
            voter=_shared(None if votes.voter is None else votes.voter[place]),
            context=_shared(context),
            scanned=np.append(scanned, True),
        )

    @property
    def items(self) -> int:
        """K."""
        return len(self.scanned) - 1

    @property
    def mean(self) -> Vector:
        """Mean result of each vote's stratum, shape (m,)."""
        return self.over_strata(self.result)

    def over_strata(self, values: Vector) -> Vector:
        """Return the weighted mean of the ``values`` (m,) in each vote's stratum, shape (m,)."""
        total, count = (sums(self.stratum, len(self.low), each) for each in (self.count * values, self.count))
        return np.asarray((total / count)[self.stratum])

    def adapted(self, group: Codes | None) -> Vector:
        """Return √(m/(m − 1)) for each vote, shape (m,), with m its stratum's effective number of groups.

        At most √2; 0 if the stratum has one vote. Without ``group`` (m,), each vote is its own group.
        """
        groups = np.arange(len(self.place)) if group is None else group.astype(np.int64)
        most = int(groups.max()) + 1
        keys, entry = np.unique(self.stratum * most + groups, return_inverse=True)
        squares = sums(keys // most, len(self.low), sums(entry, len(keys), self.count) ** 2)
        size = sums(self.stratum, len(self.low), self.count)
        share = squares / size**2  # 1/m
        factor = np.where(sums(self.stratum, len(self.low)) > 1.0, 1.0 / np.maximum(1.0 - share, 0.5), 0.0)
        return np.asarray(np.sqrt(factor)[self.stratum])

    @functools.cached_property
    def _maps(self) -> tuple[sparse.csr_array, sparse.csr_array, Indices, Vector, sparse.csr_array]:
        """Return what sums votes by cell (a stratum in a part), cells by stratum, and cells by part and direction.

        Between the last two: the stratum of each cell, and its share of the stratum.
        """
        keys, cell = np.unique(self.stratum * PARTS + self.part, return_inverse=True)
        stratum, part, count = keys // PARTS, keys % PARTS, len(keys)
        share = sums(cell, count, self.count) / sums(self.stratum, len(self.low), self.count)[stratum]
        each, directions = np.arange(count), self.items + 1
        row = part * directions + np.stack([self.low[stratum], self.high[stratum], np.full(count, self.items)])
        value = np.stack([np.ones(count), -np.ones(count), self.margin[stratum]])
        by_part = sparse.csr_array((value.ravel(), (row.ravel(), np.tile(each, 3))), shape=(PARTS * directions, count))
        votes = np.arange(len(cell))
        by_cell = sparse.csr_array((self.count, (cell, votes)), shape=(count, len(cell)))
        by_stratum = sparse.csr_array((np.ones(count), (stratum, each)), shape=(len(self.low), count))
        return by_cell, by_stratum, stratum, share, by_part

    def totals(self, residual: Matrix) -> NDArray[np.float64]:
        """Centre ``residual`` (m, b) in its strata; return its sums by part and direction, shape (20, K + 1, b)."""
        by_cell, by_stratum, stratum, share, by_part = self._maps
        cells = by_cell @ residual
        cells -= share[:, None] * (by_stratum @ cells)[stratum]
        return np.asarray(by_part @ cells).reshape(PARTS, self.items + 1, residual.shape[1])

    def _of_direction(self, direction: int) -> Vector:
        """Return the coefficient of each vote in the direction, shape (m,)."""
        if direction == self.items:
            return self.margin[self.stratum]
        return np.asarray(((self.low == direction) * 1.0 - (self.high == direction))[self.stratum])

    def rates(self, direction: int, here: Mask) -> tuple[float, float, float]:
        """Return the share of votes ``here`` (m,) for the direction, the same elsewhere, and the number of votes."""
        side = self._of_direction(direction)
        won = np.where(side > 0.0, self.result, 1.0 - self.result)
        elsewhere = np.where(here, 0.0, self.count)
        count, total = (sums(self.stratum, len(self.low), each) for each in (elsewhere, elsewhere * won))
        used = np.flatnonzero(here & (side != 0.0) & (count > 0.0)[self.stratum])
        weight, stratum = self.count[used], self.stratum[used]
        size = float(weight.sum())
        if not size:
            return math.nan, math.nan, 0.0
        return (
            float(weight @ won[used]) / size,
            float(weight @ (total / np.maximum(count, 1e-300))[stratum]) / size,
            size,
        )

    def per_vote(self, direction: int, parts: Matrix) -> tuple[Vector, Vector]:
        """Divide the scores and errors of the ``parts`` (2, 20) by the number of votes, weighted by their margins."""
        size = sums(self.part, PARTS, self.count * np.abs(self._of_direction(direction)))
        excess, error = np.divide(parts, size, out=np.full(parts.shape, math.nan), where=size > 0.0)
        return excess, error


class Largest(NamedTuple):
    """The window and direction that differ most."""

    p_value: float
    window: int
    direction: int
    gained: Indices
    lost: Indices
    parts: Matrix
    """Score in the direction, and its standard error, of each part, shape (2, 20)."""


def largest_difference(told: Stratified, draws: int, level: float, rng: np.random.Generator) -> Largest:
    """Compare the largest score with the draws; see the module's docstring."""
    observed = _before_parts(told, lambda _: (told.result - told.mean)[:, None], 1)
    sources = [_results_again(told, rng)]
    if told.voter is not None or told.context is not None:
        sources.append(_signs(told, rng))
    drawn = [_before_parts(told, draw, draws) for draw in sources]
    ratios, largest = np.empty((len(WINDOWS), told.items + 1)), np.zeros((len(drawn), draws))
    for chunk in np.array_split(np.arange(len(WINDOWS)), math.ceil(len(WINDOWS) * drawn[0][0].size / _AT_ONCE)):
        begin, end = WINDOWS[chunk].T
        score = (observed[end] - observed[begin])[..., 0]
        scores = [each[end] - each[begin] for each in drawn]
        deviation = np.where(told.scanned, _deviation(scores, score), np.inf)
        ratios[chunk] = score / deviation
        for largest_of, each in zip(largest, scores, strict=True):
            np.maximum(largest_of, np.abs(each / deviation[..., None]).max(axis=(0, 1)), out=largest_of)
    window, direction = np.unravel_index(np.argmax(np.abs(ratios)), ratios.shape)
    as_large = (largest >= abs(ratios[window, direction]) - _ROUNDING).sum(axis=1)
    bar = np.quantile(largest, 1.0 - level, axis=1).max()
    order = np.argsort(-np.abs(ratios[window, :-1]), kind="stable")
    clear = order[np.abs(ratios[window, order]) >= bar]
    if abs(ratios[window, order[0]]) >= _NEARLY * abs(ratios[window, direction]):
        direction = order[0]  # an item says more than the agreement with the ranking
    parts = [np.diff(each[:, direction], axis=0) for each in (observed, *drawn)]
    return Largest(
        p_value=float((1 + as_large.max()) / (1 + draws)),
        window=int(window),
        direction=int(direction),
        gained=clear[ratios[window, clear] > 0.0],
        lost=clear[ratios[window, clear] < 0.0],
        parts=np.stack([parts[0][:, 0], _deviation(parts[1:], parts[0][:, 0])]),
    )


def _before_parts(told: Stratified, draw: Callable[[int], Matrix], draws: int) -> NDArray[np.float64]:
    """Sum ``draws`` residuals by direction before each part, shape (21, K + 1, draws)."""
    total, size = np.zeros((PARTS + 1, told.items + 1, draws)), max(1, int(_BATCH / len(told.place)))
    for begin in range(0, draws, size):
        end = min(begin + size, draws)
        total[1:, :, begin:end] = told.totals(draw(end - begin))
    return np.asarray(np.cumsum(total, axis=0, out=total))


def _deviation(drawn: Sequence[NDArray[np.float64]], observed: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return √v from draws (…, b) and the observed score (…,), of the same shape; ∞ without variance."""
    variance = np.max([((each**2).sum(axis=-1) + observed**2) / (1 + each.shape[-1]) for each in drawn], axis=0)
    return np.where(variance > _ROUNDING, np.sqrt(variance), np.inf)


def _results_again(told: Stratified, rng: np.random.Generator) -> Callable[[int], Matrix]:
    """Return what draws b times residuals (m, b) of independent votes: results as in their strata."""
    won, tied = (told.over_strata(told.result == value).astype(np.float32)[:, None] for value in (1.0, 0.5))
    tied, half = won + tied, 0.5 * told.adapted(None)[:, None]

    def draw(count: int) -> Matrix:
        uniform = rng.random((len(won), count), dtype=np.float32)
        points = (uniform < won).view(np.int8) + (uniform < tied).view(np.int8)
        return half * points  # the means of strata make no difference

    return draw


def _signs(told: Stratified, rng: np.random.Generator) -> Callable[[int], Matrix]:
    """Return what draws b times residuals (m, b) whose signs change by voter, and by context if these are no strata."""
    left = (told.result - told.mean) * told.adapted(told.voter)
    voter = np.arange(len(left)) if told.voter is None else told.voter
    parts = [(left, voter)]
    if told.context is not None:
        by_context = _predicted(told, left, told.context)
        parts = [(left - by_context, voter), (by_context, told.context)]

    def draw(count: int) -> Matrix:
        total = np.zeros((len(left), count))
        for part, group in parts:
            signs = rng.integers(2, size=(int(group.max()) + 1, count), dtype=np.int8) * 2.0 - 1.0
            total += part[:, None] * signs[group]
        return total

    return draw


def _predicted(told: Stratified, residual: Vector, group: Codes) -> Vector:
    """Predict ``residual`` (m,) by a ridge regression on the effects of each group (m,) on each item."""
    keys = group.astype(np.int64) * told.items + np.stack([told.low, told.high])[:, told.stratum]
    codes, column = np.unique(keys, return_inverse=True)
    each = np.arange(len(residual))
    value = np.repeat([1.0, -1.0], len(residual))
    design = sparse.csr_array((value, (np.tile(each, 2), column.ravel())), shape=(len(residual), len(codes)))
    effects = sparse_linalg.lsqr(design, residual, damp=math.sqrt(_TASTE_RIDGE), iter_lim=_STEPS)[0]
    return np.asarray(design @ effects)


def parts_of(votes: Votes) -> Indices:
    """Return in which of the 20 equally long parts of ``time_order`` each vote was cast, shape (n,)."""
    return time_order(votes) * PARTS // max(len(votes), 1)


def _best(votes: Votes, counts: Vector, scores: Vector) -> Mask:
    """Return which items are scanned, shape (K,): all, or the best that share at most ``_MOST_VOTES`` votes."""
    used = counts > 0.0
    if used.sum() <= _MOST_VOTES:
        return np.ones(len(scores), dtype=np.bool_)
    place = np.empty(len(scores), dtype=np.int64)
    place[np.argsort(-scores, kind="stable")] = np.arange(len(scores))
    first_seen = np.minimum(place[votes.first], place[votes.second])[used]
    number = max(1, int(np.searchsorted(np.cumsum(sums(first_seen, len(scores))), _MOST_VOTES, side="right")))
    return np.asarray(place < number)


def is_sorted_by(group: Codes) -> bool:
    """Whether votes in the same group (m,) mostly stand together: more than halfway from random order to sorted.

    >>> is_sorted_by(np.repeat([2, 0, 1], 5)), is_sorted_by(np.tile([2, 0, 1], 5))
    (True, False)
    """
    shares = np.bincount(group) / max(len(group), 1)
    return bool((np.diff(group) == 0).sum() > 0.5 * (1.0 + shares @ shares) * len(group))


def _shared(group: Codes | None) -> Codes | None:
    """Return the groups (m,), numbered from 0, or None if there is one group or one per vote."""
    if group is None:
        return None
    names, codes = np.unique(group, return_inverse=True)
    return codes.astype(np.int32) if 1 < len(names) < len(group) else None
