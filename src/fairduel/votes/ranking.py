"""Rank items with uncertainty: scores, standard errors, rank intervals and the probability of being best."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy import special

from fairduel.checks import integer
from fairduel.duel import Matrix, Vector
from fairduel.votes.bradley_terry import TINY_RIDGE, Scores, fit_scores, wins
from fairduel.votes.design import Design, Pairs, with_features
from fairduel.votes.features import Features
from fairduel.votes.robust_fit import Fit, Weights, one_thread, robust_fit
from fairduel.votes.votes import Codes, Indices, Mask, Ties, Votes, ensure_some_count
from fairduel.votes.words import ordinal, shortened

CONFIDENCE = 0.95
_MOST_NUMBERS = 2e7  # draws × pairs for the quantile; more are slow and no more accurate
_MOST_SUMMARISED = 3  # groups
_LEAST_FREEDOM = 0.1  # degrees of freedom: nothing can be told apart, but Student's t is still finite
_LAST_COMPARED = 5  # last rank that the summary compares with the one before


@dataclass(frozen=True)
class Standing:
    """One item's rank among the items it can be compared with."""

    item: str
    component: int
    """Number of its component of the comparison graph, from 1; ranks are within a component."""
    rank: int
    rank_low: int
    """Lower end of the 95% interval of the rank, which holds for all items simultaneously."""
    rank_high: int
    """Upper end of that interval."""
    score: float
    """θ in log-odds, with mean 0 in each component."""
    error: float
    """Standard error of the score."""
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


@dataclass(frozen=True, eq=False)
class Ranking:
    """The standings of all items, with the underlying fit and its settings.

    Created by :func:`rank`.

    Args:
        standings: One entry per item (rank, rank interval, score, …), sorted by component, then by rank.
        items: Item names, in the order of the arrays below.
        scores: Scores in log-odds, shape ``(K,)``.
        covariance: Covariance of the scores, shape ``(K, K)``; 0 between components.
        apart: Whether two items differ with 95% confidence for all pairs simultaneously, shape ``(K, K)``.
        weights: Weight w of each vote, shape ``(n,)``.
        settings: All settings, as given and as resolved.
        notes: Caveats: items never compared, infinite scores, a single voter.

    >>> ranking = rank(Votes.from_arrays(["tea", "milk"], [0] * 40, [1] * 40, [1] * 30 + [0] * 10))
    >>> ranking.standings[0].item, ranking.tells_apart("tea", "milk")
    ('tea', True)
    """

    standings: tuple[Standing, ...]
    items: tuple[str, ...]
    scores: Vector
    covariance: Matrix
    apart: Mask
    weights: Vector
    settings: Mapping[str, Any]
    notes: tuple[str, ...]

    def records(self) -> list[dict[str, Any]]:
        """Return the standings as plain values, for JSON."""
        return [asdict(standing) | {"win_rate": standing.win_rate} for standing in self.standings]

    def frame(self) -> pl.DataFrame:
        """Return one row per item, as in ranking.csv."""
        return pl.DataFrame(self.records()).select(pl.exclude("wins", "win_rate"), "wins", "win_rate")

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
    draws: int = 10_000,
    seed: int = 0,
) -> Ranking:
    """Rank the items of ``votes``, with uncertainty.

    Scores are fitted separately for each component of the comparison graph, or jointly if ``features`` link the
    components; an item's score then includes its features, averaged over contexts.

    Standard errors come from the sandwich covariance, clustered by voter. Rank intervals form a simultaneous 95%
    confidence set. Two items are told apart if their scores differ by more than q standard errors of the difference,
    where q is the 95% quantile of the largest such ratio among ``draws`` from the normal distribution of the scores;
    an item's lowest rank counts the items that are above it for sure, and so on. The probability of being best is its
    share of these draws. A few voters reveal little about how voters differ, so q and the draws follow Student's t with
    G − 1 degrees of freedom, where G = (Σ n)² / Σ n² is the effective number of voters, with n votes each.

    Args:
        votes: The votes.
        features: Item features from :func:`read_features`. Default: none.
        weights: How votes are weighted (see :mod:`fairduel.votes.robust_fit`): ``"fixed-point"``, ``"sequential"`` or
            ``"none"`` (all equally).
        lies: Number of false votes C to guard against. Default: √n.
        ties: A tie counts as ``"half"`` a win for each item, or is ignored (``"drop"``).
        ridge: λ. Default: 0 where finite scores exist, otherwise 0.01; with features, 0.01.
        draws: Number of Monte Carlo draws, at least 100.
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
    won, counts = wins(votes, ties=ties), votes.counts(ties)
    ensure_some_count(counts)
    component = votes.components(ties)
    with one_thread():
        plain = fit_scores(won)
    fitting: dict[str, Any] = {"weights": weights, "lies": lies, "ridge": ridge}
    if features is None:
        parts = _fit_components(votes, counts, component, **fitting)
    else:
        parts = [_fit_features(votes, counts, features, **fitting)]
    scores, covariance, vote_weights = _joined(parts, component, len(votes))
    columns = {"score": scores, "plain_score": plain.scores, **_vote_shares(votes, won, counts, vote_weights)}
    freedom = [parts[number if features is None else 0].freedom for number in range(int(component.max()) + 1)]
    standings, apart = _standings(votes.items, component, columns, covariance, freedom, draws=draws, seed=seed)
    settings = _settings(parts, features, ties=ties, draws=draws, seed=seed, **fitting)
    notes = _notes(votes, component, plain, parts)
    return Ranking(standings, votes.items, scores, covariance, apart, vote_weights, settings=settings, notes=notes)


class RankIntervals(NamedTuple):
    """Ranks within one component; all but ``apart`` are (K,)."""

    rank: Indices
    low: Indices
    high: Indices
    best: Vector
    apart: Mask
    """Whether items i and j are told apart, shape (K, K)."""


def rank_intervals(
    scores: Vector, covariance: Matrix, *, draws: int, rng: np.random.Generator, freedom: float = math.inf
) -> RankIntervals:
    """Compute ranks, their simultaneous 95% confidence set and the probabilities of being best; see :func:`rank`.

    ``scores`` are (K,), with ``covariance`` (K, K) estimated with ``freedom`` degrees of freedom.
    """
    count = len(scores)
    values, vectors = np.linalg.eigh(covariance)
    half = vectors * np.sqrt(np.maximum(values, 0.0))
    noise = rng.normal(size=(draws, count)) @ half.T
    wider: Matrix = (
        np.ones((1, 1)) if math.isinf(freedom) else np.sqrt(freedom / rng.chisquare(freedom, size=(draws, 1)))
    )
    best = np.bincount(np.argmax(scores + wider * noise, axis=1), minlength=count) / draws
    variances = np.diag(covariance)[:, None] + np.diag(covariance)[None, :] - 2.0 * covariance
    errors = np.sqrt(np.maximum(variances, 0.0))
    used = noise[: max(400, int(2 * _MOST_NUMBERS / count**2))]
    scales = np.divide(1.0, errors, out=np.zeros_like(errors), where=errors > 0.0)
    largest = np.zeros(len(used))
    for item in range(count - 1):
        ratios = np.abs(used[:, item + 1 :] - used[:, item, None]) * scales[item, item + 1 :]
        np.maximum(largest, ratios.max(axis=1), out=largest)
    quantile = float(np.quantile(largest, CONFIDENCE))
    if not math.isinf(freedom):  # same tail probability under Student's t
        quantile = float(special.stdtrit(freedom, float(special.ndtr(quantile))))
    above = scores[:, None] - scores[None, :] > quantile * errors  # row above column for sure
    return RankIntervals(_ranks(scores), 1 + above.sum(axis=0), count - above.sum(axis=1), best, above | above.T)


class _Part(NamedTuple):
    """Items fitted together."""

    items: Indices
    votes: Mask
    fit: Fit
    clustered: bool
    freedom: float
    """Degrees of freedom of the covariance; ∞ if it is not clustered."""


def _fit_components(votes: Votes, counts: Vector, component: Codes, **fitting: Any) -> list[_Part]:
    parts = []
    for number in range(int(component.max()) + 1):
        members = np.flatnonzero(component == number)
        chosen = (component[votes.first] == number) & (counts > 0.0)
        place = np.empty(len(component), dtype=np.int32)
        place[members] = np.arange(len(members))
        design = Pairs.collapse(place[votes.first[chosen]], place[votes.second[chosen]], len(members))
        parts.append(_fit_part(votes, counts, members, chosen, design, **fitting))
    return parts


def _fit_features(votes: Votes, counts: Vector, features: Features, **fitting: Any) -> _Part:
    chosen, count = counts > 0.0, len(votes.items)
    context = None if votes.context is None else votes.context[chosen]
    design = with_features(votes.first[chosen], votes.second[chosen], features.values, context)
    part = _fit_part(votes, counts, np.arange(count), chosen, design, **fitting)
    to_scores = np.hstack([np.eye(count), features.average()])
    fit = replace(part.fit, theta=to_scores @ part.fit.theta, covariance=to_scores @ part.fit.covariance @ to_scores.T)
    return part._replace(fit=fit)


def _fit_part(votes: Votes, counts: Vector, items: Indices, chosen: Mask, design: Design, **fitting: Any) -> _Part:
    """Fit the ``chosen`` (n,) votes on these items, whose differences are in ``design``."""
    differences, row, turned = design
    group, clustered = _groups(votes, chosen)
    won = np.where(turned, 1.0 - votes.result[chosen], votes.result[chosen])
    fit = robust_fit(differences, row, won, counts[chosen], group=group, **fitting)
    freedom = _freedom(group, counts[chosen])
    return _Part(items, chosen, fit, clustered=clustered, freedom=freedom)


def _joined(parts: Sequence[_Part], component: Codes, votes: int) -> tuple[Vector, Matrix, Vector]:
    """Combine the parts: scores (K,) and covariance (K, K), centred in each component, and vote weights (n,)."""
    scores, covariance, weights = np.zeros(len(component)), np.zeros((len(component),) * 2), np.zeros(votes)
    for part in parts:
        scores[part.items] = part.fit.theta
        covariance[np.ix_(part.items, part.items)] = part.fit.covariance
        weights[part.votes] = part.fit.weights
    for number in range(int(component.max()) + 1):
        members = np.flatnonzero(component == number)
        scores[members] -= scores[members].mean()
        inside = np.ix_(members, members)
        covariance[inside] = _centred(covariance[inside])
    return scores, covariance, weights


def _standings(
    names: tuple[str, ...],
    component: Codes,
    columns: Mapping[str, Vector],
    covariance: Matrix,
    freedom: Sequence[float],
    *,
    draws: int,
    seed: int,
) -> tuple[tuple[Standing, ...], Mask]:
    """Return the standings, component by component, and which items can be told apart (K, K).

    ``columns`` holds the fields of :class:`Standing` that do not depend on ranks, each (K,); ``freedom`` has one entry
    per component.
    """
    rng = np.random.default_rng(seed)
    standings, apart = list[Standing](), np.zeros(covariance.shape, dtype=bool)
    for number, degrees in enumerate(freedom):
        members = np.flatnonzero(component == number)
        inside = np.ix_(members, members)
        scores = columns["score"][members]
        found = rank_intervals(scores, covariance[inside], draws=draws, rng=rng, freedom=degrees)
        apart[inside] = found.apart
        plain_rank = _ranks(columns["plain_score"][members])
        standings += [
            Standing(
                item=names[item],
                component=number + 1,
                rank=int(found.rank[place]),
                rank_low=int(found.low[place]),
                rank_high=int(found.high[place]),
                error=math.sqrt(covariance[item, item]),
                best=float(found.best[place]),
                best_error=math.sqrt(found.best[place] * (1.0 - found.best[place]) / draws),
                chance=float(special.expit(scores[place])),
                plain_rank=int(plain_rank[place]),
                **{name: float(values[item]) for name, values in columns.items()},
            )
            for place, item in sorted(enumerate(members), key=lambda entry: found.rank[entry[0]])
        ]
    return tuple(standings), apart


def _settings(parts: Sequence[_Part], features: Features | None, **given: Any) -> dict[str, Any]:
    """Return all settings, as given and as resolved."""
    weights, lies, ridge = given["weights"], given["lies"], given["ridge"]
    return {
        "weights": weights,
        "lies": "√votes" if lies is None else lies,
        "ties": given["ties"],
        "ridge": "only where no finite score exists" if ridge is None and features is None else ridge or TINY_RIDGE,
        "features": None if features is None else f"{features.source}, divided by {features.factor:g}",
        "draws": given["draws"],
        "seed": given["seed"],
        "alpha": [part.fit.trust for part in parts] if weights != "none" else None,
        "fixed_point_residual": max(part.fit.residual for part in parts),
        "errors": "sandwich" + (", clustered by voter" if any(part.clustered for part in parts) else ""),
    }


def _groups(votes: Votes, chosen: Mask) -> tuple[Codes | None, bool]:
    """Return the voter of each chosen vote, or None for no clustering, and whether errors allow for dependent votes.

    A single voter says nothing about how voters differ; voters with one vote each need no clustering.
    """
    if votes.voter is None:
        return None, False
    people, group = np.unique(votes.voter[chosen], return_inverse=True)
    if len(people) in (1, len(group)):
        return None, len(people) == len(group)
    return group.astype(np.int32), True


def _freedom(group: Codes | None, counts: Vector) -> float:
    """Return (Σ n)² / Σ n² − 1 for voters with n votes each: one less than their number if all n are equal."""
    if group is None:
        return math.inf
    cast = np.bincount(group, counts)
    return float(max(cast.sum() ** 2 / (cast @ cast) - 1.0, _LEAST_FREEDOM))


def _centred(covariance: Matrix) -> Matrix:
    """Return the covariance of the scores minus their mean."""
    rows = covariance - covariance.mean(axis=0)
    return np.asarray(rows - rows.mean(axis=1, keepdims=True))


def _ranks(scores: Vector) -> Indices:
    """Rank from 1 for the highest; ties keep their order."""
    result = np.empty(len(scores), dtype=np.int64)
    result[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    return result


def _vote_shares(votes: Votes, won: Matrix, counts: Vector, weights: Vector) -> dict[str, Vector]:
    """Return games, wins and mean weight of the items, each (K,)."""
    games = won.sum(axis=1) + won.sum(axis=0)
    trusted = sum(np.bincount(item, counts * weights, len(games)) for item in (votes.first, votes.second))
    mean_weight = np.divide(trusted, games, out=np.full(len(games), math.nan), where=games > 0.0)
    return {"games": games, "wins": won.sum(axis=1), "mean_weight": mean_weight}


def _notes(votes: Votes, component: Codes, plain: Scores, parts: Sequence[_Part]) -> tuple[str, ...]:
    notes = []
    sizes = np.bincount(component)
    if len(sizes) > 1:
        notes.append(
            f"The items form {len(sizes)} groups of {sizes.max()} to {sizes.min()} items with no votes between them, "
            "so each group has its own ranking."
        )
    if plain.why:
        notes.append(f"{plain.why[0].upper()}{plain.why[1:]}; a ridge of {plain.ridge:g} keeps them finite.")
    if votes.voter is not None and not all(part.clustered for part in parts):
        where = "All votes" if len(parts) == 1 else "All votes of some groups"
        notes.append(f"{where} are by one voter: the ranges show how consistent they are, not how others would vote.")
    return tuple(notes)


def summarise(ranking: Ranking) -> list[str]:
    """Summarise the ranking in a few sentences for non-statisticians, conclusion first."""
    groups = list(ranking.components())
    sentences = []
    for number, group in enumerate(groups[:_MOST_SUMMARISED], start=1):
        prefix = f"Group {number}: " if len(groups) > 1 else ""
        sentences += [prefix + sentence for sentence in _summarise_group(group, ranking)]
    if len(groups) > _MOST_SUMMARISED:
        sentences.append(f"{len(groups) - _MOST_SUMMARISED} more groups are in the table.")
    return sentences


def _summarise_group(group: Sequence[Standing], ranking: Ranking) -> list[str]:
    leader, *others = group
    if not others:
        return [f"{leader.item} was never compared with another item."]
    first = f"{leader.item} is first of {len(group)} items"
    if leader.rank_high == 1:
        best = f"It is the best with probability {'above 0.99' if leader.best >= 0.995 else f'{leader.best:.2f}'}."
        sentences = [f"{first}: no other item is as good ({CONFIDENCE:.0%} confidence).", best]
        sentences += [
            f"{ordinal(one.rank)} ({one.item}) and {ordinal(other.rank)} ({other.item}) cannot be told apart."
            for one, other in pairwise(others[: _LAST_COMPARED - 1])
            if not ranking.tells_apart(one.item, other.item)
        ]
    else:
        rivals = [other.item for other in others if not ranking.tells_apart(leader.item, other.item)]
        sentences = [f"{first}, but not clearly: {shortened(rivals)} may be as good or better."]
    return sentences + _moved(group)


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
