"""The world of Oh 2026: rewards that are unchanged by the scaling, and a network that learns."""

import math

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from fairduel import RCDB, BadInputError
from fairduel.action_sets import checked_actions
from fairduel.simulation import Cell, play
from fairduel.worlds.post_serving import Network, PostServing, post_serving

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


def test_the_networks_gradient_is_that_of_the_squared_error():
    network, draws = Network(rng(), (3, 2)), rng(1)
    network._layers = [layer.astype(np.float64) for layer in network._layers]
    x, y = draws.normal(size=(20, 3)), draws.normal(size=(20, 2))

    def loss():
        return np.mean((network._forward(x)[-1] - y) ** 2)

    for layer, gradient in zip(network._layers, network.gradients(x, y), strict=True):
        for _ in range(20):
            place = tuple(draws.integers(size) for size in layer.shape)
            kept = layer[place]
            layer[place] = kept + 1e-6
            above = loss()
            layer[place] = kept - 1e-6
            assert gradient[place] == pytest.approx((above - loss()) / 2e-6, rel=1e-4, abs=1e-7)
            layer[place] = kept


def test_adam_moves_every_weight_by_the_step_at_first():
    """The first step of Adam is ±0.001 wherever there is a gradient."""
    network = Network(rng(), (2, 1))
    before = [layer.copy() for layer in network._layers]
    gradients = network.gradients(np.ones((1, 2), np.float32), np.ones((1, 1), np.float32))
    network._layers, second = [layer.copy() for layer in before], Network(rng(), (2, 1))
    network.learn(np.ones((1, 2)), np.ones((1, 1)))
    for layer, old, gradient in zip(network._layers, before, gradients, strict=True):
        moved = np.abs(layer - old)
        assert (moved[np.abs(gradient) > 1e-4] > 0.0015).all()  # two steps, mostly the same way
        assert moved.max() <= 0.0021
    np.testing.assert_array_equal(second._layers[0], before[0])


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
