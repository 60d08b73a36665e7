"""Rival models: closed forms, gradients and recovery of the truth."""

import numpy as np
import pytest
from benchmarks.rivals import RIVALS, am_elo_loss, crowd_bt_loss, plain, rank_centrality
from scipy import optimize

from fairduel.votes import Votes
from fairduel.votes.attacking.injection import inject
from fairduel.votes.attacking.liars import ITEMS, arena

VOTES, _ = arena(voters=40, liars={"inverters": 2}, taste=0.0, seed=4)
SCORES = 1.2 * np.random.default_rng(np.random.SeedSequence(4).spawn(3)[0]).standard_normal(len(ITEMS))


@pytest.mark.parametrize("name", RIVALS)
def test_the_truth_is_recovered_from_clean_votes(name):
    scores = RIVALS[name](VOTES)
    assert abs(scores.mean()) < 1e-9
    assert np.corrcoef(scores, SCORES)[0, 1] > 0.95


@pytest.mark.parametrize("name", RIVALS)
def test_groups_without_votes_between_them_are_centred_one_by_one(name):
    votes = Votes.from_arrays("abcd", [0, 0, 1, 2, 2, 3], [1, 1, 0, 3, 3, 2], [1, 1, 1, 1, 1, 1])
    scores = RIVALS[name](votes)
    np.testing.assert_allclose(scores[[0, 2]], -scores[[1, 3]], atol=1e-6)
    assert scores[0] > 0.0


@pytest.mark.parametrize("loss_of", [am_elo_loss, crowd_bt_loss])
def test_gradients(loss_of):
    loss = loss_of(VOTES)
    point = loss.start + 0.3 * np.random.default_rng(0).standard_normal(len(loss.start))
    expected = optimize.approx_fprime(point, lambda at: loss.of(at)[0], 1e-6)
    np.testing.assert_allclose(loss.of(point)[1], expected, atol=2e-3)


@pytest.mark.parametrize("name", ["crowd-bt", "am-elo", "reliability"])
def test_voters_who_invert_are_discounted(name):
    attacked = inject(VOTES, "inverters", size=len(VOTES) // 4, voters=10, seed=1).votes
    fit = {model: np.corrcoef(RIVALS[model](attacked), SCORES)[0, 1] for model in ("plain", name)}
    assert fit[name] > fit["plain"]


def test_rank_centrality_of_two_items():
    votes = Votes.from_arrays("ab", [0] * 4, [1] * 4, [1, 1, 1, 0])
    odds = np.log(3.5 / 1.5)  # one vote is added, half for each
    np.testing.assert_allclose(rank_centrality(votes), [odds / 2, -odds / 2])


def test_rank_centrality_of_exact_shares_is_bradley_terry():
    theta = np.array([0.7, 0.1, -0.8])
    first, second = np.array([0, 0, 1]), np.array([1, 2, 2])
    share = 1.0 / (1.0 + np.exp(theta[second] - theta[first]))
    won, size = np.tile([1.0, 0.0], 3), 1e9
    weight = size * np.stack([share, 1.0 - share], axis=1).ravel()
    votes = Votes.from_arrays("abc", np.repeat(first, 2), np.repeat(second, 2), won, weight=weight)
    np.testing.assert_allclose(rank_centrality(votes), theta, atol=1e-6)


def test_the_spectral_filter_removes_those_who_contradict_the_majority():
    attacked = inject(VOTES, "inverters", size=len(VOTES) // 12, voters=1, seed=1).votes
    np.testing.assert_allclose(RIVALS["spectral"](attacked), RIVALS["spectral"](VOTES), atol=1e-9)
    assert np.abs(plain(attacked) - plain(VOTES)).max() > 0.05
