"""The posterior of the scores, against integration by brute force."""

import numpy as np
import pytest
from scipy import linalg, optimize, special, stats

from fairduel.votes import Votes, rank
from fairduel.votes.ranking import posterior as module
from fairduel.votes.ranking.design_matrix import Pairs
from fairduel.votes.ranking.posterior import Posterior, rarity
from fairduel.votes.ranking.uncertainty import shrunken_fit


def told(seed=0, items=4, count=60, voters=5, taste=0.0, spread=1.0):
    """Random votes as arguments of ``shrunken_fit``, and their voters."""
    rng = np.random.default_rng(seed)
    first = rng.integers(items, size=count).astype(np.int32)
    second = ((first + rng.integers(1, items, size=count)) % items).astype(np.int32)
    voter = rng.integers(voters, size=count).astype(np.int32)
    own = spread * rng.normal(size=items) + taste * rng.normal(size=(voters, items))
    result = (rng.random(count) < special.expit(own[voter, first] - own[voter, second])).astype(float)
    pairs, row, turned = Pairs.collapse(first, second, items)
    return (pairs, row, np.where(turned, 1.0 - result, result), np.ones(count), np.ones(count)), voter


def moments(draws):
    centred = draws - draws.mean(axis=1, keepdims=True)
    return centred.mean(axis=0), np.cov(centred.T)


@pytest.mark.parametrize("rare", [0.0, 2.0])
def test_draws_are_those_of_a_mixture_of_normal_laws(rare):
    """Weighted by the density of the estimate under each prior, computed directly."""
    arguments, _ = told()
    fit, x = shrunken_fit(*arguments), np.array([rare, 0.0, 0.0, 0.0])
    posterior = Posterior(fit, x)
    noise, weights, means, covariances = fit.uncertainty.sampling, [], [], []
    basis = linalg.null_space(np.ones((1, 4)))  # votes say nothing about the mean
    for spread in module._SPREADS:
        for per_factor in module._RARE_SPREADS if rare else (0.0,):
            prior = np.diag(spread**2 + (per_factor * x) ** 2)
            variance = basis.T @ (fit.kept @ prior @ fit.kept.T + noise) @ basis
            seen = basis.T @ fit.theta
            density = np.exp(-0.5 * seen @ np.linalg.solve(variance, seen)) / np.sqrt(np.linalg.det(variance))
            weights.append(density * spread / (1.0 + spread**2))
            gain = prior @ fit.kept.T @ basis @ np.linalg.inv(variance)
            means.append(gain @ seen)
            covariances.append(prior - gain @ basis.T @ fit.kept @ prior)
    share = np.array(weights) / sum(weights)
    centre = np.eye(4) - 0.25
    mean = centre @ (share @ np.array(means))
    apart = [centre @ each - mean for each in means]
    covariance = sum(
        s * (centre @ c @ centre + np.outer(a, a)) for s, c, a in zip(share, covariances, apart, strict=True)
    )
    found, spread = moments(posterior.draws(200_000, np.random.default_rng(0)))
    np.testing.assert_allclose(found, mean, atol=0.01)
    np.testing.assert_allclose(spread, covariance, atol=0.02)


def test_the_posterior_is_the_exact_one_of_bayes():
    """Two items: integrated over the gap and its spread, without a normal approximation."""
    votes = Votes.from_arrays("ab", [0] * 24, [1] * 24, [1] * 16 + [0] * 8)
    gaps, spreads = np.linspace(-8, 8, 2001)[:, None], np.geomspace(0.02, 8.0, 200)
    likelihood = special.expit(gaps) ** 16 * special.expit(-gaps) ** 8
    prior = np.exp(-0.25 * gaps**2 / spreads**2) / spreads * (spreads / (1.0 + spreads**2))  # gap ~ N(0, 2σ²)
    weight = (likelihood * prior).sum(axis=1)
    exact = weight[gaps[:, 0] > 0].sum() / weight.sum()
    assert rank(votes, draws=20_000).standings[0].best == pytest.approx(exact, abs=0.02)


def test_few_voters_make_the_posterior_wider(monkeypatch):
    """Averaged over τ², which three voters hardly reveal."""
    arguments, voter = told(1, items=2, count=400, voters=3, taste=0.7)
    posterior = Posterior(shrunken_fit(*arguments, groups={"voters": voter}), np.zeros(2))
    wide = moments(posterior.draws(20_000, np.random.default_rng(0)))[1][0, 0]
    monkeypatch.setattr(module, "_TASTES", (1, 1, 1))  # τ² as estimated
    assert moments(posterior.draws(20_000, np.random.default_rng(0)))[1][0, 0] < 0.8 * wide


def test_rare_items_may_lie_far_from_the_others():
    arguments, _ = told(items=6, count=600, spread=0.1)
    fit = shrunken_fit(*arguments)
    alike, apart = (
        moments(Posterior(fit, x).draws(20_000, np.random.default_rng(0)))[1] for x in (np.zeros(6), 4.0 * np.eye(6)[0])
    )
    assert apart[0, 0] > 1.1 * alike[0, 0]
    assert apart[3, 3] == pytest.approx(alike[3, 3], rel=0.2)


def test_rarity_is_relative_to_the_component():
    games = np.array([8.0, 8.0, 1.0, 800.0, 800.0, 100.0])
    x = rarity(games, np.array([1, 1, 1, 0, 0, 0], np.int32))
    np.testing.assert_allclose(x, np.log([1, 1, 4, 1, 1, 4]))


def test_no_chance_of_being_best_is_right_at_every_gap():
    """For two items and f(|z|), z = ĝ/√v: equal items need a mean of ½, others Φ(g/√v); no f is near enough to both."""
    z, gaps = np.linspace(0.0, 8.0, 161), np.concatenate([[0.0], np.linspace(0.05, 5.0, 60)])
    density = stats.norm.pdf(z - gaps[:, None]) + stats.norm.pdf(z + gaps[:, None])
    density /= density.sum(axis=1, keepdims=True)
    right = np.concatenate([[0.5], stats.norm.cdf(gaps[1:])])
    error = np.ones((len(gaps), 1))
    limits = np.block([[density, -error], [-density, -error]])
    found = optimize.linprog(
        np.append(np.zeros(len(z)), 1.0),
        limits,
        np.concatenate([right, -right]),
        bounds=[(0.5, 1.0)] * len(z) + [(0, 1)],
    )
    assert 0.12 < found.fun < 0.13
