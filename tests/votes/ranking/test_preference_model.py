import math
import warnings

# ruff: noqa: N803, N806  # scikit-learn calls it X
import numpy as np
import pytest
from scipy import special
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from fairduel import LOGISTIC, BadInputError, SuspectInputWarning
from fairduel.votes import RobustPreferenceModel
from fairduel.votes.ranking.design_matrix import Pairs
from fairduel.votes.ranking.robust_fit import robust_fit

NAMES = np.array(["tea", "milk", "cocoa", "juice"])


def problem(seed=0, count=300, dimension=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, dimension)) / 2
    return X, (rng.random(count) < special.expit(X @ np.arange(1, dimension + 1))).astype(int)


def pairs(seed=0, count=300):
    rng = np.random.default_rng(seed)
    first = rng.integers(4, size=count)
    second = (first + rng.integers(1, 4, size=count)) % 4
    strength = np.array([1.0, 0.3, -0.3, -1.0])
    y = (rng.random(count) < special.expit(strength[first] - strength[second])).astype(int)
    return np.column_stack([first, second]), y


# scikit-learn's own checks, all of them: differences are ordinary features. Pairs are names or codes of items, which
# those checks (random real numbers) cannot make; the tests below are for them.
@parametrize_with_checks([RobustPreferenceModel(), RobustPreferenceModel(weights="fixed-point")])
def test_it_is_an_estimator(estimator, check, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # else the checks of array API input are skipped
    check(estimator)


@pytest.mark.parametrize("weights", ["none", "fixed-point"])
def test_differences_are_fitted_by_the_papers_equation(score_equation, weights):
    X, y = problem()
    counts = np.random.default_rng(1).random(300)
    model = RobustPreferenceModel(weights=weights, ridge=0.1).fit(X, y, sample_weight=counts)
    residual = score_equation(model.coef_, X, counts * model.weights_, y, 0.1, LOGISTIC)
    assert np.abs(residual).max() < 1e-5
    assert model.weights_.shape == (300,)
    assert model.n_iter_ > 0


def test_no_ridge_to_speak_of_is_plain_logistic_regression():
    X, y = problem()
    ours = RobustPreferenceModel(ridge=2.0).fit(X, y)
    theirs = LogisticRegression(C=0.5, fit_intercept=False, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_[0], atol=1e-5)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_probabilities_are_averaged_over_the_uncertainty():
    X, y = problem()
    for size in (20, 300):
        model = RobustPreferenceModel().fit(X[:size], y[:size])
        draws = np.random.default_rng(0).multivariate_normal(model.mean_, model.covariance_, size=20_000)
        averaged = special.expit(X[:50] @ draws.T).mean(axis=1)
        np.testing.assert_allclose(model.predict_proba(X[:50])[:, 1], averaged, atol=0.012)


@pytest.mark.parametrize("seed", range(4))
def test_means_and_probabilities_are_those_of_the_posterior(seed):
    """By importance sampling. Half or twice the step from mode to mean would miss it by 0.15, as the mode does."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, 6))
    y = (rng.random(12) < special.expit(3.0 * X[:, 0])).astype(int)
    model = RobustPreferenceModel(ridge=1.0).fit(X, y)
    theta = rng.normal(size=(200_000, 6))
    likelihood = np.exp(-np.logaddexp(0.0, np.where(y == 1, -1.0, 1.0) * (theta @ X.T)).sum(axis=1))
    mean = likelihood @ theta / likelihood.sum()
    assert np.linalg.norm(model.mean_ - mean) < 0.07 * np.linalg.norm(mean)
    assert np.linalg.norm(model.coef_ - mean) > 0.15 * np.linalg.norm(mean)
    exact = likelihood @ special.expit(theta @ X.T) / likelihood.sum()
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], exact, atol=0.045)


def embedded(seed, count, dimension, *, slope, spread, new=2000):
    """Votes on pairs of new items with normalised embeddings, whose margins have the standard deviation ``spread``."""
    rng = np.random.default_rng(seed)
    items = rng.normal(size=(2, count + new, dimension)) / np.arange(1, dimension + 1) ** slope
    items /= np.linalg.norm(items, axis=-1, keepdims=True)
    X = items[0] - items[1]
    margins = X @ rng.normal(size=dimension)
    y = (rng.random(count + new) < special.expit(margins * spread / margins.std())).astype(int)
    return X[:count], y[:count], X[count:], y[count:]


def log_loss(model, X, y):
    return np.logaddexp(0.0, np.where(y == 1, -1.0, 1.0) * model.decision_function(X)).mean()


@pytest.mark.parametrize(
    ("dimension", "count", "slope", "spread"),
    [(5, 200, 0.5, 1.5), (64, 200, 0.5, 4.0), (384, 300, 0.5, 4.0), (384, 1000, 1.0, 1.5), (384, 1000, 0.5, 4.0)],
)
def test_log_loss_is_at_most_half_a_hundredth_above_cross_validated_logistic_regression(
    dimension, count, slope, spread
):
    """Of honest votes. A ridge chosen by moments alone, and averaging around the mode, were up to 0.03 worse."""
    worse = []
    for seed in range(3):
        X, y, X_new, y_new = embedded(seed, count, dimension, slope=slope, spread=spread)
        ours = RobustPreferenceModel().fit(X, y)
        theirs = GridSearchCV(
            LogisticRegression(fit_intercept=False, max_iter=2000),
            {"C": np.logspace(-1, 2, 7)},
            cv=5,
            scoring="neg_log_loss",
        ).fit(X, y)
        worse.append(log_loss(ours, X_new, y_new) - log_loss(theirs, X_new, y_new))
    assert np.mean(worse) < 0.005


@pytest.mark.parametrize("unit", [1e-3, 1e3])
def test_the_unit_of_features_does_not_matter(unit):
    X, y, X_new, _ = embedded(0, 200, 20, slope=0.5, spread=1.5)
    one, other = RobustPreferenceModel().fit(X, y), RobustPreferenceModel().fit(unit * X, y)
    np.testing.assert_allclose(other.predict_proba(unit * X_new), one.predict_proba(X_new), atol=1e-4)
    assert other.ridge_ == pytest.approx(one.ridge_ * unit**2, rel=1e-3)


def test_every_vote_counts_fully_by_default():
    X, y = problem()
    model = RobustPreferenceModel().fit(X, y)
    np.testing.assert_array_equal(model.weights_, 1.0)
    assert RobustPreferenceModel(weights="fixed-point").fit(X, y).weights_.min() < 1.0


def test_a_weight_of_two_is_two_votes():
    X, y = problem()
    counts = np.random.default_rng(1).integers(0, 3, size=300)
    once = RobustPreferenceModel().fit(X, y, sample_weight=counts)
    twice = RobustPreferenceModel().fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_allclose(once.coef_, twice.coef_, atol=1e-6)


def test_turning_a_vote_around_changes_nothing():
    X, y = problem()
    turn = np.random.default_rng(1).random(300) < 0.5
    X_turned, y_turned = np.where(turn[:, None], -X, X), np.where(turn, 1 - y, y)
    for weights in ("none", "fixed-point"):
        model = RobustPreferenceModel(weights=weights)
        one, other = clone(model).fit(X, y), clone(model).fit(X_turned, y_turned)
        np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-7)
        np.testing.assert_allclose(one.weights_, other.weights_, rtol=1e-7)


@pytest.mark.parametrize("voters", [None, np.arange(300) % 20])
@pytest.mark.parametrize("weights", ["none", "fixed-point"])
@pytest.mark.parametrize("inputs", ["differences", "pairs"])
def test_learning_by_parts_is_learning_at_once(inputs, weights, voters):
    X, y = problem() if inputs == "differences" else pairs()
    if inputs == "differences":
        X = np.concatenate([X[:100], -X[:100], X[:100]])  # the same differences again
    model = RobustPreferenceModel(inputs=inputs, weights=weights, lies=None if weights == "none" else 20)
    at_once, by_parts = clone(model).fit(X, y, voters=voters), clone(model)
    for part in (slice(0, 50), slice(50, 210), slice(210, None)):
        by_parts.partial_fit(X[part], y[part], voters=None if voters is None else voters[part])
    np.testing.assert_allclose(by_parts.weights_, at_once.weights_, rtol=1e-6)
    np.testing.assert_allclose(by_parts.coef_, at_once.coef_, atol=1e-6)
    np.testing.assert_allclose(by_parts.covariance_, at_once.covariance_, atol=1e-6)


def test_new_items_may_come_later(score_equation):
    X, y = pairs()
    X, y = X[np.argsort((X == 3).any(axis=1), kind="stable")], y[np.argsort((X == 3).any(axis=1), kind="stable")]
    model = RobustPreferenceModel(inputs="pairs", weights="fixed-point", lies=20)
    model.partial_fit(NAMES[X[:100]], y[:100])
    assert set(model.items_) == set(NAMES[:3])
    model.partial_fit(NAMES[X[100:]], y[100:])
    assert set(model.items_) == set(NAMES)
    units = np.eye(4)[[model.items_.tolist().index(name) for name in NAMES]]
    rows = units[X[:, 0]] - units[X[:, 1]]
    assert np.abs(score_equation(model.coef_, rows, model.weights_, y, model.ridge_, LOGISTIC)).max() < 1e-5


def test_fit_forgets_what_was_learned_before():
    X, y = problem()
    model = RobustPreferenceModel().partial_fit(X, 1 - y)
    np.testing.assert_allclose(model.fit(X, y).coef_, RobustPreferenceModel().fit(X, y).coef_)


def test_pairs_of_names_are_fitted_like_votes():
    X, y = pairs()
    model = RobustPreferenceModel(inputs="pairs").fit(NAMES[X], y)
    first, second = (X[:, i].astype(np.int32) for i in (0, 1))
    design, row, turned = Pairs.collapse(first, second, 4)
    fit = robust_fit(design, row, np.where(turned, 1 - y, y).astype(float), np.ones(300), weights="none")
    np.testing.assert_allclose(dict(zip(model.items_, model.scores_, strict=True))["tea"], fit.theta[0], atol=1e-7)
    np.testing.assert_allclose(model.weights_, fit.weights, rtol=1e-7)
    assert model.predict([["tea", "juice"], ["juice", "tea"]]).tolist() == [1, 0]
    assert model.scores_.mean() == pytest.approx(0.0, abs=1e-12)


def test_an_unknown_item_is_average():
    X, y = pairs()
    model = RobustPreferenceModel(inputs="pairs").fit(NAMES[X], y)
    place = model.items_.tolist().index("tea")
    variance = model.covariance_[place, place] + 1.0 / model.ridge_  # the spread of the scores
    expected = (model.mean_[place] - model.mean_.mean()) / math.sqrt(1 + math.pi / 8 * variance)
    assert model.decision_function([["tea", "cider"]])[0] == pytest.approx(expected)
    np.testing.assert_allclose(model.predict_proba([["cider", "wine"]]), [[0.5, 0.5]])


def test_an_unknown_item_gets_no_confident_prediction():
    beaten = RobustPreferenceModel(inputs="pairs").fit([["tea", "milk"]] * 50 + [["milk", "tea"]], [1] * 50 + [0])
    assert beaten.predict_proba([["tea", "milk"]])[0, 1] > 0.9
    assert beaten.predict_proba([["tea", "cider"]])[0, 1] < 0.85


@pytest.mark.parametrize("by_context", [False, True])
def test_items_have_features_beside_themselves(score_equation, by_context):
    rng = np.random.default_rng(2)
    X, _ = pairs()
    features = rng.normal(size=(3, 4, 2) if by_context else (4, 2)) / 2
    context = rng.integers(3, size=300)
    table = features if by_context else np.stack([features] * 3)
    gaps = table[context, X[:, 0]] - table[context, X[:, 1]]
    y = (rng.random(300) < special.expit(gaps @ [3.0, -2.0])).astype(int)
    inputs = np.column_stack([X, context]) if by_context else X
    model = RobustPreferenceModel(inputs="pairs", features=features, ridge=0.1).fit(inputs, y)
    rows = np.hstack([np.eye(4)[X[:, 0]] - np.eye(4)[X[:, 1]], gaps])
    variances = np.einsum("ij,jk,ik->i", rows, model.covariance_, rows)
    expected = rows @ model.mean_ / np.sqrt(1 + math.pi / 8 * variances)
    np.testing.assert_allclose(model.decision_function(inputs), expected, atol=1e-12)
    assert np.abs(score_equation(model.coef_, rows, model.weights_, y, 0.1, LOGISTIC)).max() < 1e-5
    if by_context:  # else the items' own scores can say the same
        assert model.coef_[4] > 1.0
        assert model.coef_[5] < -0.5
    assert model.scores_.shape == (4,)
    named = RobustPreferenceModel(inputs="pairs", features=features, items=NAMES, ridge=0.1)
    if not by_context:
        np.testing.assert_allclose(named.fit(NAMES[X], y).coef_, model.coef_, atol=1e-9)
        with pytest.raises(BadInputError, match="'cider'"):
            named.predict([["tea", "cider"]])


def test_ties_are_half_a_win_each_or_dropped():
    X, y = problem()
    tied = np.where(np.arange(300) % 3 == 0, 0.5, y)
    half = RobustPreferenceModel().fit(X, tied)
    doubled = np.concatenate([X, X]), np.concatenate([np.ceil(tied), np.floor(tied)])
    expected = RobustPreferenceModel().fit(*doubled, sample_weight=np.full(600, 0.5))
    np.testing.assert_allclose(half.coef_, expected.coef_, atol=1e-6)
    dropped = RobustPreferenceModel(ties="drop").fit(X, tied)
    kept = tied != 0.5
    np.testing.assert_allclose(dropped.coef_, RobustPreferenceModel().fit(X[kept], y[kept]).coef_, atol=1e-6)
    share = (dropped.predict(X[kept]) == y[kept]).mean()
    assert dropped.score(X, tied) == pytest.approx(share)
    assert half.score(X, tied) == pytest.approx((2 * (half.predict(X[kept]) == y[kept]).mean() + 0.5) / 3)


def test_votes_of_one_voter_may_depend_on_each_other():
    X, y = problem()
    copied = np.repeat(X, 5, axis=0), np.repeat(y, 5)
    voters = np.repeat(np.arange(300), 5)
    one = RobustPreferenceModel().fit(X, y)
    naive = RobustPreferenceModel().fit(*copied)
    clustered = RobustPreferenceModel().fit(*copied, voters=voters)
    assert np.trace(naive.covariance_) == pytest.approx(np.trace(one.covariance_) / 5, rel=0.15)
    assert np.trace(clustered.covariance_) == pytest.approx(np.trace(one.covariance_), rel=0.3)


def test_votes_on_an_item_that_nobody_else_knows_count_less():
    X, y = pairs(count=400)
    known = (X != 3).all(axis=1)
    X = np.concatenate([X[known], np.tile([[3, 0]], (5, 1))])  # the newcomer beats the best five times
    y = np.concatenate([y[known], np.ones(5, dtype=int)])
    plain, robust = (
        RobustPreferenceModel(inputs="pairs", weights=weights).fit(X, y) for weights in ("none", "fixed-point")
    )
    assert robust.weights_[-5:].max() < 0.5
    assert robust.weights_[:-5].min() == 1.0
    assert robust.scores_[3] < plain.scores_[3] - 0.2


def test_five_false_wins_of_a_newcomer_raise_its_score_ten_times_less_with_the_papers_weights():
    found = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        strength = np.append(0.0, rng.normal(size=19))
        first = rng.integers(1, 20, size=2000)
        second = (first + rng.integers(18, size=2000)) % 19 + 1
        y = rng.random(2000) < special.expit(strength[first] - strength[second])
        X = np.concatenate([np.column_stack([first, second]), [[0, rival] for rival in rng.integers(1, 20, size=5)]])
        results = np.append(y, np.ones(5, dtype=bool)).astype(int)
        models = (RobustPreferenceModel(inputs="pairs", weights=weights) for weights in ("none", "fixed-point"))
        found.append([model.fit(X, results).scores_[0] for model in models])
    plain, robust = np.mean(found, axis=0)
    assert plain > 1.0
    assert robust < 0.2


def test_pipelines_searches_and_cross_validation_work():
    X, y = problem()
    scores = cross_val_score(make_pipeline(StandardScaler(with_mean=False), RobustPreferenceModel()), X, y, cv=3)
    assert scores.min() > 0.6
    search = GridSearchCV(RobustPreferenceModel(), {"ridge": [0.01, 1000.0], "weights": ["none", "fixed-point"]}, cv=3)
    assert search.fit(X, y).best_params_["ridge"] == 0.01
    names, result = pairs()
    assert cross_val_score(RobustPreferenceModel(inputs="pairs"), NAMES[names], result, cv=3).min() > 0.5
    with config_context(enable_metadata_routing=True):
        model = RobustPreferenceModel().set_fit_request(voters=True)
        voters = np.arange(300) % 30
        scores = cross_val_score(
            model, X, y, cv=GroupKFold(3).set_split_request(groups=True), params={"voters": voters, "groups": voters}
        )
        assert scores.min() > 0.6


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"inputs": "names"}, "kind of inputs"),
        ({"weights": "equal"}, "kind of weights"),
        ({"ties": "both"}, "ties"),
        ({"ridge": 0.0}, "ridge"),
        ({"lies": -1.0, "weights": "fixed-point"}, "lies must be a number"),
        ({"lies": 5.0}, "use weights='fixed-point'"),
    ],
)
def test_bad_settings_are_refused_when_fitted(changes, reason):
    with pytest.raises(BadInputError, match=reason):
        RobustPreferenceModel(**changes).fit(*problem())


def test_bad_votes_are_refused():
    X, y = problem()
    pair_model = RobustPreferenceModel(inputs="pairs")
    for model, bad_X, bad_y, settings in (
        (pair_model, X, y, {}),
        (pair_model, [["tea", "milk"]], [1, 0], {}),
        (RobustPreferenceModel(), X, y, {"voters": [1, 2]}),
        (RobustPreferenceModel(), X, y, {"sample_weight": np.zeros(300)}),
        (RobustPreferenceModel(), X, np.arange(300) % 3, {}),
        (RobustPreferenceModel(ties="drop"), X, np.full(300, 0.5), {}),
        (RobustPreferenceModel(inputs="pairs", features=np.ones((3, 4, 1))), [[0, 1, 5]], [1], {}),
        (RobustPreferenceModel(inputs="pairs", features=[[np.nan], [1]]), [[0, 1]], [1], {}),
    ):
        with pytest.raises(ValueError):
            clone(model).fit(bad_X, bad_y, **settings)
    fitted = RobustPreferenceModel().partial_fit(X, y)
    with pytest.raises(BadInputError, match="with all votes or with none"):
        fitted.partial_fit(X, y, voters=np.arange(300))
    with pytest.raises(AttributeError):
        _ = fitted.scores_


@pytest.mark.parametrize(
    "labels",
    [
        ("first", "second"),
        ("A", "B"),
        ("model_a", "model_b"),
        (" Left", "RIGHT"),
        (1, 2),
        (1.0, 2.0),
        ("yes", "no"),
        (1, -1),
    ],
)
def test_words_for_the_two_places_say_who_won(labels):
    X, y = pairs()
    won = np.where(y == 1, labels[0], labels[1])
    plain, model = (RobustPreferenceModel(inputs="pairs").fit(X, results) for results in (y, won))
    np.testing.assert_array_equal(model.scores_, plain.scores_)
    assert model.classes_.tolist() == sorted(labels)
    place = sorted(labels).index(labels[0])
    np.testing.assert_array_equal(model.predict_proba(X)[:, place], plain.predict_proba(X)[:, 1])
    np.testing.assert_array_equal(model.predict(X), np.where(plain.predict(X) == 1, labels[0], labels[1]))
    np.testing.assert_array_equal(model.decision_function(X) > 0, model.predict(X) == model.classes_[1])
    assert model.score(X, won) == plain.score(X, y)
    told = RobustPreferenceModel(inputs="pairs").partial_fit(X, won, classes=labels)
    np.testing.assert_array_equal(told.scores_, plain.scores_)


@pytest.mark.parametrize("inputs", ["pairs", "differences"])
@pytest.mark.parametrize("way", ["fit", "partial_fit"])
def test_votes_that_are_refused_change_nothing(inputs, way):
    X, y = pairs() if inputs == "pairs" else problem()
    model = RobustPreferenceModel(inputs=inputs).fit(X, y)
    before = dict(vars(model))
    other = X[:2] + 7 if way == "partial_fit" or inputs == "pairs" else X[:2, :2]
    with pytest.raises(BadInputError, match="every vote has the same result, 7" if way == "fit" else "y must hold"):
        getattr(model, way)(other, [7, 7])
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"items": ["a", "a", "b"]}, "list of unique names"),
        ({"items": ["a", "b"], "features": np.ones((3, 2))}, "features cover 3 items but 2 are named"),
        ({"items": ["a", "b", "c"], "features": np.ones((2, 2))}, "features cover 2 items but 3 are named"),
    ],
)
def test_items_and_features_must_agree(settings, reason):
    with pytest.raises(BadInputError, match=reason):
        RobustPreferenceModel(inputs="pairs", **settings).fit([["a", "b"]], [1])


@pytest.mark.parametrize("other", [1, None])
def test_items_are_of_one_kind(other):
    with pytest.raises(BadInputError, match="all be names or all be numbers"):
        RobustPreferenceModel(inputs="pairs").fit(np.array([["a", other], ["b", "a"]], dtype=object), [1, 0])


def test_a_score_needs_a_vote_that_counts():
    X, y = problem()
    model = RobustPreferenceModel(ties="drop").fit(X, y)
    with pytest.raises(BadInputError, match="no vote counts: all have weight 0 or are dropped ties"):
        model.score(X, y, sample_weight=np.zeros(len(y)))
    with pytest.raises(BadInputError, match="no vote counts: all have weight 0 or are dropped ties"):
        model.score(X, np.full(len(y), 0.5))


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (["model_a"] * 4, "every vote has the same result, 'model_a', so y does not say which item that means"),
        ([2, 2, 2, 2], "every vote has the same result, 2, .* write 1 if the first item won and 0 if the second did"),
        (["a", "b", "c", "a"], "a vote is won by the first or the second item, but y has 3 different results"),
    ],
)
def test_results_that_do_not_say_who_won_are_refused_in_the_words_of_votes(labels, words):
    X, _ = problem(count=4)
    with pytest.raises(BadInputError, match=words):
        RobustPreferenceModel().fit(X, labels)
    with pytest.raises(BadInputError, match="classes must name two results"):
        RobustPreferenceModel().partial_fit(X, labels, classes=labels[:1])


ITEM_NUMBERS = [[3, 4], [4, 3], [0, 3], [3, 1]]


@pytest.mark.parametrize("X", [ITEM_NUMBERS, np.array(ITEM_NUMBERS), np.array(ITEM_NUMBERS, dtype=np.uint8)])
def test_item_numbers_passed_as_features_are_warned_of(X):
    y = [1, 0, 0, 1]
    model = RobustPreferenceModel()
    for act in (lambda: model.fit(X, y), lambda: model.partial_fit(X, y), lambda: model.decision_function(X)):
        with pytest.warns(SuspectInputWarning, match=r"RobustPreferenceModel\(inputs='pairs'\)") as said:
            act()
        assert said[0].filename == __file__


@pytest.mark.parametrize(
    "X",
    [
        np.array(ITEM_NUMBERS, dtype=float),
        [[0.5, 1.0], [1.0, 2.0], [0.0, 3.0], [2.0, 1.0]],
        [[3, -4], [4, 3], [0, 3], [3, 1]],  # differences of whole numbers
        [[3, 3], [4, 3], [0, 3], [3, 1]],  # no item meets itself
        [[3, 4, 0], [4, 3, 1], [0, 3, 1], [3, 1, 0]],
    ],
)
def test_features_are_not_taken_for_item_numbers(X):
    y = [1, 0, 0, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RobustPreferenceModel().fit(X, y).predict(X)
        RobustPreferenceModel(inputs="pairs").fit(ITEM_NUMBERS, y).predict(ITEM_NUMBERS)
