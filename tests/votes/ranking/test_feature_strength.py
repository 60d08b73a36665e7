import numpy as np
import pytest
from scipy import optimize, special, stats

from fairduel.votes import Votes, rank
from fairduel.votes.ranking.design_matrix import Rows, with_features
from fairduel.votes.ranking.preference_model import RobustPreferenceModel
from fairduel.votes.ranking.score_fit import feature_strength
from fairduel.votes.reading.features import scaled


def poll(own, seed, items=60, votes=240):
    """Scores that features explain but for an own part of this size; votes, features and true scores."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(items, 3))
    scores = features @ np.array([1.0, -0.7, 0.4]) + own * rng.normal(size=items)
    first = rng.integers(items, size=votes)
    second = (first + rng.integers(1, items, size=votes)) % items
    result = (rng.random(votes) < special.expit(scores[first] - scores[second])).astype(float)
    return Votes.from_arrays([str(k) for k in range(items)], first, second, result), features, scores


def rows_of(votes, features):
    rows, row, turned = with_features(votes.first, votes.second, features)
    won = np.where(turned, 1.0 - votes.result, votes.result)
    return rows, np.bincount(row).astype(float), np.bincount(row, won)


def log_evidence(rows, items, counted, wins, ridges):
    """Laplace's approximation to the marginal likelihood, by brute force."""
    ridge = np.where(np.arange(rows.dimension) < items, *ridges)

    def loss(theta):
        margins = rows.values @ theta
        return np.logaddexp(0.0, margins) @ counted - margins @ wins + 0.5 * ridge @ theta**2

    theta = optimize.minimize(loss, np.zeros(rows.dimension), method="BFGS").x
    chance = special.expit(rows.values @ theta)
    hessian = rows.information(counted * chance * (1 - chance)) + np.diag(ridge)
    return -loss(theta) + 0.5 * np.log(ridge).sum() - 0.5 * np.linalg.slogdet(hessian)[1]


def test_the_strength_is_close_to_the_best_by_a_grid_of_the_marginal_likelihood():
    votes, features, _ = poll(own=0.7, seed=1, items=15, votes=300)
    told = rows_of(votes, features)
    found = feature_strength(told[0], 15, *told[1:])
    grid = np.geomspace(0.1, 10.0, 9)
    best = max((log_evidence(told[0], 15, *told[1:], (a, b)), np.sqrt(a / b)) for a in grid for b in grid)[1]
    assert np.log(found) == pytest.approx(np.log(best), abs=0.7)


def test_strength_does_not_depend_on_the_unit_of_the_features():
    votes, features, _ = poll(own=0.5, seed=2)
    one, counted, wins = rows_of(votes, features)
    other = Rows(one.values * np.where(np.arange(one.dimension) < 60, 1.0, 0.1))
    assert feature_strength(other, 60, counted, wins) == pytest.approx(
        10.0 * feature_strength(one, 60, counted, wins), rel=0.1
    )


def test_features_count_more_the_more_they_explain():
    strengths = []
    for own in (0.0, 0.7, 3.0):
        votes, features, _ = poll(own, seed=3, votes=1200)
        rows, counted, wins = rows_of(votes, features)
        strengths.append(feature_strength(rows, 60, counted, wins))
    assert strengths == sorted(strengths, reverse=True)
    assert strengths[0] > 2.0 * strengths[-1]


def test_features_and_items_together_beat_either_alone():
    taus = []
    for seed in range(8):
        votes, features, scores = poll(own=0.6, seed=seed)
        both, items = rank(votes, features=scaled(features, votes), draws=100), rank(votes, draws=100)
        least = np.linalg.lstsq(features, items.scores, rcond=None)[0]
        taus.append([stats.kendalltau(each, scores)[0] for each in (both.scores, items.scores, features @ least)])
    both, items, alone = np.mean(taus, axis=0)
    assert both > items + 0.05
    assert both > alone + 0.02


def test_items_that_features_place_have_ranges_that_hold():
    held = []
    for seed in range(6):
        votes, features, scores = poll(own=0.6, seed=100 + seed)
        found = {each.item: each for each in rank(votes, features=scaled(features, votes), draws=1000).standings}
        largest = votes.components() == 0
        place = 1 + (scores[largest] > scores[largest][:, None]).sum(axis=1)
        names = np.array(votes.items)[largest]
        held += [found[name].own_low <= at <= found[name].own_high for name, at in zip(names, place, strict=True)]
    assert np.mean(held) > 0.93


def test_items_without_votes_have_ranges_that_hold():
    """They are where their features put them, and as far from there as the others are."""
    held = []
    for seed in range(6):
        rng = np.random.default_rng(500 + seed)
        features = rng.normal(size=(60, 3))
        scores = features @ np.array([1.0, -0.7, 0.4]) + 1.2 * rng.normal(size=60)
        features /= np.linalg.norm(features, axis=1).max()
        first = rng.integers(45, size=600)  # nobody votes on the last 15
        second = (first + rng.integers(1, 45, size=600)) % 45
        won = (rng.random(600) < special.expit(scores[first] - scores[second])).astype(int)
        model = RobustPreferenceModel(inputs="pairs", features=features, items=np.arange(60))
        model.fit(np.column_stack([first, second]), won)
        new, old = (each.ravel() for each in np.meshgrid(np.arange(45, 60), np.arange(0, 45, 5)))
        apart = np.hstack([np.eye(60), features])
        apart = apart[new] - apart[old]
        error = np.sqrt(np.einsum("nd,de,ne->n", apart, model.covariance_, apart))
        held.append(np.abs(apart @ model.coef_ - (scores[new] - scores[old])) < 1.96 * error)
    assert 0.9 < np.mean(held) < 0.99
