"""Feature maps against kernels written out pair by pair, and what a map of one's own must do."""

import math

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from fairduel import BadInputError
from fairduel.core.links import LOGISTIC
from fairduel.features import MAPS, Chain, Custom, FeatureMap, Kernel, Quadratic, TrainingVotes, Whitened, as_map
from fairduel.features.kernels import evidence_of_map, kernel_matrix
from fairduel.testing import check_map


def ball(count, dimension, seed=0):
    rows = np.random.default_rng(seed).standard_normal((count, dimension))
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0)


def slow_kernel(kernel, scale, x, y):
    distance = math.dist(x, y)
    if kernel == "rbf":
        return math.exp(-(distance**2) / (2 * scale**2))
    step = math.sqrt(5) * distance / scale
    return (1 + step + step**2 / 3) * math.exp(-step)


@pytest.mark.parametrize("kernel", ["rbf", "matern52"])
def test_features_of_known_actions_are_the_kernel_exactly(kernel):
    known = ball(12, 3)
    features = Kernel(kernel, scale=0.6).fit(3, known)(known)
    slow = [[slow_kernel(kernel, 0.6, x, y) for y in known] for x in known]
    np.testing.assert_allclose(features @ features.T, slow, atol=1e-6)
    assert features.shape[1] <= 12


@pytest.mark.parametrize("kernel", ["rbf", "matern52"])
def test_random_features_approach_the_kernel(kernel):
    x = ball(10, 3)
    slow = np.array([[slow_kernel(kernel, 0.8, a, b) for b in x] for a in x])
    errors = []
    for features in (60, 6000):
        map_ = Kernel(kernel, scale=0.8, features=features).fit(3, seed=1)
        mapped = map_(x)
        assert (map_.size, mapped.shape) == (features, (10, features))
        np.testing.assert_allclose(np.linalg.norm(mapped, axis=1), 1.0, rtol=1e-9)
        errors.append(np.abs(mapped @ mapped.T - slow).max())
    assert errors[1] < 0.1
    assert errors[0] > 2 * errors[1]


def test_few_features_keep_the_directions_that_vary_most():
    known = ball(100, 2)
    kernel = Kernel("rbf", scale=0.5).fit(2, known)
    few = Kernel("rbf", scale=0.5, features=10).fit(2, known)
    slow = np.array([[slow_kernel("rbf", 0.5, x, y) for y in known] for x in known])
    best = np.linalg.eigvalsh(slow)[::-1]
    for map_, count in ((kernel, 60), (few, 10)):
        found = map_(known)
        assert np.linalg.norm(slow - found @ found.T) == pytest.approx(np.linalg.norm(best[count:]), rel=1e-3, abs=1e-6)


def test_quadratic_features_span_every_quadratic_function():
    x = ball(40, 3)
    matrix = np.array([[1.0, 2.0, 0.0], [2.0, -1.0, 0.5], [0.0, 0.5, 3.0]])
    rewards = np.einsum("ki,ij,kj->k", x, matrix, x) + x @ [1.0, 0.0, -2.0]
    mapped = Quadratic().fit(3)(x)
    assert mapped.shape == (40, 9)
    weights = np.linalg.lstsq(mapped, rewards, rcond=None)[0]
    np.testing.assert_allclose(mapped @ weights, rewards, atol=1e-10)
    np.testing.assert_allclose(mapped @ mapped.T, (x @ x.T + (x @ x.T) ** 2) / 2, atol=1e-12)


def test_whitened_components_vary_alike_and_new_actions_fit():
    known = ball(200, 6) * np.array([1.0, 0.7, 0.5, 0.3, 0.1, 0.01])
    whitened = Whitened(components=3).fit(6, known)
    covariance = np.cov(whitened(known).T, bias=True)
    np.testing.assert_allclose(covariance / covariance[0, 0], np.eye(3), atol=1e-9)
    assert np.linalg.norm(whitened(known), axis=1).max() == pytest.approx(1.0)
    assert np.linalg.norm(whitened(50 * known), axis=1).max() <= 1.0
    with pytest.raises(BadInputError, match=r"whitened.* learns from actions; fit it first"):
        Whitened(3).fit(6)


def test_a_chain_applies_one_map_after_another():
    known = ball(30, 5)
    chain = as_map("whitened(2)|rbf(0.5)").fit(5, known, seed=3)
    first = Whitened(2).fit(5, known)
    slow = [[slow_kernel("rbf", 0.5, x, y) for y in first(known)] for x in first(known)]
    np.testing.assert_allclose(chain(known) @ chain(known).T, slow, atol=1e-6)
    assert str(chain) == "whitened(2)|rbf(0.5)"


MAPS_TO_CHECK = [
    Quadratic(),
    Kernel("rbf"),
    Kernel("matern52", scale=0.3, features=20),
    Kernel("rbf", scale="votes"),
    Whitened(2),
    Chain(Whitened(3), Kernel("rbf", scale=1.0)),
]


@pytest.mark.parametrize("made", MAPS_TO_CHECK, ids=str)
@pytest.mark.parametrize("knows", [False, True])
def test_every_map_passes_the_check(made, knows):
    if knows or not made.needs_actions:
        check_map(made, dimension=4, actions=ball(25, 4) if knows else None)


class Absolute(FeatureMap):
    """Features and their absolute values; a map of one's own."""

    def __init__(self):
        super().__init__()

    def learn(self, actions, rng, *, are_known):
        """Learn nothing."""

    def mapped(self, actions):
        return np.hstack([actions, np.abs(actions)]) * math.sqrt(0.5)


def test_a_map_of_ones_own_needs_one_class_and_passes_the_check():
    check_map(Absolute(), dimension=3)
    check_map(Absolute(), dimension=3, actions=ball(9, 3))


class Noisy(Absolute):
    def mapped(self, actions):
        return super().mapped(actions) * np.random.default_rng().uniform(0.5, 1.0)


class Long(Absolute):
    def mapped(self, actions):
        return 9 * super().mapped(actions)


class Hidden(Absolute):
    """What it learned is not in its arrays."""

    def learn(self, actions, rng, *, are_known):  # noqa: ARG002
        self.turn = rng.standard_normal()

    def mapped(self, actions):
        return super().mapped(actions) * math.cos(getattr(self, "turn", 1.5))


@pytest.mark.parametrize(
    ("made", "message"),
    [(Noisy(), "other features the second time"), (Long(), "norms of at most 1"), (Hidden(), "after saving")],
)
def test_the_check_finds_what_is_wrong_with_a_map(made, message):
    with pytest.raises((AssertionError, BadInputError), match=message):
        check_map(made, dimension=3)


def test_a_function_and_a_scikit_learn_transformer_are_maps():
    known = ball(30, 3)
    doubled = Custom(lambda x: np.hstack([x, x**2])).fit(3)
    assert doubled.size == 6
    scaled = Custom(StandardScaler()).fit(3, known)
    expected = StandardScaler().fit_transform(known)
    np.testing.assert_allclose(scaled(known), expected / np.linalg.norm(expected, axis=1).max(), atol=1e-9)
    products = Custom(PolynomialFeatures(2, include_bias=False)).fit(3, known)
    assert products.size == 9
    with pytest.raises(BadInputError, match="cannot be saved; derive a class from"):
        doubled.state()
    with pytest.raises(BadInputError, match="must be a function or have a method transform"):
        Custom(3)
    with pytest.raises(BadInputError, match="one row per action"):
        Custom(lambda x: x[:1]).fit(3)


def test_a_transformer_is_fitted_anew_to_the_actions_of_each_map_and_a_fitted_one_is_kept():
    one, other = ball(30, 3), 0.1 * ball(30, 3, seed=1)
    unfitted = StandardScaler()
    declared = Custom(unfitted)
    maps = [declared.fit(3, actions) for actions in (one, other)]
    for map_, actions in zip(maps, (one, other), strict=True):
        np.testing.assert_allclose(map_(actions).mean(axis=0), 0.0, atol=1e-9)
    assert not hasattr(unfitted, "mean_")
    pipeline = make_pipeline(StandardScaler(), PolynomialFeatures(2, include_bias=False))
    with pytest.raises(BadInputError, match="is not fitted; fit it, or fit the map to known actions"):
        Custom(pipeline).fit(3)
    kept = Custom(pipeline.fit(one)).fit(3, other)
    expected = pipeline.transform(other)
    np.testing.assert_allclose(kept(other), expected / np.linalg.norm(expected, axis=1).max(), atol=1e-9)
    with pytest.raises(BadInputError, match="must return a table of numbers"):
        Custom(lambda x: np.full(x.shape, "red")).fit(3)


def test_the_effective_dimension_is_d_for_linear_features_and_grows_as_the_scale_shrinks():
    linear = Custom(lambda x: x).fit(6)
    assert linear.effective_dimension() == pytest.approx(6.0, rel=0.1)
    sizes = [Kernel("rbf", scale=scale, features=400).fit(3).effective_dimension() for scale in (4.0, 1.0, 0.5, 0.2)]
    assert sizes == sorted(sizes)
    assert 2.0 < sizes[0] < 6.0
    mapped = Kernel("rbf", scale=0.5).fit(2, ball(50, 2))
    rows = mapped.reference - mapped.reference.mean(axis=0)
    gram = rows.T @ rows * (100 / len(rows))
    slow = np.trace(gram @ np.linalg.inv(gram + np.eye(mapped.size)))
    assert mapped.effective_dimension() == pytest.approx(slow)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rfb(0.5)", "did you mean 'rbf'"),
        ("rbf(wide)", "needs numbers in its brackets"),
        ("rbf(-1.0)", "scale must be a positive number"),
        ("quadratic(3)", "does not take 1 numbers"),
        ("whitened(0)", "components must be a whole number ≥ 1"),
        ("", "feature map"),
    ],
)
def test_text_that_names_no_map_is_refused(text, message):
    with pytest.raises(BadInputError, match=message):
        as_map(text)


def test_a_map_is_fitted_once_and_to_actions_that_fit():
    declared = Kernel("rbf", scale=0.5)
    fitted = declared.fit(2)
    assert fitted.is_fitted
    assert not declared.is_fitted
    with pytest.raises(BadInputError, match="not fitted"):
        declared(ball(3, 2))
    with pytest.raises(BadInputError, match=r"finite actions of shape \(n, 2\)"):
        declared.fit(2, ball(4, 3))
    with pytest.raises(BadInputError, match="all the same"):
        Whitened(2).fit(2, np.ones((4, 2)) * 0.5)
    assert set(MAPS) == {"rbf", "matern52", "quadratic", "whitened", "neural"}


def test_the_evidence_of_a_scale_is_the_integral_of_the_likelihood():
    """With one feature, against the sum over a fine grid of weights."""
    draws = np.random.default_rng(0)
    differences, weights = draws.uniform(-1, 1, (60, 1)), draws.uniform(0.2, 1.0, 60)
    shares = (draws.random(60) < 1 / (1 + np.exp(-2 * differences[:, 0]))).astype(float)
    ballots = TrainingVotes(differences, -differences, weights, shares)
    grid, ridges, slow = np.linspace(-12, 12, 4001), (0.05, 0.5, 5.0), []
    for ridge in ridges:
        leads = differences * grid
        logs = (weights[:, None] * (shares[:, None] * leads - np.logaddexp(0.0, leads))).sum(axis=0)
        slow.append(np.log((np.exp(logs - ridge * grid**2 / 2) * math.sqrt(ridge)).sum()))
    found = [evidence_of_map(differences, ballots, LOGISTIC, ridge) for ridge in ridges]
    np.testing.assert_allclose(np.diff(found), np.diff(slow), atol=0.03)


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize(("truth", "chosen"), [(0.25, {0.5}), (4.0, {2.0, 4.0})])
def test_the_votes_choose_the_length_scale_that_made_the_rewards(known, truth, chosen):
    """Rewards that vary over 0.25 want the shortest scale, those that vary over 4 a longer one than usual."""
    actions = ball(300, 2, seed=3)
    made = as_map("rbf(votes)").fit(2, actions if known else None, seed=1)
    usual, draws = made.current_scale, np.random.default_rng(5)
    covariance = kernel_matrix("rbf", truth * usual, actions, actions) + 1e-8 * np.eye(300)
    rewards = 4.0 * np.linalg.cholesky(covariance) @ draws.standard_normal(300)
    first, second = draws.integers(300, size=(2, 1500))
    won = draws.random(1500) < 1 / (1 + np.exp(rewards[second] - rewards[first]))
    votes = TrainingVotes(actions[first], actions[second], np.ones(1500), won.astype(float))
    trained = made.trained(votes, link=LOGISTIC, ridge=0.1, actions=actions)
    assert trained.current_scale / usual in chosen
    assert made.current_scale == usual
    few = TrainingVotes(*(part[:3] for part in votes))
    assert made.trained(few, link=LOGISTIC, ridge=0.1).current_scale == usual  # three votes say nothing
    loaded = FeatureMap.from_state(trained.state())
    np.testing.assert_array_equal(loaded(actions), trained(actions))
    again = loaded.trained(votes, link=LOGISTIC, ridge=0.1, actions=actions)
    np.testing.assert_array_equal(again(actions), trained(actions))
