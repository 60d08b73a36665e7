"""How far to trust it: the fewest votes whose removal, or flipping, changes the leader or the top k.

**Found** (an upper bound): votes are taken by their influence on the gap between two items, in steps, with a refit
after each; the set is then shrunk, and checked by an exact refit without it.

**Proved** (a lower bound): no set of fewer votes can do it. Let θ̂ minimise F, the loss of all votes, with Hessian H
there; κ_ij = ‖e_i − e_j‖ in the norm of H⁻¹; κ the largest among pairs that met. Let S be any m votes and θ' = θ̂ + Δ
minimise the loss after S is dropped (or flipped), r = ‖Δ‖_H. Then ∇F(θ') = Σ_S γ_t, where γ_t is the part of the
gradient that vote t took along: for i over j it is −σ(−m')(e_i − e_j) if dropped, with margin m' = θ'_i − θ'_j, and
exactly −(e_i − e_j) if flipped.

1. *θ' is near.* |σ''| ≤ σ' gives Δᵀ(∇F(θ') − ∇F(θ̂)) ≥ r²(1 − e^{−κr})/(κr), and |Δᵀγ_t| ≤ r·κ_ij·σ(κ_ij r − m).
   So (1 − e^{−κr})/κ ≤ A_m(r), the sum of the m largest κ_ij·σ(κ_ij r − m). Take the votes away little by little: θ'
   moves continuously from θ̂, and the inequality holds all the way. So r never passes a value where it fails: r ≤ r*.
2. *Near, the problem is linear.* Let a lead b by g, d = H⁻¹(e_a − e_b). If b catches up, then −dᵀHΔ ≥ g, and
   −dᵀ∇F(θ') ≥ g − ε(r) with ε(r)² = r² Σ_pairs n_ij δ_ij² (d_i − d_j)² / v_ij, where v = σ'(m) and δ_ij is the most
   that the mean slope on the way can differ from v, by |σ''| ≤ σ' ≤ ¼ (Cauchy and Schwarz do the rest).
3. But −dᵀ∇F(θ') is at most T_m(r), the sum of the m largest (d_i − d_j)·σ(κ_ij r − m). So m is not enough whenever
   T_m(r*) < g − ε(r*).
4. *Most pairs need no sums.* |d_i − d_j| ≤ κ_ab κ_ij (Cauchy and Schwarz), so T_m(r) ≤ κ_ab A_m(r); and as
   Σ n_ij v_ij (d_i − d_j)² ≤ κ_ab², ε(r) ≤ κ_ab r max(δ_ij/v_ij). With thousands of pairs, only those that this does
   not rule out are looked at one by one.

For flips σ(·) is 1 throughout. A tie that counts as two half wins can be dropped, with (½ − σ(m')) in place of σ(−m').
A vote of weight w counts w times in all sums. A ridge only adds to H, and stays the same. If no r* exists the proof
ends there. Where r* exists there is a finite θ' without a ridge too: otherwise r would pass every value.

A change is strict: a tie is none, nor are two items that no votes compare any more once some are dropped.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph
from scipy.special import expit

from fairduel.checks import whole
from fairduel.duel import Matrix, Vector
from fairduel.errors import BadInputError
from fairduel.votes.bradley_terry import Scores, Ties, fit_scores, moved_scores
from fairduel.votes.robust import one_thread
from fairduel.votes.votes import Votes

How = Literal["dropped", "flipped"]
_PROMISING_PAIRS = 50  # (inside, outside) pairs with the least gap, in standard errors, for which votes are counted
_TRIED_PAIRS = 4  # of these, for which a set is searched, the most promising first
_LOOKED_AT = 4096  # kinds of votes, the most influential, before all are
_HOPELESS = 2.0  # times the votes found so far: a pair that is predicted to need more is not searched
_CHANGED = 1e-9  # log-odds: less is rounding
_RADII = np.geomspace(1e-3, 1e4, 400)
_STRIDE = 8


@dataclass(frozen=True, eq=False)
class Fragility:
    """How many votes change the top k."""

    top: int
    how: How
    votes: int
    """Votes that count (with a winner, or ties where these count)."""
    found: int | None
    """Size of the smallest set that was found; None if no set was."""
    at_least: int
    """No smaller set exists: proved."""
    rows: tuple[int, ...]
    """Rows of the file of the set that was found."""
    loses: str
    """Item that falls out of the top k."""
    gains: str
    """Item that comes in."""

    @property
    def sentence(self) -> str:
        """What people need to know.

        >>> Fragility(1, "dropped", 5460, 14, 6, (), "a", "b").sentence
        'The leader changes (a gives way to b) if 14 of 5,460 votes are dropped; at least 6 are needed.'
        """
        what = "The leader changes" if self.top == 1 else f"The top {self.top} changes"
        if self.found is None:
            return f"No set of votes was found that, {self.how}, changes the top {self.top}."
        needed = "are needed" if self.at_least > 1 else "is needed"
        exact = "no fewer will do" if self.at_least == self.found else f"at least {self.at_least:,} {needed}"
        who = f"({self.loses} gives way to {self.gains})"
        verb = "is" if self.found == 1 else "are"
        return f"{what} {who} if {self.found:,} of {self.votes:,} votes {verb} {self.how}; {exact}."


@dataclass(frozen=True, eq=False)
class _Kinds:
    """Votes that are alike: the same winner, loser and weight. All (q,) but the order."""

    winner: NDArray[np.int64]
    loser: NDArray[np.int64]
    tie: NDArray[np.bool_]
    weight: Vector
    count: NDArray[np.int64]
    order: NDArray[np.int64]
    """All votes that count, kind by kind."""
    items: int

    def won(self, count: NDArray[np.int64]) -> Matrix:
        """Matrix of wins if each kind had ``count`` votes, shape (K, K)."""
        mass, size = self.weight * count, self.items**2
        forth, back = self.winner * self.items + self.loser, self.loser * self.items + self.winner
        won = np.bincount(forth, np.where(self.tie, 0.5, 1.0) * mass, size)
        won += np.bincount(back[self.tie], 0.5 * mass[self.tie], size)
        return np.asarray(won.reshape(self.items, self.items))

    def after(self, taken: NDArray[np.int64], how: How) -> Matrix:
        """Matrix of wins once ``taken`` (q,) votes of each kind are dropped or flipped."""
        left = self.won(self.count - taken)
        return left if how == "dropped" else left + self.won(taken).T

    def members(self, taken: NDArray[np.int64]) -> NDArray[np.int64]:
        """Places of the first ``taken`` (q,) votes of each kind."""
        starts = np.cumsum(self.count) - self.count
        chosen = [self.order[start : start + many] for start, many in zip(starts, taken, strict=True) if many]
        return np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *chosen]))


def fragility(
    votes: Votes, *, top: int = 1, ties: Ties = "half", hows: Sequence[How] = ("dropped", "flipped")
) -> list[Fragility]:
    """Find the fewest votes that change the ``top`` items when dropped, and when flipped, and bound them from below.

    Only the largest component of the comparison graph is looked at: items outside it have no common ranking with it.

    >>> votes = Votes.from_arrays("ab", [0] * 12, [1] * 12, [1] * 8 + [0] * 4)
    >>> print(fragility(votes)[0].sentence)
    The leader changes (a gives way to b) if 5 of 12 votes are dropped; at least 2 are needed.
    """
    votes, kinds, fitted = _prepared(votes, ties)
    if not 1 <= whole("top", top, least=1) < len(votes.items):
        raise BadInputError(f"the top {top} of {len(votes.items)} items that were compared cannot change.")
    ranked = np.argsort(-fitted.scores, kind="stable")
    pairs = [(int(inside), int(outside)) for inside in ranked[:top] for outside in ranked[top:]]
    return [_bounds(votes, kinds, fitted, pairs, top, how) for how in hows]


def challengers(votes: Votes, *, most: int = 5, ties: Ties = "half", how: How = "dropped") -> list[Fragility]:
    """The same for the leader against each of the next items alone: how many votes until this one is above it."""
    votes, kinds, fitted = _prepared(votes, ties)
    leader, *others = np.argsort(-fitted.scores, kind="stable").tolist()
    return [_bounds(votes, kinds, fitted, [(leader, other)], 1, how) for other in others[:most]]


def _prepared(votes: Votes, ties: Ties) -> tuple[Votes, _Kinds, Scores]:
    votes = _largest_component(votes)
    kinds = _kinds(votes, ties)
    return votes, kinds, fit_scores(kinds.won(kinds.count))


def _bounds(
    votes: Votes, kinds: _Kinds, fitted: Scores, pairs: Sequence[tuple[int, int]], top: int, how: How
) -> Fragility:
    with one_thread():
        size, taken, (loses, gains) = _search(kinds, fitted, pairs, how)
        at_least = least_needed(kinds, fitted, pairs, how)
    return Fragility(
        top=top,
        how=how,
        votes=int(kinds.count.sum()),
        found=size,
        at_least=at_least,
        rows=tuple(votes.row[kinds.members(taken)].tolist()),
        loses=votes.items[loses],
        gains=votes.items[gains],
    )


def least_needed(kinds: _Kinds, fitted: Scores, pairs: Sequence[tuple[int, int]], how: How) -> int:
    """The smallest m that the proof above cannot rule out for any (inside, outside) pair."""
    low, high = 1, int(kinds.count.sum()) + 1  # low cannot be ruled out only if nothing below can
    proof = _Proof(kinds, fitted, how)
    sorted_pairs = np.array(pairs)[np.argsort(_standard_gaps(fitted, pairs), kind="stable")]
    while low < high:
        middle = (low + high) // 2
        if proof.possible(middle, sorted_pairs):
            high = middle
        else:
            low = middle + 1
    return low


class _Proof:
    """The quantities of the proof for one set of votes."""

    def __init__(self, kinds: _Kinds, fitted: Scores, how: How) -> None:
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
        slope = expit(fitted.scores[self._one] - fitted.scores[self._other])
        self._slope = slope * (1.0 - slope)

    def possible(self, size: int, pairs: NDArray[np.int64]) -> bool:
        """Whether the proof leaves it open that ``size`` votes let one of the ``pairs`` (p, 2) change places."""
        radius = self._radius(size)
        if radius is None:
            return True
        bend = self._bend(radius)
        reach = self._moved(size, radius) + radius * float((bend / self._slope).max(initial=0.0))
        scores, covariance = self._fitted.scores, self._fitted.covariance
        for inside, outside in pairs[_standard_gaps(self._fitted, pairs) <= reach]:
            d = covariance[inside] - covariance[outside]
            pull = d[self._kinds.winner] - d[self._kinds.loser]
            most = self._most(size, self._share(radius, np.sign(pull)) * np.abs(pull))
            if most >= scores[inside] - scores[outside] - self._error(radius, d, bend):
                return True
        return False

    def _bend(self, radius: float) -> Vector:
        """δ of each pair of items that met: how far the mean slope can be from v on a way of length ``radius``."""
        stretch = self._pair_kappa * radius
        with np.errstate(over="ignore"):
            more = np.minimum(self._slope * (np.expm1(stretch) / stretch - 1.0), 0.25 - self._slope)
        return np.maximum(more, self._slope * (1.0 + np.expm1(-stretch) / stretch))

    def _error(self, radius: float, d: Vector, bend: Vector) -> float:
        """ε(r): by how much dᵀ∇F(θ') can differ from dᵀHΔ where ‖Δ‖_H = r."""
        return radius * float(np.sqrt((self._games * bend**2 / self._slope) @ (d[self._one] - d[self._other]) ** 2))

    def _radius(self, size: int) -> float | None:
        """r*: a small radius that the minimiser cannot pass when ``size`` votes go; None without any."""
        radii = _RADII / self._largest
        inner = -np.expm1(-_RADII) / self._largest
        at_zero = self._moved(size, 0.0)  # A_m grows with r, so smaller radii need no look
        start = int(np.searchsorted(inner, at_zero, side="right"))
        for coarse in range(
            start, len(radii), _STRIDE
        ):  # any radius that fails the inequality will do: coarse, then fine
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
        """The largest part of its difference vector that a vote takes along in this direction, w·σ(κr − m) or so.

        ``direction`` is +1 where the difference winner − loser is to be pulled down, −1 where it is to be pushed up
        (only a tie can do that).
        """
        kinds = self._kinds
        if self._how == "flipped":
            return np.where(kinds.tie | (direction < 0), 0.0, kinds.weight)
        reach = self._kappa * radius
        win = np.where(direction > 0, expit(reach - self._margin), 0.0)
        tie = np.maximum(0.5 - expit(direction * self._margin - reach), 0.0)
        return np.asarray(kinds.weight * np.where(kinds.tie, tie, win))

    def _most(self, size: int, values: Vector) -> float:
        """Sum of the ``size`` largest values, each kind's as often as it has votes."""
        largest = np.arange(len(values))
        if size < len(values):  # each kind has a vote at least, so more kinds than votes are never needed
            largest = np.argpartition(values, -size)[-size:]
        order = largest[np.argsort(-values[largest])]
        before = np.cumsum(self._kinds.count[order]) - self._kinds.count[order]
        return float(values[order] @ np.clip(size - before, 0, self._kinds.count[order]))


def _search(
    kinds: _Kinds, fitted: Scores, pairs: Sequence[tuple[int, int]], how: How
) -> tuple[int | None, NDArray[np.int64], tuple[int, int]]:
    """The smallest set found over the most promising pairs: its size, votes of each kind (q,), and the pair."""
    nearest = np.argsort(_standard_gaps(fitted, pairs), kind="stable")[:_PROMISING_PAIRS]
    pairs = [pairs[place] for place in nearest]
    predicted = [_predicted(kinds, fitted, pair, how) for pair in pairs]
    best: tuple[int | None, NDArray[np.int64], tuple[int, int]] = None, np.zeros_like(kinds.count), pairs[0]
    for place in np.argsort(predicted, kind="stable")[:_TRIED_PAIRS]:
        if best[0] is not None and predicted[place] > _HOPELESS * best[0]:
            break
        taken = _take(kinds, fitted, pairs[place], how)
        if taken is not None and (best[0] is None or taken.sum() < best[0]):
            best = int(taken.sum()), taken, pairs[place]
    return best


def _influence(kinds: _Kinds, fitted: Scores, pair: tuple[int, int], how: How) -> Vector:
    """By how much one vote of each kind, dropped or flipped, narrows the gap of the pair, to first order, (q,)."""
    d = fitted.covariance[pair[0]] - fitted.covariance[pair[1]]
    pull = kinds.weight * (d[kinds.winner] - d[kinds.loser])
    if how == "flipped":
        return np.where(kinds.tie, 0.0, pull)
    chance = expit(fitted.scores[kinds.winner] - fitted.scores[kinds.loser])
    return np.asarray(pull * np.where(kinds.tie, 0.5 - chance, 1.0 - chance))


def _gap(fitted: Scores, pair: tuple[int, int]) -> float:
    return float(fitted.scores[pair[0]] - fitted.scores[pair[1]])


def _standard_gaps(fitted: Scores, pairs: Sequence[tuple[int, int]] | NDArray[np.int64]) -> Vector:
    """g/κ: the gap of each of p pairs in standard errors, shape (p,)."""
    inside, outside = np.asarray(pairs).T
    variance = np.diag(fitted.covariance)
    kappa = np.sqrt(variance[inside] + variance[outside] - 2.0 * fitted.covariance[inside, outside])
    return np.asarray((fitted.scores[inside] - fitted.scores[outside]) / kappa)


def _predicted(kinds: _Kinds, fitted: Scores, pair: tuple[int, int], how: How) -> float:
    """Votes that close the gap of a pair, to first order; more than there are if all together do not."""
    influence, gap = _influence(kinds, fitted, pair, how), _gap(fitted, pair)
    chosen = _closing(influence, kinds.count, gap)
    return float(chosen.sum()) if influence @ chosen > gap else float(kinds.count.sum()) + gap


def _closing(influence: Vector, available: NDArray[np.int64], gap: float) -> NDArray[np.int64]:
    """The fewest votes (q,) of the most influential kinds whose influences add up to more than the gap, or all."""
    chosen = np.where(influence > 0.0, available, 0)
    looked = min(_LOOKED_AT, len(influence))
    while True:  # at the most influential first, since to put all in order takes long
        least = np.partition(influence, len(influence) - looked)[len(influence) - looked]
        order = np.flatnonzero(influence >= least)
        order = order[np.argsort(-influence[order], kind="stable")]
        reached = np.cumsum(influence[order] * chosen[order])
        last = int(np.searchsorted(reached, gap, side="right"))
        if last < len(order) or len(order) == len(influence):
            break
        looked = min(8 * looked, len(influence))
    if last < len(order):
        inside = np.zeros_like(chosen)
        inside[order[:last]] = chosen[order[:last]]
        rest = gap - (reached[last - 1] if last else 0.0)
        inside[order[last]] = min(chosen[order[last]], int(rest / influence[order[last]]) + 1)
        return inside
    return chosen


def _take(kinds: _Kinds, fitted: Scores, pair: tuple[int, int], how: How) -> NDArray[np.int64] | None:
    """Votes of each kind (q,) after whose removal the outside item of the pair is above the inside one; or None."""
    taken = np.zeros_like(kinds.count)
    influences, steps, now = _influence(kinds, fitted, pair, how), [], fitted
    order = np.argsort(-influences, kind="stable")
    while _gap(now, pair) >= -_CHANGED:
        influences = _influence(kinds, now, pair, how)
        chosen = _closing(influences, kinds.count - taken, max(_gap(now, pair), 0.0))  # a tie may round below 0
        if not chosen.any():
            return None
        order = np.argsort(-influences, kind="stable")
        chosen = _first(chosen, order, -(-int(chosen.sum()) // 2))  # half of them, then look again
        steps.append(chosen)
        taken = taken + chosen
        if not _compared(kinds, taken, how, pair):
            return None
        now = _refit(kinds, fitted, taken, how)

    def by_path(size: int) -> NDArray[np.int64]:
        result = np.zeros_like(taken)
        for step in steps:
            result = result + _first(step, order, max(0, size - int(result.sum())))
        return result

    mean = 0.5 * (_influence(kinds, fitted, pair, how) + influences)
    mean_order = np.argsort(-mean, kind="stable")
    near = now if now.ridge == fitted.ridge else fitted

    def at_once(size: int) -> NDArray[np.int64]:
        return _first(np.where(mean > 0.0, kinds.count, 0), mean_order, size)

    def changes(chosen: NDArray[np.int64]) -> bool:
        if not _compared(kinds, chosen, how, pair):
            return False
        scores = moved_scores(kinds.after(chosen, how), near)
        if scores is None:
            scores = _refit(kinds, fitted, chosen, how).scores
        return bool(scores[pair[0]] - scores[pair[1]] < -_CHANGED)

    smallest = _shrink(by_path, changes, int(taken.sum()))
    other = _shrink(at_once, changes, int(smallest.sum()))
    return other if other.sum() < smallest.sum() and changes(other) else smallest


def _first(chosen: NDArray[np.int64], order: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """The first ``size`` of the chosen votes (q,), kinds being taken in this ``order`` (q,)."""
    before = np.cumsum(chosen[order]) - chosen[order]
    result = np.zeros_like(chosen)
    result[order] = np.clip(size - before, 0, chosen[order])
    return result


def _shrink(
    choose: Callable[[int], NDArray[np.int64]], changes: Callable[[NDArray[np.int64]], bool], size: int
) -> NDArray[np.int64]:
    """The smallest choice by bisection that changes the ranking, if the one of ``size`` votes does."""
    low, high = 0, size
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if changes(choose(middle)) else (middle, high)
    return choose(high)


def _compared(kinds: _Kinds, taken: NDArray[np.int64], how: How, pair: tuple[int, int]) -> bool:
    """Whether the items of a pair are still compared, perhaps through others, once ``taken`` votes are gone."""
    if how == "flipped":
        return True
    left = kinds.count > taken
    met = (kinds.winner[left], kinds.loser[left])
    graph = sparse.coo_array((np.ones(int(left.sum())), met), shape=(kinds.items, kinds.items))
    label = csgraph.connected_components(graph, directed=False)[1]
    return bool(label[pair[0]] == label[pair[1]])


def _refit(kinds: _Kinds, fitted: Scores, taken: NDArray[np.int64], how: How) -> Scores:
    """Scores after ``taken`` (q,) votes are dropped or flipped, with the same ridge as before if there was one."""
    return fit_scores(kinds.after(taken, how), ridge=fitted.ridge or None, start=fitted.scores)


def _largest_component(votes: Votes) -> Votes:
    component = votes.components()
    inside = component == 0
    if inside.all():
        return votes
    code = np.cumsum(inside) - 1
    kept = votes.select(inside[votes.first])
    names = tuple(name for name, here in zip(votes.items, inside, strict=True) if here)
    return replace(
        kept, items=names, first=code[kept.first].astype(np.int32), second=code[kept.second].astype(np.int32)
    )


def _kinds(votes: Votes, ties: Ties) -> _Kinds:
    counts = (votes.weight > 0.0) & ((votes.result != 0.5) | (ties == "half"))
    places = np.flatnonzero(counts)
    if len(places) == 0:
        raise BadInputError("no vote counts, so there is nothing that could change.")
    first, second, result = votes.first[places], votes.second[places], votes.result[places]
    tie = result == 0.5
    ahead = np.where(tie, np.minimum(first, second), np.where(result == 1.0, first, second))
    behind = np.where(tie, np.maximum(first, second), np.where(result == 1.0, second, first))
    keys = np.stack([ahead, behind, tie, votes.weight[places]])
    found, kind, count = np.unique(keys, axis=1, return_inverse=True, return_counts=True)
    return _Kinds(
        winner=found[0].astype(np.int64),
        loser=found[1].astype(np.int64),
        tie=found[2] > 0.0,
        weight=found[3],
        count=count,
        order=places[np.argsort(kind.ravel(), kind="stable")],
        items=len(votes.items),
    )
