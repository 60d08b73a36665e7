import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import chdtri

from fairduel.core.concluding import LEVEL, WINDOWS, Ordered, can_scan, conclude, gain, screen
from fairduel.core.likelihood import Comparisons, problem_of, solved
from fairduel.core.links import LOGISTIC, PROBIT, Link, clipped_linear
from fairduel.simulation import Cell
from fairduel.simulation.compiled_run import play_compiled

RIDGE = 0.25
MEASURED = 0.011
"""The share of honest polls with a window set aside, in 20,000 of them."""


def poll(seed, *, votes=400, dimension=2, items=8, lies=(0, 0), steep=(0, 0), link=LOGISTIC):
    """Votes on random pairs of items; those in ``lies`` all contradict θ, those in ``steep`` are more decided."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=dimension)
    theta *= 2.0 / np.linalg.norm(theta)
    actions = rng.normal(size=(items, dimension))
    actions *= rng.uniform(0.2, 1.0, (items, 1)) / np.linalg.norm(actions, axis=1, keepdims=True)
    first, second = np.triu_indices(items, 1)
    differences = actions[first] - actions[second]
    differences *= np.where(differences[:, :1] < 0.0, -1.0, 1.0)
    rows = rng.integers(len(differences), size=votes)
    margins = (differences @ theta)[rows]
    margins[slice(*steep)] *= 5.0
    won = rng.random(votes) < link.probability(margins)
    won[slice(*lies)] = margins[slice(*lies)] < 0.0
    weights, wins = (np.bincount(rows, each, len(differences)) for each in (np.ones(votes), won))
    state = {"differences": differences, "weights": weights, "wins": wins, "votes": 3 * rows + 2 * won}
    return Comparisons.from_state(state, dimension), theta


def fitted(told, link=LOGISTIC, ridge=RIDGE):
    edges = np.linspace(0, len(told.votes), 21).round().astype(np.int64)
    votes = Ordered(told.votes // 3, told.votes % 3 / 2.0, edges)
    whole = problem_of(told.differences, told.weights, told.wins, ridge, link)
    return solved(np.zeros(told.differences.shape[1]), whole).theta, whole, votes


def share_set_aside(polls):
    return np.mean([bool(conclude(told, ridge=RIDGE, link=LOGISTIC).bursts) for told in polls])


def test_the_gain_is_that_of_a_separate_fit():
    told, _ = poll(1, lies=(110, 160))
    theta, whole, votes = fitted(told)
    window = np.array([5, 9])
    phi, shares = told.differences[votes.rows], votes.shares
    inside = np.zeros(400)
    inside[100:180] = 1.0

    def penalised(both):
        margins = phi @ both[:2] + inside * (phi @ both[2:])
        return np.logaddexp(0.0, margins).sum() - shares @ margins + 0.5 * RIDGE * both @ both

    separate = minimize(penalised, np.zeros(4), tol=1e-10)
    expected = penalised(np.append(theta, np.zeros(2))) - separate.fun
    value, agreement = gain(theta, whole, votes, window)
    assert value == pytest.approx(expected, rel=1e-6)
    rest = phi @ separate.x[:2]
    assert agreement == pytest.approx(inside @ ((shares - LOGISTIC.probability(rest)) * rest), rel=1e-4)


def test_degrees_of_freedom_are_those_of_the_information_about_the_window():
    told, _ = poll(2, dimension=3)
    theta, whole, votes = fitted(told)
    phi = told.differences[votes.rows]
    slopes = LOGISTIC.slope(phi @ theta)
    for (begin, end), (_, freedom) in zip(WINDOWS, screen(theta, whole, votes, WINDOWS), strict=True):
        part = slice(20 * begin, 20 * end)
        everything = RIDGE * np.eye(3) + (phi.T * slopes) @ phi
        inside = (phi[part].T * slopes[part]) @ phi[part]
        known = np.linalg.eigvalsh(inside - inside @ np.linalg.inv(everything) @ inside)
        assert freedom == pytest.approx((known / (known + RIDGE)).sum(), rel=1e-8)


def test_the_approximate_gain_is_close_without_lies_and_misses_no_burst():
    for seed in range(5):
        told, _ = poll(seed, votes=4000)
        theta, whole, votes = fitted(told)
        quick = screen(theta, whole, votes, WINDOWS)[:, 0]
        exact = [gain(theta, whole, votes, window)[0] for window in WINDOWS]
        np.testing.assert_allclose(quick, exact, rtol=0.15, atol=0.1)
    for seed in range(20):
        told, _ = poll(seed, lies=(100, 160))
        theta, whole, votes = fitted(told)
        quick, freedom = screen(theta, whole, votes, WINDOWS).T
        bars = 0.5 * chdtri(freedom, LEVEL / len(WINDOWS))
        for k, window in enumerate(WINDOWS):
            value, agreement = gain(theta, whole, votes, window)
            assert agreement >= 0.0 or value < bars[k] or quick[k] > bars[k] / 2.0


def test_the_level_is_kept_and_not_by_a_bar_far_too_high():
    """A level twice or half as large would fail."""
    share = share_set_aside(poll(seed)[0] for seed in range(1500))
    assert 0.6 * MEASURED < share < 1.6 * MEASURED < LEVEL


@pytest.mark.parametrize(("votes", "dimension", "items"), [(40, 1, 4), (100, 1, 8), (100, 5, 30), (200, 32, 40)])
def test_the_level_is_kept_with_few_votes_and_many_features(votes, dimension, items):
    polls = (poll(seed, votes=votes, dimension=dimension, items=items)[0] for seed in range(150))
    assert share_set_aside(polls) <= LEVEL


@pytest.mark.filterwarnings("ignore::fairduel.LockInWarning")
@pytest.mark.parametrize("world", ["hypercube", "fresh"])
def test_the_level_is_kept_when_votes_decide_what_is_asked_next(world):
    cell = Cell("rcdb", "none", 20, 300, world=world, agent_settings={"self_duels": False})
    found = 0
    for seed in range(200):
        agent, world, adversary, streams = cell.start(seed)
        play_compiled(agent, world, adversary, horizon=300, labels=streams.labels)
        found += bool(agent.conclude().bursts)
    assert found <= 200 * LEVEL


@pytest.mark.parametrize("begin", [0, 137, 340])
@pytest.mark.parametrize("link", [LOGISTIC, PROBIT, Link("logistic", 3.0)], ids=str)
def test_a_burst_is_set_aside_wherever_it_is(begin, link):
    for seed in range(5):
        told, _ = poll(seed, lies=(begin, begin + 60), link=link)
        honest = conclude(poll(seed, link=link)[0], ridge=RIDGE, link=link)
        robust = conclude(told, ridge=RIDGE, link=link)
        plain, *_ = fitted(told, link)
        aside = set().union(*(range(burst.begin, burst.end) for burst in robust.bursts))
        assert len(aside & set(range(begin, begin + 60))) >= 40
        assert all(burst.gain > burst.bar for burst in robust.bursts)
        assert robust.votes == 400
        error = np.linalg.norm(robust.theta - honest.theta)
        assert error < 0.6 * np.linalg.norm(plain - honest.theta)


def test_votes_that_agree_more_than_expected_are_kept():
    told, _ = poll(0, votes=2000, steep=(500, 900))
    theta, whole, votes = fitted(told)
    value, agreement = gain(theta, whole, votes, np.array([5, 9]))
    assert value > 15.0
    assert agreement > 0.0
    assert not any(burst.begin < 900 and burst.end > 500 for burst in conclude(told, ridge=RIDGE, link=LOGISTIC).bursts)


def test_two_bursts_are_set_aside_but_never_most_votes():
    told, _ = poll(3, votes=1000, lies=(100, 200))
    codes = told.votes.copy()
    codes[700:800] = codes[700:800] // 3 * 3 + 2 - codes[700:800] % 3
    state = told.state() | {"votes": codes, "wins": np.bincount(codes // 3, codes % 3 / 2.0, len(told))}
    found = conclude(Comparisons.from_state(state, 2), ridge=RIDGE, link=LOGISTIC).bursts
    assert min((burst.begin // 50, burst.end // 50) for burst in found) == (2, 4)
    assert len(found) == 2
    told, _ = poll(3, lies=(0, 400))
    assert sum(burst.end - burst.begin for burst in conclude(told, ridge=RIDGE, link=LOGISTIC).bursts) < 200


def test_the_gain_does_not_depend_on_the_units_of_the_link():
    told, _ = poll(4, lies=(100, 160))
    window = np.array([5, 8])
    plain = gain(*fitted(told), window)[0]
    scaled = gain(*fitted(told, Link("logistic", 4.0), 4.0 * RIDGE), window)[0]
    assert scaled == pytest.approx(plain, rel=1e-6)
    flat, _ = poll(4, lies=(100, 160), link=clipped_linear(0.05))
    assert 0.0 < gain(*fitted(flat, clipped_linear(0.05)), window)[0] < 400 * np.log(2.0)


def test_few_votes_or_many_features_are_not_scanned():
    assert (can_scan(40, 5), can_scan(39, 5), can_scan(40, 63), can_scan(40, 64)) == (True, False, True, False)
    told, _ = poll(0, votes=39, lies=(20, 30))
    theta, *_ = fitted(told)
    found = conclude(told, ridge=RIDGE, link=LOGISTIC)
    assert found.bursts == ()
    np.testing.assert_allclose(found.theta, theta, atol=1e-9)
