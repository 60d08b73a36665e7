import math

import numpy as np
import pytest
from scipy import stats

from fairduel.votes import Votes, rank
from fairduel.votes.ranking import intervals
from fairduel.votes.ranking.answers import Gaps, answers, normal_quantile

NO_STRETCH = np.ones(1)


@pytest.fixture
def at_one_look(monkeypatch):
    """Items are told apart at one look, whether or not that lasts."""
    monkeypatch.setattr(intervals, "_LASTING", -math.inf)


def covariance_of(count, popularity=None):
    """Of scores from 40 votes per item; items are drawn in proportion to their popularity."""
    share = np.ones(count) if popularity is None else np.asarray(popularity)
    games = np.outer(share, share)
    np.fill_diagonal(games, 0.0)
    information = 40.0 * count * 0.25 * games / games.sum()
    laplacian = np.diag(information.sum(axis=1)) - information
    return np.linalg.pinv(laplacian + laplacian.T)


def half_of(covariance):
    values, vectors = np.linalg.eigh(covariance)
    return (vectors * np.sqrt(np.maximum(values, 0.0))).T


def answered(truth, covariance, times, seed, draws=1500):
    """Answers to ``times`` files whose scores have this truth and covariance."""
    rng, half = np.random.default_rng(seed), half_of(covariance)
    errors, component = rng.normal(size=(draws, len(truth))) @ half, np.zeros(len(truth), np.int32)
    for _ in range(times):
        scores = truth + rng.normal(size=len(truth)) @ half
        yield answers(Gaps(scores, component, errors, covariance), NO_STRETCH)


def true_ranks(truth):
    return 1 + (truth > truth[:, None]).sum(axis=1)


@pytest.mark.parametrize("popularity", [np.ones(6), [1, 1, 1, 1, 1, 0.1]], ids=["alike", "with a newcomer"])
def test_the_best_item_is_ruled_out_in_five_percent_of_files_when_all_are_equal(popularity):
    found = [each.candidate for each in answered(np.zeros(6), covariance_of(6, popularity), 500, seed=1)]
    ruled_out = 1.0 - np.mean(found, axis=0)  # each of the six is the best
    assert 0.035 < ruled_out.mean() < 0.06
    assert ruled_out[-1] < 0.075


@pytest.mark.usefixtures("at_one_look")
def test_items_far_behind_cost_the_candidates_nothing():
    """With ten items far behind, the two best are compared as if they were alone: at 5% and not at 5%/11."""
    truth = np.concatenate([[8.0, 8.0], np.zeros(10)])
    found = np.array([each.candidate for each in answered(truth, covariance_of(12), 400, seed=2)])
    assert not found[:, 2:].any()
    assert 0.025 < 1.0 - found[:, :2].mean() < 0.07
    alone = np.array([each.candidate for each in answered(np.zeros(2), covariance_of(2), 400, seed=2)])
    assert found[:, :2].sum(axis=1).mean() == pytest.approx(alone.sum(axis=1).mean(), abs=0.06)


@pytest.mark.parametrize("popularity", [np.ones(8), [1, 1, 1, 1, 1, 1, 1, 0.1]], ids=["alike", "with a newcomer"])
def test_own_ranges_miss_five_percent_on_average_when_all_items_are_equal(popularity):
    """The order is drawn anew for each file, because items that are exactly equal have none."""
    rng, missed = np.random.default_rng(3), []
    for found in answered(np.zeros(8), covariance_of(8, popularity), 600, seed=3):
        place = rng.permutation(8) + 1
        missed.append(np.mean((place < found.own_low) | (place > found.own_high)))
    assert 0.022 < np.mean(missed) < 0.056  # 5% × 7/8, less what candidates do not miss: their ranges begin at 1


@pytest.mark.parametrize("items", [2, 5])
def test_an_item_is_surely_first_if_and_only_if_no_other_may_be(items):
    """Otherwise one row would say that it is first, and the next that another item may be."""
    truth = np.r_[0.25, np.zeros(items - 1)]
    seen = set()
    for found in answered(truth, covariance_of(items), 300, seed=2):
        is_alone = found.candidate.sum() == 1
        assert ((found.own_high == 1).sum() == 1) == is_alone
        assert (found.own_low <= found.own_high).all()
        seen.add(bool(is_alone))
    assert seen == {True, False}


@pytest.mark.parametrize("spread", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("shape", ["even", "clusters", "one ahead"])
def test_own_ranges_hold_on_average_at_any_spread_of_scores(spread, shape):
    truth = {
        "even": np.linspace(1.0, -1.0, 9),
        "clusters": np.repeat([1.0, 0.0, -1.0], 3) + 1e-6 * np.arange(9),
        "one ahead": np.r_[1.0, 1e-6 * np.arange(8)],
    }[shape] * spread
    rank_of_each = true_ranks(truth)
    held = [
        (found.own_low <= rank_of_each) & (rank_of_each <= found.own_high)
        for found in answered(truth, covariance_of(9), 120, seed=4)
    ]
    assert np.mean(held) > 0.94


@pytest.mark.usefixtures("at_one_look")
def test_tiers_are_wrong_in_five_percent_of_files_with_two_equal_items():
    wrong = [each.tier.max() > 1 for each in answered(np.zeros(2), covariance_of(2), 1500, seed=5)]
    assert 0.037 < np.mean(wrong) < 0.067


@pytest.mark.parametrize("truth", [np.zeros(7), np.repeat([6.0, 3.0, 0.0], 2), np.array([5.0, 0.0, 0.0, 0.0])])
def test_all_tiers_hold_with_95_percent_confidence(truth):
    equal = truth[:, None] <= truth
    wrong = [
        (equal & (each.tier[:, None] < each.tier)).any() for each in answered(truth, covariance_of(len(truth)), 400, 6)
    ]
    assert np.mean(wrong) < 0.08


def test_tiers_use_the_whole_level_on_neighbours_of_the_true_order():
    """Pairs of equal items far apart: each pair may be cut in the wrong direction, at 5%/5."""
    truth = np.repeat([12.0, 6.0, 0.0], 2)
    wrong = [(each.tier[::2] != each.tier[1::2]).any() for each in answered(truth, covariance_of(6), 1500, seed=7)]
    assert 0.02 < np.mean(wrong) < 0.042  # 3 pairs × 1%


@pytest.mark.usefixtures("at_one_look")
def test_a_variance_known_from_few_voters_makes_tiers_wider():
    """Variances as estimated with 4 degrees of freedom: their draws keep the level, which a normal quantile misses."""
    rng, covariance = np.random.default_rng(8), covariance_of(2)
    half, wrong = half_of(covariance), {"drawn": 0, "ignored": 0}
    for _ in range(1200):
        told = rng.chisquare(4) / 4
        scores = rng.normal(size=2) @ half
        stretches = 4 / rng.chisquare(4, size=400)
        gaps = Gaps(scores, np.zeros(2, np.int32), rng.normal(size=(400, 2)) @ half, told * covariance)
        wrong["drawn"] += answers(gaps, stretches).tier.max() > 1
        wrong["ignored"] += answers(gaps, NO_STRETCH).tier.max() > 1
    assert 0.035 < wrong["drawn"] / 1200 < 0.067
    assert wrong["ignored"] / 1200 > 0.1


def test_quantiles_of_stretched_errors_are_those_of_students_distribution():
    rng = np.random.default_rng(0)
    stretches = 6 / rng.chisquare(6, size=200_000)
    for chance in (0.05, 0.001):
        assert normal_quantile(chance, stretches) == pytest.approx(stats.t.isf(chance, 6), rel=0.02)


def test_groups_are_answered_one_by_one():
    truth = np.array([3.0, 0.0, 3.0, 0.0])
    covariance = np.kron(np.eye(2), covariance_of(2))
    component = np.array([0, 0, 1, 1], np.int32)
    errors = np.random.default_rng(0).normal(size=(1000, 4)) @ half_of(covariance)
    found = answers(Gaps(truth, component, errors, covariance), NO_STRETCH)
    assert found.candidate.tolist() == [True, False, True, False]
    assert found.tier.tolist() == found.own_low.tolist() == found.own_high.tolist() == [1, 2, 1, 2]


def test_what_another_statistic_tells_apart_counts():
    covariance, errors = np.eye(3) * 100.0, 10.0 * np.random.default_rng(0).normal(size=(1000, 3))
    above = np.zeros((3, 3), np.bool_)
    above[0, 1:] = True
    found = answers(Gaps(np.array([2.0, 1.0, 0.0]), np.zeros(3, np.int32), errors, covariance, above), NO_STRETCH)
    assert found.candidate.tolist() == [True, False, False]
    assert (found.own_high[0], found.own_low.tolist(), found.tier.tolist()) == (1, [1, 2, 2], [1, 2, 2])


def test_a_ranking_has_answers_that_are_narrower_than_its_joint_ranges():
    rng = np.random.default_rng(9)
    truth, votes = np.linspace(1.5, -1.5, 12), 900
    first = rng.integers(12, size=votes)
    second = (first + rng.integers(1, 12, size=votes)) % 12
    result = rng.random(votes) < 1 / (1 + np.exp(truth[second] - truth[first]))
    voters = [str(number) for number in range(30)]
    votes = Votes.from_arrays(
        [f"i{k}" for k in range(12)], first, second, result, voter=rng.integers(30, size=votes), voters=voters
    )
    ranking = rank(votes)
    for each in ranking.standings:
        assert each.rank_low <= each.own_low <= each.rank <= each.own_high <= each.rank_high
        assert each.candidate == (each.own_low == 1)
    assert ranking.standings[0].candidate
    tiers = [each.tier for each in ranking.standings]
    assert tiers == sorted(tiers)
    assert ranking.verdicts[0].items == tuple(each.item for each in ranking.standings if each.candidate)
    assert sum(map(len, ranking.verdicts[0].tiers)) == 12


@pytest.mark.parametrize("variance", [0.01, 0.3])
def test_two_equal_items_are_told_apart_by_all_answers_or_none_and_seldom(variance):
    covariance, rng = np.diag([variance, variance]) / 2.0, np.random.default_rng(9)
    errors, component, apart = rng.normal(size=(1000, 2)) @ half_of(covariance), np.zeros(2, np.int32), 0
    for scores in rng.normal(size=(1000, 2)) @ half_of(covariance):
        found = answers(Gaps(scores, component, errors, covariance), NO_STRETCH)
        clear = abs(scores[0] - scores[1]) / np.sqrt(variance) > 3.0
        assert found.tier.max() == 1 or not found.candidate.all()
        assert found.candidate.sum() == 1 or not clear
        apart += not found.candidate.all()
    assert 0 < apart < 45  # 100 if only one look counted
