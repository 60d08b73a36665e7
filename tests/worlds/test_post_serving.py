"""The world of Oh 2026: rewards that are unchanged by the scaling, and a network that learns."""

import math

import numpy as np
import pytest
from sklearn.neural_network import MLPRegressor
from threadpoolctl import threadpool_limits

from fairduel import RCDB, BadInputError
from fairduel.action_sets import checked_actions
from fairduel.simulation import Cell, play
from fairduel.worlds.post_serving import PostServing, Predictor, post_serving

POSTS = {"none": 0, "abs": 1, "polynomial": 2, "sinusoidal": 2}


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("post", POSTS)
def test_rewards_are_those_of_unscaled_features_and_norms_are_at_most_one(post):
    world = PostServing(rng=rng(), dimension=3, count=200, post=post)
    assert world.dimension == 3 * (1 + POSTS[post])
    theta = world.parameter * world.scale
    largest = 0.0
    for t in range(1, 20):
        actions, rewards = world.offer(t)
        x = actions[:, :3] / world.scale
        if post == "none":
            checked_actions(actions, 3)
        assert np.abs(x).max() <= math.pi
        np.testing.assert_allclose(rewards, np.hstack([x, post_serving(x, post)]) @ theta, rtol=1e-9, atol=1e-12)
        largest = max(largest, np.linalg.norm(np.hstack([x, post_serving(x, post)]), axis=1).max() * world.scale)
    assert 0.7 < largest <= 1.0
    assert world.norm_bound == pytest.approx(np.linalg.norm(theta) / world.scale)


def test_parameters_have_the_published_spread():
    worlds = [PostServing(rng=rng(seed), dimension=10, post="abs") for seed in range(200)]
    theta = np.array([world.parameter * world.scale for world in worlds])
    assert theta[:, :10].std() == pytest.approx(0.1, rel=0.1)
    assert theta[:, 10:].std() == pytest.approx(5.0, rel=0.1)
    x = np.concatenate([world.offer(1).actions[:, :10] / world.scale for world in worlds[:20]])
    assert x.std() == pytest.approx(math.pi / math.sqrt(3), rel=0.05)


def test_what_is_shown_is_predicted_and_what_is_served_is_true():
    world = PostServing(rng=rng(), dimension=1, count=6, post="abs")
    errors = []
    with threadpool_limits(1):
        for t in range(1, 200):
            actions, _ = world.offer(t)
            checked_actions(actions, 2)
            features = world.served(1, 4)
            np.testing.assert_array_equal(features[:, :1], actions[[1, 4], :1])
            np.testing.assert_allclose(features[:, 1], np.abs(features[:, 0]), rtol=1e-12)
            errors.append(np.abs(actions[:, 1] - np.abs(actions[:, 0])).mean())
    assert np.mean(errors[-20:]) < 0.1 * np.mean(errors[:20])


def test_every_weight_moves_by_the_step_of_adam_twice_per_duel():
    """Adam's first steps are ±0.001 wherever the gradient keeps its sign."""
    x, y = np.ones((1, 2)), np.ones((1, 1))
    predictor = Predictor(rng(), (2, 1))
    np.testing.assert_array_equal(predictor.predict(np.ones((3, 2))), np.zeros((3, 1)))
    predictor.learn(x, y)
    twin = MLPRegressor(hidden_layer_sizes=(64, 64), random_state=predictor._network.random_state, alpha=0.0)
    first = twin.set_params(learning_rate_init=1e-12).partial_fit(x.astype(np.float32), y.ravel()).coefs_
    for before, after in zip(first, predictor._network.coefs_, strict=True):
        moved = np.abs(after - before)
        assert moved.max() == pytest.approx(0.002, rel=0.05)
        assert np.median(moved[moved > 1e-5]) == pytest.approx(0.002, rel=0.05)


def test_all_data_count_in_every_step():
    """A pair seen once counts like each of 300 others, which are more than scikit-learn's usual batch."""
    predictor, draws = Predictor(rng(), (1, 2)), rng(1)
    seen = []
    predictor._network.partial_fit = lambda x, y: seen.append((len(x), len(y), predictor._network.batch_size))
    for size in (300, 1):
        predictor.learn(draws.normal(size=(size, 1)), draws.normal(size=(size, 2)))
    assert seen == [(300, 300, 300)] * 2 + [(301, 301, 301)] * 2


def test_agents_that_can_are_served_and_others_learn_from_predictions():
    cell = Cell("rcdb", "none", 0, 30, "post-serving", world_settings={"post": "abs", "dimension": 2})
    assert not cell.is_compiled
    assert Cell("rcdb", "none", 0, 30, "post-serving").is_compiled
    served = []

    class Noting(RCDB):
        def serve(self, duel, features):
            served.append(super().serve(duel, features))
            return served[-1]

        def tell(self, duel, outcome):
            assert duel is served[-1]
            super().tell(duel, outcome)

    _, world, adversary, streams = cell.start(0)
    agent = Noting(dimension=4, norm_bound=world.norm_bound, flip_budget=0, horizon=30)
    trace = play(agent, world, adversary, horizon=30, labels=streams.labels)
    assert trace.weight.tolist() == [duel.weight for duel in served]
    assert len(served) == 30
    fgts = Cell("fgts", "none", 0, 5, "post-serving", world_settings={"post": "abs", "dimension": 2})
    assert len(fgts.run(0).trace.regret) == 5


def test_the_same_seed_is_the_same_run_and_unknown_features_are_refused():
    cell = Cell("rcdp", "greedy", 2, 40, "post-serving", world_settings={"post": "sinusoidal", "dimension": 2})
    assert cell.run(3).trace.first.tolist() == cell.run(3).trace.first.tolist() != cell.run(4).trace.first.tolist()
    with pytest.raises(BadInputError, match="did you mean 'abs'"):
        PostServing(rng=rng(), post="abss")
