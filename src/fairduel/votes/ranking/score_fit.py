r"""Fit scores to votes: with the features of items, and of votes, if there are any.

With features, the score of item k is φ_kᵀθ + δ_k, with θ ~ N(0, I/λ_θ) and δ_k ~ N(0, 1/λ_δ): items are spread around
what their features say. If features say much, λ_θ is small and λ_δ large, and items with few votes are where their
features put them; if they say nothing, it is the other way round. Both are chosen from the votes, where Laplace's
approximation to the marginal likelihood is stationary (MacKay 1992):

    λ_δ = γ_δ/‖δ̂‖²,  γ_δ = Σ_{k ∈ items} (1 − λ_δ (H⁻¹)_kk),  H = I + diag(λ),

and the same for θ; γ is the number of well-determined coefficients. A tenth of a further coefficient of ±1 is added to
each, as for the ridge. Only the ratio is used: features times c = √(λ_δ/λ_θ) have the same ridge as items, which the
votes then choose with all that they say about shared tastes (:mod:`fairduel.votes.ranking.uncertainty`).
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, special

from fairduel.duel import Matrix, Vector
from fairduel.errors import ConvergenceError
from fairduel.votes.ranking.bradley_terry import INFINITE
from fairduel.votes.ranking.design_matrix import Design, Pairs, PairsAndNumbers, Rows, with_features
from fairduel.votes.ranking.many_items import DRAWS, ManyTold, PlainScores, centred, plain_scores
from fairduel.votes.ranking.posterior import Posterior, prior_variances, rarity
from fairduel.votes.ranking.robust_fit import Fit, robust_fit
from fairduel.votes.ranking.uncertainty import MeasuredTastes
from fairduel.votes.reading.features import Features
from fairduel.votes.votes import Codes, Mask, Ties, Votes, sums

_ROUNDS, _CLOSE = 30, 0.02  # in log λ
_FURTHER, _FURTHER_SQUARE = 0.1, 0.1
_BOUNDS = 1e-3, 1e3


def feature_strength(rows: Rows, items: int, counted: Vector, wins: Vector) -> float:
    """Return c, by which to multiply features; ``counted`` votes and ``wins`` are per row, both (r,).

    The first ``items`` columns of ``rows`` are those of the items.

    >>> from fairduel.votes.ranking.design_matrix import with_features
    >>> rng = np.random.default_rng(0)
    >>> told, first = rng.normal(size=(40, 2)), rng.integers(40, size=400, dtype=np.int32)
    >>> second = (first + rng.integers(1, 40, size=400, dtype=np.int32)) % 40
    >>> rows, row, turned = with_features(first, second, told)
    >>> chance = special.expit((told[first] - told[second]).sum(axis=1))
    >>> won = (rng.random(400) < chance) != turned
    >>> feature_strength(rows, 40, np.bincount(row).astype(float), np.bincount(row, won)) > 2.0
    True
    """
    part = np.where(np.arange(rows.dimension) < items, 0, 1)
    logs, theta = np.zeros(2), np.zeros(rows.dimension)
    for _ in range(_ROUNDS):
        ridge = np.exp(logs)
        scale = np.sqrt(ridge[0] / ridge)[part]
        scaled = Rows(rows.values * scale)
        theta, _ = scaled.estimate(counted, wins, float(ridge[0]), theta / scale)
        chance = special.expit(scaled.margins(theta))
        hessian = scaled.information(counted * chance * (1.0 - chance)) + ridge[0] * np.eye(rows.dimension)
        determined = np.bincount(part, 1.0 - ridge[0] * np.diag(linalg.inv(hessian)), 2)
        theta = theta * scale
        squares = np.bincount(part, theta**2, 2)
        found = np.log(np.clip((determined + _FURTHER) / (squares + _FURTHER_SQUARE), *_BOUNDS))
        moved, logs = np.abs(found - logs).max(), found
        if moved < _CLOSE:
            break
    return float(np.exp(0.5 * (logs[0] - logs[1])))


WEAK_RIDGE = 0.25
"""Largest λ of a ranking without features: as if scores were N(0, 2²), so that items with few votes are hardly moved.

A ridge that suits most items would bury newcomers: on growing arenas, the order would be clearly behind plain
Bradley–Terry's.
"""


class Effect(NamedTuple):
    """How much a feature per vote decides."""

    feature: str
    coefficient: float
    """Log-odds in favour of the first item, per root mean square of the feature."""
    error: float
    """Its standard error."""


class FittedScores(NamedTuple):
    """A fit of the votes that count."""

    fit: Fit
    """Its θ are scores, shape (K,)."""
    chosen: Mask
    """Which votes count, shape (n,)."""
    effects: tuple[Effect, ...]
    """Effects of features per vote."""
    draws: Callable[[int, np.random.Generator], Matrix]
    """Draws of the scores from their posterior, shape (count, K)."""
    strength: float | None
    """Factor c of item features, if they were weighed against the items themselves."""


def fitted_scores(
    votes: Votes,
    ties: Ties,
    features: Features | None,
    reliability: Vector | None,
    *,
    ridge: float | None = None,
    **fitting: Any,
) -> FittedScores:
    """Fit the votes that count; without ``ridge``, λ is chosen from the votes, and weak without item features.

    Item features are weighed against the items themselves (see above).
    """
    counts, count = votes.counts(ties), len(votes.items)
    chosen = counts > 0.0
    some = slice(None) if chosen.all() else chosen  # a slice copies nothing
    first, second, counted = votes.first[some], votes.second[some], counts[some]
    design: Design
    if votes.features is not None:
        numbers = [] if features is None else [features.of(votes, votes.first) - features.of(votes, votes.second)]
        rows = PairsAndNumbers(first, second, np.hstack([*numbers, votes.features])[some], count)
        design = rows, np.arange(len(rows)), np.zeros(len(rows), dtype=np.bool_)
    elif features is None:
        design = Pairs.collapse(first, second, count)
    else:
        context = None if votes.context is None else votes.context[some]
        design = with_features(first, second, features.values, context)
    differences, row, turned = design
    won = np.where(turned, 1.0 - votes.result[some], votes.result[some])
    strength = 1.0
    if isinstance(differences, Rows) and ridge is None:
        totals = (sums(row, len(differences), counted * each) for each in (np.ones(len(won)), won))
        strength = feature_strength(differences, count, *totals)
        scale = np.where(np.arange(differences.dimension) < count, 1.0, strength)
        differences = Rows(differences.values * scale)
    weak = WEAK_RIDGE if features is None else None
    trusted = None if reliability is None else reliability[some]
    groups = _groups(votes, some)
    used = weak if ridge is None else ridge
    told = differences, row, won, counted
    fit = robust_fit(*told, groups=groups, reliability=trusted, ridge=used, **fitting)
    suited = fit if used is None else fit.with_chosen_ridge()
    if ridge is None and suited.ridge < fit.ridge:  # scores are far apart
        fit = suited
    fit, suited = replace(fit, told=None), replace(suited, told=None)  # frees most of the memory
    games = sum(sums(item, count, counted * fit.weights) for item in (first, second))
    rare = np.zeros(differences.dimension)  # features are not rare
    rare[:count] = rarity(np.asarray(games), votes.components(ties))
    posterior = Posterior(suited, rare)
    if differences.dimension == count:
        return FittedScores(fit, chosen, (), posterior.draws, None)
    last = len(votes.feature_names)
    errors = np.sqrt(np.diag(fit.uncertainty.covariance))
    values = (each[len(each) - last :].tolist() for each in (fit.theta, errors))
    effects = tuple(Effect(*effect) for effect in zip(votes.feature_names, *values, strict=True))
    known = np.zeros((count, 0)) if features is None else features.average()
    scores = np.hstack([np.eye(count), strength * known, np.zeros((count, last))])
    mapped = fit.uncertainty.mapped(lambda matrix: scores @ matrix @ scores.T)
    return FittedScores(
        replace(fit, theta=scores @ fit.theta, uncertainty=mapped),
        chosen,
        effects,
        lambda count, rng: posterior.draws(count, rng) @ scores.T,
        strength if isinstance(differences, Rows) else None,
    )


class ManyScores(NamedTuple):
    """A fit of votes on many items (see :mod:`fairduel.votes.ranking.many_items`)."""

    scores: Vector
    """Shape (K,), with mean 0 in each component."""
    errors: Matrix
    """Draws of their errors, shape (DRAWS, K)."""
    draws: Matrix
    """Draws of the scores from their posterior, shape (DRAWS, K)."""
    weights: Vector
    """Shape (n,)."""
    ridge: float
    spread: float
    measured: MeasuredTastes
    plain: PlainScores


def many_scores(
    votes: Votes, ties: Ties, reliability: Vector | None, ridge: float | None, rng: np.random.Generator
) -> ManyScores:
    """Fit the votes on many items as :func:`fitted_scores` does, without features and with equal weights."""
    counts, count, component = votes.counts(ties), len(votes.items), votes.components(ties)
    chosen = counts > 0.0
    pairs, row, turned = Pairs.collapse(votes.first[chosen], votes.second[chosen], count)
    won = np.where(turned, 1.0 - votes.result[chosen], votes.result[chosen])
    weight = np.ones(int(chosen.sum())) if reliability is None else reliability[chosen]
    told = ManyTold.of(pairs, row, won, counts[chosen], weight, _groups(votes, chosen))
    plain_told = told if reliability is None else ManyTold.of(pairs, row, won, counts[chosen], np.ones(len(row)), {})
    plain = plain_scores(pairs, plain_told.rows.counted, plain_told.rows.wins)
    if ridge == 0.0 and plain.why:
        raise ConvergenceError(INFINITE)
    used = WEAK_RIDGE if ridge is None else ridge
    theta, _ = told.estimate(used)
    measured = told.tastes(theta, used)
    suited_theta, suited, _ = told.choose_ridge(theta, max(used, WEAK_RIDGE), measured.moments.taste_factor)
    if ridge is None and suited < used:  # scores are far apart
        theta, used = suited_theta, suited
    games = sum(sums(item, count, counts) for item in (votes.first, votes.second))
    prior = prior_variances(1.0 / suited, rarity(np.asarray(games), component))
    weights = np.zeros(len(votes))
    weights[chosen] = weight
    return ManyScores(
        scores=centred(theta, component),
        errors=centred(told.errors(theta, used, measured, rng), component),
        draws=centred(told.posterior(suited_theta, suited, measured, prior, DRAWS, rng), component),
        weights=weights,
        ridge=used,
        spread=math.sqrt(1.0 / suited),
        measured=measured,
        plain=plain,
    )


def _groups(votes: Votes, chosen: Mask | slice) -> dict[str, Codes]:
    """Return the voter and the context of each chosen vote, if known."""
    known = {"voters": votes.voter, "contexts": votes.context}
    return {name: codes[chosen] for name, codes in known.items() if codes is not None}
