import choix
import evalica
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from fairduel import BadInputError, ConvergenceError
from fairduel.votes import Votes
from fairduel.votes.ranking.bradley_terry import TINY_RIDGE, _derivatives, _loss, fit_scores, moved_scores, wins

WINNERS = {1.0: evalica.Winner.X, 0.0: evalica.Winner.Y, 0.5: evalica.Winner.Draw}


def random_votes(seed=0, items=7, count=400):
    rng = np.random.default_rng(seed)
    strength = rng.normal(size=items)
    first = rng.integers(items, size=count)
    second = (first + rng.integers(1, items, size=count)) % items
    chance = 1 / (1 + np.exp(strength[second] - strength[first]))
    result = np.where(rng.random(count) < 0.2, 0.5, rng.random(count) < chance)
    return Votes.from_arrays(
        [f"item {i}" for i in range(items)], first, second, result, weight=rng.integers(1, 4, count)
    )


def test_wins_are_those_of_a_loop():
    votes = random_votes()
    for ties in ("half", "drop"):
        expected = np.zeros((7, 7))
        for a, b, result, weight in zip(votes.first, votes.second, votes.result, votes.weight, strict=True):
            if result != 0.5 or ties == "half":
                expected[a, b] += weight * result
                expected[b, a] += weight * (1 - result)
        np.testing.assert_allclose(wins(votes, ties=ties), expected, rtol=1e-12)


def test_unknown_ties_are_refused():
    with pytest.raises(BadInputError, match="ties"):
        wins(random_votes(), ties="both")


def test_too_many_items_are_refused_before_memory_runs_out():
    votes = Votes.from_arrays([str(i) for i in range(5001)], [0], [1], [1])
    with pytest.raises(BadInputError, match="5,001 items"):
        wins(votes)


def test_derivatives_agree_with_finite_differences():
    rng = np.random.default_rng(1)
    won, theta = wins(random_votes()), rng.normal(size=7)
    gradient, hessian = _derivatives(theta, won, won + won.T, 0.3)
    for i in range(7):
        step = np.zeros(7)
        step[i] = 1e-5
        rise = (_loss(theta + step, won, 0.3) - _loss(theta - step, won, 0.3)) / 2e-5
        assert gradient[i] == pytest.approx(rise, rel=1e-6, abs=1e-6)
        change = (
            _derivatives(theta + step, won, won + won.T, 0.3)[0] - _derivatives(theta - step, won, won + won.T, 0.3)[0]
        )
        np.testing.assert_allclose(hessian[i], change / 2e-5, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("ridge", [None, 0.0, 0.5])
def test_scores_minimise_the_loss(ridge):
    won = wins(random_votes())
    fitted = fit_scores(won, ridge=ridge)
    slow = optimize.minimize(_loss, np.zeros(7), args=(won, ridge or 0.0), tol=1e-12)
    np.testing.assert_allclose(fitted.scores, slow.x - slow.x.mean(), atol=2e-5)
    gradient, _ = _derivatives(fitted.scores, won, won + won.T, ridge or 0.0)
    assert np.abs(gradient).max() < 1e-9
    assert fitted.ridge == (ridge or 0.0)


def test_the_covariance_is_the_pseudo_inverse_of_the_information():
    won = wins(random_votes())
    fitted = fit_scores(won)
    _, hessian = _derivatives(fitted.scores, won, won + won.T, 0.0)
    np.testing.assert_allclose(fitted.covariance, np.linalg.pinv(hessian), atol=1e-9)


@pytest.mark.parametrize("name", ["llmfao", "mtbench_human", "ukpconvarg1"])
@pytest.mark.parametrize("ties", ["half", "drop"])
def test_scores_are_those_of_choix_and_evalica(recorded, name, ties):
    votes = recorded(name)
    if name == "ukpconvarg1":  # one topic of 32, since others cannot handle items that never met
        votes = votes.select(votes.context == 8)
    used, codes = np.unique(np.concatenate([votes.first, votes.second]), return_inverse=True)
    first, second = codes[: len(votes)], codes[len(votes) :]
    kept = (votes.result != 0.5) | (ties == "half")
    won = wins(votes, ties=ties)[np.ix_(used, used)]
    fitted = fit_scores(won)
    assert fitted.ridge == 0.0
    doubled = []  # ties as a win each, all else twice
    for a, b, result in zip(first[kept], second[kept], votes.result[kept], strict=True):
        doubled += [(a, b)] * int(2 * result) + [(b, a)] * int(2 - 2 * result)
    expected = choix.ilsr_pairwise(len(used), doubled, max_iter=1000, tol=1e-12)
    np.testing.assert_allclose(fitted.scores, expected - expected.mean(), atol=1e-6)
    names = [f"{code:04}" for code in range(len(used))]
    theirs = evalica.bradley_terry(
        [names[a] for a in first[kept]],
        [names[b] for b in second[kept]],
        [WINNERS[result] for result in votes.result[kept]],
        tolerance=1e-14,
        limit=100_000,
    )
    logs = np.log(theirs.scores.sort_index().to_numpy())
    np.testing.assert_allclose(fitted.scores, logs - logs.mean(), atol=1e-6)


def test_items_that_never_met_are_scored_by_themselves():
    one, other = wins(random_votes(1, items=4)), wins(random_votes(2, items=3))
    both = np.zeros((8, 8))
    both[np.ix_([0, 2, 4, 6], [0, 2, 4, 6])] = one
    both[np.ix_([1, 3, 5], [1, 3, 5])] = other
    fitted = fit_scores(both)
    np.testing.assert_allclose(fitted.scores[[0, 2, 4, 6]], fit_scores(one).scores, atol=1e-9)
    np.testing.assert_allclose(fitted.scores[[1, 3, 5]], fit_scores(other).scores, atol=1e-9)
    assert fitted.scores[7] == 0.0
    assert fitted.covariance[0, 1] == 0.0


def test_an_item_that_never_lost_gets_a_tiny_ridge_and_a_reason():
    won = np.array([[0.0, 3, 0], [0, 0, 2], [0, 1, 0]])
    fitted = fit_scores(won)
    assert fitted.ridge == TINY_RIDGE
    assert "3 items" in fitted.why
    np.testing.assert_allclose(fitted.scores, fit_scores(won, ridge=TINY_RIDGE).scores)
    assert np.isfinite(fitted.scores).all()
    assert fitted.scores[0] > fitted.scores[1] > fitted.scores[2]
    with pytest.raises(ConvergenceError, match="ridge"):
        fit_scores(won, ridge=0.0)


def test_a_ridge_in_one_component_leaves_another_alone():
    sound = wins(random_votes(1, items=4))
    both = np.zeros((6, 6))
    both[:4, :4] = sound
    both[4, 5] = 3.0
    np.testing.assert_allclose(fit_scores(both).scores[:4], fit_scores(sound).scores, atol=1e-12)


@pytest.mark.parametrize(
    "won", [np.ones((2, 3)), np.ones((2, 2)), -np.ones((2, 2)), np.array([[0, np.nan], [1, 0]]), np.empty((0, 0)), [1]]
)
def test_what_is_no_matrix_of_wins_is_refused(won):
    with pytest.raises(BadInputError, match="wins must be"):
        fit_scores(won)


@given(st.integers(0, 10_000), st.floats(1e-3, 1e3))
def test_scores_do_not_depend_on_names_or_scale(seed, scale):
    won = wins(random_votes(seed, items=5, count=60))
    order = np.random.default_rng(seed).permutation(5)
    fitted = fit_scores(won)
    if fitted.ridge == 0.0:
        np.testing.assert_allclose(fit_scores(won[np.ix_(order, order)]).scores, fitted.scores[order], atol=1e-8)
        np.testing.assert_allclose(fit_scores(scale * won).scores, fitted.scores, atol=1e-8)
        np.testing.assert_allclose(fit_scores(won.T).scores, -fitted.scores, atol=1e-8)


def random_wins(seed, items=12):
    return np.random.default_rng(seed).integers(1, 30, (items, items)) * (1.0 - np.eye(items))


@pytest.mark.parametrize("ridge", [None, 0.5])
@pytest.mark.parametrize("seed", range(5))
def test_scores_after_a_few_votes_are_found_from_those_before(seed, ridge):
    before = fit_scores(random_wins(seed), ridge=ridge)
    won = random_wins(seed)
    won[seed, 7] += 3.0
    won[7, 8] -= 1.0
    moved = moved_scores(won, before)
    np.testing.assert_allclose(moved, fit_scores(won, ridge=ridge).scores, atol=1e-8)
    assert np.abs(moved - before.scores).max() > 1e-3


def test_scores_of_other_votes_are_not_found_from_those_before():
    won = random_wins(0)
    won[3], won[:, 3] = 400.0, 1.0
    won[3, 3] = 0.0
    assert moved_scores(won, fit_scores(random_wins(0))) is None


@pytest.mark.parametrize("seed", range(5))
def test_the_start_does_not_matter(seed):
    won = random_wins(seed)
    far = 3.0 * np.random.default_rng(seed).standard_normal(len(won))
    np.testing.assert_allclose(fit_scores(won, start=far).scores, fit_scores(won).scores, atol=1e-8)
