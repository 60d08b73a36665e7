"""Sparse matrices and draws against K × K matrices: the same formulas, so they must agree within Monte Carlo error."""

import numpy as np
import pytest

from fairduel.errors import BadInputError, ConvergenceError
from fairduel.votes import Votes, rank
from fairduel.votes.ranking import answers as answering
from fairduel.votes.ranking import estimates
from fairduel.votes.ranking.bradley_terry import fit_scores, wins
from fairduel.votes.ranking.design_matrix import Pairs
from fairduel.votes.ranking.many_items import ManyTold, laplacian, plain_scores, solve_sparse
from fairduel.votes.ranking.score_fit import many_scores
from helpers.populations import population


def drawn(kind="tastes", items=60, votes=2500, voters=40, seed=0):
    return population(kind, items=items, votes=votes, voters=voters, seed=seed).votes


@pytest.fixture
def both(monkeypatch):
    """Call with votes to rank them with dense and with sparse matrices."""

    def ranked(votes, **settings):
        dense = rank(votes, **settings)
        monkeypatch.setattr(estimates, "MOST_DENSE", 10)
        sparse = rank(votes, **settings)
        monkeypatch.undo()
        assert sparse.gaps.covariance is None
        return dense, sparse

    return ranked


def by_item(ranking, name):
    found = {each.item: getattr(each, name) for each in ranking.standings}
    return np.array([found[item] for item in ranking.items], dtype=np.float64)


@pytest.mark.parametrize("kind", ["clean", "tastes", "prompts", "ties", "separation"])
def test_sparse_and_dense_matrices_agree(both, kind):
    dense, sparse = both(drawn(kind))
    # if scores are far apart, the votes choose the ridge, with random vectors where there are many items
    assert sparse.scores == pytest.approx(dense.scores, abs=0.02 if kind == "separation" else 1e-5)
    assert by_item(sparse, "plain_score") == pytest.approx(by_item(dense, "plain_score"), abs=1e-4)
    for name in ("games", "wins", "mean_weight", "plain_rank", "component"):
        assert by_item(sparse, name) == pytest.approx(by_item(dense, name))
    ratio = by_item(sparse, "error") / by_item(dense, "error")
    assert ratio.mean() == pytest.approx(1.0, abs=0.02)  # 500 draws: ±3% each
    assert np.abs(ratio - 1.0).max() < 0.15
    assert by_item(sparse, "best") == pytest.approx(by_item(dense, "best"), abs=0.08)
    assert sparse.settings["ridge"] == pytest.approx(dense.settings["ridge"], rel=0.1)
    for name in ("own_low", "own_high"):
        assert np.abs(by_item(sparse, name) - by_item(dense, name)).mean() < 1.5
    assert np.abs(sparse.covariance - dense.covariance).max() < 1e-9  # computed when asked for


def test_joint_ranges_and_candidates_of_many_items_are_wider_but_not_much(both, monkeypatch):
    monkeypatch.setattr(answering, "_MOST_DRAWN", 10)
    dense, sparse = both(drawn("clean", votes=12_000))
    widths = [by_item(each, "rank_high") - by_item(each, "rank_low") for each in (dense, sparse)]
    assert widths[0].mean() < widths[1].mean() < 1.25 * widths[0].mean()
    count = [by_item(each, "candidate").sum() for each in (dense, sparse)]
    assert 1 <= count[0] <= count[1] + 1


def test_weights_by_reliability_and_groups_agree(both):
    votes = drawn("groups", items=40)
    reliability = np.random.default_rng(0).choice([0.0, 0.3, 1.0], size=len(votes), p=[0.1, 0.3, 0.6])
    dense, sparse = both(votes, reliability=reliability)
    assert sparse.scores == pytest.approx(dense.scores, abs=1e-5)
    assert (by_item(sparse, "error") / by_item(dense, "error")).mean() == pytest.approx(1.0, abs=0.02)
    assert (sparse.weights == dense.weights).all()


def test_draws_from_the_posterior_have_its_mean_and_covariance():
    votes, rng = drawn("clean", items=12, votes=600), np.random.default_rng(0)
    pairs, row, turned = Pairs.collapse(votes.first, votes.second, 12)
    won = np.where(turned, 1.0 - votes.result, votes.result)
    told = ManyTold.of(pairs, row, won, np.ones(600), np.ones(600), {})
    theta, prior = told.estimate(0.5)[0], np.linspace(0.5, 2.0, 12)
    chance = 1 / (1 + np.exp(-pairs.margins(theta)))
    information = pairs.information(told.rows.counted * chance * (1 - chance))
    covariance = np.linalg.inv(information + np.diag(1 / prior))
    draws = told.posterior(theta, 0.5, told.tastes(theta, 0.5), prior, 8000, rng)
    assert draws.mean(axis=0) == pytest.approx(covariance @ (information + 0.5 * np.eye(12)) @ theta, abs=0.03)
    assert np.abs(np.cov(draws.T) / covariance - 1.0).max() < 0.12


def test_ranges_of_many_items_hold():
    missed, own, lost = 0, [], 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        truth = rng.normal(size=1100)
        first = rng.integers(1100, size=12_000)
        second = (first + rng.integers(1, 1100, size=12_000)) % 1100
        result = rng.random(12_000) < 1 / (1 + np.exp(truth[second] - truth[first]))
        made = rank(Votes.from_arrays([str(k) for k in range(1100)], first, second, result))
        place = 1 + (truth > truth[:, None]).sum(axis=1)
        low, high, own_low, own_high = (
            by_item(made, name) for name in ("rank_low", "rank_high", "own_low", "own_high")
        )
        missed += bool(((place < low) | (place > high)).any())
        own.append(np.mean((own_low <= place) & (place <= own_high)))
        lost += not by_item(made, "candidate")[truth.argmax()]
    assert (missed, lost) == (0, 0)
    assert np.mean(own) > 0.94


def test_conjugate_gradients_solve_a_singular_system_that_has_a_solution():
    rng = np.random.default_rng(0)
    low = rng.integers(49, size=200)
    pairs, row, _ = Pairs.collapse(low, rng.integers(low + 1, 50), 50)
    matrix = laplacian(pairs, 1.0 + rng.random(len(pairs)))
    assert np.abs(matrix.toarray() - pairs.information(-matrix.toarray()[pairs.first, pairs.second])).max() < 1e-12
    values = matrix @ rng.normal(size=(50, 3))
    assert matrix @ solve_sparse(matrix, values, 1e-10) == pytest.approx(values, abs=1e-8)
    assert len(row) == 200


def test_plain_scores_are_those_of_dense_matrices_with_and_without_a_finite_estimate():
    for votes in (30, 90, 600):
        drawn_votes = drawn("clean", items=12, votes=votes)
        pairs, row, turned = Pairs.collapse(drawn_votes.first, drawn_votes.second, 12)
        won = np.where(turned, 1.0 - drawn_votes.result, drawn_votes.result)
        counted, won = np.bincount(row).astype(float), np.bincount(row, won)
        found, expected = plain_scores(pairs, counted, won), fit_scores(wins(drawn_votes))
        assert found.why == expected.why
        assert found.scores == pytest.approx(expected.scores, abs=1e-5)


def test_features_and_unequal_weights_still_need_dense_matrices(monkeypatch):
    monkeypatch.setattr(estimates, "MOST_DENSE", 10)
    assert rank(drawn(items=12), weights="fixed-point").gaps.covariance is not None


def test_what_needs_all_pairs_is_refused_for_too_many_items():
    count = 5001
    one = np.arange(count - 1)
    votes = Votes.from_arrays([str(k) for k in range(count)], one, one + 1, np.ones(count - 1))
    ranking = rank(votes)
    assert len(ranking.standings) == count
    assert "1,000 items" in ranking.notes[-1]
    with pytest.raises(BadInputError, match="at most 5,000"):
        _ = ranking.covariance


def test_many_scores_without_a_finite_estimate_need_a_ridge():
    votes = Votes.from_arrays("abc", [0, 0, 1], [1, 2, 2], [1, 1, 1])
    with pytest.raises(ConvergenceError):
        many_scores(votes, "half", None, 0.0, np.random.default_rng(0))
