"""Rank items with uncertainty: scores, standard errors, rank intervals and the probability of being best."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from scipy import special

from fairduel.checks import at_least_zero, integer
from fairduel.core.blas import one_thread
from fairduel.duel import Matrix, Vector
from fairduel.errors import BadInputError
from fairduel.votes.columns import frame_columns, records
from fairduel.votes.deciding import decide
from fairduel.votes.given import takes_votes
from fairduel.votes.notebook import Result
from fairduel.votes.ranking.answers import Gaps
from fairduel.votes.ranking.estimates import FitSettings, RangedScores, dense_estimate, sparse_estimate
from fairduel.votes.ranking.intervals import chances_of_best, ranks_within
from fairduel.votes.ranking.many_items import DRAWS, MOST_DENSE, PlainScores
from fairduel.votes.ranking.robust_fit import Weights
from fairduel.votes.ranking.score_fit import Effect
from fairduel.votes.ranking.standings import RANKING, Certificate, Standing
from fairduel.votes.ranking.uncertainty import FOR_FEATURES, Likelihood, Uncertainty
from fairduel.votes.reading.features import Features
from fairduel.votes.verdict import Verdict, headlines
from fairduel.votes.votes import Codes, Mask, Ties, Votes, ensure_some_count, sums
from fairduel.words import listed, ordinal, with_minus

MOST_SHOWN = 3
"""Groups whose verdicts a summary has."""
_KEPT_DRAWS = 400  # of the scores
_SHOWN = ("rank", "own_low", "own_high", "item", "score", "error", "best", "games")  # columns in a notebook
_LAST_COMPARED = 5  # last rank that the summary compares with the one before


@dataclass(frozen=True, eq=False, repr=False)
class Ranking(Result):
    """The standings of all items, with the underlying fit and its settings.

    Created by :func:`rank`.

    Args:
        standings: One entry per item (rank, rank interval, score, …), sorted by component, then by rank.
        items: Item names, in the order of the arrays below.
        gaps: The gaps between items, with their errors.
        quantile: How many standard errors of their difference tell two items apart.
        spreads: Returns ``uncertainty``; with more than 1,000 items, it takes long.
        weights: Weight w of each vote, shape ``(n,)``.
        settings: All settings, as given and as resolved.
        notes: Caveats: items never compared, infinite scores, a single voter.
        draws: Draws of the scores from their posterior, shape ``(400, K)``.
        likelihood: The likelihood of the scores; None with features of items, or without a ridge.
        effects: How much each feature per vote decides; scores are those at equal features.
        certificates: How many false votes, or lying voters, change a rank, if
            :func:`~fairduel.votes.certifying.certificates.with_certificates` added them.
        verdicts: What the votes decide about each group of at least two items, the largest first.

    >>> ranking = rank(Votes.from_arrays(["tea", "milk"], [0] * 40, [1] * 40, [1] * 30 + [0] * 10))
    >>> ranking.standings[0].item, ranking.tells_apart("tea", "milk")
    ('tea', True)
    """

    standings: tuple[Standing, ...]
    items: tuple[str, ...]
    gaps: Gaps
    quantile: float
    spreads: Callable[[], Uncertainty]
    weights: Vector
    settings: Mapping[str, Any]
    notes: tuple[str, ...]
    draws: Matrix
    likelihood: Likelihood | None
    effects: tuple[Effect, ...] = ()
    certificates: tuple[Certificate, ...] = ()
    verdicts: tuple[Verdict, ...] = ()

    @property
    def scores(self) -> Vector:
        """Scores in log-odds, shape ``(K,)``."""
        return self.gaps.scores

    @cached_property
    def uncertainty(self) -> Uncertainty:
        """The covariance by source: sampling, voters, contexts."""
        return self.spreads()

    @property
    def covariance(self) -> Matrix:
        """Covariance of the scores, shape ``(K, K)``; 0 between components."""
        return self.uncertainty.covariance if self.gaps.covariance is None else self.gaps.covariance

    @cached_property
    def apart(self) -> Mask:
        """Whether two items differ with 95% confidence for all pairs simultaneously, shape ``(K, K)``."""
        above = self.gaps.above
        if above is None:
            rows = np.arange(len(self.items))
            above = self.gaps.ratios(rows, self.gaps.scales(rows)) > self.quantile
        return np.asarray(above | above.T)

    @property
    def uses_features(self) -> bool:
        """Whether scores were fitted with features of items or of votes."""
        return self.settings["features"] is not None or bool(self.effects)

    def records(self) -> list[dict[str, Any]]:
        """Return the standings as plain values, for JSON, with certificates if there are any."""
        return records(RANKING, self)

    def to_frame(self) -> pl.DataFrame:
        """Return one row per item, as in ranking.csv."""
        return pl.DataFrame(frame_columns(RANKING, self))

    def brief(self) -> str:
        """Say who won."""
        return headlines(self.verdicts)[0]

    def _preview(self) -> pl.DataFrame:
        groups = ["group"] if any(standing.component > 1 for standing in self.standings) else []
        return self.to_frame().select(*groups, *_SHOWN)

    def tells_apart(self, one: str, other: str) -> bool:
        """Return whether two items differ with 95% confidence (see ``apart``)."""
        return bool(self.apart[self.items.index(one), self.items.index(other)])

    def components(self) -> Iterator[tuple[Standing, ...]]:
        """Yield the standings of each component, largest component first."""
        for number in range(1, max(s.component for s in self.standings) + 1):
            yield tuple(s for s in self.standings if s.component == number)


@takes_votes
def rank(
    votes: Votes,
    *,
    features: Features | None = None,
    weights: Weights = "none",
    lies: float | None = None,
    ties: Ties = "half",
    ridge: float | None = None,
    reliability: Vector | None = None,
    draws: int = 10_000,
    seed: int = 0,
) -> Ranking:
    """Rank the items of ``votes``, with uncertainty.

    With ``features``, an item's score includes its features, averaged over contexts. If the votes have features of
    their own (``Votes.features``), these are fitted together with the scores, which are then scores at equal features.

    :mod:`fairduel.votes.ranking.uncertainty` describes the estimate and its covariance: errors allow for voters and
    contexts that differ. Ranks, errors and probabilities thus refer to all voters and contexts of which those in the
    votes are a sample. A weak ridge keeps scores finite, and hardly moves even items with few votes.

    Rank intervals form a simultaneous 95% confidence set. Two items are told apart if their scores differ by more than
    q standard errors of the difference, where q is the 95% quantile of the largest such ratio among ``draws`` of the
    errors; after each such finding, q leaves it out (Romano and Wolf 2005). Where an item won or lost nearly all its
    votes, errors understate such a difference (Hauck and Donner 1977), so the fall of the likelihood decides. An item's
    lowest rank counts the items that are above it for sure, and so on. Who may be best, an item's own range and the
    tiers are narrower (:mod:`fairduel.votes.ranking.answers`). The probability of being best is its share of
    as many draws of the scores from their posterior (:mod:`fairduel.votes.ranking.posterior`), and
    :mod:`fairduel.votes.verdict` explains the verdicts.

    Args:
        votes: The votes, or a file or table of votes.
        features: Item features from :func:`read_features`. Default: none.
        weights: How votes are weighted (see :mod:`fairduel.votes.ranking.robust_fit`): ``"none"`` (all equally), or the
            paper's weights, ``"fixed-point"``: votes on items about which little is known count less,
            which limits what a few false votes can do to them, but buries items with few votes.
        lies: C, how many votes may be false: the verdicts allow for them, and so do the paper's weights. Default: 0,
            and √n for weights.
        ties: A tie counts as ``"half"`` a win for each item, or is ignored (``"drop"``).
        ridge: λ; 0 does not shrink the scores. Default: chosen from the votes, and at most 0.25 without
            ``features``.
        reliability: Factor ≥ 0 of each vote's weight, shape ``(n,)``, as an audit finds it. Default: 1 each.
        draws: Number of Monte Carlo draws, at least 100; fewer are used with more than 300 items.
        seed: Seed of these draws.

    Returns:
        The ranking.

    Raises:
        BadInputError: No vote counts, or there are more than 5,000 items with features or the paper's weights.

    >>> votes = Votes.from_arrays(["tea", "milk"], [0] * 40, [1] * 40, [1] * 30 + [0] * 10)
    >>> [(s.item, s.rank, s.rank_low, s.rank_high, round(s.best, 2)) for s in rank(votes).standings]
    [('tea', 1, 1, 1, 1.0), ('milk', 2, 2, 2, 0.0)]
    """
    integer("draws", draws, least=100)
    if ridge is not None:
        at_least_zero("ridge", ridge)
    if reliability is not None:
        if np.shape(reliability) != (len(votes),) or not (np.isfinite(reliability) & (reliability >= 0.0)).all():
            raise BadInputError(f"reliability must be {len(votes)} numbers ≥ 0, one per vote.")
        votes = replace(votes, weight=np.where(reliability > 0.0, votes.weight, 0.0))
    counts = votes.counts(ties)
    ensure_some_count(counts)
    component, rng = votes.components(ties), np.random.default_rng(seed)
    fitting = FitSettings(ties, features, reliability, weights, lies, ridge)
    is_large = fitting.suits(votes)
    with one_thread():
        made = sparse_estimate(votes, fitting, rng) if is_large else dense_estimate(votes, fitting, draws, rng)
    draws = len(made.draws)
    columns = {
        "score": made.gaps.scores,
        "error": made.error,
        "score_low": made.gaps.scores - made.reach,
        "score_high": made.gaps.scores + made.reach,
        "best": chances_of_best(made.draws, component),
        "plain_score": made.plain.scores,
        **_vote_shares(votes, counts, made.weights),
    }
    groups = _group_names(votes, component)
    standings = _standings(votes.items, component, groups, columns, made, draws)
    settings = {
        "weights": weights,
        "lies": lies if lies is not None else 0 if weights == "none" else "√votes",
        "ties": ties,
        "ridge_chosen": "from the votes" if ridge is None else "as given",
        **made.fitted,
        **{f"taste_of_{name}": math.sqrt(variance) for name, variance in made.tastes.items()},
        "features": None if features is None else f"{features.source}, divided by {features.factor:g}",
        "vote_features": list(votes.feature_names) or None,
        "draws": draws,
        "seed": seed,
    }
    sources = dict.fromkeys(name.removesuffix(FOR_FEATURES) for name in made.tastes)
    ranking = Ranking(
        *(standings, votes.items, made.gaps, made.quantile, made.spreads, made.weights),
        settings=settings,
        notes=_notes(votes, component, made.plain, list(sources), is_large=is_large),
        draws=made.draws[rng.permutation(draws)[:_KEPT_DRAWS]],
        likelihood=made.likelihood,
        effects=made.effects,
    )
    # without features, C also enters the verdict; as a number of votes, because √n is only what weights allow for
    allowed = 0 if lies is None or ranking.uses_features else math.ceil(lies)
    return replace(ranking, verdicts=decide(votes, ranking, lies=allowed))


def _group_names(votes: Votes, component: Codes) -> list[str]:
    """Name each component by its context, if that has no votes on other items; otherwise by its number, from 1."""
    count = int(component.max()) + 1
    names = [str(number) for number in range(1, count + 1)]
    if votes.context is None or count == 1:
        return names
    place = component[votes.first]
    pairs = np.unique(np.stack([place, votes.context]), axis=1)
    alone = (np.bincount(pairs[0], minlength=count)[pairs[0]] == 1) & (np.bincount(pairs[1])[pairs[1]] == 1)
    for number, context in pairs[:, alone].T:
        names[number] = votes.contexts[context]
    return names


def _standings(
    names: tuple[str, ...],
    component: Codes,
    groups: Sequence[str],
    columns: Mapping[str, Vector],
    made: RangedScores,
    draws: int,
) -> tuple[Standing, ...]:
    """Return the standings, component by component; ``columns`` holds fields of :class:`Standing`, each (K,)."""
    scores, single = columns["score"], made.single
    rank, plain_rank = (ranks_within(columns[name], component) for name in ("score", "plain_score"))
    return tuple(
        Standing(
            item=names[item],
            component=int(component[item]) + 1,
            group=groups[component[item]],
            rank=int(rank[item]),
            rank_low=int(made.low[item]),
            rank_high=int(made.high[item]),
            own_low=int(single.own_low[item]),
            own_high=int(single.own_high[item]),
            candidate=bool(single.candidate[item]),
            tier=int(single.tier[item]),
            best_error=math.sqrt(columns["best"][item] * (1.0 - columns["best"][item]) / draws),
            chance=float(special.expit(scores[item])),
            plain_rank=int(plain_rank[item]),
            **{name: float(values[item]) for name, values in columns.items()},
        )
        for item in np.lexsort((rank, component))
    )


def _vote_shares(votes: Votes, counts: Vector, weights: Vector) -> dict[str, Vector]:
    """Return games, wins and mean weight of the items, each (K,)."""

    def total(first: Vector, second: Vector) -> Vector:
        size = len(votes.items)
        return sums(votes.first, size, first) + sums(votes.second, size, second)

    games, trusted = total(counts, counts), total(counts * weights, counts * weights)
    mean_weight = np.divide(trusted, games, out=np.full(len(games), math.nan), where=games > 0.0)
    return {
        "games": games,
        "wins": total(counts * votes.result, counts * (1.0 - votes.result)),
        "mean_weight": mean_weight,
    }


def _notes(
    votes: Votes, component: Codes, plain: PlainScores, sources: Sequence[str], *, is_large: bool
) -> tuple[str, ...]:
    notes = []
    sizes = np.bincount(component)
    if len(sizes) > 1:
        notes.append(
            f"The items form {len(sizes)} groups of {sizes.max()} to {sizes.min()} items with no votes between them, "
            "so each group has its own ranking."
        )
    if plain.why:
        notes.append(f"{plain.why[0].upper()}{plain.why[1:]}; here scores are pulled towards the average.")
    notes.append(_population(votes, sources))
    if is_large:
        notes.append(
            f"With more than {MOST_DENSE:,} items, errors and probabilities come from {DRAWS} draws, joint ranges are "
            "wider than need be, no rank has a certificate, and nobody checks whether the order of each pair matters."
        )
    return tuple(notes)


def _population(votes: Votes, sources: Sequence[str]) -> str:
    """Say whom the ranges are about."""
    if votes.voter is not None and len(np.unique(votes.voter)) == 1 < len(votes):
        return "All votes are by one voter: the ranges show how consistent they are, not how others would vote."
    if not sources:
        return "The ranges treat all votes as independent of each other."
    is_same = votes.context is not None and "contexts" not in sources and len(np.unique(votes.context)) > 1
    end = ", in these contexts" if is_same else ""
    return f"The ranges allow for having asked other, similar {listed(sources)}{end}."


def summarise(ranking: Ranking) -> list[str]:
    """Summarise the ranking in a few sentences for non-statisticians, conclusion first."""
    if len(ranking.verdicts) != 1:
        survived = [f"Group {each.group}: {each.survives}" for each in ranking.verdicts[:MOST_SHOWN] if each.survives]
        return headlines(ranking.verdicts) + survived + _equal_features(ranking)
    group = next(group for group in ranking.components() if len(group) > 1)
    return ranking.verdicts[0].sentences + _details(group, ranking) + _equal_features(ranking)


def _equal_features(ranking: Ranking) -> list[str]:
    """Say what features per vote decide."""
    if not ranking.effects:
        return []
    effects = [
        f"{each.feature} {with_minus(f'{each.coefficient:+.2f}')} ± {each.error:.2f}" for each in ranking.effects
    ]
    return [f"Scores hold for equal features per vote. Log-odds that these add: {listed(effects)}."]


def _details(group: Sequence[Standing], ranking: Ranking) -> list[str]:
    """Say who cannot be told apart behind a winner, and what the weights changed."""
    alike = [
        f"{ordinal(one.rank)} ({one.item}) and {ordinal(other.rank)} ({other.item}) cannot be told apart."
        for one, other in pairwise(group[1:_LAST_COMPARED])
        if ranking.verdicts[0].can_stop and one.own_high >= other.own_low
    ]
    return alike + _moved(group)


def _moved(group: Sequence[Standing]) -> list[str]:
    """Describe what the weights changed."""
    if all(math.isclose(standing.mean_weight, 1.0) for standing in group):
        return []
    moved = max(group, key=lambda standing: abs(standing.rank - standing.plain_rank))
    if moved.rank == moved.plain_rank:
        return ["Plain Bradley–Terry, which counts all votes equally, gives the same order."]
    return [
        f"Plain Bradley–Terry, which counts all votes equally, differs most on {moved.item}: "
        f"{ordinal(moved.plain_rank)} instead of {ordinal(moved.rank)}."
    ]
