"""Sets that are not listed, against brute force over the list wherever there is one."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from fairduel import RCDB, RCDBS, BadInputError, CoLSTIM, MaxInP, MaxPairUCB, Outcome
from fairduel.action_sets import BallSet, HypercubeSet, ProductSet, hypercube
from fairduel.action_sets.vertices import climb_signs, diagonal_over, prove, sign_score
from fairduel.agents import GINOP, HCW, RandomPairs


def score(first, second, theta, inverse, radius):
    difference = first - second
    return (first + second) @ theta + radius * math.sqrt(max(difference @ inverse @ difference, 0.0))


def best_score(actions, theta, inverse, radius, *, self_duels=True):
    """Look at every pair."""
    pairs = itertools.product(actions, actions) if self_duels else itertools.permutations(actions, 2)
    return max(score(a, b, theta, inverse, radius) for a, b in pairs)


@st.composite
def problems(draw, dimensions):
    """θ, Σ⁻¹ and β of many kinds: no θ, no β, few and many duels behind."""
    d = draw(dimensions)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    past = rng.normal(size=(draw(st.integers(0, 3 * d)), d))
    inverse = np.linalg.inv(0.25 * np.eye(d) + draw(st.sampled_from([0.01, 0.1, 1.0])) * past.T @ past)
    theta = draw(st.sampled_from([0.0, 0.1, 1.0, 3.0])) * rng.normal(size=d)
    return theta, (inverse + inverse.T) / 2, draw(st.sampled_from([0.0, 0.1, 1.0, 3.0])), rng


@settings(deadline=None, max_examples=60)
@given(problems(st.integers(1, 5)), st.booleans())
def test_the_best_pair_of_a_hypercube_is_that_of_brute_force(problem, self_duels):
    theta, inverse, radius, rng = problem
    pair = HypercubeSet(len(theta)).best_pair(theta, inverse, radius, rng, self_duels=self_duels)
    truth = best_score(hypercube(len(theta)), theta, inverse, radius, self_duels=self_duels)
    assert pair.gap == 0.0
    assert pair.score == pytest.approx(truth, rel=1e-9, abs=1e-9)
    assert score(pair.first, pair.second, theta, inverse, radius) == pytest.approx(truth, rel=1e-8, abs=1e-8)
    assert self_duels or not np.array_equal(pair.first, pair.second)
    listed = hypercube(len(theta))
    indices = HypercubeSet(len(theta)).indices(pair.first, pair.second)
    np.testing.assert_allclose(listed[list(indices)], [pair.first, pair.second])


@settings(deadline=None, max_examples=40)
@given(problems(st.integers(2, 6)), st.integers(0, 40))
def test_a_search_that_is_cut_short_says_how_much_it_may_have_missed(problem, nodes):
    theta, inverse, radius, _ = problem
    cost, signs = np.abs(theta), np.zeros(len(theta))
    found, highest = prove(signs, inverse, cost, radius, True, nodes)
    every = itertools.product((-1.0, 0.0, 1.0), repeat=len(theta))
    truth = max(sign_score(np.array(each), inverse, cost, radius) for each in every)
    assert found <= truth + 1e-9 * (1 + truth) <= highest + 2e-9 * (1 + truth)
    assert found == pytest.approx(sign_score(signs, inverse, cost, radius), rel=1e-9)


@given(problems(st.integers(1, 8)))
@settings(deadline=None, max_examples=50)
def test_the_diagonal_lies_over_the_matrix(problem):
    _, inverse, _, _ = problem
    over = diagonal_over(inverse)
    assert np.linalg.eigvalsh(np.diag(over) - inverse)[0] >= -1e-10
    assert over.sum() <= len(inverse) * np.linalg.eigvalsh(inverse)[-1] * (1 + 1e-9)  # never worse than the first


@given(problems(st.integers(1, 7)))
@settings(deadline=None, max_examples=50)
def test_a_climb_ends_where_no_two_changes_help(problem):
    theta, inverse, radius, rng = problem
    cost = np.abs(theta)
    signs = rng.choice([-1.0, 0.0, 1.0], len(theta))
    before = sign_score(signs, inverse, cost, radius)
    value = climb_signs(signs, inverse, cost, radius)
    assert value >= before
    for i, j in itertools.product(range(len(theta)), repeat=2):
        for a, b in itertools.product((-1.0, 0.0, 1.0), repeat=2):
            other = signs.copy()
            other[i], other[j] = a, b
            assert sign_score(other, inverse, cost, radius) <= value + 1e-9 * (1 + value)


@pytest.mark.parametrize("seed", range(4))
def test_a_billion_actions_are_searched_with_a_certificate(seed):
    rng = np.random.default_rng(seed)
    d = 30
    past = rng.choice([-1.0, 0.0, 1.0], size=(200, d)) * 2 / math.sqrt(d)
    inverse = np.linalg.inv(0.25 * np.eye(d) + 0.3 * past.T @ past)
    theta = rng.normal(size=d) / math.sqrt(d)
    pair = HypercubeSet(d).best_pair(theta, inverse, math.sqrt(d), rng)
    assert pair.gap == 0.0
    sample = np.array([HypercubeSet(d).random(rng) for _ in range(400)])
    assert pair.score >= best_score(sample[:60], theta, inverse, math.sqrt(d))
    rough = HypercubeSet(d, nodes=0).best_pair(theta, inverse, math.sqrt(d), rng)
    assert rough.score <= pair.score + 1e-9 <= rough.score + rough.gap + 2e-9


@settings(deadline=None, max_examples=40)
@given(problems(st.integers(2, 4)))
def test_no_pair_of_the_ball_beats_the_one_that_was_found(problem):
    theta, inverse, radius, rng = problem
    d = len(theta)
    pair = BallSet(d).best_pair(theta, inverse, radius, rng)

    def loss(both):
        first, second = both[:d] / np.linalg.norm(both[:d]), both[d:] / np.linalg.norm(both[d:])
        return -score(first, second, theta, inverse, radius)

    truth = max(-minimize(loss, rng.normal(size=2 * d)).fun for _ in range(6))
    assert pair.score == pytest.approx(score(pair.first, pair.second, theta, inverse, radius))
    assert truth <= pair.score + 1e-6 * (1 + truth)
    assert max(np.linalg.norm(pair.first), np.linalg.norm(pair.second)) <= 1.0


@pytest.mark.parametrize("scale", [1e-8, 1e-4, 1.0, 1e4])
def test_certificates_hold_at_every_scale(scale):
    """θ and Σ⁻¹ may be tiny or huge: what is exact stays exact, and what is bounded stays bounded."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(2, 5))
        inverse = scale**2 * np.diag(10.0 ** rng.uniform(-2, 0, d))
        theta = scale * rng.normal(size=d) * (seed % 3)
        best = max(
            score(a, b, theta, inverse, 1.0)
            for a, b in ((BallSet(d).random(rng), BallSet(d).random(rng)) for _ in range(2000))
        )
        twin = BallSet(d).best_pair(theta / scale, inverse / scale**2, 1.0, rng)
        found = BallSet(d).best_pair(theta, inverse, 1.0, rng)
        assert found.score == pytest.approx(scale * twin.score, rel=1e-6)
        assert found.score >= best
        rough = HypercubeSet(d, nodes=0).best_pair(theta, inverse, 1.0, rng)
        truth = best_score(hypercube(d), theta, inverse, 1.0)
        assert rough.score <= truth * (1 + 1e-9) <= (rough.score + rough.gap) * (1 + 2e-9)


def test_parts_of_a_product_are_copied_and_checked():
    listed = np.eye(3)
    actions = ProductSet([listed, listed.astype(np.float32)])
    listed *= 9.0
    assert np.abs(actions.best(np.ones(6))).max() <= 1.0
    with pytest.raises(BadInputError, match="all of one length"):
        ProductSet([[[1.0, 0.0], [0.0]]])
    with pytest.raises(BadInputError, match="at least one part"):
        ProductSet(np.zeros((0, 3, 2)))


def test_the_ball_asks_two_different_actions_even_without_a_radius():
    rng = np.random.default_rng(0)
    pair = BallSet(3).best_pair(np.array([1.0, 0.0, 0.0]), np.eye(3), 0.0, rng, self_duels=False)
    assert not np.array_equal(pair.first, pair.second)


@st.composite
def products(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shapes = draw(st.lists(st.tuples(st.integers(2, 4), st.integers(1, 2)), min_size=1, max_size=3))
    parts = [rng.normal(size=shape) for shape in shapes]
    return [part / np.linalg.norm(part, axis=1).max() for part in parts]


@settings(deadline=None, max_examples=60)
@given(products(), st.data())
def test_the_gap_of_a_product_covers_what_brute_force_finds(parts, data):
    actions = ProductSet(parts)
    theta, inverse, radius, rng = data.draw(problems(st.just(actions.dimension)))
    self_duels = data.draw(st.booleans())
    listed = np.array([np.concatenate(each) for each in itertools.product(*parts)]) / math.sqrt(len(parts))
    pair = actions.best_pair(theta, inverse, radius, rng, self_duels=self_duels)
    truth = best_score(listed, theta, inverse, radius, self_duels=self_duels)
    assert pair.score <= truth + 1e-9 * (1 + abs(truth))
    assert truth <= pair.score + pair.gap + 1e-8 * (1 + abs(truth))
    assert actions.count == len(listed)
    for action, index in zip((pair.first, pair.second), actions.indices(pair.first, pair.second), strict=True):
        np.testing.assert_allclose(listed[index], action, atol=1e-12)


def test_a_product_of_any_parts_stays_in_the_unit_ball():
    actions = ProductSet([HypercubeSet(3), BallSet(2), np.eye(4)])
    rng = np.random.default_rng(0)
    assert actions.count is None
    assert actions.dimension == 9
    pair = actions.best_pair(rng.normal(size=9), np.eye(9), 1.0, rng)
    for action in (pair.first, pair.second, actions.random(rng)):
        assert np.linalg.norm(action) <= 1.0
    with pytest.raises(BadInputError, match="cannot be numbered"):
        actions.index(pair.first)


def test_a_warm_up_asks_two_different_actions():
    agent = RCDB(dimension=2, norm_bound=1.0, flip_budget=1, warmup=40)
    assert not any(agent.ask(HypercubeSet(2)).is_self_duel for _ in range(40))


SETS = [HypercubeSet(6), BallSet(4), ProductSet([HypercubeSet(2), np.eye(3)])]


@pytest.mark.parametrize("kind", [RCDB, RCDBS, MaxPairUCB, GINOP, HCW, RandomPairs])
@pytest.mark.parametrize("actions", SETS, ids=lambda actions: type(actions).__name__)
def test_agents_ask_any_set_and_resume(kind, actions, tmp_path):
    rng = np.random.default_rng(3)
    theta = rng.normal(size=actions.dimension)
    agent = kind(dimension=actions.dimension, norm_bound=3.0, horizon=200, seed=1, warmup=3)

    def played(one, rounds, seed):
        coins, asked = np.random.default_rng(seed), []
        for _ in range(rounds):
            duel = one.ask(actions)
            np.testing.assert_allclose(duel.features[0] - duel.features[1], duel.difference, atol=1e-12)
            first_won = coins.random() < 1 / (1 + math.exp(-duel.difference @ theta))
            one.tell(duel, Outcome.FIRST if first_won else Outcome.SECOND)
            asked.append(duel.features.tolist())
        return asked

    played(agent, 30, 0)
    waiting = agent.ask(actions)
    agent.save(tmp_path / "agent.npz")
    again = kind.load(tmp_path / "agent.npz")
    for each in (agent, again):
        each.tell(waiting, Outcome.FIRST)
    assert played(agent, 20, 1) == played(again, 20, 1)


def test_a_set_that_is_not_listed_is_asked_like_its_list():
    listed, described = (MaxPairUCB(dimension=4, norm_bound=2.0, horizon=100, seed=0) for _ in range(2))
    cube, theta = hypercube(4), np.array([1.0, -0.5, 0.2, 0.9])
    for t in range(40):
        duel = described.ask(HypercubeSet(4))
        twin = score(
            cube[duel.first], cube[duel.second], described.belief.estimator.theta, described.information.inverse, 0.0
        )
        assert twin == pytest.approx(duel.features.sum(axis=0) @ described.belief.estimator.theta)
        described.tell(duel, Outcome.FIRST if duel.difference @ theta > 0 else Outcome.SECOND)
        other = listed.ask(cube)
        listed.tell(other, Outcome.FIRST if other.difference @ theta > 0 else Outcome.SECOND)
        assert t > 0 or duel.width == pytest.approx(other.width)
    assert described.recommend(HypercubeSet(4)) == listed.recommend(cube) == int(np.argmax(cube @ theta))


@pytest.mark.parametrize("kind", [MaxInP, CoLSTIM])
def test_agents_that_look_at_each_action_say_so(kind):
    agent = kind(dimension=4, norm_bound=2.0, horizon=100)
    with pytest.raises(BadInputError, match="needs listed actions"):
        agent.ask(HypercubeSet(4))
    assert agent.asked == 0
    with pytest.raises(BadInputError, match="needs listed actions"):
        kind(dimension=4, norm_bound=2.0, horizon=100, warmup=5).ask(HypercubeSet(4))


def test_another_dimension_is_refused():
    agent = RCDB(dimension=4, norm_bound=2.0, horizon=100)
    with pytest.raises(BadInputError, match="4 features but the set's actions have 5"):
        agent.ask(HypercubeSet(5))


@pytest.mark.parametrize(
    "make", [lambda: BallSet(1), lambda: HypercubeSet(0), lambda: ProductSet([]), lambda: ProductSet([[[2.0, 0.0]]])]
)
def test_a_bad_set_is_refused(make):
    with pytest.raises(BadInputError):
        make()
