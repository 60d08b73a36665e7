import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from fairduel.action_sets import hypercube
from fairduel.core import selection
from fairduel.core.information import SMALL_SET
from fairduel.core.selection import (
    View,
    _best_pair_among_many,
    _best_pair_of_all,
    _promising_among_many,
    _thriftiest_among_few,
    _thriftiest_among_many,
    pair_widths,
    pick,
    promising,
    random_pair,
    uncertainty_weight,
    view_by,
)

ALMOST_ONE = math.nextafter(1.0, 0.0)


def symmetric_pair(actions, theta, inverse, *settings):
    return selection.symmetric_pair(view_by(inverse, actions, theta), *settings)


def symmetric_pair_by_gram(rewards, gram, *settings):
    return selection.symmetric_pair(View(rewards, gram, np.empty((0, 1))), *settings)


def informative_pair(actions, theta, inverse, *settings):
    return selection.informative_pair(view_by(inverse, actions, theta), *settings)


def perturbed_pair(actions, theta, inverse, *settings):
    return selection.perturbed_pair(view_by(inverse, actions, theta), *settings)


def thrifty_pair(actions, theta, inverse, *settings):
    return selection.thrifty_pair(view_by(inverse, actions, theta), *settings)


@st.composite
def problems(draw):
    """Distinct actions and θ on a coarse grid, so that exact ties are common, and any Σ⁻¹."""
    dimension = draw(st.integers(1, 3))
    row = st.tuples(*[st.integers(-4, 4)] * dimension)
    rows = draw(st.lists(row, min_size=2, max_size=8, unique=True))
    theta = draw(st.tuples(*[st.integers(-3, 3)] * dimension))
    root = np.random.default_rng(draw(st.integers(0, 2**32 - 1))).standard_normal((dimension, dimension))
    inverse = np.eye(dimension) if draw(st.booleans()) else root @ root.T + 0.05 * np.eye(dimension)
    radius = draw(st.sampled_from([0.0, 0.3, 1.0, 7.0]))
    return np.array(rows, dtype=float) / 8.0, np.array(theta, dtype=float) / 2.0, inverse, radius


ties = st.floats(0, 1, exclude_max=True)


def reward(x, theta):
    return sum(float(f) * float(t) for f, t in zip(x, theta, strict=True))


def width(x, y, inverse):
    difference = [float(p) - float(q) for p, q in zip(x, y, strict=True)]
    indices = range(len(difference))
    total = sum(difference[i] * float(inverse[i, j]) * difference[j] for i in indices for j in indices)
    return math.sqrt(max(total, 0.0))


def slow_symmetric_scores(actions, theta, inverse, radius):
    return {
        (a, b): reward(x, theta) + reward(y, theta) + radius * width(x, y, inverse)
        for a, x in enumerate(actions)
        for b, y in enumerate(actions)
    }


def slow_rival_scores(actions, theta, inverse, radius, first):
    return [
        reward(x, theta) - reward(actions[first], theta) + radius * width(x, actions[first], inverse) for x in actions
    ]


def slow_margins(actions, theta, inverse, radius):
    return {
        (i, j): reward(x, theta) - reward(y, theta) + radius * width(x, y, inverse)
        for i, x in enumerate(actions)
        for j, y in enumerate(actions)
        if i != j
    }


def slow_promising(actions, theta, inverse, radius):
    margins = slow_margins(actions, theta, inverse, radius)
    assume(all(abs(margin) > 1e-7 for margin in margins.values()))
    return {i for i in range(len(actions)) if all(margins[i, j] > 0 for j in range(len(actions)) if j != i)}


@given(problems())
def test_pair_widths_are_the_norms_of_the_differences(problem):
    actions, _, inverse, _ = problem
    widths = pair_widths(actions @ inverse @ actions.T)
    for i, x in enumerate(actions):
        for j, y in enumerate(actions):
            assert widths[i, j] == pytest.approx(width(x, y, inverse), rel=1e-9, abs=1e-12)
            assert widths[i, j] == widths[j, i]


@given(problems(), ties, st.booleans())
def test_symmetric_pair_is_the_brute_force_argmax(problem, tie, self_duels):
    scores = slow_symmetric_scores(*problem)
    allowed = {pair: s for pair, s in scores.items() if self_duels or pair[0] != pair[1]}
    assert allowed[symmetric_pair(*problem, self_duels, tie)] >= max(allowed.values()) - 2e-9


@given(problems())
def test_symmetric_pair_gives_every_tie_the_same_share_of_the_uniform_number(problem):
    scores = slow_symmetric_scores(*problem)
    gaps = {frozenset(pair): max(scores.values()) - s for pair, s in scores.items()}
    assume(not any(1e-11 < gap < 1e-7 for gap in gaps.values()))
    tied = {pair for pair, gap in gaps.items() if gap < 1e-9}
    chosen = Counter(
        frozenset(symmetric_pair(*problem, True, (k + 0.5) / (3 * len(tied)))) for k in range(3 * len(tied))
    )
    assert chosen == dict.fromkeys(tied, 3)


@pytest.mark.parametrize("radius", [0.0, 0.1, 2.0, 40.0])
@pytest.mark.parametrize("self_duels", [True, False])
@pytest.mark.parametrize("dimension", [1, 4, 5, 7])
def test_no_pair_is_missed_in_rows_that_are_passed_over(dimension, self_duels, radius):
    """Hypercubes have many ties: every one must be found, in the order of the triangle of pairs."""
    rng = np.random.default_rng(dimension)
    actions = hypercube(dimension)
    asked = actions[rng.integers(len(actions), size=9)] - actions[rng.integers(len(actions), size=9)]
    gram = actions @ np.linalg.inv(0.25 * np.eye(dimension) + asked.T @ asked) @ actions.T
    places = [(a, b) for a in range(len(actions)) for b in range(a + 1)]
    for theta in (np.zeros(dimension), np.eye(dimension)[0], rng.normal(size=dimension)):
        rewards, widths = actions @ theta, pair_widths(gram)
        scores = np.array([rewards[a] + rewards[b] + radius * widths[a, b] for a, b in places])
        scores[[a == b and not self_duels for a, b in places]] = -np.inf
        for tie in (0.0, 0.3, 0.77, ALMOST_ONE):
            assert symmetric_pair_by_gram(rewards, gram, radius, self_duels, tie) == places[pick(scores, tie)]


@pytest.mark.parametrize("radius", [0.3, 1e3, 1e9])
@pytest.mark.parametrize("self_duels", [True, False])
def test_rounding_of_the_gram_matrix_loses_no_pair(self_duels, radius):
    """In single precision it is symmetric to 1e-7 only; with huge scores all differ by more than ``TIE``."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        actions = (rng.normal(size=(50, 64)) / 9).astype(np.float32)
        gram = ((actions @ np.diag(rng.uniform(0.01, 4, 64)).astype(np.float32)) @ actions.T).astype(np.float64)
        rewards = rng.normal(size=50)
        scores = rewards[:, None] + rewards + radius * pair_widths(gram)
        if not self_duels:
            np.fill_diagonal(scores, -np.inf)
        chosen = symmetric_pair_by_gram(rewards, gram, radius, self_duels, 0.5)
        assert scores[chosen] >= scores.max() - 2e-9 - 1e-14 * abs(scores.max())


@given(problems(), ties, st.data())
def test_toughest_rival_is_the_brute_force_argmax(problem, tie, data):
    actions, theta, inverse, radius = problem
    first = data.draw(st.integers(0, len(actions) - 1))
    self_duels = data.draw(st.booleans())
    scores = slow_rival_scores(*problem, first)
    seen = view_by(inverse, actions, theta)
    many = seen._replace(gram=np.empty((0, 0)), points=actions @ np.linalg.cholesky(inverse))
    rival = selection.toughest_rival(seen, radius, first, self_duels, tie)
    assert scores[selection.toughest_rival(many, radius, first, self_duels, tie)] >= scores[rival] - 2e-9
    allowed = [s for i, s in enumerate(scores) if self_duels or i != first]
    assert self_duels or rival != first
    assert scores[rival] >= max(allowed) - 2e-9


@given(problems())
def test_promising_is_its_definition(problem):
    actions, theta, inverse, radius = problem
    expected = slow_promising(*problem)
    points, rewards = actions @ np.linalg.cholesky(inverse), actions @ theta
    assert set(promising(actions @ inverse @ actions.T, rewards, radius)) == expected
    assert set(_promising_among_many(points, rewards, radius)) == expected


@given(problems(), ties)
def test_informative_pair_is_the_widest_promising_one(problem, tie):
    actions, _, inverse, _ = problem
    candidates = slow_promising(*problem)
    assume(len(candidates) >= 2)
    first, second = informative_pair(*problem, True, tie)
    widest = max(width(actions[i], actions[j], inverse) for i in candidates for j in candidates)
    assert {first, second} <= candidates
    assert first != second
    assert width(actions[first], actions[second], inverse) >= widest - 2e-9


@given(problems(), ties)
def test_a_lone_promising_action_duels_itself(problem, tie):
    candidates = slow_promising(*problem[:3], 0.01)
    assume(len(candidates) == 1)
    alone = candidates.pop()
    assert informative_pair(*problem[:3], 0.01, True, tie) == (alone, alone)


def test_a_lone_promising_action_meets_its_toughest_rival_where_self_duels_are_not_allowed():
    actions = np.array([[1.0, 0.0], [0.9, 0.0], [-1.0, 0.0], [0.0, 1.0]])
    theta = np.array([2.0, 0.0])
    assert informative_pair(actions, theta, 1e-6 * np.eye(2), 1.0, True, 0.3) == (0, 0)
    assert informative_pair(actions, theta, 1e-6 * np.eye(2), 1.0, False, 0.3) == (0, 1)


def test_where_nothing_is_promising_the_greedy_action_duels_itself():
    actions = np.array([[1.0, 0.0], [1.0, 0.5], [-1.0, 0.0]]) / 2
    theta = np.array([1.0, 0.0])  # the first two are equally good, and the radius is 0
    assert promising(actions @ actions.T, actions @ theta, 0.0).size == 0
    assert _promising_among_many(actions, actions @ theta, 0.0).size == 0
    chosen = {informative_pair(actions, theta, np.eye(2), 0.0, True, tie) for tie in (0.0, 0.49, 0.51, 0.99)}
    assert chosen == {(0, 0), (1, 1)}
    assert {informative_pair(actions, theta, np.eye(2), 0.0, False, tie) for tie in (0.1, 0.9)} == {(0, 1), (1, 0)}


@given(problems(), ties, st.data())
def test_perturbed_pair_is_the_perturbed_leader_and_its_toughest_rival(problem, tie, data):
    actions, theta, inverse, radius = problem
    noise = np.array(data.draw(st.lists(st.floats(-3, 3), min_size=len(actions), max_size=len(actions))))
    first, second = perturbed_pair(actions, theta, inverse, radius, noise, True, (tie, 0.5 * tie))
    origin = np.zeros(len(theta))
    perturbed = [reward(x, theta) + float(e) * width(x, origin, inverse) for x, e in zip(actions, noise, strict=True)]
    rivals = slow_rival_scores(*problem, first)
    assert perturbed[first] >= max(perturbed) - 2e-9
    assert rivals[second] >= max(rivals) - 2e-9


@given(problems(), ties, st.booleans())
def test_without_self_duels_two_actions_are_always_asked(problem, tie, with_copies):
    actions, theta, inverse, radius = problem
    if with_copies:
        actions = np.repeat(actions, 2, axis=0)
    noise = np.zeros(len(actions))
    pairs = [
        symmetric_pair(actions, theta, inverse, radius, False, tie),
        informative_pair(actions, theta, inverse, radius, False, tie),
        perturbed_pair(actions, theta, inverse, radius, noise, False, (tie, tie)),
    ]
    assert all(first != second for first, second in pairs)


@given(st.lists(st.sampled_from([0.0, 1.0, 1.0 + 1e-10, 1.0 - 1e-8, -math.inf]), min_size=1), ties)
def test_pick_takes_one_of_the_scores_within_a_billionth_of_the_best(scores, tie):
    chosen = pick(np.array(scores), tie)
    assert scores[chosen] >= max(scores) - 1e-9


@pytest.mark.parametrize("count", [1, 2, 3, 7, 32, 997])
def test_pick_never_runs_past_the_last_tie(count):
    assert pick(np.zeros(count), ALMOST_ONE) == count - 1
    assert pick(np.zeros(count), 0.0) == 0


def test_ties_on_the_hypercube_are_broken_uniformly():
    rng = np.random.default_rng(0)
    actions = hypercube(5)
    counts = Counter(
        frozenset(symmetric_pair(actions, np.zeros(5), np.eye(5), 1.0, True, rng.random())) for _ in range(8000)
    )
    assert len(counts) == 16
    assert all(np.allclose(actions[list(pair)].sum(axis=0), 0) for pair in counts)
    assert stats.chisquare(list(counts.values())).pvalue > 0.01


@pytest.mark.parametrize("count", [2, 3, 5, 32])
def test_random_pair_reaches_every_ordered_pair_equally(count):
    total = count * (count - 1)
    pairs = Counter(random_pair(count, (k + 0.5) / (2 * total)) for k in range(2 * total))
    assert pairs == {(a, b): 2 for a in range(count) for b in range(count) if a != b}


@pytest.mark.parametrize("count", [2, 3, 5, 32, 1000, 4097])
def test_random_pair_stays_within_the_actions_at_the_ends(count):
    assert random_pair(count, 0.0) == (0, 1)
    assert random_pair(count, ALMOST_ONE) == (count - 1, count - 2)


@given(st.floats(1e-6, 1e6), st.floats(1e-9, 1e6))
def test_the_weight_is_its_formula(trust, width):
    assert uncertainty_weight(trust, width) == pytest.approx(min(1.0, trust / width), rel=1e-15)


def test_a_self_duel_and_a_boundless_trust_have_weight_one():
    assert uncertainty_weight(0.3, 0.0) == 1.0
    assert uncertainty_weight(math.inf, 5.0) == 1.0
    assert uncertainty_weight(math.inf, 0.0) == 1.0


@given(problems(), ties, st.booleans())
def test_searches_among_few_and_many_actions_agree(problem, tie, self_duels):
    """The pruned search and the search of all pairs in blocks, on problems small enough for the obvious one."""
    actions, theta, inverse, radius = problem
    points, rewards = actions @ np.linalg.cholesky(inverse), actions @ theta
    expected = {symmetric_pair(*problem, self_duels, t) for t in np.linspace(0.0, ALMOST_ONE, 80)}
    scores = sorted(
        rewards[a] + rewards[b] + radius * width(actions[a], actions[b], inverse)
        for a in range(len(actions))
        for b in range(a + self_duels)
    )
    gaps = [high - low for low, high in itertools.pairwise(scores) if high > scores[-1] - 1e-6]
    assume(all(gap < 1e-12 or gap > 1e-8 for gap in gaps))
    for search, known in ((_best_pair_among_many, ()), (_best_pair_of_all, (scores[0],))):
        arguments = (points, rewards, radius, self_duels)
        assert search(*arguments, tie, *known) == symmetric_pair(*problem, self_duels, tie)
        assert {search(*arguments, t, *known) for t in np.linspace(0.0, ALMOST_ONE, 80)} == expected


@pytest.mark.parametrize("radius", [0.0, 0.05, 1.0, 50.0])
@pytest.mark.parametrize("self_duels", [True, False])
def test_many_actions_give_the_brute_force_pair(radius, self_duels):
    rng = np.random.default_rng(7)
    actions = rng.normal(size=(700, 6))
    actions /= np.linalg.norm(actions, axis=1, keepdims=True)
    theta = rng.normal(size=6)
    root = rng.normal(size=(6, 6))
    inverse = root @ root.T / 50 + 1e-3 * np.eye(6)
    first, second = symmetric_pair(actions, theta, inverse, radius, self_duels, 0.5)
    rewards = actions @ theta
    scores = rewards[:, None] + rewards[None, :] + radius * pair_widths(actions @ inverse @ actions.T)
    if not self_duels:
        np.fill_diagonal(scores, -np.inf)
    assert scores[first, second] == pytest.approx(scores.max(), abs=2e-9)


def test_many_promising_actions_give_the_widest_pair():
    rng = np.random.default_rng(8)
    actions = rng.normal(size=(500, 4)) / 10
    theta, inverse, radius = rng.normal(size=4), np.eye(4), 2.4
    rewards, widths = actions @ theta, pair_widths(actions @ inverse @ actions.T)
    margins = rewards[:, None] - rewards[None, :] + radius * widths
    np.fill_diagonal(margins, np.inf)
    candidates = np.flatnonzero((margins > 0).all(axis=1))
    assert SMALL_SET < len(candidates) < 500
    first, second = informative_pair(actions, theta, inverse, radius, True, 0.5)
    assert widths[first, second] == pytest.approx(widths[np.ix_(candidates, candidates)].max(), abs=2e-9)


@given(problem=problems(), radius=st.floats(0.01, 3))
def test_settling_is_by_how_much_the_radius_could_grow(problem, radius):
    """The leader is clearly ahead just below β times it, and not just above."""
    actions, theta, inverse, _ = problem
    leader, settling = selection.leader_and_settling(view_by(inverse, actions, theta), radius)
    assert actions[leader] @ theta == max(actions @ theta)
    if 1e-6 < settling < math.inf:
        for factor, is_clear in ((0.999, True), (1.001, False)):
            first, second = thrifty_pair(actions, theta, inverse, radius * settling * factor, 0.01, True, 0.5)
            assert (first == second) == is_clear


@given(problem=problems(), radius=st.floats(0.01, 3), share=st.floats(0.2, 5))
def test_a_margin_asks_for_a_lead_in_proportion_to_the_squared_width(problem, radius, share):
    """Settled just below the least lead over the larger of both needs, and not just above."""
    actions, theta, inverse, _ = problem
    leader, settling = selection.leader_and_settling(view_by(inverse, actions, theta), radius)
    margin = radius * share
    wide = [width(actions[leader], x, inverse) for x in actions]
    ratios = [
        reward(actions[leader] - x, theta) / max(radius * u, margin * u * u)
        for x, u in zip(actions, wide, strict=True)
        if u > 0.0
    ]
    _, found = selection.leader_and_settling(view_by(inverse, actions, theta), radius, margin)
    assert found == pytest.approx(min(ratios), rel=1e-6, abs=1e-9) if ratios else found == math.inf
    assert found <= settling
    if 1e-6 < found < math.inf:
        for factor, is_clear in ((0.999, True), (1.001, False)):
            needs = radius * found * factor, 0.01, True, 0.5, margin * found * factor
            first, second = thrifty_pair(actions, theta, inverse, *needs)
            assert (first == second) == is_clear


def slow_thrift(actions, theta, inverse, allowance):
    """Width over regret of all pairs."""
    best = max(reward(x, theta) for x in actions)
    return {
        (a, b): width(actions[a], actions[b], inverse)
        / (2.0 * best - reward(actions[a], theta) - reward(actions[b], theta) + allowance)
        for a in range(len(actions))
        for b in range(a)
    }


@given(problems(), ties, st.sampled_from([0.001, 0.1, 3.0]))
def test_thrifty_pair_is_the_brute_force_argmax(problem, tie, allowance):
    actions, theta, inverse, _ = problem
    thrift = slow_thrift(actions, theta, inverse, allowance)
    pair = thrifty_pair(actions, theta, inverse, 0.0, allowance, False, tie)
    assert thrift[max(pair), min(pair)] == pytest.approx(max(thrift.values()), rel=1e-8)


@given(problems(), ties)
def test_the_leader_duels_itself_exactly_when_the_symmetric_rule_would(problem, tie):
    actions, theta, inverse, radius = problem
    scores = slow_symmetric_scores(actions, theta, inverse, radius)
    leader = max(range(len(actions)), key=lambda i: scores[i, i])
    rivals = [score for pair, score in scores.items() if pair != (leader, leader)]
    assume(abs(max(rivals) - scores[leader, leader]) > 1e-7)
    first, second = thrifty_pair(*problem, 0.001, True, tie)
    alone = symmetric_pair(*problem, True, tie) == (leader, leader)
    assert ((first, second) == (leader, leader)) == alone
    assert (first == second) == alone


def test_thrifty_ties_are_broken_uniformly():
    """Without an estimate, all six longest diagonals of a regular hexagon's three are alike."""
    angles = np.arange(6) * np.pi / 3
    actions = np.column_stack([np.cos(angles), np.sin(angles)])
    chosen = Counter(
        thrifty_pair(actions, np.zeros(2), np.eye(2), 1.0, 0.1, False, tie) for tie in np.linspace(0, ALMOST_ONE, 300)
    )
    assert chosen == {(3, 0): 100, (4, 1): 100, (5, 2): 100}


@given(problems(), ties)
def test_thrifty_pairs_among_few_and_many_actions_agree(problem, tie):
    actions, theta, inverse, _ = problem
    costs = (actions @ theta).max() - actions @ theta + 0.05
    few = _thriftiest_among_few(actions @ inverse @ actions.T, costs, tie)
    many = _thriftiest_among_many(actions @ np.linalg.cholesky(inverse), costs, tie)
    thrift = {pair: width(*actions[list(pair)], inverse) / costs[list(pair)].sum() for pair in (few, many)}
    assert thrift[few] == pytest.approx(thrift[many], rel=1e-8)


@pytest.mark.parametrize("allowance", [0.002, 1.0])
@pytest.mark.parametrize("known", [1e-4, 1.0, 100.0])
def test_many_actions_give_the_thriftiest_pair(known, allowance):
    rng = np.random.default_rng(3)
    actions = rng.normal(size=(600, 5))
    actions /= np.linalg.norm(actions, axis=1, keepdims=True)
    theta, root = rng.normal(size=5), rng.normal(size=(5, 5))
    inverse = (root @ root.T + 0.01 * np.eye(5)) / known
    costs = (actions @ theta).max() - actions @ theta + allowance / 2
    ratios = pair_widths(actions @ inverse @ actions.T) / (costs[:, None] + costs[None, :])
    first, second = thrifty_pair(actions, theta, inverse, 0.0, allowance, False, 0.5)
    assert ratios[first, second] == pytest.approx(ratios.max(), rel=1e-8)


def test_equal_actions_are_asked_about_at_random():
    pairs = {thrifty_pair(np.ones((200, 1)), np.ones(1), np.eye(1), 1.0, 0.1, False, tie) for tie in (0.1, 0.9)}
    assert len(pairs) == 2
    assert all(first != second for first, second in pairs)
