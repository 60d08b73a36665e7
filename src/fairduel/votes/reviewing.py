"""How the board was made: position, ties, cycles, coverage, votes needed, and what to ask next."""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from fairduel.core.blas import one_thread
from fairduel.votes.certificates import with_certificates
from fairduel.votes.coverage import Coverage, review_coverage
from fairduel.votes.cycles import Cycles, count_cycles
from fairduel.votes.manipulation import Limits, Manipulation, cost_of_manipulation, searches
from fairduel.votes.planning import NEXT_VOTES, POWER, Plan, plan_votes
from fairduel.votes.position import BAND, Position, position_bias
from fairduel.votes.ranking import Ranking, rank, verdicts
from fairduel.votes.results import Result
from fairduel.votes.tie_models import TieReview, review_ties
from fairduel.votes.votes import Ties, Votes

_STEPS = 14


@dataclass(frozen=True, eq=False, repr=False)
class Review(Result):
    """How good the way of asking was, and what to ask next. Created by :func:`review`."""

    votes: Votes
    ranking: Ranking
    position: Position
    ties: TieReview
    cycles: Cycles
    coverage: Coverage
    plan: Plan
    cost: Manipulation | None
    """The cheapest campaign found, if searched."""
    settings: Mapping[str, Any]

    def summary(self) -> list[str]:
        """Summarise the review in a few sentences, conclusion first."""
        return [
            *verdicts(self.ranking),
            *(each.sentence for each in self.ranking.certificates[:1]),
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


def steps(votes: Votes, limits: Limits | None = None) -> int:
    """Return how often :func:`review` reports progress."""
    return _STEPS + (0 if limits is None else searches(votes, limits))


def review(
    votes: Votes,
    *,
    ties: Ties = "half",
    limits: Limits | None = None,
    seed: int = 0,
    progress: Callable[[int], None] = lambda _: None,
) -> Review:
    """Review how votes were collected, and plan the next ones.

    Args:
        votes: The votes.
        ties: A tie is ``"half"`` a win for each item, or dropped (``"drop"``).
        limits: What a campaign may use, to search for the cheapest that the audit would not report
            (:func:`cost_of_manipulation`), which takes long. Default: no search.
        seed: Seed of all simulations.
        progress: Called with 1 after each of :func:`steps`.

    Returns:
        Certificates of ranks, position bias, ties, cycles, coverage, votes needed and the next duels.

    Raises:
        BadInputError: No vote counts, or there are more than 5,000 items.

    >>> from fairduel.votes.synthetic import arena
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
