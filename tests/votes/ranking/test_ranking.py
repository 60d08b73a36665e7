import math

import numpy as np
import pytest
from scipy import special, stats

from fairduel import BadInputError
from fairduel.votes import Votes, rank, read_features
from fairduel.votes.ranking.bradley_terry import fit_scores, wins
from fairduel.votes.ranking.intervals import chances_of_best, rank_intervals, score_reach
from fairduel.votes.ranking.rank import summarise
from fairduel.votes.ranking.uncertainty import Moments, Spread, Uncertainty
from fairduel.votes.reading.features import scaled


def votes_between(strength, count=600, seed=0, voters=40, names=None):
    rng = np.random.default_rng(seed)
    items = len(strength)
    first = rng.integers(items, size=count)
    second = (first + rng.integers(1, items, size=count)) % items
    won = rng.random(count) < special.expit(np.subtract(strength[first], strength[second]))
    return Votes.from_arrays(
        names or [f"item {i}" for i in range(items)],
        first,
        second,
        won.astype(float),
        voter=rng.integers(voters, size=count),
        voters=[f"voter {v}" for v in range(voters)],
    )


STRENGTH = np.array([-1.0, 2.0, 0.05, 0.0])


def test_standings_hold_together():
    votes = votes_between(STRENGTH)
    ranking = rank(votes)
    assert [s.rank for s in ranking.standings] == [1, 2, 3, 4]
    assert ranking.standings[0].item == "item 1"
    assert sum(s.best for s in ranking.standings) == pytest.approx(1.0)
    assert sum(s.wins for s in ranking.standings) == 600
    assert sum(s.games for s in ranking.standings) == 1200
    for s in ranking.standings:
        place = votes.items.index(s.item)
        assert s.rank_low <= s.rank <= s.rank_high
        assert s.chance == pytest.approx(special.expit(s.score))
        assert s.error == pytest.approx(math.sqrt(ranking.covariance[place, place]))
        assert s.score == ranking.scores[place]
        assert s.score_low < s.score < s.score_high
        assert s.best_error == pytest.approx(math.sqrt(s.best * (1 - s.best) / 10_000))
        mine = (votes.first == place) | (votes.second == place)
        assert s.mean_weight == pytest.approx(ranking.weights[mine].mean())
        assert s.games == mine.sum()
    assert ranking.scores.mean() == pytest.approx(0.0, abs=1e-12)
    assert ranking.to_frame().columns[:4] == ["item", "component", "group", "rank"]


def test_weights_none_without_a_ridge_is_plain_bradley_terry():
    votes = votes_between(STRENGTH)
    ranking = rank(votes, weights="none", ridge=0.0)
    np.testing.assert_allclose(ranking.scores, fit_scores(wins(votes)).scores, atol=1e-9)
    assert all(s.rank == s.plain_rank and s.score == pytest.approx(s.plain_score) for s in ranking.standings)


def test_the_same_seed_is_the_same_ranking():
    votes = votes_between(STRENGTH)
    assert rank(votes, seed=3).standings == rank(votes, seed=3).standings


def intervals(scores, covariance, draws, rng, component=None):
    errors = rng.multivariate_normal(np.zeros(len(scores)), covariance, size=draws, method="svd")
    component = np.zeros(len(scores), np.int32) if component is None else component
    return rank_intervals(scores, covariance, errors, component)


def test_the_chance_of_being_best_is_that_of_a_normal_law():
    scores, covariance = np.array([0.2, 0.0]), np.array([[0.05, -0.05], [-0.05, 0.05]])
    draws = np.random.default_rng(0).multivariate_normal(scores, covariance, size=100_000, method="svd")
    best = chances_of_best(draws, np.zeros(2, np.int32))
    assert best[0] == pytest.approx(stats.norm.cdf(0.2 / math.sqrt(0.2)), abs=0.005)


def newcomer(seed, games=30):
    """An arena of 20 items, and a better one that has just arrived."""
    rng = np.random.default_rng(seed)
    scores = np.append(0.5 * rng.normal(size=19), 1.8)
    first = rng.integers(19, size=4000)
    second = (first + rng.integers(1, 19, size=4000)) % 19
    first, second = np.append(first, np.full(games, 19)), np.append(second, rng.integers(19, size=games))
    won = (rng.random(len(first)) < special.expit(scores[first] - scores[second])).astype(float)
    return Votes.from_arrays([f"i{k}" for k in range(20)], first, second, won), scores


def test_a_better_newcomer_is_first_and_its_probability_says_so():
    """Weights by uncertainty bury it; so does a prior under which all items are alike."""
    first, buried, said = [], [], []
    for seed in range(12):
        votes, _ = newcomer(seed)
        ranking = rank(votes, draws=1000)
        places = {standing.item: standing for standing in ranking.standings}
        first.append(places["i19"].rank == 1)
        said.append(places["i19"].best)
        weighted = rank(votes, weights="fixed-point", ridge=4.0, draws=100)
        buried.append(next(each.rank for each in weighted.standings if each.item == "i19"))
        assert places["i19"].rank_low == 1
        assert ranking.verdicts[0].leader in ("i19", None)
    assert np.mean(first) > 0.8
    assert np.mean(said) > 0.6
    assert np.median(buried) > 2


def test_growing_arenas_are_ranked_as_well_as_by_plain_bradley_terry():
    ahead = []
    for seed in range(15):
        rng = np.random.default_rng(seed)
        scores = 0.5 * rng.normal(size=20) + np.linspace(0.0, 2.0, 20)
        present = np.linspace(5, 20.99, 2000).astype(int)
        first = (rng.random(2000) * present).astype(int)
        second = (first + 1 + (rng.random(2000) * (present - 1)).astype(int)) % present
        won = (rng.random(2000) < special.expit(scores[first] - scores[second])).astype(float)
        ranking = rank(Votes.from_arrays([str(k) for k in range(20)], first, second, won), draws=100)
        plain = [standing.plain_score for standing in sorted(ranking.standings, key=lambda each: int(each.item))]
        ahead.append(stats.kendalltau(ranking.scores, scores)[0] - stats.kendalltau(plain, scores)[0])
        ranks = {standing.item: standing for standing in ranking.standings}
        truth = 1 + (scores[:, None] < scores).sum(axis=1)
        assert all(ranks[str(k)].rank_low <= truth[k] <= ranks[str(k)].rank_high for k in range(20))
    assert np.mean(ahead) > -0.01


def test_errors_are_those_of_centred_scores():
    one, other = votes_between(STRENGTH), votes_between(STRENGTH[:3], seed=1)
    parts = zip((one.first, one.second, one.result), (other.first + 4, other.second + 4, other.result), strict=True)
    ranking = rank(Votes.from_arrays("abcdefg", *(np.concatenate(part) for part in parts)))
    for members in (slice(0, 4), slice(4, 7)):
        np.testing.assert_allclose(ranking.scores[members].sum(), 0.0, atol=1e-12)
        np.testing.assert_allclose(ranking.covariance[:, members].sum(axis=1), 0.0, atol=1e-12)


def test_two_items_are_told_apart_at_the_normal_quantile(monkeypatch):
    monkeypatch.setattr("fairduel.votes.ranking.intervals._LASTING", -math.inf)  # at one look
    covariance = np.array([[0.25, -0.25], [-0.25, 0.25]])  # the difference has standard error 1
    for gap, high in ((1.9, 2), (2.02, 1)):
        places = intervals(np.array([gap, 0.0]), covariance, draws=100_000, rng=np.random.default_rng(0))
        assert (places.low[0], places.high[0]) == (1, high)
        assert places.apart[0, 1] == (high == 1)


def test_two_items_are_told_apart_only_if_that_lasts():
    """A gap of 2.295 standard errors of size 1, or of 2.554 of size 0.1, is evidence of E = 5."""
    for error, least in ((1.0, 2.295), (0.1, 2.554)):
        covariance = 0.25 * error**2 * np.array([[1.0, -1.0], [-1.0, 1.0]])
        for times, apart in ((0.98, False), (1.02, True)):
            gap = np.array([times * least * error, 0.0])
            found = intervals(gap, covariance, draws=1000, rng=np.random.default_rng(0))
            assert found.apart[0, 1] == apart


def test_equal_items_are_told_apart_in_5_percent_of_rankings():
    rng = np.random.default_rng(0)
    covariance = np.eye(8) - 1 / 8
    wrong = 0
    for _ in range(400):
        scores = rng.normal(size=8)
        wrong += intervals(scores - scores.mean(), covariance, draws=1000, rng=rng).apart.any()
    assert wrong / 400 == pytest.approx(0.05, abs=2.5 * math.sqrt(0.05 * 0.95 / 400))


def test_one_level_holds_for_all_groups_together():
    rng = np.random.default_rng(0)
    component = np.repeat(np.arange(30), 2).astype(np.int32)
    covariance = 0.25 * np.kron(np.eye(30), np.array([[1.0, -1.0], [-1.0, 1.0]]))
    wrong = 0
    for _ in range(400):
        gaps = rng.normal(size=30)
        scores = np.stack([0.5 * gaps, -0.5 * gaps], axis=1).ravel()
        wrong += intervals(scores, covariance, draws=1000, rng=rng, component=component).apart.any()
    assert wrong / 400 == pytest.approx(0.05, abs=2.5 * math.sqrt(0.05 * 0.95 / 400))


def test_what_is_settled_makes_the_rest_easier_to_tell_apart():
    """Six items far above six others: only pairs inside the two halves, and the reverse of the settled ones, remain."""
    rng = np.random.default_rng(0)
    scores = np.append(np.full(6, 50.0), np.full(6, -50.0))
    scores[0] += 3.23
    together = intervals(scores, 0.5 * np.eye(12), draws=40_000, rng=rng)
    close = np.where(np.arange(12) < 6, scores, scores + 99.9)  # now both halves may mix
    mixed = intervals(close, 0.5 * np.eye(12), draws=40_000, rng=rng)
    assert together.apart[0, 1:6].all()
    assert not mixed.apart[0, 1:6].all()
    scores[0] -= 0.1  # enough only if the reverse of the settled pairs did not count
    assert not intervals(scores, 0.5 * np.eye(12), draws=40_000, rng=rng).apart[0, 1:6].all()


def test_intervals_of_scores_are_those_of_a_normal_law():
    rng, sampling, shrinking = np.random.default_rng(0), np.diag([1.0, 4.0, 0.25]), np.diag([0.5, 0.0, 0.25])
    none = Moments(np.empty(0), np.empty((0, 1)), np.empty(0), np.ones(1))
    for freedom, wider in ((1e6, False), (6.0, True)):  # few items reveal little about their spread
        uncertainty = Uncertainty(sampling, shrinking, [], none, Spread(9.0, 1.0, 8.0, freedom))
        reach = score_reach(uncertainty, uncertainty.draws(100_000, rng), rng)
        expected = 1.96 * np.sqrt([1.5, 4.0, 0.5])
        assert (reach[[0, 2]] > 1.05 * expected[[0, 2]]).all() == wider
        assert reach[1] == pytest.approx(expected[1], rel=0.02)
        if not wider:
            np.testing.assert_allclose(reach, expected, rtol=0.02)


def test_ranges_of_ranks_hold_for_all_items_together():
    strength, covered = np.array([0.6, 0.3, 0.25, 0.0, -0.5]), 0
    truth = np.array([1, 2, 3, 4, 5])
    for seed in range(60):
        votes = votes_between(strength, count=400, seed=seed)
        standings = {s.item: s for s in rank(votes, draws=500, weights="none").standings}
        low, high = (
            np.array([getattr(standings[name], end) for name in votes.items]) for end in ("rank_low", "rank_high")
        )
        covered += bool(((low <= truth) & (truth <= high)).all())
    assert covered >= 54  # 95 % of 60, less two standard errors


def misses(items, count, files, voters=0, taste=0.0):
    """In how many files of votes some true rank lies outside its range."""
    missed, truth = 0, np.arange(1, items + 1)
    for seed in range(files):
        rng = np.random.default_rng([seed, items, count])
        own = np.sort(rng.normal(size=items))[::-1] + taste * rng.normal(size=(max(voters, 1), items))
        voter = rng.integers(max(voters, 1), size=count)
        first = rng.integers(items, size=count)
        second = (first + rng.integers(1, items, count)) % items
        won = (rng.random(count) < special.expit(own[voter, first] - own[voter, second])).astype(float)
        who = {"voter": voter, "voters": [f"v{v}" for v in range(voters)]} if voters else {}
        ranking = rank(Votes.from_arrays([str(k) for k in truth], first, second, won, **who), draws=400)
        if max(s.component for s in ranking.standings) == 1:
            missed += any(not s.rank_low <= int(s.item) <= s.rank_high for s in ranking.standings)
    return missed


@pytest.mark.parametrize(("items", "count"), [(5, 10), (5, 30), (20, 100)])
def test_ranges_hold_where_votes_are_few(items, count):
    assert misses(items, count, files=60) <= 6  # 5 % of 60, and two standard errors


@pytest.mark.parametrize(("items", "count", "voters"), [(10, 1000, 9), (10, 1000, 3), (4, 300, 5)])
def test_ranges_hold_where_voters_are_few(items, count, voters):
    assert misses(items, count, files=40, voters=voters, taste=1.0) <= 4


def test_one_vote_decides_nothing():
    leader, _ = rank(Votes.from_arrays("ab", [0], [1], [1])).standings
    assert (leader.item, leader.rank_high) == ("a", 2)
    assert 0.5 < leader.best < 0.9


def test_voters_with_one_vote_each_are_as_no_voters():
    votes = votes_between(STRENGTH, count=60, voters=1)
    named = Votes.from_arrays(
        votes.items, votes.first, votes.second, votes.result, voter=range(60), voters=[str(v) for v in range(60)]
    )
    unnamed = Votes.from_arrays(votes.items, votes.first, votes.second, votes.result)
    assert rank(named).standings == rank(unnamed).standings
    assert rank(named).notes == ("The ranges treat all votes as independent of each other.",)


def test_items_that_never_met_are_ranked_apart():
    one, other = votes_between(STRENGTH), votes_between(STRENGTH[:3], seed=1)
    votes = Votes.from_arrays(
        [f"a{i}" for i in range(4)] + [f"b{i}" for i in range(3)],
        np.concatenate([one.first, other.first + 4]),
        np.concatenate([one.second, other.second + 4]),
        np.concatenate([one.result, other.result]),
    )
    ranking = rank(votes)
    groups = list(ranking.components())
    assert [len(group) for group in groups] == [4, 3]
    assert [s.rank for s in groups[1]] == [1, 2, 3]
    assert sum(s.best for s in groups[1]) == pytest.approx(1.0)
    assert "2 groups of 4 to 3 items" in ranking.notes[0]
    assert not ranking.apart[:4, 4:].any()
    alone = rank(one.select(one.result >= 0), ridge=ranking.settings["ridge"])
    np.testing.assert_allclose(ranking.scores[:4], alone.scores, atol=1e-9)
    assert summarise(ranking)[0] == "Group 1: a1 has won against 3 other items, so you can stop."


def test_one_voter_is_no_cluster():
    votes = votes_between(STRENGTH, voters=1)
    ranking = rank(votes)
    assert "taste_of_voters" not in ranking.settings
    assert any("All votes are by one voter" in note for note in ranking.notes)
    assert min(s.error for s in ranking.standings) > 0.05


def test_voters_who_vote_alike_widen_the_errors():
    votes = votes_between(STRENGTH, count=200, voters=200)
    copied = Votes.from_arrays(
        votes.items,
        *(np.repeat(part, 5) for part in (votes.first, votes.second, votes.result)),
        voter=np.repeat(np.arange(200), 5),
        voters=[str(v) for v in range(200)],
    )
    for one, other in zip(rank(votes, weights="none").standings, rank(copied, weights="none").standings, strict=True):
        assert one.error == pytest.approx(other.error, rel=0.2)
    assert rank(copied).notes == ("The ranges allow for having asked other, similar voters.",)


def test_ties_can_be_dropped():
    votes = Votes.from_arrays("ab", [0] * 8, [1] * 8, [1, 1, 1, 0, 0.5, 0.5, 0.5, 0.5])
    dropped, half = rank(votes, ties="drop", ridge=0.0), rank(votes, ridge=0.0)
    assert dropped.scores[0] - dropped.scores[1] == pytest.approx(math.log(3))
    assert half.scores[0] - half.scores[1] == pytest.approx(math.log(5 / 3))
    assert dropped.weights.tolist() == [1, 1, 1, 1, 0, 0, 0, 0]
    assert dropped.standings[0].games == 4


def test_an_item_that_never_lost_is_said():
    ranking = rank(Votes.from_arrays("abc", [0, 0, 1, 2], [1, 2, 2, 1], [1, 1, 1, 1]))
    assert any("no finite estimate" in note for note in ranking.notes)
    assert all(math.isfinite(s.score) for s in ranking.standings)


def test_no_votes_cannot_be_ranked():
    for votes in (
        Votes.from_arrays([], [], [], []),
        Votes.from_arrays("ab", [0], [1], [1], weight=[0.0]),
    ):
        with pytest.raises(BadInputError, match="there are no votes" if len(votes) == 0 else "no vote counts"):
            rank(votes)
    with pytest.raises(BadInputError, match="no vote counts: all have weight 0 or are dropped ties"):
        rank(Votes.from_arrays("ab", [0], [1], [0.5]), ties="drop")
    with pytest.raises(BadInputError, match="draws"):
        rank(votes_between(STRENGTH), draws=10)
    with pytest.raises(BadInputError, match="ridge must be a number"):
        rank(votes_between(STRENGTH), ridge=math.nan)
    for reliability in (np.ones(599), np.full(600, -1.0), np.full(600, math.nan)):
        with pytest.raises(BadInputError, match="reliability must be 600 numbers ≥ 0"):
            rank(votes_between(STRENGTH), reliability=reliability)


def test_features_lend_votes_to_items_that_have_few():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(30, 2))
    strength = features @ [1.0, -1.0]
    votes = votes_between(strength, count=600)
    with_features = rank(votes, features=scaled(features, votes), ridge=1.0)
    without = rank(votes, ridge=1.0)
    truth = strength - strength.mean()
    assert np.abs(with_features.scores - truth).mean() < np.abs(without.scores - truth).mean()
    assert with_features.settings["features"].startswith("an array")


def test_the_summary_says_who_leads_and_who_cannot_be_told_apart():
    sure = summarise(rank(votes_between(np.array([3.0, 0.02, 0.0]), names=["tea", "milk", "juice"])))
    assert sure[0] == "tea has won against 2 other items, so you can stop."
    assert {"2nd (milk) and 3rd (juice) cannot be told apart.", "2nd (juice) and 3rd (milk) cannot be told apart."} & {
        *sure
    }
    unsure = summarise(rank(votes_between(np.zeros(9), count=200)))
    assert unsure[0] == "It is too early to say which of 9 items is the best."
    moved = votes_between(np.zeros(9), count=60, seed=4)
    assert any("Plain Bradley–Terry" in sentence for sentence in summarise(rank(moved, weights="fixed-point")))
    assert not any("Plain Bradley–Terry" in sentence for sentence in summarise(rank(moved)))


@pytest.mark.parametrize("with_features", [False, True])
def test_recorded_votes_are_ranked(recorded, data, with_features):
    votes = recorded("mtbench_human")
    features = read_features(data / "mtbench_human" / "features.npz", votes) if with_features else None
    ranking = rank(votes, features=features)
    # README: gpt-4, claude-v1, gpt-3.5-turbo, vicuna, alpaca, llama
    assert [s.item for s in ranking.standings] == ["3", "1", "2", "5", "0", "4"]
    assert ranking.standings[0].best > 0.99
