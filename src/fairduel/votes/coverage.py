"""How evenly the votes are spread over items and pairs, and how much shared tastes widen the errors."""

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from fairduel.duel import Vector
from fairduel.votes.planning import neighbours
from fairduel.votes.ranking import Ranking
from fairduel.votes.votes import Ties, Votes, distinct_duels, sums
from fairduel.votes.words import listed

_UNEVEN = 0.5  # Gini index above which votes are called uneven
_FEW_VOTES = 30  # of an item
_MOST_NEIGHBOURS = 50  # whose design effect is computed


@dataclass(frozen=True)
class Coverage:
    """What was compared, and how often. Created by :func:`review_coverage`."""

    votes: float
    """Votes that count."""
    pairs: int
    """Pairs with votes."""
    possible_pairs: int
    """Pairs of items within the components of the comparison graph."""
    groups: int
    """Components of the comparison graph with at least two items."""
    gini_items: float
    """Gini index of the votes per item: 0 if all have the same, 1 if one has all."""
    gini_pairs: float
    """Gini index of the votes per possible pair."""
    fewest: tuple[str, float]
    """The item with the fewest votes, and their number."""
    median_votes: float
    """Median number of votes per item."""
    design_effects: dict[str, float]
    """Factor by which shared voters, or contexts, enlarge the variance of a difference between neighbours."""

    @property
    def sentence(self) -> str:
        """The finding in plain words."""
        spread = "uneven" if self.gini_items > _UNEVEN else "fairly even"
        item, votes = self.fewest
        parts = [
            f"Coverage: {self.pairs:,} of {self.possible_pairs:,} pairs have votes "
            f"({self.pairs / max(self.possible_pairs, 1):.0%}), {spread} over items (Gini {self.gini_items:.2f})"
        ]
        if self.groups > 1:
            parts.append(f"{self.groups} groups of items were never compared with each other")
        few = ", too few to place it" if votes < _FEW_VOTES else ""
        parts.append(f"{item} has the fewest votes, {votes:,.0f}{few}")
        wider = [f"{math.sqrt(effect):.2f} ({name})" for name, effect in self.design_effects.items()]
        if wider:
            parts.append(f"shared tastes widen errors by a factor of {listed(wider)}")
        return "; ".join(parts) + "."


def review_coverage(votes: Votes, ranking: Ranking, ties: Ties = "half") -> Coverage:
    """Describe which pairs have votes, how evenly, and how much voters and contexts widen the errors.

    >>> from fairduel.votes.ranking import rank
    >>> votes = Votes.from_arrays("abc", [0, 0, 1, 0], [1, 1, 2, 1], [1, 0, 1, 1])
    >>> found = review_coverage(votes, rank(votes))
    >>> found.pairs, found.possible_pairs, found.fewest
    (2, 3, ('c', 1.0))
    """
    counts, count = votes.counts(ties), len(votes.items)
    used = counts > 0.0
    _, low, _, row, _ = distinct_duels(votes.first[used], votes.second[used], count)
    per_pair = sums(row, len(low), counts[used])
    per_item = sum((sums(item, count, counts) for item in (votes.first, votes.second)), np.zeros(count))
    sizes = np.bincount(votes.components(ties))
    possible = int((sizes * (sizes - 1) // 2).sum())
    fewest = int(np.argmin(per_item))
    return Coverage(
        votes=float(counts.sum()),
        pairs=len(low),
        possible_pairs=possible,
        groups=int((sizes > 1).sum()),
        gini_items=gini(per_item),
        gini_pairs=gini(np.concatenate([per_pair, np.zeros(max(possible - len(low), 0))])),
        fewest=(votes.items[fewest], float(per_item[fewest])),
        median_votes=float(np.median(per_item)),
        design_effects=_design_effects(votes, ranking, ties),
    )


def gini(values: Vector) -> float:
    """Return the Gini index of numbers ≥ 0, shape (n,): the mean difference between two of them over twice the mean.

    >>> gini(np.ones(4)), gini(np.array([0.0, 0.0, 0.0, 1.0]))
    (0.0, 0.75)
    """
    ordered, total = np.sort(values), float(values.sum())
    if total == 0.0:
        return 0.0
    count = len(ordered)
    return float((2.0 * np.arange(1, count + 1) - count - 1.0) @ ordered / (count * total))


def _design_effects(votes: Votes, ranking: Ranking, ties: Ties) -> dict[str, float]:
    """Return the median over neighbours of the variance by groups over that by single votes, for voters and contexts.

    A vote with residual r moves the difference cᵀθ of two neighbours by about cᵀPφ r, with P the covariance of the
    scores. Squares of these are summed vote by vote, and group by group.
    """
    counts = votes.counts(ties)
    used = counts > 0.0
    first, second = votes.first[used], votes.second[used]
    one, other = neighbours(ranking)
    some = np.unique(np.linspace(0, len(one) - 1, _MOST_NEIGHBOURS).round().astype(np.int64))
    found = ranking.uncertainty
    covariance = found.sampling + found.shrinking
    lever = covariance[:, one[some]] - covariance[:, other[some]]
    chance = special.expit(ranking.scores[first] - ranking.scores[second])
    residual, times = ranking.weights[used] * (votes.result[used] - chance), counts[used]
    component, effects = votes.components(ties)[first], dict[str, float]()
    for name, codes in (("voters", votes.voter), ("contexts", votes.context)):
        group = np.zeros_like(first) if codes is None else codes[used]
        groups, ratios = len(np.unique(group)), []
        places = len(np.unique(group.astype(np.int64) * len(votes.items) + component))
        if groups == len(group) or places == len(np.unique(component)):  # nothing to compare groups with
            continue
        for column in lever.T:
            moved = (column[first] - column[second]) * residual
            alone, together = times @ moved**2, (np.bincount(group, times * moved) ** 2).sum()
            ratios.append(together / alone * groups / (groups - 1.0))
        effects[name] = float(np.median(ratios))
    return effects
