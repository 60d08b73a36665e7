"""How fragile a ranking is: the fewest votes that change the leader, or the top k, when dropped or flipped.

**Found** (an upper bound): the votes with the most influence on the gap between two items are taken in steps, with a
refit after each; the set is then shrunk, and confirmed by an exact refit.

**Proven minimum** (a lower bound): no smaller set can do it (:mod:`fairduel.votes.certifying.proof`).

Only a strict change counts: not a tie, and not two items that the remaining votes no longer compare. A ranking's
weights and ridge stay the same, so the leader is that ranking's leader.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy.special import expit

from fairduel.checks import integer
from fairduel.core.blas import one_thread
from fairduel.core.memory import give_back
from fairduel.duel import Vector
from fairduel.errors import BadInputError
from fairduel.votes.certifying.proof import Proof
from fairduel.votes.certifying.vote_counts import How, VoteCounts, count_votes, standard_gaps
from fairduel.votes.notebook import Result
from fairduel.votes.ranking.bradley_terry import Scores, fit_scores, moved_scores, ridge_scores
from fairduel.votes.votes import Indices, Ties, Votes, connected

_PROMISING_PAIRS = 50  # (inside, outside) pairs with the smallest gap in standard errors: predict their votes
_TRIED_PAIRS, _TRIED_IF_MANY = 4, 2  # pairs with the lowest predictions: search them; fewer of many items
_MANY_ITEMS = 300
_RIVALS = 5  # items behind the leader that may overtake it
_SEARCHED_KINDS = 20_000  # most influential kinds of votes to search before searching all
_SORTED_KINDS = 4096  # most influential kinds of votes to sort before sorting more
_WORTH_SEARCHING = 2.0  # skip a pair predicted to need more than this multiple of the votes found so far
CHANGED = 1e-9  # log-odds; anything less may be rounding error


@dataclass(frozen=True, eq=False, repr=False)
class Fragility(Result):
    """How many votes it takes to change the top k."""

    top: int
    how: How
    votes: int
    """Number of votes that count (dropped ties do not)."""
    found: int | None
    """Size of the smallest set found; None if no set was found."""
    at_least: int
    """Proven minimum: no smaller set can do it."""
    rows: tuple[int, ...]
    """File rows of the set found."""
    loses: str
    """Item that drops out of the top k."""
    gains: str
    """Item that enters."""
    group: str = ""
    """Component of the comparison graph, if there are several."""

    @property
    def what(self) -> str:
        """What the votes change."""
        return "first place" if self.top == 1 else f"the top {self.top}"

    @property
    def sentence(self) -> str:
        """The finding in one sentence.

        >>> print(Fragility(1, "dropped", 5460, 14, 6, (), "a", "b").sentence)
        Dropping 14 of 5,460 votes changes first place (a → b); proven minimum: 6.
        """
        doing, where = (
            "Dropping" if self.how == "dropped" else "Flipping",
            f"Group {self.group}: " if self.group else "",
        )
        if self.found is None:
            return f"{where}No set of votes was found that changes {self.what} when {self.how}."
        exact = "; no smaller set can" if self.at_least == self.found else f"; proven minimum: {self.at_least:,}"
        change = f"changes {self.what} ({self.loses} → {self.gains})"
        return f"{where}{doing} {self.found:,} of {self.votes:,} votes {change}{exact}."

    def to_frame(self) -> pl.DataFrame:
        """Return the finding as a table of one row; ``rows`` is a list."""
        return pl.DataFrame({name: [value] for name, value in vars(self).items()})

    def brief(self) -> str:
        """Return the finding in one sentence."""
        return self.sentence

    def _preview(self) -> pl.DataFrame:
        return self.to_frame().drop("rows")


@dataclass(frozen=True, eq=False)
class Fitting:
    """Which votes to fit, and how.

    Args:
        ties: A tie counts as half a win for each item, or is dropped.
        weights: Weight of each vote, shape (n,), which stays the same when other votes are dropped. Default: 1 each.
        ridge: λ. Default: 0, or 0.01 where no finite scores exist.
        component: Which component of the comparison graph, from 0 for the largest; each has its own ranking.
    """

    ties: Ties = "half"
    weights: Vector | None = None
    ridge: float | None = None
    component: int = 0


PLAIN = Fitting()
"""Plain Bradley–Terry on the largest component."""


def fragility(
    votes: Votes, *, top: int = 1, fitting: Fitting = PLAIN, hows: Sequence[How] = ("dropped", "flipped")
) -> list[Fragility]:
    """Find few votes that change the ``top`` items when dropped, and when flipped, and the proven minimum.

    >>> votes = Votes.from_arrays("ab", [0] * 12, [1] * 12, [1] * 8 + [0] * 4)
    >>> print(fragility(votes)[0].sentence)
    Dropping 5 of 12 votes changes first place (a → b); proven minimum: 2.
    """
    return Group(votes, fitting).fragility(top, hows)


class Units:
    """Units of one sort, their fit, and what is known about each pair of items; nothing is searched twice."""

    def __init__(self, kinds: VoteCounts, fitted: Scores) -> None:
        self.kinds, self.fitted = kinds, fitted
        self.proof = functools.cache(functools.partial(Proof, kinds, fitted))
        self.predict = functools.cache(functools.partial(_predict_size, kinds, fitted))
        self.swap = functools.cache(functools.partial(_search_pair, kinds, fitted))


class Group:
    """The votes of one component of the comparison graph, and their fit."""

    def __init__(self, votes: Votes, fitting: Fitting = PLAIN) -> None:
        self.votes, self._weights = votes_inside(votes, fitting)
        self._ties = fitting.ties
        kinds = count_votes(self.votes, fitting.ties, self._weights)
        with one_thread():
            self.fitted = fit_scores(kinds.won(kinds.count), ridge=fitting.ridge)
        self.by_vote = Units(kinds, self.fitted)
        give_back(len(self.votes))

    @functools.cached_property
    def by_voter(self) -> Units | None:
        """The voters as units; None if they are unknown."""
        if self.votes.voter is None:
            return None
        kinds = count_votes(self.votes, self._ties, self._weights, by_voter=True)
        give_back(len(self.votes))
        return Units(kinds, self.fitted)

    @functools.cached_property
    def ranked(self) -> list[int]:
        """The items, best first."""
        return [int(item) for item in np.argsort(-self.fitted.scores, kind="stable")]

    def fragility(self, top: int = 1, hows: Sequence[How] = ("dropped", "flipped")) -> list[Fragility]:
        """See :func:`fragility`."""
        if not 1 <= integer("top", top, least=1) < len(self.ranked):
            compared = f"{len(self.ranked)} compared items"
            raise BadInputError(f"the top {top} of {compared} cannot change: choose a smaller top.")
        pairs = [(inside, outside) for inside in self.ranked[:top] for outside in self.ranked[top:]]
        with one_thread():
            found = [self._bounds(pairs, top, how) for how in hows]
            if top > 1:
                return found
            # votes that are dropped or flipped are no worse than as many false votes, whose proof may be tighter
            guess = min((each.found or 0 for each in found), default=0) or None
            proven = self.by_vote.proof("false").least(pairs, guess)
        return [replace(each, at_least=max(each.at_least, proven)) for each in found]

    def challengers(self) -> list[Fragility]:
        """Find, for each of the next few items, how many dropped votes put it above the leader."""
        leader, *others = self.ranked
        with one_thread():
            return [self._bounds([(leader, other)], 1, "dropped") for other in others[:_RIVALS]]

    def _bounds(self, pairs: Sequence[tuple[int, int]], top: int, how: How) -> Fragility:
        units = self.by_vote
        size, taken, (loses, gains) = _search(units, pairs, how)
        return Fragility(
            top=top,
            how=how,
            votes=int(units.kinds.count.sum()),
            found=size,
            at_least=units.proof(how).least(pairs, size),
            rows=tuple(self.votes.row[units.kinds.members(taken)[0]].tolist()),
            loses=self.votes.items[loses],
            gains=self.votes.items[gains],
        )


def votes_inside(votes: Votes, fitting: Fitting) -> tuple[Votes, Vector | None]:
    """Return the votes of the component alone, and their weights, if any."""
    inside = votes.components(fitting.ties) == fitting.component
    if inside.all():
        return votes, fitting.weights
    chosen = inside[votes.first]
    weights = None if fitting.weights is None else fitting.weights[chosen]
    code = np.cumsum(inside) - 1
    kept = votes.select(chosen)
    names = tuple(name for name, here in zip(votes.items, inside, strict=True) if here)
    kept = replace(
        kept, items=names, first=code[kept.first].astype(np.int32), second=code[kept.second].astype(np.int32)
    )
    return kept, weights


def _search(units: Units, pairs: Sequence[tuple[int, int]], how: How) -> tuple[int | None, Indices, tuple[int, int]]:
    """Search the most promising pairs; return the size of the smallest set, its votes per kind (q,), and its pair."""
    nearest = np.argsort(standard_gaps(units.fitted, pairs), kind="stable")[:_PROMISING_PAIRS]
    pairs = [pairs[place] for place in nearest]
    predicted = [units.predict(pair, how) for pair in pairs]
    best: tuple[int | None, Indices, tuple[int, int]] = None, np.zeros_like(units.kinds.count), pairs[0]
    tried = _TRIED_PAIRS if units.kinds.items <= _MANY_ITEMS else _TRIED_IF_MANY
    for place in np.argsort(predicted, kind="stable")[:tried]:
        if best[0] is not None and predicted[place] > _WORTH_SEARCHING * best[0]:
            break
        found = units.swap(pairs[place], how)
        if found is not None and (best[0] is None or found.size < best[0]):
            best = found.size, found.units, pairs[place]
    return best


class Taken(NamedTuple):
    """Units whose votes swap two items."""

    chosen: Indices
    """The units taken, without the others, because there are many; shape (c,)."""
    times: Indices
    """How many of each of these, shape (c,)."""
    among: int
    """Number of all units, u."""
    towards: Vector
    """Where their answers go if they are false (see ``VoteCounts.answers``), shape (K,)."""

    @classmethod
    def of(cls, units: Indices, towards: Vector) -> "Taken":
        """Take this many of each unit, shape (u,)."""
        chosen = np.flatnonzero(units)
        return cls(chosen, units[chosen], len(units), towards)

    @property
    def units(self) -> Indices:
        """How many of each unit, shape (u,)."""
        units = np.zeros(self.among, np.int64)
        units[self.chosen] = self.times
        return units

    @property
    def size(self) -> int:
        """Number of units."""
        return int(self.times.sum())


def _direction(fitted: Scores, pair: tuple[int, int]) -> Vector:
    """Return d = H⁻¹(e_a − e_b), how the gap of the pair depends on the gradient, shape (K,)."""
    return np.asarray(fitted.covariance[pair[0]] - fitted.covariance[pair[1]])


def _influence(kinds: VoteCounts, fitted: Scores, pair: tuple[int, int], how: How) -> Vector:
    """How much taking one of each unit narrows the gap of the pair, to first order, (u,)."""
    d = _direction(fitted, pair)
    if how == "false":
        return kinds.pushes(d)
    pull = kinds.weight * (d[kinds.winner] - d[kinds.loser])
    if how == "flipped":
        return kinds.per_unit(np.where(kinds.tie, 0.0, pull))
    chance = expit(fitted.scores[kinds.winner] - fitted.scores[kinds.loser])
    return kinds.per_unit(pull * np.where(kinds.tie, 0.5 - chance, 1.0 - chance))


def _gap(fitted: Scores, pair: tuple[int, int]) -> float:
    return float(fitted.scores[pair[0]] - fitted.scores[pair[1]])


def _predict_size(kinds: VoteCounts, fitted: Scores, pair: tuple[int, int], how: How) -> float:
    """Predict how many units close the gap of a pair, to first order; more than exist if all of them do not."""
    influence, gap = _influence(kinds, fitted, pair, how), _gap(fitted, pair)
    chosen = _close_gap(influence, kinds.available, gap)
    return float(chosen.sum()) if influence @ chosen > gap else float(kinds.available.sum()) + gap


def _close_gap(influence: Vector, available: Indices, gap: float) -> Indices:
    """Choose the fewest units (u,) whose influences add up to more than the gap, or all helpful ones."""
    chosen = np.where(influence > 0.0, available, 0)
    looked = min(_SORTED_KINDS, len(influence))
    while True:  # sort the most influential kinds first, because sorting all of them is slow
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


def _search_pair(kinds: VoteCounts, fitted: Scores, pair: tuple[int, int], how: How) -> Taken | None:
    """Like :func:`_search_among`, looking first at the units with the most influence only, which is faster."""
    if kinds.items > _MANY_ITEMS:
        return _search_at_once(kinds, fitted, pair, how)
    units = len(kinds.available)
    most = max(1, _SEARCHED_KINDS * units // len(kinds.count))
    if units > most:
        influential = np.argpartition(-_influence(kinds, fitted, pair, how), most)[:most]
        found = _search_among(kinds.only(influential), fitted, pair, how)
        if found is not None:
            return found._replace(chosen=influential[found.chosen], among=units)
    return _search_among(kinds, fitted, pair, how)


def _search_among(kinds: VoteCounts, fitted: Scores, pair: tuple[int, int], how: How) -> Taken | None:
    """Find units (u,) that put the outside item of the pair above the inside one; None if not found."""
    taken = np.zeros_like(kinds.available)
    influences, steps, now = _influence(kinds, fitted, pair, how), [], fitted
    order, d = np.argsort(-influences, kind="stable"), _direction(fitted, pair)
    while _gap(now, pair) >= -CHANGED:
        influences, d = _influence(kinds, now, pair, how), _direction(now, pair)
        chosen = _close_gap(
            influences, kinds.available - taken, max(_gap(now, pair), 0.0)
        )  # rounding may put a tie below 0
        if not chosen.any():
            return None
        order = np.argsort(-influences, kind="stable")
        chosen = _keep_first(chosen, order, -(-int(chosen.sum()) // 2))  # take half of them, then refit
        steps.append(chosen)
        taken = taken + chosen
        if not _still_compared(kinds, taken, how, pair):
            return None
        now = _refit(kinds, fitted, Taken.of(taken, d), how)

    def by_path(size: int) -> Indices:
        result = np.zeros_like(taken)
        for step in steps:
            result = result + _keep_first(step, order, max(0, size - int(result.sum())))
        return result

    mean = 0.5 * (_influence(kinds, fitted, pair, how) + influences)
    mean_order = np.argsort(-mean, kind="stable")
    near = now if now.ridge == fitted.ridge else fitted

    def at_once(size: int) -> Indices:
        return _keep_first(np.where(mean > 0.0, kinds.available, 0), mean_order, size)

    def changes(chosen: Indices) -> bool:
        return _changes(kinds, fitted, Taken.of(chosen, d), how, pair, near)

    smallest = _shrink(by_path, changes, int(taken.sum()))
    if not _changes(kinds, fitted, Taken.of(smallest, d), how, pair):
        smallest = taken
    other = _shrink(at_once, changes, int(smallest.sum()))
    is_smaller = other.sum() < smallest.sum() and _changes(kinds, fitted, Taken.of(other, d), how, pair)
    return Taken.of(other if is_smaller else smallest, d)


def _search_at_once(kinds: VoteCounts, fitted: Scores, pair: tuple[int, int], how: How) -> Taken | None:
    """Find units that swap the pair among those with the most influence on the present fit; None if not found.

    It takes few refits: with many items, these are slow, and the few units that swap two of them hardly change who has
    influence.
    """
    influence, d = _influence(kinds, fitted, pair, how), _direction(fitted, pair)
    helpful = np.where(influence > 0.0, kinds.available, 0)
    order = np.argsort(-influence, kind="stable")
    most = int(helpful.sum())

    def choose(size: int) -> Indices:
        return _keep_first(helpful, order, size)

    def changes(chosen: Indices) -> bool:
        return _changes(kinds, fitted, Taken.of(chosen, d), how, pair, fitted)

    size = min(most, int(_close_gap(influence, kinds.available, max(_gap(fitted, pair), 0.0)).sum()))
    low, step = 0, 1
    while not changes(choose(size)):
        if size == most:
            return None
        low, size, step = size, min(most, size + step), 2 * step
    return Taken.of(_shrink(choose, changes, size, low), d)


def _changes(
    kinds: VoteCounts, fitted: Scores, chosen: Taken, how: How, pair: tuple[int, int], near: Scores | None = None
) -> bool:
    """Whether the chosen units swap the pair: exactly, or faster from a fit ``near``."""
    if not _still_compared(kinds, chosen.units, how, pair):
        return False
    scores = None if near is None else moved_scores(kinds.after(chosen.units, how, chosen.towards), near)
    if scores is None:
        scores = refitted(kinds, fitted, chosen, how)
    return bool(scores[pair[0]] - scores[pair[1]] < -CHANGED)


def _keep_first(chosen: Indices, order: Indices, size: int) -> Indices:
    """Keep the first ``size`` of the chosen units (u,), taken in this ``order`` (u,)."""
    before = np.cumsum(chosen[order]) - chosen[order]
    result = np.zeros_like(chosen)
    result[order] = np.clip(size - before, 0, chosen[order])
    return result


def _shrink(choose: Callable[[int], Indices], changes: Callable[[Indices], bool], high: int, low: int = 0) -> Indices:
    """Search for the smallest choice that changes the ranking, given that ``high`` units do and ``low`` do not.

    It steps down from ``high``, which is often nearly the smallest, in steps that double, and then bisects.
    """
    middle, step = high - 1, 1
    while high - low > 1:
        if changes(choose(middle)):
            high, step = middle, 2 * step
            middle = max(low + 1, high - step) if step else (low + high) // 2
        else:
            low, step = middle, 0
            middle = (low + high) // 2
    return choose(high)


def _still_compared(kinds: VoteCounts, units: Indices, how: How, pair: tuple[int, int]) -> bool:
    """Whether the remaining votes still connect the two items after these ``units`` (u,) change."""
    among_others = kinds.other_components
    if how != "dropped" or among_others[pair[0]] == among_others[pair[1]]:
        return True
    left = kinds.count > kinds.votes_of(units)
    if (left & np.isin(kinds.winner, pair) & np.isin(kinds.loser, pair)).any():
        return True
    label = connected(among_others[kinds.winner[left]], among_others[kinds.loser[left]], kinds.items)[among_others]
    return bool(label[pair[0]] == label[pair[1]])


def _refit(kinds: VoteCounts, fitted: Scores, taken: Taken, how: How) -> Scores:
    """Refit after these units change, with the same ridge as before, if any."""
    return fit_scores(kinds.after(taken.units, how, taken.towards), ridge=fitted.ridge or None, start=fitted.scores)


def refitted(kinds: VoteCounts, fitted: Scores, taken: Taken, how: How) -> Vector:
    """Return the scores of that fit alone, shape (K,)."""
    return ridge_scores(kinds.after(taken.units, how, taken.towards), fitted.ridge or None, fitted.scores)[0]
