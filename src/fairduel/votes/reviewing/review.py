"""How the board was made: position, ties, cycles, coverage, votes needed, and what to ask next."""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy import special

from fairduel.core.blas import one_thread
from fairduel.duel import Vector
from fairduel.votes.attacking.manipulation import CampaignLimits, Manipulation, cost_of_manipulation, searches
from fairduel.votes.certifying.certificates import with_certificates
from fairduel.votes.given import takes_votes
from fairduel.votes.notebook import Result
from fairduel.votes.ranking.rank import Ranking, rank
from fairduel.votes.reviewing.cycles import Cycles, count_cycles
from fairduel.votes.reviewing.planning import NEXT_VOTES, POWER, VotePlan, neighbours, plan_votes
from fairduel.votes.reviewing.position import BAND, Position, TieReview, position_bias, review_ties
from fairduel.votes.verdict import headlines
from fairduel.votes.votes import Ties, Votes, distinct_duels, sums
from fairduel.words import listed

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
        effects = self.design_effects.items()
        wider = [f"{math.sqrt(effect):.2f} ({name})" for name, effect in effects if effect > 1.0]
        if wider:
            parts.append(f"shared tastes widen errors by a factor of {listed(wider)}")
        return "; ".join(parts) + "."


def review_coverage(votes: Votes, ranking: Ranking, ties: Ties = "half") -> Coverage:
    """Describe which pairs have votes, how evenly, and how much voters and contexts widen the errors.

    >>> from fairduel.votes.ranking.rank import rank
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


_STEPS = 14


@dataclass(frozen=True, eq=False, repr=False)
class Review(Result):
    """How well the votes were collected, and what to ask next. Created by :func:`review`."""

    votes: Votes
    ranking: Ranking
    position: Position
    ties: TieReview
    cycles: Cycles
    coverage: Coverage
    plan: VotePlan
    cost: Manipulation | None
    """The cheapest campaign found, if searched."""
    settings: Mapping[str, Any]

    def summary(self) -> list[str]:
        """Summarise the review in a few sentences, conclusion first."""
        return [
            *(
                self.ranking.verdicts[0].sentences
                if len(self.ranking.verdicts) == 1
                else headlines(self.ranking.verdicts)
            ),
            *([self.cost.brief()] if self.cost else []),
            *self.plan.sentences,
            *(part.sentence for part in (self.position, self.ties, self.cycles, self.coverage)),
        ]

    def to_frame(self) -> pl.DataFrame:
        """Return one row per pair of neighbours, as in votes-needed.csv; a number out of reach is empty."""
        rows = [
            {
                name: None if isinstance(value, float) and not math.isfinite(value) else value
                for name, value in row.items()
            }
            for row in map(asdict, self.plan.needs)
        ]
        whole = dict.fromkeys(("votes", "voters", "fewest_voters", "contexts", "fewest_contexts"), pl.Int64)
        return pl.DataFrame(rows, schema_overrides=whole, infer_schema_length=None)

    def tie_ranks_frame(self) -> pl.DataFrame:
        """Return each item's rank and score under each treatment of ties, as in ties.csv."""
        columns: dict[str, Any] = {"item": list(self.votes.items)}
        for rule in self.ties.rules:
            columns |= {f"rank_{rule.model}": rule.ranks, f"score_{rule.model}": rule.scores}
        return pl.DataFrame(columns)

    def brief(self) -> str:
        """Say who won."""
        return self.summary()[0]

    def record(self) -> dict[str, Any]:
        """Return the findings as plain values, for JSON."""
        rules = [
            {name: value for name, value in vars(rule).items() if name not in ("scores", "ranks")}
            for rule in self.ties.rules
        ]
        return {
            "settings": self.settings,
            "summary": self.summary(),
            "verdicts": [verdict.record() for verdict in self.ranking.verdicts],
            "ranking": self.ranking.records(),
            "cost": self.cost and self.cost.record(),
            "position": vars(self.position),
            "ties": {"share": self.ties.share, "rules": rules},
            "cycles": vars(self.cycles) | {"more_than_predicted": self.cycles.more_than_predicted},
            "coverage": asdict(self.coverage),
            "votes_needed": [asdict(need) for need in self.plan.needs],
            "next_duels": self.plan.duels.to_dicts(),
            "next_duels_are_worth": self.plan.worth,
        }


def steps(votes: Votes, limits: CampaignLimits | None = None) -> int:
    """Return how often :func:`review` reports progress."""
    return _STEPS + (0 if limits is None else searches(votes, limits))


@takes_votes
def review(
    votes: Votes,
    *,
    ties: Ties = "half",
    limits: CampaignLimits | None = None,
    seed: int = 0,
    progress: Callable[[int], None] = lambda _: None,
) -> Review:
    """Review how votes were collected, and plan the next ones.

    Args:
        votes: The votes, or a file or table of votes.
        ties: A tie is ``"half"`` a win for each item, or dropped (``"drop"``).
        limits: What a campaign may use, to search for the cheapest that the audit would not report
            (:func:`cost_of_manipulation`), which takes long. Default: no search.
        seed: Seed of all simulations.
        progress: Called with 1 after each of :func:`steps`.

    Returns:
        Certificates of ranks, position bias, ties, cycles, coverage, votes needed and the next duels.

    Raises:
        BadInputError: No vote counts, or there are more than 5,000 items.

    >>> from fairduel.votes.attacking.liars import arena
    >>> found = review(arena(voters=40, votes_each=20, seed=1)[0])
    >>> found.position.verdict, found.cycles.more_than_predicted, found.plan.separated
    ('unclear', False, 0)
    """
    votes = votes.without_features()
    ranking = with_certificates(votes, rank(votes, ties=ties, seed=seed))
    progress(1)
    cost = None if limits is None else cost_of_manipulation(votes, limits=limits, ties=ties, progress=progress)
    with one_thread():
        position, tie_review = position_bias(votes, ties), review_ties(votes)
        progress(1)
        cycles = count_cycles(votes, seed=seed, progress=progress)
        coverage = review_coverage(votes, ranking, ties)
        progress(1)
        plan = plan_votes(votes, ranking, ties)
        progress(1)
    settings = {
        "ties": ties,
        "seed": seed,
        "position_band": f"50% ± {BAND:.0%}",
        "power_of_votes_needed": POWER,
        "standard_errors_needed": ranking.quantile,
        "votes_of_next_duels": NEXT_VOTES,
        "simulations_of_cycles": cycles.simulations,
        "items_in_cycles": cycles.items,
    }
    return Review(votes, ranking, position, tie_review, cycles, coverage, plan, cost, settings)
