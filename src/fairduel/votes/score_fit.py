"""Fit scores to votes: with the features of items, and of votes, if there are any."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from fairduel.duel import Vector
from fairduel.votes.design import Design, Pairs, PairsAndNumbers, with_features
from fairduel.votes.features import Features
from fairduel.votes.robust_fit import Fit, robust_fit
from fairduel.votes.votes import Codes, Mask, Votes


class Effect(NamedTuple):
    """How much a feature per vote decides."""

    feature: str
    coefficient: float
    """Log-odds in favour of the first item, per root mean square of the feature."""
    error: float
    """Its standard error."""


def fitted_scores(
    votes: Votes, counts: Vector, features: Features | None, reliability: Vector | None, **fitting: Any
) -> tuple[Fit, Mask, tuple[Effect, ...]]:
    """Fit the votes that count.

    Returns the fit, whose θ are scores (K,), which votes these are (n,), and the effects of features per vote.
    """
    chosen, count = counts > 0.0, len(votes.items)
    first, second = votes.first[chosen], votes.second[chosen]
    design: Design
    if votes.features is not None:
        numbers = [] if features is None else [features.of(votes, votes.first) - features.of(votes, votes.second)]
        rows = PairsAndNumbers(first, second, np.hstack([*numbers, votes.features])[chosen], count)
        design = rows, np.arange(len(rows)), np.zeros(len(rows), dtype=np.bool_)
    elif features is None:
        design = Pairs.collapse(first, second, count)
    else:
        context = None if votes.context is None else votes.context[chosen]
        design = with_features(first, second, features.values, context)
    differences, row, turned = design
    won = np.where(turned, 1.0 - votes.result[chosen], votes.result[chosen])
    trusted = None if reliability is None else reliability[chosen]
    groups = _groups(votes, chosen)
    fit = robust_fit(differences, row, won, counts[chosen], groups=groups, reliability=trusted, **fitting)
    if differences.dimension == count:
        return fit, chosen, ()
    last = len(votes.feature_names)
    errors = np.sqrt(np.diag(fit.uncertainty.covariance))
    values = (each[len(each) - last :].tolist() for each in (fit.theta, errors))
    effects = tuple(Effect(*effect) for effect in zip(votes.feature_names, *values, strict=True))
    known = np.zeros((count, 0)) if features is None else features.average()
    scores = np.hstack([np.eye(count), known, np.zeros((count, last))])
    mapped = fit.uncertainty.mapped(lambda matrix: scores @ matrix @ scores.T)
    mean, covariance = fit.posterior
    posterior = scores @ mean, scores @ covariance @ scores.T
    return replace(fit, theta=scores @ fit.theta, uncertainty=mapped, posterior=posterior), chosen, effects


def _groups(votes: Votes, chosen: Mask) -> dict[str, Codes]:
    """Return the voter and the context of each chosen vote, if known."""
    known = {"voters": votes.voter, "contexts": votes.context}
    return {name: codes[chosen] for name, codes in known.items() if codes is not None}
