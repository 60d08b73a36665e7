"""A ranking that says how sure it is: scores, errors, ranks with intervals, and the chance of being best."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy import special

from fairduel.checks import integer
from fairduel.duel import Matrix, Vector
from fairduel.errors import BadInputError
from fairduel.votes.bradley_terry import TINY_RIDGE, Scores, fit_scores, wins
from fairduel.votes.design import Design, Pairs, with_features
from fairduel.votes.features import Features
from fairduel.votes.robust_fit import Fit, Weights, one_thread, robust_fit
from fairduel.votes.votes import Codes, Indices, Mask, Ties, Votes

CONFIDENCE = 0.95
_MOST_NUMBERS = 2e7  # of draws times pairs: more take long and say no more
_MOST_SUMMARISED = 3  # groups
_LEAST_FREEDOM = 0.1  # nothing can be told apart there, and Student's law is still finite
_ONE_VOICE = "The votes are all by one voter: the ranges say how sure that voter is, not what others think."
_LAST_PAIR = 5  # ranks of which the summary says whether they can be told apart


@dataclass(frozen=True)
class Standing:
    """One item's place among those that it can be compared with."""

    item: str
    component: int
    """Of the comparison graph, from 1; ranks are within it."""
    rank: int
    rank_low: int
    """With 95 % confidence for all items together, the true rank lies between this …"""
    rank_high: int
    """… and this."""
    score: float
    """θ in log-odds, mean 0 in its component."""
    error: float
    """Its standard error."""
    best: float
    """Probability of being the best of its component."""
    best_error: float
    """What drawing at random adds to it: its Monte-Carlo standard error."""
    chance: float
    """Chance to win against an average item."""
    games: float
    wins: float
    """A tie is half a win."""
    mean_weight: float
    """What its votes count on average."""
    plain_rank: int
    """Its rank by plain Bradley–Terry, …"""
    plain_score: float
    """… and its score there."""

    @property
    def win_rate(self) -> float:
        """Share of its votes that it won."""
        return self.wins / self.games if self.games else math.nan


@dataclass(frozen=True, eq=False)
class Ranking:
    """All standings, with the fit that made them and every setting."""

    standings: tuple[Standing, ...]
    """By component, then by rank."""
    items: tuple[str, ...]
    """In the order of the arrays below."""
    scores: Vector
    """Shape (K,)."""
    covariance: Matrix
    """Of the scores, shape (K, K); 0 between components."""
    apart: Mask
    """Whether two items can be told apart, with 95 % confidence for all pairs together, shape (K, K)."""
    weights: Vector
    """w of each vote, shape (n,)."""
    settings: Mapping[str, Any]
    notes: tuple[str, ...]
    """What a reader should know: components, missing estimates, how errors were found."""

    def records(self) -> list[dict[str, Any]]:
        """The standings as plain values, for JSON."""
        return [asdict(standing) | {"win_rate": standing.win_rate} for standing in self.standings]

    def frame(self) -> pl.DataFrame:
        """One row an item, as it is written to ranking.csv."""
        return pl.DataFrame(self.records()).select(pl.exclude("wins", "win_rate"), "wins", "win_rate")

    def tells_apart(self, one: str, other: str) -> bool:
        """Whether two items surely differ."""
        return bool(self.apart[self.items.index(one), self.items.index(other)])

    def components(self) -> Iterator[tuple[Standing, ...]]:
        """The standings of each component."""
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
    """Rank the items of ``votes``.

    ``weights``, ``lies`` (C) and ``ridge`` are those of :mod:`fairduel.votes.robust_fit`. Scores are estimated for
    each component of the comparison graph by itself, or together where ``features`` link them; an item's score then
    holds its features, averaged over contexts.

    Standard errors are from the sandwich covariance, clustered by voter. Ranks have a simultaneous 95 % confidence
    set: two items count as told apart where their scores differ by more than q standard errors of the difference, q
    being the 95 % quantile of the largest such ratio among ``draws`` from the normal law of the scores; an item's
    lowest rank counts those surely above it, and so on. The chance of being best is its share of these draws. Few
    voters tell little of how voters differ, so with G of them q and the draws are those of Student's law with G − 1
    degrees of freedom, where voters count by their votes, G = (Σ n)² / Σ n².

    >>> votes = Votes.from_arrays(["tea", "milk"], [0] * 40, [1] * 40, [1] * 30 + [0] * 10)
    >>> [(s.item, s.rank, s.rank_low, s.rank_high, round(s.best, 2)) for s in rank(votes).standings]
    [('tea', 1, 1, 1, 1.0), ('milk', 2, 2, 2, 0.0)]
    """
    integer("draws", draws, least=100)
    won, counts = wins(votes, ties=ties), votes.counts(ties)
    if not counts.any():
        raise BadInputError("there is no vote to rank by.")
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
    """Ranks of items that can be compared, each (K,)."""

    rank: Indices
    low: Indices
    high: Indices
    best: Vector
    apart: Mask
    """Whether item i is surely above or below item j, shape (K, K)."""


def rank_intervals(
    scores: Vector, covariance: Matrix, *, draws: int, rng: np.random.Generator, freedom: float = math.inf
) -> RankIntervals:
    """Ranks, their simultaneous 95 % confidence set and the chances of being best, as :func:`rank` explains them.

    ``scores`` are (K,), their ``covariance`` (K, K), known as well as ``freedom`` degrees of freedom tell.
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
    if not math.isinf(freedom):  # each pair has an error of its own: the same tail, under Student's law
        quantile = float(special.stdtrit(freedom, float(special.ndtr(quantile))))
    above = scores[:, None] - scores[None, :] > quantile * errors  # row surely above column
    return RankIntervals(_ranks(scores), 1 + above.sum(axis=0), count - above.sum(axis=1), best, above | above.T)


class _Part(NamedTuple):
    """Items that were fitted together."""

    items: Indices
    votes: Mask
    fit: Fit
    scores: Vector
    covariance: Matrix
    clustered: bool
    freedom: float
    """Degrees of freedom of the covariance; ∞ where it is not clustered."""


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
    return part._replace(scores=to_scores @ part.scores, covariance=to_scores @ part.covariance @ to_scores.T)


def _fit_part(votes: Votes, counts: Vector, items: Indices, chosen: Mask, design: Design, **fitting: Any) -> _Part:
    """Fit the ``chosen`` (n,) votes, which are all on these items and stand in the ``design``."""
    differences, row, turned = design
    group, clustered = _groups(votes, chosen)
    won = np.where(turned, 1.0 - votes.result[chosen], votes.result[chosen])
    fit = robust_fit(differences, row, won, counts[chosen], group=group, **fitting)
    freedom = _freedom(group, counts[chosen])
    return _Part(items, chosen, fit, fit.theta, fit.covariance, clustered=clustered, freedom=freedom)


def _joined(parts: Sequence[_Part], component: Codes, votes: int) -> tuple[Vector, Matrix, Vector]:
    """Scores (K,) and their covariance (K, K), centred within each component, and the weight of each vote (n,)."""
    scores, covariance, weights = np.zeros(len(component)), np.zeros((len(component),) * 2), np.zeros(votes)
    for part in parts:
        scores[part.items] = part.scores
        covariance[np.ix_(part.items, part.items)] = part.covariance
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
    """The standings, component by component, and which items can be told apart (K, K).

    ``columns`` (K,) are the numbers of a standing that hold for an item wherever it stands; ``freedom`` is that of
    each component.
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
    """Every setting, as it was given and as it was resolved."""
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
        "fixed-point residual": max(part.fit.residual for part in parts),
        "errors": "sandwich" + (", clustered by voter" if any(part.clustered for part in parts) else ""),
    }


def _groups(votes: Votes, chosen: Mask) -> tuple[Codes | None, bool]:
    """Codes of the voters of the chosen votes, if any cast two, and whether dependence within a voter is allowed for.

    One voter alone cannot tell how voters differ.
    """
    if votes.voter is None:
        return None, False
    people, group = np.unique(votes.voter[chosen], return_inverse=True)
    if len(people) in (1, len(group)):
        return None, len(people) == len(group)
    return group.astype(np.int32), True


def _freedom(group: Codes | None, counts: Vector) -> float:
    """(Σ n)² / Σ n² − 1 for voters with n votes each: the voters but one, if all cast as many."""
    if group is None:
        return math.inf
    cast = np.bincount(group, counts)
    return float(max(cast.sum() ** 2 / (cast @ cast) - 1.0, _LEAST_FREEDOM))


def _centred(covariance: Matrix) -> Matrix:
    """Covariance of the scores less their mean."""
    rows = covariance - covariance.mean(axis=0)
    return np.asarray(rows - rows.mean(axis=1, keepdims=True))


def _ranks(scores: Vector) -> Indices:
    """1 for the highest; equal ones in their order."""
    result = np.empty(len(scores), dtype=np.int64)
    result[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    return result


def _vote_shares(votes: Votes, won: Matrix, counts: Vector, weights: Vector) -> dict[str, Vector]:
    """Games, wins and mean weight of each item, each (K,)."""
    games = won.sum(axis=1) + won.sum(axis=0)
    trusted = sum(np.bincount(item, counts * weights, len(games)) for item in (votes.first, votes.second))
    mean_weight = np.divide(trusted, games, out=np.full(len(games), math.nan), where=games > 0.0)
    return {"games": games, "wins": won.sum(axis=1), "mean_weight": mean_weight}


def _notes(votes: Votes, component: Codes, plain: Scores, parts: Sequence[_Part]) -> tuple[str, ...]:
    notes = []
    sizes = np.bincount(component)
    if len(sizes) > 1:
        notes.append(
            f"The items fall into {len(sizes)} groups of {sizes.max()} to {sizes.min()} that were never compared with "
            "each other, not even through others: each group has its own ranking."
        )
    if plain.why:
        notes.append(f"{plain.why[0].upper()}{plain.why[1:]}; a ridge of {plain.ridge:g} keeps them finite.")
    if votes.voter is not None and not all(part.clustered for part in parts):
        notes.append(_ONE_VOICE)
    return tuple(notes)


def summarise(ranking: Ranking) -> list[str]:
    """The ranking in a few sentences, for a reader who is no statistician."""
    groups = list(ranking.components())
    sentences = []
    for number, group in enumerate(groups[:_MOST_SUMMARISED], start=1):
        prefix = f"Group {number}: " if len(groups) > 1 else ""
        sentences += [prefix + sentence for sentence in _summarise_group(group, ranking)]
    if len(groups) > _MOST_SUMMARISED:
        sentences.append(f"There are {len(groups) - _MOST_SUMMARISED} further groups: the table has them all.")
    return sentences


def _summarise_group(group: Sequence[Standing], ranking: Ranking) -> list[str]:
    leader, *others = group
    if not others:
        return [f"{leader.item} was compared with nothing."]
    best = "above 0.99" if leader.best >= 0.995 else f"{leader.best:.2f}"
    sentences = [f"{leader.item} leads {len(group)} items: on these votes it is the best with probability {best}."]
    if leader.rank_high == 1:
        sentences.append(f"With {100 * CONFIDENCE:g} % confidence no other item is as good.")
        sentences += [
            f"{ordinal(one.rank)} ({one.item}) and {ordinal(other.rank)} ({other.item}) cannot be told apart."
            for one, other in pairwise(others[: _LAST_PAIR - 1])
            if not ranking.tells_apart(one.item, other.item)
        ]
    else:
        rivals = [other.item for other in others if not ranking.tells_apart(leader.item, other.item)]
        more = f" and {len(rivals) - 5} more" if len(rivals) > 5 else ""
        sentences.append(f"It cannot be told apart from {_listed(rivals[:5], more)}: they may be as good or better.")
    return sentences + _moved(group)


def _moved(group: Sequence[Standing]) -> list[str]:
    """What the weights changed."""
    if all(math.isclose(standing.mean_weight, 1.0) for standing in group):
        return ["Every vote counts fully: none is on a pair about which little else is known."]
    moved = max(group, key=lambda standing: abs(standing.rank - standing.plain_rank))
    if moved.rank == moved.plain_rank:
        return ["Plain Bradley–Terry, which trusts all votes alike, gives the same order."]
    return [
        f"Plain Bradley–Terry, which trusts all votes alike, differs most on {moved.item}: {ordinal(moved.plain_rank)} "
        f"there, {ordinal(moved.rank)} here."
    ]


def ordinal(number: int) -> str:
    """A place in words.

    >>> [ordinal(number) for number in (1, 2, 3, 4, 11, 22, 113)]
    ['1st', '2nd', '3rd', '4th', '11th', '22nd', '113th']
    """
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _listed(names: Sequence[str], more: str) -> str:
    if more or len(names) < 2:
        return ", ".join(names) + more
    return f"{', '.join(names[:-1])} and {names[-1]}"
