"""Rank items with uncertainty: scores, standard errors, rank intervals and the probability of being best."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy import special

from fairduel.checks import at_least_zero, integer
from fairduel.core.blas import one_thread
from fairduel.duel import Matrix, Vector
from fairduel.errors import BadInputError
from fairduel.votes.bradley_terry import Scores, fit_scores, wins
from fairduel.votes.features import Features
from fairduel.votes.intervals import (
    CONFIDENCE,
    RankIntervals,
    chances_of_best,
    rank_intervals,
    ranks_within,
    score_reach,
)
from fairduel.votes.results import Result
from fairduel.votes.robust_fit import Weights
from fairduel.votes.score_fit import Effect, fitted_scores
from fairduel.votes.uncertainty import FOR_FEATURES, Uncertainty
from fairduel.votes.votes import Codes, Mask, Ties, Votes, ensure_some_count, sums
from fairduel.votes.words import listed, ordinal, shortened

if TYPE_CHECKING:
    from fairduel.votes.certificates import Certificate

_MOST_DRAWN = 1e9  # draws × items²; more are slow and hardly more accurate
_MOST_SUMMARISED = 3  # groups
_SHOWN = ("rank", "rank_low", "rank_high", "item", "score", "error", "best", "games")  # columns in a notebook
_LAST_COMPARED = 5  # last rank that the summary compares with the one before


@dataclass(frozen=True)
class Standing:
    """One item's rank among the items it can be compared with."""

    item: str
    component: int
    """Number of its component of the comparison graph, from 1; ranks are within a component."""
    group: str
    """Name of the component: its context if it has one to itself, otherwise its number."""
    rank: int
    rank_low: int
    """Lower end of the 95% interval of the rank, which holds for all items of all components simultaneously."""
    rank_high: int
    """Upper end of that interval."""
    score: float
    """θ in log-odds, with mean 0 in each component."""
    error: float
    """Standard error of the score."""
    score_low: float
    """Lower end of the 95% interval of the score, for this item alone."""
    score_high: float
    """Upper end of that interval."""
    best: float
    """Probability of being the best item of its component."""
    best_error: float
    """Monte Carlo standard error of that probability."""
    chance: float
    """Probability of beating an average item."""
    games: float
    wins: float
    """A tie counts as half a win."""
    mean_weight: float
    """Average weight of its votes."""
    plain_rank: int
    """Rank by plain Bradley–Terry, which counts all votes equally."""
    plain_score: float
    """Score by plain Bradley–Terry."""

    @property
    def win_rate(self) -> float:
        """Share of its votes that the item won."""
        return self.wins / self.games if self.games else math.nan


@dataclass(frozen=True, eq=False, repr=False)
class Ranking(Result):
    """The standings of all items, with the underlying fit and its settings.

    Created by :func:`rank`.

    Args:
        standings: One entry per item (rank, rank interval, score, …), sorted by component, then by rank.
        items: Item names, in the order of the arrays below.
        scores: Scores in log-odds, shape ``(K,)``.
        covariance: Covariance of the scores, shape ``(K, K)``; 0 between components.
        apart: Whether two items differ with 95% confidence for all pairs simultaneously, shape ``(K, K)``.
        quantile: How many standard errors of their difference tell two items apart.
        uncertainty: The covariance by source: sampling, voters, contexts.
        weights: Weight w of each vote, shape ``(n,)``.
        settings: All settings, as given and as resolved.
        notes: Caveats: items never compared, infinite scores, a single voter.
        effects: How much each feature per vote decides; scores are those at equal features.
        certificates: How many false votes, or lying voters, change a rank, if
            :func:`~fairduel.votes.certificates.with_certificates` added them.

    >>> ranking = rank(Votes.from_arrays(["tea", "milk"], [0] * 40, [1] * 40, [1] * 30 + [0] * 10))
    >>> ranking.standings[0].item, ranking.tells_apart("tea", "milk")
    ('tea', True)
    """

    standings: tuple[Standing, ...]
    items: tuple[str, ...]
    scores: Vector
    covariance: Matrix
    apart: Mask
    quantile: float
    uncertainty: Uncertainty
    weights: Vector
    settings: Mapping[str, Any]
    notes: tuple[str, ...]
    effects: tuple[Effect, ...] = ()
    certificates: tuple["Certificate", ...] = ()

    @property
    def uses_features(self) -> bool:
        """Whether scores were fitted with features of items or of votes."""
        return self.settings["features"] is not None or bool(self.effects)

    def records(self) -> list[dict[str, Any]]:
        """Return the standings as plain values, for JSON, with certificates if there are any."""
        numbers = {certificate.item: certificate.numbers for certificate in self.certificates}
        empty = dict.fromkeys(self.certificates[0].numbers) if numbers else {}
        return [
            asdict(standing) | {"win_rate": standing.win_rate} | numbers.get(standing.item, empty)
            for standing in self.standings
        ]

    def to_frame(self) -> pl.DataFrame:
        """Return one row per item, as in ranking.csv."""
        frame = pl.DataFrame(self.records(), infer_schema_length=None)
        certified = list(self.certificates[0].numbers) if self.certificates else []
        return frame.select(pl.exclude("wins", "win_rate", *certified), "wins", "win_rate", *certified)

    def brief(self) -> str:
        """Say who won."""
        return verdicts(self)[0]

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


def rank(
    votes: Votes,
    *,
    features: Features | None = None,
    weights: Weights = "fixed-point",
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

    :mod:`fairduel.votes.uncertainty` describes the estimate and its covariance: scores are shrunken towards 0, the more
    the less is known about them, and errors allow for voters and contexts that differ. Ranks, errors and probabilities
    thus refer to all voters and contexts of which those in the votes are a sample.

    Rank intervals form a simultaneous 95% confidence set. Two items are told apart if their scores differ by more than
    q standard errors of the difference, where q is the 95% quantile of the largest such ratio among ``draws`` of the
    errors; after each such finding, q leaves it out (Romano and Wolf 2005). Where an item won or lost nearly all its
    votes, errors understate such a difference (Hauck and Donner 1977), so the fall of the likelihood decides. An item's
    lowest rank counts the items that are above it for sure, and so on. The probability of being best is its share of
    as many draws of the scores, given the estimate.

    Args:
        votes: The votes.
        features: Item features from :func:`read_features`. Default: none.
        weights: How votes are weighted (see :mod:`fairduel.votes.robust_fit`): ``"fixed-point"``, ``"sequential"`` or
            ``"none"`` (all equally).
        lies: Number of false votes C to guard against. Default: √n.
        ties: A tie counts as ``"half"`` a win for each item, or is ignored (``"drop"``).
        ridge: λ; 0 does not shrink the scores. Default: chosen from the votes.
        reliability: Factor ≥ 0 of each vote's weight, shape ``(n,)``, as an audit finds it. Default: 1 each.
        draws: Number of Monte Carlo draws, at least 100; fewer are used with more than 300 items.
        seed: Seed of these draws.

    Returns:
        The ranking.

    Raises:
        BadInputError: No vote counts, or there are more than 5,000 items.

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
    won, counts = wins(votes, ties=ties), votes.counts(ties)
    ensure_some_count(counts)
    component = votes.components(ties)
    with one_thread():
        plain = fit_scores(won)
        fit, chosen, effects = fitted_scores(
            votes, counts, features, reliability, weights=weights, lies=lies, ridge=ridge
        )
        uncertainty = fit.uncertainty.mapped(lambda matrix: _centred(matrix, component))
        draws = min(draws, max(400, int(_MOST_DRAWN / len(component) ** 2)))
        rng = np.random.default_rng(seed)
        errors = uncertainty.draws(draws, rng)
        best, reach = chances_of_best(fit.posterior, component, draws, rng), score_reach(uncertainty, errors, rng)
        scores, covariance = _centred_scores(fit.theta, component), uncertainty.covariance
        likelihood = None if features is not None or fit.ridge == 0.0 else fit.likelihood
        found = rank_intervals(scores, covariance, errors, component, likelihood)
    vote_weights = np.zeros(len(votes))
    vote_weights[chosen] = fit.weights
    columns = {
        "score": scores,
        "score_low": scores - reach,
        "score_high": scores + reach,
        "best": best,
        "plain_score": plain.scores,
        **_vote_shares(votes, won, counts, vote_weights),
    }
    groups = _group_names(votes, component)
    standings = _standings(votes.items, component, groups, columns, np.sqrt(np.diag(covariance)), found, draws)
    settings = {
        "weights": weights,
        "lies": "√votes" if lies is None else lies,
        "ties": ties,
        "ridge": fit.ridge,
        "ridge_chosen": "from the votes" if ridge is None else "as given",
        "spread_of_scores": fit.spread,
        **{f"taste_of_{source.name}": math.sqrt(source.variance) for source in uncertainty.sources},
        "features": None if features is None else f"{features.source}, divided by {features.factor:g}",
        "vote_features": list(votes.feature_names) or None,
        "draws": draws,
        "seed": seed,
        "alpha": fit.trust if weights != "none" else None,
        "fixed_point_residual": fit.residual,
    }
    sources = dict.fromkeys(source.name.removesuffix(FOR_FEATURES) for source in uncertainty.sources)
    notes = _notes(votes, component, plain, list(sources))
    return Ranking(
        *(standings, votes.items, scores, covariance, found.apart, found.quantile, uncertainty, vote_weights),
        settings=settings,
        notes=notes,
        effects=effects,
    )


def _centred_scores(theta: Vector, component: Codes) -> Vector:
    return np.asarray(
        theta - (sums(component, len(theta), theta) / np.maximum(sums(component, len(theta)), 1.0))[component]
    )


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


def _centred(matrix: Matrix, component: Codes) -> Matrix:
    """Return the covariance of the scores minus their mean in each component, from that of the scores, (K, K)."""
    result, sizes = matrix, np.bincount(component)
    for _ in range(2):
        means = np.zeros((len(sizes), len(matrix)))
        np.add.at(means, component, result)
        result = (result - (means / sizes[:, None])[component]).T
    return result


def _standings(
    names: tuple[str, ...],
    component: Codes,
    groups: Sequence[str],
    columns: Mapping[str, Vector],
    errors: Vector,
    found: RankIntervals,
    draws: int,
) -> tuple[Standing, ...]:
    """Return the standings, component by component; ``columns`` holds fields of :class:`Standing`, each (K,)."""
    scores = columns["score"]
    rank, plain_rank = (ranks_within(columns[name], component) for name in ("score", "plain_score"))
    return tuple(
        Standing(
            item=names[item],
            component=int(component[item]) + 1,
            group=groups[component[item]],
            rank=int(rank[item]),
            rank_low=int(found.low[item]),
            rank_high=int(found.high[item]),
            error=float(errors[item]),
            best_error=math.sqrt(columns["best"][item] * (1.0 - columns["best"][item]) / draws),
            chance=float(special.expit(scores[item])),
            plain_rank=int(plain_rank[item]),
            **{name: float(values[item]) for name, values in columns.items()},
        )
        for item in np.lexsort((rank, component))
    )


def _vote_shares(votes: Votes, won: Matrix, counts: Vector, weights: Vector) -> dict[str, Vector]:
    """Return games, wins and mean weight of the items, each (K,)."""
    games = won.sum(axis=1) + won.sum(axis=0)
    trusted = sum(np.bincount(item, counts * weights, len(games)) for item in (votes.first, votes.second))
    mean_weight = np.divide(trusted, games, out=np.full(len(games), math.nan), where=games > 0.0)
    return {"games": games, "wins": won.sum(axis=1), "mean_weight": mean_weight}


def _notes(votes: Votes, component: Codes, plain: Scores, sources: Sequence[str]) -> tuple[str, ...]:
    notes = []
    sizes = np.bincount(component)
    if len(sizes) > 1:
        notes.append(
            f"The items form {len(sizes)} groups of {sizes.max()} to {sizes.min()} items with no votes between them, "
            "so each group has its own ranking."
        )
    if plain.why:
        notes.append(f"{plain.why[0].upper()}{plain.why[1:]}; here they are finite, because scores are shrunken.")
    notes.append(_population(votes, sources))
    return tuple(notes)


def _population(votes: Votes, sources: Sequence[str]) -> str:
    """Say whom the ranges are about."""
    if votes.voter is not None and len(np.unique(votes.voter)) == 1 < len(votes):
        return "All votes are by one voter: the ranges show how consistent they are, not how others would vote."
    if not sources:
        return "The ranges treat all votes as independent of each other."
    same = [name for name, codes in (("contexts", votes.context),) if codes is not None and name not in sources]
    end = f", in these {same[0]}" if same else ""
    others = listed([f"other {name}" for name in sources])
    return f"The ranges are about {others} like those in this file, not only about these{end}."


def summarise(ranking: Ranking) -> list[str]:
    """Summarise the ranking in a few sentences for non-statisticians, conclusion first."""
    shown = list(ranking.components())[:_MOST_SUMMARISED]
    details = _details(shown[0], ranking) if len(shown) == 1 else []
    firsts = {each.item: each.sentence for each in ranking.certificates if each.rank == 1}
    certified = [_prefix(group, ranking) + firsts[group[0].item] for group in shown if group[0].item in firsts]
    return verdicts(ranking) + certified + details + _equal_features(ranking)


def _equal_features(ranking: Ranking) -> list[str]:
    """Say what features per vote decide."""
    if not ranking.effects:
        return []
    effects = [f"{each.feature} {each.coefficient:+.2f} ± {each.error:.2f}" for each in ranking.effects]
    return [f"Scores hold for equal features per vote. Log-odds that these add: {listed(effects)}."]


def verdicts(ranking: Ranking) -> list[str]:
    """Say who won in each of the largest components."""
    groups = list(ranking.components())
    sentences = [_prefix(group, ranking) + verdict(group, ranking) for group in groups[:_MOST_SUMMARISED]]
    if len(groups) > _MOST_SUMMARISED:
        clear = sum(len(group) > 1 and group[0].rank_high == 1 for group in groups)
        sentences.append(
            f"{len(groups) - _MOST_SUMMARISED} more groups are in the table. The winner is clear in {clear} of all "
            f"{len(groups)} groups."
        )
    return sentences


def _prefix(group: Sequence[Standing], ranking: Ranking) -> str:
    several = any(standing.component > 1 for standing in ranking.standings)
    return f"Group {group[0].group}: " if several else ""


def verdict(group: Sequence[Standing], ranking: Ranking) -> str:
    """Say who won among a component's standings: the same in every report."""
    leader, *others = group
    if not others:
        return f"{leader.item} was never compared with another item."
    chance = "above 0.99" if leader.best >= 0.995 else f"{leader.best:.2f}"
    best = f"It is the best with probability {chance}."
    first = f"{leader.item} is first of {len(group)} items"
    if leader.rank_high == 1:
        return f"{first}: no other item is as good ({CONFIDENCE:.0%} confidence). {best}"
    rivals = [other.item for other in others if not ranking.tells_apart(leader.item, other.item)]
    return f"{first}, but not clearly: {shortened(rivals)} may be as good or better. {best}"


def _details(group: Sequence[Standing], ranking: Ranking) -> list[str]:
    """Say who cannot be told apart, and what the weights changed."""
    if len(group) == 1:
        return []
    alike = [
        f"{ordinal(one.rank)} ({one.item}) and {ordinal(other.rank)} ({other.item}) cannot be told apart."
        for one, other in pairwise(group[1:_LAST_COMPARED])
        if group[0].rank_high == 1 and not ranking.tells_apart(one.item, other.item)
    ]
    return alike + _moved(group)


def _moved(group: Sequence[Standing]) -> list[str]:
    """Describe what the weights changed."""
    if all(math.isclose(standing.mean_weight, 1.0) for standing in group):
        return ["All votes count fully: no pair of items has so few votes that they were down-weighted."]
    moved = max(group, key=lambda standing: abs(standing.rank - standing.plain_rank))
    if moved.rank == moved.plain_rank:
        return ["Plain Bradley–Terry, which counts all votes equally, gives the same order."]
    return [
        f"Plain Bradley–Terry, which counts all votes equally, differs most on {moved.item}: "
        f"{ordinal(moved.plain_rank)} instead of {ordinal(moved.rank)}."
    ]
