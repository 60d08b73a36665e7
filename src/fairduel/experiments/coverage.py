"""Coverage of the rank ranges: honest populations with a known order, ranked as ``fairduel rank`` does."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from scipy import special

from fairduel.duel import Vector
from fairduel.experiments.inference import Mean, mean, share
from fairduel.votes.populations import population
from fairduel.votes.ranking import CONFIDENCE, Ranking, Standing, rank
from fairduel.votes.votes import Votes

DRAWS = 1000
Ranker = Callable[[Votes], Ranking]


class Setting(NamedTuple):
    """A kind of population and the size of its vote files."""

    kind: str
    items: int
    votes: int
    voters: int


class Measured(NamedTuple):
    """How the ranking of one vote file compares with the truth; all but ``covered`` are means."""

    covered: bool
    """Whether all true ranks are in their ranges."""
    width: float
    """(high − low) / (size of the component − 1), over the items."""
    scores_covered: float
    """Share of the items whose true score is in its own 95% interval."""
    leader_best: float
    """P(best) of the leader, over the components, as are the others."""
    leader_is_best: float
    brier: float
    """Sum over a component's items of (P(best) − whether it is best)²."""


class Coverage(NamedTuple):
    """What :func:`measure` found in a number of vote files; intervals are for 95%."""

    ranks: Mean
    """Share of the files with all true ranks in their ranges."""
    width: Mean
    scores: Mean
    leader_best: Mean
    leader_is_best: Mean
    brier: Mean


def default_ranker(votes: Votes) -> Ranking:
    """Rank with few draws, for speed."""
    return rank(votes, draws=DRAWS)


def measure(setting: Setting, seeds: Iterable[int], ranker: Ranker = default_ranker) -> Coverage:
    """Rank one vote file per seed and compare the results with the truth.

    >>> found = measure(Setting("clean", items=5, votes=300, voters=30), range(3))
    >>> found.ranks.value
    1.0
    """
    return summarise([measure_file(setting, seed, ranker) for seed in seeds])


def summarise(files: Iterable[Measured]) -> Coverage:
    """Return the means over vote files."""
    files = list(files)
    covered = sum(each.covered for each in files)
    return Coverage(share(covered, len(files)), *(mean(np.array(each)) for each in list(zip(*files, strict=True))[1:]))


def measure_file(setting: Setting, seed: int, ranker: Ranker = default_ranker) -> Measured:
    """Rank one vote file and compare the result with the truth."""
    kind, items, votes, voters = setting
    drawn = population(kind, items=items, votes=votes, voters=voters, seed=seed)
    return compare(ranker(drawn.votes), drawn.truth)


def compare(ranking: Ranking, truth: Vector) -> Measured:
    """Compare a ranking with the true scores of its items, shape (K,); items without votes are left out."""
    place = {item: number for number, item in enumerate(ranking.items)}
    covered, widths, scores, leaders = True, list[float](), list[bool](), list[tuple[float, float, float]]()
    for group in ranking.components():
        if len(group) < 2:
            continue
        true = truth[[place[standing.item] for standing in group]]
        true_rank = 1 + (true[None, :] > true[:, None]).sum(axis=1)
        for standing, right, score in zip(group, true_rank, true - true.mean(), strict=True):
            covered &= standing.rank_low <= int(right) <= standing.rank_high
            widths.append((standing.rank_high - standing.rank_low) / (len(group) - 1))
            low, high = score_interval(standing)
            scores.append(low <= score <= high)
        best = np.array([standing.best for standing in group])
        leaders.append((float(best[0]), float(true_rank[0] == 1), float(((best - (true_rank == 1)) ** 2).sum())))
    said, is_best, brier = np.mean(leaders, axis=0).tolist()
    return Measured(covered, float(np.mean(widths)), float(np.mean(scores)), said, is_best, brier)


def score_interval(standing: Standing) -> tuple[float, float]:
    """Return the 95% interval of an item's score."""
    reach = float(special.ndtri(0.5 + CONFIDENCE / 2.0)) * standing.error
    low, high = standing.score - reach, standing.score + reach
    return getattr(standing, "score_low", low), getattr(standing, "score_high", high)
