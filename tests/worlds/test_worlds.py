import math

import numpy as np
import pytest

from fairduel import PROBIT, BadInputError
from fairduel.action_sets import checked_actions, hypercube
from fairduel.worlds import WORLDS, Fresh, HardCorrupted, HardStochastic, Hypercube, Table


def rng(seed=0):
    return np.random.default_rng(seed)


LINEAR = {
    "hypercube": Hypercube,
    "fresh": Fresh,
    "hard-stochastic": HardStochastic,
    "hard-corrupted": HardCorrupted,
}


@pytest.fixture(params=LINEAR.values(), ids=LINEAR)
def world_class(request):
    return request.param


def test_every_linear_world_is_listed_by_name():
    assert {name: WORLDS[name] for name in LINEAR} == LINEAR
    assert set(WORLDS) >= {*LINEAR, "table"}


@pytest.mark.parametrize("dimension", [2, 5, 9])
def test_actions_are_what_agents_accept_and_rewards_are_linear(world_class, dimension):
    world = world_class(rng=rng(), dimension=dimension)
    for number in (1, 2, 3):
        actions, rewards = world.offer(number)
        checked_actions(actions, dimension)
        assert np.linalg.norm(actions, axis=1).max() <= 1 + 1e-9
        np.testing.assert_allclose(rewards, actions @ world.parameter, rtol=1e-12, atol=1e-15)
    assert world.dimension == dimension
    assert world.parameter.shape == (dimension,)


def test_agents_are_told_a_bound_that_holds(world_class):
    for seed in range(20):
        world = world_class(rng=rng(seed))
        assert np.linalg.norm(world.parameter) <= world.norm_bound * (1 + 1e-12)
        assert world.link.kappa(world.norm_bound) > 0


def test_the_same_seed_is_the_same_world(world_class):
    one, other, third = world_class(rng=rng(5)), world_class(rng=rng(5)), world_class(rng=rng(6))
    np.testing.assert_array_equal(one.parameter, other.parameter)
    for number in (1, 2):
        np.testing.assert_array_equal(one.offer(number).actions, other.offer(number).actions)
    if world_class is not HardCorrupted:
        assert not np.array_equal(one.parameter, third.parameter)


@pytest.mark.parametrize("dimension", [0, -1, 2.5, "five"])
def test_a_bad_dimension_is_refused(world_class, dimension):
    with pytest.raises(BadInputError, match="dimension"):
        world_class(rng=rng(), dimension=dimension)


@pytest.mark.parametrize("world_class", [Hypercube, HardStochastic])
def test_too_many_vertices_are_refused(world_class):
    with pytest.raises(BadInputError, match="from 1 to 12"):
        world_class(rng=rng(), dimension=13)


@pytest.mark.parametrize(("dimension", "count"), [(3, 8), (10, 30), (62, 30)])
def test_some_vertices_are_drawn_once_and_all_differ(dimension, count):
    worlds = [Hypercube(rng=rng(seed), dimension=dimension, count=count) for seed in (1, 1, 2)]
    one, same, other = (world.offer(1).actions for world in worlds)
    assert one.shape == (count, dimension)
    assert len(np.unique(one, axis=0)) == count
    np.testing.assert_allclose(np.abs(one), 1 / math.sqrt(dimension), rtol=1e-15)
    assert 0.25 < (one > 0).mean() < 0.75
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)
    np.testing.assert_allclose(worlds[0].offer(1).rewards, one @ worlds[0].parameter)
    np.testing.assert_array_equal(worlds[0].parameter, Fresh(rng=rng(1), dimension=dimension).parameter)
    checked_actions(one, dimension)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dimension": 3, "count": 9}, "dimension 3 has only 8 vertices, not 9"),
        ({"count": 1}, "count must be a whole number ≥ 2"),
        ({"count": 2.5}, "count must be a whole number ≥ 2"),
        ({"dimension": 63, "count": 9}, "from 1 to 62"),
    ],
)
def test_vertices_that_do_not_exist_are_refused(settings, message):
    with pytest.raises(BadInputError, match=message):
        Hypercube(rng=rng(), **settings)


def test_the_papers_world_is_the_default():
    world = Hypercube(rng=rng())
    np.testing.assert_array_equal(world.offer(1).actions, hypercube(5))
    assert np.linalg.norm(world.parameter) == pytest.approx(2.0)
    assert world.norm_bound == 2.0
    assert str(world.link) == "logistic"


@pytest.mark.parametrize("world_class", [Hypercube, Fresh])
def test_norm_and_link_can_be_chosen(world_class):
    world = world_class(rng=rng(), norm=0.7, link=PROBIT)
    assert np.linalg.norm(world.parameter) == pytest.approx(0.7)
    assert world.norm_bound == 0.7
    assert world.link is PROBIT


@pytest.mark.parametrize("world_class", [Hypercube, Fresh])
def test_the_parameter_is_a_scaled_draw_from_the_cube(world_class):
    uniform = rng(3).uniform(-0.5, 0.5, 5)
    parameter = world_class(rng=rng(3)).parameter
    np.testing.assert_allclose(parameter, 2 * uniform / np.linalg.norm(uniform), rtol=1e-12)


@pytest.mark.parametrize("world_class", [Hypercube, Fresh])
@pytest.mark.parametrize("norm", [0.0, -1.0, math.nan])
def test_a_bad_norm_is_refused(world_class, norm):
    with pytest.raises(BadInputError, match="positive"):
        world_class(rng=rng(), norm=norm)


def test_a_fixed_world_offers_the_same_every_round():
    world = Hypercube(rng=rng())
    assert world.offer(1) is world.offer(2)


def test_a_fresh_world_offers_other_actions_every_round():
    world = Fresh(rng=rng(), dimension=3, count=4)
    tables = [world.offer(t).actions for t in range(1, 21)]
    assert all(table.shape == (4, 3) for table in tables)
    assert len({table.tobytes() for table in tables}) == 20
    np.testing.assert_allclose(np.linalg.norm(np.vstack(tables), axis=1), 1.0, rtol=1e-11)
    assert np.linalg.norm(np.vstack(tables), axis=1).max() <= 1.0


def test_fresh_actions_point_everywhere():
    actions = Fresh(rng=rng(), dimension=3, count=4000).offer(1).actions
    assert np.abs(actions.mean(axis=0)).max() < 0.04
    np.testing.assert_allclose(actions.T @ actions / 4000, np.eye(3) / 3, atol=0.02)


@pytest.mark.parametrize("count", [1, 0, -2])
def test_a_fresh_world_needs_two_actions(count):
    with pytest.raises(BadInputError, match="count must be a whole number ≥ 2"):
        Fresh(rng=rng(), count=count)


@pytest.mark.parametrize("kappa", [1.0, 0.2])
@pytest.mark.parametrize(("dimension", "horizon"), [(3, 100), (5, 2000), (5, 4)])
def test_the_hard_stochastic_instance_is_the_proofs(kappa, dimension, horizon):
    world = HardStochastic(rng=rng(1), dimension=dimension, horizon=horizon, kappa=kappa)
    delta = math.sqrt(dimension / horizon) / 20
    np.testing.assert_allclose(np.abs(world.parameter), delta / kappa, rtol=1e-12)
    assert str(world.link) == ("clipped-linear" if kappa == 1.0 else f"clipped-linear({kappa})")
    assert world.norm_bound == pytest.approx(math.sqrt(dimension) * delta / kappa)
    assert world.link.kappa(world.norm_bound) == kappa
    rewards = world.offer(1).rewards
    assert kappa * np.abs(rewards).max() <= 1 / 8 + 1e-12
    assert rewards.max() == pytest.approx(np.abs(world.parameter).sum() / math.sqrt(dimension))


def test_the_hard_stochastic_instance_draws_its_signs():
    signs = {tuple(np.sign(HardStochastic(rng=rng(seed), dimension=2).parameter)) for seed in range(40)}
    assert len(signs) == 4


def test_the_hard_stochastic_instance_needs_enough_rounds():
    HardStochastic(rng=rng(), dimension=5, horizon=4)
    with pytest.raises(BadInputError, match="4d²/25"):
        HardStochastic(rng=rng(), dimension=5, horizon=3)


@pytest.mark.parametrize("kappa", [1.0, 0.2])
def test_the_hard_corrupted_instance_is_the_proofs(kappa):
    best = set()
    for seed in range(40):
        world = HardCorrupted(rng=rng(seed), dimension=4, kappa=kappa)
        actions, rewards = world.offer(1)
        np.testing.assert_array_equal(actions, np.eye(4))
        assert sorted(rewards) == pytest.approx([0, 0, 0, 0.25 / kappa])
        best.add(int(np.argmax(rewards)))
        assert world.norm_bound == 0.25 / kappa
        assert world.link.kappa(world.norm_bound) == kappa
        assert float(world.link.probability(rewards.max())) == pytest.approx(0.75)
    assert best == {0, 1, 2, 3}


FEATURES = np.array([[0.6, 0.8], [0.0, 1.0], [0.5, 0.5]])
VALUES = np.array([0.1, 0.9, -0.3])


def test_a_table_offers_what_it_was_given():
    world = Table(features=FEATURES, rewards=VALUES, norm_bound=3.0, link=PROBIT)
    actions, rewards = world.offer(7)
    np.testing.assert_array_equal(actions, FEATURES)
    np.testing.assert_array_equal(rewards, VALUES)
    assert (world.dimension, world.norm_bound, world.link, world.parameter) == (2, 3.0, PROBIT, None)


def test_a_table_is_read_from_a_file(tmp_path):
    np.savez(tmp_path / "table.npz", features=FEATURES, rewards=VALUES)
    world = WORLDS["table"](path=str(tmp_path / "table.npz"), norm_bound=1.0, rng=rng())
    np.testing.assert_array_equal(world.offer(1).actions, FEATURES)
    np.testing.assert_array_equal(world.offer(1).rewards, VALUES)


@pytest.mark.parametrize(
    ("features", "rewards", "reason"),
    [
        (FEATURES, VALUES[:2], "needs 3 finite rewards"),
        (FEATURES, [0.1, math.nan, 0.2], "needs 3 finite rewards"),
        (FEATURES, [0.1, math.inf, 0.2], "needs 3 finite rewards"),
        (FEATURES, VALUES[:, None], "needs 3 finite rewards"),
        (2 * FEATURES, VALUES, "at most 1"),
        (FEATURES[:1], VALUES[:1], "at least two actions"),
        (FEATURES[0], VALUES[:1], "shape"),
        (FEATURES * math.nan, VALUES, "NaN"),
    ],
)
def test_a_bad_table_is_refused(features, rewards, reason):
    with pytest.raises(BadInputError, match=reason):
        Table(features=features, rewards=rewards, norm_bound=1.0)


def test_a_file_that_is_no_table_is_refused(tmp_path):
    (tmp_path / "text.npz").write_text("features")
    np.savez(tmp_path / "partial.npz", features=FEATURES)
    np.savez(tmp_path / "objects.npz", features=np.array([{}], dtype=object), rewards=VALUES)
    for name in ("text.npz", "partial.npz", "objects.npz", "missing.npz"):
        with pytest.raises(BadInputError, match=rf"{name} is not an npz file"):
            Table.read(path=str(tmp_path / name), norm_bound=1.0)
