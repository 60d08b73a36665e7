"""Fragility against brute force: at_least ≤ the true smallest number ≤ found."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from fairduel.errors import BadInputError
from fairduel.votes import Votes
from fairduel.votes.certifying.proof import Proof
from fairduel.votes.certifying.search import Fitting, Group, _close_gap, _influence, fragility
from fairduel.votes.certifying.vote_counts import count_votes
from fairduel.votes.ranking.bradley_terry import fit_scores, wins


def random_votes(seed: int, items: int, count: int, *, tie_share: float = 0.0, spread: float = 1.0) -> Votes:
    rng = np.random.default_rng(seed)
    scores = np.sort(spread * rng.standard_normal(items))[::-1]
    first = rng.integers(items, size=count)
    second = (first + rng.integers(1, items, count)) % items
    result = (rng.random(count) < expit(scores[first] - scores[second])).astype(float)
    result[rng.random(count) < tie_share] = 0.5
    return Votes.from_arrays("abcdefgh"[:items], first, second, result)


def batch_fit(won: np.ndarray) -> np.ndarray:
    """Scores (B, K) of many matrices of wins (B, K, K), by plain Newton steps with a vanishing ridge."""
    theta = np.zeros(won.shape[:2])
    games = won + won.transpose(0, 2, 1)
    eye = 1e-9 * np.eye(won.shape[1])
    for _ in range(60):
        p = expit(theta[:, :, None] - theta[:, None, :])
        gradient = (won - games * p).sum(axis=2)
        between = games * p * (1 - p)
        hessian = np.einsum("bi,ij->bij", between.sum(axis=2), np.eye(won.shape[1])) - between + eye
        step = np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
        theta += np.clip(step, -2, 2)
    return theta


def true_smallest(votes: Votes, top: int, how: str, limit: int) -> int:
    """The smallest number of votes that changes the top k, by trying all sets (alike votes are exchangeable)."""
    kinds = count_votes(votes, "half")
    before = set(np.argsort(-fit_scores(wins(votes)).scores)[:top].tolist())
    usable = np.flatnonzero(~kinds.tie) if how == "flipped" else np.arange(len(kinds.count))
    for size in range(1, limit + 1):
        sets = [
            np.bincount(c, minlength=len(kinds.count)) for c in itertools.combinations_with_replacement(usable, size)
        ]
        sets = [chosen for chosen in sets if (chosen <= kinds.count).all()]
        scores = batch_fit(np.stack([kinds.after(chosen, how) for chosen in sets]))
        if any(set(np.argsort(-row)[:top].tolist()) != before for row in scores):
            return size
    return limit + 1


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("how", ["dropped", "flipped"])
def test_bounds_hold_the_truth_between_them(seed, how):
    votes = random_votes(seed, items=3, count=150, tie_share=0.2 if seed % 2 else 0.0, spread=0.3)
    top = 1 + seed % 2
    [result] = fragility(votes, top=top, hows=[how])
    limit = min(result.found, 6)
    truth = true_smallest(votes, top, how, limit)  # limit + 1 for "more"
    assert min(result.at_least, limit + 1) <= truth
    assert truth == limit + 1 or truth <= result.found <= truth + 1  # here the search comes within one vote


def test_the_lower_bound_says_something():
    votes = random_votes(3, items=4, count=4000, spread=0.3)
    for result in fragility(votes):
        assert result.found / 2 <= result.at_least <= result.found


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("how", ["dropped", "flipped"])
def test_the_named_set_changes_the_leader(how, seed):
    votes = random_votes(seed, items=5, count=120 + 40 * seed, tie_share=0.1)
    [result] = fragility(votes, hows=[how])
    chosen = np.isin(votes.row, result.rows)
    assert chosen.sum() == result.found == len(result.rows)
    if how == "dropped":
        after = votes.without(chosen)
    else:
        after = Votes.from_arrays(
            votes.items, votes.first, votes.second, np.where(chosen, 1 - votes.result, votes.result)
        )
    names = np.array(votes.items)
    assert names[np.argmax(fit_scores(wins(votes)).scores)] == result.loses
    scores = fit_scores(wins(after)).scores
    assert scores[votes.items.index(result.gains)] > scores[votes.items.index(result.loses)]


@pytest.mark.parametrize("how", ["dropped", "flipped"])
def test_no_set_moves_the_scores_beyond_the_radius_of_the_proof(how):
    votes = random_votes(2, items=4, count=600, tie_share=0.2, spread=1.0)
    kinds = count_votes(votes, "half")
    fitted = fit_scores(wins(votes))
    proof = Proof(kinds, fitted, how)
    information = np.linalg.pinv(fitted.covariance)
    rng = np.random.default_rng(0)
    largest = 0.0
    for size in (1, 4, 12):
        radius = proof._radius(size)
        sets = [rng.multinomial(size, rng.dirichlet(np.full(len(kinds.count), 0.05))) for _ in range(300)]
        sets = [s for s in sets if (s <= kinds.count).all() and not (how == "flipped" and s[kinds.tie].any())]
        moved = batch_fit(np.stack([kinds.after(chosen, how) for chosen in sets]))
        moved -= moved.mean(axis=1, keepdims=True) + fitted.scores
        distance = np.sqrt(np.einsum("bi,ij,bj->b", moved, information, moved)).max()
        assert distance <= radius
        largest = max(largest, distance / radius)
    assert largest > 0.3  # the radius is of the right size, not just large


@pytest.fixture(scope="module")
def proved():
    """A proof with its Hessian, and θ' at several distances r from θ̂ in all directions."""
    votes = random_votes(2, items=4, count=600, tie_share=0.3)
    kinds, fitted = count_votes(votes, "half"), fit_scores(wins(votes))
    directions = np.random.default_rng(1).standard_normal((200, 4))
    directions -= directions.mean(axis=1, keepdims=True)
    information = np.linalg.pinv(fitted.covariance)
    directions /= np.sqrt(np.einsum("bi,ij,bj->b", directions, information, directions))[:, None]
    return kinds, fitted, information, [(r, r * step) for step in directions for r in (0.3, 2.0, 8.0)]


@pytest.mark.parametrize("how", ["dropped", "flipped"])
def test_no_vote_takes_more_gradient_along_than_the_proof_allows(proved, how):
    kinds, fitted, _, moves = proved
    proof = Proof(kinds, fitted, how)
    reached = {True: 0.0, False: 0.0}
    for r, step in moves:
        theta = fitted.scores + step
        margin = theta[kinds.winner] - theta[kinds.loser]
        taken = np.where(kinds.tie, 0.5 - expit(margin), expit(-margin))  # of the difference winner − loser
        if how == "flipped":
            taken = np.where(kinds.tie, 0.0, 1.0)
        for direction in (1.0, -1.0):
            allowed = proof._share(r, np.full(1, direction))
            assert (direction * taken <= allowed + 1e-12).all()
            for tie in (True, False):
                here = (kinds.tie == tie) & (allowed > 0)
                reached[tie] = max(reached[tie], (direction * taken / np.where(here, allowed, np.inf)).max())
    assert reached[False] > 0.9
    assert reached[True] > 0.9 or how == "flipped"


def test_the_gradient_bends_no_more_than_the_proof_allows(proved):
    kinds, fitted, information, moves = proved
    proof = Proof(kinds, fitted, "dropped")
    won = kinds.won(kinds.count)
    d = fitted.covariance[0] - fitted.covariance[1]
    largest = 0.0
    for r, step in moves:
        p = expit(np.subtract.outer(fitted.scores + step, fitted.scores + step))
        gradient = ((won + won.T) * p - won).sum(axis=1)
        bent = abs(d @ gradient - d @ information @ step)
        error = proof._error(r, d, proof._bend(r))
        assert bent <= error
        largest = max(largest, bent / error)
    assert largest > 0.1


@pytest.mark.parametrize("how", ["dropped", "flipped"])
def test_influence_is_the_derivative(how):
    votes = random_votes(4, items=4, count=20_000, tie_share=0.3)
    kinds, fitted = count_votes(votes, "half"), fit_scores(wins(votes))
    predicted = _influence(kinds, fitted, (0, 3), how)
    for kind in range(len(kinds.count)):
        if kinds.tie[kind] and how == "flipped":
            assert predicted[kind] == 0.0
            continue
        taken = np.zeros_like(kinds.count)
        taken[kind] = 1
        after = fit_scores(kinds.after(taken, how)).scores
        narrowed = (fitted.scores[0] - fitted.scores[3]) - (after[0] - after[3])
        assert narrowed == pytest.approx(predicted[kind], rel=0.01, abs=1e-7)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("gap", [0.0, 0.3, 4.0, 40.0, 1e6])
def test_the_most_influential_votes_close_a_gap(seed, gap, monkeypatch):
    monkeypatch.setattr("fairduel.votes.certifying.search._SORTED_KINDS", 2)
    rng = np.random.default_rng(seed)
    influence, available = rng.integers(-3, 9, 50) / 4, rng.integers(0, 4, 50)
    one_by_one, total = np.zeros_like(available), 0.0
    for kind in np.argsort(-influence, kind="stable"):
        while influence[kind] > 0.0 and total <= gap and one_by_one[kind] < available[kind]:
            one_by_one[kind] += 1
            total += influence[kind]
    np.testing.assert_array_equal(_close_gap(influence, available, gap), one_by_one)


def test_a_row_that_counts_nine_times_is_nine_votes():
    first, second, result = [0] * 30, [1] * 30, [1] * 20 + [0] * 10
    frequency = np.array([1] * 19 + [9] + [1] * 9 + [3])
    heavy = Votes.from_arrays("ab", first, second, result, weight=frequency)
    written_out = Votes.from_arrays("ab", *(np.repeat(part, frequency) for part in (first, second, result)))
    for one, other in zip(fragility(heavy), fragility(written_out), strict=True):
        assert (one.found, one.at_least, one.votes) == (other.found, other.at_least, other.votes)
    found = fragility(heavy, hows=["dropped"])[0]
    assert found.found == 28 - 12 + 1
    counts = dict(zip(heavy.row.tolist(), frequency.tolist(), strict=True))
    assert sum(counts[row] for row in found.rows) >= found.found > sum(counts[row] for row in found.rows[:-1])


@pytest.mark.parametrize("how", ["dropped", "flipped"])
@pytest.mark.parametrize("seed", range(4))
def test_few_kinds_are_enough_to_search(monkeypatch, seed, how):
    votes = random_votes(seed, items=8, count=900, tie_share=0.1)
    [slow] = fragility(votes, hows=[how])
    monkeypatch.setattr("fairduel.votes.certifying.search._SEARCHED_KINDS", 30)
    [fast] = fragility(votes, hows=[how])
    assert (fast.found, fast.at_least, fast.gains) == (slow.found, slow.at_least, slow.gains)


def test_a_row_that_counts_half_is_one_light_vote():
    half = Votes.from_arrays("ab", [0] * 30, [1] * 30, [1] * 20 + [0] * 10, weight=[0.5] * 30)
    assert fragility(half, hows=["dropped"])[0].found == 11


def test_weights_and_ridge_are_those_of_the_ranking():
    votes = random_votes(3, items=5, count=60)
    for seed in range(5):
        weights = np.random.default_rng(seed).uniform(0.2, 1.0, 60)
        fitting = Fitting(weights=weights, ridge=1.5)
        scores = fit_scores(wins(replace(votes, weight=weights)), ridge=1.5).scores
        result = fragility(votes, fitting=fitting, hows=["dropped"])[0]
        assert result.loses == votes.items[int(scores.argmax())]
        left = ~np.isin(votes.row, result.rows)
        after = fit_scores(wins(replace(votes, weight=weights * left)), ridge=1.5).scores
        assert after.argmax() != scores.argmax()
        assert result.at_least <= result.found


def test_challengers_come_in_order_of_rank_and_the_nearest_is_the_leader_bound():
    votes = random_votes(1, items=5, count=600)
    each = Group(votes).challengers()
    assert len({result.gains for result in each}) == 4
    assert min(result.found for result in each if result.found) == fragility(votes, hows=["dropped"])[0].found


def test_each_component_has_its_own_leader():
    votes = Votes.from_arrays("abcde", [0, 0, 0, 1, 2, 3, 3], [1, 1, 2, 2, 0, 4, 4], [1, 0, 1, 1, 1, 1, 1])
    [result] = fragility(votes, fitting=Fitting(component=1), hows=["flipped"])
    assert (result.loses, result.gains, result.found, result.votes) == ("d", "e", 2, 2)


def test_only_the_largest_component_is_looked_at():
    votes = Votes.from_arrays("abcde", [0, 0, 0, 1, 2, 3], [1, 1, 2, 2, 0, 4], [1, 0, 1, 1, 1, 1])
    assert all(result.gains in "abc" and result.votes == 5 for result in fragility(votes))


def test_refusals():
    votes = random_votes(0, items=3, count=30)
    with pytest.raises(BadInputError, match="top 3 of 3"):
        fragility(votes, top=3)
    with pytest.raises(BadInputError, match="all have weight 0 or are dropped ties"):
        fragility(Votes.from_arrays("ab", [0], [1], [0.5]), fitting=Fitting(ties="drop"))


def test_a_tie_is_no_change():
    votes = Votes.from_arrays(
        "abc", [2, 0, 1, 2, 1, 0, 2, 1], [1, 1, 2, 1, 0, 2, 0, 2], [1.0, 0.5, 0.0, 0.5, 0.5, 0.0, 1.0, 1.0]
    )
    found = fragility(votes, hows=["dropped"])[0]
    scores = fit_scores(wins(votes.without(np.isin(votes.row, found.rows)))).scores
    gains, loses = (votes.items.index(name) for name in (found.gains, found.loses))
    assert found.found is None or scores[gains] > scores[loses] + 1e-9


def test_items_that_are_no_longer_compared_are_no_change():
    one = Votes.from_arrays("ab", [0], [1], [1])
    assert fragility(one, hows=["dropped"])[0].found is None
    few = Votes.from_arrays("abc", [1, 1, 1, 2], [0, 2, 2, 0], [1.0, 0, 0, 1.0])  # b > a, c > b twice, c > a
    for result in fragility(few, hows=["dropped"]):
        left = few.without(np.isin(few.row, result.rows)).components()
        assert result.found is None or left[few.items.index(result.gains)] == left[few.items.index(result.loses)]


def test_pairs_are_ruled_out_together_only_if_each_is():
    votes = random_votes(5, items=8, count=1500)
    kinds, fitted = count_votes(votes, "half"), fit_scores(wins(votes))
    first, *others = np.argsort(-fitted.scores)
    pairs = np.array([(first, other) for other in others])
    ruled_out = 0
    for how in ("dropped", "flipped"):
        proof = Proof(kinds, fitted, how)
        for size in range(1, 40):
            radius = proof._radius(size)
            if radius is None:
                break
            bend = proof._bend(radius)
            for inside, outside in pairs:
                d = fitted.covariance[inside] - fitted.covariance[outside]
                pull = d[kinds.winner] - d[kinds.loser]
                most = proof._most(size, proof._share(radius, np.sign(pull)) * np.abs(pull))
                gap = fitted.scores[inside] - fitted.scores[outside]
                alone = bool(most >= gap - proof._error(radius, d, bend))
                assert proof.possible(size, np.array([(inside, outside)])) == alone
                ruled_out += not alone
    assert ruled_out > 20


def test_scores_far_apart_have_a_bound():
    """Beyond 37 log-odds, 1 − expit is 0, and a division by it would make every number of votes impossible."""
    first, second = np.triu_indices(60, 1)
    names = [str(item) for item in range(60)]
    votes = Votes.from_arrays(names, first, second, np.ones(len(first)), weight=np.full(len(first), 20))
    kinds = count_votes(votes, "half")
    fitted = fit_scores(wins(votes), ridge=0.01)
    assert fitted.scores[0] - fitted.scores[-1] > 40.0
    assert (Proof(kinds, fitted, "dropped")._slope > 0.0).all()
    [found] = fragility(votes, fitting=Fitting(ridge=0.01), hows=["dropped"])
    assert 1 <= found.at_least <= found.found <= 21
