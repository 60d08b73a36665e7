"""Votes needed are enough, half of them are not, and the next duels are the best ones."""

import math

import numpy as np
import pytest
from scipy import special

from fairduel.votes import Votes, rank
from fairduel.votes.reviewing.planning import NEXT_VOTES, choose_duels, difference_variances, plan_votes
from helpers.boards import board

SCORES = [0.5, 0.2, -0.05, -0.65]
FILES = 60


def share_separated(scores, pair, files=FILES, **people):
    """Return how often simulated files tell two items apart, in the right order."""
    apart = 0
    for seed in range(files):
        ranking = rank(board(np.random.default_rng(seed), scores, **people), draws=1000)
        one, other = (ranking.items.index(name) for name in pair)
        apart += ranking.apart[one, other] and ranking.scores[one] > ranking.scores[other]
    return apart / files


def test_the_votes_needed_separate_neighbours_with_80_percent_probability():
    votes = board(np.random.default_rng(3), SCORES, voters=600, each=1)
    pilot = rank(votes)
    need = next(need for need in plan_votes(votes, pilot).needs if not need.separated)
    pair = need.item, need.next_item
    assert 0.68 < share_separated(pilot.scores, pair, voters=need.votes, each=1) < 0.93
    assert share_separated(pilot.scores, pair, voters=need.votes // 2, each=1) < 0.62


def test_more_votes_from_the_same_voters_are_not_enough_where_tastes_differ():
    votes = board(np.random.default_rng(5), SCORES, voters=15, each=60, taste=0.8)
    pilot = rank(votes)
    plan = plan_votes(votes, pilot)
    need = next(need for need in plan.needs if not need.separated)
    taste = math.sqrt(pilot.uncertainty.sources[0].variance)
    assert need.fewest_voters > 15
    source, places = pilot.uncertainty.sources[0], [[pilot.items.index(n)] for n in (need.item, need.next_item)]
    [shared] = source.variance * difference_variances(source.covariance, *places)
    assert need.fewest_voters == pytest.approx(need.voters * shared / need.error**2, abs=1.0)
    assert "More votes from the same voters cannot do it" in " ".join(plan.sentences)
    pair = need.item, need.next_item
    enough = share_separated(pilot.scores, pair, 40, voters=int(need.voters), each=60, taste=taste)
    assert 0.62 < enough < 0.95
    assert share_separated(pilot.scores, pair, 40, voters=15, each=600, taste=taste) < 0.5 * enough


def test_separated_neighbours_and_equal_ones():
    votes = Votes.from_arrays("abc", [0, 1, 2, 2] * 50, [1, 0, 1, 0] * 50, [1, 0, 0.5, 0] * 50)
    first, second = plan_votes(votes, rank(votes)).needs
    assert (first.separated, second.separated) == (True, False)
    assert math.isinf(second.votes) or second.votes > 1e6
    assert math.isnan(first.voters)


def test_a_clear_board_has_nothing_to_ask():
    votes = Votes.from_arrays("ab", [0] * 200, [1] * 200, [1] * 180 + [0] * 20)
    plan = plan_votes(votes, rank(votes))
    assert (len(plan.duels), plan.worth, plan.separated) == (0, 0.0, 1)
    assert plan.sentences == ["Joint ranges separate 1 of 1 pair of neighbours."]


def best_by_hand(slope, covariance, contrasts, weights):
    """Try every pair with a full inverse."""
    best, found = math.inf, None
    precision = np.linalg.inv(covariance)
    for one, other in np.argwhere(slope > 0.0):
        difference = np.eye(len(slope))[one] - np.eye(len(slope))[other]
        after = np.linalg.inv(precision + slope[one, other] * np.outer(difference, difference))
        value = weights @ difference_variances(after, *contrasts.T) / weights.sum()
        if value < best - 1e-12:
            best, found = value, (one, other)
    return found, best


@pytest.mark.parametrize("seed", range(8))
def test_the_next_duel_is_the_best_of_all_tried(seed):
    rng = np.random.default_rng(seed)
    parts = rng.normal(size=(7, 7))
    covariance = parts @ parts.T / 7.0 + 0.01 * np.eye(7)
    slope = np.triu(rng.uniform(0.05, 0.25, (7, 7)), 1)
    contrasts, weights = np.array([[0, 1], [0, 2], [0, 5]]), rng.random(3)
    asked, _, after = choose_duels(slope, covariance, contrasts, weights, 1)
    expected, value = best_by_hand(slope, covariance, contrasts, weights)
    assert (tuple(asked[0]), after) == (expected, pytest.approx(value))


def test_the_variance_after_all_duels_is_that_of_a_full_inverse():
    rng = np.random.default_rng(9)
    slope, covariance = np.triu(np.full((5, 5), 0.2), 1), np.diag(rng.uniform(0.2, 2.0, 5))
    contrasts, weights = np.array([[0, 1], [0, 3]]), np.array([2.0, 1.0])
    asked, before, after = choose_duels(slope, covariance, contrasts, weights, 20)
    differences = np.eye(5)[asked[:, 0]] - np.eye(5)[asked[:, 1]]
    refitted = np.linalg.inv(np.linalg.inv(covariance) + 0.2 * differences.T @ differences)
    for matrix, value in ((covariance, before), (refitted, after)):
        assert weights @ difference_variances(matrix, *contrasts.T) / 3.0 == pytest.approx(value)


def test_the_next_duels_are_worth_what_is_said():
    """Votes on them, and as many as said of the old mixture, give the leader's margin the same error."""
    votes = board(np.random.default_rng(4), [0.4, 0.35, 0.3, 0.0, -0.3, -0.7], voters=600, each=1)
    ranking = rank(votes, weights="none")
    plan = plan_votes(votes, ranking)
    assert plan.duels["votes"].sum() == NEXT_VOTES
    assert plan.worth > 2.0 * NEXT_VOTES
    rng = np.random.default_rng(5)

    def with_more(first, second):
        chance = special.expit(ranking.scores[first] - ranking.scores[second])
        result = (rng.random(len(first)) < chance).astype(float)
        parts = [(votes.first, first), (votes.second, second), (votes.result, result)]
        more = rank(Votes.from_arrays(votes.items, *map(np.concatenate, parts)), weights="none", ridge=1.0)
        rivals = [s for s in ranking.standings[1:] if not ranking.tells_apart(ranking.standings[0].item, s.item)]
        one = [votes.items.index(ranking.standings[0].item)] * len(rivals)
        other = [votes.items.index(rival.item) for rival in rivals]
        return np.average(difference_variances(more.covariance, one, other), weights=[r.best for r in rivals])

    names = {name: place for place, name in enumerate(votes.items)}
    asked = [(names[first], names[second]) for first, second, times, _ in plan.duels.rows() for _ in range(times)]
    extra = rng.integers(len(votes), size=round(plan.worth))
    same_mixture = with_more(votes.first[extra], votes.second[extra])
    assert with_more(*np.array(asked, dtype=np.int32).T) == pytest.approx(same_mixture, rel=0.1)


def test_groups_that_were_never_compared_are_asked_separately():
    votes = Votes.from_arrays("abcd", [0, 2] * 30, [1, 3] * 30, [1, 1, 0, 0, 1, 0] * 10)
    plan = plan_votes(votes, rank(votes))
    assert len(plan.needs) == 2
    assert {frozenset(row[:2]) for row in plan.duels.rows()} <= {frozenset("ab"), frozenset("cd")}
